//! A round: one call of a host, and what came back. Its [`Purpose`] says what for: the client's answer is one of them.

use std::mem;
use std::sync::Arc;

use super::body::{ending_of, first_of, first_of_body, has_plain_body, is_whole};
use super::count::{self, Count};
use super::models;
use super::purpose::{Collected, ImageAnswer, Own, OwnAnswer, Purpose};
use super::seam::{ENCODING_UNREADABLE, unreachable_upstream};
use super::unreachable::Unreachable;
use super::{End, Pings};
use crate::answer::{Answer, Ending};
use crate::config::{Config, Protocol};
use crate::error::Error;
use crate::headers::{Header, Headers as _};
use crate::ids::Ids;
use crate::model::request_context::RequestContext;
use crate::observe::report::Cause;
use crate::observe::warning::Warnings;
use crate::protocols::messages::models::ListFor;
use crate::protocols::{self, Translated};
use crate::text::words::BYTE_ORDER_MARK;
use crate::upstream_error;

/// Request for an upstream, for a round that gives the client's answer or a count.
#[derive(Debug)]
pub(super) struct RoundRequest {
    /// Name of the upstream in the configuration.
    pub(super) upstream: String,
    pub(super) body: Vec<u8>,
    pub(super) context: Box<RequestContext>,
}

impl RoundRequest {
    pub(super) fn of(translated: Result<Translated, Error>) -> Option<Self> {
        match translated.ok()? {
            Translated::Send { upstream, body, context } => Some(Self { upstream, body, context }),
            Translated::Answer { .. } => None,
        }
    }
}

/// Call of the host, and what has come back of it.
#[derive(Debug)]
pub(super) struct Round {
    config: Arc<Config>,
    protocol: Protocol,
    ids: Ids,
    /// True if the message begins with the first choice, even if that is empty.
    begins_early: bool,
    progress: Progress,
}

/// Progress of the upstream's answer.
#[derive(Debug)]
enum Progress {
    /// No head has come.
    Sent(Purpose),
    /// The whole body is collected, and then read.
    Collecting { what: Collected, status: u16, body: Vec<u8> },
    /// The head has come, and it is not known whether the body is one JSON text or a stream.
    Undecided { answer: Box<Answer>, seen: Vec<u8> },
    /// The body is one JSON text, which is collected.
    Whole { answer: Box<Answer>, body: Vec<u8>, ending: Ending },
    /// The body is a stream of events, or was read as a whole.
    Events { answer: Box<Answer> },
    /// The round is over without an answer.
    Over,
}

/// Result of a round.
pub(super) enum Ended {
    /// A count or a list. `is_estimate`: a count that is not exact.
    Json { body: Vec<u8>, is_estimate: bool },
    /// The answer of a model to a question of Creole's own.
    Own(Own, OwnAnswer),
    /// The answer of the server of an image.
    Image(ImageAnswer),
    /// The client's answer. `cause`: what ended it, if it failed.
    Answer { result: Result<(), Error>, cause: Option<Cause> },
}

impl Ended {
    fn count(count: Count, answer: Option<&[u8]>) -> Self {
        let (body, is_estimate) = count.answer(answer);
        Self::Json { body, is_estimate }
    }
}

impl Round {
    pub(super) fn new(
        config: Arc<Config>,
        protocol: Protocol,
        ids: Ids,
        pings: Pings,
        purpose: Purpose,
    ) -> Self {
        let begins_early = pings == Pings::AfterHead;
        Self { config, protocol, ids, begins_early, progress: Progress::Sent(purpose) }
    }

    fn new_answer(&self, context: Box<RequestContext>) -> Box<Answer> {
        Box::new(protocols::answer(self.protocol, context, &self.config.settings, self.ids))
    }

    pub(super) fn awaits_head(&self) -> bool {
        matches!(self.progress, Progress::Sent(_))
    }

    /// Returns true if the upstream was called for its models.
    pub(super) fn is_list(&self) -> bool {
        matches!(
            self.progress,
            Progress::Sent(Purpose::Models(_))
                | Progress::Collecting { what: Collected::Models(_), .. }
        )
    }

