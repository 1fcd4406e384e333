//! The core in this process: what every other host is compared with.

use std::sync::Arc;

use creole::{Config, Exchange, Head, Pings, Reply, RequestHead, ResponseHead};
use serde_json::Value;

use crate::{Answer, End, Got, Header, Host, Seen, Trial};

/// The time of every call.
const NOW: u64 = 1_790_000_000_000;

/// [`Exchange`] with nothing around it.
#[derive(Debug)]
pub struct Core {
    config: Arc<Config>,
}

impl Core {
    /// With this configuration.
    pub fn new(config: &Value) -> Self {
        match Config::from_json(&config.to_string(), |_| None) {
            Ok(config) => Self { config: Arc::new(config) },
            Err(error) => panic!("{error}"),
        }
    }
}

impl Host for Core {
    fn name(&self) -> &'static str {
        "core"
    }

    fn send(&self, trial: &Trial) -> Got {
        let request = &trial.request;
        let mut exchange = Exchange::new(Arc::clone(&self.config), 0x5eed, Pings::No);
        match exchange.handle_request_head(&request.method, &request.path, &request.headers) {
            RequestHead::Translate => {}
            RequestHead::Reply(reply) => return replied(reply, Vec::new()),
            RequestHead::PassThrough => return passed(&trial.answer),
        }
        let sent = match exchange.handle_request(&request.body, NOW) {
            Ok(sent) => sent,
            Err(reply) => return replied(*reply, Vec::new()),
        };
        let seen = Seen {
            method: "POST".to_owned(),
            path: sent.path,
            headers: sent.headers,
            bytes: sent.body.len(),
            body: sent.body.into(),
        };
        let (mut head, mut body) = (None, Vec::new());
        let answer = &trial.answer;
        if exchange.handle_response_head(answer.status, &answer.headers, NOW)
            == ResponseHead::PassThrough
        {
            return passed(answer);
        }
        for piece in &answer.pieces {
            let first = exchange.handle_response_body(piece, NOW, &mut body);
            merge(&mut head, first);
            if exchange.is_ended() {
                break;
            }
        }
        if !exchange.is_ended() {
            let how = match answer.end {
                End::Complete => creole::End::Complete,
                End::Aborted | End::Silent => creole::End::Aborted,
            };
            let first = exchange.handle_response_end(how, NOW, &mut body);
            merge(&mut head, first);
        }
        let head = head.expect("a head");
        replied(Reply { head, body }, vec![seen])
    }
}

fn merge(head: &mut Option<Head>, new: Option<Head>) {
    assert!(head.is_none() || new.is_none(), "two heads: {head:?}, {new:?}");
    if new.is_some() {
        *head = new;
    }
}

fn replied(reply: Reply, upstream: Vec<Seen>) -> Got {
    let Reply { head: Head { status, headers }, body } = reply;
    Got { status, headers, body, end: End::Complete, upstream }
}

fn passed(answer: &Answer) -> Got {
    let headers: Vec<Header> = answer.headers.clone();
    let body = answer.pieces.concat();
    Got { status: answer.status, headers, body, end: answer.end, upstream: Vec::new() }
}
