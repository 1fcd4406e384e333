//! What one event says: mostly one chunk, else whatever gateways make of it (see `framing`).

use super::machine::Machine;
use super::messages::{self, MessagesStream};
use super::progress::Phase;
use super::record::INVALID_RESPONSE;
use crate::error::Error;
use crate::model::request_context::RequestContext;
use crate::protocols::chat::wire::Chunk;
use crate::sse::framing::{self, Payload};
use crate::sse::{Called, Event};
use crate::text::words;
use crate::upstream_error as error;

/// Takes an event. `messages` is there once the upstream has begun to speak the Messages API.
pub(super) fn handle(
    machine: &mut Machine,
    messages: &mut Option<MessagesStream>,
    event: &Event<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Broken> {
    Receiver { machine, messages, out }.handle(event)
}

/// Why an event could not be taken.
pub(super) enum Broken {
    /// An object in it cannot be read: the rest of the last one may be missing.
    Unreadable,
    /// The upstream reports an error, or what it says makes no sense.
    Wrong(Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Wrong(error)
    }
}

impl Broken {
    /// What the client is told of it.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Unreadable => Error::misbehaved(INVALID_RESPONSE),
            Self::Wrong(error) => error,
        }
    }
}

/// What takes an event.
struct Receiver<'a> {
    machine: &'a mut Machine,
    messages: &'a mut Option<MessagesStream>,
    out: &'a mut Vec<u8>,
}

