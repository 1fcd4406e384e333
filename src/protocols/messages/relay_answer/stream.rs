//! Repair of the event stream of an upstream that uses the Messages API.

use std::collections::VecDeque;

use super::block::{self, RelayedBlock, WAITING_MAX};
use super::delta::{DeltaKind, RelayedDelta};
use super::ending;
use super::events::Events;
use super::fold::Fold;
use super::member::{count, member, text};
use crate::answer::output::{BLOCK_BYTES, INVALID_RESPONSE};
use crate::answer::{ReaderOutput, WriterPhase};
use crate::assemble::mend::{InputMender, ValidationBudget};
use crate::carry::tool_id;
use crate::error::Error;
use crate::model::limits;
use crate::sse::EVENTS;
use crate::text::names::NameSet;

/// Maximum number of blocks that are waiting or were closed early. The number is limited because
/// each event searches all of them.
const BLOCKS_MAX: usize = 16 << 10;

/// Maximum length of a `message_delta` that may be merged with a later one, in bytes.
const ENDING_BYTES_MAX: usize = 64 << 10;

/// State of an upstream's stream of Messages API events that is being repaired.
#[derive(Debug, Default)]
pub(super) struct MessagesStream {
    /// Blocks that are not over; only the first block is being sent.
    blocks: VecDeque<RelayedBlock>,
    /// Index of the first block in `blocks`, as sent to the client.
    index: u64,
    /// Number of bytes of the deltas and start events of all blocks except the first.
    waiting_bytes: usize,
    /// Upstream's indices of blocks that were closed before the upstream's stop event.
    closed_early: Indices,
    /// Ids of the tool calls in the answer up to now.
    ids: NameSet<'static>,
    id_bytes: usize,
    /// Content in `message_start`, which is used only if no block follows.
    content: String,
    /// Last `message_delta`, merged with earlier ones if the upstream sent several.
    ending: Option<String>,
    /// Number of content blocks and deltas received from the upstream.
    pieces: u64,
    output_bytes: u64,
    fold: Option<Box<Fold>>,
    /// Limit of the work for repairing the inputs of calls.
    budget: ValidationBudget,
}

impl MessagesStream {
    pub(super) fn new(stream: bool) -> Self {
        Self { fold: (!stream).then(Box::default), ..Self::default() }
    }

    /// Handles an event with the given name, whose data is JSON.
    pub(super) fn handle_event(
        &mut self,
        to: &mut ReaderOutput<'_>,
        name: &str,
        data: &str,
    ) -> Result<(), Error> {
        if name == "error" {
            return Err(to.error_of(data));
        }
        let Some(name) = EVENTS.into_iter().find(|known| name == *known) else {
            repaired(to, "unknown_event");
            return Ok(());
        };
        to.report.chunks = to.report.chunks.saturating_add(1);
        if to.phase() == WriterPhase::Start && !matches!(name, "message_start" | "ping") {
            if name == "message_stop" {
                return Err(Error::misbehaved(INVALID_RESPONSE));
            }
            repaired(to, "message_start");
            self.message_start(to, "{}");
        }
        match name {
            "message_start" => match to.phase() {
                WriterPhase::Start => self.message_start(to, data),
                _ if self.index == 0 && self.blocks.is_empty() => repaired(to, name),
                // The upstream begins the answer once more.
                _ => return Err(Error::misbehaved(INVALID_RESPONSE)),
            },
            "content_block_start" => self.block_start(to, data)?,
            "content_block_delta" => self.block_delta(to, data)?,
            "content_block_stop" => self.block_stop(to, data),
            "message_delta" => self.message_delta(to, data)?,
            "message_stop" => self.message_stop(to, Some(data))?,
            _ if self.fold.is_none() && to.phase() == WriterPhase::Open => {
                self.events(to).event(name, data)
            }
            _ => {}
        }
        self.check_limits(to)
    }

    /// Returns true if the upstream has sent a stop reason.
    pub(super) fn is_complete(&self) -> bool {
        let delta = self.ending.as_deref().and_then(|ending| member(ending, "delta"));
        delta.and_then(|delta| text(delta, "stop_reason")).is_some()
    }

