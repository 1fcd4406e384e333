//! Writing from a timer, where `deferred_flush` asks for it.
//!
//! Envoy lets a filter write only in the callback of a piece, so that nothing can be said while the
//! upstream is silent. It does let one replace what waits in its buffer and go on. So here every
//! piece is taken out, what comes of it is kept, the callback pauses, and the next tick writes:
//! also pings, and the error event of a stream that has stalled, for which there is no piece at
//! all.

use crate::action::{Action, Side};

/// Maximum number of bytes that one tick writes: far below Envoy's own limit of a megabyte.
const FLUSH_BYTES_MAX: usize = 256 << 10;

/// Bytes for the client that wait for the next tick.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    out: Vec<u8>,
    due: bool,
    ended: bool,
}

impl Deferred {
    /// Keeps what came of a piece, if only that it came. `end`: it was the last one.
    pub(crate) fn push(&mut self, out: &[u8], end: bool) {
        self.out.extend_from_slice(out);
        self.ended |= end;
        self.due = true;
    }

    /// Returns true if the next tick has something to do.
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.out.len()
    }

    /// Writes. What follows the last piece must go in one go: Envoy ends the stream after it.
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
