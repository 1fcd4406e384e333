//! Reader of one event of a Responses stream.

use super::kind::EventKind;
use super::{error, filled, list, object, text};
use crate::json::{Error, Reader, Str, ValueKind};
use crate::model::usage::number;

/// Event of a stream: the members of all event types, each set if the event has it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Event<'a> {
    /// Type of the event: `type`.
    pub(crate) name: Option<Str<'a>>,
    /// Place of the item in the answer.
    pub(crate) output_index: Option<u64>,
    /// Place of the part in the item.
    pub(crate) content_index: Option<u64>,
    /// Place of the part in the summary.
    pub(crate) summary_index: Option<u64>,
    /// Id of the item.
    pub(crate) item_id: Option<Str<'a>>,
    /// Next piece of a text.
    pub(crate) delta: Option<Str<'a>>,
    /// Whole text: `text`, `refusal`, `arguments` or `input`.
    pub(crate) full: Option<Str<'a>>,
    /// Value of `arguments` where it is an object in place of a text.
    pub(crate) full_json: Option<&'a str>,
    /// Object of a part of an item.
    pub(crate) part: Option<&'a str>,
    /// Object of an item.
    pub(crate) item: Option<&'a str>,
    /// Object of a response.
    pub(crate) response: Option<&'a str>,
    /// Object of a source of a text.
    pub(crate) annotation: Option<&'a str>,
    /// `sequence_number`, as it was written.
    pub(crate) sequence: Option<&'a str>,
    /// Random letters that hide the length of a text, so that the size of the event does not tell
    /// it.
    pub(crate) obfuscation: Option<Str<'a>>,
    /// Value of `error`, if it says something.
    pub(crate) error: Option<&'a str>,
    /// True if there is a member by which gateways tell what failed: `message`, `detail`, `code` or
    /// `errors`.
    pub(crate) complains: bool,
    /// Object that a gateway may have put around the event: `data`, `event` or `payload`.
    pub(crate) inside: Option<&'a str>,
    /// True if there is a list `choices`: the event is a chunk of Chat Completions.
    pub(crate) has_choices: bool,
    /// True if there is a list `output`: the event is a response.
    pub(crate) has_output: bool,
}

impl<'a> Event<'a> {
    /// Reads an object into this empty event.
    ///
    /// # Errors
    /// `text` is not a JSON object.
    // Long: a branch for each member, in one pass over the bytes of an event.
    pub(crate) fn fill(&mut self, raw: &'a str) -> Result<(), Error> {
        let mut reader = Reader::of(raw);
        let reader = &mut reader;
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            match key.raw() {
                "type" => self.name = filled(reader)?,
                "sequence_number" => {
                    let is_number = reader.kind()? == ValueKind::Number;
                    let raw = reader.skip()?;
                    self.sequence = is_number.then_some(raw);
                }
                "output_index" => self.output_index = number(reader)?,
                "content_index" => self.content_index = number(reader)?,
                "summary_index" => self.summary_index = number(reader)?,
                "item_id" => self.item_id = filled(reader)?,
                "delta" => self.delta = text(reader)?,
                "logprobs" => drop(reader.skip()?),
                "obfuscation" => self.obfuscation = reader.string_or_skip()?,
                "text" | "refusal" | "input" => self.full = text(reader)?,
                "arguments" => match reader.kind()? {
                    ValueKind::Object => self.full_json = object(reader)?,
                    _ => self.full = text(reader)?,
                },
                "part" => self.part = object(reader)?,
                "item" => self.item = object(reader)?,
                "response" => self.response = object(reader)?,
                "annotation" => self.annotation = object(reader)?,
                "error" => self.error = error(reader)?,
                "message" | "detail" | "code" | "errors" => {
                    self.complains |= error(reader)?.is_some();
                }
                "data" | "event" | "payload" => {
                    let inside = object(reader)?;
                    self.inside = self.inside.or(inside);
                }
                "choices" => self.has_choices |= list(reader)?.is_some(),
                "output" => self.has_output |= list(reader)?.is_some(),
                _ => {
                    reader.skip()?;
                }
            }
        }
        reader.end()
    }

    /// Returns the kind of the event. `called`: name of the event outside of its data, used where
    /// the data has no `type`.
    pub(crate) fn kind(&self, called: Option<&str>) -> EventKind {
        match self.name {
            Some(name) if name.is_escaped() => EventKind::of(&name.decode()),
            Some(name) => EventKind::of(name.raw()),
            None => called.map_or(EventKind::Unknown, EventKind::of),
        }
    }
}