    /// Returns the question of Creole's own that the round asks, if it asks one.
    fn own(&self) -> Option<Own> {
        match self.progress {
            Progress::Sent(Purpose::Own(own, _))
            | Progress::Collecting { what: Collected::Own(own, _), .. } => Some(own),
            _ => None,
        }
    }

    pub(super) fn is_own(&self) -> bool {
        self.own().is_some()
    }

    /// Returns true if the judge was called.
    pub(super) fn is_judge(&self) -> bool {
        self.own() == Some(Own::Verdicts)
    }

    /// Returns true if the call is one of a preparation.
    pub(super) fn is_preparation(&self) -> bool {
        let is_image = matches!(
            self.progress,
            Progress::Sent(Purpose::Image)
                | Progress::Collecting { what: Collected::Image { .. }, .. }
        );
        is_image || self.own() == Some(Own::Description)
    }

    /// Returns true if the client gets nothing of this answer.
    pub(super) fn is_aside(&self) -> bool {
        self.is_judge() || self.is_preparation()
    }

    /// Returns the answer for the client while it is made.
    pub(super) fn answer(&self) -> Option<&Answer> {
        match &self.progress {
            Progress::Undecided { answer, .. }
            | Progress::Whole { answer, .. }
            | Progress::Events { answer } => Some(answer),
            _ => None,
        }
    }

    pub(super) fn answer_mut(&mut self) -> Option<&mut Answer> {
        match &mut self.progress {
            Progress::Undecided { answer, .. }
            | Progress::Whole { answer, .. }
            | Progress::Events { answer } => Some(answer),
            _ => None,
        }
    }

    /// Returns the context of a request for the client's answer, unless the upstream refused it.
    pub(super) fn context(&self) -> Option<&RequestContext> {
        match &self.progress {
            Progress::Sent(Purpose::Answer(context)) => Some(context),
            _ => self.answer().map(Answer::context),
        }
    }

    /// Returns the answer, if its body is a stream of events or has been read as a whole.
    pub(super) fn events(&self) -> Option<&Answer> {
        let Progress::Events { answer } = &self.progress else { return None };
        Some(answer)
    }

    /// Returns true if a whole answer is being collected.
    pub(super) fn is_collecting(&self) -> bool {
        matches!(self.progress, Progress::Whole { .. })
    }

    /// Returns true if a whole answer looks complete and is not.
    pub(super) fn lacks_end(&self) -> bool {
        matches!(&self.progress, Progress::Whole { answer, body, .. } if !answer.is_whole(body))
    }

    /// Returns the status of an upstream that refuses the request.
    pub(super) fn refusal_status(&self) -> Option<u16> {
        match self.progress {
            Progress::Collecting { what: Collected::Refusal(_), status, .. } => Some(status),
            _ => None,
        }
    }

    /// Returns the context of a request for which nothing has come but an error.
    pub(super) fn refused_context(&self) -> Option<&RequestContext> {
        match &self.progress {
            Progress::Collecting { what: Collected::Refusal(context), .. } => Some(context),
            Progress::Events { answer } if !answer.has_started() => Some(answer.context()),
            _ => None,
        }
    }

    /// Returns the number of bytes of the upstream's body that are kept in memory.
    pub(super) fn held_bytes(&self) -> usize {
        match &self.progress {
            Progress::Collecting { body, .. }
            | Progress::Undecided { seen: body, .. }
            | Progress::Whole { body, .. } => body.len(),
            Progress::Events { answer } => answer.held_bytes(),
            Progress::Sent(_) | Progress::Over => 0,
        }
    }

    /// Returns the amount of content, that without white space, and whether more must come.
    pub(super) fn heard(&self) -> Option<(u64, u64, Ending)> {
        match &self.progress {
            Progress::Events { answer } => {
                Some((answer.report().progress, answer.spoken(), answer.ending()))
            }
            // Whatever comes of a whole answer is content.
            Progress::Whole { body, ending, .. } => {
                let size = body.len() as u64;
                Some((size, size, *ending))
            }
            _ => None,
        }
    }

