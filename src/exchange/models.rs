//! `GET /v1/models` where there is no model map: every name goes to the first upstream, so its names are the list.
//!
//! An upstream that does not answer in time, or with something else than a list, costs the client nothing but the
//! names: clients ask while they start.

use super::{Body, Exchange, Head, HeadState, Reply, State, UpstreamRequest};
use crate::Millis;
use crate::config::Protocol;
use crate::observe::report::Outcome;
use crate::protocols::messages::models;

/// How long an upstream may take for its whole list: Claude Code gives up after three seconds.
const LIST_TIMEOUT_MS: u64 = 2_500;

/// How much of a list is read.
pub(super) const LIST_BYTES_MAX: usize = 4 << 20;

impl Exchange {
    /// For a host that can send a request without a body, as [`UpstreamRequest::method`] tells: the upstream is asked
    /// for its models where the configuration names none.
    pub fn ask_for_models(&mut self) {
        self.asks_for_models = true;
    }

    /// Whether the list of models is the upstream's to give.
    pub(super) fn is_upstreams_list(&self, method: &str) -> bool {
        self.asks_for_models && method == "GET" && self.config.models.is_empty()
    }

    /// Whether a client wants the upstream's own answer: it speaks the upstream's protocol.
    pub(super) fn wants_own_list(&self, has_version: bool) -> bool {
        let upstream = self.config.first_upstream();
        let speaks_messages = upstream.is_some_and(|it| it.protocol == Protocol::Anthropic);
        speaks_messages == has_version
    }

    /// The question for the upstream; an empty list where it cannot be asked.
    pub(super) fn list_models(&mut self, now: Millis) -> Result<UpstreamRequest, Reply> {
        let Some(upstream) = self.config.first_upstream() else { return Err(self.empty_list()) };
        let name = upstream.name.clone();
        let path = self.upstream_path(upstream);
        let Ok(mut headers) = self.upstream_headers(upstream, false) else {
            return Err(self.empty_list());
        };
        // There is no content.
        headers.retain(|(name, _)| name != "content-type");
        self.report.upstream.clone_from(&name);
        self.watchdog.start(LIST_TIMEOUT_MS, now);
        self.state = State::Listing { status: None, body: Vec::new() };
        Ok(UpstreamRequest { upstream: name, path, headers, body: Vec::new() })
    }

    fn empty_list(&mut self) -> Reply {
        let reply = self.json_reply(models::list(&self.config));
        self.end(Outcome::Answered, 200);
        reply
    }

    /// The upstream's answer is over, or its time is: what came is the list, if it is one.
    pub(super) fn end_list(&mut self, now: Millis, out: &mut Vec<u8>) -> Option<Head> {
        let State::Listing { status, body } = std::mem::replace(&mut self.state, State::Ended)
        else {
            return None;
        };
        let is_given = status.is_some_and(|status| (200..300).contains(&status));
        let list = is_given.then(|| models::of_upstream(&body)).flatten();
        let list = list.unwrap_or_else(|| models::list(&self.config));
        self.finish(Outcome::Answered, 200, now);
        let held = matches!(self.head, HeadState::Held(_));
        let head = held.then(|| self.make_head(200, Body::Json));
        self.count_bytes(list.len());
        out.extend_from_slice(&list);
        head
    }
}
