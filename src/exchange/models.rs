//! `GET /v1/models` where there is no model map: every name goes to the first upstream, so its names are the list.
//!
//! An upstream that does not answer in time, or with something else than a list, costs the client nothing but the
//! names: clients ask while they start.

use super::Exchange;
use crate::config::Config;
use crate::protocols;
use crate::protocols::messages::models::{self, ListFor};

/// How long an upstream may take for its whole list: Claude Code gives up after three seconds.
pub(super) const LIST_TIMEOUT_MS: u64 = 2_500;

/// How much of a list is read.
pub(super) const LIST_BYTES_MAX: usize = 4 << 20;

impl Exchange {
    /// Whether the list of models is the upstream's to give.
    pub(super) fn is_upstreams_list(&self, method: &str) -> bool {
        self.can.list_models && method == "GET" && self.config.models.is_empty()
    }

    /// Whether a client wants the upstream's own answer: it speaks the upstream's protocol.
    pub(super) fn wants_own_list(&self, has_version: bool) -> bool {
        let upstream = self.config.first_upstream();
        upstream.is_some_and(|it| protocols::of(it.protocol).lists_in_messages()) == has_version
    }
}

/// The list for the client: the upstream's, if its answer is one.
pub(super) fn of_answer(config: &Config, list_for: ListFor, status: u16, body: &[u8]) -> Vec<u8> {
    let is_given = (200..300).contains(&status);
    let list = is_given.then(|| models::of_upstream(body, list_for)).flatten();
    list.unwrap_or_else(|| models::list(config, list_for))
}
