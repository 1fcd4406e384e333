//! Texts that were read of late.

use std::collections::VecDeque;

use creole::{ReadDocuments, Unread};
use sha2::{Digest as _, Sha256};

/// What all texts have together.
const BYTES_MAX: usize = 16 << 20;

/// What an entry has beside its text.
const ENTRY_BYTES: usize = 128;

/// Another document, or other limits, are another key.
pub(super) type Key = [u8; 32];

/// A text for whoever has the document: nobody gets at it without all bytes of that.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The one that was wanted last at the end.
    texts: VecDeque<(Key, Result<String, Unread>)>,
    bytes: usize,
}

pub(super) fn key(document: &[u8], limits: &ReadDocuments) -> Key {
    let limits = [limits.pages_max, limits.text_bytes_max].map(usize::to_le_bytes);
    let hash = Sha256::new().chain_update(limits.as_flattened());
    hash.chain_update(document).finalize().into()
}

impl Known {
    pub(super) fn get(&mut self, key: &Key) -> Option<Result<String, Unread>> {
        let at = self.texts.iter().position(|(known, _)| known == key)?;
        let found = self.texts.remove(at)?;
        let text = found.1.clone();
        self.texts.push_back(found);
        Some(text)
    }

    pub(super) fn put(&mut self, key: Key, text: Result<String, Unread>) {
        // Two requests may have had it read at one time.
        if self.get(&key).is_some() {
            return;
        }
        self.bytes = self.bytes.saturating_add(bytes(&text));
        self.texts.push_back((key, text));
        while self.bytes > BYTES_MAX
            && let Some((_, old)) = self.texts.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(bytes(&old));
        }
    }
}

fn bytes(text: &Result<String, Unread>) -> usize {
    text.as_ref().map_or(0, String::len).saturating_add(ENTRY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_texts_make_room() {
        let mut known = Known::default();
        let text = || Ok("x".repeat(BYTES_MAX / 4));
        (0..3).for_each(|at| known.put([at; 32], text()));
        // Wanted again, so that the next one is the oldest.
        assert!(known.get(&[0; 32]).is_some());
        known.put([3; 32], text());
        let has = |known: &mut Known, at| known.get(&[at; 32]).is_some();
        assert_eq!([0, 1, 2, 3].map(|at| has(&mut known, at)), [true, false, true, true]);
        assert!(known.bytes <= BYTES_MAX);
    }

    #[test]
    fn other_limits_give_another_text() {
        let few = ReadDocuments { pages_max: 1, ..ReadDocuments::default() };
        assert_ne!(key(b"%PDF", &few), key(b"%PDF", &ReadDocuments::default()));
        assert_ne!(key(b"%PDF", &few), key(b"%PDF-", &few));
    }
}
