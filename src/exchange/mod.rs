//! Exchange: one request and its response, without I/O. It is the only type that a host drives.
//!
//! There is no I/O, no clock and no entropy in here: bytes and times come in as arguments, ids come
//! from the seed. The same arguments give the same bytes on every host.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod`, `seam` | what a host calls, and what goes through between the two |
//! | `request`, `base`, `door` | the client's head: whose it is, its path, who may come in |
//! | `pass` | requests that are not Creole's, which pass |
//! | `calls`, `round` | the calls of upstreams; a round is one of them with what came back |
//! | `steps`, `ask` | what is asked before the calls and behind the answer; an open question with what came of it |
//! | `response`, `body`, `unreachable` | what comes of a call |
//! | `state`, `watchdog` | where the exchange is, and how long that may take |
//! | `output`, `pings` | what the client gets, and what keeps its connection open meanwhile |
//! | `retry`, `memory`, `conversations` | what is left out after a refusal, and what is remembered of that: of a model, of a conversation |
//! | `count`, `models` | counts of tokens, and the list of models |
//! | `documents` | documents that the host reads |

mod ask;
mod base;
mod body;
mod calls;
mod conversations;
mod count;
mod documents;
mod door;
mod memory;
mod models;
mod output;
mod pass;
mod pings;
mod request;
mod response;
mod retry;
mod round;
mod seam;
mod state;
mod steps;
mod unreachable;
mod watchdog;

use std::fmt;
use std::sync::Arc;

pub use base::with_version;
pub use documents::Document;
pub use memory::Refusals;
pub use pass::{PassedHead, passed};
pub use seam::{Call, Cancel, End, Failure, Fetch, Head, HostCan, Pings, Reply, RequestHead};
pub use unreachable::Unreachable;

use conversations::ConversationId;
use output::Output;
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
use crate::protocols::messages::models::ListFor;
use crate::protocols::{self, Refused, UpstreamProtocol};

/// Exchange of one client's request and its response, for which a host makes calls. Each call is a
/// round.
///
/// A host feeds what happened (`handle_…`), and then does what is due (`poll_…`), until nothing is:
///
/// | after | poll |
/// |---|---|
/// | [`handle_request_head`](Self::handle_request_head) | [`poll_reply`](Self::poll_reply), if it says that the request is answered |
/// | [`handle_request_body`](Self::handle_request_body) | [`poll_call`](Self::poll_call), then [`poll_timeout`](Self::poll_timeout). If there is no call: [`poll_document`](Self::poll_document), if the host [can read documents](HostCan::read_documents), then [`poll_reply`](Self::poll_reply) |
/// | [`handle_document`](Self::handle_document) | as after the body |
/// | [`handle_call_head`](Self::handle_call_head) | [`poll_call`](Self::poll_call), if the host can [fetch](HostCan::fetch); [`poll_timeout`](Self::poll_timeout) |
/// | [`handle_call_body`](Self::handle_call_body), [`handle_call_end`](Self::handle_call_end), [`handle_failure`](Self::handle_failure), [`handle_timeout`](Self::handle_timeout) | [`poll_cancel`](Self::poll_cancel); [`poll_call`](Self::poll_call), if the host can [ask again](HostCan::ask_again) or fetch; [`poll_head`](Self::poll_head); [`poll_body`](Self::poll_body); [`poll_timeout`](Self::poll_timeout) |
/// | [`handle_client_gone`](Self::handle_client_gone) | nothing: drop the call |
///
/// A time runs as soon as a call is polled, since the head of its answer may never come: so
/// [`poll_timeout`](Self::poll_timeout) comes last, after each call. There is one call at a time. A
/// call that is due takes the place of the one before, of which nothing more is fed. A host that
/// can ask again asks for it also when the client has some of the answer: behind pings comes the
/// call after a refusal, behind the answer the judge's ([`Config::judge`]). Of a host that can
/// [fetch](HostCan::fetch), images are asked for before the upstream is called, and of one that can
/// ask again, descriptions of images ([`Config::vision`]). The head for the client is held until
/// the first byte of the body is known, so that an error in an upstream's first event still becomes
/// an HTTP error. A ping may begin a stream earlier. Once [`is_ended`](Self::is_ended) is true, the
/// client has everything as soon as the host has polled it.
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
/// // Where there is no call, `poll_reply` has an answer.
/// let call = exchange.poll_call(now).unwrap();
/// assert_eq!((call.method(), call.path.as_str()), ("POST", "/v1/chat/completions"));
/// let headers = [("content-type".to_owned(), "application/json".to_owned())];
/// exchange.handle_call_head(200, &headers, now);
/// let answer = br#"{"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}"#;
/// exchange.handle_call_body(answer, now);
/// exchange.handle_call_end(End::Complete, now);
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
    /// Recent refusals of upstreams, shared with other exchanges; and those that apply to this
    /// request.
    refusals: Option<Arc<Refusals>>,
    remembered: Vec<Refused>,
    /// Conversation of the request, if something can be remembered of it; and its own changes, with
    /// a hash of the words that asked for them.
    conversation: Option<ConversationId>,
    own_changes: Vec<(Refused, u64)>,
    /// Parts that the upstream refused, and without which it was then called.
    refused: Vec<Refused>,
    /// The first error in unknown words for which the upstream was asked again.
    first_refusal: Option<Error>,
    /// Number of changes for which nothing but a name spoke.
    named: u32,
    /// Steps before the calls and behind the answer.
    steps: Steps,
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

