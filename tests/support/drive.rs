//! Drives an [`Exchange`] as a host does.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use creole::observe::report::Report;
use creole::{
    Call, CallId, Cancel, Config, DocumentText, End, Failure, Head, Header, HostCan, Millis, Pings,
    Reply, RequestHead, Unread,
};

/// The time of every call, so that no split changes what is sent.
pub const NOW: u64 = 1_790_000_000_000;

/// The seed of every exchange, so that ids can be compared.
pub const SEED: u128 = 0x5eed;

/// A host that can do no more than this.
pub fn can(ping: Pings) -> HostCan {
    HostCan { ping, ..HostCan::default() }
}

/// Decision on a request, by its head.
#[derive(Debug, PartialEq)]
pub enum Decision {
    /// Collect the body.
    Translate,
    /// Not ours.
    PassThrough,
    /// Answer at once.
    Reply(Reply),
}

/// Exchange of a host that makes one call at a time: its events are about the newest call.
#[derive(Debug)]
pub struct Exchange {
    exchange: creole::Exchange,
    call: Option<CallId>,
}

impl Deref for Exchange {
    type Target = creole::Exchange;

    fn deref(&self) -> &creole::Exchange {
        &self.exchange
    }
}

impl DerefMut for Exchange {
    fn deref_mut(&mut self) -> &mut creole::Exchange {
        &mut self.exchange
    }
}

impl Exchange {
    /// An exchange of which nothing happened yet.
    pub fn new(config: Arc<Config>, seed: u128, can: HostCan) -> Self {
        Self { exchange: creole::Exchange::new(config, seed, can), call: None }
    }

    /// Makes the next call, if one is due.
    pub fn poll_call(&mut self, now: Millis) -> Option<Call> {
        let call = self.exchange.poll_call(now)?;
        self.call = Some(call.id);
        Some(call)
    }

    /// Returns how the newest call is cancelled, if it is.
    pub fn poll_cancel(&mut self) -> Option<Cancel> {
        let (id, cancel) = self.exchange.poll_cancel()?;
        assert_eq!(Some(id), self.call);
        Some(cancel)
    }

    fn id(&self) -> CallId {
        self.call.unwrap_or(CallId(0))
    }

    /// The head of the newest call's answer.
    pub fn handle_call_head(&mut self, status: u16, headers: &[Header], now: Millis) {
        self.exchange.handle_call_head(self.id(), status, headers, now);
    }

    /// A piece of the newest call's answer.
    pub fn handle_call_body(&mut self, piece: &[u8], now: Millis) {
        self.exchange.handle_call_body(self.id(), piece, now);
    }

    /// The end of the newest call's answer.
    pub fn handle_call_end(&mut self, end: End, now: Millis) {
        self.exchange.handle_call_end(self.id(), end, now);
    }

    /// The text of the document that the newest call is about.
    pub fn handle_document(&mut self, came: Result<DocumentText, Unread>) {
        self.exchange.handle_document(self.id(), came);
    }

    /// A failure of the newest call, or one of the whole exchange.
    pub fn handle_failure(&mut self, failure: Failure, now: Millis) {
        match self.call {
            Some(id) if failure != Failure::Overloaded => {
                self.exchange.handle_call_failure(id, failure, now);
            }
            _ => self.exchange.handle_failure(failure, now),
        }
    }
}

/// Steps of a host: each is one event for an [`Exchange`], and what the host then polls.
pub trait Steps {
    /// The client's head.
    fn decide(&mut self, method: &str, path: &str, headers: &[Header]) -> Decision;
    /// The client's body.
    fn request(&mut self, body: &[u8], now: u64) -> Result<Call, Box<Reply>>;
    /// A piece of the upstream's body.
    fn piece(&mut self, piece: &[u8], now: u64, out: &mut Vec<u8>) -> Option<Head>;
    /// The end of the upstream's body.
    fn end(&mut self, end: End, now: u64, out: &mut Vec<u8>) -> Option<Head>;
    /// No upstream answers.
    fn failed(&mut self, failure: Failure, now: u64, out: &mut Vec<u8>) -> Option<Head>;
    /// No upstream answers, and nothing was sent.
    fn reply_to(&mut self, failure: Failure, now: u64) -> Reply;
    /// Time passes.
    fn timeout(&mut self, now: u64, out: &mut Vec<u8>) -> Option<Head>;
}

