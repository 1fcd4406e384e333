//! Verdicts on tool calls, for clients that request verdicts (`safeguards`), as Claude Code does in
//! auto mode. The client receives a stream except for its end, which is held back until the judge
//! has answered or failed. An answer that is not a stream is held back as a whole.
//!
//! ```text
//! request ─▶ Brief ───────────┐
//! answer ──▶ Gate: its calls ─┴▶ question ─▶ the judge ─▶ verdicts ─▶ Gate: the end of the answer
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `brief` | the parts of a request that are shown to the judge |
//! | `forged` | verdicts that an upstream wrote itself, which are removed |
//! | `gate` | the calls of an answer, and the answer's end, which waits for the verdicts |
//! | `input` | the input of a call, normalized for the judge |
//! | `question` | the request for the judge |
//! | `results` | the judge's verdicts, and their form for the client |
//!
//! A call becomes `not_flagged` only by the judge's verdict on this call; any failure gives
//! `unavailable`. The judge sees neither results of tools nor texts of the assistant, because both
//! can contain orders of a third party.

mod brief;
mod forged;
mod gate;
mod input;
mod question;
mod results;

use crate::StopReason;
use std::borrow::Cow;

use super::{Came, Change, Hold, ModelQuestion, Nothing, Question, See, Step};
use crate::config::Settings;
use crate::error::{Error, ErrorKind, Reason, Rejection};
use crate::headers::Headers as _;
use crate::model::request_context::RequestContext;
use crate::observe::report::{JudgeReport, Report};
use brief::{Brief, Speaker};
use gate::Gate;
use results::{Judged, Verdict, Verdicts};

/// Tool call in an answer, to be judged before the client runs the call.
#[derive(Clone, Debug, PartialEq, Eq)]
struct JudgedCall {
    /// Id of the tool call, as the client knows the id.
    id: String,
    /// Id of the tool call in the request to the judge. The client's id is long, and is known to
    /// everybody who reads the conversation.
    key: String,
    name: String,
    /// Input of the tool call, as JSON.
    input: String,
    /// Reason why the tool call cannot be judged, if any.
    unjudged: Option<&'static str>,
}

/// State of the judge's verdicts on one answer: held end, question and result.
struct Judging {
    gate: Gate,
    asks: Asks,
    /// Result of the call to the judge, once known.
    judged: Option<Judged>,
}

/// Question for the judge, or the reason why the judge is not asked.
enum Asks {
    /// Question for the judge; holds the parts of the request that the judge is shown.
    Judge(Brief),
    /// No question: the request is larger than a judge reads.
    TooLong,
    /// No question: the host cannot send a second request after an answer.
    Unsupported,
}

/// Begins to hold back the answer for the judge, if the client requests verdicts.
pub(crate) fn begin(
    see: &See<'_>,
    context: &RequestContext,
    report: &mut Report,
) -> Option<Box<dyn Hold>> {
    let (upstream, model) = see.config.judge().filter(|_| context.is_judged)?;
    let is_of_agent = see.headers.value("x-claude-code-agent-id").is_some();
    let speaker = if is_of_agent { Speaker::Agent } else { Speaker::User };
    let asks = match Brief::read(see.text()?, speaker) {
        _ if !see.can.ask_models => Asks::Unsupported,
        Some(brief) => Asks::Judge(brief),
        None => Asks::TooLong,
    };
    let (model, upstream) = (model.to_owned(), upstream.name.clone());
    report.judge = Some(Box::new(JudgeReport { model, upstream, ..JudgeReport::default() }));
    if matches!(asks, Asks::Unsupported) {
        report.warnings.add_named("dropped", "safeguards");
    }
    Some(Box::new(Judging { gate: Gate::new(context.stream, see.ids), asks, judged: None }))
}

impl Hold for Judging {
    fn hold(&mut self, out: &mut Vec<u8>, from: usize, report: &mut Report) {
        if self.gate.take(out, from) && !self.needs_judge() {
            self.release(Judged::None("error"), out, report);
        }
    }

    fn is_holding(&self) -> bool {
        self.gate.is_holding()
    }
}

