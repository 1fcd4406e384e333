//! Handling of the request in a stream: head, body and trailers.

use creole::callers::{self, Callers};
use creole::headers::Headers as _;
use creole::observe::log::LoggedRequest;
use creole::{Call, Failure, Header, Millis, Pace, RequestHead};

use super::{Stream, StreamState, When, drain};
use crate::action::{Action, Decision, Side};
use crate::collected::Collected;
use crate::heads;

/// Minimum size of a client's head that makes Envoy drop its copy as soon as the stream waits for
/// the body, in bytes. Smaller heads are not worth the hostcall.
const LARGE_HEAD_BYTES: usize = 8 << 10;

impl Stream {
    /// Handles the request's head. `failure` is the reason why the request cannot be served, if
    /// Creole handles it.
    pub fn on_request_headers(
        &mut self,
        head: Vec<Header>,
        end_of_stream: bool,
        failure: Option<Failure>,
        now: Millis,
    ) -> Decision {
        let method = head.value(":method").unwrap_or_default();
        let path = head.value(":path").unwrap_or_default();
        self.request = LoggedRequest::new(method, path, now);
        if is_probe(method, path) && !heads::is_of_client(&head) {
            return Decision::pass();
        }
        let paused = self.config.settings.pause_headers;
        let mut without_length = Vec::new();
        let seen = if paused {
            &head
        } else {
            // A body that is too large is refused once it is here, like every other bad body: an
            // answer to the head would break the connection of a client that uploads.
            for header in &head {
                if header.0 != "content-length" {
                    without_length.push(header.clone());
                }
            }
            &without_length
        };
        // Without paused heads, waiting here would keep the body from coming.
        let when = When::of(end_of_stream || !paused);
        match self.exchange.handle_request_head(method, path, seen) {
            RequestHead::PassThrough => return Decision::pass(),
            RequestHead::Answered => return self.reply(when, Vec::new(), now),
            RequestHead::Translate => {}
        }
        if let Some(failure) = failure.or_else(|| self.refused_caller(&head)) {
            return self.fail(failure, when, now, Vec::new());
        }
        if end_of_stream {
            self.exchange.handle_request_body(Vec::new(), now);
            return match self.exchange.poll_call(now) {
                None => self.reply(when, Vec::new(), now),
                // The upstream is asked for its models.
                Some(call) if call.body.is_empty() => self.send_head(&head, call),
                Some(_) => self.fail(Failure::RequestIncomplete, when, now, Vec::new()),
            };
        }
        self.calls.note_client(head.value(":authority").unwrap_or_default());
        let body = Collected::new(heads::length(&head));
        let pace = Pace::start(&self.config.settings, now);
        if paused {
            let (kept, left_out) = heads::needed(head);
            // Envoy also keeps the head while the stream waits for the body.
            let actions = if left_out > LARGE_HEAD_BYTES {
                vec![Action::ReplaceHeaders(Side::Request, kept.clone())]
            } else {
                Vec::new()
            };
            self.state = StreamState::Collecting { head: Some(kept), body, pace };
            return Decision::stop(actions);
        }
        self.state = StreamState::Collecting { head: None, body, pace };
        let early =
            heads::for_upstream_early(&head, &self.config, &self.exchange).unwrap_or_default();
        Decision::go_on(vec![Action::Mark, Action::ReplaceHeaders(Side::Request, early)])
    }

    /// Returns the reason to refuse a request of a foreign web page in a browser on the machine of
    /// this Envoy. An Envoy elsewhere may have any host name and serve pages of any site.
    fn refused_caller(&self, head: &[Header]) -> Option<Failure> {
        let authority = head.value(":authority").unwrap_or_default();
        if !self.config.client_keys.is_empty() || !callers::is_loopback(authority) {
            return None;
        }
        let headers = head.iter().map(|(name, value)| (name.as_str(), Some(value.as_str())));
        Callers::new(true, &[]).refuse(Some(authority), headers).map(Failure::Forbidden)
    }

