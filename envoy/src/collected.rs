//! Request body of a client, collected as it arrives.

/// Thresholds from which a body's `content-length` is trusted: the bytes that have arrived, and the
/// fraction of the announced length (one half). Earlier, no memory is reserved for the announced
/// length.
const TRUSTED_BYTES: usize = 1 << 20;
const TRUSTED_PART: usize = 2;

/// Received part of a client's request body.
#[derive(Debug)]
pub(crate) struct Collected {
    bytes: Vec<u8>,
    /// Length of the body according to `content-length`.
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

    /// Returns the number of bytes of memory that the body occupies. Reserved capacity counts,
    /// because no other stream can use it.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns true if the body has the length of its `content-length`.
    pub(crate) fn is_complete(&self) -> bool {
        self.length == Some(self.size())
    }

    /// Appends a chunk. `fits` reserves the memory that the body then needs. Returns false if too
    /// little memory is left.
    #[must_use]
    pub(crate) fn push(&mut self, piece: Vec<u8>, mut fits: impl FnMut(usize) -> bool) -> bool {
        let size = self.size().saturating_add(piece.len());
        if self.bytes.is_empty() {
            self.bytes = piece;
            return fits(self.bytes.capacity());
        }
        if size > self.bytes.capacity() {
            // If memory is scarce, an eighth more is reserved: growing by each piece would copy the
            // body for each piece.
            let least = size.saturating_add(size / 8);
            let wanted = [self.wanted(size), least].into_iter().find(|bytes| fits(*bytes));
            let Some(capacity) = wanted else { return false };
            let more = capacity.saturating_sub(self.size());
            if self.bytes.try_reserve_exact(more).is_err() {
                return false;
            }
        }
        self.bytes.extend_from_slice(&piece);
        true
    }

    /// Returns the capacity to reserve for a body that has grown to `size` bytes. Doubling to the
    /// end would hold up to three times a large body.
    fn wanted(&self, size: usize) -> usize {
        self.trusted_length(size).max(self.bytes.capacity().saturating_mul(2)).max(size)
    }

    /// Returns the announced length of the body; 0 if it is unknown or not trusted yet.
    fn trusted_length(&self, size: usize) -> usize {
        let length = self.length.unwrap_or_default();
        let enough = TRUSTED_BYTES.max(length.checked_div(TRUSTED_PART).unwrap_or_default());
        if size > enough { length } else { 0 }
    }
}

#[cfg(test)]
mod tests;
