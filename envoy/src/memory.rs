//! Account of the memory of one VM, which all its streams share.

use std::collections::BTreeMap;

use creole::{Budget, Holding, Millis, Owner};

use crate::contexts::ContextId;
use crate::stream::Progress;

/// Memory counted for each stream in addition to its head and bodies, in this VM and in Envoy, in
/// bytes.
const STREAM_BYTES: usize = 8 << 10;

/// Granularity in which held bytes are counted, so that a flowing stream does not change the budget
/// with each chunk.
const STEP_BYTES: usize = 4 << 10;

/// Memory account of all streams of a VM.
#[derive(Debug)]
pub(crate) struct Memory {
    budget: Budget,
    bytes_max: usize,
    /// Streams that hold memory, by their entries in the memory budget.
    holders: BTreeMap<Holding, ContextId>,
}

/// Memory counted for one stream.
#[derive(Debug)]
pub(crate) struct Counted {
    /// Entry of the stream in the memory budget; `None` after the memory was given to other
    /// streams.
    holding: Option<Holding>,
    head_bytes: usize,
    bytes: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Self { budget: Budget::new(0), bytes_max: 0, holders: BTreeMap::new() }
    }
}

impl Memory {
    /// Raises the limit to `bytes_max`, if that is larger. All plugins share the VM, so the largest
    /// limit applies.
    pub(crate) fn raise_limit(&mut self, bytes_max: usize) {
        self.bytes_max = self.bytes_max.max(bytes_max);
        self.budget.set_limit(self.bytes_max);
    }

    /// Registers a stream whose head has `head_bytes` bytes. A refused request gets only free
    /// memory, and is the first to lose it. Returns `None` if too little memory is left.
    pub(crate) fn begin(
        &mut self,
        id: ContextId,
        owner: Owner,
        head_bytes: usize,
        progress: Progress,
        now: Millis,
    ) -> Option<Counted> {
        let holding = match progress {
            Progress::Refuses => self.budget.begin_stranger(owner, now),
            _ => self.budget.begin(owner, now),
        };
        let mut counted = Counted { holding: Some(holding), head_bytes, bytes: 0 };
        if !self.set(&mut counted, 0, now) {
            self.budget.end(holding);
            return None;
        }
        self.holders.insert(holding, id);
        Some(counted)
    }

    /// Sets the number of body bytes that a stream holds. Returns false, and changes nothing, if
    /// too little memory is left.
    pub(crate) fn set(&mut self, counted: &mut Counted, body_bytes: usize, now: Millis) -> bool {
        let bytes = self.all_bytes(counted.head_bytes, body_bytes);
        let Some(holding) = counted.holding.filter(|_| bytes != counted.bytes) else { return true };
        let fits = self.budget.set(holding, bytes, now).is_ok();
        if fits {
            counted.bytes = bytes;
        }
        fits
    }

    /// Notes that body bytes have arrived for a stream.
    pub(crate) fn note_bytes(&mut self, counted: &Counted, bytes: usize, now: Millis) {
        if let Some(holding) = counted.holding {
            self.budget.note_bytes(holding, bytes, now);
        }
    }

    /// Notes the progress of a request, which decides whether its memory may be given to others.
    pub(crate) fn note_progress(&mut self, counted: &Counted, progress: Progress) {
        match (counted.holding, progress) {
            (Some(holding), Progress::Waits) => self.budget.complete(holding),
            (Some(holding), Progress::Answers) => self.budget.begin_answer(holding),
            _ => {}
        }
    }

    /// Frees the memory of a stream.
    pub(crate) fn end(&mut self, counted: &Counted) {
        if let Some(holding) = counted.holding {
            self.budget.end(holding);
            self.holders.remove(&holding);
        }
    }

    /// Returns a stream that has to give up its memory to others, if any.
    pub(crate) fn poll_given_up(&mut self) -> Option<ContextId> {
        let holding = self.budget.poll_given_up()?;
        self.holders.remove(&holding)
    }

    /// Returns the number of bytes that count for a stream. With limits so small that only tests
    /// set them, only bodies count.
    fn all_bytes(&self, head_bytes: usize, body_bytes: usize) -> usize {
        let stream = STREAM_BYTES.min(self.bytes_max / 2048);
        let step = STEP_BYTES.min(self.bytes_max / 65_536).max(1);
        let head = if stream < STREAM_BYTES { 0 } else { head_bytes };
        body_bytes.saturating_add(head).div_ceil(step).saturating_mul(step).saturating_add(stream)
    }
}

impl Counted {
    /// Notes that the stream's memory was given to other streams.
    pub(crate) fn give_up(&mut self) {
        self.holding = None;
    }
}