    /// Takes the head of the upstream's answer.
    pub(super) fn handle_head(&mut self, status: u16, headers: &[Header], warnings: &mut Warnings) {
        let purpose = match mem::replace(&mut self.progress, Progress::Over) {
            Progress::Sent(purpose) => purpose,
            other => {
                self.progress = other;
                return;
            }
        };
        let collect = |what| Progress::Collecting { what, status, body: Vec::new() };
        self.progress = match purpose {
            Purpose::Models(list_for) => collect(Collected::Models(list_for)),
            Purpose::Own(own, context) => collect(Collected::Own(own, context)),
            Purpose::Image => {
                let location = headers.value("location").map(str::to_owned);
                collect(Collected::Image { location })
            }
            Purpose::Count(count, _) if count.takes(status) => collect(Collected::Count(count)),
            Purpose::Answer(context) | Purpose::Count(_, context) => {
                if !has_plain_body(headers) {
                    // The request wanted `identity`. The body cannot be read; the status can.
                    warnings.add("upstream_encoding");
                    let status = if status < 400 { 502 } else { status };
                    let message = ENCODING_UNREADABLE;
                    let body = format!("{{\"error\":{{\"message\":\"{message}\"}}}}").into_bytes();
                    Progress::Collecting { what: Collected::Refusal(context), status, body }
                } else if (200..300).contains(&status) {
                    let mut answer = self.new_answer(context);
                    if self.begins_early {
                        answer.begin_early();
                    }
                    Progress::Undecided { answer, seen: Vec::new() }
                } else {
                    collect(Collected::Refusal(context))
                }
            }
        };
    }

    /// Takes a piece of the upstream's body. Bytes for the client are appended to `out`.
    pub(super) fn handle_piece(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        match &mut self.progress {
            Progress::Events { answer } => answer.handle_piece(piece, out),
            Progress::Whole { body, ending, .. } => {
                *ending = ending_of(piece).unwrap_or(*ending);
                body.extend_from_slice(piece);
                let size = body.len();
                self.check_size(size)
            }
            Progress::Undecided { seen, .. } => {
                let known = seen.len();
                seen.extend_from_slice(piece);
                // White space can go on for long, and is not looked at again.
                let found = if known > BYTE_ORDER_MARK.len() {
                    first_of(piece)
                } else {
                    first_of_body(seen)
                };
                let size = seen.len();
                match found {
                    Some(first) => self.decide(first, out),
                    None => self.check_size(size),
                }
            }
            Progress::Collecting { body, .. } => {
                body.extend_from_slice(piece);
                Ok(())
            }
            Progress::Sent(_) | Progress::Over => Ok(()),
        }
    }

    /// Decides by its first byte what the body is. Content types lie: servers send streams as
    /// text/plain, and errors and whole answers as text/event-stream.
    fn decide(&mut self, first: u8, out: &mut Vec<u8>) -> Result<(), Error> {
        let Progress::Undecided { mut answer, seen } =
            mem::replace(&mut self.progress, Progress::Over)
        else {
            return Ok(());
        };
        if is_whole(first) {
            let size = seen.len();
            let ending = ending_of(&seen).unwrap_or(Ending::Open);
            self.progress = Progress::Whole { answer, body: seen, ending };
            return self.check_size(size);
        }
        let result = answer.handle_piece(&seen, out);
        self.progress = Progress::Events { answer };
        result
    }

    /// Returns how many bytes of a collected body are still read. The beginning of an error tells
    /// enough, and what is too long for an answer is no count.
    pub(super) fn bytes_left(&self) -> usize {
        let Progress::Collecting { what, status, body } = &self.progress else { return usize::MAX };
        let max = what.bytes_max(*status, &self.config.settings);
        debug_assert!(body.len() <= max, "a piece was not cut at the limit");
        max.saturating_sub(body.len())
    }

    fn check_size(&self, size: usize) -> Result<(), Error> {
        if size > self.config.settings.response_bytes_max {
            return Err(Error::answer_too_large());
        }
        Ok(())
    }

