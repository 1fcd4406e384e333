//! Deltas that bring all of a text once more.
//!
//! Some servers end a stream of deltas with all of it, in the chunk with the finish reason or beside
//! the calls. Nothing marks it, but no piece of a text is as long as all pieces before it together,
//! and begins and ends like them.

/// Bytes of a text that no piece repeats by chance.
const LONG: usize = 32;

/// So many bytes of both ends of a text are compared.
const END_BYTES: usize = 64;

/// Bytes of the end that are kept before the older ones are let go.
const KEPT_BYTES: usize = 4 * END_BYTES;

/// What came of one text.
#[derive(Debug, Default)]
pub(super) struct Echo {
    start: Vec<u8>,
    /// At least as many bytes, if there are.
    end: Vec<u8>,
    bytes: usize,
    /// More than one piece came.
    is_of_pieces: bool,
    /// There is more in it than one character repeated.
    is_telling: bool,
}

impl Echo {
    /// Whether `piece`, which is escaped, is all of the text before it.
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
        // What is old is let go now and then, and not with each piece.
        if self.end.len() >= KEPT_BYTES {
            self.end.drain(..self.end.len().saturating_sub(END_BYTES));
        }
        self.end.extend_from_slice(last);
        false
    }
}
