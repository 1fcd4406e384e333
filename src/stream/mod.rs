//! The answer half: what an upstream sends, to what a Messages client expects.
//!
//! ```text
//!  pieces ─▶ sse ─▶ openai::Chunk ─▶ machine ─▶ queue of blocks ─▶ pump ─▶ sink ─▶ bytes
//!  whole body ──────────┘  (one chunk)                                     events, or one message
//! ```
//!
//! | step | files |
//! |---|---|
//! | bytes to chunks | `sse`: lines and events; `framing`: what gateways make of them; `event`: what each one is |
//! | chunks to blocks | `machine`; `choices`: which are one answer; `text` and `echo`; `reasoning` and `thinking`; `call`, `tool_names`, and `tool_input`; `snapshots`: messages in place of deltas |
//! | text that is more than text | `half_call`; `text_filter` with `inline_think` |
//! | how it ends | `end`; `outcome`, `finish`; `stop_reason`: why; `counts`: of tokens |
//! | blocks to the client | `queue`, `pump`, `sink`; `frame`: what stands around the blocks; `sent`: what the client has seen |
//! | upstreams that speak Messages | `messages`; what both ways read and note is in `record` |
//! | silence | `watchdog` |
//!
//! There is one machine for all four cases: a stream or a whole body comes in, a stream or a whole
//! message goes out. So a stream adds up to the message that the same answer gives without one, a
//! server that ignores `stream` does no harm, and a rule is written once.
//!
//! The bytes that go out depend on the bytes that come in, never on how they were cut.

pub(crate) mod call;
pub(crate) mod choices;
pub(crate) mod counts;
pub(crate) mod echo;
pub(crate) mod end;
pub(crate) mod event;
pub(crate) mod finish;
pub(crate) mod frame;
#[cfg(any(test, feature = "fuzz"))]
#[allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::panic)]
pub mod fuzz;
pub(crate) mod half_call;
pub(crate) mod inline_think;
pub(crate) mod machine;
pub(crate) mod messages;
pub(crate) mod outcome;
pub(crate) mod progress;
pub(crate) mod pump;
pub(crate) mod queue;
pub(crate) mod reasoning;
pub(crate) mod record;
pub(crate) mod rules;
pub(crate) mod sink;
pub(crate) mod snapshots;
pub(crate) mod stop_reason;
pub(crate) mod text;
pub(crate) mod text_filter;
pub(crate) mod thinking;
pub(crate) mod tool_input;
pub(crate) mod tool_names;
pub mod watchdog;

use std::borrow::Cow;

use crate::config::Settings;
use crate::error::Error;
use crate::ids::Ids;
use crate::json::{self, DEPTH_LIMIT, Reader};
use crate::model::request_context::RequestContext;
use crate::observe::report::AnswerReport;
use crate::observe::warning::Warnings;
use crate::protocols::chat::wire::{Choice, Chunk};
use crate::sse::Event;
use crate::sse::framing::Payload;
use crate::sse::{self, framing};
use crate::text::words;
use crate::tokens::tokens_of;
use counts::Counts;
use event::Broken;
use machine::Machine;
use messages::MessagesStream;
use progress::Phase;
use record::INVALID_RESPONSE;
pub(crate) use sink::PING;
use watchdog::Ending;

/// One answer, while it is translated.
///
/// After an error, and after the end, it writes nothing more.
#[derive(Debug)]
pub struct Answer {
    machine: Machine,
    decoder: sse::Decoder,
    /// The upstream speaks the Messages API.
    messages: Option<MessagesStream>,
}

impl Answer {
    /// Starts an answer.
    #[must_use]
    pub fn new(context: Box<RequestContext>, settings: &Settings, ids: Ids) -> Self {
        Self {
            machine: Machine::new(context, settings, ids),
            decoder: sse::Decoder::new(settings.event_bytes_max),
            messages: None,
        }
    }

    /// The message begins with the first choice, even if that only names a role: the host cannot begin it in silence.
    pub fn begin_early(&mut self) {
        self.machine.begins_early = true;
    }

