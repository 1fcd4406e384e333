//! Detection of deltas that repeat the whole text so far.
//!
//! Some servers end a stream of deltas with the whole text, in the chunk with the finish reason or
//! beside the tool calls. No field marks such a delta. But an ordinary piece is never as long as
//! all pieces before it together with the same beginning and end.

/// Minimum number of bytes of a text for which a repetition is no coincidence.
const LONG: usize = 32;

/// Number of bytes that are compared at both ends of a text.
const END_BYTES: usize = 64;

/// Number of bytes of the text's end that are kept before older bytes are dropped.
const KEPT_BYTES: usize = 4 * END_BYTES;

/// Start, end and length of a text so far, to detect a delta that repeats the text.
#[derive(Debug, Default)]
pub(super) struct Echo {
    start: Vec<u8>,
    /// End of the text: at least [`END_BYTES`] bytes, if the text is that long.
    end: Vec<u8>,
    bytes: usize,
    /// True if the text came in more than one piece.
    is_of_pieces: bool,
    /// True if the text is more than a single repeated character.
    is_telling: bool,
}

impl Echo {
    /// Returns true if `piece`, which is escaped, repeats the whole text before it. Otherwise adds
    /// the piece to the text.
    pub(super) fn repeats(&mut self, piece: &str) -> bool {
        let piece = piece.as_bytes();
        let end = self.end.get(self.end.len().saturating_sub(END_BYTES)..).unwrap_or_default();
        if self.is_of_pieces
            && self.is_telling
            && self.bytes >= LONG
            && piece.len() == self.bytes
            && piece.starts_with(&self.start)
            && piece.ends_with(end)
        {
            return true;
        }
        if self.bytes == 0 {
            self.start.reserve_exact(END_BYTES);
            self.end.reserve_exact(KEPT_BYTES.saturating_add(END_BYTES));
        }
        self.is_of_pieces |= self.bytes > 0 && !piece.is_empty();
        self.bytes = self.bytes.saturating_add(piece.len());
        if let Some(room) = END_BYTES.checked_sub(self.start.len()) {
            self.start.extend_from_slice(piece.get(..room).unwrap_or(piece));
        }
        if !self.is_telling {
            let first = self.start.first();
            self.is_telling = piece.iter().any(|byte| Some(byte) != first);
        }
        let last = piece.get(piece.len().saturating_sub(END_BYTES)..).unwrap_or_default();
        // Old bytes are dropped only now and then, not with each piece.
        if self.end.len() >= KEPT_BYTES {
            self.end.drain(..self.end.len().saturating_sub(END_BYTES));
        }
        self.end.extend_from_slice(last);
        false
    }
}
