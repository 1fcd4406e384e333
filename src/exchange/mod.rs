//! Exchange: one client request and its response, as a state machine without I/O. `Exchange` is
//! the only type that a host drives.
//!
//! This folder has no I/O, no clock and no entropy: bytes and times are passed as arguments, and
//! ids are derived from the seed. The same arguments give the same bytes on every host.
//!
//! | file | contents |
//! |---|---|
//! | `mod`, `seam` | methods that a host calls, and the types of their arguments and results |
//! | `request`, `base`, `door` | the request head: its route and path, and the client's key |
//! | `pass` | requests for paths that are not Creole's, which are forwarded |
//! | `calls`, `round`, `rounds` | calls of upstreams; a round is a call for the client's answer |
//! | `repeat` | repeats of a later round that failed before its first byte |
//! | `steps`, `window`, `ask` | steps before the calls and after the answer, and their calls |
//! | `response`, `body`, `unreachable` | results of a call: answer, failure or timeout |
//! | `state`, `watchdog` | phase of the exchange, and its timeouts |
//! | `output`, `pings` | response to the client, and pings that keep its connection open |
//! | `retry`, `memory`, `conversations` | retries without refused parts, memory of refusals |
//! | `count`, `models` | token counts, and the list of models |

mod ask;
mod base;
mod body;
mod calls;
mod conversations;
mod count;
mod door;
mod memory;
mod models;
mod output;
mod pass;
mod pings;
mod repeat;
mod request;
mod response;
mod retry;
mod round;
mod rounds;
mod seam;
mod state;
mod steps;
mod unreachable;
mod watchdog;
mod window;

use std::fmt;
use std::sync::Arc;

pub use base::with_version;
pub use memory::Refusals;
pub use pass::{PassedHead, passed};
pub use seam::{
    Call, CallId, Cancel, End, Failure, Fetch, Head, HostCan, Pings, Reply, RequestHead, Service,
    To,
};
pub use unreachable::Unreachable;

use conversations::ConversationId;
use output::Output;
use repeat::LaterRound;
use state::State;
use steps::Steps;
use watchdog::Watchdog;

use crate::Millis;
use crate::answer::Answer;
use crate::config::{Config, Protocol, Upstream};
use crate::error::Error;
use crate::headers::Header;
use crate::ids::Ids;
use crate::observe::report::{Outcome, Report};
use crate::observe::warning::Warnings;
use crate::protocols::client::{ClientProtocol, Endpoint, ListFor};
use crate::protocols::{self, AnswerWriter, Refused, UpstreamProtocol};