    /// Whether the client gets events (or one message).
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.machine.record.context.stream
    }

    /// What was asked for.
    #[must_use]
    pub(crate) fn context(&self) -> &RequestContext {
        &self.machine.record.context
    }

    /// Whether `message_start` was written.
    #[must_use]
    pub fn has_started(&self) -> bool {
        matches!(self.machine.record.progress.phase(), Phase::Open | Phase::Ended)
    }

    /// Whether the end was written.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.machine.record.progress.is_final()
    }

    /// The upstream's connection did not end as it should, or there is nothing more to be waited for.
    pub fn break_off(&mut self) {
        self.machine.outcome.finish.broken = true;
    }

    /// Whether the answer can be over, now that its connection is.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match &self.messages {
            Some(messages) => messages.is_complete(),
            None => {
                (self.machine.is_complete() || self.machine.is_totalled())
                    && !self.machine.has_half_call()
            }
        }
    }

    /// Whether nothing of the answer need follow.
    #[must_use]
    pub fn ending(&self) -> Ending {
        match &self.messages {
            Some(messages) if messages.is_complete() => Ending::Sure,
            Some(_) => Ending::Open,
            None => self.machine.ending(),
        }
    }

    /// The client is told that a message begins, though nothing of it is known yet.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if self.messages.is_none() {
            self.machine.start(out);
        }
    }

    /// Bytes of the answer that are kept in memory.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let messages = self.messages.as_ref().map_or(0, MessagesStream::held_bytes);
        let machine = self.machine.held_bytes();
        self.decoder.held_bytes().saturating_add(machine).saturating_add(messages)
    }

    /// Counts.
    #[must_use]
    pub fn report(&self) -> &AnswerReport {
        &self.machine.record.report
    }

    /// How much has come that is more than white space: a model that writes line ends for ever does not get on. Of
    /// an upstream that speaks Messages everything counts, because it may send empty pieces while it thinks.
    #[must_use]
    pub fn spoken(&self) -> u64 {
        match &self.messages {
            Some(_) => self.machine.record.report.progress,
            None => self.machine.telling_pieces,
        }
    }

    /// Warnings.
    #[must_use]
    pub fn warnings(&self) -> &Warnings {
        &self.machine.record.warnings
    }

    /// A piece of an event stream, cut anywhere.
    ///
    /// # Errors
    /// The upstream reports an error, or sends what cannot be understood.
    pub fn handle_piece(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let mut rest = piece;
        let mut result = Ok(());
        while result.is_ok() && !self.machine.record.progress.is_final() {
            result = match self.decoder.next(&mut rest) {
                Ok(None) => break,
                Ok(Some(event)) => {
                    event::handle(&mut self.machine, &mut self.messages, &event, out)
                        .map_err(Broken::into_error)
                }
                Err(error) => Err(error),
            };
        }
        self.settle(result)
    }

    /// A whole JSON body.
    ///
    /// # Errors
    /// The upstream reports an error, or sends what cannot be understood.
    pub fn handle_whole(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let before = out.len();
        let result = self.read_whole(body, out);
        if result.is_err() {
            // All that was written of it was written just now: nobody has seen it.
            out.truncate(before);
            self.machine.record.progress.take_back();
        }
        result
    }

    fn read_whole(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        if self.machine.record.progress.is_final() {
            return Ok(());
        }
        let body = text_of(body);
        let body = words::bare(&body);
        let result = match Chunk::read(body, self.machine.record.rules.depth_max) {
            Err(_) => return self.handle_several(body, out),
            Ok(chunk) if is_message(&chunk, body) => match chunk.kind {
                Some(_) => messages::write_whole(&mut self.machine.record, body, out),
                None => {
                    let message = messages::with_type(body, "message");
                    messages::write_whole(&mut self.machine.record, &message, out)
                }
            },
            Ok(chunk) => match unwrapped(body, &chunk) {
                Some((inside, chunk)) => self.machine.handle_whole(&chunk, inside, out),
                None => self.machine.handle_whole(&chunk, body, out),
            },
        };
        self.settle(result)
    }

    /// A body that is not one JSON object, although it begins like one: an error in an array
    /// (Google), objects in lines, an array of chunks, JSON that needs repair.
    fn handle_several(&mut self, body: &str, out: &mut Vec<u8>) -> Result<(), Error> {
        if let Some(inside) = framing::unquoted(body) {
            // Serialised twice.
            return self.handle_whole(inside.as_bytes(), out);
        }
        let mut rest = body;
        let first = framing::next(&mut rest);
        let alone = framing::next(&mut rest).is_none();
        match first {
            // Nothing but brackets around it. (The same text again would be nested too deeply.)
            Some(Payload::Object(object)) if alone && object.len() < body.len() => {
                self.read_whole(object.as_bytes(), out)
            }
            Some(Payload::Object(text) | Payload::Unreadable(text))
                if !alone && text.starts_with('{') =>
            {
                let event = Event { data: body.into(), ..Event::default() };
                let result = event::handle(&mut self.machine, &mut self.messages, &event, out);
                self.settle(result.map_err(Broken::into_error))?;
                self.handle_end(out)
            }
            Some(Payload::Unreadable(text)) => match framing::repaired(text) {
                Some(text) if Reader::of(&text).skip().is_ok() => {
                    self.machine.record.warnings.add("upstream_json_repaired");
                    self.read_whole(text.as_bytes(), out)
                }
                _ => self.settle(Err(event::unreadable(body, &self.machine.record.context))),
            },
            _ => self.settle(Err(Error::misbehaved(INVALID_RESPONSE))),
        }
    }

    /// The body is over. With a finish reason the answer is complete, and without one it is not, unless its counts
    /// came last; how the connection ended matters only for those, and for servers that say one with each chunk
    /// ([`Answer::break_off`]).
    ///
    /// # Errors
    /// It ended before the answer did.
    pub fn handle_end(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.machine.record.progress.is_final() {
            return Ok(());
        }
        let mut result = Ok(());
        while result.is_ok() && !self.machine.record.progress.is_final() {
            result = match self.decoder.finish() {
                Some(event) => {
                    let is_object = event.data.starts_with('{');
                    match event::handle(&mut self.machine, &mut self.messages, &event, out) {
                        // It was cut off with its connection.
                        Err(Broken::Unreadable) if is_object => {
                            self.break_off();
                            break;
                        }
                        handled => handled.map_err(Broken::into_error),
                    }
                }
                None => break,
            };
        }
        if result.is_ok() && !self.machine.record.progress.is_final() {
            let is_complete = self.is_complete();
            result = match &mut self.messages {
                Some(messages) if is_complete => {
                    messages.message_stop(&mut self.machine.record, None, out)
                }
                None if is_complete => self.machine.end(out),
                // Plain text, or bytes that nothing here can read.
                None if self.machine.record.report.chunks == 0 && self.decoder.has_junk() => {
                    Err(event::unreadable(&self.decoder.junk(), &self.machine.record.context))
                }
                _ => Err(Error::answer_broke_off()),
            };
        }
        self.settle(result)
    }

    /// An answer of Creole's own: one text block (none if empty) and a stop reason.
    pub fn write_own(&mut self, text: &str, stop_reason: &'static str, out: &mut Vec<u8>) {
        let machine = &mut self.machine;
        if machine.record.progress.phase() != Phase::Start {
            return;
        }
        machine.start(out);
        if !text.is_empty() {
            machine.send_text(&text::escaped(text), out);
        }
        let counts = Counts {
            input: machine.record.context.input_tokens,
            output: tokens_of(text.len() as u64),
            ..Counts::default()
        };
        machine.stop(stop_reason, None, &counts, out);
    }

    /// Notes an error.
    fn settle(&mut self, result: Result<(), Error>) -> Result<(), Error> {
        if result.is_err() {
            self.machine.record.progress.fail();
        }
        result
    }
}

