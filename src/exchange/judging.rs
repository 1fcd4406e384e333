//! The judge's part of an exchange: one more call, after the answer. The client has all of a stream but its end, which
//! is held until the judge has spoken or failed; an answer that is no stream is held as a whole.
//!
//! `judge` has what is asked and what that means; `own` sends and reads it.

use super::Exchange;
use super::own::can_ask_again;
use super::purpose::{Own, Purpose};
use super::round::Round;
use super::seam::Call;
use crate::Millis;
use crate::error::{Error, ErrorKind, Reason, Rejection};
use crate::headers::Headers as _;
use crate::judge;
use crate::judge::brief::{Brief, Speaker};
use crate::judge::gate::Gate;
use crate::judge::question;
use crate::judge::verdicts::{Judged, Verdict, Verdicts};
use crate::model::request_context::RequestContext;
use crate::observe::report::{JudgeReport, Outcome};
use crate::protocols::Refused;
use crate::protocols::messages::write_answer::PING;

/// State of the verdicts on one answer.
#[derive(Debug)]
pub(super) struct Judging {
    gate: Gate,
    /// True if the client gets the answer as events.
    is_stream: bool,
    asks: Asks,
    /// Parts of the judge's request that its upstream refused.
    refused: Vec<Refused>,
    /// Time at which the judge was first to be asked.
    asked_at: Option<Millis>,
}

/// Question for the judge, or the reason why nobody is asked.
#[derive(Debug)]
enum Asks {
    /// The judge is asked, and shown this brief.
    Judge(Brief),
    /// Nobody is asked: the request is more than a judge reads.
    TooLong,
    /// Nobody is asked: the host cannot send a second request after an answer.
    Unsupported,
}

impl Judging {
    /// Returns true if the end of the answer waits for the judge.
    fn is_waiting(&self) -> bool {
        self.gate.is_holding()
    }

    fn needs_judge(&self) -> bool {
        matches!(self.asks, Asks::Judge(_)) && self.gate.needs_judge()
    }

    /// Returns the number of bytes that are kept in memory for the verdicts.
    pub(super) fn held_bytes(&self) -> usize {
        let brief = match &self.asks {
            Asks::Judge(brief) => brief.held_bytes(),
            Asks::TooLong | Asks::Unsupported => 0,
        };
        self.gate.held_bytes().saturating_add(brief)
    }

    fn verdicts(&self, judged: Judged) -> Verdicts {
        let calls = self.gate.calls();
        match &self.asks {
            Asks::Unsupported => Verdicts::Unsupported,
            Asks::Judge(brief) => Verdicts::new(calls, brief, judged),
            Asks::TooLong if self.gate.needs_judge() => Verdicts::Unavailable("input_too_long"),
            Asks::TooLong => Verdicts::new(calls, &Brief::default(), judged),
        }
    }
}

impl Exchange {
    /// Begins to hold the answer for the judge, if the client asks for verdicts. `body` is the
    /// client's request.
    pub(super) fn begin_judging(&mut self, body: &str, context: &RequestContext) {
        let Some((upstream, model)) = self.config.judge().filter(|_| context.is_judged) else {
            return;
        };
        let is_of_agent = self.client.headers.value("x-claude-code-agent-id").is_some();
        let speaker = if is_of_agent { Speaker::Agent } else { Speaker::User };
        let asks = match Brief::read(body, speaker) {
            _ if !self.can.ask_again => Asks::Unsupported,
            Some(brief) => Asks::Judge(brief),
            None => Asks::TooLong,
        };
        let (model, upstream) = (model.to_owned(), upstream.name.clone());
        self.report.judge =
            Some(Box::new(JudgeReport { model, upstream, ..JudgeReport::default() }));
        if matches!(asks, Asks::Unsupported) {
            self.report.warnings.add_named("dropped", "safeguards");
        }
        self.judging = Some(Box::new(Judging {
            gate: Gate::new(context.stream, self.ids),
            is_stream: context.stream,
            asks,
            refused: Vec::new(),
            asked_at: None,
        }));
    }

