//! State machine of a Responses answer: assigns events to items, and adds the items to the content
//! in order.
//!
//! Texts, reasoning and calls are forwarded as soon as they are received. An item ends with its
//! `done` event, with the first content of another item, or with the answer.

use super::names::EventNames;
use super::others::Others;
use super::parts::Coming;
use super::place::{TextPlace, kind_of, of_part, part_kind};
use super::said::News;
use super::slots::{Slot, Slots};
use crate::answer::{AnswerState, Ending, ReaderOutput, WriterPhase};
use crate::content::{Content, is_kept};
use crate::error::Error;
use crate::json::Str;
use crate::model::request_context::RequestContext;
use crate::protocols::responses::wire::{
    EventKind, Item, ItemPart, Of, PartKind, Response, WireEvent,
};
use crate::text::names::NameSet;

/// Placeholder for the JSON of an error when the upstream reports a failure without an error.
pub(super) const UNTOLD: &str = "{}";

/// State of one answer that is being read.
#[derive(Debug)]
pub(super) struct ResponsesMachine {
    content: Content,
    slots: Slots,
    /// Position in `slots` of the output item whose text was received last.
    text_slot: Option<usize>,
    /// Position in `slots` of the reasoning item that is open.
    thought_slot: Option<usize>,
    /// Error that was received. The error is kept until a final event gives more details, or the
    /// stream ends.
    failure: Option<String>,
    others: Others,
    /// Number of MCP tool calls that the upstream made itself.
    mcp_calls: u32,
    /// Last text that can get citations: position of the output item in `slots`, and number of the
    /// part.
    cited: Option<(usize, u64)>,
}

impl ResponsesMachine {
    /// Creates the state of a new answer. `ids_used`: the call ids in the client's history.
    pub(super) fn new(context: &RequestContext, ids_used: NameSet<'static>) -> Self {
        Self {
            content: Content::new(context, ids_used),
            slots: Slots::default(),
            text_slot: None,
            thought_slot: None,
            failure: None,
            others: Others::default(),
            mcp_calls: 0,
            cited: None,
        }
    }

    /// Handles an event whose only content is a piece of text. `place`: the position of the text in
    /// the answer.
    #[inline]
    pub(super) fn handle_delta(
        &mut self,
        place: TextPlace,
        text: Str<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        to.report.chunks = to.report.chunks.saturating_add(1);
        self.take_delta(place, text, to)?;
        self.content.pump(to);
        self.check_held(to)
    }

