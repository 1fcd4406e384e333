//! What one event says: mostly one chunk, else whatever gateways make of it (see `framing`).

use super::framing::{self, Item};
use super::machine::{INVALID_RESPONSE, Machine, Phase};
use super::messages::{self, Messages};
use super::sse::{Called, Event};
use crate::asked::Asked;
use crate::error::Error;
use crate::openai::Chunk;
use crate::translate::error;
use crate::words;

/// Takes an event. `messages` is there once the upstream has begun to speak the Messages API.
pub(super) fn handle(
    machine: &mut Machine,
    messages: &mut Option<Messages>,
    event: &Event<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let repeats = messages.is_none() && event.called.is_plain();
    if repeats && let Some((choice, delta)) = machine.pattern.read(&event.data) {
        return machine.handle_delta(choice, &delta, out);
    }
    let data = event.data.trim();
    let mut chunk = Chunk::default();
    if data.starts_with('{')
        && event.called != Called::Error
        && chunk.fill(data, machine.rules.depth_max).is_ok()
    {
        handle_chunk(machine, messages, &chunk, event.called, data, out)?;
        if messages.is_none() && event.called.is_plain() {
            machine.pattern.learn(data, &chunk);
        }
        return Ok(());
    }
    if data.starts_with('"')
        && let Some(inside) = framing::unquoted(data)
    {
        let event = Event { data: inside.into(), ..*event };
        return handle(machine, messages, &event, out);
    }
    handle_items(machine, messages, event.called, data, out)
}

/// Takes the data of an event that is not one chunk.
fn handle_items(
    machine: &mut Machine,
    messages: &mut Option<Messages>,
    called: Called,
    data: &str,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let mut rest = data;
    // What stands between objects that say something is no part of the answer. Where there are none,
    // it may be all that the upstream had to say.
    let (mut has_said, mut has_text) = (false, false);
    while let Some(item) = framing::next(&mut rest) {
        if machine.phase.is_final() {
            return Ok(());
        }
        match item {
            Item::Done => {
                drop_text(machine, data, has_text, has_said)?;
                return handle_done(machine, messages, out);
            }
            _ if called == Called::Error => {
                return match messages {
                    Some(_) => Err(error::from_object(data, &machine.asked)),
                    None => machine.fail(data, out),
                };
            }
            Item::SignOfLife => {}
            Item::Object(object) => {
                has_said |= handle_object(machine, messages, called, object, out)?;
            }
            Item::Unreadable(_) if called == Called::Messages("ping") => {}
            Item::Unreadable(text) if text.starts_with('{') => {
                let repaired = framing::repaired(text).unwrap_or_default();
                if Chunk::read(&repaired, machine.rules.depth_max).is_ok() {
                    machine.warnings.add("upstream_json_repaired");
                }
                has_said |= handle_object(machine, messages, called, &repaired, out)?;
            }
            // A note to people, of a kind that clients do not know.
            Item::Unreadable(_) if called == Called::Other => {
                machine.warnings.add("upstream_event_dropped");
            }
            Item::Unreadable(_) => has_text = true,
        }
    }
    // Nothing can be an error of an answer that has ended.
    if machine.phase.is_final() {
        return Ok(());
    }
    drop_text(machine, data, has_text, has_said)
}

/// Takes the end mark.
fn handle_done(
    machine: &mut Machine,
    messages: &mut Option<Messages>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    match messages {
        Some(messages) if messages.is_complete() => messages.message_stop(machine, None, out),
        Some(_) => Ok(()),
        None => machine.end(out),
    }
}

/// Takes one of several objects. Says whether it says something.
fn handle_object(
    machine: &mut Machine,
    messages: &mut Option<Messages>,
    called: Called,
    object: &str,
    out: &mut Vec<u8>,
) -> Result<bool, Error> {
    match Chunk::read(object, machine.rules.depth_max) {
        Ok(chunk) => {
            handle_chunk(machine, messages, &chunk, called, object, out)?;
            Ok(chunk.says_something())
        }
        // Only numbers about the answer are lost.
        Err(_) if machine.is_complete() => {
            machine.warnings.add("upstream_event_dropped");
            Ok(false)
        }
        Err(_) => Err(Error::misbehaved(INVALID_RESPONSE)),
    }
}

/// The error for a text in place of an answer. Plain words say what failed; what looks like a piece of JSON may
/// be a piece of the answer, and is not told.
pub(super) fn unreadable(text: &str, asked: &Asked) -> Error {
    if text.bytes().any(|byte| matches!(byte, b'"' | b'{' | b'}')) {
        return Error::misbehaved(INVALID_RESPONSE);
    }
    error::from_object(text, asked)
}

/// Leaves out what stood beside the objects of an event, if it did.
fn drop_text(
    machine: &mut Machine,
    data: &str,
    has_text: bool,
    has_objects: bool,
) -> Result<(), Error> {
    if has_text && !has_objects && !machine.is_complete() {
        return Err(unreadable(data, &machine.asked));
    }
    if has_text {
        machine.warnings.add("upstream_event_dropped");
    }
    Ok(())
}

/// Takes a chunk, or what has its place in the Messages API. `data`: its text.
fn handle_chunk(
    machine: &mut Machine,
    messages: &mut Option<Messages>,
    chunk: &Chunk<'_>,
    called: Called,
    data: &str,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    // Only the data counts for clients, but some servers name the event in its own line alone.
    let named = chunk.kind.map(|kind| kind.decode());
    let name = named.as_deref().or_else(|| called.name()).unwrap_or_default();
    let is_chunk = chunk.error || !chunk.choices.is_empty();
    let first = (machine.phase == Phase::Start || machine.report.chunks == 0) && !is_chunk;
    if messages.is_some() && !chunk.error || first && messages::begins(name) {
        let messages = messages.get_or_insert_with(|| Messages::new(machine.asked.stream));
        return match named {
            Some(_) => messages.handle_event(machine, name, data, out),
            None => messages.handle_event(machine, name, &messages::with_type(data, name), out),
        };
    }
    if !is_chunk
        && !chunk.says_something()
        && !chunk.well
        && data != "{}"
        && !words::has(data, "\"choices\"")
    {
        // Nothing in it is known. It may be an error in words of its own.
        machine.warnings.add("upstream_event_dropped");
    }
    match name {
        "ping" if !is_chunk => Ok(()),
        "message" if first => messages::write_whole(machine, data, out),
        _ => machine.handle_chunk(chunk, data, out),
    }
}
