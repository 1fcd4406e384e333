//! An upstream that speaks the Messages API, because the configuration says so or because a gateway
//! answers so though it was asked in Chat Completions. Nothing is translated: a right answer goes on
//! byte for byte, ids included, and what clients would stumble over is repaired.
//!
//! | found | done |
//! |---|---|
//! | no `message_start`, `content_block_start` of a text, `content_block_stop`, `message_delta` | it is added |
//! | no `message_stop` after a `stop_reason` | it is added; without a `stop_reason` the answer broke off |
//! | indices that are missing, repeated or not dense | counted anew |
//! | a block that starts before the one before it stopped | it waits, unless that one can end here |
//! | a text, signature or input at the start of its block | it is sent once, as a delta; see [`block`] |
//! | no id, model or counts; a call's id twice | they are made up |
//! | `stop_reason` in words of Chat Completions, or one that does not fit the blocks | corrected |
//! | another event, a late delta, a second `message_start` before any block | dropped and counted |
//!
//! The repaired events go to the client, or into the one message that it asked for ([`fold`]); a
//! whole message of the upstream is read as the events that it stands for ([`whole`]).

mod block;
mod delta;
mod ending;
mod fold;
mod member;
mod start_text;
mod whole;

use std::collections::VecDeque;

use super::progress::Phase;
use super::record::{AnswerRecord, BLOCK_BYTES, INVALID_RESPONSE};
use crate::carry::tool_id;
use crate::error::Error;
use crate::model::limits;
use crate::sse::EVENTS;
use crate::text::names::NameSet;
use crate::{json, upstream_error as error};
use block::{Block, WAITING_MAX};
use delta::{Delta, DeltaKind};
use fold::Fold;
use member::{count, member, text};
pub(super) use whole::write_whole;

/// Most blocks that wait, or are awaited: each event looks at all of them.
const BLOCKS_MAX: usize = 16 << 10;

/// A longer `message_delta` cannot be followed by another one.
const ENDING_BYTES_MAX: usize = 64 << 10;

/// Whether an event of this name begins an answer in the form of the Messages API. A ping does not:
/// proxies put them into any stream.
pub(super) fn begins(name: &str) -> bool {
    name != "ping" && EVENTS.contains(&name)
}

/// The data of an event that does not say what it is called.
pub(super) fn with_type(data: &str, name: &str) -> String {
    member::with(data, &[("type", &member::quoted(name))])
}

/// The state of a stream of Messages events.
#[derive(Debug, Default)]
pub(super) struct MessagesStream {
    /// Blocks that are not over; only the first one is sent.
    blocks: VecDeque<Block>,
    /// The client's index of the first of them.
    index: u64,
    /// Bytes of deltas and starts of the others.
    waiting_bytes: usize,
    /// Indices of the upstream whose blocks were closed before the upstream stopped them.
    closed_early: Indices,
    /// Ids of the calls so far.
    ids: NameSet<'static>,
    id_bytes: usize,
    /// Content inside of `message_start`, which counts when no block comes.
    content: String,
    /// `message_delta`, perhaps of several.
    ending: Option<String>,
    output_bytes: u64,
    fold: Option<Box<Fold>>,
}

/// Where repaired events go.
struct Out<'a> {
    fold: Option<&'a mut Fold>,
    out: &'a mut Vec<u8>,
}

impl Out<'_> {
    fn event(&mut self, name: &str, data: &str) {
        if let Some(fold) = &mut self.fold {
            return fold.event(name, data);
        }
        self.out.extend_from_slice(b"event: ");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\ndata: ");
        if memchr::memchr2(b'\n', b'\r', data.as_bytes()).is_some() {
            json::compact(self.out, data);
        } else {
            self.out.extend_from_slice(data.as_bytes());
        }
        self.out.extend_from_slice(b"\n\n");
    }
}

impl MessagesStream {
    pub(super) fn new(stream: bool) -> Self {
        Self { fold: (!stream).then(Box::default), ..Self::default() }
    }

