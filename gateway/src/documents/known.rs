//! Cache of document texts that were read recently.

use std::collections::VecDeque;
use std::time::Duration;

use creole::{DocumentText, ReadDocuments, Unread};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::Outcome;

/// Maximum size of all cached texts together, in bytes.
const BYTES_MAX: usize = 16 << 20;

/// Minimum size, in bytes, that a cache entry counts with. So there are at most two thousand
/// entries to search.
const ENTRY_BYTES_MIN: usize = 8 << 10;

/// Time for which the text of a document is cached if another reading of the document might give
/// another text. Until then a conversation keeps the same beginning, and no request waits for the
/// same document again.
const KEPT: Duration = Duration::from_mins(10);

/// Key of a cached text: a hash of the document and of the limits for reading it.
pub(super) type Key = [u8; 32];

/// Cache of texts by a hash of the document, so that only a client that has the whole document can
/// get its text.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Cached texts; the most recently used is the last.
    texts: VecDeque<KnownEntry>,
    bytes: usize,
}

#[derive(Debug)]
struct KnownEntry {
    key: Key,
    text: Result<DocumentText, Unread>,
    /// Time at which the cached text expires; `None` if the text never expires.
    until: Option<Instant>,
}

pub(super) fn key(document: &[u8], limits: &ReadDocuments) -> Key {
    let hash = Sha256::new().chain_update(limits.pages_max.to_le_bytes());
    hash.chain_update(document).finalize().into()
}

impl Known {
    pub(super) fn get(&mut self, key: &Key) -> Option<Result<DocumentText, Unread>> {
        let at = self.texts.iter().position(|entry| entry.key == *key)?;
        let found = self.texts.remove(at)?;
        if found.until.is_some_and(|until| until <= Instant::now()) {
            self.bytes = self.bytes.saturating_sub(found.bytes());
            return None;
        }
        let text = found.text.clone();
        self.texts.push_back(found);
        Some(text)
    }

    pub(super) fn put(&mut self, key: Key, outcome: &Outcome) {
        // Two requests may have had the same document read at the same time.
        if self.get(&key).is_some() {
            return;
        }
        let until = if outcome.is_final { None } else { Instant::now().checked_add(KEPT) };
        let entry = KnownEntry { key, text: outcome.text.clone(), until };
        self.bytes = self.bytes.saturating_add(entry.bytes());
        self.texts.push_back(entry);
        while self.bytes > BYTES_MAX
            && let Some(old) = self.texts.pop_front()
        {
            self.bytes = self.bytes.saturating_sub(old.bytes());
        }
    }
}

impl KnownEntry {
    fn bytes(&self) -> usize {
        self.text.as_ref().map_or(0, |it| it.text.len()).max(ENTRY_BYTES_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_texts_make_room() {
        let mut known = Known::default();
        let text = || Outcome {
            text: Ok(DocumentText::whole("x".repeat(BYTES_MAX / 4 + 1))),
            is_final: true,
            is_late: false,
        };
        (0..3).for_each(|at| known.put([at; 32], &text()));
        // Getting entry 0 makes entry 1 the oldest.
        assert!(known.get(&[0; 32]).is_some());
        known.put([4; 32], &text());
        let has = |known: &mut Known, at| known.get(&[at; 32]).is_some();
        assert_eq!([0, 1, 2, 4].map(|at| has(&mut known, at)), [true, false, true, true]);
        assert!(known.bytes <= BYTES_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_text_that_was_cut_off_is_kept_for_minutes_and_a_whole_one_for_good() {
        let mut known = Known::default();
        for (at, is_final) in [(0, false), (1, true)] {
            known.put(
                [at; 32],
                &Outcome {
                    text: Ok(DocumentText::whole("text".to_owned())),
                    is_final,
                    is_late: !is_final,
                },
            );
        }
        tokio::time::advance(KEPT - Duration::from_secs(1)).await;
        assert!(known.get(&[0; 32]).is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(known.get(&[0; 32]).is_none() && known.get(&[1; 32]).is_some());
        assert_eq!(known.bytes, ENTRY_BYTES_MIN);
    }

    #[test]
    fn other_limits_give_another_text() {
        let few = ReadDocuments { pages_max: 1, ..ReadDocuments::default() };
        assert_ne!(key(b"%PDF", &few), key(b"%PDF", &ReadDocuments::default()));
        assert_ne!(key(b"%PDF", &few), key(b"%PDF-", &few));
    }
}
