//! Drives an [`Exchange`] as a host does.

use std::sync::Arc;

use creole::observe::report::Report;
use creole::{Config, End, Exchange, Head, Header, Pings, Reply, RequestHead, UpstreamRequest};

/// The time of every call, so that no split changes what is sent.
pub const NOW: u64 = 1_790_000_000_000;

/// The seed of every exchange, so that ids can be compared.
pub const SEED: u128 = 0x5eed;

/// What a client got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Status and headers.
    pub head: Head,
    /// All bytes.
    pub body: Vec<u8>,
    /// What the core says that happened.
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
) -> Result<(Exchange, UpstreamRequest), Box<Answer>> {
    let mut exchange = Exchange::new(Arc::clone(config), SEED, Pings::No);
    let mut all = headers(&[
        ("content-type", "application/json"),
        ("anthropic-version", "2023-06-01"),
        ("x-api-key", "sk-test"),
    ]);
    all.extend(headers(extra_headers));
    match exchange.handle_request_head("POST", path, &all) {
        RequestHead::Translate => {}
        RequestHead::Reply(reply) => return Err(answer(reply, &exchange)),
        RequestHead::PassThrough => panic!("{path} is not translated"),
    }
    match exchange.handle_request(body, NOW) {
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
    exchange.handle_response_head(status, headers, NOW);
    for piece in pieces {
        heads.extend(exchange.handle_response_body(piece, NOW, &mut body));
    }
    heads.extend(exchange.handle_response_end(end, NOW, &mut body));
    assert_eq!(heads.len(), 1, "one head: {heads:?} with {:?}", String::from_utf8_lossy(&body));
    Answer { head: heads.remove(0), body, report: exchange.report() }
}
