//! Records of exchanges: in the metrics, in the log and on the web page.

use std::sync::{Arc, Mutex, PoisonError};

use creole::observe::log::{Level, LoggedRequest, RefusedLines};
use creole::observe::report::{Outcome, Report};
use creole::{Config, Millis};
use tokio::sync::mpsc;

use crate::log::figures::{self, Figures};
use crate::log::{EXCHANGE, Format, text};
use crate::metrics::Metrics;
use crate::page::Board;
use crate::server::load::Load;

/// Queue of lines for a person whose client is silent while it asks again.
pub(crate) type Failures = mpsc::Sender<String>;

/// Metrics, log and page in which all exchanges of the process are recorded.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) metrics: Metrics,
    /// State that the gateway's web page shows; `None` if the page is off.
    pub(crate) board: Option<Arc<Board>>,
    /// Number of requests that are not over.
    pub(crate) running: Load,
    /// Number of answers whose body is on its way.
    pub(crate) streams: Load,
    /// Queue that gets a line about each failure after which clients ask again.
    pub(crate) failures: Option<Failures>,
    format: Format,
    refused: Mutex<RefusedLines>,
}

impl Records {
    pub(crate) fn new(format: Format, board: Option<Board>) -> Self {
        let board = board.map(Arc::new);
        Self {
            metrics: Metrics::new(),
            board,
            running: Load::default(),
            streams: Load::default(),
            failures: None,
            format,
            refused: Mutex::default(),
        }
    }

    /// Returns a number for an exchange that begins, for the web page.
    pub(crate) fn begin(&self) -> u64 {
        self.board.as_ref().map_or(0, |board| board.begin())
    }

    /// Stops the updates of the web page when the gateway stops.
    pub(crate) fn close(&self) {
        if let Some(board) = &self.board {
            board.close();
        }
    }

    /// Records a finished exchange in the metrics, in the log and on the web page.
    pub(crate) fn end(
        &self,
        number: u64,
        request: &LoggedRequest,
        report: &Report,
        config: &Config,
        now: Millis,
    ) {
        self.metrics.count(report, config, now);
        if let Some(board) = &self.board {
            board.end(number, request, report, now);
        }
        if let Some(failures) = &self.failures
            && let Some(line) = retried(request, report, now)
        {
            // A full queue means that the person has enough lines to read.
            let _ = failures.try_send(line);
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(left_out) = refused.admit(report, now) else { return };
        drop(refused);
        if left_out > 0 {
            tracing::warn!("{left_out} lines of refused requests were left out");
        }
        // The log line is `None` if the setting `log` excludes the exchange.
        let line = || creole::observe::log::line(request, report, config.settings.log, now);
        let line = match self.format {
            Format::Json => line(),
            Format::Text => Some(text::line(request, report, now)),
        };
        let Some(line) = line else { return };
        match creole::observe::log::level(report) {
            Level::Error => tracing::error!(target: EXCHANGE, "{line}"),
            Level::Warn => tracing::warn!(target: EXCHANGE, "{line}"),
            Level::Info => tracing::info!(target: EXCHANGE, "{line}"),
        }
    }
}

/// Returns a line about a failure after which clients ask again; `None` for other ends.
fn retried(request: &LoggedRequest, report: &Report, now: Millis) -> Option<String> {
    let status = Figures::of(request, report, now).status;
    // An answer that was cut has the status of its beginning.
    let is_cut = status == 200 && matches!(report.outcome, Outcome::Failed(..));
    let is_retried = is_cut || matches!(status, 401 | 408 | 409 | 429 | 500..);
    is_retried.then(|| format!("{status} {}: {}", report.cause(), figures::why(report)))
}
