//! A client's body while it comes.

/// Thresholds from which on a body is trusted to become as long as its `content-length` says: bytes
/// that have come, and the part of that length that they are.
const TRUSTED_BYTES: usize = 1 << 20;
const TRUSTED_PART: usize = 2;

/// The part of a client's body that has come.
#[derive(Debug)]
pub(crate) struct Collected {
    bytes: Vec<u8>,
    /// Length of the body, as its `content-length` says.
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

    /// Returns the memory that the body takes. What is reserved counts, because nobody else can
    /// have it.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns true if the body is as long as its `content-length` says.
    pub(crate) fn is_complete(&self) -> bool {
        self.length == Some(self.size())
    }

    /// Adds a piece. `fits` reserves the memory that the body then takes. `false`: there is not so
    /// much.
    #[must_use]
    pub(crate) fn push(&mut self, piece: Vec<u8>, mut fits: impl FnMut(usize) -> bool) -> bool {
        let size = self.size().saturating_add(piece.len());
        if self.bytes.is_empty() {
            self.bytes = piece;
            return fits(self.bytes.capacity());
        }
        if size > self.bytes.capacity() {
            // Where memory is scarce, an eighth more: growing by each piece would copy the body for
            // each of them.
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

    /// Returns the memory that is reserved once a body has so many bytes. Doubling to the end would
    /// hold up to three times a large body.
    fn wanted(&self, size: usize) -> usize {
        self.trusted_length(size).max(self.bytes.capacity().saturating_mul(2)).max(size)
    }

    /// Returns the length that the body will have; 0 where that is not known, or not believed.
    fn trusted_length(&self, size: usize) -> usize {
        let length = self.length.unwrap_or_default();
        let enough = TRUSTED_BYTES.max(length.checked_div(TRUSTED_PART).unwrap_or_default());
        if size > enough { length } else { 0 }
    }
}

#[cfg(test)]
mod tests;
