//! One event of a stream.

use super::kind::EventKind;
use super::{error, filled, list, object, text};
use crate::json::{Error, Reader, Str, ValueKind};
use crate::model::usage::number;

/// One event of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Event<'a> {
    /// `type`
    pub(crate) name: Option<Str<'a>>,
    /// The place of the item in the answer.
    pub(crate) output_index: Option<u64>,
    /// The place of the part in the item.
    pub(crate) content_index: Option<u64>,
    /// The place of the part in the summary.
    pub(crate) summary_index: Option<u64>,
    /// The name of the item.
    pub(crate) item_id: Option<Str<'a>>,
    /// More of a text.
    pub(crate) delta: Option<Str<'a>>,
    /// All of a text: `text`, `refusal`, `arguments` or `input`.
    pub(crate) full: Option<Str<'a>>,
    /// `arguments` that are no text.
    pub(crate) full_json: Option<&'a str>,
    /// A part of an item.
    pub(crate) part: Option<&'a str>,
    /// An item.
    pub(crate) item: Option<&'a str>,
    /// A response.
    pub(crate) response: Option<&'a str>,
    /// A source of a text.
    pub(crate) annotation: Option<&'a str>,
    /// `sequence_number`, as it was written.
    pub(crate) sequence: Option<&'a str>,
    /// Random letters, by which the sizes of events say nothing.
    pub(crate) obfuscation: Option<Str<'a>>,
    /// `error`, if it says something.
    pub(crate) error: Option<&'a str>,
    /// There is a member by which gateways tell what failed.
    pub(crate) complains: bool,
    /// An object in which the event may be.
    pub(crate) inside: Option<&'a str>,
    /// `choices`: it is a chunk of Chat Completions.
    pub(crate) has_choices: bool,
    /// `output`: it is a response.
    pub(crate) has_output: bool,
    /// A member that is none of these: something is said that a repetition of this event need not say.
    pub(crate) has_more: bool,
}

impl<'a> Event<'a> {
    /// Reads an object into this empty event.
    ///
    /// # Errors
    /// `text` is not a JSON object.
    // Long: a branch for each member, in one pass over the bytes of an event.
    pub(crate) fn fill(&mut self, raw: &'a str, depth_max: u32) -> Result<(), Error> {
        let mut reader = Reader::new(raw, depth_max);
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
                    self.has_more = true;
                    reader.skip()?;
                }
            }
        }
        reader.end()
    }

    /// What it says. `called`: its name outside of its data.
    pub(crate) fn kind(&self, called: Option<&str>) -> EventKind {
        match self.name {
            Some(name) if name.is_escaped() => EventKind::of(&name.decode()),
            Some(name) => EventKind::of(name.raw()),
            None => called.map_or(EventKind::Unknown, EventKind::of),
        }
    }
}
