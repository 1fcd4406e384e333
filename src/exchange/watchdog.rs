//! Notices silence: of the upstream, which may have stalled, and towards the client, which may give
//! up.
//!
//! An upstream's comments and empty deltas are life, but not progress: a server that only says that
//! it is alive for minutes has stalled too. So has a model that writes nothing but white space.

use crate::Millis;
use crate::answer::Ending;
use crate::config::Settings;

/// Time for which a complete answer waits for the end of its connection.
const SURE_MS: u64 = 10_000;

/// Time for which the end is awaited once the upstream stopped without counts: some upstreams then
/// call a tool.
const LIKELY_MS: u64 = 60_000;

/// Time for which an upstream may still tell its counts, once the text was cut at a stop sequence.
/// It may not know the sequence, and then it goes on, and whoever pays for its tokens pays.
const CUT_MS: u64 = 200;

/// Action that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing is due yet.
    Nothing,
    /// A ping is due: nothing was sent to the client for `ping_interval_ms`.
    Ping,
    /// The answer is to be ended: it is complete, but for the word that it is.
    End,
    /// The upstream is given up; the text says why.
    Stalled(&'static str),
}

/// Part of the answer that the upstream has to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// The head of the upstream's response.
    Head,
    /// The first content of an answer that is no stream. Some servers send their head, and then
    /// line ends, while a model thinks; others send the head when the answer is there. Both may
    /// take as long.
    Whole,
    /// The first content of a stream. Servers that send their head at once (mlx-lm, DeepSeek) read
    /// the prompt after it.
    First,
    /// More of an answer whose content has begun.
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
    /// Time since which the answer may be complete: the upstream said why it stopped, or closed its
    /// JSON; or the text was cut; or the status decides.
    complete_at: Option<Millis>,
    /// Time that the upstream still gets after `complete_at` or later content, in milliseconds.
    patience_ms: u64,
    sent_at: Millis,
    /// True if the host can write while the upstream is silent.
    writes: bool,
    /// Time at which the text was cut at a stop sequence.
    cut_at: Option<Millis>,
}

impl Watchdog {
    /// `pings`: whether the host can write while the upstream is silent.
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

    /// Starts the times of a call: the upstream's head may take `first_byte_timeout_ms`.
    pub(crate) fn start(&mut self, first_byte_timeout_ms: u64, now: Millis) {
        self.first_byte_timeout_ms = first_byte_timeout_ms;
        self.awaited = Awaited::Head;
        self.asked_at = now;
        self.byte_at = now;
        self.progress_at = now;
        self.sent_at = now;
        self.complete_at = None;
        self.cut_at = None;
    }

    /// Notes that the upstream's head has come, of an answer that is a stream or is not. The time
    /// before it was no silence between signs of life.
    pub(crate) fn head(&mut self, is_stream: bool, now: Millis) {
        self.awaited = if is_stream { Awaited::First } else { Awaited::Whole };
        self.byte_at = now;
        self.progress_at = now;
    }

    /// Notes that the upstream sent something.
    pub(crate) fn byte(&mut self, now: Millis) {
        self.byte_at = now;
    }

    /// Notes that the model has begun to write a stream, if only white space: a model that goes
    /// astray writes no end of it.
    pub(crate) fn begun(&mut self) {
        if self.awaited == Awaited::First {
            self.awaited = Awaited::More;
        }
    }

    /// Notes how many pieces of content the upstream has sent so far.
    pub(crate) fn progress(&mut self, progress: u64, now: Millis) {
        // Comments in front of an answer that is no stream are signs of life, as line ends are.
        let is_first = matches!(self.awaited, Awaited::Whole | Awaited::First) && progress > 0;
        if progress != self.progress || is_first {
            self.awaited = Awaited::More;
            self.progress = progress;
            self.progress_at = now;
        }
    }

    /// Notes whether more must come, and sets the time that the end may take.
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
                // in between.
                if self.writes { CUT_MS } else { SURE_MS }
            }
            Ending::Sure => SURE_MS,
        };
        self.complete_at.get_or_insert(now);
    }

    /// Returns true if the text was cut, and the wait for what the upstream still says of its
    /// answer is over.
    #[must_use]
    pub(crate) fn is_cut_over(&self, now: Millis) -> bool {
        self.cut_at.is_some_and(|at| now >= at.saturating_add(CUT_MS))
    }

    /// Notes that the client was sent something.
    pub(crate) fn sent(&mut self, now: Millis) {
        self.sent_at = now;
    }

    /// Returns true if nothing was sent to the client for `ping_interval_ms`.
    #[must_use]
    pub(crate) fn ping_is_due(&self, now: Millis) -> bool {
        now >= self.sent_at.saturating_add(self.ping_interval_ms)
    }

    /// Returns the action that is due now.
    #[must_use]
    pub(crate) fn due(&self, now: Millis) -> Due {
        if self.end_at().is_some_and(|at| now >= at) {
            return Due::End;
        }
        if now >= self.give_up_at() {
            return Due::Stalled(match self.awaited {
                Awaited::Head | Awaited::Whole => "Upstream did not answer in time.",
                Awaited::First | Awaited::More if now >= self.silent_at() => {
                    "Upstream stopped sending."
                }
                Awaited::First | Awaited::More => "Upstream sends signs of life, but no content.",
            });
        }
        if self.ping_is_due(now) { Due::Ping } else { Due::Nothing }
    }

    /// Returns the time of the next action.
    #[must_use]
    pub(crate) fn next(&self, pings: bool) -> Millis {
        let mut next = self.give_up_at();
        next = next.min(self.end_at().unwrap_or(next));
        if pings {
            next = next.min(self.sent_at.saturating_add(self.ping_interval_ms));
        }
        next
    }

    /// Returns the time at which a complete answer is over without the word that it is.
    fn end_at(&self) -> Option<Millis> {
        let patience = self.patience_ms.min(self.stall_timeout_ms).min(self.no_progress_timeout_ms);
        Some(self.complete_at?.max(self.progress_at).saturating_add(patience))
    }

    /// Returns the time at which the upstream is given up.
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
