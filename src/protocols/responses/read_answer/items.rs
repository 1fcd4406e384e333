//! Handling of output items, when they begin and when they are complete: calls, reasoning, and the
//! items of a final response.

use super::machine::ResponsesMachine;
use super::names::{EventNames, ItemNames};
use super::place::{TextPlace, of_part};
use super::slots::{KINDS, Slot};
use crate::answer::ReaderOutput;
use crate::assemble::call::{CallParts, CallState};
use crate::carry::signature::SignatureField;
use crate::content::is_kept;
use crate::error::Error;
use crate::json::{self, Str};
use crate::protocols::responses::wire::{
    Item, ItemArguments, ItemKind, Of, PartKind, ThoughtKind, write_with,
};

/// Blank line between two texts, JSON-escaped.
const BLANK_LINE: &str = "\\n\\n";

impl ResponsesMachine {
    /// Handles the event that begins an output item.
    pub(super) fn add_item(
        &mut self,
        item: &Item<'_>,
        output_index: Option<u64>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        if is_left_out(item, to) {
            self.others_mut().begin(item, to);
            return Ok(());
        }
        let names = ItemNames::of(item);
        let named = EventNames::of(&names, output_index);
        let found = self.slots_mut().find_open(item.kind, named);
        let slot = self.slot_of(found, item.kind, named, to)?;
        self.take_names(slot, item, to);
        if let Some(encrypted) = item.encrypted.filter(|_| item.kind == ItemKind::Reasoning) {
            self.begin_encrypted(slot, encrypted, to);
        }
        match item.arguments {
            ItemArguments::None => Ok(()),
            ItemArguments::Text(text) => self.take_input(slot, text, to),
            ItemArguments::Json(raw) => {
                self.complete_json(TextPlace { slot, of: Of::Arguments, part: 0 }, raw, to)
            }
        }
    }

    /// Stores the ids and names of an output item, and passes them to the item's tool call if the
    /// item is a call.
    fn take_names(&mut self, slot: usize, item: &Item<'_>, to: &mut ReaderOutput<'_>) {
        let names = ItemNames::of(item);
        let ItemNames { id, call_id, tool: name, .. } = &names;
        self.slots_mut().name(slot, EventNames::of(&names, None));
        let Some(known) = self.slots_mut().get_mut(slot) else { return };
        known.name_tool(name.as_deref());
        let Some(call) = known.call() else { return };
        let tools = &to.context.tools;
        let conflicts = self.content_mut().assembly_mut().extend_call(call, |call, _| {
            call.receive_id(call_id.as_deref().or(id.as_deref()));
            if item.kind == ItemKind::Custom {
                call.set_custom();
            }
            name.as_deref().is_some_and(|name| call.receive_name(name, tools))
        });
        if conflicts == Some(true) {
            to.warn("tool_name_conflict");
        }
    }

