//! Parser of one event of a Responses stream.

use super::kind::EventKind;
use super::{error, filled, list, object, text};
use crate::json::{Error, Reader, Str, ValueKind};
use crate::model::usage::number;

/// Event of a stream: the members of all event types, each set if the event has the member.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WireEvent<'a> {
    /// Value of `type`: the type of the event.
    pub(crate) name: Option<Str<'a>>,
    /// Index of the item in the answer.
    pub(crate) output_index: Option<u64>,
    /// Index of the part in the content of the item.
    pub(crate) content_index: Option<u64>,
    /// Value of `summary_index`: index of the part in the summary of a reasoning item.
    pub(crate) summary_index: Option<u64>,
    /// Value of `item_id`: id of the item that the event belongs to.
    pub(crate) item_id: Option<Str<'a>>,
    /// Value of `delta`: the next piece of a text.
    pub(crate) delta: Option<Str<'a>>,
    /// Whole text: `text`, `refusal`, `arguments` or `input`.
    pub(crate) full: Option<Str<'a>>,
    /// Value of `arguments`, if the value is an object instead of a string.
    pub(crate) full_json: Option<&'a str>,
    /// Value of `part`: JSON object of a part of an item.
    pub(crate) part: Option<&'a str>,
    /// Value of `item`: JSON object of an output item.
    pub(crate) item: Option<&'a str>,
    /// Value of `response`: JSON object of a response.
    pub(crate) response: Option<&'a str>,
    /// Value of `annotation`: JSON object with a source of the text.
    pub(crate) annotation: Option<&'a str>,
    /// Value of `sequence_number`, the number of the event, as received.
    pub(crate) sequence: Option<&'a str>,
    /// Random letters with which servers hide the length of a text. The size of the event then does
    /// not reveal the length.
    pub(crate) obfuscation: Option<Str<'a>>,
    /// Raw JSON of `error`, if not empty.
    pub(crate) error: Option<&'a str>,
    /// True if the event has a non-empty member in which gateways report failures: `message`,
    /// `detail`, `code` or `errors`.
    pub(crate) complains: bool,
    /// Object in which a gateway may have wrapped the event: `data`, `event` or `payload`.
    pub(crate) inside: Option<&'a str>,
    /// True if the event has a list `choices`, and is therefore a chunk of Chat Completions.
    pub(crate) has_choices: bool,
    /// True if the event has a list `output`, and is therefore a response.
    pub(crate) has_output: bool,
}

impl<'a> WireEvent<'a> {
    /// Parses a JSON object into this empty event.
    ///
    /// # Errors
    /// Fails if `raw` is not a JSON object.
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

    /// Returns the kind of the event. `called`: the event's name outside of the data, used if the
    /// data has no `type`.
    pub(crate) fn kind(&self, called: Option<&str>) -> EventKind {
        match self.name {
            Some(name) if name.is_escaped() => EventKind::of(&name.decode()),
            Some(name) => EventKind::of(name.raw()),
            None => called.map_or(EventKind::Unknown, EventKind::of),
        }
    }
}
