//! Lone surrogates in JSON: `"\ud83d"` without its second half. Clients write them when they cut a
//! text in the middle of an emoji; some upstreams refuse the whole body for this.

use std::borrow::Cow;

use crate::json::push_whole;
use crate::text::words;

/// Replaces each lone surrogate in `body` by U+FFFD. The body need not be valid JSON. All offsets
/// stay, because the escapes have the same length.
#[must_use]
pub(crate) fn without_halves(body: &str) -> Cow<'_, str> {
    // Almost no body has escapes of surrogates at all: JavaScript and Rust write the character
    // itself.
    let first = words::find(body, "\\u").and_then(|at| body.get(at..)).unwrap_or_default();
    if !words::has_any(first, &["\\ud", "\\uD"]) {
        return Cow::Borrowed(body);
    }
    let mut whole = Vec::with_capacity(body.len());
    push_whole(&mut whole, body);
    String::from_utf8(whole).map_or(Cow::Borrowed(body), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_halves_are_replaced() {
        for (body, expected) in [
            (r#""plain \n \u00e9""#, r#""plain \n \u00e9""#),
            (r#""\ud83c\udf89""#, r#""\ud83c\udf89""#),
            (r#""\uD83C\uDF89\n""#, r#""\uD83C\uDF89\n""#),
            (r#""\ud83c""#, r#""\ufffd""#),
            (r#""a\ud83cb\udf89""#, r#""a\ufffdb\ufffd""#),
            (r#""\udf89\ud83c\n""#, r#""\ufffd\ufffd\n""#),
            (r#""\ud83c\ud83c\udf89""#, r#""\ufffd\ud83c\udf89""#),
            (r#""\\ud83c""#, r#""\\ud83c""#),
            (r#""\\\ud83c""#, r#""\\\ufffd""#),
            (r#""\ud8"#, r#""\ud8"#),
            (r#""\ud8é漢"#, r#""\ud8é漢"#),
            (r#""\ud83c \"#, r#""\ufffd \"#),
        ] {
            assert_eq!(without_halves(body), expected);
            assert_eq!(without_halves(body).len(), body.len());
        }
    }
}