    /// Ends the answer. `stop` is the upstream's `message_stop` event, if any.
    pub(super) fn message_stop(
        &mut self,
        to: &mut ReaderOutput<'_>,
        stop: Option<&str>,
    ) -> Result<(), Error> {
        if stop.is_none() {
            repaired(to, "message_stop");
        }
        if self.index == 0 && self.blocks.is_empty() {
            self.content_of_start(to)?;
        }
        self.pump(to, true);
        if self.ending.is_none() {
            repaired(to, "message_delta");
        }
        let ending =
            self.ending.take().unwrap_or_else(|| "{\"type\":\"message_delta\"}".to_owned());
        let has_call = to.report.tool_calls > 0;
        let ending = ending::finished(&ending, has_call, self.output_bytes, to)?;
        let mut events = self.events(to);
        events.event("message_delta", &ending);
        events.event("message_stop", stop.unwrap_or("{\"type\":\"message_stop\"}"));
        if let Some(fold) = self.fold.take() {
            if fold.has_too_many_members() {
                return Err(limits::answer_exceeded("fields"));
            }
            fold.write(to.warnings, to.out);
        }
        to.writer.relayed(WriterPhase::Ended);
        Ok(())
    }

    fn events<'a>(&'a mut self, to: &'a mut ReaderOutput<'_>) -> Events<'a> {
        Events::new(self.fold.as_deref_mut(), to.out)
    }

    /// Returns the number of blocks and deltas received, including the empty ones that an upstream
    /// may send while the model thinks.
    pub(super) fn pieces(&self) -> u64 {
        self.pieces
    }

    /// Returns the number of bytes of the answer kept in memory: waiting blocks and the collected
    /// message.
    pub(super) fn held_bytes(&self) -> usize {
        let (held, folded) = self.held();
        held.saturating_add(folded)
    }

    fn held(&self) -> (usize, usize) {
        let open = self.blocks.front().map_or(0, RelayedBlock::held_bytes);
        let others = BLOCK_BYTES.saturating_mul(self.blocks.len().saturating_add(self.ids.len()));
        let indices = BLOCK_BYTES.saturating_mul(self.closed_early.len());
        let ending = self.ending.as_ref().map_or(0, String::len);
        let held = [self.waiting_bytes, self.id_bytes, others, indices, ending, self.content.len()]
            .into_iter()
            .fold(open, usize::saturating_add);
        let folded = self.fold.as_ref().map_or(0, |fold| fold.held_bytes());
        (held, folded)
    }

    fn check_limits(&self, to: &ReaderOutput<'_>) -> Result<(), Error> {
        let (held, folded) = self.held();
        if self.fold.as_ref().is_some_and(|fold| fold.has_too_many_members()) {
            return Err(limits::answer_exceeded("fields"));
        }
        let too_many = self.blocks.len().saturating_add(self.closed_early.len()) > BLOCKS_MAX;
        if too_many || held > to.rules.waiting_bytes_max || folded > to.rules.response_bytes_max {
            return Err(Error::answer_too_large());
        }
        Ok(())
    }

    fn message_start(&mut self, to: &mut ReaderOutput<'_>, data: &str) {
        let message = member(data, "message").unwrap_or("{}");
        if let Some(content) = member(message, "content").filter(|content| *content != "[]") {
            content.clone_into(&mut self.content);
        }
        let started = ending::started(data, message, to);
        self.events(to).event("message_start", &started);
        to.writer.relayed(WriterPhase::Open);
    }

    /// Sends the content of `message_start`, because some servers put the complete message there
    /// and send no blocks.
    fn content_of_start(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error> {
        let content = std::mem::take(&mut self.content);
        let mut index = 0u64;
        for block in block::blocks(&content)? {
            repaired(to, "content");
            self.whole_block(to, &block, index)?;
            index = index.saturating_add(1);
        }
        Ok(())
    }

    pub(super) fn whole_block(
        &mut self,
        to: &mut ReaderOutput<'_>,
        block: &str,
        index: u64,
    ) -> Result<(), Error> {
        let start = format!(
            "{{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{block}}}"
        );
        self.block_start(to, &start)?;
        let stop = format!("{{\"type\":\"content_block_stop\",\"index\":{index}}}");
        self.block_stop(to, &stop);
        self.check_limits(to)
    }

    fn block_start(&mut self, to: &mut ReaderOutput<'_>, data: &str) -> Result<(), Error> {
        let said = member(data, "content_block").unwrap_or("{}");
        let (ids, known) = (to.ids, &mut self.ids);
        let mut mint = |id: &str| {
            if !id.is_empty() && known.add(id.to_owned()) {
                return None;
            }
            let position = u32::try_from(known.len()).unwrap_or(u32::MAX);
            let minted = tool_id::encode(&ids.call(position), known);
            known.add(minted.clone());
            Some(minted)
        };
        let mut block = RelayedBlock::start(data, &mut mint);
        if block.is_call() {
            if text(said, "name").is_none_or(|name| name.is_blank()) {
                return Err(Error::misbehaved("Upstream sent a tool call without a name"));
            }
            let id = text(said, "id").unwrap_or_default();
            self.id_bytes = self.id_bytes.saturating_add(id.raw().len());
            to.report.tool_calls = to.report.tool_calls.saturating_add(1);
            if to.rules.mends_inputs {
                let tool = to.context.tools.meant_by(&block.tool());
                block.set_mender(tool.and_then(|tool| InputMender::of(tool, &mut self.budget)));
            }
            let name = text(said, "name").unwrap_or_default().decode();
            if let Some(name) = to.context.tools.client_name(&name) {
                block.rename(name);
            }
        }
        if let Some(index) = block.index() {
            self.closed_early.remove(index);
        }
        self.note_progress(to);
        self.output_bytes = self.output_bytes.saturating_add(said.len() as u64);
        self.push(to, block);
        Ok(())
    }

    fn note_progress(&mut self, to: &mut ReaderOutput<'_>) {
        self.pieces = self.pieces.saturating_add(1);
        to.report.progress = to.report.progress.saturating_add(1);
    }

    fn push(&mut self, to: &mut ReaderOutput<'_>, block: RelayedBlock) {
        self.waiting_bytes = self.waiting_bytes.saturating_add(block.waiting_bytes());
        self.blocks.push_back(block);
        self.pump(to, false);
    }

    fn block_delta(&mut self, to: &mut ReaderOutput<'_>, data: &str) -> Result<(), Error> {
        let delta = RelayedDelta::read(data);
        self.note_progress(to);
        self.output_bytes = self.output_bytes.saturating_add(delta.bytes());
        let Some(at) = self.find(&delta) else {
            let late = delta.index.is_some_and(|index| self.closed_early.contains(index));
            match delta.kind {
                DeltaKind::Input if !(late || delta.is_blank()) => {
                    // The delta belongs to a tool call whose name is unknown.
                    return Err(Error::misbehaved(INVALID_RESPONSE));
                }
                DeltaKind::Input | DeltaKind::Other => repaired(to, "late_delta"),
                // A signature applies only to its own block.
                DeltaKind::Signature if late => repaired(to, "late_delta"),
                _ if delta.is_blank() => {}
                _ => {
                    repaired(to, "content_block_start");
                    self.push(to, RelayedBlock::of_delta(&delta));
                    let last = self.blocks.len().saturating_sub(1);
                    self.give(to, last, data, &delta);
                }
            }
            return Ok(());
        };
        self.give(to, at, data, &delta);
        Ok(())
    }

    /// Finds the block that a delta extends: the last block with the delta's index, else the last
    /// block that the delta fits.
    fn find(&self, delta: &RelayedDelta<'_>) -> Option<usize> {
        let fits = |block: &RelayedBlock| block.fits(delta) && !block.is_stopped();
        if delta.says_nothing() {
            return None;
        }
        if let Some(index) = delta.index {
            let named = |block: &RelayedBlock| block.index() == Some(index) && fits(block);
            if let Some(at) = self.blocks.iter().rposition(named) {
                return Some(at);
            }
            if self.closed_early.contains(index) {
                return None;
            }
        }
        self.blocks.iter().rposition(fits)
    }

    fn give(&mut self, to: &mut ReaderOutput<'_>, at: usize, data: &str, delta: &RelayedDelta<'_>) {
        let Some(block) = self.blocks.get_mut(at) else { return };
        if !block.is_open() {
            self.waiting_bytes = self.waiting_bytes.saturating_add(block.wait(data));
            if block.waits_long() {
                self.pump(to, false);
            }
            return;
        }
        let mut events = Events::new(self.fold.as_deref_mut(), to.out);
        block.delta(data, delta, self.index, &mut events, &mut self.budget);
        if self.blocks.len() > 1 {
            self.pump(to, false);
        }
    }

    fn block_stop(&mut self, to: &mut ReaderOutput<'_>, data: &str) {
        let index = count(data, "index");
        let named = |block: &RelayedBlock| !block.is_stopped() && block.index() == index;
        let found = match index {
            Some(_) => self.blocks.iter().rposition(named),
            None => self.blocks.iter().rposition(|block| !block.is_stopped()),
        };
        match found.and_then(|at| self.blocks.get_mut(at)) {
            Some(block) => block.stop(data),
            None if index.is_some_and(|index| self.closed_early.remove(index)) => {}
            None => repaired(to, "content_block_stop"),
        }
        self.pump(to, false);
    }

    /// Sends all blocks that are ready. `all`: true if no more events follow.
    fn pump(&mut self, to: &mut ReaderOutput<'_>, all: bool) {
        while let Some(mut block) = self.blocks.pop_front() {
            if !block.is_open() {
                self.waiting_bytes = self.waiting_bytes.saturating_sub(block.waiting_bytes());
                let mut events = Events::new(self.fold.as_deref_mut(), to.out);
                block.open(self.index, &mut events, &mut self.budget);
            }
            let early = !block.is_stopped();
            let is_over = match self.blocks.len() {
                waiting if block.is_complete() => waiting > 0,
                // Check the waiting blocks only while they are few, to limit the work for each
                // event.
                waiting if waiting < WAITING_MAX => {
                    block.may_close() && self.blocks.iter().any(RelayedBlock::waits_long)
                }
                _ => block.may_close(),
            };
            if early && !all && !is_over {
                return self.blocks.push_front(block);
            }
            if early {
                repaired(to, "content_block_stop");
                if let Some(index) = block.index() {
                    self.closed_early.add(index);
                }
            }
            let mut events = Events::new(self.fold.as_deref_mut(), to.out);
            if block.close(self.index, &mut events, &mut self.budget) {
                to.warnings.add("tool_input_conflict");
            }
            for _ in 0..block.take_mended() {
                to.warnings.add_named("tool_argument_mended", &block.tool());
            }
            self.index = self.index.saturating_add(1);
        }
    }

    fn message_delta(&mut self, to: &mut ReaderOutput<'_>, data: &str) -> Result<(), Error> {
        if let Some(failure) = ending::failure(data, to.context) {
            return Err(failure);
        }
        self.ending = Some(match self.ending.take() {
            None => data.to_owned(),
            Some(earlier) => {
                // A merge copies the earlier event.
                if earlier.len() > ENDING_BYTES_MAX {
                    return Err(Error::answer_too_large());
                }
                repaired(to, "message_delta");
                ending::merged(&earlier, data)
            }
        });
        Ok(())
    }
}

/// Counts a repair as a warning for the log, because the response head was already sent.
fn repaired(to: &mut ReaderOutput<'_>, what: &str) {
    to.warnings.add_named("repaired", what);
}

/// Set of the upstream's block indices, in rising order.
#[derive(Debug, Default)]
struct Indices(Vec<u64>);

impl Indices {
    fn add(&mut self, index: u64) {
        if let Err(place) = self.0.binary_search(&index) {
            self.0.insert(place, index);
        }
    }

    fn contains(&self, index: u64) -> bool {
        self.0.binary_search(&index).is_ok()
    }

    /// Removes an index from the set. Returns true if the index was present.
    fn remove(&mut self, index: u64) -> bool {
        let place = self.0.binary_search(&index);
        place.is_ok_and(|place| self.0.remove(place) == index)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}
