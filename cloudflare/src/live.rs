//! State of an exchange while it runs. The exchange is counted and logged when this state is
//! dropped.
//!
//! The state may be dropped by the handler, after the answer or when the client has gone, or by the
//! stream of the answer.

use std::rc::Rc;

use creole::config::Log;
use creole::headers::Headers as _;
use creole::observe::log::{self, Level, LoggedRequest};
use creole::observe::report::Outcome;
use creole::{Call, CallId, Config, Exchange, Failure, Header, HostCan, Owner, Pings, Unreachable};
use worker::web_sys::{self, Response};

use crate::budget::Held;
use crate::environment::{Isolate, has_colo, now, seed};
use crate::gone::Client;
use crate::http;
use crate::incoming::Incoming;

pub(crate) struct Live {
    pub(crate) exchange: Exchange,
    pub(crate) request: LoggedRequest,
    pub(crate) client: Rc<Client>,
    isolate: Isolate,
    /// Memory held by the request; `None` until the request's owner is known.
    held: Option<Held>,
    /// Number of calls that the exchange has made so far.
    calls: u32,
}

/// Number of calls reserved for models (an answer, retries, image descriptions, each perhaps asked
/// twice, and a judge), so that image fetches and calls of services cannot use them up.
const CALLS_OF_MODELS: u32 = 14;

impl Live {
    pub(crate) fn new(isolate: &Isolate, client: &Rc<Client>, method: &str, path: &str) -> Self {
        #[cfg(feature = "test-hooks")]
        crate::hooks::count(true);
        let can = HostCan {
            ping: Pings::Sent,
            ask_again: true,
            list_models: true,
            fetch: true,
            call_services: true,
            calls_at_once: 4,
            later_answers_whole: false,
            read_documents: false,
            serve_others: false,
        };
        let mut exchange = Exchange::new(isolate.config.clone(), seed(), can);
        exchange.remember(isolate.refusals.clone());
        let (method, path) = (method.to_owned(), path.to_owned());
        let request = LoggedRequest { method, path, began: now(), ..LoggedRequest::default() };
        Self {
            exchange,
            request,
            client: Rc::clone(client),
            isolate: isolate.clone(),
            held: None,
            calls: 0,
        }
    }

    /// Reports to the exchange that a call was not sent, because memory or another requirement of
    /// the call is missing.
    pub(crate) fn fail_call(&mut self, call: CallId, failure: Failure) {
        match failure {
            Failure::Overloaded => self.exchange.handle_failure(failure, now()),
            failure => self.exchange.handle_call_failure(call, failure, now()),
        }
    }

    /// Starts counting the memory of the request for its owner (a client key or address).
    pub(crate) fn hold(
        &mut self,
        request: &web_sys::Request,
        headers: &[Header],
    ) -> Result<(), Failure> {
        let owner = owner(&self.exchange, has_colo(request), headers);
        self.held = Some(self.isolate.budget.begin(owner, now()));
        self.count(0)
    }

    /// Counts the bytes that the exchange holds now, plus `beside` bytes held elsewhere for the
    /// request. Fails if the budget is exceeded.
    pub(crate) fn count(&self, beside: usize) -> Result<(), Failure> {
        let exchange = self.exchange.head_bytes().saturating_add(self.exchange.held_bytes());
        match &self.held {
            Some(held) if !held.set(exchange.saturating_add(beside), now()) => {
                Err(Failure::Overloaded)
            }
            _ => Ok(()),
        }
    }

    /// Counts a call and the memory of its body, plus `beside` bytes of other open calls. If the
    /// budget is exceeded, drops the client's request body and counts again.
    pub(crate) fn count_call(&mut self, call: &Call, beside: usize) -> Result<(), Failure> {
        let kept = if call.upstream().is_some() { 0 } else { CALLS_OF_MODELS };
        if self.calls.saturating_add(kept) >= self.isolate.calls_max {
            let reason = Unreachable::TooManyCalls;
            warn(self.exchange.config(), || reason.words().to_owned());
            return Err(Failure::Unreachable(reason));
        }
        self.calls = self.calls.saturating_add(1);
        self.count_kept(call.body.len().saturating_add(beside))
    }

