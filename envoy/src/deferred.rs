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

/// Translated bytes for the client that wait for the next tick.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    out: Vec<u8>,
    due: bool,
    ended: bool,
}

impl Deferred {
    /// Appends the translation of a chunk, which may be empty. `end` is true if the chunk was the
    /// last.
    pub(crate) fn push(&mut self, out: &[u8], end: bool) {
        self.out.extend_from_slice(out);
        self.ended |= end;
        self.due = true;
    }

    /// Returns true if a chunk was translated since the last tick, or bytes are left to write.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.out.len()
    }

    /// Returns the actions that write the waiting bytes. Once the last chunk has come, all bytes
    /// are written together, because Envoy ends the stream after them.
    pub(crate) fn flush(&mut self) -> Vec<Action> {
        if !self.due {
            return Vec::new();
        }
        let size = if self.ended { self.out.len() } else { self.out.len().min(FLUSH_BYTES_MAX) };
        let rest = self.out.split_off(size);
        let out = std::mem::replace(&mut self.out, rest);
        self.due = !self.out.is_empty();
        vec![Action::ReplaceBody(Side::Response, out), Action::ContinueResponse]
    }
}
