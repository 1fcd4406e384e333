//! Watchdog that detects silence: an upstream that has stalled, and a client that gets no bytes and
//! may give up.
//!
//! An upstream's comments and empty deltas are signs of life, but not progress: a server that sends
//! only signs of life for minutes has stalled too. So has a model that writes nothing but white
//! space.

use crate::Millis;
use crate::answer::Ending;
use crate::config::Settings;

/// Wait for the end of the upstream's body after a complete answer, in ms.
const SURE_MS: u64 = 10_000;

/// Wait for the end of the answer after the upstream stopped without token counts, in ms: some
/// upstreams then still send a tool call.
const LIKELY_MS: u64 = 60_000;

/// Wait for the upstream's token counts after the text was cut at a stop sequence, in ms. An
/// upstream that does not know the sequence goes on generating tokens that somebody pays for.
const CUT_MS: u64 = 200;

/// Action that is due after a silence: a ping, or the end of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DueAction {
    /// No action is due yet, because no timeout has expired.
    Nothing,
    /// Ping for the client, because nothing was sent for `ping_interval_ms`.
    Ping,
    /// End of an answer that is complete, except that the upstream has not ended its body.
    End,
    /// Timeout of the upstream, with the text for the error.
    Stalled(&'static str),
}

/// Part of the answer that the upstream has to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// Head of the upstream's HTTP response.
    Head,
    /// First content of an answer that is not a stream. While the model generates, some servers
    /// send the head and then line ends; others send the head with the finished answer. Both get
    /// the same time.
    Whole,
    /// First content of a stream. Servers that send their head at once (mlx-lm, DeepSeek) process
    /// the prompt after the head.
    First,
    /// Further content of an answer whose content has begun.
    More,
}

/// Timeouts in milliseconds, and the times from which they run, in Unix milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watchdog {
    stall_timeout_ms: u64,
    no_progress_timeout_ms: u64,
    first_byte_timeout_ms: u64,
    ping_interval_ms: u64,
    awaited: Awaited,
    asked_at: Millis,
    byte_at: Millis,
    progress: u64,
    progress_at: Millis,
    /// Time since which the answer may be complete: the upstream sent a stop reason or closed its
    /// JSON, the text was cut at a stop sequence, or the error status suffices.
    complete_at: Option<Millis>,
    /// Wait after `complete_at` or later content until the answer is ended, in milliseconds.
    patience_ms: u64,
    sent_at: Millis,
    /// True if the host can write while the upstream is silent.
    writes: bool,
    /// Time at which the answer's text was cut at a stop sequence.
    cut_at: Option<Millis>,
}

impl Watchdog {
    /// Creates a watchdog. `pings`: true if the host can write while the upstream is silent.
    #[must_use]
    pub(crate) fn new(settings: &Settings, pings: bool) -> Self {
        Self {
            stall_timeout_ms: settings.stall_after_ms(pings),
            no_progress_timeout_ms: settings.no_progress_timeout_ms,
            first_byte_timeout_ms: 0,
            ping_interval_ms: settings.ping_interval_ms,
            awaited: Awaited::Head,
            asked_at: 0,
            byte_at: 0,
            progress: 0,
            progress_at: 0,
            complete_at: None,
            patience_ms: 0,
            sent_at: 0,
            writes: pings,
            cut_at: None,
        }
    }

    /// Starts the timeouts of a call. The upstream's head may take `first_byte_timeout_ms`.
    pub(crate) fn start(&mut self, first_byte_timeout_ms: u64, now: Millis) {
        self.first_byte_timeout_ms = first_byte_timeout_ms;
        self.awaited = Awaited::Head;
        self.asked_at = now;
        self.byte_at = now;
        self.progress_at = now;
        if self.sent_at == 0 {
            // The client waits from the first call on.
            self.sent_at = now;
        }
        self.complete_at = None;
        self.cut_at = None;
    }

    /// Records the arrival of the upstream's head. `is_stream`: true if the answer is a stream.
    /// Silence is measured from the head on.
    pub(crate) fn head(&mut self, is_stream: bool, now: Millis) {
        self.awaited = if is_stream { Awaited::First } else { Awaited::Whole };
        self.byte_at = now;
        self.progress_at = now;
    }

    /// Records the time at which bytes arrived from the upstream.
    pub(crate) fn byte(&mut self, now: Millis) {
        self.byte_at = now;
    }

