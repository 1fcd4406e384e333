//! Writing to the client from a timer, if the setting `deferred_flush` is on.
//!
//! Envoy lets a filter write only in the callback of a chunk, so nothing can be written while the
//! upstream is silent. Envoy does let a filter replace the contents of its buffer and then
//! continue. So every chunk is taken out of the buffer, its translation is kept, the callback
//! pauses, and the next tick writes. This also allows pings, and the error event of a stream that
//! has stalled, which no chunk triggers.

use crate::action::{Action, Side};

/// Maximum number of bytes that one tick writes; far below Envoy's buffer limit of 1 MiB.
const FLUSH_BYTES_MAX: usize = 256 << 10;

/// Maximum number of bytes in the write that ends a held stream; below Envoy's default buffer limit
/// of 1 MiB, beyond which Envoy resets the stream.
const END_BYTES_MAX: usize = 960 << 10;

/// Translated bytes for the client that wait for the next tick.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    out: Vec<u8>,
    due: bool,
    ended: bool,
    /// True while further bytes follow even after the last chunk, which is then held.
    holds_end: bool,
    /// True if the last write ended in the middle of the bytes, perhaps of an event.
    is_split: bool,
}

impl Deferred {
    /// Appends the translation of a chunk, which may be empty. `end` is true if the chunk was the
    /// last.
    pub(crate) fn push(&mut self, out: &[u8], end: bool) {
        self.out.extend_from_slice(out);
        self.ended |= end;
        self.due = true;
    }

    /// Holds the end of the stream until [`Self::release_end`], because calls are open whose
    /// answers the client gets, too.
    pub(crate) fn hold_end(&mut self) {
        self.holds_end = true;
    }

    /// Lets the end of the stream be written, with all bytes of the answer. Returns false if Envoy
    /// could not take the bytes in one write.
    pub(crate) fn release_end(&mut self) -> bool {
        (self.holds_end, self.due) = (false, true);
        self.out.len() <= END_BYTES_MAX
    }

    /// Replaces the bytes that are not written yet. Returns false, and changes nothing, if the
    /// client has a part of them.
    pub(crate) fn replace(&mut self, out: Vec<u8>) -> bool {
        if !self.is_split {
            self.out = out;
        }
        !self.is_split
    }

    /// Returns true if the last chunk of the upstream has come.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Returns true if a chunk was translated since the last tick, or bytes are left to write.
    pub(crate) fn is_due(&self) -> bool {
        // After the last chunk, Envoy lets the filter write once.
        self.due && !(self.ended && self.holds_end)
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.out.len()
    }

    /// Returns the actions that write the waiting bytes. Once the last chunk has come, all bytes
    /// are written together, because Envoy ends the stream after them.
    pub(crate) fn flush(&mut self) -> Vec<Action> {
        if !self.is_due() {
            return Vec::new();
        }
        let size = if self.ended { self.out.len() } else { self.out.len().min(FLUSH_BYTES_MAX) };
        let rest = self.out.split_off(size);
        let out = std::mem::replace(&mut self.out, rest);
        self.due = !self.out.is_empty();
        self.is_split = self.due;
        vec![Action::ReplaceBody(Side::Response, out), Action::ContinueResponse]
    }
}