    /// Holds the end of the answer, if it is in what was written behind `from` and waits for the judge.
    pub(super) fn hold_end(&mut self, from: usize) {
        let Some(judging) = &mut self.judging else { return };
        if judging.gate.take(&mut self.output.body, from) && !judging.needs_judge() {
            self.release(Judged::None("error"));
        }
    }

    /// Ends a complete answer, or makes the judge's call due. `is_cut`: the upstream goes on.
    pub(super) fn end_answer(&mut self, is_cut: bool, now: Millis) {
        let waits = self.judging.as_ref().is_some_and(|judging| judging.is_waiting());
        if waits && !self.is_ended() {
            self.report = self.report();
            if let Some(judging) = &mut self.judging {
                judging.asked_at.get_or_insert(now);
            }
            self.state.judge(is_cut);
            return;
        }
        self.finish(Outcome::Answered, 200, now);
        if is_cut {
            self.state.cut();
        }
    }

    /// Returns true if the upstream's answer is complete, and the judge has not spoken.
    pub(super) fn is_judging(&self) -> bool {
        self.state.is_judge_due() || self.state.round().is_some_and(Round::is_judge)
    }

    /// Returns the time at which the judge is given up.
    pub(super) fn judge_until(&self) -> Option<Millis> {
        let asked_at = self.judging.as_ref()?.asked_at?;
        Some(asked_at.saturating_add(self.config.settings.safeguards.timeout_ms))
    }

    /// Returns the call of the judge. If there can be none, ends the answer with unavailable
    /// verdicts.
    pub(super) fn judge_call(&mut self, now: Millis) -> Option<Call> {
        let call = self.write_judge_call(now);
        if call.is_none() {
            self.tell_verdicts(Judged::Unavailable("error"), now);
        }
        call
    }

    fn write_judge_call(&mut self, now: Millis) -> Option<Call> {
        let (upstream, model) = self.config.judge()?;
        let judging = self.judging.as_deref()?;
        let Asks::Judge(brief) = &judging.asks else { return None };
        let body = question::body(model, brief, judging.gate.calls(), upstream.takes_schema());
        let (call, context) = self.own_call((upstream, model), &judging.refused, &body)?;
        let (protocol, until) = (upstream.protocol, self.judge_until()?);
        let purpose = Purpose::Own(Own::Verdicts, context);
        self.begin_round(protocol, purpose, until.saturating_sub(now), now);
        Some(call)
    }

    /// Reads the judge's answer, and tells the client its verdicts or asks the judge again.
    pub(super) fn judged(
        &mut self,
        status: u16,
        body: &[u8],
        context: Box<RequestContext>,
        now: Millis,
    ) {
        let judged = match self.read_judge(status, body, &context) {
            Ok(judged) => judged,
            Err(error) => {
                if self.can_ask_judge_again(&error, &context) {
                    self.state.judge(false);
                    return;
                }
                failed(&error)
            }
        };
        self.tell_verdicts(judged, now);
    }

    fn read_judge(
        &mut self,
        status: u16,
        body: &[u8],
        context: &RequestContext,
    ) -> Result<Judged, Error> {
        let Some((upstream, _)) = self.config.judge() else { return Ok(Judged::None("error")) };
        let said = self.read_own(upstream.protocol, status, body, context)?;
        if let Some(judge) = &mut self.report.judge {
            judge.input_tokens = said.input_tokens;
            judge.output_tokens = said.output_tokens;
        }
        Ok(match said.stop_reason {
            Some("refusal") => Judged::None("refused"),
            // What is missing could be the verdict.
            Some("max_tokens" | "model_context_window_exceeded") => Judged::None("error"),
            _ => Judged::Text(said.text),
        })
    }

    /// Returns true if the judge's upstream refused something that can be left out; the next
    /// request then leaves it out.
    fn can_ask_judge_again(&mut self, error: &Error, context: &RequestContext) -> bool {
        let (Some((upstream, _)), Some(judging)) = (self.config.judge(), &mut self.judging) else {
            return false;
        };
        can_ask_again(&mut judging.refused, upstream.protocol, error, context)
    }

