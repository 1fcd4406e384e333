//! An exchange while it lives; it is counted, and written to the log, when it ends.
//!
//! That happens when the value is dropped, whoever drops it: the handler when it has answered,
//! or the stream when the client has gone.

use creole::config::Log;
use creole::observe::log::{self, Level, Request};
use creole::observe::report::Outcome;
use creole::{Config, Exchange, Failure, HostCan, Pings};
use worker::web_sys::Response;

use crate::budget::Held;
use crate::environment::{Isolate, now, seed};
use crate::http;

pub(crate) struct Live {
    pub(crate) exchange: Exchange,
    pub(crate) request: Request,
    isolate: Isolate,
}

impl Live {
    pub(crate) fn new(isolate: &Isolate, method: &str, path: &str) -> Self {
        #[cfg(feature = "test-hooks")]
        crate::hooks::count(true);
        let can = HostCan {
            ping: Pings::Sent,
            ask_again: true,
            list_models: true,
            fetch: true,
            read_documents: false,
            serve_others: false,
        };
        let mut exchange = Exchange::new(isolate.config.clone(), seed(), can);
        exchange.remember(isolate.refusals.clone());
        let (method, path) = (method.to_owned(), path.to_owned());
        let request = Request { method, path, began: now(), ..Request::default() };
        Self { exchange, request, isolate: isolate.clone() }
    }

    /// Counts what the exchange keeps of the request, which it forgets where that is too much.
    pub(crate) fn hold(&mut self, held: &Held) {
        held.release();
        let max = self.exchange.config().settings.buffered_bytes_max;
        if !held.grow(self.exchange.held_bytes(), max, now()) {
            self.exchange.forget_request_body();
        }
    }

    /// The answer to a failure before the head.
    pub(crate) fn fail(&mut self, failure: Failure) -> Response {
        self.exchange.handle_failure(failure, now());
        self.reply()
    }

    /// The answer of an exchange that has ended.
    pub(crate) fn reply(&mut self) -> Response {
        let reply = self.exchange.poll_reply().unwrap_or_default();
        http::response(&reply.head, &reply.body)
    }
}

/// Says what went wrong with an upstream, unless the log is off.
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
        // Nothing changes where everything was said.
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
        match log::level(&report) {
            Level::Error => worker::console_error!("{line}"),
            Level::Warn => worker::console_warn!("{line}"),
            Level::Info => worker::console_log!("{line}"),
        }
    }
}
