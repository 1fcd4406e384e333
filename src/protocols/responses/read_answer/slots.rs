//! Output items of an answer, and the search for the item that an event belongs to.
//!
//! An item is identified by its id, call id and output index, if the server sends them. Many
//! servers send none of these, some change them from event to event, and some send the same index
//! for a text and the call after the text. So the item's type is compared, too, and an event
//! without a known id or index belongs to the last open item of the type.

use std::collections::BTreeMap;

use super::names::EventNames;
use super::parts::{Coming, OpenParts};
use super::said::{ItemTexts, ReceivedText};
use super::thought::OpenReasoning;
use crate::answer::output::BLOCK_BYTES;
use crate::error::Error;
use crate::json::Str;
use crate::model::limits;
use crate::protocols::responses::wire::{Item, ItemKind, PartKind};
use crate::text::names::Names;

/// Maximum number of items of an answer. A content block is made of each item.
const ITEMS_MAX: usize = 4096;

/// Number of kinds of output items, such as messages and calls.
pub(super) const KINDS: usize = 7;

/// Output item of an answer, with the state of its texts or of its call.
#[derive(Debug)]
pub(super) struct Slot {
    kind: ItemKind,
    call_id: Option<String>,
    output_index: Option<u64>,
    /// True if the complete item was received.
    is_closed: bool,
    texts: ItemTexts,
    parts: OpenParts,
    /// True if content of the item was received that is translated to a content block.
    has_content: bool,
    /// Name of the tool that the item calls.
    tool: Option<String>,
    /// Record of the call's input received so far.
    input: ReceivedText,
    /// Position of the item's call among the calls of the answer, once the call has begun.
    call: Option<usize>,
    /// True if the upstream marked the item as cut off.
    is_cut_off: bool,
    /// State of the reasoning, if the item is reasoning.
    thought: OpenReasoning,
    /// Number of citations received for the item's texts.
    annotations: usize,
    /// Last part whose citations were all received, and the number of citations received up to
    /// then.
    annotated: (Option<u64>, usize),
    id: Option<String>,
}

impl Slot {
    pub(super) fn kind(&self) -> ItemKind {
        self.kind
    }

    /// Returns true if the complete item was received.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns true if the upstream marked the item as cut off.
    pub(super) fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Returns the position of the item's call among the calls of the answer, once the call has
    /// begun.
    pub(super) fn call(&self) -> Option<usize> {
        self.call
    }

    /// Returns the record of the call's input.
    pub(super) fn input_mut(&mut self) -> &mut ReceivedText {
        &mut self.input
    }

    /// Returns the state of the reasoning, if the item is reasoning.
    pub(super) fn thought(&self) -> &OpenReasoning {
        &self.thought
    }

    pub(super) fn thought_mut(&mut self) -> &mut OpenReasoning {
        &mut self.thought
    }

    /// Records that content of the item was received that is translated to a block.
    pub(super) fn note_content(&mut self) {
        self.has_content = true;
    }

    /// Stores the name of the tool that the item calls. Only the first name is stored.
    pub(super) fn name_tool(&mut self, name: Option<&str>) {
        if self.tool.is_none() {
            self.tool = name.map(str::to_owned);
        }
    }

    /// Stores the position of the item's call among the calls of the answer.
    pub(super) fn begin_call(&mut self, position: usize) {
        self.call = Some(position);
    }

    /// Closes the output item, because the complete item was received.
    pub(super) fn close(&mut self, item: &Item<'_>) {
        self.is_cut_off |= item.is_incomplete;
        self.has_content |= item.says_something();
        self.is_closed = true;
    }

    /// Returns the number of citations received for the item's texts.
    pub(super) fn annotations(&self) -> usize {
        self.annotations
    }

    /// Counts one more citation of the item's texts.
    pub(super) fn count_annotation(&mut self) {
        self.annotations = self.annotations.saturating_add(1);
    }

    /// Returns true if a text or the call's input received so far is the beginning of `full`, or
    /// all of `full`; also true without content.
    fn begins(&self, full: &str) -> bool {
        match self.call {
            Some(_) => self.input.begins(full),
            None if !self.has_content => true,
            None => self.texts.iter().any(|said| !said.is_empty() && said.begins(full)),
        }
    }

