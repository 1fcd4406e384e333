//! Reads Chat Completions answers: converts chunks to content blocks. A whole answer is handled as
//! one chunk with all content, followed by the end.
//!
//! ```text
//!  chunk ─▶ choices: parts of one answer ─▶ content: text, reasoning, calls ─▶ assemble ─▶ events
//!       └─▶ summary: model, counts, finish reason
//! ```
//!
//! | step | files (`machine` holds the state of an answer) |
//! |---|---|
//! | chunks to content | `choices`; `snapshots`: messages, not deltas; `content`; `reasoning` |
//! | fragments to calls | `calls`; `fragment`: search for a fragment's call by `known` facts |
//! | end of the answer | `finish`; `early_failure` |

mod calls;
mod choices;
mod content;
mod early_failure;
mod finish;
mod fragment;
mod known;
mod machine;
mod reasoning;
mod snapshots;

use crate::answer::json::{ObjectKind, ObjectReader, Taken};
use crate::answer::{AnswerState, ReaderOutput};
use crate::error::Error;
use crate::json;
use crate::model::request_context::RequestContext;
use crate::protocols::chat::wire::{Choice, Chunk, ChunkPattern};
use crate::sse::{self, Called};
use crate::text::names::NameSet;
use crate::text::words;
use machine::ChatMachine;

/// Reader of one Chat Completions answer, streamed or whole.
#[derive(Debug)]
pub(crate) struct ChatReader {
    machine: ChatMachine,
    /// Last chunk of the stream, which the next chunk probably repeats.
    pattern: ChunkPattern,
}

impl ChatReader {
    /// Creates the reader of a new answer. `ids_used`: the call ids in the client's history.
    pub(crate) fn new(context: &RequestContext, ids_used: NameSet<'static>) -> Self {
        Self { machine: ChatMachine::new(context, ids_used), pattern: ChunkPattern::default() }
    }
}

impl ObjectReader for ChatReader {
    fn handle_object(
        &mut self,
        called: Called,
        object: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<Taken, Error> {
        let is_plain = called.is_plain();
        if is_plain && let Some((choice, delta)) = self.pattern.read(object) {
            self.machine.handle_delta(choice, &delta, to)?;
            return Ok(Taken::Yes { says: true });
        }
        let object = words::trim_object(object);
        let mut chunk = Chunk::default();
        if !object.starts_with('{') || chunk.fill(object).is_err() {
            return Ok(Taken::Unread);
        }
        // Clients use only the data, but some servers name the event only in the `event:` line.
        let named = chunk.kind.map(|kind| kind.decode());
        let name = named.as_deref().or_else(|| called.name()).unwrap_or_default();
        let is_chunk = chunk.error || !chunk.choices.is_empty();
        let is_first = !self.machine.has_started() || to.report.chunks == 0;
        if is_first && !is_chunk && sse::begins_message(name) {
            return Ok(Taken::Other(ObjectKind::Messages));
        }
        let says = chunk.says_something();
        if !is_chunk && !says && !chunk.well && object != "{}" && !words::has(object, "\"choices\"")
        {
            // The event has no known member, and may be an error in an unknown form.
            to.warn("upstream_event_dropped");
        }
        if name != "ping" || is_chunk {
            self.machine.handle_chunk(&chunk, object, to)?;
        }
        // A pattern finds only the new text of a chunk, and not the whole text so far.
        if is_plain && !to.context.profile.cumulative_text {
            self.pattern.learn(object, &chunk);
        }
        Ok(Taken::Yes { says })
    }

    fn handle_body(&mut self, body: &str, to: &mut ReaderOutput<'_>) -> Result<Taken, Error> {
        let Ok(chunk) = Chunk::read(body) else { return Ok(Taken::Unread) };
        if is_message(&chunk, body) {
            return Ok(Taken::Other(ObjectKind::Messages));
        }
        match unwrapped(body, &chunk) {
            Some((inside, chunk)) => self.machine.handle_whole(&chunk, inside, to)?,
            None => self.machine.handle_whole(&chunk, body, to)?,
        }
        Ok(Taken::Yes { says: true })
    }

    fn handle_error(&mut self, data: &str, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        self.machine.fail(data, to)
    }

    fn handle_done(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        self.machine.end_answer(to)
    }

    fn end(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        self.machine.end_answer(to)
    }

    fn has_stopped(&self) -> bool {
        self.machine.has_stopped()
    }

    /// Returns true if each choice of `body` has a message or a finish reason. A chunk without
    /// either may be the first of several chunks.
    fn is_whole(&self, body: &str) -> bool {
        let Ok(chunk) = Chunk::read(body) else { return false };
        let chunk = unwrapped(body, &chunk).map_or(chunk, |(_, answer)| answer);
        let is_over = |it: &Choice<'_>| it.message.is_some() || it.finish_reason.is_some();
        chunk.says_something() && chunk.choices.iter().all(is_over)
    }

    fn state(&self) -> &dyn AnswerState {
        &self.machine
    }

    fn state_mut(&mut self) -> &mut dyn AnswerState {
        &mut self.machine
    }
}

/// Returns true if a whole body is a message of the Messages API. Some servers leave out `type`;
/// streams of such servers show the format in their events.
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

/// Returns the answer inside `data` or `result`, which some gateways wrap around an answer. The
/// limit on nesting depth was already applied to the body.
fn unwrapped<'a>(body: &'a str, chunk: &Chunk<'a>) -> Option<(&'a str, Chunk<'a>)> {
    if !chunk.choices.is_empty() || chunk.error || chunk.failed {
        return None;
    }
    ["data", "result"].iter().find_map(|name| {
        let inside = json::member(body, name)?;
        let answer = Chunk::read(inside).ok()?;
        let counts = if chunk.complains {
            answer.choices.iter().any(Choice::answers)
        } else {
            !answer.choices.is_empty()
        };
        counts.then_some((inside, answer))
    })
}
