//! Answers of an upstream that uses the Messages API, by its configuration or because a gateway
//! answers a Chat Completions request this way. A valid answer is forwarded byte for byte, ids
//! included; faults that would confuse clients are repaired.
//!
//! | fault | repair |
//! |---|---|
//! | no `message_start`, `content_block_start`, `content_block_stop` or `message_delta` | added |
//! | no `message_stop` after a `stop_reason` | added; else the answer broke off |
//! | indices that are missing, repeated or not dense | numbered anew |
//! | a block that starts before the previous one stopped | waits, or ends the previous block |
//! | a text, signature or input in the start event | sent once, as a delta; see [`block`] |
//! | no id, model or counts; a duplicate id of a call | generated |
//! | `stop_reason` of Chat Completions, or one that contradicts the blocks | corrected |
//! | unknown event, late delta, second `message_start` before any block | dropped, counted |
//!
//! The repaired events are sent to the client, or folded into the single message that the client
//! requested ([`fold`]). A whole message of the upstream is converted to events ([`whole`]).

mod block;
mod delta;
mod ending;
mod events;
mod fold;
mod member;
mod start_text;
mod stream;
mod tool;
mod whole;

use crate::answer::json::{ObjectKind, ObjectReader, Taken};
use crate::answer::{AnswerState, Ending, ReaderOutput};
use crate::error::Error;
use crate::json::{Reader, ValueKind};
use crate::sse::{self, Called};
use crate::text::says::says_something;
use crate::text::words;
use member::{has, kind, member, text, with};
use stream::MessagesStream;

/// Reader of an answer in the Messages API, for a client of the same API.
#[derive(Debug)]
pub(crate) struct MessagesRelay {
    stream: MessagesStream,
    /// True once the upstream has sent an event of the Messages API.
    has_begun: bool,
}

impl MessagesRelay {
    /// Creates a reader for one answer. `stream`: true if the client gets events.
    pub(crate) fn new(stream: bool) -> Self {
        Self { stream: MessagesStream::new(stream), has_begun: false }
    }
}

impl ObjectReader for MessagesRelay {
    fn handle_object(
        &mut self,
        called: Called,
        object: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<Taken, Error> {
        let object = words::trim_object(object);
        if !Reader::of(object).is_object() {
            return Ok(Taken::Unread);
        }
        // Clients only use the data, but servers exist that name the event only in the `event:`
        // line.
        let named = text(object, "type").map(|kind| kind.decode());
        let name = named.as_deref().or_else(|| called.name()).unwrap_or_default();
        let is_error = is_error(object);
        if !self.has_begun {
            if is_error || has_choices(object) || !(sse::begins_message(name) || name == "ping") {
                return Ok(Taken::Other(ObjectKind::Chunks));
            }
            if name == "ping" {
                return Ok(Taken::Yes { says: true });
            }
            if name == "message" {
                whole::write(object, to)?;
                return Ok(Taken::Yes { says: true });
            }
            self.has_begun = true;
        }
        if is_error {
            to.fail(object)?;
        } else if named.is_some() {
            self.stream.handle_event(to, name, object)?;
        } else {
            let typed = with(object, &[("type", &member::quoted(name))]);
            self.stream.handle_event(to, name, &typed)?;
        }
        Ok(Taken::Yes { says: true })
    }

    fn handle_body(&mut self, body: &str, to: &mut ReaderOutput<'_>) -> Result<Taken, Error> {
        if !Reader::of(body).is_object() {
            return Ok(Taken::Unread);
        }
        if !is_message(body) {
            return Ok(Taken::Other(ObjectKind::Chunks));
        }
        match has(body, "type") {
            true => whole::write(body, to)?,
            false => whole::write(&with(body, &[("type", "\"message\"")]), to)?,
        }
        Ok(Taken::Yes { says: true })
    }

    fn handle_error(&mut self, data: &str, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        match self.has_begun {
            true => Err(to.error_of(data)),
            false => to.fail(data),
        }
    }

    fn handle_done(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        match self.has_begun {
            true if !self.is_complete() => Ok(()),
            true => self.end(to),
            false => Err(Error::answer_empty()),
        }
    }

    fn end(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        self.stream.message_stop(to, None)
    }

    fn has_stopped(&self) -> bool {
        false
    }

    fn is_whole(&self, body: &str) -> bool {
        Reader::of(body).is_whole()
    }

    fn state(&self) -> &dyn AnswerState {
        self
    }

    fn state_mut(&mut self) -> &mut dyn AnswerState {
        self
    }
}

impl AnswerState for MessagesRelay {
    fn is_complete(&self) -> bool {
        self.stream.is_complete()
    }

    fn ending(&self) -> Ending {
        if self.is_complete() { Ending::Sure } else { Ending::Open }
    }

    fn spoken(&self) -> u64 {
        self.stream.pieces()
    }

    fn held_bytes(&self) -> usize {
        self.stream.held_bytes()
    }
}

/// Returns true if an object is a whole message. Servers exist that omit the `type` of a message.
fn is_message(object: &str) -> bool {
    let is_named = match member(object, "type") {
        Some(_) => text(object, "type").is_some_and(|kind| kind == "message"),
        None => {
            !is_error(object) && member(object, "content").and_then(kind) == Some(ValueKind::Array)
        }
    };
    is_named && !has_choices(object)
}

fn is_error(object: &str) -> bool {
    member(object, "error").is_some_and(says_something)
}

/// Returns true if an answer object has a non-empty list `choices`. An empty list or `null` does
/// not count, because some gateways add such a member to every answer.
fn has_choices(object: &str) -> bool {
    member(object, "choices")
        .is_some_and(|choices| !choices.starts_with('"') && choices.contains('{'))
}