/// Exchange of one client request and its response, as a state machine. A host passes events in and
/// makes the calls that are due: HTTP requests to upstreams and web servers, and documents to read.
///
/// After any event (`handle_…`), the host polls [`poll_cancel`](Self::poll_cancel),
/// [`poll_call`](Self::poll_call), [`poll_head`](Self::poll_head), [`poll_body`](Self::poll_body)
/// and [`poll_timeout`](Self::poll_timeout) until nothing is due; a poll that is not due gives
/// nothing and harms nothing.
///
/// Each call has an id, with which the host passes in what comes of the call. Events of a call that
/// is over are ignored. A call that the host has not ended may be over for the exchange: then
/// [`poll_cancel`](Self::poll_cancel) returns its id once. A retry can follow pings, and calls of
/// the judge follow the answer ([`Config::judge`]), so calls can be due at any time before
/// [`is_ended`](Self::is_ended) is true.
///
/// The head for the client is held until the first byte of the body is known, so that an error in
/// an upstream's first event still becomes an HTTP error. A ping may begin a stream earlier. A host
/// that wants to know whether the whole response is there before it sends the head uses
/// [`poll_reply`](Self::poll_reply).
///
/// ```
/// use std::sync::Arc;
///
/// use creole::{Config, End, Exchange, HostCan, RequestHead};
///
/// let config = Config::from_json(r#"{"upstreams": {"local": {}}}"#, |_| None).unwrap();
/// // Each exchange has a random seed of its own.
/// let mut exchange = Exchange::new(Arc::new(config), 0x5eed, HostCan::default());
///
/// let headers = [("x-api-key".to_owned(), "secret".to_owned())];
/// let head = exchange.handle_request_head("POST", "/v1/messages", &headers);
/// assert_eq!(head, RequestHead::Translate);
/// let body = br#"{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}"#;
/// let now = 1_790_000_000_000;
/// exchange.handle_request_body(body.to_vec(), now);
///
/// let call = exchange.poll_call(now).unwrap();
/// assert_eq!((call.method(), call.path.as_str()), ("POST", "/v1/chat/completions"));
/// let headers = [("content-type".to_owned(), "application/json".to_owned())];
/// exchange.handle_call_head(call.id, 200, &headers, now);
/// let answer = br#"{"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}"#;
/// exchange.handle_call_body(call.id, answer, now);
/// exchange.handle_call_end(call.id, End::Complete, now);
///
/// assert_eq!(exchange.poll_head().unwrap().status, 200);
/// let mut out = Vec::new();
/// exchange.poll_body(&mut out);
/// assert!(exchange.is_ended());
/// let message = String::from_utf8(out).unwrap();
/// assert!(message.contains(r#""content":[{"type":"text","text":"Hello"}]"#));
/// ```
pub struct Exchange {
    config: Arc<Config>,
    ids: Ids,
    can: HostCan,
    report: Report,
    client: Client,
    state: State,
    watchdog: Watchdog,
    output: Output,
    /// Recent refusals of upstreams, shared with other exchanges; `remembered` has the refusals
    /// that apply to this request.
    refusals: Option<Arc<Refusals>>,
    remembered: Vec<Refused>,
    /// Id of the conversation, if refusals can be remembered for the conversation. `own_changes`
    /// has the changes remembered for this conversation alone, each with a hash of the error text
    /// behind the change.
    conversation: Option<ConversationId>,
    own_changes: Vec<(Refused, u64)>,
    /// Parts of the request that the upstream refused, and that later calls leave out.
    refused: Vec<Refused>,
    /// First upstream error with unknown text after which the upstream was called again.
    first_refusal: Option<Error>,
    /// Number of retries with a change whose only evidence was a name in the upstream's error.
    named: u32,
    /// Steps before the upstream calls, between the rounds and after the answer.
    steps: Steps,
    /// Writer of the client's message, while no round has the writer.
    writer: Option<Box<dyn AnswerWriter>>,
    /// Later round of the answer, if the first round has ended.
    later: Option<Box<LaterRound>>,
}

// Prompts, answers and credentials are left out: whoever logs an exchange must not log them.
impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("request_id", &self.report.request_id)
            .field("path", &self.client.path)
            .field("upstream", &self.report.upstream)
            .field("outcome", &self.report.outcome)
            .field("retries", &self.report.retries)
            .finish_non_exhaustive()
    }
}

/// Parts of the client's request that are kept until the exchange ends.
struct Client {
    path: Path,
    /// Protocol of the client; until the path is known, the first that there is.
    protocol: &'static dyn ClientProtocol,
    headers: Vec<Header>,
    /// Id of the conversation, if an upstream is configured to receive the id.
    session: Option<String>,
    /// Body of the request; empty once no upstream can be called any more.
    body: Vec<u8>,
}

impl Default for Client {
    fn default() -> Self {
        Self {
            path: Path::ANSWER,
            protocol: protocols::first_client(),
            headers: Vec::new(),
            session: None,
            body: Vec::new(),
        }
    }
}

/// Request paths for which Creole calls an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    /// Path of an endpoint of the client's protocol.
    Endpoint(Endpoint),
    /// Path of the list of models.
    Models(ListFor),
}

impl Path {
    const ANSWER: Self = Self::Endpoint(Endpoint::Answer);
    const COUNT: Self = Self::Endpoint(Endpoint::Count);
}

const JSON: &str = "application/json";

impl Exchange {
    /// Starts an exchange. `seed` must differ for each exchange on all replicas together, because
    /// ids are derived from `seed`.
    #[must_use]
    pub fn new(config: Arc<Config>, seed: u128, can: HostCan) -> Self {
        let ids = Ids::new(seed);
        let warnings = Warnings::new(config.settings.strict);
        Self {
            report: Report { request_id: ids.request(), warnings, ..Report::default() },
            watchdog: Watchdog::new(&config.settings, can.ping != Pings::No),
            config,
            ids,
            can,
            client: Client::default(),
            state: State::new(),
            output: Output::new(),
            refusals: None,
            remembered: Vec::new(),
            conversation: None,
            own_changes: Vec::new(),
            refused: Vec::new(),
            first_refusal: None,
            named: 0,
            steps: Steps::default(),
            writer: None,
            later: None,
        }
    }