    /// An event that is called `name` and is JSON.
    pub(super) fn handle_event(
        &mut self,
        record: &mut AnswerRecord,
        name: &str,
        data: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if name == "error" {
            return Err(error::from_object(data, &record.context));
        }
        let Some(name) = EVENTS.into_iter().find(|known| name == *known) else {
            repaired(record, "unknown_event");
            return Ok(());
        };
        record.report.chunks = record.report.chunks.saturating_add(1);
        if record.progress.phase() == Phase::Start && !matches!(name, "message_start" | "ping") {
            if name == "message_stop" {
                return Err(Error::misbehaved(INVALID_RESPONSE));
            }
            repaired(record, "message_start");
            self.message_start(record, "{}", out);
        }
        match name {
            "message_start" => match record.progress.phase() {
                Phase::Start => self.message_start(record, data, out),
                _ if self.index == 0 && self.blocks.is_empty() => repaired(record, name),
                // The answer from its beginning, once more.
                _ => return Err(Error::misbehaved(INVALID_RESPONSE)),
            },
            "content_block_start" => self.block_start(record, data, out)?,
            "content_block_delta" => self.block_delta(record, data, out)?,
            "content_block_stop" => self.block_stop(record, data, out),
            "message_delta" => self.message_delta(record, data)?,
            "message_stop" => self.message_stop(record, Some(data), out)?,
            _ if self.fold.is_none() && record.progress.phase() == Phase::Open => {
                self.to(out).event(name, data)
            }
            _ => {}
        }
        self.check_limits(record)
    }

    /// Whether the upstream has said why it stopped.
    pub(super) fn is_complete(&self) -> bool {
        let delta = self.ending.as_deref().and_then(|ending| member(ending, "delta"));
        delta.and_then(|delta| text(delta, "stop_reason")).is_some()
    }

    /// The end of the answer. `stop` is the upstream's event.
    pub(super) fn message_stop(
        &mut self,
        record: &mut AnswerRecord,
        stop: Option<&str>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if stop.is_none() {
            repaired(record, "message_stop");
        }
        if self.index == 0 && self.blocks.is_empty() {
            self.content_of_start(record, out)?;
        }
        self.pump(record, true, out);
        if self.ending.is_none() {
            repaired(record, "message_delta");
        }
        let ending =
            self.ending.take().unwrap_or_else(|| "{\"type\":\"message_delta\"}".to_owned());
        let has_call = record.report.tool_calls > 0;
        let ending = ending::finished(&ending, has_call, self.output_bytes, record)?;
        let mut to = self.to(out);
        to.event("message_delta", &ending);
        to.event("message_stop", stop.unwrap_or("{\"type\":\"message_stop\"}"));
        if let Some(fold) = self.fold.take() {
            if fold.has_too_many_members() {
                return Err(limits::answer_exceeded("fields"));
            }
            fold.write(&mut record.warnings, out);
        }
        record.progress.end();
        Ok(())
    }

    fn to<'a>(&'a mut self, out: &'a mut Vec<u8>) -> Out<'a> {
        Out { fold: self.fold.as_deref_mut(), out }
    }

    /// Bytes of the answer that are kept in memory: what waits, and the message that is collected.
    pub(super) fn held_bytes(&self) -> usize {
        let (held, folded) = self.held();
        held.saturating_add(folded)
    }

    fn held(&self) -> (usize, usize) {
        let open = self.blocks.front().map_or(0, Block::held_bytes);
        let others = BLOCK_BYTES.saturating_mul(self.blocks.len().saturating_add(self.ids.len()));
        let indices = BLOCK_BYTES.saturating_mul(self.closed_early.len());
        let ending = self.ending.as_ref().map_or(0, String::len);
        let held = [self.waiting_bytes, self.id_bytes, others, indices, ending, self.content.len()]
            .into_iter()
            .fold(open, usize::saturating_add);
        let folded = self.fold.as_ref().map_or(0, |fold| fold.held_bytes());
        (held, folded)
    }

    fn check_limits(&self, record: &AnswerRecord) -> Result<(), Error> {
        let (held, folded) = self.held();
        if self.fold.as_ref().is_some_and(|fold| fold.has_too_many_members()) {
            return Err(limits::answer_exceeded("fields"));
        }
        let too_many = self.blocks.len().saturating_add(self.closed_early.len()) > BLOCKS_MAX;
        if too_many
            || held > record.rules.waiting_bytes_max
            || folded > record.rules.response_bytes_max
        {
            return Err(Error::answer_too_large());
        }
        Ok(())
    }

