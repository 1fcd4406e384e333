//! `GET /v1/models` where there is no model map: every name goes to the first upstream, so its
//! names are the list.
//!
//! An upstream that does not answer in time, or with something else than a list, costs the client
//! nothing but the names: clients ask while they start.

use super::Exchange;
use crate::config::Config;
use crate::headers::{Header, Headers as _};
use crate::protocols;
use crate::protocols::messages::models::{self, ListFor};

/// Time that an upstream gets for its whole list: Claude Code gives up after three seconds.
pub(super) const LIST_TIMEOUT_MS: u64 = 2_500;

/// Maximum number of bytes that are read of an upstream's list.
pub(super) const LIST_BYTES_MAX: usize = 4 << 20;

impl Exchange {
    /// Returns true if the upstream gives the list of models. Where other services are behind the
    /// host, a request that passes may be theirs and would have no key, so that only clients of
    /// Messages get that list.
    pub(super) fn is_upstreams_list(&self, method: &str, headers: &[Header]) -> bool {
        let is_ours = !self.can.serve_others || has_version(headers);
        self.can.list_models && method == "GET" && self.config.models.is_empty() && is_ours
    }

    /// Returns true if a client gets the upstream's own list untouched: it speaks the upstream's
    /// protocol.
    pub(super) fn wants_own_list(&self, headers: &[Header]) -> bool {
        let upstream = self.config.first_upstream();
        let in_messages = upstream.is_some_and(|it| protocols::of(it.protocol).lists_in_messages());
        !self.can.serve_others && in_messages == has_version(headers)
    }
}

/// Returns true if a request is one of the Messages API.
fn has_version(headers: &[Header]) -> bool {
    headers.value("anthropic-version").is_some()
}

/// Writes the list for the client: the upstream's, if its answer is one, else the configuration's.
pub(super) fn of_answer(config: &Config, list_for: ListFor, status: u16, body: &[u8]) -> Vec<u8> {
    let is_given = (200..300).contains(&status);
    let list = is_given.then(|| models::of_upstream(body, list_for)).flatten();
    list.unwrap_or_else(|| models::list(config, list_for))
}
