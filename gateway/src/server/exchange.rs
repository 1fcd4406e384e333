//! An exchange while it lives; it is counted, and written to the log, when it ends.
//!
//! That happens when the value is dropped, whoever drops it: the service when it has answered, or
//! hyper when the client has gone. So there is exactly one line for each request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use creole::observe::log::Request;
use creole::{Config, Exchange, HostCan, Pings};

use crate::clock::Clock;
use crate::server::budget::Held;
use crate::server::load::Counted;
use crate::server::records::Records;

/// Interval at which an exchange reports its progress to the page: a report is a copy of many
/// texts.
const SHOW_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) exchange: Exchange,
    pub(crate) clock: Clock,
    pub(crate) request: Request,
    records: Arc<Records>,
    /// The exchange's in the records.
    number: u64,
    /// Time of the last report to the page, and whether there was content then.
    shown: Option<(Instant, bool)>,
    /// Time spent inside the exchange, reported as its translation time.
    spent: Duration,
    /// Memory of the exchange and of its client's head, once the head is let in.
    pub(crate) held: Option<Held>,
    _counted: Counted,
}

impl Live {
    pub(crate) fn new(
        config: Arc<Config>,
        seed: u128,
        clock: Clock,
        records: Arc<Records>,
        method: &str,
        path: &str,
        counted: Counted,
    ) -> Self {
        let (method, path) = (method.to_owned(), path.to_owned());
        let can = HostCan {
            ping: Pings::Sent,
            ask_again: true,
            list_models: true,
            fetch: true,
            read_documents: true,
            serve_others: false,
        };
        Self {
            exchange: Exchange::new(config, seed, can),
            clock,
            request: Request { method, path, began: clock.now(), ..Request::default() },
            number: records.begin(),
            records,
            shown: None,
            spent: Duration::ZERO,
            held: None,
            _counted: counted,
        }
    }

    /// Calls what translates, and measures it.
    pub(crate) fn timed<R>(&mut self, call: impl FnOnce(&mut Exchange) -> R) -> R {
        let began = Instant::now();
        let result = call(&mut self.exchange);
        self.spent = self.spent.saturating_add(began.elapsed());
        let has_content = self.exchange.has_content();
        let is_due = self.shown.is_none_or(|(last, had_content)| {
            has_content != had_content || began.saturating_duration_since(last) >= SHOW_INTERVAL
        });
        if is_due && !self.exchange.is_ended() {
            self.shown = Some((began, has_content));
            self.show();
        }
        result
    }

    /// Tells the page how far the exchange is.
    pub(crate) fn show(&self) {
        if let Some(board) = &self.records.board {
            board.show(self.number, &self.request, &self.exchange.report());
        }
    }

    /// Waits until the exchange wants [`Exchange::handle_timeout`] to be called.
    pub(crate) async fn timeout(&self) {
        match self.exchange.poll_timeout() {
            Some(at) => tokio::time::sleep_until(self.clock.instant(at)).await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let now = self.clock.now();
        // Nothing changes where everything was said.
        self.exchange.handle_client_gone(now);
        if !self.spent.is_zero() {
            let spent_us = u64::try_from(self.spent.as_micros()).unwrap_or(u64::MAX);
            self.exchange.add_translation_us(spent_us);
        }
        let report = self.exchange.report();
        self.records.end(self.number, &self.request, &report, self.exchange.config(), now);
    }
}