    fn message_start(&mut self, record: &mut AnswerRecord, data: &str, out: &mut Vec<u8>) {
        let message = member(data, "message").unwrap_or("{}");
        if let Some(content) = member(message, "content").filter(|content| *content != "[]") {
            content.clone_into(&mut self.content);
        }
        let started = ending::started(data, message, record);
        self.to(out).event("message_start", &started);
        record.progress.start();
    }

    /// Some servers announce a message that is complete, and send no blocks.
    fn content_of_start(
        &mut self,
        record: &mut AnswerRecord,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let content = std::mem::take(&mut self.content);
        let mut index = 0u64;
        for block in whole::blocks(&content)? {
            repaired(record, "content");
            self.whole_block(record, &block, index, out)?;
            index = index.saturating_add(1);
        }
        Ok(())
    }

    fn whole_block(
        &mut self,
        record: &mut AnswerRecord,
        block: &str,
        index: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let start = format!(
            "{{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{block}}}"
        );
        self.block_start(record, &start, out)?;
        let stop = format!("{{\"type\":\"content_block_stop\",\"index\":{index}}}");
        self.block_stop(record, &stop, out);
        self.check_limits(record)
    }

    fn block_start(
        &mut self,
        record: &mut AnswerRecord,
        data: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let said = member(data, "content_block").unwrap_or("{}");
        let (ids, known) = (record.ids, &mut self.ids);
        let mut mint = |id: &str| {
            if !id.is_empty() && known.add(id.to_owned()) {
                return None;
            }
            let position = u32::try_from(known.len()).unwrap_or(u32::MAX);
            let minted = tool_id::encode(&ids.call(position), known);
            known.add(minted.clone());
            Some(minted)
        };
        let block = Block::start(data, &mut mint);
        if block.is_call {
            if text(said, "name").is_none_or(|name| name.is_blank()) {
                return Err(Error::misbehaved("Upstream sent a tool call without a name"));
            }
            let id = text(said, "id").unwrap_or_default();
            self.id_bytes = self.id_bytes.saturating_add(id.raw().len());
            record.report.tool_calls = record.report.tool_calls.saturating_add(1);
        }
        if let Some(index) = block.index {
            self.closed_early.remove(index);
        }
        record.report.progress = record.report.progress.saturating_add(1);
        self.output_bytes = self.output_bytes.saturating_add(said.len() as u64);
        self.push(record, block, out);
        Ok(())
    }

    fn push(&mut self, record: &mut AnswerRecord, block: Block, out: &mut Vec<u8>) {
        self.waiting_bytes = self.waiting_bytes.saturating_add(block.waiting_bytes());
        self.blocks.push_back(block);
        self.pump(record, false, out);
    }

    fn block_delta(
        &mut self,
        record: &mut AnswerRecord,
        data: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let delta = Delta::read(data);
        record.report.progress = record.report.progress.saturating_add(1);
        self.output_bytes = self.output_bytes.saturating_add(delta.bytes());
        let Some(at) = self.find(&delta) else {
            let late = delta.index.is_some_and(|index| self.closed_early.contains(index));
            match delta.kind {
                DeltaKind::Input if !(late || delta.is_blank()) => {
                    // A call of which nobody said what it calls.
                    return Err(Error::misbehaved(INVALID_RESPONSE));
                }
                DeltaKind::Input | DeltaKind::Other => repaired(record, "late_delta"),
                // It signs what stands in its own block.
                DeltaKind::Signature if late => repaired(record, "late_delta"),
                _ if delta.is_blank() => {}
                _ => {
                    repaired(record, "content_block_start");
                    self.push(record, Block::of_delta(&delta), out);
                    let last = self.blocks.len().saturating_sub(1);
                    self.give(record, last, data, &delta, out);
                }
            }
            return Ok(());
        };
        self.give(record, at, data, &delta, out);
        Ok(())
    }