    /// Returns a report of the exchange up to now.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        if let Some(answer) = self.answer() {
            report.answer = answer.report().clone();
            if let Some(later) = &self.later {
                report.answer.add_earlier(&later.earlier);
            }
        }
        report.warnings = self.warnings();
        report
    }

    /// Returns the warnings of the request and of the answer up to now.
    fn warnings(&self) -> Warnings {
        let mut warnings = self.report.warnings.clone();
        if let Some(answer) = self.answer() {
            warnings.merge(answer.warnings());
        }
        warnings
    }

    /// Returns the upstream's answer while the answer is being translated for the client.
    fn answer(&self) -> Option<&Answer> {
        self.state.round()?.answer()
    }

    /// Adds to the report the microseconds that the host spent on this exchange. The core has no
    /// clock, so the host measures the time around its calls of this type.
    pub fn add_translation_us(&mut self, spent_us: u64) {
        let sum = self.report.translation_us.unwrap_or_default().saturating_add(spent_us);
        self.report.translation_us = Some(sum);
    }

    /// Returns true if the upstream has sent content. The result equals [`Report::content_at`]
    /// being set, without a copy of the report.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.report.content_at.is_some()
    }

    /// Returns the name of the client's key, if clients have keys and the client sent a known one.
    #[must_use]
    pub fn client_key(&self) -> Option<&str> {
        self.report.client_key.as_deref()
    }

    /// Returns the configuration of this exchange.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Handles the complete body of the request. Afterwards an upstream call is due, or an answer
    /// without a call.
    pub fn handle_request_body(&mut self, body: Vec<u8>, now: Millis) {
        self.report.requested_at = now;
        self.report.request_bytes = body.len();
        self.client.body = body;
        self.state.complete();
    }

    /// Ends the exchange because the client has disconnected.
    pub fn handle_client_gone(&mut self, now: Millis) {
        if !self.state.is_ended() && !self.state.is_passed() {
            self.finish(Outcome::Abandoned, 499, now);
        }
    }

    /// Drops the client's body to free memory, unless a call is due, or a step or a repeat of a
    /// round needs the body. No upstream is called again afterwards, and an answer that would have
    /// another round ends with `pause_turn`.
    pub fn forget_request_body(&mut self) {
        let is_paused = self.state.paused_until().is_some();
        let is_needed = is_paused || self.steps.is_before() || self.steps.is_between();
        if !self.state.is_due() && !is_needed {
            self.client.body = Vec::new();
        }
    }

    /// Drops the client's body, unless another round of the answer may need the body.
    fn drop_request_body(&mut self) {
        if !self.steps.goes_on() {
            self.forget_request_body();
        }
    }

    /// Returns true if the exchange is over: the client's response is complete after the host's
    /// next polls.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.state.is_ended()
    }

    /// Returns true if the next [`poll_call`](Self::poll_call) takes as long as reading the
    /// client's body, which a host with several threads may do on another one.
    #[must_use]
    pub fn is_call_due(&self) -> bool {
        self.state.is_due()
    }

    /// Returns the status and headers for the client, once.
    pub fn poll_head(&mut self) -> Option<Head> {
        if self.state.is_ended() && self.output.is_blank() {
            // Waiting for more bytes would hang the client.
            self.tell_nothing_came();
        }
        self.output.take_head()
    }

    /// Appends the bytes for the client to `out`. Into an empty `out` the bytes are moved without a
    /// copy.
    pub fn poll_body(&mut self, out: &mut Vec<u8>) {
        self.output.take_body(out);
    }

    /// Returns the whole response, if the exchange has ended before the host polled the head.
    pub fn poll_reply(&mut self) -> Option<Reply> {
        let head = if self.is_ended() { self.poll_head()? } else { return None };
        let mut body = Vec::new();
        self.poll_body(&mut body);
        Some(Reply { head, body })
    }

    /// Returns a call whose answer is not read any more although the host has not ended the call,
    /// and how the host treats the remaining bytes of the answer. Each such call is returned once.
    pub fn poll_cancel(&mut self) -> Option<(CallId, Cancel)> {
        self.state.take_cancelled()
    }

    /// Returns the time at which [`Exchange::handle_timeout`] must be called, if any.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Millis> {
        if self.state.asks().is_empty() && self.steps.is_behind() {
            // A host that never polls for the next call must not keep the client waiting.
            return self.steps.until();
        }
        let pings = self.may_ping_unasked();
        if let Some(until) = self.state.paused_until() {
            return Some(if pings { until.min(self.watchdog.ping_at()) } else { until });
        }
        self.has_timeout().then(|| self.watchdog.next(pings))
    }

    /// Returns the time at which the exchange gives an open call up, for a host whose calls need a
    /// timeout of their own.
    #[must_use]
    pub fn call_until(&self, id: CallId) -> Option<Millis> {
        let of_step = self.steps.call_until(id);
        of_step.or_else(|| self.has_timeout().then(|| self.watchdog.next(false)))
    }

    /// Returns the maximum number of bytes to read of the answer to a call, for a host that gets
    /// answers whole.
    #[must_use]
    pub fn call_bytes_max(&self, id: CallId) -> usize {
        let settings = &self.config.settings;
        let limits = self.steps.limits(id, 200, settings);
        limits.map_or(settings.response_bytes_max, |limits| limits.bytes_max)
    }

    /// Returns true if the answer to a call is for the client. The answers to other calls are for
    /// steps.
    #[must_use]
    pub fn is_for_client(&self, id: CallId) -> bool {
        self.client_call() == Some(id)
    }

    /// Returns true while an upstream answer that is one JSON text is collected. The answer is held
    /// until complete, though the head may already be sent to a client that waited long.
    #[must_use]
    pub fn is_collecting(&self) -> bool {
        self.state.round().is_some_and(round::Round::is_collecting)
    }

    /// Returns the number of bytes kept in memory: the client's body, collected upstream bytes,
    /// incomplete events, and blocks and tool calls that wait for their turn. A host counts these
    /// bytes towards `buffered_bytes_max`.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let asked = self.state.asks().iter().map(ask::Ask::held_bytes);
        let kept = asked.fold(self.answer_bytes(), usize::saturating_add);
        let written = self.writer.as_ref().map_or(0, |writer| writer.held_bytes());
        kept.saturating_add(self.client.body.len())
            .saturating_add(self.steps.held_bytes())
            .saturating_add(written)
    }

    /// Returns the number of bytes of the client's headers, which are kept until the exchange ends.
    #[must_use]
    pub fn head_bytes(&self) -> usize {
        let bytes = |(name, value): &Header| name.len().saturating_add(value.len());
        self.client.headers.iter().map(bytes).fold(0, usize::saturating_add)
    }

    /// Returns the number of bytes of the upstream's answer for the client that are kept in memory.
    /// The next call of a method may translate all these bytes at once.
    #[must_use]
    pub fn answer_bytes(&self) -> usize {
        self.state.round().map_or(0, round::Round::held_bytes)
    }

    /// Returns true if the upstream has refused the request, and the end of its error is missing.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.state.round().is_some_and(|round| round.refusal_status().is_some())
    }

    /// Returns the number of bytes of the client's body that may be read again when the upstream's
    /// answer ends with a refusal.
    #[must_use]
    pub fn refused_bytes(&self) -> usize {
        let is_open = self.state.round().is_some();
        let has_begun = self.answer().is_some_and(|answer| answer.has_started());
        if is_open && !has_begun { self.client.body.len() } else { 0 }
    }

    /// Returns the upstream to which the request is routed.
    fn upstream(&self) -> Option<&Upstream> {
        self.config.upstreams.get(&self.report.upstream)
    }

    /// Returns the protocol of the upstream to which the request is routed.
    fn protocol(&self) -> &'static dyn UpstreamProtocol {
        protocols::of(self.upstream().map_or(Protocol::Openai, |upstream| upstream.protocol))
    }
}
