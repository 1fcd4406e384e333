//! Reader of Responses answers: converts events to content blocks. A whole answer is read like an
//! end event that has the whole content.
//!
//! ```text
//!  event ─▶ slots: item ─▶ said: new part of the text ─▶ content ─▶ assemble ─▶ events
//!       └─▶ summary: model, counts, finish reason
//! ```
//!
//! | step | files (`machine` holds the state of an answer) |
//! |---|---|
//! | events to items and parts | `place`, `slots`, `parts`; `items`: begin and end of an item |
//! | content of items | `said`: texts without repetitions; `thought`; `searches`; `mcp_calls` |
//! | end of the answer | `end` |

mod end;
mod items;
mod machine;
mod mcp_calls;
mod names;
mod others;
mod parts;
mod place;
mod said;
mod searches;
mod slots;
mod thought;

use crate::answer::json::{ObjectKind, ObjectReader, Taken};
use crate::answer::{AnswerReader, AnswerState, ReaderOutput};
use crate::config::Settings;
use crate::error::Error;
use crate::model::request_context::RequestContext;
use crate::protocols::json_answer;
use crate::protocols::responses::wire::{EventKind, EventPattern, Response, Status, WireEvent};
use crate::sse::{self, Called};
use crate::text::words;
use machine::ResponsesMachine;
use place::TextPlace;

/// Creates the reader of a Responses answer.
pub(crate) fn reader(context: &mut RequestContext, settings: &Settings) -> Box<dyn AnswerReader> {
    let ids_used = std::mem::take(&mut context.ids_used);
    let machine = ResponsesMachine::new(context, ids_used);
    json_answer(Box::new(ResponsesReader { machine, pattern: EventPattern::new() }), settings)
}

/// Reader of one Responses answer, streamed or whole.
#[derive(Debug)]
struct ResponsesReader {
    machine: ResponsesMachine,
    /// Last event of the stream, which the next event probably repeats.
    pattern: EventPattern<TextPlace>,
}

impl ResponsesReader {
    /// Handles an event that does not repeat the previous event. `is_inside`: the event was inside
    /// an object that a gateway wrapped around it.
    fn handle_event(
        &mut self,
        called: Called,
        object: &str,
        is_inside: bool,
        to: &mut ReaderOutput<'_>,
    ) -> Result<Taken, Error> {
        let mut event = WireEvent::default();
        let raw = words::trim_object(object);
        if !raw.starts_with('{') || event.fill(raw).is_err() {
            return Ok(Taken::Unread);
        }
        let is_first = !self.machine.has_started();
        if event.has_choices && event.name.is_none() && is_first {
            return Ok(Taken::Other(ObjectKind::Chunks));
        }
        let kind = event.kind(called.name_in_responses());
        if kind == EventKind::Unknown {
            let name = event.name.map(|name| name.decode());
            let name = name.as_deref().or_else(|| called.name()).unwrap_or_default();
            if name == "ping" {
                return Ok(Taken::Yes { says: false });
            }
            if is_first && event.error.is_none() && sse::begins_message(name) {
                return Ok(Taken::Other(ObjectKind::Messages));
            }
            if event.has_output && event.name.is_none() {
                // The event has the whole answer.
                return self.handle_response(raw, to);
            }
            // Only one wrapping object is opened, because each further object would be parsed once
            // more.
            if let Some(inside) = event.inside.filter(|_| !is_inside) {
                return self.handle_event(called, inside, true, to);
            }
        }
        let place = self.machine.handle_event(kind, &event, raw, to)?;
        self.pattern.learn(object, &event, place);
        Ok(Taken::Yes { says: true })
    }

    fn handle_response(&mut self, raw: &str, to: &mut ReaderOutput<'_>) -> Result<Taken, Error> {
        let Ok(response) = Response::read(raw) else {
            return Ok(Taken::Unread);
        };
        self.machine.handle_whole(&response, raw, to)?;
        Ok(Taken::Yes { says: true })
    }
}

impl ObjectReader for ResponsesReader {
    #[inline]
    fn handle_object(
        &mut self,
        called: Called,
        object: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<Taken, Error> {
        if called.is_plain()
            && let Some(repeated) = self.pattern.read(object)
        {
            self.machine.handle_delta(repeated.place, repeated.text, to)?;
            return Ok(Taken::Yes { says: true });
        }
        self.handle_event(called, object, false, to)
    }

    fn handle_body(&mut self, body: &str, to: &mut ReaderOutput<'_>) -> Result<Taken, Error> {
        let Ok(response) = Response::read(body) else {
            return Ok(Taken::Unread);
        };
        if response.has_choices && response.output.is_none() {
            return Ok(Taken::Other(ObjectKind::Chunks));
        }
        if response.is_message {
            return Ok(Taken::Other(ObjectKind::Messages));
        }
        match unwrapped(&response) {
            Some(inside) => self.handle_response(inside, to),
            None => self.handle_response(body, to),
        }
    }

    /// Stores the error of an event with the type `error`. A failed response with more details
    /// often follows.
    fn handle_error(&mut self, data: &str, _to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        self.machine.note_failure(data);
        Ok(())
    }

    /// Handles the stream's `[DONE]` mark like the end of the connection, because the Responses API
    /// does not define the mark.
    fn handle_done(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        self.machine.end(to)
    }

    fn end(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        self.machine.end(to)
    }

    fn has_stopped(&self) -> bool {
        self.machine.has_stopped()
    }

    fn is_whole(&self, body: &str) -> bool {
        let Ok(response) = Response::read(body) else { return false };
        let inside = unwrapped(&response).and_then(|it| Response::read(it).ok());
        let response = inside.unwrap_or(response);
        response.says_something() && response.status != Status::Running
    }

    fn state(&self) -> &dyn AnswerState {
        &self.machine
    }

    fn state_mut(&mut self) -> &mut dyn AnswerState {
        &mut self.machine
    }
}

/// Returns the response inside an object that some gateways wrap around a response. The caller has
/// already applied the limit on nesting depth.
fn unwrapped<'a>(response: &Response<'a>) -> Option<&'a str> {
    if response.says_something() {
        return None;
    }
    let inside = response.inside?;
    Response::read(inside).ok()?.says_something().then_some(inside)
}

#[cfg(test)]
mod tests;