/// Parts of the client's request that are kept.
#[derive(Default)]
struct Client {
    path: Path,
    headers: Vec<Header>,
    /// Id of the conversation, if some upstream is told of it.
    session: Option<String>,
    /// Body of the request; empty once no upstream can be called any more.
    body: Vec<u8>,
}

/// Paths that Creole answers with the help of an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Path {
    #[default]
    Messages,
    CountTokens,
    Models(ListFor),
}

const JSON: &str = "application/json";

impl Exchange {
    /// Starts an exchange. `seed` must differ for each exchange on all replicas together: ids are
    /// made of it.
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
        }
    }

    /// Returns a report of what has happened so far.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        if let Some(answer) = self.answer() {
            report.answer = answer.report().clone();
        }
        report.warnings = self.warnings();
        report
    }

    /// Returns the warnings of the request and of the answer so far.
    fn warnings(&self) -> Warnings {
        let mut warnings = self.report.warnings.clone();
        if let Some(answer) = self.answer() {
            warnings.merge(answer.warnings());
        }
        warnings
    }

    /// Returns the answer while it is made.
    fn answer(&self) -> Option<&Answer> {
        self.state.round()?.answer()
    }

    /// Adds microseconds that the host spent on this exchange to its report. The core has no clock:
    /// whoever measures around the calls of this type tells it.
    pub fn add_translation_us(&mut self, spent_us: u64) {
        let sum = self.report.translation_us.unwrap_or_default().saturating_add(spent_us);
        self.report.translation_us = Some(sum);
    }

    /// Returns true if the upstream has sent content: what [`Report::content_at`] says, without a
    /// copy of the report.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.report.content_at.is_some()
    }

    /// Returns the name of the client's key, where clients have keys and it sent one of them.
    #[must_use]
    pub fn client_key(&self) -> Option<&str> {
        self.report.client_key.as_deref()
    }

    /// Returns the configuration of this exchange.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Takes the complete body of the request. A call, or an answer that needs none, is due then.
    pub fn handle_request_body(&mut self, body: Vec<u8>, now: Millis) {
        self.report.requested_at = now;
        self.report.request_bytes = body.len();
        self.client.body = body;
        self.state.complete();
    }

    /// Ends the exchange of a client that is gone. Nothing can be sent any more.
    pub fn handle_client_gone(&mut self, now: Millis) {
        if !self.state.is_ended() && !self.state.is_passed() {
            self.finish(Outcome::Abandoned, 499, now);
        }
    }

    /// Drops the client's body, because memory is scarce: no upstream is called again.
    pub fn forget_request_body(&mut self) {
        if !self.state.is_due() && !self.steps.is_before() {
            self.client.body = Vec::new();
        }
    }

    /// Returns true if the client has everything once it has what can be polled.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.state.is_ended()
    }

    /// Returns true if [`Exchange::poll_call`] makes a request now, which takes as long as reading
    /// the client's body.
    #[must_use]
    pub fn is_call_due(&self) -> bool {
        self.state.is_due()
    }

    /// Returns status and headers for the client, once.
    pub fn poll_head(&mut self) -> Option<Head> {
        if self.state.is_ended() && self.output.is_blank() {
            // Waiting for more would hang the client.
            self.tell_nothing_came();
        }
        self.output.take_head()
    }

    /// Appends the bytes for the client. An empty `out` takes them without a copy.
    pub fn poll_body(&mut self, out: &mut Vec<u8>) {
        self.output.take_body(out);
    }

    /// Returns the whole answer, if the exchange has ended before its head was polled.
    pub fn poll_reply(&mut self) -> Option<Reply> {
        let head = if self.is_ended() { self.poll_head()? } else { return None };
        let mut body = Vec::new();
        self.poll_body(&mut body);
        Some(Reply { head, body })
    }

    /// Returns what the host does with the rest of the upstream's answer, if nobody needs it. A
    /// call that is polled after this has an answer of its own.
    #[must_use]
    pub fn poll_cancel(&self) -> Option<Cancel> {
        if self.state.is_cut() {
            Some(Cancel::Cut)
        } else if self.state.is_ended() || self.state.is_next_due() {
            Some(Cancel::ReadOut)
        } else {
            None
        }
    }

    /// Returns the time at which [`Exchange::handle_timeout`] must be called, if any.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Millis> {
        if self.state.is_ask_due() && self.steps.is_behind() {
            // A host that never asks for the call must not keep the client waiting.
            return self.steps.until();
        }
        if self.state.round().is_none() {
            self.state.ask_open()?;
        }
        Some(self.watchdog.next(self.may_ping_unasked()))
    }

    /// Returns true while a whole answer is collected. It is held until it is complete, though a
    /// client that was kept waiting may have its head.
    #[must_use]
    pub fn is_collecting(&self) -> bool {
        self.state.round().is_some_and(round::Round::is_collecting)
    }

    /// Returns the number of bytes kept in memory: the client's body, what is collected of the
    /// upstream's, events that are not complete, and blocks and calls that wait for their turn. A
    /// host counts them towards `buffered_bytes_max`.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let kept = self.answer_bytes().saturating_add(self.client.body.len());
        kept.saturating_add(self.steps.held_bytes())
    }

    /// Returns the number of bytes of the client's headers that are kept until the exchange ends.
    #[must_use]
    pub fn head_bytes(&self) -> usize {
        let bytes = |(name, value): &Header| name.len().saturating_add(value.len());
        self.client.headers.iter().map(bytes).fold(0, usize::saturating_add)
    }

    /// Returns the number of bytes of the upstream's answer that are kept in memory. The next call
    /// may translate all of them at once.
    #[must_use]
    pub fn answer_bytes(&self) -> usize {
        let asked = self.state.ask_open().map_or(0, ask::Ask::held_bytes);
        self.state.round().map_or(asked, round::Round::held_bytes)
    }

    /// Returns the number of bytes of the client's body that the end of the upstream's answer may
    /// read once more, if that refuses the request.
    #[must_use]
    pub fn refused_bytes(&self) -> usize {
        let is_open = self.state.round().is_some();
        let has_begun = self.answer().is_some_and(|answer| answer.has_started());
        if is_open && !has_begun { self.client.body.len() } else { 0 }
    }

    /// Returns the upstream that has the request.
    fn upstream(&self) -> Option<&Upstream> {
        self.config.upstreams.get(&self.report.upstream)
    }

    /// Returns the protocol of the upstream that has the request.
    fn protocol(&self) -> &'static dyn UpstreamProtocol {
        protocols::of(self.upstream().map_or(Protocol::Openai, |upstream| upstream.protocol))
    }
}