/// Whether a whole body is a message of the Messages API. Some servers leave its type out; their streams name their
/// events elsewhere.
fn is_message(chunk: &Chunk<'_>, body: &str) -> bool {
    chunk.choices.is_empty()
        && match chunk.kind {
            Some(kind) => kind == "message",
            None => {
                !chunk.error
                    && !chunk.failed
                    && json::member(body, "content").is_some_and(|it| it.starts_with('['))
            }
        }
}

/// The answer in an object that some gateways put around it, to which the limit of depth has been applied.
fn unwrapped<'a>(body: &'a str, chunk: &Chunk<'a>) -> Option<(&'a str, Chunk<'a>)> {
    if !chunk.choices.is_empty() || chunk.error || chunk.failed {
        return None;
    }
    ["data", "result"].iter().find_map(|name| {
        let inside = json::member(body, name)?;
        let answer = Chunk::read(inside, DEPTH_LIMIT).ok()?;
        let counts = if chunk.complains {
            answer.choices.iter().any(Choice::answers)
        } else {
            !answer.choices.is_empty()
        };
        counts.then_some((inside, answer))
    })
}

/// Whether nothing of an answer in one JSON text is missing, however its connection ended. A chunk that does
/// not say why the model stopped may be the first of several.
pub fn is_whole(body: &[u8]) -> bool {
    let body = text_of(body);
    let body = words::bare(&body);
    match Chunk::read(body, DEPTH_LIMIT) {
        Ok(chunk) => {
            let chunk = unwrapped(body, &chunk).map_or(chunk, |(_, answer)| answer);
            chunk.says_something()
                && chunk.choices.iter().all(|it| it.message.is_some() || it.finish_reason.is_some())
        }
        // A list of errors or of all chunks, or an answer that was serialised twice.
        Err(_) => body.starts_with(['[', '"']) && Reader::of(body).is_whole(),
    }
}

/// The text of bytes from an upstream. Nearly all are UTF-8, and to check that is several times
/// faster than to replace what is not.
pub(crate) fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}