    /// The block that a delta extends: the last one of its index, else the last one that it fits.
    fn find(&self, delta: &Delta<'_>) -> Option<usize> {
        let fits = |block: &Block| block.fits(delta) && block.stop.is_none();
        if delta.says_nothing() {
            return None;
        }
        if let Some(index) = delta.index {
            let named = |block: &Block| block.index == Some(index) && fits(block);
            if let Some(at) = self.blocks.iter().rposition(named) {
                return Some(at);
            }
            if self.closed_early.contains(index) {
                return None;
            }
        }
        self.blocks.iter().rposition(fits)
    }

    fn give(
        &mut self,
        record: &mut AnswerRecord,
        at: usize,
        data: &str,
        delta: &Delta<'_>,
        out: &mut Vec<u8>,
    ) {
        let Some(block) = self.blocks.get_mut(at) else { return };
        if !block.is_open {
            self.waiting_bytes = self.waiting_bytes.saturating_add(block.wait(data));
            if block.waits_long() {
                self.pump(record, false, out);
            }
            return;
        }
        let mut to = Out { fold: self.fold.as_deref_mut(), out };
        block.delta(data, delta, self.index, &mut to);
        if self.blocks.len() > 1 {
            self.pump(record, false, out);
        }
    }

    fn block_stop(&mut self, record: &mut AnswerRecord, data: &str, out: &mut Vec<u8>) {
        let index = count(data, "index");
        let named = |block: &Block| block.stop.is_none() && block.index == index;
        let found = match index {
            Some(_) => self.blocks.iter().rposition(named),
            None => self.blocks.iter().rposition(|block| block.stop.is_none()),
        };
        match found.and_then(|at| self.blocks.get_mut(at)) {
            Some(block) => block.stop = Some(data.to_owned()),
            None if index.is_some_and(|index| self.closed_early.remove(index)) => {}
            None => repaired(record, "content_block_stop"),
        }
        self.pump(record, false, out);
    }

    /// Sends what can be sent. `all`: no more events come.
    fn pump(&mut self, record: &mut AnswerRecord, all: bool, out: &mut Vec<u8>) {
        while let Some(mut block) = self.blocks.pop_front() {
            let mut to = Out { fold: self.fold.as_deref_mut(), out };
            if !block.is_open {
                self.waiting_bytes = self.waiting_bytes.saturating_sub(block.waiting_bytes());
                block.open(self.index, &mut to);
            }
            let early = block.stop.is_none();
            let is_over = match self.blocks.len() {
                waiting if block.is_complete() => waiting > 0,
                // Of many blocks not each is asked for each that comes.
                waiting if waiting < WAITING_MAX => {
                    block.may_close() && self.blocks.iter().any(Block::waits_long)
                }
                _ => block.may_close(),
            };
            if early && !all && !is_over {
                return self.blocks.push_front(block);
            }
            if early {
                repaired(record, "content_block_stop");
                if let Some(index) = block.index {
                    self.closed_early.add(index);
                }
            }
            if block.close(self.index, &mut to) {
                record.warnings.add("tool_input_conflict");
            }
            self.index = self.index.saturating_add(1);
        }
    }

    fn message_delta(&mut self, record: &mut AnswerRecord, data: &str) -> Result<(), Error> {
        if let Some(failure) = ending::failure(data, &record.context) {
            return Err(failure);
        }
        self.ending = Some(match self.ending.take() {
            None => data.to_owned(),
            Some(earlier) => {
                // Each that comes copies what came before.
                if earlier.len() > ENDING_BYTES_MAX {
                    return Err(Error::answer_too_large());
                }
                repaired(record, "message_delta");
                ending::merged(&earlier, data)
            }
        });
        Ok(())
    }
}

/// Counts a repair; no head can tell of it any more.
fn repaired(record: &mut AnswerRecord, what: &str) {
    record.warnings.add_named("repaired", what);
}

/// The upstream's numbers of blocks, rising.
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

    /// Says whether it was there.
    fn remove(&mut self, index: u64) -> bool {
        let place = self.0.binary_search(&index);
        place.is_ok_and(|place| self.0.remove(place) == index)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}
