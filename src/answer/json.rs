//! Reader of answers in JSON: one object as a whole, or objects in server-sent events, in whatever
//! framing gateways use (see `sse::framing`).
//!
//! The objects go to the reader of one protocol. If they belong to another protocol, because a
//! gateway answers in a different protocol than requested, a reader of that protocol replaces the
//! first.

use std::fmt::Debug;

use super::output::{INVALID_RESPONSE, ReaderOutput};
use super::reader::{AnswerReader, AnswerState};
use super::writer::WriterPhase;
use crate::error::Error;
use crate::json::Reader;
use crate::sse::framing::{self, Payload};
use crate::sse::{Called, Decoder, SseEvent};
use crate::text::words;
use crate::upstream_error as error;

/// Reader of the JSON objects of one protocol.
pub(crate) trait ObjectReader: Debug + Send + Sync {
    /// Handles a JSON object of an event stream.
    ///
    /// # Errors
    /// The text is an error of the upstream, or an invalid response.
    fn handle_object(
        &mut self,
        called: Called,
        text: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<Taken, Error>;

    /// Handles a whole answer in JSON.
    ///
    /// # Errors
    /// The text is an error of the upstream, or an invalid response.
    fn handle_body(&mut self, text: &str, to: &mut ReaderOutput<'_>) -> Result<Taken, Error>;

    /// Handles the data of an event with the name `error`.
    ///
    /// # Errors
    /// The upstream's error, unless it stands for an answer without content.
    fn handle_error(&mut self, text: &str, to: &mut ReaderOutput<'_>) -> Result<(), Error>;

    /// Handles the end mark of the stream (`[DONE]`).
    ///
    /// # Errors
    /// The answer is not complete.
    fn handle_done(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error>;

    /// Ends the answer, which is complete, and writes all content that is still held.
    ///
    /// # Errors
    /// The answer is invalid.
    fn end(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error>;

    /// Returns true if the upstream sent a finish reason, and nothing in the answer contradicts it.
    fn has_stopped(&self) -> bool;

    /// Returns true if the body holds a complete answer; see [`AnswerReader::is_whole`].
    fn is_whole(&self, body: &str) -> bool;

    /// Returns the state of the answer.
    fn state(&self) -> &dyn AnswerState;

    /// Returns the state of the answer, to record events that are not in the body, such as a lost
    /// connection.
    fn state_mut(&mut self) -> &mut dyn AnswerState;
}

/// Protocol that the objects of an answer belong to, if it is not the expected protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    /// Chunks of Chat Completions.
    Chunks,
    /// Events or a message of the Messages API.
    Messages,
}

/// Result of handling a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Object that was handled.
    Yes {
        /// True if the object had content of the answer.
        says: bool,
    },
    /// Text that is not a complete JSON object.
    Unread,
    /// Object of another protocol, which was not handled.
    Other(ObjectKind),
}

/// Function that creates the reader for JSON objects of a protocol.
pub(crate) type Make = fn(ObjectKind, &ReaderOutput<'_>) -> Box<dyn ObjectReader>;

/// Reader of an answer in JSON, of any protocol.
#[derive(Debug)]
pub(crate) struct JsonAnswer {
    decoder: Decoder,
    objects: ObjectSource,
}

/// Reader of an answer's JSON objects, and the function that creates the reader of another
/// protocol.
#[derive(Debug)]
struct ObjectSource {
    reader: Box<dyn ObjectReader>,
    make: Make,
}

/// Reason why an event could not be handled.
enum Broken {
    /// Object that cannot be parsed, perhaps because the end of the previous object is missing.
    Unreadable,
    /// Error that the upstream reports, or invalid object.
    Wrong(Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Wrong(error)
    }
}

impl Broken {
    fn into_error(self) -> Error {
        match self {
            Self::Unreadable => Error::misbehaved(INVALID_RESPONSE),
            Self::Wrong(error) => error,
        }
    }
}

impl JsonAnswer {
    /// Creates the reader of an answer. Events of more than `event_bytes_max` bytes cause an error.
    pub(crate) fn new(reader: Box<dyn ObjectReader>, make: Make, event_bytes_max: usize) -> Self {
        Self { decoder: Decoder::new(event_bytes_max), objects: ObjectSource { reader, make } }
    }

    fn read_whole(&mut self, body: &str, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        let body = words::bare(body);
        if self.objects.handle_body(body, to)? { Ok(()) } else { self.handle_several(body, to) }
    }

    /// Handles a body that is not one JSON object, although it begins like one. Examples are an
    /// error in an array (Google), objects in lines, an array of chunks, and JSON that needs
    /// repair.
    fn handle_several(&mut self, body: &str, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        if let Some(inside) = framing::unquoted(body) {
            // The body is a JSON string: the answer was serialised twice.
            return self.read_whole(&inside, to);
        }
        let mut rest = body;
        let first = framing::next(&mut rest);
        let alone = framing::next(&mut rest).is_none();
        match first {
            // Single object in brackets. The object is shorter than the body, so the recursion
            // ends.
            Some(Payload::Object(object)) if alone && object.len() < body.len() => {
                self.read_whole(object, to)
            }
            Some(Payload::Object(text) | Payload::Unreadable(text))
                if !alone && text.starts_with('{') =>
            {
                let event = SseEvent { data: body.into(), ..SseEvent::default() };
                self.objects.handle_event(&event, to).map_err(Broken::into_error)?;
                self.handle_end(to)
            }
            Some(Payload::Unreadable(text)) => match framing::repaired(text) {
                Some(text) if Reader::of(&text).skip().is_ok() => {
                    to.warn("upstream_json_repaired");
                    self.read_whole(&text, to)
                }
                _ => Err(unreadable(body, to)),
            },
            _ => Err(Error::misbehaved(INVALID_RESPONSE)),
        }
    }
}

impl AnswerReader for JsonAnswer {
    fn handle_piece(&mut self, piece: &[u8], to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        let mut rest = piece;
        while to.phase() != WriterPhase::Ended {
            let Some(event) = self.decoder.next(&mut rest)? else { break };
            self.objects.handle_event(&event, to).map_err(Broken::into_error)?;
        }
        Ok(())
    }

    fn handle_whole(&mut self, body: &[u8], to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        self.read_whole(&words::lossy(body), to)
    }

    /// Ends the stream. The answer is complete if it has a finish reason, or if token counts came
    /// last. The way in which the connection ended matters only for other answers, and for servers
    /// that send a finish reason with each chunk.
    fn handle_end(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        while to.phase() != WriterPhase::Ended {
            let Some(event) = self.decoder.finish() else { break };
            let is_object = event.data.starts_with('{');
            match self.objects.handle_event(&event, to) {
                // The object was cut off when the connection ended.
                Err(Broken::Unreadable) if is_object => {
                    self.objects.reader.state_mut().break_off();
                    break;
                }
                handled => handled.map_err(Broken::into_error)?,
            }
        }
        if to.phase() == WriterPhase::Ended {
            Ok(())
        } else if self.state().is_complete() {
            self.objects.reader.end(to)
        } else if to.report.chunks == 0 && self.decoder.has_junk() {
            // Body of plain text, or of bytes that cannot be read.
            Err(unreadable(&self.decoder.junk(), to))
        } else {
            Err(Error::answer_broke_off())
        }
    }

    fn is_whole(&self, body: &[u8]) -> bool {
        let body = words::lossy(body);
        let body = words::bare(&body);
        match body.starts_with('{') {
            true => self.objects.reader.is_whole(body),
            // A list of errors or of all chunks, or an answer that was serialised twice.
            false => body.starts_with(['[', '"']) && Reader::of(body).is_whole(),
        }
    }

    fn held_bytes(&self) -> usize {
        self.decoder.held_bytes().saturating_add(self.state().held_bytes())
    }

    fn state(&self) -> &dyn AnswerState {
        self.objects.reader.state()
    }

    fn state_mut(&mut self) -> &mut dyn AnswerState {
        self.objects.reader.state_mut()
    }
}

impl ObjectSource {
    fn handle_event(
        &mut self,
        event: &SseEvent<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Broken> {
        if event.called != Called::Error
            && self.handle_object(event.called, &event.data, to)?.is_some()
        {
            return Ok(());
        }
        let data = event.data.trim();
        if data.starts_with('"')
            && let Some(inside) = framing::unquoted(data)
        {
            return self.handle_event(&SseEvent { data: inside.into(), ..*event }, to);
        }
        self.handle_items(event.called, data, to)
    }

    /// Handles a JSON object of the answer. Returns true if the object had content, and `None` if
    /// the object cannot be parsed.
    #[inline]
    fn handle_object(
        &mut self,
        called: Called,
        text: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<Option<bool>, Error> {
        let mut taken = self.reader.handle_object(called, text, to)?;
        if let Taken::Other(kind) = taken {
            self.reader = (self.make)(kind, to);
            taken = self.reader.handle_object(called, text, to)?;
        }
        Ok(says(taken))
    }

    /// Handles the whole body of an answer. Returns true if the body could be parsed.
    fn handle_body(&mut self, body: &str, to: &mut ReaderOutput<'_>) -> Result<bool, Error> {
        let mut taken = self.reader.handle_body(body, to)?;
        // A reader recognizes bodies of other protocols only roughly, so the second reader may hand
        // a body back to the first. Two changes of the reader are allowed.
        for _ in 0..2 {
            let Taken::Other(kind) = taken else { break };
            self.reader = (self.make)(kind, to);
            taken = self.reader.handle_body(body, to)?;
        }
        Ok(says(taken).is_some())
    }

    /// Handles the data of an event that is not one object.
    fn handle_items(
        &mut self,
        called: Called,
        data: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Broken> {
        let mut rest = data;
        // Text beside objects with content is dropped. Text alone may be an error in plain words.
        let (mut has_objects, mut has_text) = (false, false);
        while let Some(item) = framing::next(&mut rest) {
            if to.phase() == WriterPhase::Ended {
                return Ok(());
            }
            match item {
                Payload::Done => {
                    self.drop_text(data, has_text, has_objects, to)?;
                    return Ok(self.reader.handle_done(to)?);
                }
                _ if called == Called::Error => return Ok(self.reader.handle_error(data, to)?),
                Payload::SignOfLife => {}
                Payload::Object(object) => has_objects |= self.handle_item(called, object, to)?,
                Payload::Unreadable(_) if called == Called::Messages("ping") => {}
                Payload::Unreadable(text) if text.starts_with('{') => {
                    let repaired = framing::repaired(text).unwrap_or_default();
                    if Reader::of(&repaired).is_object() {
                        to.warn("upstream_json_repaired");
                    }
                    has_objects |= self.handle_item(called, &repaired, to)?;
                }
                // Note to people, in an event of a kind that clients do not know.
                Payload::Unreadable(_)
                    if matches!(called, Called::Other | Called::Responses(_)) =>
                {
                    to.warn("upstream_event_dropped");
                }
                Payload::Unreadable(_) => has_text = true,
            }
        }
        // Text behind the end of an answer is no error.
        if to.phase() == WriterPhase::Ended {
            return Ok(());
        }
        Ok(self.drop_text(data, has_text, has_objects, to)?)
    }

    /// Handles one of several JSON objects in an event. Returns true if the object had content.
    fn handle_item(
        &mut self,
        called: Called,
        object: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<bool, Broken> {
        match self.handle_object(called, object, to)? {
            Some(says) => Ok(says),
            // An unreadable object behind the finish reason loses only token counts and the like.
            None if self.reader.has_stopped() => {
                to.warn("upstream_event_dropped");
                Ok(false)
            }
            None => Err(Broken::Unreadable),
        }
    }

    /// Drops the text beside the objects of an event, or returns an error if the event has only
    /// text.
    fn drop_text(
        &self,
        data: &str,
        has_text: bool,
        has_objects: bool,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        if has_text && !has_objects && !self.reader.has_stopped() {
            return Err(unreadable(data, to));
        }
        if has_text {
            to.warn("upstream_event_dropped");
        }
        Ok(())
    }
}

fn says(taken: Taken) -> Option<bool> {
    match taken {
        Taken::Yes { says } => Some(says),
        // An object that neither protocol's reader accepts cannot be read.
        Taken::Unread | Taken::Other(_) => None,
    }
}

/// Returns the error for text in place of an answer. Plain text is quoted, since it tells what
/// failed. Text that looks like JSON may be a part of the answer, and is not quoted; nor are bytes
/// that are no text.
fn unreadable(text: &str, to: &ReaderOutput<'_>) -> Error {
    // Programs colour their messages with escape sequences, so ESC counts as plain text.
    let is_plain = |it: char| !it.is_control() || it.is_whitespace() || it == '\u{1b}';
    let is_binary = |it: char| it == char::REPLACEMENT_CHARACTER || !is_plain(it);
    if !error::is_page(text) && text.contains(|it| matches!(it, '"' | '{' | '}') || is_binary(it)) {
        return Error::misbehaved(INVALID_RESPONSE);
    }
    to.error_of(text)
}
