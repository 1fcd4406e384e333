//! A round: one call of an upstream for the client's answer, and what came back.

use std::mem;
use std::sync::Arc;

use super::body::{ending_of, first_of, first_of_body, has_plain_body, is_whole};
use super::seam::{ENCODING_UNREADABLE, unreachable_upstream};
use super::unreachable::Unreachable;
use super::{End, Pings};
use crate::answer::{Answer, Ending};
use crate::config::{Config, Protocol};
use crate::error::Error;
use crate::headers::Header;
use crate::ids::Ids;
use crate::model::request_context::RequestContext;
use crate::observe::report::Cause;
use crate::observe::warning::Warnings;
use crate::protocols::{self, Translated};
use crate::text::words::BYTE_ORDER_MARK;
use crate::upstream_error;

/// Maximum number of bytes that are read of an upstream's error body; more would not be shown
/// anyway.
const ERROR_BODY_BYTES_MAX: usize = 256 << 10;

/// Request for an upstream, for the client's answer or a count.
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

/// Call of an upstream, and what has come back of it.
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
    Sent(Box<RequestContext>),
    /// The upstream refuses the request. The body of the error is collected.
    Refused { context: Box<RequestContext>, status: u16, body: Vec<u8> },
    /// The head has come, and it is not known whether the body is one JSON text or a stream.
    Undecided { answer: Box<Answer>, seen: Vec<u8> },
    /// The body is one JSON text, which is collected.
    Whole { answer: Box<Answer>, body: Vec<u8>, ending: Ending },
    /// The body is a stream of events, or was read as a whole.
    Events { answer: Box<Answer> },
    /// The round is over without an answer.
    Over,
}

impl Round {
    pub(super) fn new(
        config: Arc<Config>,
        protocol: Protocol,
        ids: Ids,
        pings: Pings,
        context: Box<RequestContext>,
    ) -> Self {
        let begins_early = pings == Pings::AfterHead;
        Self { config, protocol, ids, begins_early, progress: Progress::Sent(context) }
    }

    fn new_answer(&self, context: Box<RequestContext>) -> Box<Answer> {
        Box::new(protocols::answer(self.protocol, context, &self.config.settings, self.ids))
    }

    pub(super) fn awaits_head(&self) -> bool {
        matches!(self.progress, Progress::Sent(_))
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
            Progress::Sent(context) => Some(context),
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
            Progress::Refused { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Returns the context of a request for which nothing has come but an error.
    pub(super) fn refused_context(&self) -> Option<&RequestContext> {
        match &self.progress {
            Progress::Refused { context, .. } => Some(context),
            Progress::Events { answer } if !answer.has_started() => Some(answer.context()),
            _ => None,
        }
    }

    /// Returns the number of bytes of the upstream's body that are kept in memory.
    pub(super) fn held_bytes(&self) -> usize {
        match &self.progress {
            Progress::Refused { body, .. }
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
        let context = match mem::replace(&mut self.progress, Progress::Over) {
            Progress::Sent(context) => context,
            other => {
                self.progress = other;
                return;
            }
        };
        self.progress = if !has_plain_body(headers) {
            // The request wanted `identity`. The body cannot be read; the status can.
            warnings.add("upstream_encoding");
            let status = if status < 400 { 502 } else { status };
            let message = ENCODING_UNREADABLE;
            let body = format!("{{\"error\":{{\"message\":\"{message}\"}}}}").into_bytes();
            Progress::Refused { context, status, body }
        } else if (200..300).contains(&status) {
            let mut answer = self.new_answer(context);
            if self.begins_early {
                answer.begin_early();
            }
            Progress::Undecided { answer, seen: Vec::new() }
        } else {
            Progress::Refused { context, status, body: Vec::new() }
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
            Progress::Refused { body, .. } => {
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

    /// Returns how many bytes of the body are still read. The beginning of an error tells enough.
    pub(super) fn bytes_left(&self) -> usize {
        let Progress::Refused { body, .. } = &self.progress else { return usize::MAX };
        debug_assert!(body.len() <= ERROR_BODY_BYTES_MAX, "a piece was not cut at the limit");
        ERROR_BODY_BYTES_MAX.saturating_sub(body.len())
    }

    fn check_size(&self, size: usize) -> Result<(), Error> {
        if size > self.config.settings.response_bytes_max {
            return Err(Error::answer_too_large());
        }
        Ok(())
    }

    /// Takes the end of the upstream's body. Returns with the result what ended the answer, if it
    /// failed.
    pub(super) fn handle_end(
        &mut self,
        end: End,
        out: &mut Vec<u8>,
    ) -> (Result<(), Error>, Option<Cause>) {
        match mem::replace(&mut self.progress, Progress::Over) {
            Progress::Sent(_) => {
                (Err(unreachable_upstream(&Unreachable::Closed)), Some(Cause::Unreachable))
            }
            Progress::Over => (Ok(()), None),
            Progress::Refused { context, status, body } => {
                (self.read_refusal(context, status, &body, out), Some(Cause::UpstreamRefused))
            }
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
        }
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
            self.progress = Progress::Refused { context, status, body: Vec::new() };
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
