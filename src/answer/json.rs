//! Answers in JSON: one object as a whole, or objects in server-sent events, in whatever frames
//! gateways put them (see `sse::framing`).
//!
//! The objects go to the reader of one protocol. Where that finds that they are of another one,
//! because a gateway answers in another protocol than it was asked in, a reader of that takes its
//! place.

use std::fmt::Debug;

use super::output::{INVALID_RESPONSE, Output};
use super::reader::{AnswerReader, AnswerState};
use super::writer::Phase;
use crate::error::Error;
use crate::json::Reader;
use crate::sse::framing::{self, Payload};
use crate::sse::{Called, Decoder, Event};
use crate::text::words;
use crate::upstream_error as error;

/// Reads the objects of one protocol.
pub(crate) trait ObjectReader: Debug + Send + Sync {
    /// Takes an object of a stream.
    ///
    /// # Errors
    /// It is an error, or makes no sense.
    fn handle_object(
        &mut self,
        called: Called,
        text: &str,
        to: &mut Output<'_>,
    ) -> Result<Taken, Error>;

    /// Takes a whole answer.
    ///
    /// # Errors
    /// It is an error, or makes no sense.
    fn handle_body(&mut self, text: &str, to: &mut Output<'_>) -> Result<Taken, Error>;

    /// Takes the data of an event that is called an error.
    ///
    /// # Errors
    /// It is no answer.
    fn handle_error(&mut self, text: &str, to: &mut Output<'_>) -> Result<(), Error>;

    /// Takes the end mark.
    ///
    /// # Errors
    /// The answer is not complete.
    fn handle_done(&mut self, to: &mut Output<'_>) -> Result<(), Error>;

    /// Ends the answer, which is complete: writes the rest of it.
    ///
    /// # Errors
    /// It makes no sense.
    fn end(&mut self, to: &mut Output<'_>) -> Result<(), Error>;

    /// Returns true if the upstream has said why it stopped, and nothing speaks against it.
    fn has_stopped(&self) -> bool;

    /// Returns true if nothing is missing of the body; see [`AnswerReader::is_whole`].
    fn is_whole(&self, body: &str) -> bool;

    /// Returns the state of the answer.
    fn state(&self) -> &dyn AnswerState;

    /// Returns the state of the answer, to be told events that no body says, such as a lost
    /// connection.
    fn state_mut(&mut self) -> &mut dyn AnswerState;
}

/// Protocol of the objects of an answer, where a reader recognizes those of another protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    /// Chunks of Chat Completions.
    Chunks,
    /// Events or a message of the Messages API.
    Messages,
}

/// Result of handling an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The object was taken. `says`: there was something in it.
    Yes {
        /// True if there was something in the object.
        says: bool,
    },
    /// The text is no object that can be read.
    Unread,
    /// The object belongs to another protocol, and nothing was done with it.
    Other(ObjectKind),
}

/// Function that makes the reader of objects of this kind.
pub(crate) type Make = fn(ObjectKind, &Output<'_>) -> Box<dyn ObjectReader>;

/// Reader of an answer in JSON.
#[derive(Debug)]
pub(crate) struct JsonAnswer {
    decoder: Decoder,
    objects: Objects,
}

/// Reader of the objects, and the function that makes the reader of another protocol.
#[derive(Debug)]
struct Objects {
    reader: Box<dyn ObjectReader>,
    make: Make,
}

/// Reason why an event could not be taken.
enum Broken {
    /// An object in the event cannot be read: the rest of the last one may be missing.
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
    fn into_error(self) -> Error {
        match self {
            Self::Unreadable => Error::misbehaved(INVALID_RESPONSE),
            Self::Wrong(error) => error,
        }
    }
}

impl JsonAnswer {
    /// Creates the reader of an answer. Events of more than `event_bytes_max` bytes are an error.
    pub(crate) fn new(reader: Box<dyn ObjectReader>, make: Make, event_bytes_max: usize) -> Self {
        Self { decoder: Decoder::new(event_bytes_max), objects: Objects { reader, make } }
    }

    fn read_whole(&mut self, body: &str, to: &mut Output<'_>) -> Result<(), Error> {
        let body = words::bare(body);
        if self.objects.handle_body(body, to)? { Ok(()) } else { self.handle_several(body, to) }
    }

    /// Takes a body that is not one JSON object, although it begins like one: an error in an array
    /// (Google), objects in lines, an array of chunks, JSON that needs repair.
    fn handle_several(&mut self, body: &str, to: &mut Output<'_>) -> Result<(), Error> {
        if let Some(inside) = framing::unquoted(body) {
            // Serialised twice.
            return self.read_whole(&inside, to);
        }
        let mut rest = body;
        let first = framing::next(&mut rest);
        let alone = framing::next(&mut rest).is_none();
        match first {
            // Nothing but brackets around it. (The same text again would be nested too deeply.)
            Some(Payload::Object(object)) if alone && object.len() < body.len() => {
                self.read_whole(object, to)
            }
            Some(Payload::Object(text) | Payload::Unreadable(text))
                if !alone && text.starts_with('{') =>
            {
                let event = Event { data: body.into(), ..Event::default() };
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
    fn handle_piece(&mut self, piece: &[u8], to: &mut Output<'_>) -> Result<(), Error> {
        let mut rest = piece;
        while to.phase() != Phase::Ended {
            let Some(event) = self.decoder.next(&mut rest)? else { break };
            self.objects.handle_event(&event, to).map_err(Broken::into_error)?;
        }
        Ok(())
    }

    fn handle_whole(&mut self, body: &[u8], to: &mut Output<'_>) -> Result<(), Error> {
        self.read_whole(&words::lossy(body), to)
    }

    /// Ends the stream. With a finish reason the answer is complete. Without one it is not, unless
    /// its counts came last. How the connection ended matters only for such answers, and for
    /// servers that send a finish reason with each chunk.
    fn handle_end(&mut self, to: &mut Output<'_>) -> Result<(), Error> {
        while to.phase() != Phase::Ended {
            let Some(event) = self.decoder.finish() else { break };
            let is_object = event.data.starts_with('{');
            match self.objects.handle_event(&event, to) {
                // It was cut off with its connection.
                Err(Broken::Unreadable) if is_object => {
                    self.objects.reader.state_mut().break_off();
                    break;
                }
                handled => handled.map_err(Broken::into_error)?,
            }
        }
        if to.phase() == Phase::Ended {
            Ok(())
        } else if self.state().is_complete() {
            self.objects.reader.end(to)
        } else if to.report.chunks == 0 && self.decoder.has_junk() {
            // Plain text, or bytes that nothing here can read.
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

impl Objects {
    fn handle_event(&mut self, event: &Event<'_>, to: &mut Output<'_>) -> Result<(), Broken> {
        if event.called != Called::Error
            && self.handle_object(event.called, &event.data, to)?.is_some()
        {
            return Ok(());
        }
        let data = event.data.trim();
        if data.starts_with('"')
            && let Some(inside) = framing::unquoted(data)
        {
            return self.handle_event(&Event { data: inside.into(), ..*event }, to);
        }
        self.handle_items(event.called, data, to)
    }

    /// Takes an object. Returns true if there was something in it, and `None` if it cannot be read.
    #[inline]
    fn handle_object(
        &mut self,
        called: Called,
        text: &str,
        to: &mut Output<'_>,
    ) -> Result<Option<bool>, Error> {
        let mut taken = self.reader.handle_object(called, text, to)?;
        if let Taken::Other(kind) = taken {
            self.reader = (self.make)(kind, to);
            taken = self.reader.handle_object(called, text, to)?;
        }
        Ok(says(taken))
    }

    /// Takes a whole body. Returns true if it was taken.
    fn handle_body(&mut self, body: &str, to: &mut Output<'_>) -> Result<bool, Error> {
        let mut taken = self.reader.handle_body(body, to)?;
        // A message may look like an answer of the other protocol to a reader that looks at it from
        // outside.
        for _ in 0..2 {
            let Taken::Other(kind) = taken else { break };
            self.reader = (self.make)(kind, to);
            taken = self.reader.handle_body(body, to)?;
        }
        Ok(says(taken).is_some())
    }

    /// Takes the data of an event that is not one object.
    fn handle_items(
        &mut self,
        called: Called,
        data: &str,
        to: &mut Output<'_>,
    ) -> Result<(), Broken> {
        let mut rest = data;
        // Text beside objects that say something is dropped. Alone it may be an error in plain
        // words.
        let (mut has_objects, mut has_text) = (false, false);
        while let Some(item) = framing::next(&mut rest) {
            if to.phase() == Phase::Ended {
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
                // A note to people, of a kind that clients do not know.
                Payload::Unreadable(_)
                    if matches!(called, Called::Other | Called::Responses(_)) =>
                {
                    to.warn("upstream_event_dropped");
                }
                Payload::Unreadable(_) => has_text = true,
            }
        }
        // Nothing can be an error of an answer that has ended.
        if to.phase() == Phase::Ended {
            return Ok(());
        }
        Ok(self.drop_text(data, has_text, has_objects, to)?)
    }

    /// Takes one of several objects. Returns true if there was something in it.
    fn handle_item(
        &mut self,
        called: Called,
        object: &str,
        to: &mut Output<'_>,
    ) -> Result<bool, Broken> {
        match self.handle_object(called, object, to)? {
            Some(says) => Ok(says),
            // Only numbers about the answer are lost.
            None if self.reader.has_stopped() => {
                to.warn("upstream_event_dropped");
                Ok(false)
            }
            None => Err(Broken::Unreadable),
        }
    }

    /// Drops the text beside the objects of an event, or returns an error if there was only text.
    fn drop_text(
        &self,
        data: &str,
        has_text: bool,
        has_objects: bool,
        to: &mut Output<'_>,
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
        // What neither reader takes for its own cannot be read.
        Taken::Unread | Taken::Other(_) => None,
    }
}

/// Returns the error for a text in place of an answer. Plain words say what failed, and are told.
/// What looks like JSON may be a piece of the answer, and is not told, nor are bytes that are no
/// text.
fn unreadable(text: &str, to: &Output<'_>) -> Error {
    // Programs colour what they say with escapes.
    let is_plain = |it: char| !it.is_control() || it.is_whitespace() || it == '\u{1b}';
    let is_binary = |it: char| it == char::REPLACEMENT_CHARACTER || !is_plain(it);
    if !error::is_page(text) && text.contains(|it| matches!(it, '"' | '{' | '}') || is_binary(it)) {
        return Error::misbehaved(INVALID_RESPONSE);
    }
    to.error_of(text)
}