    /// Records that the model has begun to write a stream, if only white space, which a degenerate
    /// model can write without end.
    pub(crate) fn begun(&mut self) {
        if self.awaited == Awaited::First {
            self.awaited = Awaited::More;
        }
    }

    /// Records the number of pieces of content received from the upstream.
    pub(crate) fn progress(&mut self, progress: u64, now: Millis) {
        // Comments before a non-stream answer are signs of life, as line ends are.
        let is_first = matches!(self.awaited, Awaited::Whole | Awaited::First) && progress > 0;
        if progress != self.progress || is_first {
            self.awaited = Awaited::More;
            self.progress = progress;
            self.progress_at = now;
        }
    }

    /// Records how complete the answer is, and sets the wait for its end.
    pub(crate) fn ending(&mut self, ending: Ending, now: Millis) {
        self.patience_ms = match ending {
            Ending::Open => {
                self.complete_at = None;
                return;
            }
            Ending::Likely => LIKELY_MS,
            Ending::Cut => {
                self.cut_at.get_or_insert(now);
                // A host that writes only when the upstream does would lose the end of the message
                // in the meantime.
                if self.writes { CUT_MS } else { SURE_MS }
            }
            Ending::Sure => SURE_MS,
        };
        self.complete_at.get_or_insert(now);
    }

    /// Returns true if the answer's text was cut at a stop sequence, and the wait for the
    /// upstream's token counts is over.
    #[must_use]
    pub(crate) fn is_cut_over(&self, now: Millis) -> bool {
        self.cut_at.is_some_and(|at| now >= at.saturating_add(CUT_MS))
    }

    /// Records the time at which bytes were sent to the client.
    pub(crate) fn sent(&mut self, now: Millis) {
        // The time is not known where the host has read a document.
        self.sent_at = self.sent_at.max(now);
    }

    /// Returns true if nothing was sent to the client for `ping_interval_ms`.
    #[must_use]
    pub(crate) fn ping_is_due(&self, now: Millis) -> bool {
        now >= self.ping_at()
    }

    /// Returns the time at which the next ping is due.
    #[must_use]
    pub(crate) fn ping_at(&self) -> Millis {
        self.sent_at.saturating_add(self.ping_interval_ms)
    }

    /// Returns the action that is due at time `now`: a ping, the end of the answer, or a timeout
    /// error.
    #[must_use]
    pub(crate) fn due(&self, now: Millis) -> DueAction {
        if self.end_at().is_some_and(|at| now >= at) {
            return DueAction::End;
        }
        if now >= self.give_up_at() {
            return DueAction::Stalled(match self.awaited {
                Awaited::Head | Awaited::Whole => "Upstream did not answer in time.",
                Awaited::First | Awaited::More if now >= self.silent_at() => {
                    "Upstream stopped sending."
                }
                Awaited::First | Awaited::More => "Upstream sends signs of life, but no content.",
            });
        }
        if self.ping_is_due(now) { DueAction::Ping } else { DueAction::Nothing }
    }

    /// Returns the time at which the next action, such as a ping or a timeout, is due.
    #[must_use]
    pub(crate) fn next(&self, pings: bool) -> Millis {
        let mut next = self.give_up_at();
        next = next.min(self.end_at().unwrap_or(next));
        if pings {
            next = next.min(self.ping_at());
        }
        next
    }

    /// Returns the time at which a complete answer is ended although the upstream has not ended its
    /// body.
    fn end_at(&self) -> Option<Millis> {
        let patience = self.patience_ms.min(self.stall_timeout_ms).min(self.no_progress_timeout_ms);
        Some(self.complete_at?.max(self.progress_at).saturating_add(patience))
    }

    /// Returns the time at which the upstream is abandoned.
    fn give_up_at(&self) -> Millis {
        let answer_at = self.asked_at.saturating_add(self.first_byte_timeout_ms);
        let more_at = self.silent_at().min(self.no_progress_at());
        match self.awaited {
            Awaited::Head => answer_at,
            Awaited::Whole | Awaited::First => answer_at.max(more_at),
            Awaited::More => more_at,
        }
    }

    fn silent_at(&self) -> Millis {
        self.byte_at.saturating_add(self.stall_timeout_ms)
    }

    fn no_progress_at(&self) -> Millis {
        self.progress_at.saturating_add(self.no_progress_timeout_ms)
    }
}

#[cfg(test)]
mod tests;
