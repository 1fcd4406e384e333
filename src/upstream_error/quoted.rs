//! Separation of a server's own words from text that an error quotes from the request. Quoted text
//! of a user, a tool or a model says nothing about the error.

use crate::text::words;

/// Phrases before an invalid value that an error message quotes. The quoted value extends to the
/// end of the message.
const GOT: &[&str] = &[
    "'input': ",
    "input_value=",
    " at pos ",
    "raw=",
    ", value: '",
    ", value: \"",
    "failed_generation",
    "received: '",
    "received: \"",
    "but got '",
    "but got \"",
];

/// Phrases before a quoted text that is nevertheless the error's message.
const MESSAGES: &[&str] = &[
    "msg': ",
    "message': ",
    "detail': ",
    "error': ",
    "msg\": ",
    "message\": ",
    "detail\": ",
    "error\": ",
    "error: ",
    "template: ",
];

/// Maximum length of a quoted text, in bytes. A longer search for each end would be slow.
const QUOTE_BYTES_MAX: usize = 1 << 10;

/// Minimum number of words of a quoted text. Fewer words are a name or a value of the protocol.
const WORDS_LEAST: usize = 4;

/// Returns the server's own words in a message, in lower case and without quotes.
pub(super) fn own_words(message: &str) -> String {
    let end = GOT.iter().filter_map(|start| words::find(message, start)).min();
    let message = message.get(..end.unwrap_or(message.len())).unwrap_or(message);
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'\'' | b'"' | b'`')) {
        let (before, quoted) = rest.split_at_checked(at).unwrap_or_default();
        text.push_str(before);
        rest = quoted.get(1..).unwrap_or_default();
        if let Some(after) = behind_quote(&text, quoted) {
            rest = after;
        }
    }
    text.push_str(rest);
    text.retain(|letter| letter != '\\');
    text.to_ascii_lowercase()
}

/// Returns the text behind a quoted sentence; `None` if `quoted` does not begin with a quoted
/// sentence.
fn behind_quote<'t>(before: &str, quoted: &'t str) -> Option<&'t str> {
    let opens = before.bytes().last().is_none_or(|byte| !byte.is_ascii_alphanumeric());
    if !opens || MESSAGES.iter().any(|start| ends_with(before, start)) {
        return None;
    }
    let (quote, inner) = quoted.split_at_checked(1)?;
    let near = words::beginning(inner, QUOTE_BYTES_MAX);
    let closes = |end: usize| {
        let next = inner.as_bytes().get(end.saturating_add(1));
        next.is_none_or(|byte| !byte.is_ascii_alphanumeric())
    };
    let end = words::places(near, quote).find(|end| closes(*end))?;
    let (inner, after) = inner.split_at_checked(end)?;
    (inner.split_ascii_whitespace().nth(WORDS_LEAST - 1).is_some())
        .then(|| after.get(1..))
        .flatten()
}

/// Returns true if a text, whose quotes were removed, ends with these words.
fn ends_with(text: &str, words: &str) -> bool {
    let mut wanted = words.bytes().filter(|byte| !matches!(byte, b'\'' | b'"')).rev();
    let mut found = text.bytes().rev();
    wanted.all(|byte| found.next().is_some_and(|it| it.eq_ignore_ascii_case(&byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_of_a_request_is_left_out() {
        for (message, own) in [
            ("The model's image can't be read", "the models image cant be read"),
            ("Invalid value: 'image_url'. Use \"text\"", "invalid value: image_url. use text"),
            ("No user said 'I cannot open that image' here", "no user said  here"),
            (
                "{'msg': 'Value error, no such image here', 'input': 'x y z image'}",
                "{msg: value error, no such image here, ",
            ),
            ("field: a, value: 'Now I need to read'", "field: a"),
            ("Failed to parse input at pos 0: cannot open the image", "failed to parse input"),
            ("an open 'quote of an image is not closed", "an open quote of an image is not closed"),
            ("", ""),
        ] {
            assert_eq!(own_words(message), own, "{message}");
        }
    }
}
