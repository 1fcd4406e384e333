//! Half surrogate pairs: `"\ud83d"` without its second half. Clients write them when they cut a text
//! in the middle of an emoji; some upstreams refuse the whole body for it.

use std::borrow::Cow;

use crate::words;

/// The same body with each lone half replaced by U+FFFD, so that no reader finds one any more. An
/// escape is as long as another one, so all offsets stay.
#[must_use]
pub(super) fn without_halves(body: &str) -> Cow<'_, str> {
    // Almost no body has any surrogate escapes at all: JavaScript and Rust write the character.
    let first = words::find(body, "\\u").and_then(|at| body.get(at..)).unwrap_or_default();
    if !words::has_any(first, &["\\ud", "\\uD"]) {
        return Cow::Borrowed(body);
    }
    let mut whole = String::with_capacity(body.len());
    let mut rest = body;
    while let Some((plain, from)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        whole.push_str(plain);
        let length = match half(from) {
            Some(Half::High) if from.get(6..).and_then(half) == Some(Half::Low) => 12,
            Some(_) => {
                whole.push_str("\\ufffd");
                rest = from.get(6..).unwrap_or_default();
                continue;
            }
            // Any other escape: what follows the backslash must not be read as the next one.
            None => from.chars().take(2).map(char::len_utf8).sum(),
        };
        let (kept, after) = from.split_at_checked(length).unwrap_or((from, ""));
        whole.push_str(kept);
        rest = after;
    }
    whole.push_str(rest);
    Cow::Owned(whole)
}

#[derive(PartialEq)]
enum Half {
    High,
    Low,
}

/// Which half the escape at the start of `text` names.
fn half(text: &str) -> Option<Half> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    match u32::from_str_radix(digits, 16).ok()? {
        0xd800..0xdc00 => Some(Half::High),
        0xdc00..0xe000 => Some(Half::Low),
        _ => None,
    }
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
