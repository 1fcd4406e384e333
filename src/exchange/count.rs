//! Token counts: estimated here, or given by the upstream's tokenizer. An upstream that cannot
//! count costs the client nothing but the exactness of the number.

use crate::error::Error;
use crate::protocols::TokenCount;
use crate::tokens::counted::count_of;
use crate::upstream_error;

/// Count of tokens for which an upstream is called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    /// Token count for the client if the upstream does not answer.
    pub(super) estimate: TokenCount,
    /// Number of estimated tokens that the upstream's tokenizer was not shown.
    pub(super) beside: u64,
    /// True if older versions of this server refuse the question.
    pub(super) may_be_older: bool,
}

impl Count {
    /// Returns true if an answer with this status may hold a count, or says that the upstream has
    /// no such endpoint, does not understand the question, or is not well. Other statuses are
    /// errors of a request like any other.
    pub(super) fn takes(self, status: u16) -> bool {
        matches!(status, 200..300 | 404 | 405 | 500..)
            || self.may_be_older && matches!(status, 400 | 422)
    }

    /// Returns the tokenizer's count plus the estimate of what it was not shown.
    fn with_estimated(self, counted: TokenCount) -> TokenCount {
        let input = counted.input.saturating_add(self.beside);
        let cleared = self.estimate.original.map(|all| all.saturating_sub(self.estimate.input));
        let original = cleared.map(|cleared| input.saturating_add(cleared));
        TokenCount { input, original: counted.original.or(original) }
    }

    /// Writes the client's answer from the tokenizer's. The second value is true if the count is an
    /// estimate.
    pub(super) fn answer(self, answer: Option<&[u8]>) -> (Vec<u8>, bool) {
        let counted = answer.and_then(count_of);
        let tokens = match counted {
            Some(counted) => self.with_estimated(counted),
            None => self.estimate,
        };
        (body_of(tokens), counted.is_none() || self.beside > 0)
    }
}

/// Returns the body if its status says that it is worth reading. How the body ended does not
/// matter: what was cut off is no JSON.
pub(super) fn readable(status: u16, body: &[u8]) -> Option<&[u8]> {
    (200..300).contains(&status).then_some(body)
}

/// Returns the error of an upstream that has the endpoint and not the model. Another 404 is from an
/// upstream without a tokenizer.
pub(super) fn unknown_model(status: u16, body: &[u8]) -> Option<Error> {
    (status == 404).then(|| upstream_error::unknown_model(body)).flatten()
}

/// Writes the answer to a request for a count.
pub(super) fn body_of(tokens: TokenCount) -> Vec<u8> {
    let TokenCount { input, original } = tokens;
    let edited = original.map_or_else(String::new, |original| {
        format!(",\"context_management\":{{\"original_input_tokens\":{original}}}")
    });
    format!("{{\"input_tokens\":{input}{edited}}}").into_bytes()
}
