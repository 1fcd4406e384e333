//! An exchange while it runs. At its end the exchange is counted in the metrics and written to the
//! log.
//!
//! The end is the drop of this value, by the service when it has answered, or by hyper when the
//! client has gone. So each request has exactly one log line.

use std::sync::Arc;
use std::time::{Duration, Instant};

use creole::observe::log::LoggedRequest;
use creole::{Config, Exchange, HostCan, Pings};

use crate::clock::Clock;
use crate::server::budget::Held;
use crate::server::load::LoadUnit;
use crate::server::records::Records;
use crate::telemetry::ExchangeSpans;

/// Minimum interval between two reports of an exchange's progress to the web page, because a report
/// copies many texts.
const SHOW_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(crate) struct LiveExchange {
    pub(crate) exchange: Exchange,
    pub(crate) clock: Clock,
    pub(crate) request: LoggedRequest,
    records: Arc<Records>,
    /// Number of the exchange in the metrics, the log and the web page.
    number: u64,
    /// Time of the last report to the web page, and true if the answer had content by then.
    shown: Option<(Instant, bool)>,
    /// Time spent inside the exchange's functions, which is reported as translation time.
    spent: Duration,
    /// Memory of the exchange and of its client's head, once the client is authenticated.
    pub(crate) held: Option<Held>,
    _counted: [LoadUnit; 2],
    stream: Option<LoadUnit>,
    /// Spans of the exchange; `None` if spans are off.
    pub(crate) spans: Option<Box<ExchangeSpans>>,
}

impl LiveExchange {
    pub(crate) fn new(
        config: Arc<Config>,
        seed: u128,
        clock: Clock,
        records: Arc<Records>,
        method: &str,
        path: &str,
        counted: LoadUnit,
    ) -> Self {
        let (method, path) = (method.to_owned(), path.to_owned());
        let can = HostCan {
            ping: Pings::Sent,
            ask_again: true,
            list_models: true,
            fetch: true,
            call_services: true,
            calls_at_once: 4,
            later_answers_whole: false,
            read_documents: true,
            serve_others: false,
        };
        Self {
            exchange: Exchange::new(config, seed, can),
            clock,
            request: LoggedRequest { method, path, began: clock.now(), ..LoggedRequest::default() },
            number: records.begin(),
            _counted: [counted, records.running.count()],
            records,
            shown: None,
            spent: Duration::ZERO,
            held: None,
            stream: None,
            spans: None,
        }
    }

    /// Notes that the body of the answer is on its way.
    pub(crate) fn begin_stream(&mut self) {
        self.stream.get_or_insert_with(|| self.records.streams.count());
    }

    /// Calls a function that translates, and adds its duration to the translation time.
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

    /// Reports the progress of the exchange to the web page.
    pub(crate) fn show(&self) {
        if let Some(board) = &self.records.board {
            board.show(self.number, &self.request, &self.exchange.report());
        }
    }
}

impl Drop for LiveExchange {
    fn drop(&mut self) {
        let now = self.clock.now();
        // A disconnect changes nothing in an exchange that has ended.
        self.exchange.handle_client_gone(now);
        if !self.spent.is_zero() {
            let spent_us = u64::try_from(self.spent.as_micros()).unwrap_or(u64::MAX);
            self.exchange.add_translation_us(spent_us);
        }
        let report = self.exchange.report();
        if let Some(spans) = self.spans.take() {
            spans.end(&report, &self.request, self.exchange.config());
        }
        self.records.end(self.number, &self.request, &report, self.exchange.config(), now);
    }
}
