//! Token counts: estimated by Creole, or computed by the upstream's tokenizer. If an upstream
//! cannot count, the client gets the estimate.

use crate::error::Error;
use crate::protocols::TokenCount;
use crate::tokens::counted::count_of;
use crate::upstream_error;

/// Request for a token count that is sent to an upstream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    /// Token count for the client if the upstream does not answer.
    pub(super) estimate: TokenCount,
    /// Estimated number of tokens in the parts of the request that are not sent to the upstream's
    /// tokenizer.
    pub(super) beside: u64,
    /// True if older versions of the upstream's server reject a request for a token count.
    pub(super) may_be_older: bool,
}

impl Count {
    /// Returns true if an answer with this status may contain a count, or shows that the upstream
    /// cannot count. Further statuses are errors as for any request.
    pub(super) fn takes(self, status: u16) -> bool {
        matches!(status, 200..300 | 404 | 405 | 500..)
            || self.may_be_older && matches!(status, 400 | 422)
    }

    /// Returns the tokenizer's count plus the estimate for the parts that the tokenizer did not
    /// receive.
    fn with_estimated(self, counted: TokenCount) -> TokenCount {
        let input = counted.input.saturating_add(self.beside);
        let cleared = self.estimate.original.map(|all| all.saturating_sub(self.estimate.input));
        let original = cleared.map(|cleared| input.saturating_add(cleared));
        TokenCount { input, original: counted.original.or(original) }
    }

    /// Returns the client's count from the tokenizer's answer. The second value is true if the
    /// count is an estimate.
    pub(super) fn result(self, answer: Option<&[u8]>) -> (TokenCount, bool) {
        let counted = answer.and_then(count_of);
        let tokens = match counted {
            Some(counted) => self.with_estimated(counted),
            None => self.estimate,
        };
        (tokens, counted.is_none() || self.beside > 0)
    }
}

/// Returns the tokenizer's response body if the status is a success. Truncated bodies need no
/// check, because they are not valid JSON.
pub(super) fn readable(status: u16, body: &[u8]) -> Option<&[u8]> {
    (200..300).contains(&status).then_some(body)
}

/// Returns the error of an upstream that has the count endpoint but not the model. A 404 without
/// such an error comes from an upstream without a tokenizer.
pub(super) fn unknown_model(status: u16, body: &[u8]) -> Option<Error> {
    (status == 404).then(|| upstream_error::unknown_model(body)).flatten()
}
