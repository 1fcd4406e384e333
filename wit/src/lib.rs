//! The component: `creole::Exchange` behind the interface of `creole.wit`, and nothing else.
//!
//! Every function converts types and calls the core. Nothing in here decides anything.
#![cfg(target_arch = "wasm32")]
#![allow(missing_docs, reason = "the generated bindings are documented in creole.wit")]

use std::cell::RefCell;
use std::sync::Arc;

wit_bindgen::generate!({ world: "translator", path: "creole.wit" });

use exports::creole::translate::exchanges as wit;

struct Component;

struct Config {
    config: Arc<creole::Config>,
    refusals: Arc<creole::Refusals>,
}

struct Exchange(RefCell<creole::Exchange>);

impl wit::Guest for Component {
    type Config = Config;
    type Exchange = Exchange;
}

impl wit::GuestConfig for Config {
    fn parse(json: String, secrets: Vec<wit::Header>) -> Result<wit::Config, String> {
        let secret = |name: &str| {
            secrets.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        let config = creole::Config::from_json(&json, secret).map_err(|error| error.to_string())?;
        config.check_client_keys()?;
        Ok(wit::Config::new(Self { config: Arc::new(config), refusals: Arc::default() }))
    }

    fn request_bytes_max(&self) -> u64 {
        self.config.settings.request_bytes_max as u64
    }
}

impl wit::GuestExchange for Exchange {
    fn new(config: wit::ConfigBorrow<'_>, seed: (u64, u64), pings: bool) -> Self {
        let Config { config, refusals } = config.get::<Config>();
        let seed = (u128::from(seed.0) << 64) | u128::from(seed.1);
        let pings = if pings { creole::Pings::Sent } else { creole::Pings::No };
        let mut exchange = creole::Exchange::new(Arc::clone(config), seed, pings);
        exchange.remember(Arc::clone(refusals));
        Self(RefCell::new(exchange))
    }

    fn handle_request_head(
        &self,
        method: String,
        path: String,
        headers: Vec<wit::Header>,
    ) -> wit::RequestHead {
        match self.0.borrow_mut().handle_request_head(&method, &path, &headers) {
            creole::RequestHead::Translate => wit::RequestHead::Translate,
            creole::RequestHead::PassThrough => wit::RequestHead::PassThrough,
            creole::RequestHead::Reply(reply) => wit::RequestHead::Reply(reply.into()),
        }
    }

    fn handle_request(
        &self,
        body: Vec<u8>,
        now: wit::Millis,
    ) -> Result<wit::UpstreamRequest, wit::Reply> {
        let mut exchange = self.0.borrow_mut();
        match exchange.handle_request(&body, now) {
            Ok(request) => {
                let upstream = exchange.config().upstreams.get(&request.upstream);
                Ok(wit::UpstreamRequest {
                    url: upstream.map(|upstream| upstream.url.clone()).unwrap_or_default(),
                    upstream: request.upstream,
                    path: request.path,
                    headers: request.headers,
                    body: request.body,
                })
            }
            Err(reply) => Err((*reply).into()),
        }
    }

    fn handle_response_head(
        &self,
        status: u16,
        headers: Vec<wit::Header>,
        now: wit::Millis,
    ) -> wit::ResponseHead {
        match self.0.borrow_mut().handle_response_head(status, &headers, now) {
            creole::ResponseHead::Translate => wit::ResponseHead::Translate,
            creole::ResponseHead::PassThrough => wit::ResponseHead::PassThrough,
        }
    }

    fn handle_response_body(&self, piece: Vec<u8>, now: wit::Millis) -> wit::Output {
        self.output(|exchange, out| exchange.handle_response_body(&piece, now, out))
    }

    fn handle_response_end(&self, how: wit::End, now: wit::Millis) -> wit::Output {
        let end = match how {
            wit::End::Complete => creole::End::Complete,
            wit::End::Aborted => creole::End::Aborted,
        };
        self.output(|exchange, out| exchange.handle_response_end(end, now, out))
    }

    fn handle_failure(&self, what: wit::Failure, now: wit::Millis) -> wit::Output {
        let failure = match what {
            wit::Failure::RequestTooLarge => creole::Failure::RequestTooLarge,
            wit::Failure::RequestIncomplete => creole::Failure::RequestIncomplete,
            wit::Failure::Overloaded => creole::Failure::Overloaded,
            wit::Failure::Unreachable(reason) => {
                creole::Failure::Unreachable(creole::Unreachable::Other(reason))
            }
            wit::Failure::NoHealthyUpstream => creole::Failure::NoHealthyUpstream,
            wit::Failure::Timeout => creole::Failure::Timeout,
            wit::Failure::NoRoute => creole::Failure::NoRoute,
        };
        self.output(|exchange, out| exchange.handle_failure(failure, now, out))
    }

    fn handle_timeout(&self, now: wit::Millis) -> wit::Output {
        self.output(|exchange, out| exchange.handle_timeout(now, out))
    }

    fn handle_client_gone(&self, now: wit::Millis) {
        self.0.borrow_mut().handle_client_gone(now);
    }

    fn poll_timeout(&self) -> Option<wit::Millis> {
        self.0.borrow().poll_timeout()
    }

    fn is_ended(&self) -> bool {
        self.0.borrow().is_ended()
    }

    fn report(&self) -> wit::Report {
        let report = self.0.borrow().report();
        let cause = report.cause().to_owned();
        let answer = report.answer;
        wit::Report {
            request_id: report.request_id,
            upstream: report.upstream,
            model: report.model,
            status: report.status,
            stop_reason: answer.stop_reason.map(str::to_owned),
            cause,
            upstream_status: report.upstream_status,
            upstream_request_id: report.upstream_request_id,
            upstream_message: report.upstream_message,
            input_tokens: answer.input_tokens,
            cache_read_tokens: answer.cache_read_tokens,
            cache_creation_tokens: answer.cache_creation_tokens,
            output_tokens: answer.output_tokens,
            tool_calls: answer.tool_calls,
            warnings: report
                .warnings
                .iter()
                .map(|warning| (warning.code.to_owned(), warning.name.clone(), warning.count))
                .collect(),
            guards: report.warnings.guards().iter().map(|&guard| guard.to_owned()).collect(),
        }
    }
}

impl Exchange {
    fn output(
        &self,
        call: impl FnOnce(&mut creole::Exchange, &mut Vec<u8>) -> Option<creole::Head>,
    ) -> wit::Output {
        let mut body = Vec::new();
        let head = call(&mut self.0.borrow_mut(), &mut body).map(wit::Head::from);
        wit::Output { head, body }
    }
}

impl From<creole::Head> for wit::Head {
    fn from(head: creole::Head) -> Self {
        Self { status: head.status, headers: head.headers }
    }
}

impl From<creole::Reply> for wit::Reply {
    fn from(reply: creole::Reply) -> Self {
        Self { head: reply.head.into(), body: reply.body }
    }
}

export!(Component);
