//! Splitting of texts into pieces, like the tokens of a model.

/// Maximum number of pieces in one text. Longer texts are split into larger pieces, so that
/// megabytes stay cheap.
const TOKENS_MAX: usize = 4096;

/// Splits a text into pieces like a model's tokens: words with the space before them, long words in
/// parts.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    let most = text.len().div_euclid(TOKENS_MAX).saturating_add(8);
    let mut tokens = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest
            .char_indices()
            .skip(1)
            .find(|(at, c)| c.is_whitespace() || *at >= most)
            .map_or(rest.len(), |(at, _)| at);
        // A large text is not cut at every word.
        let end = if most > 8 { floor(rest, most) } else { word };
        let Some((token, after)) = rest.split_at_checked(end) else { break };
        tokens.push(token);
        rest = after;
    }
    tokens
}

/// Returns the last character boundary at or before `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
