//! Handling of a request without a body: the list of the upstream's models.

use creole::{Call, Header};

use super::{Stream, StreamState};
use crate::action::{Action, Decision, Side};
use crate::heads;

impl Stream {
    /// Sends the client's request on to the upstream, with the head of the exchange's call.
    pub(super) fn send_head(&mut self, client: &[Header], call: Call) -> Decision {
        (self.state, self.call) = (StreamState::Waiting, Some(call.id));
        let upstream = call.upstream().and_then(|name| self.config.upstreams.get(name));
        let Some(upstream) = upstream else { return Decision::pass() };
        let head = heads::for_upstream(client, upstream, &call.path, call.headers, None);
        Decision::go_on(vec![Action::Mark, Action::ReplaceHeaders(Side::Request, head)])
    }
}
