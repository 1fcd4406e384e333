//! A client's body while it comes.

/// A body of which so many bytes have come, and this part of what its `content-length` says, is trusted to become
/// as long as that.
const TRUSTED_BYTES: usize = 1 << 20;
const TRUSTED_PART: usize = 8;

/// What has come of a body.
#[derive(Debug)]
pub(crate) struct Collected {
    bytes: Vec<u8>,
    /// What its `content-length` says.
    length: Option<usize>,
}

impl Collected {
    pub(crate) fn new(length: Option<usize>) -> Self {
        Self { bytes: Vec::new(), length }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The memory that it takes. What is reserved counts, because nobody else can have it.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether it is as long as it says.
    pub(crate) fn is_complete(&self) -> bool {
        self.length == Some(self.size())
    }

    /// Adds a piece. `false`: there was no room for it.
    #[must_use]
    pub(crate) fn push(&mut self, piece: Vec<u8>, room_bytes: usize) -> bool {
        let size = self.size().saturating_add(piece.len());
        if size > room_bytes {
            return false;
        }
        if self.bytes.is_empty() {
            self.bytes = piece;
            return true;
        }
        if size > self.bytes.capacity()
            && self.bytes.try_reserve_exact(self.more(piece.len(), room_bytes)).is_err()
        {
            return false;
        }
        self.bytes.extend_from_slice(&piece);
        true
    }

    /// How much is reserved for a piece that finds no room. Doubling to the end would hold up to three times a large
    /// body.
    fn more(&self, piece_bytes: usize, room_bytes: usize) -> usize {
        let size = self.size().saturating_add(piece_bytes);
        let rest = self.trusted_length(size).saturating_sub(size);
        if rest > 0 {
            return piece_bytes.saturating_add(rest.min(room_bytes.saturating_sub(size)));
        }
        // Doubling, as far as there is room.
        let double = self.bytes.capacity().min(room_bytes.saturating_sub(self.size()));
        double.max(piece_bytes)
    }

    /// How long the body will be; 0 where that is not known, or not believed.
    fn trusted_length(&self, size: usize) -> usize {
        let length = self.length.unwrap_or_default();
        let enough = TRUSTED_BYTES.max(length.checked_div(TRUSTED_PART).unwrap_or_default());
        if size > enough { length } else { 0 }
    }
}

#[cfg(test)]
mod tests;
