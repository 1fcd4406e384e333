//! Search for numbers beside given words of an error message.

use crate::text::words;

/// Returns the number that follows `word` in the same clause: `context length of only 8192`.
pub(super) fn number_after(text: &str, word: &str) -> Option<u64> {
    const BETWEEN_MAX: usize = 24;
    words::places(text, word).find_map(|at| {
        let rest = text.get(at..)?.strip_prefix(word)?;
        let digits = rest.find(|letter: char| letter.is_ascii_digit())?;
        let (between, rest) = rest.split_at_checked(digits)?;
        // The number in "exceeded the context length by 12 tokens" is no length, and neither is the
        // number in "context length of DeepSeek-V3".
        let other = between.contains([';', '>', '`', '\''])
            || words::has_any(between, &[". ", ", ", " by ", " and ", "[", "http"]);
        let of_name = between.bytes().last().is_some_and(words::is_name_byte);
        let is_beside = between.len() <= BETWEEN_MAX && !other && !of_name;
        is_beside.then(|| leading_number(rest)).flatten()
    })
}

/// Returns the number directly before `word`: `5000 in the messages`.
pub(super) fn number_before(text: &str, word: &str) -> Option<u64> {
    words::places(text, word).find_map(|at| {
        let before = words::trim_end(text.get(..at)?, b" (`'");
        let start = words::trim_end(before, b"0123456789").len();
        before.get(start..)?.parse().ok()
    })
}

/// Returns the number at the start of a text.
pub(super) fn leading_number(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}
