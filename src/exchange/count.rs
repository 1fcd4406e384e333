//! Token counts: estimated here, or given by the upstream's tokenizer. An upstream that cannot count
//! costs the client nothing but the exactness of the number.

use crate::error::Error;
use crate::tokens::counted::count_of;
use crate::upstream_error;

/// A count that an upstream is called for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    /// The number where the upstream does not answer.
    pub(super) estimate: u64,
    /// Tokens that its tokenizer was not shown.
    pub(super) beside: u64,
    /// Older versions of this server refuse the question.
    pub(super) may_be_older: bool,
}

impl Count {
    /// Whether an answer with this status may hold a count, or says that the upstream has no such endpoint, does not
    /// understand the question, or is not well. Other statuses are errors of a request like any other.
    pub(super) fn takes(self, status: u16) -> bool {
        matches!(status, 200..300 | 404 | 405 | 500..)
            || self.may_be_older && matches!(status, 400 | 422)
    }

    /// The client's answer, of the tokenizer's; and whether it is an estimate.
    pub(super) fn answer(self, answer: Option<&[u8]>) -> (Vec<u8>, bool) {
        let counted = answer.and_then(count_of);
        let tokens = match counted {
            Some(tokens) => tokens.saturating_add(self.beside),
            None => self.estimate,
        };
        (body_of(tokens), counted.is_none() || self.beside > 0)
    }
}

/// Whether the body of an answer is worth reading. How it ended does not matter: what was cut off is no JSON.
pub(super) fn readable(status: u16, body: &[u8]) -> Option<&[u8]> {
    (200..300).contains(&status).then_some(body)
}

/// The error of an upstream that has the endpoint and not the model. Another 404 is of one without a tokenizer.
pub(super) fn unknown_model(status: u16, body: &[u8]) -> Option<Error> {
    (status == 404).then(|| upstream_error::unknown_model(body)).flatten()
}

/// The answer to a request for a count.
pub(super) fn body_of(tokens: u64) -> Vec<u8> {
    format!("{{\"input_tokens\":{tokens}}}").into_bytes()
}
