//! Repeats of a later round that failed before its first byte. The client has the blocks of the
//! earlier rounds and cannot send its request again, so the exchange calls the upstream again after
//! a pause, with the same request.

use super::Exchange;
use super::round::Round;
use super::seam::Call;
use crate::Millis;
use crate::error::{Error, ErrorKind, Fault};
use crate::headers::{self, Header};
use crate::observe::report::AnswerReport;
use crate::steps::Limit;

/// Pauses before the repeats of a round, in milliseconds. Their number is the maximum number of
/// repeats.
const PAUSES_MS: [u64; 2] = [500, 1_000];

/// Maximum pause that an upstream may ask for, in milliseconds. For a longer one the client gets
/// the error.
const PAUSE_MS_MAX: u64 = 10_000;

/// Later round of an answer, which continues the client's message.
#[derive(Debug)]
pub(super) struct LaterRound {
    /// Counts of the earlier rounds.
    pub(super) earlier: AnswerReport,
    /// Limit because of which the round must do without the tools that Creole runs, if any.
    pub(super) limit: Option<Limit>,
    /// Pauses left for repeats of the round, in milliseconds.
    pauses: &'static [u64],
    /// Pause that the upstream asked for in the head of its answer, in milliseconds.
    asked_pause_ms: Option<u64>,
}

impl LaterRound {
    pub(super) fn new(earlier: AnswerReport) -> Self {
        Self { earlier, limit: None, pauses: &PAUSES_MS, asked_pause_ms: None }
    }
}

impl Exchange {
    /// Notes the head of the answer to a later round.
    pub(super) fn note_later_head(&mut self, headers: &[Header], now: Millis) {
        if let Some(later) = &mut self.later {
            later.asked_pause_ms = headers::pause_ms(headers, now);
        }
    }

    /// Begins the pause before a repeat of the running round, if the round is a later one, its
    /// error may pass, and the client got nothing of it. Returns false if the error ends the answer.
    pub(super) fn begin_pause(&mut self, error: &Error, now: Millis) -> bool {
        let is_blank = self.state.round().is_some_and(|round| round.is_blank());
        let Some(later) = &mut self.later else { return false };
        let asked_ms = later.asked_pause_ms.take();
        if !is_blank || self.client.body.is_empty() || !may_pass(error) {
            return false;
        }
        let asked_ms = asked_ms.or(error.retry_after.map(|seconds| seconds.saturating_mul(1_000)));
        if asked_ms.is_some_and(|asked| asked > PAUSE_MS_MAX) {
            return false;
        }
        let Some((pause_ms, rest)) = later.pauses.split_first() else { return false };
        later.pauses = rest;
        self.writer = self.state.take_round().and_then(Round::into_writer);
        self.state.pause(now.saturating_add(asked_ms.unwrap_or(*pause_ms)));
        self.report.retries = self.report.retries.saturating_add(1);
        self.report.failed_by = None;
        true
    }

    /// Returns the upstream call that repeats a round, after the pause.
    pub(super) fn repeat_round(&mut self, now: Millis) -> Option<Call> {
        let limit = self.later.as_ref().and_then(|later| later.limit);
        self.next_round(limit, now)
    }
}

/// Returns true if the same request may succeed later.
fn may_pass(error: &Error) -> bool {
    let kind = error.kind;
    error.fault() == Fault::Upstream
        && error.should_retry != Some(false)
        && matches!(
            kind,
            ErrorKind::RateLimit | ErrorKind::Overloaded | ErrorKind::Api | ErrorKind::Timeout
        )
}
