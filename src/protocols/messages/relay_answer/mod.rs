//! An upstream that speaks the Messages API, because the configuration says so or because a gateway
//! answers so though it was asked in Chat Completions. Nothing is translated: a right answer goes
//! on byte for byte, ids included, and what clients would stumble over is repaired.
//!
//! | found | done |
//! |---|---|
//! | no `message_start`, `content_block_start` of a text, `content_block_stop`, `message_delta` | it is added |
//! | no `message_stop` after a `stop_reason` | it is added; without a `stop_reason` the answer broke off |
//! | indices that are missing, repeated or not dense | counted anew |
//! | a block that starts before the one before it stopped | it waits, unless that one can end here |
//! | a text, signature or input at the start of its block | it is sent once, as a delta; see [`block`] |
//! | no id, model or counts; a call's id twice | they are made up |
//! | `stop_reason` in words of Chat Completions, or one that does not fit the blocks | corrected |
//! | another event, a late delta, a second `message_start` before any block | dropped and counted |
//!
//! The repaired events go to the client, or into the one message that it asked for ([`fold`]); a
//! whole message of the upstream is read as the events that it stands for ([`whole`]).

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
use crate::answer::{AnswerState, Ending, Output};
use crate::error::Error;
use crate::json::{Reader, ValueKind};
use crate::sse::{self, Called};
use crate::text::says::says_something;
use crate::text::words;
use member::{has, kind, member, text, with};
use stream::MessagesStream;

/// Reads an answer in Messages for a client of Messages.
#[derive(Debug)]
pub(crate) struct MessagesRelay {
    stream: MessagesStream,
    /// The upstream has begun to speak Messages.
    has_begun: bool,
}

impl MessagesRelay {
    /// Makes a reader for one answer. `stream`: the client gets events.
    pub(crate) fn new(stream: bool) -> Self {
        Self { stream: MessagesStream::new(stream), has_begun: false }
    }
}

impl ObjectReader for MessagesRelay {
    fn handle_object(
        &mut self,
        called: Called,
        object: &str,
        to: &mut Output<'_>,
    ) -> Result<Taken, Error> {
        let object = words::trim_object(object);
        if !Reader::of(object).is_object() {
            return Ok(Taken::Unread);
        }
        // Only the data counts for clients, but some servers name the event in its own line alone.
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

    fn handle_body(&mut self, body: &str, to: &mut Output<'_>) -> Result<Taken, Error> {
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

    fn handle_error(&mut self, data: &str, to: &mut Output<'_>) -> Result<(), Error> {
        match self.has_begun {
            true => Err(to.error_of(data)),
            false => to.fail(data),
        }
    }

    fn handle_done(&mut self, to: &mut Output<'_>) -> Result<(), Error> {
        match self.has_begun {
            true if !self.is_complete() => Ok(()),
            true => self.end(to),
            false => Err(Error::answer_empty()),
        }
    }

    fn end(&mut self, to: &mut Output<'_>) -> Result<(), Error> {
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

/// Whether an object is a whole message. Some servers leave its type out; their streams name their
/// events elsewhere.
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

/// Returns true if an object has choices. An empty list and `null` are members of a fixed form that
/// some gateways give every answer.
fn has_choices(object: &str) -> bool {
    member(object, "choices")
        .is_some_and(|choices| !choices.starts_with('"') && choices.contains('{'))
}