    /// Returns the number of citations that belong to the parts before `part`.
    pub(super) fn annotations_before(&self, part: u64) -> usize {
        match self.annotated {
            (Some(last), _) if last >= part => 0,
            (_, count) => count,
        }
    }

    /// Records that all citations of a part were received.
    pub(super) fn end_annotations(&mut self, part: u64) {
        if self.annotated.0.is_none_or(|last| last < part) {
            self.annotated = (Some(part), self.annotations);
        }
    }
}

/// Output items of one answer, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Slots {
    list: Vec<Slot>,
    kinds: [OfKind; KINDS],
    held_bytes: usize,
}

/// Output items of one kind, by their position in the list of all items.
#[derive(Debug, Default)]
struct OfKind {
    all: Vec<usize>,
    /// Positions of open items, the latest last. Closed items are removed only when they are last.
    open: Vec<usize>,
    by_id: Names<'static, usize>,
    by_call_id: Names<'static, usize>,
    by_index: BTreeMap<u64, usize>,
}

impl Slots {
    pub(super) fn get(&self, slot: usize) -> Option<&Slot> {
        self.list.get(slot)
    }

    pub(super) fn get_mut(&mut self, slot: usize) -> Option<&mut Slot> {
        self.list.get_mut(slot)
    }

    /// Returns the upstream's id of the output item at the position `slot`.
    pub(super) fn id(&self, slot: usize) -> Option<&str> {
        self.list.get(slot)?.id.as_deref()
    }

