//! `GET /v1/models` if the configuration maps no models: every model name goes to the first
//! upstream, so the list is the upstream's list.
//!
//! If the upstream does not answer in time, or not with a list, the client gets an empty list
//! without an error, because clients request the list while they start.

use super::Exchange;
use crate::config::Config;
use crate::headers::Header;
use crate::protocols;
use crate::protocols::client::{ClientProtocol, ListFor};

/// Timeout for an upstream's complete list of models, in ms: Claude Code gives up after three
/// seconds.
pub(super) const LIST_TIMEOUT_MS: u64 = 2_500;

/// Maximum number of bytes to read of an upstream's list of models.
pub(super) const LIST_BYTES_MAX: usize = 4 << 20;

impl Exchange {
    /// Returns true if the request is answered with the upstream's list of models. If the host also
    /// serves other services, only clients that are known by their headers get this list: other
    /// requests may be meant for those services.
    pub(super) fn is_upstreams_list(&self, method: &str, headers: &[Header]) -> bool {
        let is_ours = !self.can.serve_others || protocols::lists_for(headers).is_some();
        self.can.list_models && method == "GET" && self.config.models.is_empty() && is_ours
    }

    /// Returns true if the client gets the upstream's list unchanged, because the client uses the
    /// upstream's protocol.
    pub(super) fn wants_own_list(&self, headers: &[Header]) -> bool {
        let upstream = self.config.first_upstream();
        let in_messages = upstream.is_some_and(|it| protocols::of(it.protocol).lists_in_messages());
        !self.can.serve_others && in_messages == protocols::lists_for(headers).is_some()
    }
}

/// Writes the list of models for the client: the upstream's list, if the answer contains a list,
/// else the configuration's list.
pub(super) fn of_answer(
    protocol: &dyn ClientProtocol,
    config: &Config,
    list_for: ListFor,
    (status, body): (u16, &[u8]),
) -> Vec<u8> {
    let is_given = (200..300).contains(&status);
    let list = is_given.then(|| protocol.rewrite_models(body, list_for)).flatten();
    list.unwrap_or_else(|| protocol.write_models(config, list_for))
}