    /// Returns the position `found` of an output item, or begins a new output item if `found` is
    /// `None`.
    pub(super) fn slot_of(
        &mut self,
        found: Option<usize>,
        kind: ItemKind,
        named: EventNames<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<usize, Error> {
        if let Some(slot) = found {
            return Ok(slot);
        }
        let slot = self.slots_mut().open(kind, named)?;
        self.begin_item(slot, to)?;
        Ok(slot)
    }

    /// Begins an output item. If the item is a tool call, a new call is added to the answer's
    /// content.
    fn begin_item(&mut self, slot: usize, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        let Some(kind) = self.slots().get(slot).map(Slot::kind) else { return Ok(()) };
        if !matches!(kind, ItemKind::Function | ItemKind::Custom) {
            return Ok(());
        }
        self.close_thought(to);
        if !self.content_mut().begin_call(to)? {
            return Ok(());
        }
        self.content_mut().start(to);
        let call = self.content_mut().assembly_mut().add_call(CallParts::new(false), to)?;
        if let Some(slot) = self.slots_mut().get_mut(slot) {
            slot.begin_call(call);
        }
        Ok(())
    }

    /// Appends a piece of text to the input of a tool call.
    pub(super) fn take_input(
        &mut self,
        slot: usize,
        text: Str<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        self.extend_call(slot, text.decoded_len(), text.is_blank(), to, |call, scratch| {
            call.receive_input(text.raw(), scratch);
        });
        Ok(())
    }

    /// Handles the whole input of a tool call, sent as text.
    pub(super) fn complete_input(
        &mut self,
        place: TextPlace,
        text: Str<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        if let Some(slot) = self.slots_mut().get_mut(place.slot) {
            slot.input_mut().replace(&text.decode());
        }
        self.extend_call(place.slot, 0, true, to, |call, _| call.receive_full_input(text.raw()));
        Ok(())
    }

    /// Handles the whole input of a tool call, sent as a JSON object instead of a text.
    pub(super) fn complete_json(
        &mut self,
        place: TextPlace,
        raw: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        let compact = json::compacted(raw);
        if let Some(slot) = self.slots_mut().get_mut(place.slot) {
            slot.input_mut().replace(&compact);
        }
        let text = json::escaped(&compact);
        self.extend_call(place.slot, 0, true, to, |call, _| call.receive_full_input(&text));
        Ok(())
    }

    fn extend_call(
        &mut self,
        slot: usize,
        bytes: usize,
        is_blank: bool,
        to: &mut ReaderOutput<'_>,
        change: impl FnOnce(&mut CallParts, &mut String),
    ) {
        let Some(call) = self.slots().get(slot).and_then(Slot::call) else { return };
        let state = self.content().assembly().calls().all().get(call).map(CallParts::state);
        if matches!(state, None | Some(CallState::LeftOut)) {
            return;
        }
        self.content_mut().note_progress(bytes, is_blank, to);
        let assembly = self.content_mut().assembly_mut();
        assembly.extend_call(call, change);
        for _ in 0..assembly.take_conflicts(call) {
            match state == Some(CallState::Closed) {
                true => to.warn("late_tool_fragment"),
                false => to.warn("tool_input_conflict"),
            }
        }
    }

    /// Handles the event that completes an output item.
    pub(super) fn complete_item(
        &mut self,
        item: &Item<'_>,
        output_index: Option<u64>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        if is_left_out(item, to) {
            self.others_mut().complete(item, to);
            return Ok(());
        }
        let names = ItemNames::of(item);
        let named = EventNames::of(&names, output_index);
        let found = self.slots_mut().find_done(item.kind, named);
        let slot = self.slot_of(found, item.kind, named, to)?;
        self.complete_slot(slot, item, to)
    }

    /// Completes the output item at the position `slot` with the complete item that was received.
    fn complete_slot(
        &mut self,
        slot: usize,
        item: &Item<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        self.take_names(slot, item, to);
        match item.kind {
            ItemKind::Message => self.complete_message(slot, item, to)?,
            ItemKind::Reasoning => self.complete_thought(slot, item, to)?,
            ItemKind::Function | ItemKind::Custom => {
                let place = TextPlace { slot, of: Of::Arguments, part: 0 };
                match item.arguments {
                    ItemArguments::None => {}
                    ItemArguments::Text(text) => self.complete(place, text, to)?,
                    ItemArguments::Json(raw) => self.complete_json(place, raw, to)?,
                }
            }
            ItemKind::WebSearch => self.complete_search(slot, item, to)?,
            ItemKind::Mcp => self.complete_mcp_call(slot, item, to)?,
            ItemKind::Other => {}
        }
        if let Some(slot) = self.slots_mut().get_mut(slot) {
            slot.close(item);
        }
        Ok(())
    }

    /// Completes a message item: adds the texts and sources that were not received before.
    fn complete_message(
        &mut self,
        slot: usize,
        item: &Item<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        let texts = || item.parts().filter(|(_, part)| part.kind == PartKind::Text);
        let mut raw = texts().filter_map(|(_, part)| part.text);
        let first = raw.next().filter(|_| raw.next().is_some());
        let is_joined = first.is_some_and(|first| self.slots().has_joined(slot, first));
        if is_joined {
            // No event distinguished the parts of the message, so their joined text is completed.
            let joined: String = texts().filter_map(|(_, it)| it.text).map(|it| it.raw()).collect();
            if let Some(joined) = Str::inside(&joined) {
                self.complete(TextPlace { slot, of: Of::Text, part: 0 }, joined, to)?;
            }
        }
        for (part, said) in item.parts() {
            let place = TextPlace { slot, of: of_part(said.kind), part };
            let is_told = is_joined && place.of == Of::Text;
            if matches!(place.of, Of::Text | Of::Refusal) {
                if let Some(text) = said.text.filter(|_| !is_told) {
                    self.complete(place, text, to)?;
                }
                self.take_annotations(place, said.annotations, to);
            }
        }
        Ok(())
    }

    /// Handles the items of a final response. Only content that was not received before is added.
    pub(super) fn take_output(
        &mut self,
        output: &str,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        let (mut before, mut others) = ([0usize; KINDS], 0u64);
        for raw in json::elements(output).filter(|raw| raw.starts_with('{')) {
            if self.content().text().is_cut() {
                return Ok(());
            }
            let item = Item::read(raw)?;
            if is_left_out(&item, to) {
                others = others.saturating_add(1);
                self.others_mut().note_from(others, &item, to);
                continue;
            }
            let Some(before) = before.get_mut(item.kind as usize) else { continue };
            let names = ItemNames::of(&item);
            let named = EventNames::of(&names, None);
            let found = self.slots().find_in_answer(item.kind, named, *before);
            if found.is_none() && !item.says_something() {
                continue;
            }
            let slot = self.slot_of(found, item.kind, named, to)?;
            *before = before.saturating_add(usize::from(item.says_something()));
            self.complete_slot(slot, &item, to)?;
        }
        Ok(())
    }

    /// Removes the calls that the upstream marked as incomplete. Incomplete calls must not be run
    /// by the client.
    pub(super) fn leave_out_half_calls(&mut self, to: &mut ReaderOutput<'_>) {
        let half = self.slots().iter().filter(|slot| slot.is_cut_off()).filter_map(Slot::call);
        for call in half.collect::<Vec<_>>() {
            self.content_mut().assembly_mut().leave_out_half(call, to);
        }
    }

    /// Adds a piece of reasoning text to the answer.
    pub(super) fn take_thought(
        &mut self,
        place: TextPlace,
        kind: ThoughtKind,
        text: Str<'_>,
        to: &mut ReaderOutput<'_>,
    ) {
        if self.slots().get(place.slot).is_none_or(|slot| slot.thought().is_over()) {
            return;
        }
        self.enter_thought(place.slot, to);
        let Some(slot) = self.slots_mut().get_mut(place.slot) else { return };
        let (is_shown, begins_part) = slot.thought_mut().take(kind, place.part, text);
        if !is_shown {
            return self.content_mut().note_progress(text.decoded_len(), text.is_blank(), to);
        }
        if begins_part && let Some(line) = Str::inside(BLANK_LINE) {
            self.content_mut().push_reasoning(line, SignatureField::Item, to);
        }
        self.content_mut().reasoning_mut().note_field(Some(SignatureField::Item));
        self.content_mut().push_reasoning(text, SignatureField::Item, to);
    }

    /// Stores encrypted reasoning that arrived at the beginning of a reasoning item.
    fn begin_encrypted(&mut self, slot: usize, encrypted: Str<'_>, to: &mut ReaderOutput<'_>) {
        self.enter_thought(slot, to);
        if let Some(slot) = self.slots_mut().get_mut(slot).filter(|it| !it.thought().is_over()) {
            slot.note_content();
            slot.thought_mut().keep_encrypted(encrypted);
        }
    }

    /// Completes a reasoning item, and keeps the item so that the client can send the reasoning
    /// back in the next request.
    fn complete_thought(
        &mut self,
        slot: usize,
        item: &Item<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        let Some(known) = self.slots().get(slot) else { return Ok(()) };
        if known.thought().is_over() {
            if item.encrypted.is_some() && !known.thought().is_carried() && is_kept(to) {
                // The item's `id` was already sent in the block with the item's earlier reasoning.
                let mut late = Vec::new();
                write_with(item.raw, "id", None, &mut json::Writer::new(&mut late));
                let late = String::from_utf8(late).unwrap_or_default();
                self.content_mut().assembly_mut().carry_late(late);
                if let Some(slot) = self.slots_mut().get_mut(slot) {
                    slot.thought_mut().set_carried();
                }
            }
            return Ok(());
        }
        let known_encrypted = known.thought().has_encrypted();
        for (part, said) in item.parts() {
            let place = TextPlace { slot, of: of_part(said.kind), part };
            if let (Of::Thought(_), Some(text)) = (place.of, said.text) {
                self.complete(place, text, to)?;
            }
        }
        // Reasoning with neither text nor encrypted content becomes no block.
        if item.encrypted.is_some() || item.has_text() || known_encrypted {
            self.enter_thought(slot, to);
            self.content_mut().start(to);
            if let Some(slot) = self.slots_mut().get_mut(slot) {
                slot.thought_mut().keep_item(item);
            }
        }
        // Held-back reasoning may be the beginning of a call, until other content comes.
        if self.is_open_thought(slot) && !self.content_mut().reasoning_mut().is_watched() {
            self.close_thought(to);
        }
        Ok(())
    }
}

/// Returns true if an output item is not translated to a content block.
fn is_left_out(item: &Item<'_>, to: &ReaderOutput<'_>) -> bool {
    match item.kind {
        ItemKind::Mcp => !to.context.calls_mcp,
        kind => kind == ItemKind::Other,
    }
}