    /// Handles a chunk of the request's body. `fits` reserves memory for all that this stream
    /// holds.
    pub fn on_request_body(
        &mut self,
        piece: Vec<u8>,
        end_of_stream: bool,
        fits: &mut dyn FnMut(usize) -> bool,
        now: Millis,
    ) -> Decision {
        let drained = drain(Side::Request, &piece);
        let (body, pace) = match &mut self.state {
            StreamState::Collecting { body, pace, .. } => (body, pace),
            StreamState::Refusing { rest_bytes, .. } => {
                *rest_bytes = rest_bytes.saturating_sub(piece.len());
                let over = end_of_stream || *rest_bytes == 0;
                return if over { self.refuse(drained) } else { Decision::stop(drained) };
            }
            StreamState::Preparing { is_over, .. } => {
                *is_over |= end_of_stream;
                return Decision::pause(drained);
            }
            _ => return Decision::pass(),
        };
        let (bytes, size) = (piece.len(), body.size().saturating_add(piece.len()));
        let failure = if size > self.config.settings.request_bytes_max {
            Some(Failure::RequestTooLarge)
        } else if !body.push(piece, fits) {
            Some(Failure::Overloaded)
        } else if !pace.goes_on(bytes, size, now) {
            Some(Failure::RequestTooSlow)
        } else {
            None
        };
        if let Some(failure) = failure {
            return self.fail(failure, When::of(end_of_stream), now, drained);
        }
        // A body of its announced length is complete, even if trailers follow: after trailers,
        // nothing can be written any more.
        if end_of_stream || body.is_complete() {
            return self.send(When::of(end_of_stream), drained, now);
        }
        Decision::stop(drained)
    }

    /// Handles request trailers, which end the body if it has not ended otherwise.
    pub fn on_request_trailers(&mut self, now: Millis) -> Decision {
        if matches!(self.state, StreamState::Refusing { .. }) {
            return self.refuse(Vec::new());
        }
        if let StreamState::Preparing { is_over, .. } = &mut self.state {
            *is_over = true;
            return Decision::stop(Vec::new());
        }
        if matches!(self.state, StreamState::Collecting { .. }) {
            // Envoy has no buffer here that the body could be written to. Only a request with
            // trailers and without a content-length gets here.
            return self.fail(Failure::RequestIncomplete, When::Now, now, Vec::new());
        }
        Decision::pass()
    }

    /// Sends the request, whose body is complete. `refusal` is the moment at which the client gets
    /// an error if the request is refused.
    fn send(&mut self, refusal: When, mut actions: Vec<Action>, now: Millis) -> Decision {
        let StreamState::Collecting { head, body, .. } =
            std::mem::replace(&mut self.state, StreamState::Waiting)
        else {
            return Decision::go_on(actions);
        };
        self.exchange.handle_request_body(body.into_bytes(), now);
        let mut calls = Vec::new();
        let first = self.make_calls(&mut calls, now);
        self.forget_cancelled();
        if let Some(call) = first {
            return Decision::go_on(self.sent(head.as_deref(), call));
        }
        let waits = self.calls.are_open() && !self.exchange.is_ended();
        if let (Some(head), true) = (head, waits) {
            self.state = StreamState::Preparing { head, is_over: refusal.is_now() };
            actions.append(&mut calls);
            return Decision::pause(actions);
        }
        self.reply(refusal, actions, now)
    }

    /// Returns the actions that write the request for the upstream. `head` is the client's, unless
    /// a head was sent already.
    pub(super) fn sent(&mut self, head: Option<&[Header]>, call: Call) -> Vec<Action> {
        self.call = Some(call.id);
        let mut actions = Vec::new();
        let upstream = call.upstream().and_then(|name| self.config.upstreams.get(name));
        if let (Some(head), Some(upstream)) = (head, upstream) {
            let length = Some(call.body.len());
            let head = heads::for_upstream(head, upstream, &call.path, call.headers, length);
            actions.push(Action::Mark);
            actions.push(Action::ReplaceHeaders(Side::Request, head));
        }
        actions.push(Action::ReplaceBody(Side::Request, call.body));
        actions
    }
}

/// Returns true if the path is one that clients probe before their first request. If the listener
/// also serves a web site, these paths belong to the site.
fn is_probe(method: &str, path: &str) -> bool {
    let path = creole::text::words::before(path, b"?#");
    matches!(method, "GET" | "HEAD") && matches!(path, "/" | "/api/hello")
}