    /// Gives the end of the answer to the client, with what came of asking the judge.
    pub(super) fn tell_verdicts(&mut self, judged: Judged, now: Millis) {
        let before = self.output.body.len();
        let asked_at = self.judging.as_ref().and_then(|judging| judging.asked_at);
        if let Some(judge) = &mut self.report.judge {
            judge.duration_ms = asked_at.map(|at| now.saturating_sub(at));
        }
        self.release(judged);
        if self.output.is_held() {
            let is_stream = self.judging.as_ref().is_some_and(|judging| judging.is_stream);
            let id = self.report.answer.upstream_id.clone();
            if is_stream { self.begin_stream() } else { self.begin_message(id) }
        }
        self.count_bytes_since(before);
        self.watchdog.sent(now);
        self.finish(Outcome::Answered, 200, now);
    }

    /// Ends the answer without verdicts: the judge was not reached, or is given up.
    pub(super) fn tell_no_verdicts(&mut self, is_timeout: bool, now: Millis) {
        let reason =
            if is_timeout { Judged::None("timeout") } else { Judged::Unavailable("error") };
        self.tell_verdicts(reason, now);
    }

    fn release(&mut self, judged: Judged) {
        let Some(judging) = &mut self.judging else { return };
        let is_needed = judging.gate.needs_judge();
        let failure = match judged {
            Judged::None(reason) | Judged::Unavailable(reason) => Some(reason),
            Judged::Text(_) => None,
        };
        let verdicts = judging.verdicts(judged);
        let results = verdicts.written(judging.gate.calls());
        judging.gate.release(&results, &mut self.output.body);
        let Some(judge) = &mut self.report.judge else { return };
        let missing = note(&verdicts, judging.gate.calls(), judge);
        let (result, is_failure) = match (&judging.asks, failure) {
            (Asks::Unsupported, _) => ("unsupported", false),
            _ if !is_needed => ("not_needed", false),
            (Asks::TooLong, _) => ("input_too_long", true),
            (Asks::Judge(_), Some(reason)) => (reason, true),
            (Asks::Judge(_), None) if missing > 0 => ("incomplete", true),
            (Asks::Judge(_), None) => ("judged", false),
        };
        judge.result = result;
        if is_failure {
            self.report.warnings.add_named("judge_failed", result);
        }
    }

    /// Writes a ping to the client while the judge thinks.
    pub(super) fn ping_for_judge(&mut self, now: Millis) {
        self.output.body.extend_from_slice(PING);
        self.count_bytes(PING.len());
        self.watchdog.sent(now);
    }
}

/// Counts the verdicts in the report. Returns the number of verdicts that the judge owes.
fn note(verdicts: &Verdicts, calls: &[judge::Call], report: &mut JudgeReport) -> usize {
    let Verdicts::Of(verdicts) = verdicts else {
        report.unjudged = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        return 0;
    };
    let mut missing = 0_usize;
    for (call, verdict) in calls.iter().zip(verdicts) {
        let count = match verdict {
            Verdict::NotFlagged => &mut report.not_flagged,
            Verdict::Flagged { .. } => &mut report.flagged,
            Verdict::Unavailable(_) => &mut report.unjudged,
        };
        *count = count.saturating_add(1);
        let is_owed = call.unjudged.is_none() && matches!(verdict, Verdict::Unavailable(_));
        missing = missing.saturating_add(usize::from(is_owed));
    }
    missing
}

/// Turns an error of the judge's upstream into the reason for missing verdicts.
fn failed(error: &Error) -> Judged {
    let rejection = error.rejection();
    if rejection.and_then(Rejection::stop_reason) == Some("refusal") {
        return Judged::None("refused");
    }
    let is_too_long = |reason: &Reason| matches!(reason, Reason::ContextTooLong(_));
    if rejection.is_some_and(|rejection| rejection.reasons.iter().any(is_too_long)) {
        return Judged::Unavailable("input_too_long");
    }
    match error.kind {
        ErrorKind::RequestTooLarge => Judged::Unavailable("input_too_long"),
        ErrorKind::RateLimit | ErrorKind::Overloaded => Judged::Unavailable("rate_limited"),
        ErrorKind::Timeout => Judged::None("timeout"),
        _ => Judged::Unavailable("error"),
    }
}