impl Steps for Exchange {
    fn decide(&mut self, method: &str, path: &str, headers: &[Header]) -> Decision {
        match self.handle_request_head(method, path, headers) {
            RequestHead::Translate => Decision::Translate,
            RequestHead::PassThrough => Decision::PassThrough,
            RequestHead::Answered => Decision::Reply(self.poll_reply().unwrap()),
        }
    }

    fn request(&mut self, body: &[u8], now: u64) -> Result<Call, Box<Reply>> {
        self.handle_request_body(body.to_vec(), now);
        self.poll_call(now).ok_or_else(|| Box::new(self.poll_reply().unwrap()))
    }

    fn piece(&mut self, piece: &[u8], now: u64, out: &mut Vec<u8>) -> Option<Head> {
        self.handle_call_body(piece, now);
        polled(self, out)
    }

    fn end(&mut self, end: End, now: u64, out: &mut Vec<u8>) -> Option<Head> {
        self.handle_call_end(end, now);
        polled(self, out)
    }

    fn failed(&mut self, failure: Failure, now: u64, out: &mut Vec<u8>) -> Option<Head> {
        self.handle_failure(failure, now);
        polled(self, out)
    }

    fn reply_to(&mut self, failure: Failure, now: u64) -> Reply {
        self.handle_failure(failure, now);
        self.poll_reply().unwrap()
    }

    fn timeout(&mut self, now: u64, out: &mut Vec<u8>) -> Option<Head> {
        self.handle_timeout(now);
        polled(self, out)
    }
}

fn polled(exchange: &mut Exchange, out: &mut Vec<u8>) -> Option<Head> {
    exchange.poll_body(out);
    exchange.poll_head()
}

/// Answer that a client got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Status and headers.
    pub head: Head,
    /// Bytes of the whole body.
    pub body: Vec<u8>,
    /// Report of the core on what happened.
    pub report: Report,
}

/// Headers from name and value pairs.
pub fn headers(pairs: &[(&str, &str)]) -> Vec<Header> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The configuration in `json`, with any secret that it names.
pub fn config(json: &str) -> Arc<Config> {
    match Config::from_json(json, |name| Some(format!("secret-of-{name}"))) {
        Ok(config) => Arc::new(config),
        Err(error) => panic!("{error}\n{json}"),
    }
}

/// Sends a request: gives the exchange with the upstream's request, or the answer that needed none.
pub fn request(
    config: &Arc<Config>,
    path: &str,
    extra_headers: &[(&str, &str)],
    body: &[u8],
) -> Result<(Exchange, Call), Box<Answer>> {
    let mut exchange = Exchange::new(Arc::clone(config), SEED, HostCan::default());
    let mut all = headers(&[
        ("content-type", "application/json"),
        ("anthropic-version", "2023-06-01"),
        ("x-api-key", "sk-test"),
    ]);
    all.extend(headers(extra_headers));
    match exchange.decide("POST", path, &all) {
        Decision::Translate => {}
        Decision::Reply(reply) => return Err(answer(reply, &exchange)),
        Decision::PassThrough => panic!("{path} is not translated"),
    }
    match exchange.request(body, NOW) {
        Ok(upstream) => Ok((exchange, upstream)),
        Err(reply) => Err(answer(*reply, &exchange)),
    }
}

fn answer(reply: Reply, exchange: &Exchange) -> Box<Answer> {
    Box::new(Answer { head: reply.head, body: reply.body, report: exchange.report() })
}

/// The upstream's answer comes, in pieces.
pub fn respond<'a>(
    mut exchange: Exchange,
    status: u16,
    headers: &[Header],
    pieces: impl IntoIterator<Item = &'a [u8]>,
    end: End,
) -> Answer {
    let mut body = Vec::new();
    let mut heads = Vec::new();
    exchange.handle_call_head(status, headers, NOW);
    for piece in pieces {
        heads.extend(exchange.piece(piece, NOW, &mut body));
    }
    heads.extend(exchange.end(end, NOW, &mut body));
    assert_eq!(heads.len(), 1, "one head: {heads:?} with {:?}", String::from_utf8_lossy(&body));
    Answer { head: heads.remove(0), body, report: exchange.report() }
}