    /// Returns an iterator over all output items of the answer.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.list.iter()
    }

    /// Returns the number of bytes counted for the output items: ids, and a fixed amount for each
    /// item and text.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    fn of(&self, kind: ItemKind) -> Option<&OfKind> {
        self.kinds.get(kind as usize)
    }

    /// Finds the output item that an event with a text or a source belongs to. `coming`: the
    /// event's portion of the text. An event with a whole text may belong to a closed item.
    pub(super) fn find(
        &mut self,
        kind: ItemKind,
        named: EventNames<'_>,
        coming: Coming<'_>,
    ) -> Option<usize> {
        let of_kind = self.kinds.get_mut(kind as usize)?;
        if let Some(slot) = named.id.and_then(|id| of_kind.by_id.get(id)) {
            return Some(*slot);
        }
        let is_open = |slot: &usize| self.list.get(*slot).is_some_and(|slot| !slot.is_closed);
        let at_place = named.output_index.and_then(|index| of_kind.by_index.get(&index).copied());
        let full = match coming {
            Coming::All(text) => Some(text.decode()),
            _ => None,
        };
        let repeats = |slot: &usize| {
            let slot = self.list.get(*slot);
            full.as_deref().zip(slot).is_some_and(|(full, slot)| slot.begins(full))
        };
        let is_over = matches!(coming, Coming::All(_) | Coming::Nothing);
        let is_call = matches!(kind, ItemKind::Function | ItemKind::Custom);
        if let Some(slot) =
            at_place.filter(|slot| is_open(slot) || is_over && is_call || repeats(slot))
        {
            return Some(slot);
        }
        while of_kind.open.pop_if(|slot| !is_open(slot)).is_some() {}
        let Some(last) = of_kind.open.last().copied() else {
            let last = of_kind.all.last().copied();
            return last.filter(|slot| named.output_index.is_none() && repeats(slot));
        };
        let place = self.list.get(last)?.output_index;
        // Another output index belongs to an item whose beginning is missing.
        let is_elsewhere =
            named.output_index.is_some() && place.is_some() && place != named.output_index;
        (!is_elsewhere).then_some(last)
    }

    /// Finds the open output item that an event for a beginning item repeats. Returns `None` if
    /// another item begins.
    pub(super) fn find_open(&self, kind: ItemKind, named: EventNames<'_>) -> Option<usize> {
        let of_kind = self.of(kind)?;
        let found = match (named.id, named.call_id) {
            (Some(id), _) => of_kind.by_id.get(id),
            (None, Some(call_id)) => of_kind.by_call_id.get(call_id),
            (None, None) => None,
        };
        found.copied().filter(|slot| {
            let is_open = self.list.get(*slot).is_some_and(|slot| !slot.is_closed);
            is_open && !self.is_another(*slot, named)
        })
    }

    /// Finds the output item that an event completes. Returns `None` if no event of the item was
    /// received.
    pub(super) fn find_done(&mut self, kind: ItemKind, named: EventNames<'_>) -> Option<usize> {
        let of_kind = self.of(kind)?;
        let by_call_id = named.call_id.and_then(|id| of_kind.by_call_id.get(id).copied());
        let by_id = named.id.and_then(|id| of_kind.by_id.get(id).copied());
        let at_place = named.output_index.and_then(|index| of_kind.by_index.get(&index).copied());
        let found = self.by_names(by_id, by_call_id, named);
        let found = found.or_else(|| at_place.filter(|slot| self.is_same_call(*slot, named)));
        if found.is_some() {
            return found;
        }
        let unnamed = EventNames { id: None, ..named };
        let found = self.find(kind, unnamed, Coming::More);
        found.filter(|slot| !self.is_another(*slot, named))
    }

    /// Finds the output item that an item of the final response repeats: by ids, or as the next
    /// item of the same kind. `before`: number of earlier items of the same kind in the final
    /// response.
    pub(super) fn find_in_answer(
        &self,
        kind: ItemKind,
        named: EventNames<'_>,
        before: usize,
    ) -> Option<usize> {
        let of_kind = self.of(kind)?;
        let by_id = named.id.and_then(|id| of_kind.by_id.get(id).copied());
        let by_call_id = named.call_id.and_then(|id| of_kind.by_call_id.get(id).copied());
        let by_place = || {
            // Items that began without content, before an item with content, are not in the final
            // response.
            let has_content =
                |slot: &usize| self.list.get(*slot).is_some_and(|slot| slot.has_content);
            let all = || of_kind.all.iter().copied();
            let last = all().rfind(has_content);
            all().filter(|slot| has_content(slot) || Some(*slot) > last).nth(before)
        };
        let is_meant =
            |slot: &usize| !self.is_another(*slot, named) || self.is_same_call(*slot, named);
        self.by_names(by_id, by_call_id, named).or_else(|| by_place().filter(is_meant))
    }

    /// Selects the output item that an event completes, from the items with the same id or call id.
    /// vLLM sends another `call_id` at the end of a call; other servers send the same `id` for all
    /// calls.
    fn by_names(
        &self,
        by_id: Option<usize>,
        by_call_id: Option<usize>,
        named: EventNames<'_>,
    ) -> Option<usize> {
        let is_open = |slot: &usize| {
            let tool = named.call.map(|(tool, _)| tool);
            let slot = self.list.get(*slot).filter(|slot| !slot.is_closed);
            slot.is_some_and(|slot| slot.tool.is_none() || slot.tool.as_deref() == tool)
        };
        let by_both = by_id.filter(|slot| !self.is_another(*slot, named));
        let by_id = by_id.filter(|slot| is_open(slot) || self.is_same_call(*slot, named));
        by_both.or(by_call_id).or(by_id)
    }

    /// Returns true if the item at the position `slot` calls the tool that `named` gives, with the
    /// same input as far as the input was received.
    fn is_same_call(&self, slot: usize, named: EventNames<'_>) -> bool {
        let Some((slot, (tool, input))) = self.list.get(slot).zip(named.call) else { return false };
        slot.tool.as_deref() == Some(tool) && slot.input.begins(input)
    }

    /// Returns true if the item at the position `slot` has another `call_id` than `named`.
    fn is_another(&self, slot: usize, named: EventNames<'_>) -> bool {
        let known = self.list.get(slot).and_then(|slot| slot.call_id.as_deref());
        named.call_id.is_some() && known.is_some() && named.call_id != known
    }

    /// Adds an output item to the answer's list of items, and returns the position of the item.
    ///
    /// # Errors
    /// Fails if the answer has too many items.
    pub(super) fn open(&mut self, kind: ItemKind, named: EventNames<'_>) -> Result<usize, Error> {
        let slot = self.list.len();
        if slot >= ITEMS_MAX {
            return Err(limits::answer_exceeded("output items"));
        }
        self.list.push(Slot {
            kind,
            call_id: None,
            output_index: named.output_index,
            is_closed: false,
            texts: ItemTexts::default(),
            parts: OpenParts::default(),
            has_content: !matches!(kind, ItemKind::Message | ItemKind::Reasoning),
            tool: None,
            input: ReceivedText::default(),
            call: None,
            is_cut_off: false,
            thought: OpenReasoning::default(),
            annotations: 0,
            annotated: (None, 0),
            id: None,
        });
        self.held_bytes = self.held_bytes.saturating_add(BLOCK_BYTES);
        if let Some(of_kind) = self.kinds.get_mut(kind as usize) {
            of_kind.all.push(slot);
            of_kind.open.push(slot);
            if let Some(index) = named.output_index {
                of_kind.by_index.insert(index, slot);
            }
        }
        self.name(slot, named);
        Ok(slot)
    }

    /// Stores the id and call id of an output item, for later searches.
    pub(super) fn name(&mut self, slot: usize, named: EventNames<'_>) {
        let Some(known) = self.list.get_mut(slot) else { return };
        let Some(of_kind) = self.kinds.get_mut(known.kind as usize) else { return };
        let mut note = |names: &mut Names<'static, usize>, name: &str| {
            if names.get(name) != Some(&slot) {
                self.held_bytes = self.held_bytes.saturating_add(name.len()).saturating_add(64);
                names.insert(name.to_owned(), slot);
            }
        };
        if let Some(id) = named.id {
            known.id.get_or_insert_with(|| id.to_owned());
            note(&mut of_kind.by_id, id);
        }
        if let (Some(call_id), None) = (named.call_id, &known.call_id) {
            known.call_id = Some(call_id.to_owned());
            note(&mut of_kind.by_call_id, call_id);
        }
    }

    /// Returns the number of the part that an event with the part index `index` belongs to. Begins
    /// a new part if the event fits no existing part.
    pub(super) fn part(
        &mut self,
        slot: usize,
        kind: PartKind,
        index: u64,
        coming: Coming<'_>,
    ) -> u64 {
        let Some(slot) = self.list.get_mut(slot) else { return 0 };
        if let Some(number) = slot.parts.get(kind, index) {
            return number;
        }
        let last = slot.parts.count(kind).checked_sub(1);
        let is_of_last = |last: &u64| {
            let said = slot.texts.get((kind, *last)).filter(|said| said.is_complete());
            match coming {
                Coming::Start => false,
                Coming::More => said.is_none(),
                Coming::All(text) => said.is_none_or(|said| said.begins(&text.decode())),
                Coming::Nothing => true,
            }
        };
        if let Some(last) = last.filter(is_of_last) {
            return last;
        }
        self.held_bytes = self.held_bytes.saturating_add(64);
        slot.parts.begin(kind, index)
    }

    /// Returns true if several texts of an output item were received joined as one part, longer
    /// than the text `first`.
    pub(super) fn has_joined(&self, slot: usize, first: Str<'_>) -> bool {
        let Some(slot) = self.list.get(slot) else { return false };
        let said = slot.texts.get((PartKind::Text, 0));
        slot.parts.count(PartKind::Text) == 1
            && said.is_some_and(|said| said.bytes() > first.decode().len())
    }

    /// Returns the record of a text of an output item, and counts the text's part.
    pub(super) fn said(&mut self, slot: usize, part: (PartKind, u64)) -> Option<&mut ReceivedText> {
        let held_bytes = &mut self.held_bytes;
        let slot = self.list.get_mut(slot)?;
        slot.parts.note(part.0, part.1);
        slot.texts.enter(part, || *held_bytes = held_bytes.saturating_add(BLOCK_BYTES))
    }
}