    /// Counts the bytes that the exchange holds now, plus `beside` bytes held elsewhere for the
    /// request. If the budget is exceeded, drops the client's request body and counts again.
    pub(crate) fn count_kept(&mut self, beside: usize) -> Result<(), Failure> {
        self.count(beside).or_else(|_| {
            self.exchange.forget_request_body();
            self.count(beside)
        })
    }

    /// Notes that the client's body is being collected; see [`Held::collect`].
    pub(crate) fn collect(&self, give_up: impl FnOnce() + 'static) {
        if let Some(held) = &self.held {
            held.collect(give_up);
        }
    }

    /// Notes that the client's body is complete, or passes through uncollected.
    pub(crate) fn complete(&self) {
        if let Some(held) = &self.held {
            held.complete();
        }
    }

    /// Notes that the client gets the head of its answer now.
    pub(crate) fn begin_answer(&self) {
        if let Some(held) = &self.held {
            held.begin_answer();
        }
    }

    /// Returns the error response for a failure before the head of the answer was sent.
    pub(crate) fn fail(&mut self, failure: Failure) -> Response {
        self.refuse(failure, None)
    }

    /// Returns the error response for a failure before the client's body was read to its end.
    pub(crate) fn refuse(&mut self, failure: Failure, unread: Option<&Incoming>) -> Response {
        self.exchange.handle_failure(failure, now());
        self.reply(unread)
    }

    /// Returns the response of an exchange that has ended.
    pub(crate) fn reply(&mut self, unread: Option<&Incoming>) -> Response {
        let reply = self.exchange.poll_reply().unwrap_or_default();
        let most = self.exchange.config().settings.discarded_bytes_max();
        http::refusal(&reply.head, &reply.body, unread, most)
    }
}

/// Returns the owner of a request: a client key, or the client address that Cloudflare saw. Outside
/// of Cloudflare any client can set the header with that address, so there the client's credential,
/// which the upstream checks, identifies the client.
fn owner(exchange: &Exchange, is_at_cloudflare: bool, headers: &[Header]) -> Owner {
    if let Some(name) = exchange.client_key() {
        return Owner::of_client_key(name);
    }
    let address = headers.value("cf-connecting-ip").filter(|_| is_at_cloudflare);
    if let Some(address) = address.and_then(|address| address.parse().ok()) {
        return Owner::of_address(address);
    }
    let credential = headers.value("x-api-key").or_else(|| headers.value("authorization"));
    Owner::of_credential(credential.unwrap_or_default())
}

/// Logs a warning about an upstream, unless the log is off.
pub(crate) fn warn(config: &Config, what: impl FnOnce() -> String) {
    if config.settings.log >= Log::Warn {
        worker::console_warn!("{}", what());
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        #[cfg(feature = "test-hooks")]
        crate::hooks::count(false);
        let now = now();
        // A disconnect changes nothing in an exchange that has ended.
        self.exchange.handle_client_gone(now);
        let report = self.exchange.report();
        let config = self.exchange.config();
        if let Some(dataset) = &self.isolate.dataset
            && report.outcome != Outcome::Open
            && let Ok(mut counters) = self.isolate.counters.try_borrow_mut()
        {
            dataset.write(&report, config, &mut counters, now);
        }
        let Some(line) = log::line(&self.request, &report, config.settings.log, now) else {
            return;
        };
        let Ok(mut refused) = self.isolate.refused_lines.try_borrow_mut() else { return };
        let Some(left_out) = refused.admit(&report, now) else { return };
        if left_out > 0 {
            worker::console_warn!("{left_out} lines of refused requests were left out");
        }
        match log::level(&report) {
            Level::Error => worker::console_error!("{line}"),
            Level::Warn => worker::console_warn!("{line}"),
            Level::Info => worker::console_log!("{line}"),
        }
    }
}