    /// Returns the client's answer to a question that needs no upstream: a tokenizer that is silent
    /// or not reached is like one that is not there, and a list of models may be empty.
    pub(super) fn without_upstream(&self) -> Option<Ended> {
        match &self.progress {
            Progress::Sent(Purpose::Count(count, _)) => Some(Ended::count(*count, None)),
            Progress::Sent(Purpose::Models(list_for)) => Some(self.list(*list_for, 0, &[])),
            Progress::Collecting { what: Collected::Models(list_for), status, body } => {
                Some(self.list(*list_for, *status, body))
            }
            _ => None,
        }
    }

    fn list(&self, list_for: ListFor, status: u16, body: &[u8]) -> Ended {
        let body = models::of_answer(&self.config, list_for, status, body);
        Ended::Json { body, is_estimate: false }
    }

    /// Takes the end of the upstream's body.
    pub(super) fn handle_end(&mut self, end: End, out: &mut Vec<u8>) -> Ended {
        if let Some(ended) = self.without_upstream() {
            return ended;
        }
        let (result, cause) = match mem::replace(&mut self.progress, Progress::Over) {
            Progress::Sent(Purpose::Own(own, context)) => {
                let (status, body) = (502, Vec::new());
                return Ended::Own(own, OwnAnswer { status, body, context, end });
            }
            Progress::Sent(Purpose::Image) => {
                let (location, body) = (None, Vec::new());
                return Ended::Image(ImageAnswer { status: 502, location, body, is_whole: false });
            }
            Progress::Sent(_) => {
                (Err(unreachable_upstream(&Unreachable::Closed)), Some(Cause::Unreachable))
            }
            Progress::Over => (Ok(()), None),
            Progress::Collecting { what, status, body } => match what {
                Collected::Refusal(context) => {
                    (self.read_refusal(context, status, &body, out), Some(Cause::UpstreamRefused))
                }
                Collected::Count(count) => match count::unknown_model(status, &body) {
                    Some(error) => (Err(error), Some(Cause::UpstreamRefused)),
                    None => return Ended::count(count, count::readable(status, &body)),
                },
                Collected::Models(list_for) => return self.list(list_for, status, &body),
                Collected::Own(own, context) => {
                    return Ended::Own(own, OwnAnswer { status, body, context, end });
                }
                Collected::Image { location } => {
                    let is_whole = end == End::Complete;
                    return Ended::Image(ImageAnswer { status, location, body, is_whole });
                }
            },
            Progress::Undecided { mut answer, seen } => {
                let result = match end {
                    End::Complete if first_of_body(&seen).is_none() => Err(Error::answer_empty()),
                    _ => answer.handle_end(out),
                };
                self.progress = Progress::Events { answer };
                (result, Some(Cause::UpstreamBrokeOff))
            }
            Progress::Whole { mut answer, body, .. } => {
                let result = if end == End::Complete || answer.is_whole(&body) {
                    answer.handle_whole(&body, out)
                } else {
                    answer.handle_end(out)
                };
                self.progress = Progress::Events { answer };
                (result, (end == End::Aborted).then_some(Cause::UpstreamBrokeOff))
            }
            Progress::Events { mut answer } => {
                if end == End::Aborted {
                    answer.break_off();
                }
                let result = answer.handle_end(out);
                self.progress = Progress::Events { answer };
                (result, Some(Cause::UpstreamBrokeOff))
            }
        };
        Ended::Answer { result, cause }
    }

    /// Reads the body of an upstream that refuses. Some refusals are answers.
    fn read_refusal(
        &mut self,
        mut context: Box<RequestContext>,
        status: u16,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let error = upstream_error::from_upstream(status, body, &context);
        let Some(stop_reason) = upstream_error::stop_reason(status, &error) else {
            let (what, body) = (Collected::Refusal(context), Vec::new());
            self.progress = Progress::Collecting { what, status, body };
            return Err(error);
        };
        // Nobody counted the prompt.
        context.input_tokens = 0;
        let mut answer = self.new_answer(context);
        answer.write_own("", stop_reason, out);
        self.progress = Progress::Events { answer };
        Ok(())
    }
}
