//! Token counts of requests, and the parser for a token count in an upstream's answer.

use crate::json::{Error, Reader};
use crate::model::context_management::Cleared;

/// Maximum nesting of JSON in a count's answer. A deeper answer is not a count.
const DEPTH_MAX: u32 = 16;

/// Number of tokens of a request, before and after clearing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenCount {
    /// Number of tokens that are sent to the model.
    pub input: u64,
    /// Number of tokens of the client's request, if the client asked to clear parts of it.
    pub original: Option<u64>,
}

impl TokenCount {
    /// Creates a count of `input` tokens for a request of which `cleared` was removed.
    pub(crate) fn new(input: u64, cleared: Option<Cleared>) -> Self {
        let original = cleared.map(|cleared| input.saturating_add(cleared.tokens()));
        Self { input, original }
    }
}

/// Returns the number in a tokenizer's answer: `input_tokens`, `count`, or the length of `tokens`.
/// `None` if there is no number, or 0: no request is empty, so the server did not understand the
/// request.
#[must_use]
pub(crate) fn count_of(body: &[u8]) -> Option<TokenCount> {
    let mut reader = Reader::new(std::str::from_utf8(body).ok()?, DEPTH_MAX);
    let (mut counted, mut listed, mut original) = (None, None, None);
    reader.begin_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        match &*key.decode() {
            "input_tokens" | "count" => counted = reader.u64().ok(),
            "context_management" => original = original_of(&mut reader).ok()?,
            "tokens" => {
                let mut tokens = 0_u64;
                reader.begin_array().ok()?;
                while reader.next_element().ok()? {
                    reader.skip().ok()?;
                    tokens = tokens.saturating_add(1);
                }
                listed = Some(tokens);
            }
            _ => {
                reader.skip().ok()?;
            }
        }
    }
    reader.end().ok()?;
    let input = counted.or(listed).filter(|tokens| *tokens > 0)?;
    Some(TokenCount { input, original })
}

/// Reads the number of tokens before anything was cleared.
fn original_of(reader: &mut Reader<'_>) -> Result<Option<u64>, Error> {
    let mut original = None;
    if reader.object_or_skip()? {
        while let Some(key) = reader.next_key()? {
            match &*key.decode() {
                "original_input_tokens" => original = Some(reader.u64()?),
                _ => drop(reader.skip()?),
            }
        }
    }
    Ok(original)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_all_tokenizers_are_read_and_nothing_else_is_a_count() {
        for (answer, expected) in [
            (r#"{"count":7,"max_model_len":8192,"tokens":[1,2],"token_strs":null}"#, Some(7)),
            (r#"{"tokens":[1,2,3]}"#, Some(3)),
            (r#"{"tokens":[{"id":1,"piece":"a"},{"id":2,"piece":[195]}]}"#, Some(2)),
            (r#"{"object":"response.input_tokens","input_tokens":12}"#, Some(12)),
            (r#"{"input_tokens":12,"context_management":null}"#, Some(12)),
            (r#"{"tokens":[]}"#, None),
            (r#"{"count":-1}"#, None),
            (r#"{"count":"7"}"#, None),
            (r#"{"error":{"message":"no"}}"#, None),
            (r#"{"count":7"#, None),
            ("[7]", None),
            ("<html>", None),
            ("", None),
        ] {
            let expected = expected.map(|input| TokenCount { input, original: None });
            assert_eq!(count_of(answer.as_bytes()), expected, "{answer}");
        }
        let edited = r#"{"input_tokens":12,"context_management":{"original_input_tokens":20}}"#;
        let expected = TokenCount { input: 12, original: Some(20) };
        assert_eq!(count_of(edited.as_bytes()), Some(expected));
        assert_eq!(count_of(b"{\"count\":7,\"x\":\"\xff\"}"), None);
    }
}
