//! WebAssembly component: `creole::Exchange` behind the interface of `creole.wit`, and nothing
//! else.
//!
//! Every function converts types and calls the core. Nothing in here decides anything.
#![cfg(target_arch = "wasm32")]
#![allow(missing_docs, reason = "the generated bindings are documented in creole.wit")]

use std::cell::RefCell;
use std::sync::Arc;

wit_bindgen::generate!({ world: "translator", path: "creole.wit" });

use exports::creole::translate::exchanges as wit;

/// Maximum number of calls of one exchange that are open at the same time.
const CALLS_AT_ONCE: u8 = 4;

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

    fn check(&self, can: wit::HostCan) -> Result<(), String> {
        let can = host_can(can);
        if !can.call_services || !can.ask_again {
            self.config.check_no_services()
        } else if !can.fetch {
            self.config.check_no_public_calls()
        } else {
            Ok(())
        }
    }

    fn request_bytes_max(&self) -> u64 {
        self.config.settings.request_bytes_max as u64
    }
}

fn host_can(can: wit::HostCan) -> creole::HostCan {
    let pings = can.contains(wit::HostCan::PING);
    let several = can.contains(wit::HostCan::SEVERAL_CALLS);
    creole::HostCan {
        ping: if pings { creole::Pings::Sent } else { creole::Pings::No },
        ask_again: can.contains(wit::HostCan::ASK_AGAIN),
        list_models: can.contains(wit::HostCan::LIST_MODELS),
        call_services: can.contains(wit::HostCan::CALL_SERVICES),
        fetch: can.contains(wit::HostCan::FETCH),
        calls_at_once: if several { CALLS_AT_ONCE } else { 1 },
        ..creole::HostCan::default()
    }
}

impl wit::GuestExchange for Exchange {
    fn new(config: wit::ConfigBorrow<'_>, seed: (u64, u64), can: wit::HostCan) -> Self {
        let Config { config, refusals } = config.get::<Config>();
        let seed = (u128::from(seed.0) << 64) | u128::from(seed.1);
        let can = host_can(can);
        let mut exchange = creole::Exchange::new(Arc::clone(config), seed, can);
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
            creole::RequestHead::Answered => wit::RequestHead::Answered,
        }
    }

    fn handle_request_body(&self, body: Vec<u8>, now: wit::Millis) {
        self.0.borrow_mut().handle_request_body(body, now);
    }

    fn handle_call_head(
        &self,
        id: wit::CallId,
        status: u16,
        headers: Vec<wit::Header>,
        now: wit::Millis,
    ) {
        self.0.borrow_mut().handle_call_head(creole::CallId(id), status, &headers, now);
    }

    fn handle_call_body(&self, id: wit::CallId, piece: Vec<u8>, now: wit::Millis) {
        self.0.borrow_mut().handle_call_body(creole::CallId(id), &piece, now);
    }

    fn handle_call_end(&self, id: wit::CallId, how: wit::End, now: wit::Millis) {
        let end = match how {
            wit::End::Complete => creole::End::Complete,
            wit::End::Aborted => creole::End::Aborted,
        };
        self.0.borrow_mut().handle_call_end(creole::CallId(id), end, now);
    }

    fn handle_call_failure(&self, id: wit::CallId, what: wit::CallFailure, now: wit::Millis) {
        let failure = match what {
            wit::CallFailure::Unreachable(reason) => {
                creole::Failure::Unreachable(creole::Unreachable::Other(reason))
            }
            wit::CallFailure::NoHealthyUpstream => creole::Failure::NoHealthyUpstream,
            wit::CallFailure::Timeout => creole::Failure::Timeout,
            wit::CallFailure::NoRoute => creole::Failure::NoRoute,
            wit::CallFailure::NotPublic => {
                creole::Failure::Unreachable(creole::Unreachable::NotAllowed)
            }
        };
        self.0.borrow_mut().handle_call_failure(creole::CallId(id), failure, now);
    }

    fn handle_failure(&self, what: wit::Failure, now: wit::Millis) {
        let failure = match what {
            wit::Failure::RequestTooLarge => creole::Failure::RequestTooLarge,
            wit::Failure::RequestIncomplete => creole::Failure::RequestIncomplete,
            wit::Failure::Overloaded => creole::Failure::Overloaded,
        };
        self.0.borrow_mut().handle_failure(failure, now);
    }

    fn handle_timeout(&self, now: wit::Millis) {
        self.0.borrow_mut().handle_timeout(now);
    }

    fn poll_call(&self, now: wit::Millis) -> Option<wit::Call> {
        let mut exchange = self.0.borrow_mut();
        let call = exchange.poll_call(now)?;
        let method = call.method().to_owned();
        let (upstream, url, public_only) = match call.to {
            creole::To::Upstream(name) => {
                let url = exchange.config().upstreams.get(&name);
                let url = url.map(|upstream| upstream.url.clone()).unwrap_or_default();
                (name, url, false)
            }
            creole::To::Service(service) => (String::new(), service.url, service.is_public),
            creole::To::Web(fetch) => (String::new(), fetch.url, !fetch.may_be_private),
            // Embedders read no documents, so the exchange asks for none.
            creole::To::Document { .. } => return None,
        };
        Some(wit::Call {
            id: call.id.0,
            method,
            upstream,
            url,
            path: call.path,
            public_only,
            headers: call.headers,
            body: call.body,
        })
    }

    fn poll_output(&self) -> wit::Output {
        let mut exchange = self.0.borrow_mut();
        let head = exchange.poll_head();
        let head = head.map(|head| wit::Head { status: head.status, headers: head.headers });
        let mut body = Vec::new();
        exchange.poll_body(&mut body);
        wit::Output { head, body }
    }

    fn poll_cancel(&self) -> Option<(wit::CallId, wit::Cancel)> {
        let (id, cancel) = self.0.borrow_mut().poll_cancel()?;
        let cancel = match cancel {
            creole::Cancel::ReadOut => wit::Cancel::ReadOut,
            creole::Cancel::Cut => wit::Cancel::Cut,
        };
        Some((id.0, cancel))
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
        let served_model = report.served_model().to_owned();
        let answer = report.answer;
        wit::Report {
            request_id: report.request_id,
            upstream: report.upstream,
            model: report.model,
            served_model,
            status: report.status,
            stop_reason: answer.stop_reason.map(|reason| reason.word().to_owned()),
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

export!(Component);