    /// Handles an event. Returns the position of the event's text, if the event is a delta.
    pub(super) fn handle_event(
        &mut self,
        kind: EventKind,
        event: &WireEvent<'_>,
        raw: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<Option<TextPlace>, Error> {
        to.report.chunks = to.report.chunks.saturating_add(1);
        let place = self.take_event(kind, event, raw, to)?;
        if to.phase() != WriterPhase::Ended {
            self.content.pump(to);
            self.check_held(to)?;
        }
        Ok(place)
    }

    // Long: a branch for each kind of event.
    fn take_event(
        &mut self,
        kind: EventKind,
        event: &WireEvent<'_>,
        raw: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<Option<TextPlace>, Error> {
        match kind {
            EventKind::Progress => {
                if let Some(raw) = event.response {
                    let response = Response::read(raw)?;
                    self.take_summary(&response, to);
                }
            }
            EventKind::ItemAdded | EventKind::ItemDone => {
                let Some(raw) = event.item else { return Ok(None) };
                let item = Item::read(raw)?;
                if to.rules.begins_early {
                    self.content.start(to);
                }
                match kind {
                    EventKind::ItemAdded => self.add_item(&item, event.output_index, to)?,
                    _ => self.complete_item(&item, event.output_index, to)?,
                }
            }
            EventKind::PartAdded | EventKind::PartDone => {
                let Some(part) = event.part.and_then(ItemPart::read) else { return Ok(None) };
                let of = of_part(part.kind);
                let coming = match kind {
                    EventKind::PartDone => Coming::all(part.text),
                    _ => Coming::Start,
                };
                let place = self.place(of, event, coming, to)?;
                match part.text {
                    Some(text) if kind == EventKind::PartDone => self.complete(place, text, to)?,
                    Some(text) if self.is_new(place) => self.take_delta(place, text, to)?,
                    _ => {}
                }
                if kind == EventKind::PartDone {
                    self.take_annotations(place, part.annotations, to);
                }
            }
            EventKind::Delta(of) => {
                let Some(text) = event.delta else { return Ok(None) };
                let place = self.place(of, event, Coming::More, to)?;
                self.take_delta(place, text, to)?;
                return Ok(Some(place));
            }
            EventKind::Done(of) => {
                let place = self.place(of, event, Coming::all(event.full), to)?;
                match (event.full, event.full_json) {
                    (Some(text), _) => self.complete(place, text, to)?,
                    (None, Some(raw)) => self.complete_json(place, raw, to)?,
                    (None, None) => {}
                }
            }
            EventKind::Annotation => {
                let Some(annotation) = event.annotation else { return Ok(None) };
                let place = self.place(Of::Text, event, Coming::Nothing, to)?;
                self.take_annotation(place, annotation, to);
            }
            EventKind::Completed | EventKind::Incomplete | EventKind::Failed => {
                self.take_end(kind, event.response.unwrap_or("{}"), to)?;
            }
            EventKind::Error => self.note_failure(raw),
            // Errors of gateways may have no event name.
            EventKind::Unknown
                if event.error.is_some() || event.name.is_none() && event.complains =>
            {
                self.note_failure(raw);
            }
            EventKind::Unknown => to.warn("upstream_event_dropped"),
        }
        Ok(None)
    }

    pub(super) fn content(&self) -> &Content {
        &self.content
    }

    pub(super) fn content_mut(&mut self) -> &mut Content {
        &mut self.content
    }

    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    pub(super) fn slots_mut(&mut self) -> &mut Slots {
        &mut self.slots
    }

    /// Returns the counters of items that are not translated.
    pub(super) fn others_mut(&mut self) -> &mut Others {
        &mut self.others
    }

    /// Returns the next number for an MCP tool call.
    pub(super) fn next_mcp_call(&mut self) -> u32 {
        let number = self.mcp_calls;
        self.mcp_calls = number.saturating_add(1);
        number
    }

    /// Returns true if citations can be added to the text at `place`. Only the last cited text is
    /// kept in memory.
    pub(super) fn may_cite(&self, place: TextPlace) -> bool {
        self.cited == Some((place.slot, place.part))
    }

    /// Removes and returns the upstream's error that was stored.
    pub(super) fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Stores an error until the stream ends. A failed response with more details often follows;
    /// before the error, Azure sends a failed response without an error.
    pub(super) fn note_failure(&mut self, raw: &str) {
        if self.failure.as_deref().is_none_or(|known| known == UNTOLD) {
            self.failure = Some(raw.to_owned());
        }
    }

    /// Returns the position of an event's text. Begins an item if the text cannot belong to any
    /// open item.
    fn place(
        &mut self,
        of: Of,
        event: &WireEvent<'_>,
        coming: Coming<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<TextPlace, Error> {
        let kind = kind_of(of);
        let id = event.item_id.map(|id| id.decode());
        let output_index = event.output_index;
        let named = EventNames { id: id.as_deref(), output_index, ..EventNames::default() };
        let found = self.slots.find(kind, named, coming);
        let slot = self.slot_of(found, kind, named, to)?;
        let part = match part_kind(of) {
            None => 0,
            Some(PartKind::Summary) => event.summary_index.unwrap_or(0),
            Some(kind) => self.slots.part(slot, kind, event.content_index.unwrap_or(0), coming),
        };
        Ok(TextPlace { slot, of, part })
    }

    /// Returns true if no piece of the text at `place` has been received.
    fn is_new(&mut self, place: TextPlace) -> bool {
        let Some(part) = part_kind(place.of) else { return false };
        let said = self.slots.said(place.slot, (part, place.part));
        said.is_some_and(|said| said.is_empty())
    }

    /// Adds a delta of a text to the answer.
    #[inline]
    fn take_delta(
        &mut self,
        place: TextPlace,
        text: Str<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        if self.content.text().is_cut() {
            return Ok(());
        }
        let is_closed = self.slots.get(place.slot).is_none_or(Slot::is_closed);
        if is_closed {
            return self.take_late(place, text, to);
        }
        let said = match part_kind(place.of) {
            Some(part) => self.slots.said(place.slot, (part, place.part)),
            None => self.slots.get_mut(place.slot).map(Slot::input_mut),
        };
        if let Some(said) = said {
            said.push(text);
        }
        self.take_more(place, text, to)
    }

    /// Handles a delta of an output item that has already ended. The delta is a repetition, or a
    /// gateway reported the end of the item too early.
    fn take_late(
        &mut self,
        place: TextPlace,
        text: Str<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        let part = part_kind(place.of).filter(|part| *part == PartKind::Text);
        let said = part.and_then(|part| self.slots.said(place.slot, (part, place.part)));
        let more = said.and_then(|said| said.push_late(text));
        match more.as_deref().and_then(Str::inside) {
            Some(more) => self.take_more(place, more, to),
            None => {
                to.warn("text_conflict");
                Ok(())
            }
        }
    }

    /// Handles a whole text, and adds the part that was not received before.
    pub(super) fn complete(
        &mut self,
        place: TextPlace,
        text: Str<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        if self.content.text().is_cut() {
            return Ok(());
        }
        let Some(part) = part_kind(place.of) else {
            return self.complete_input(place, text, to);
        };
        let Some(said) = self.slots.said(place.slot, (part, place.part)) else { return Ok(()) };
        match said.complete(text) {
            News::Nothing => Ok(()),
            News::All => self.take_more(place, text, to),
            News::Rest(raw) => match Str::inside(&raw) {
                Some(text) => self.take_more(place, text, to),
                None => Ok(()),
            },
            News::Conflict => {
                to.warn("text_conflict");
                Ok(())
            }
        }
    }

    /// Adds new text to the answer as text, refusal, reasoning or tool input.
    #[inline]
    fn take_more(
        &mut self,
        place: TextPlace,
        text: Str<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        self.content.start(to);
        if let Some(slot) = self.slots.get_mut(place.slot) {
            slot.note_content();
        }
        match place.of {
            Of::Text => {
                self.enter_text(place, text, to)?;
                self.content.take_text(text, to)
            }
            Of::Refusal => {
                self.enter_text(place, text, to)?;
                self.content.take_refusal(text, to)
            }
            Of::Thought(kind) => {
                self.take_thought(place, kind, text, to);
                Ok(())
            }
            Of::Arguments | Of::Input => self.take_input(place.slot, text, to),
        }
    }

    /// Makes an output item the current source of the answer's text. Ends open reasoning and the
    /// text of another item.
    #[inline]
    fn enter_text(
        &mut self,
        place: TextPlace,
        text: Str<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        if self.thought_slot.is_some() && !text.is_blank() {
            self.close_thought(to);
        }
        if self.text_slot != Some(place.slot) {
            if self.text_slot.is_some() {
                self.content.end_text(to)?;
            }
            self.text_slot = Some(place.slot);
        }
        let is_cited = to.context.searches && place.of == Of::Text;
        if is_cited && self.cited != Some((place.slot, place.part)) {
            self.cited = Some((place.slot, place.part));
            self.content.begin_cited();
        }
        Ok(())
    }

    /// Makes an output item the current source of reasoning. Ends the reasoning of another output
    /// item.
    pub(super) fn enter_thought(&mut self, slot: usize, to: &mut ReaderOutput<'_>) {
        if self.thought_slot != Some(slot) {
            self.close_thought(to);
            self.thought_slot = Some(slot);
        }
    }

    /// Returns true if the output item at the position `slot` is the open reasoning item.
    pub(super) fn is_open_thought(&self, slot: usize) -> bool {
        self.thought_slot == Some(slot)
    }

    /// Ends the open reasoning and its thinking block.
    pub(super) fn close_thought(&mut self, to: &mut ReaderOutput<'_>) {
        self.content.end_watch(to);
        if self.thought_slot.is_none() {
            return;
        }
        self.carry_thought(to);
        self.content.assembly_mut().end_thinking();
    }

    /// Ends the open reasoning. The thinking block's signature gets the reasoning item, so that the
    /// client sends the item back in later requests.
    pub(super) fn carry_thought(&mut self, to: &mut ReaderOutput<'_>) {
        let Some(slot) = self.thought_slot.take() else { return };
        let id = self.slots.id(slot).map(str::to_owned);
        let Some(slot) = self.slots.get_mut(slot) else { return };
        let (item, is_too_long) = slot.thought_mut().end(id.as_deref());
        if is_too_long {
            to.warn("signature_too_long");
        }
        if let Some(item) = item.filter(|_| is_kept(to)) {
            // Encrypted reasoning without text begins no message before its item ends.
            self.content.start(to);
            self.content.assembly_mut().carry_item(item, to);
        }
    }

    /// Returns the number of bytes kept in memory for the open reasoning.
    fn thought_bytes(&self) -> usize {
        let slot = self.thought_slot.and_then(|slot| self.slots.get(slot));
        slot.map_or(0, |slot| slot.thought().held_bytes())
    }

    /// Returns an error if too many bytes of the answer are held back in memory.
    fn check_held(&self, to: &ReaderOutput<'_>) -> Result<(), Error> {
        let waiting = self.content.waiting_bytes().saturating_add(self.slots.held_bytes());
        let thoughts = self.thought_bytes();
        if waiting.saturating_add(thoughts) > to.rules.waiting_bytes_max
            || to.writer.held_bytes() > to.rules.response_bytes_max
        {
            return Err(Error::answer_too_large());
        }
        Ok(())
    }

    /// Returns true if the message to the client has begun.
    pub(super) fn has_started(&self) -> bool {
        self.content.has_started()
    }

    /// Returns true if the text was cut at a stop sequence. The remaining answer is then ignored.
    pub(super) fn has_stopped(&self) -> bool {
        self.content.text().is_cut()
    }
}

impl AnswerState for ResponsesMachine {
    fn begin(&mut self, to: &mut ReaderOutput<'_>) {
        self.content.start(to);
    }

    /// Returns true if the text was cut at a stop sequence or an error was received. An end event
    /// is handled elsewhere and ends the answer at once.
    fn is_complete(&self) -> bool {
        self.has_stopped() || self.failure.is_some()
    }

    fn ending(&self) -> Ending {
        match self.content.text().is_cut() {
            true => Ending::Cut,
            false if self.failure.is_some() => Ending::Likely,
            false => Ending::Open,
        }
    }

    fn spoken(&self) -> u64 {
        self.content.telling_pieces()
    }

    fn held_bytes(&self) -> usize {
        let held = self.slots.held_bytes().saturating_add(self.thought_bytes());
        self.content.held_bytes().saturating_add(held)
    }
}
