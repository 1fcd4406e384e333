//! Round: one upstream call for the client's answer, and the response to the call.

use std::mem;
use std::sync::Arc;

use super::body::{ending_of, first_of, first_of_body, has_plain_body, is_whole};
use super::seam::{CallId, ENCODING_UNREADABLE, unreachable_upstream};
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
use crate::protocols::client::ClientProtocol;
use crate::protocols::{self, AnswerWriter, Translated};
use crate::text::words::BYTE_ORDER_MARK;
use crate::upstream_error;

/// Maximum number of bytes to read of an upstream's error body; more would not be shown anyway.
const ERROR_BODY_BYTES_MAX: usize = 256 << 10;

/// Request to an upstream, for the client's answer or for a token count.
#[derive(Debug)]
pub(super) struct RoundRequest {
    /// Name of the upstream to call, as in the configuration.
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

/// Upstream call for the client's answer, and the state of the response.
#[derive(Debug)]
pub(super) struct Round {
    id: CallId,
    config: Arc<Config>,
    protocol: Protocol,
    client: &'static dyn ClientProtocol,
    ids: Ids,
    /// True if the message to the client begins as soon as the upstream's first choice arrives,
    /// even if that choice has no content.
    begins_early: bool,
    /// Writer of the client's message, until the answer begins.
    writer: Option<Box<dyn AnswerWriter>>,
    progress: RoundProgress,
}

/// Progress of the upstream's response to a call for the client's answer.
#[derive(Debug)]
enum RoundProgress {
    /// State: the request was sent, and no response head has arrived.
    Sent(Box<RequestContext>),
    /// State: the upstream returned an error status, and the error body is being collected.
    Refused { context: Box<RequestContext>, status: u16, body: Vec<u8> },
    /// State: the head arrived, and the format of the body (one JSON text or a stream) is not known
    /// yet.
    Undecided { answer: Box<Answer>, seen: Vec<u8> },
    /// State: the body is one JSON text, which is being collected.
    Whole { answer: Box<Answer>, body: Vec<u8>, ending: Ending },
    /// State: the body is a stream of events, or a JSON text that was read completely.
    Events { answer: Box<Answer> },
    /// State: the call ended without an answer.
    Over,
}

impl Round {
    pub(super) fn new(
        id: CallId,
        config: Arc<Config>,
        (protocol, client): (Protocol, &'static dyn ClientProtocol),
        ids: Ids,
        pings: Pings,
        (context, writer): (Box<RequestContext>, Box<dyn AnswerWriter>),
    ) -> Self {
        let begins_early = pings == Pings::AfterHead;
        let (writer, progress) = (Some(writer), RoundProgress::Sent(context));
        Self { id, config, protocol, client, ids, begins_early, writer, progress }
    }

    /// Returns the writer of the client's message, for the next round.
    pub(super) fn into_writer(self) -> Option<Box<dyn AnswerWriter>> {
        match self.progress {
            RoundProgress::Undecided { answer, .. }
            | RoundProgress::Whole { answer, .. }
            | RoundProgress::Events { answer } => Some(answer.into_writer()),
            _ => self.writer,
        }
    }

    pub(super) fn id(&self) -> CallId {
        self.id
    }

    fn new_answer(&mut self, context: Box<RequestContext>) -> Box<Answer> {
        let new = || self.client.writer(context.stream, self.ids);
        let writer = self.writer.take().unwrap_or_else(new);
        let settings = &self.config.settings;
        Box::new(protocols::answer_of_round(self.protocol, context, settings, (self.ids, writer)))
    }

    pub(super) fn awaits_head(&self) -> bool {
        matches!(self.progress, RoundProgress::Sent(_))
    }

    /// Returns the answer for the client while the answer is translated.
    pub(super) fn answer(&self) -> Option<&Answer> {
        match &self.progress {
            RoundProgress::Undecided { answer, .. }
            | RoundProgress::Whole { answer, .. }
            | RoundProgress::Events { answer } => Some(answer),
            _ => None,
        }
    }

    pub(super) fn answer_mut(&mut self) -> Option<&mut Answer> {
        match &mut self.progress {
            RoundProgress::Undecided { answer, .. }
            | RoundProgress::Whole { answer, .. }
            | RoundProgress::Events { answer } => Some(answer),
            _ => None,
        }
    }

    /// Returns the context of the request, unless the upstream refused the request.
    pub(super) fn context(&self) -> Option<&RequestContext> {
        match &self.progress {
            RoundProgress::Sent(context) => Some(context),
            _ => self.answer().map(Answer::context),
        }
    }

    /// Returns the answer, if the upstream's body is a stream of events or was read completely.
    pub(super) fn events(&self) -> Option<&Answer> {
        let RoundProgress::Events { answer } = &self.progress else { return None };
        Some(answer)
    }

    /// Returns true while a body that is one JSON text is collected.
    pub(super) fn is_collecting(&self) -> bool {
        matches!(self.progress, RoundProgress::Whole { .. })
    }

    /// Returns true if the JSON text collected up to now is still incomplete.
    pub(super) fn lacks_end(&self) -> bool {
        matches!(&self.progress, RoundProgress::Whole { answer, body, .. } if !answer.is_whole(body))
    }

    /// Returns the HTTP status with which the upstream refused the request.
    pub(super) fn refusal_status(&self) -> Option<u16> {
        match self.progress {
            RoundProgress::Refused { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Returns the context of a request to which the upstream returned only an error.
    pub(super) fn refused_context(&self) -> Option<&RequestContext> {
        match &self.progress {
            RoundProgress::Refused { context, .. } => Some(context),
            RoundProgress::Events { answer } if !answer.has_started() => Some(answer.context()),
            _ => None,
        }
    }

    /// Returns true if the client got nothing of the round, and the upstream has not begun a whole
    /// answer, which may be too large.
    pub(super) fn is_blank(&self) -> bool {
        match &self.progress {
            RoundProgress::Events { answer } => !answer.has_started(),
            RoundProgress::Whole { .. } => false,
            _ => true,
        }
    }

    /// Returns the number of bytes of the upstream's body that are kept in memory.
    pub(super) fn held_bytes(&self) -> usize {
        let written = self.writer.as_ref().map_or(0, |writer| writer.held_bytes());
        let answer = self.answer().map_or(written, Answer::held_bytes);
        match &self.progress {
            RoundProgress::Refused { body, .. }
            | RoundProgress::Undecided { seen: body, .. }
            | RoundProgress::Whole { body, .. } => answer.saturating_add(body.len()),
            RoundProgress::Events { .. } | RoundProgress::Sent(_) | RoundProgress::Over => answer,
        }
    }

    /// Returns the amount of content received, the amount without white space, and whether more
    /// content must follow.
    pub(super) fn heard(&self) -> Option<(u64, u64, Ending)> {
        match &self.progress {
            RoundProgress::Events { answer } => {
                Some((answer.report().progress, answer.spoken(), answer.ending()))
            }
            // Every byte of a body that is one JSON text counts as content.
            RoundProgress::Whole { body, ending, .. } => {
                let size = body.len() as u64;
                Some((size, size, *ending))
            }
            _ => None,
        }
    }

    /// Handles the head of the upstream's response.
    pub(super) fn handle_head(&mut self, status: u16, headers: &[Header], warnings: &mut Warnings) {
        let context = match mem::replace(&mut self.progress, RoundProgress::Over) {
            RoundProgress::Sent(context) => context,
            other => {
                self.progress = other;
                return;
            }
        };
        self.progress = if !has_plain_body(headers) {
            // The request accepted only the encoding `identity`. The compressed body cannot be
            // read; the status can.
            warnings.add("upstream_encoding");
            let status = if status < 400 { 502 } else { status };
            let message = ENCODING_UNREADABLE;
            let body = format!("{{\"error\":{{\"message\":\"{message}\"}}}}").into_bytes();
            RoundProgress::Refused { context, status, body }
        } else if (200..300).contains(&status) {
            let mut answer = self.new_answer(context);
            if self.begins_early {
                answer.begin_early();
            }
            RoundProgress::Undecided { answer, seen: Vec::new() }
        } else {
            RoundProgress::Refused { context, status, body: Vec::new() }
        };
    }

    /// Handles a piece of the upstream's body, and appends the bytes for the client to `out`.
    pub(super) fn handle_piece(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        match &mut self.progress {
            RoundProgress::Events { answer } => answer.handle_piece(piece, out),
            RoundProgress::Whole { body, ending, .. } => {
                *ending = ending_of(piece).unwrap_or(*ending);
                body.extend_from_slice(piece);
                let size = body.len();
                self.check_size(size)
            }
            RoundProgress::Undecided { seen, .. } => {
                let known = seen.len();
                seen.extend_from_slice(piece);
                // White space can go on for long, so known white space is not scanned again.
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
            RoundProgress::Refused { body, .. } => {
                body.extend_from_slice(piece);
                Ok(())
            }
            RoundProgress::Sent(_) | RoundProgress::Over => Ok(()),
        }
    }

    /// Chooses the body's format by the first byte. Content types lie: servers send streams as
    /// text/plain, and errors and whole answers as text/event-stream.
    fn decide(&mut self, first: u8, out: &mut Vec<u8>) -> Result<(), Error> {
        let RoundProgress::Undecided { mut answer, seen } =
            mem::replace(&mut self.progress, RoundProgress::Over)
        else {
            return Ok(());
        };
        if is_whole(first) {
            let size = seen.len();
            let ending = ending_of(&seen).unwrap_or(Ending::Open);
            self.progress = RoundProgress::Whole { answer, body: seen, ending };
            return self.check_size(size);
        }
        let result = answer.handle_piece(&seen, out);
        self.progress = RoundProgress::Events { answer };
        result
    }

    /// Returns the maximum number of further body bytes to read. The beginning of an error body is
    /// enough.
    pub(super) fn bytes_left(&self) -> usize {
        let RoundProgress::Refused { body, .. } = &self.progress else { return usize::MAX };
        debug_assert!(body.len() <= ERROR_BODY_BYTES_MAX, "a piece was not cut at the limit");
        ERROR_BODY_BYTES_MAX.saturating_sub(body.len())
    }

    fn check_size(&self, size: usize) -> Result<(), Error> {
        if size > self.config.settings.response_bytes_max {
            return Err(Error::answer_too_large());
        }
        Ok(())
    }

    /// Handles the end of the upstream's body. Returns the result of the call and, for a failed
    /// answer, the cause of the failure.
    pub(super) fn handle_end(
        &mut self,
        end: End,
        out: &mut Vec<u8>,
    ) -> (Result<(), Error>, Option<Cause>) {
        match mem::replace(&mut self.progress, RoundProgress::Over) {
            RoundProgress::Sent(_) => {
                (Err(unreachable_upstream(&Unreachable::Closed)), Some(Cause::Unreachable))
            }
            RoundProgress::Over => (Ok(()), None),
            RoundProgress::Refused { context, status, body } => {
                (self.read_refusal(context, status, &body, out), Some(Cause::UpstreamRefused))
            }
            RoundProgress::Undecided { mut answer, seen } => {
                let result = match end {
                    End::Complete if first_of_body(&seen).is_none() => Err(Error::answer_empty()),
                    _ => answer.handle_end(out),
                };
                self.progress = RoundProgress::Events { answer };
                (result, Some(Cause::UpstreamBrokeOff))
            }
            RoundProgress::Whole { mut answer, body, .. } => {
                let result = if end == End::Complete || answer.is_whole(&body) {
                    answer.handle_whole(&body, out)
                } else {
                    answer.handle_end(out)
                };
                self.progress = RoundProgress::Events { answer };
                (result, (end == End::Aborted).then_some(Cause::UpstreamBrokeOff))
            }
            RoundProgress::Events { mut answer } => {
                if end == End::Aborted {
                    answer.break_off();
                }
                let result = answer.handle_end(out);
                self.progress = RoundProgress::Events { answer };
                (result, Some(Cause::UpstreamBrokeOff))
            }
        }
    }

    /// Reads the error body of a refusal. Some refusals, for example by a content filter, become an
    /// answer with a `stop_reason`.
    fn read_refusal(
        &mut self,
        mut context: Box<RequestContext>,
        status: u16,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let error = upstream_error::from_upstream(status, body, &context);
        let Some(stop_reason) = upstream_error::stop_reason(status, &error) else {
            self.progress = RoundProgress::Refused { context, status, body: Vec::new() };
            return Err(error);
        };
        // The upstream did not count the prompt's tokens.
        context.input_tokens = 0;
        let mut answer = self.new_answer(context);
        answer.write_own("", stop_reason, out);
        self.progress = RoundProgress::Events { answer };
        Ok(())
    }
}
