//! An exchange while it lives, and the line in the log when it ends.
//!
//! The line is written when the value is dropped, whoever drops it: the handler when it has answered,
//! or the stream when the client has gone.

use creole::config::Log;
use creole::{Exchange, Failure, Pings};
use worker::web_sys::Response;

use crate::environment::{Isolate, now, seed};
use crate::http;
use crate::line::{self, Request};

pub(crate) struct Live {
    pub(crate) exchange: Exchange,
    pub(crate) request: Request,
}

impl Live {
    pub(crate) fn new(isolate: &Isolate, method: &str, path: &str) -> Self {
        #[cfg(feature = "test-hooks")]
        crate::hooks::count(true);
        let exchange = Exchange::new(isolate.config.clone(), seed(), Pings::Sent);
        let (method, path) = (method.to_owned(), path.to_owned());
        Self { exchange, request: Request { method, path, began: now(), passed: None } }
    }

    /// The answer to a failure before the head.
    pub(crate) fn fail(&mut self, failure: Failure) -> Response {
        let mut out = Vec::new();
        let head = self.exchange.handle_failure(failure, now(), &mut out);
        http::response(&head.unwrap_or_else(no_head), &out)
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
        let level = line::level(&report);
        if self.exchange.config().settings.log < level {
            return;
        }
        let line = line::line(&self.request, &report, now);
        match level {
            Log::Error => worker::console_error!("{line}"),
            Log::Warn => worker::console_warn!("{line}"),
            _ => worker::console_log!("{line}"),
        }
    }
}

/// Should an exchange end without a head, the client still gets an answer.
pub(crate) fn no_head() -> creole::Head {
    creole::Head { status: 502, headers: Vec::new() }
}
