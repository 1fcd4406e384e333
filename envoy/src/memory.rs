//! The memory of one VM, which all its streams share.

use std::collections::BTreeMap;

use creole::{Budget, Holding, Millis, Owner};

use crate::contexts::ContextId;
use crate::stream::Progress;

/// Memory of a stream beside its bodies and its head, in this VM and in Envoy.
const STREAM_BYTES: usize = 8 << 10;

/// Step in which held bytes are counted, so that a stream that flows changes nothing.
const STEP_BYTES: usize = 4 << 10;

/// Memory that the streams of a VM hold.
#[derive(Debug)]
pub(crate) struct Memory {
    budget: Budget,
    bytes_max: usize,
    /// Streams that hold memory.
    holders: BTreeMap<Holding, ContextId>,
}

/// Memory counted for one stream.
#[derive(Debug)]
pub(crate) struct Counted {
    /// `None`: other streams have got the memory.
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
    /// Raises the limit to that of one more plugin: all plugins share the VM.
    pub(crate) fn raise_limit(&mut self, bytes_max: usize) {
        self.bytes_max = self.bytes_max.max(bytes_max);
        self.budget.set_limit(self.bytes_max);
    }

    /// Counts a stream with a head of so many bytes. A refused one gets only free memory, and gives
    /// it up first. `None`: there is no memory for it.
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

    /// Counts the bytes of bodies that a stream holds. `false`: there is not so much memory, and
    /// nothing has changed.
    pub(crate) fn set(&mut self, counted: &mut Counted, body_bytes: usize, now: Millis) -> bool {
        let bytes = self.all_bytes(counted.head_bytes, body_bytes);
        let Some(holding) = counted.holding.filter(|_| bytes != counted.bytes) else { return true };
        let fits = self.budget.set(holding, bytes, now).is_ok();
        if fits {
            counted.bytes = bytes;
        }
        fits
    }

    /// Notes that bytes of a body have come.
    pub(crate) fn note_bytes(&mut self, counted: &Counted, bytes: usize, now: Millis) {
        if let Some(holding) = counted.holding {
            self.budget.note_bytes(holding, bytes, now);
        }
    }

    /// Notes how far the stream of a request is.
    pub(crate) fn note_progress(&mut self, counted: &Counted, progress: Progress) {
        match (counted.holding, progress) {
            (Some(holding), Progress::Waits) => self.budget.complete(holding),
            (Some(holding), Progress::Answers) => self.budget.begin_answer(holding),
            _ => {}
        }
    }

    /// Frees what a stream held.
    pub(crate) fn end(&mut self, counted: &Counted) {
        if let Some(holding) = counted.holding {
            self.budget.end(holding);
            self.holders.remove(&holding);
        }
    }

    /// Returns a stream that has to give its memory up.
    pub(crate) fn poll_given_up(&mut self) -> Option<ContextId> {
        let holding = self.budget.poll_given_up()?;
        self.holders.remove(&holding)
    }

    /// Returns the bytes that count for a stream. Limits so small that only a test sets them count
    /// bodies alone.
    fn all_bytes(&self, head_bytes: usize, body_bytes: usize) -> usize {
        let stream = STREAM_BYTES.min(self.bytes_max / 2048);
        let step = STEP_BYTES.min(self.bytes_max / 65_536).max(1);
        let head = if stream < STREAM_BYTES { 0 } else { head_bytes };
        body_bytes.saturating_add(head).div_ceil(step).saturating_mul(step).saturating_add(stream)
    }
}

impl Counted {
    /// Notes that other streams have got the memory.
    pub(crate) fn give_up(&mut self) {
        self.holding = None;
    }
}
