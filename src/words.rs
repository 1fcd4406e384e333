//! Looking for words in a text.
//!
//! `str::find` for a whole word is made for long and hostile patterns. Ours are short and our own,
//! and its tables and checks, written out at each place that looks for one, were ten kilobytes of
//! each artefact.

use memchr::memchr;

/// Where `word` stands first in `text`.
#[must_use]
pub fn find(text: &str, word: &str) -> Option<usize> {
    // Words often begin with what is frequent: quotes, spaces, backslashes.
    let middle = word.len() / 2;
    let wanted = word.as_bytes();
    let Some(letter) = wanted.get(middle) else { return Some(0) };
    let bytes = text.as_bytes();
    let mut from = middle;
    loop {
        let at = memchr(*letter, bytes.get(from..)?)?.saturating_add(from);
        let start = at.saturating_sub(middle);
        if bytes.get(start..)?.starts_with(wanted) {
            return Some(start);
        }
        from = at.saturating_add(1);
    }
}

/// Whether `word` stands in `text`.
#[must_use]
pub fn has(text: &str, word: &str) -> bool {
    find(text, word).is_some()
}

/// Whether one of `words` stands in `text`.
#[must_use]
pub fn has_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| has(text, word))
}

/// What stands before and after the first `word` in `text`.
pub fn split_once<'t>(text: &'t str, word: &str) -> Option<(&'t str, &'t str)> {
    let at = find(text, word)?;
    Some((text.get(..at)?, text.get(at.saturating_add(word.len())..)?))
}

/// The places of `word` in `text`, from left to right, none within another.
pub fn places(text: &str, word: &str) -> impl Iterator<Item = usize> {
    let mut from = 0usize;
    std::iter::from_fn(move || {
        let at = find(text.get(from..)?, word)?.saturating_add(from);
        from = at.saturating_add(word.len().max(1));
        Some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_are_found_where_the_standard_library_finds_them(
            text in "[abé]{0,12}", word in "[abé]{1,3}"
        ) {
            prop_assert_eq!(find(&text, &word), text.find(&word));
            prop_assert_eq!(split_once(&text, &word), text.split_once(&word));
            let expected: Vec<usize> = text.match_indices(&word).map(|(at, _)| at).collect();
            prop_assert_eq!(places(&text, &word).collect::<Vec<_>>(), expected);
            prop_assert_eq!(has_any(&text, &["x", &word]), text.contains(&word));
        }
    }
}
