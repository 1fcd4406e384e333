//! Repeats of a later round that failed before its first byte. The client has the blocks of the
//! earlier rounds and cannot send its request again, so the exchange calls the upstream again after
//! a pause, with the same request.

use super::Exchange;
use super::round::Round;
use crate::Millis;
use crate::error::{Error, ErrorKind, Fault};
use crate::headers::{self, Header, Headers as _};
use crate::observe::report::AnswerReport;
use crate::steps::Limit;

/// Least pauses before the repeats of rounds, in milliseconds. Their number is the maximum number
/// of repeats in one answer.
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
    /// Least pauses of the repeats that are left for the answer, in milliseconds.
    pauses: &'static [u64],
    /// Pause that the upstream asked for in the head of its answer, in milliseconds.
    asked_pause_ms: Option<u64>,
    /// True if the head of the upstream's answer says that a repeat has no use.
    is_final: bool,
}

impl LaterRound {
    /// Returns the round after `before`, which is `None` after the first round.
    pub(super) fn new(earlier: AnswerReport, before: Option<&Self>) -> Self {
        let pauses = before.map_or(&PAUSES_MS[..], |before| before.pauses);
        Self { earlier, limit: None, pauses, asked_pause_ms: None, is_final: false }
    }
}

impl Exchange {
    /// Notes the head of the answer to a later round.
    pub(super) fn note_later_head(&mut self, headers: &[Header], now: Millis) {
        if let Some(later) = &mut self.later {
            later.asked_pause_ms = headers::pause_ms(headers, now);
            later.is_final = headers.value("x-should-retry") == Some("false");
        }
    }

    /// Begins the pause before a repeat of the running round, if the round is a later one, its
    /// error may pass, and the client got nothing of it. Returns false if the error ends the
    /// answer.
    pub(super) fn begin_pause(&mut self, error: &Error, now: Millis) -> bool {
        let is_blank = self.state.round().is_some_and(Round::is_blank);
        let since = now.saturating_sub(self.report.requested_at);
        let is_late = since >= self.config.settings.server_tools.duration_max_ms;
        let may_pass = may_pass(error, self.report.upstream_status);
        let Some(later) = &mut self.later else { return false };
        if !is_blank || !may_pass || later.is_final || is_late || self.client.body.is_empty() {
            return false;
        }
        let of_error = || error.retry_after.map(|seconds| seconds.saturating_mul(1_000));
        let asked_ms = later.asked_pause_ms.or_else(of_error).unwrap_or_default();
        let Some((pause_ms, rest)) = later.pauses.split_first() else { return false };
        if asked_ms > PAUSE_MS_MAX {
            return false;
        }
        (later.pauses, later.asked_pause_ms) = (rest, None);
        self.writer = self.state.take_round().and_then(Round::into_writer);
        self.state.pause(now.saturating_add(asked_ms.max(*pause_ms)));
        self.report.retries = self.report.retries.saturating_add(1);
        // The first answer does not describe the second.
        self.report.failed_by = None;
        self.report.upstream_status = None;
        self.report.upstream_request_id = None;
        self.output.hold(Vec::new());
        true
    }
}

/// Returns true if the same request may succeed later. `status`: the HTTP status of the upstream's
/// answer, if it has one. Creole's own words for a refusal have another status.
fn may_pass(error: &Error, status: Option<u16>) -> bool {
    let is_refusal = status.is_some_and(|status| {
        (400..500).contains(&status) && !matches!(status, 408 | 425 | 429 | 449)
    });
    let may_pass = matches!(
        error.kind,
        ErrorKind::RateLimit | ErrorKind::Overloaded | ErrorKind::Api | ErrorKind::Timeout
    );
    may_pass && !is_refusal && error.fault() == Fault::Upstream && error.should_retry.is_none()
}