impl Receiver<'_> {
    fn handle(&mut self, event: &Event<'_>) -> Result<(), Broken> {
        let repeats = self.messages.is_none() && event.called.is_plain();
        if repeats && let Some((choice, delta)) = self.machine.pattern.read(&event.data) {
            return Ok(self.machine.handle_delta(choice, &delta, self.out)?);
        }
        let data = event.data.trim();
        let mut chunk = Chunk::default();
        if data.starts_with('{')
            && event.called != Called::Error
            && chunk.fill(data, self.machine.record.rules.depth_max).is_ok()
        {
            self.handle_chunk(&chunk, event.called, data)?;
            // A pattern says what is new in a chunk.
            let is_new = !self.machine.record.context.profile.cumulative_text;
            if is_new && self.messages.is_none() && event.called.is_plain() {
                self.machine.pattern.learn(data, &chunk);
            }
            return Ok(());
        }
        if data.starts_with('"')
            && let Some(inside) = framing::unquoted(data)
        {
            return self.handle(&Event { data: inside.into(), ..*event });
        }
        self.handle_items(event.called, data)
    }

    /// Takes the data of an event that is not one chunk.
    fn handle_items(&mut self, called: Called, data: &str) -> Result<(), Broken> {
        let mut rest = data;
        // Text beside objects that say something is dropped. Alone it may be an error in plain words.
        let (mut has_objects, mut has_text) = (false, false);
        while let Some(item) = framing::next(&mut rest) {
            if self.machine.record.progress.is_final() {
                return Ok(());
            }
            match item {
                Payload::Done => {
                    self.drop_text(data, has_text, has_objects)?;
                    return Ok(self.handle_done()?);
                }
                _ if called == Called::Error => {
                    return match self.messages {
                        Some(_) => {
                            Err(error::from_object(data, &self.machine.record.context).into())
                        }
                        None => Ok(self.machine.fail(data, self.out)?),
                    };
                }
                Payload::SignOfLife => {}
                Payload::Object(object) => has_objects |= self.handle_object(called, object)?,
                Payload::Unreadable(_) if called == Called::Messages("ping") => {}
                Payload::Unreadable(text) if text.starts_with('{') => {
                    let repaired = framing::repaired(text).unwrap_or_default();
                    if Chunk::read(&repaired, self.machine.record.rules.depth_max).is_ok() {
                        self.machine.record.warnings.add("upstream_json_repaired");
                    }
                    has_objects |= self.handle_object(called, &repaired)?;
                }
                // A note to people, of a kind that clients do not know.
                Payload::Unreadable(_) if called == Called::Other => {
                    self.machine.record.warnings.add("upstream_event_dropped");
                }
                Payload::Unreadable(_) => has_text = true,
            }
        }
        // Nothing can be an error of an answer that has ended.
        if self.machine.record.progress.is_final() {
            return Ok(());
        }
        Ok(self.drop_text(data, has_text, has_objects)?)
    }

    /// Takes the end mark.
    fn handle_done(&mut self) -> Result<(), Error> {
        match self.messages {
            Some(messages) if messages.is_complete() => {
                messages.message_stop(&mut self.machine.record, None, self.out)
            }
            Some(_) => Ok(()),
            None => self.machine.end(self.out),
        }
    }

    /// Takes one of several objects. Says whether it says something.
    fn handle_object(&mut self, called: Called, object: &str) -> Result<bool, Broken> {
        match Chunk::read(object, self.machine.record.rules.depth_max) {
            Ok(chunk) => {
                self.handle_chunk(&chunk, called, object)?;
                Ok(chunk.says_something())
            }
            // Only numbers about the answer are lost.
            Err(_) if self.machine.is_complete() => {
                self.machine.record.warnings.add("upstream_event_dropped");
                Ok(false)
            }
            Err(_) => Err(Broken::Unreadable),
        }
    }

    /// Leaves out what stood beside the objects of an event, if it did.
    fn drop_text(&mut self, data: &str, has_text: bool, has_objects: bool) -> Result<(), Error> {
        if has_text && !has_objects && !self.machine.is_complete() {
            return Err(unreadable(data, &self.machine.record.context));
        }
        if has_text {
            self.machine.record.warnings.add("upstream_event_dropped");
        }
        Ok(())
    }

    /// Takes a chunk, or what has its place in the Messages API. `data`: its text.
    fn handle_chunk(&mut self, chunk: &Chunk<'_>, called: Called, data: &str) -> Result<(), Error> {
        let Self { machine, messages, out } = self;
        // Only the data counts for clients, but some servers name the event in its own line alone.
        let named = chunk.kind.map(|kind| kind.decode());
        let name = named.as_deref().or_else(|| called.name()).unwrap_or_default();
        let is_chunk = chunk.error || !chunk.choices.is_empty();
        let first = (machine.record.progress.phase() == Phase::Start
            || machine.record.report.chunks == 0)
            && !is_chunk;
        if messages.is_some() && !chunk.error || first && messages::begins(name) {
            let messages =
                messages.get_or_insert_with(|| MessagesStream::new(machine.record.context.stream));
            return match named {
                Some(_) => messages.handle_event(&mut machine.record, name, data, out),
                None => messages.handle_event(
                    &mut machine.record,
                    name,
                    &messages::with_type(data, name),
                    out,
                ),
            };
        }
        if !is_chunk
            && !chunk.says_something()
            && !chunk.well
            && data != "{}"
            && !words::has(data, "\"choices\"")
        {
            // Nothing in it is known. It may be an error in words of its own.
            machine.record.warnings.add("upstream_event_dropped");
        }
        match name {
            "ping" if !is_chunk => Ok(()),
            "message" if first => messages::write_whole(&mut machine.record, data, out),
            _ => machine.handle_chunk(chunk, data, out),
        }
    }
}

/// The error for a text in place of an answer. Plain words say what failed; what looks like a piece of JSON may
/// be a piece of the answer, and is not told, nor are bytes that are no text.
pub(super) fn unreadable(text: &str, context: &RequestContext) -> Error {
    // Programs colour what they say with escapes.
    let is_plain = |it: char| !it.is_control() || it.is_whitespace() || it == '\u{1b}';
    let is_binary = |it: char| it == char::REPLACEMENT_CHARACTER || !is_plain(it);
    if text.contains(|it| matches!(it, '"' | '{' | '}') || is_binary(it)) {
        return Error::misbehaved(INVALID_RESPONSE);
    }
    error::from_object(text, context)
}