impl Step for Judging {
    fn timeout_ms(&self, settings: &Settings) -> u64 {
        settings.safeguards.timeout_ms
    }

    fn questions_left(&self) -> usize {
        usize::from(matches!(self.asks, Asks::Judge(_)) && self.judged.is_none())
    }

    fn ask<'s>(&self, see: &See<'s>, ahead: usize) -> Option<Question<'s>> {
        let Asks::Judge(brief) = &self.asks else { return None };
        if ahead >= self.questions_left() {
            return None;
        }
        let (upstream, model) = see.config.judge()?;
        let body = question::body(model, brief, self.gate.calls(), upstream.takes_schema());
        let upstream = Cow::Borrowed(upstream);
        Some(Question::Model(Box::new(ModelQuestion { upstream, model, body })))
    }

    fn take(&mut self, came: Came, report: &mut Report) {
        self.judged = Some(match came {
            Came::Message(answer) => {
                if let Some(judge) = &mut report.judge {
                    judge.input_tokens = answer.input_tokens;
                    judge.output_tokens = answer.output_tokens;
                }
                match answer.stop_reason {
                    Some(StopReason::Refusal) => Judged::None("refused"),
                    // The missing end of the judge's answer could contain the verdict.
                    Some(reason) if reason.is_cut() => Judged::None("error"),
                    _ => Judged::Text(answer.text),
                }
            }
            Came::Error(error) => failed(&error),
            Came::Nothing(Nothing::TimedOut) => Judged::None("timeout"),
            _ => Judged::Unavailable("error"),
        });
    }

    fn done(mut self: Box<Self>, see: &See<'_>, report: &mut Report) -> Result<Change, Error> {
        if let Some(judge) = &mut report.judge {
            judge.duration_ms = see.spent_ms();
        }
        let judged = self.judged.take().unwrap_or(Judged::Unavailable("error"));
        let mut end = Vec::new();
        self.release(judged, &mut end, report);
        Ok(Change::End(end))
    }

    fn held_bytes(&self) -> usize {
        let brief = match &self.asks {
            Asks::Judge(brief) => brief.held_bytes(),
            Asks::TooLong | Asks::Unsupported => 0,
        };
        self.gate.held_bytes().saturating_add(brief)
    }
}

impl Judging {
    fn needs_judge(&self) -> bool {
        matches!(self.asks, Asks::Judge(_)) && self.gate.needs_judge()
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

    /// Writes the end of the answer, which was held back, with the judge's verdicts.
    fn release(&mut self, judged: Judged, out: &mut Vec<u8>, report: &mut Report) {
        let is_needed = self.gate.needs_judge();
        let failure = match judged {
            Judged::None(reason) | Judged::Unavailable(reason) => Some(reason),
            Judged::Text(_) => None,
        };
        let verdicts = self.verdicts(judged);
        let results = verdicts.written(self.gate.calls());
        self.gate.release(&results, out);
        let Some(judge) = &mut report.judge else { return };
        let missing = note(&verdicts, self.gate.calls(), judge);
        let (result, is_failure) = match (&self.asks, failure) {
            (Asks::Unsupported, _) => ("unsupported", false),
            _ if !is_needed => ("not_needed", false),
            (Asks::TooLong, _) => ("input_too_long", true),
            (Asks::Judge(_), Some(reason)) => (reason, true),
            (Asks::Judge(_), None) if missing > 0 => ("incomplete", true),
            (Asks::Judge(_), None) => ("judged", false),
        };
        judge.result = result;
        if is_failure {
            report.warnings.add_named("judge_failed", result);
        }
    }
}

/// Counts the verdicts in the report. Returns the number of verdicts that the judge failed to give.
fn note(verdicts: &Verdicts, calls: &[JudgedCall], report: &mut JudgeReport) -> usize {
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

/// Converts an error of the judge's upstream into the reason for missing verdicts.
fn failed(error: &Error) -> Judged {
    let rejection = error.rejection();
    if rejection.and_then(Rejection::stop_reason) == Some(StopReason::Refusal) {
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
