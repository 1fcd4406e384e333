//! Where finished exchanges are recorded: in the metrics and in the log.

use creole::observe::log::{Level, Request};
use creole::observe::report::Report;
use creole::{Config, Millis};

use crate::log::{EXCHANGE, Format, text};
use crate::metrics::Metrics;

/// What all exchanges of the process are recorded in.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) metrics: Metrics,
    format: Format,
}

impl Records {
    pub(crate) fn new(format: Format) -> Self {
        Self { metrics: Metrics::new(), format }
    }

    /// An exchange is over.
    pub(crate) fn end(&self, request: &Request, report: &Report, config: &Config, now: Millis) {
        self.metrics.count(report, config, now);
        // Nothing where the setting `log` does not want it.
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
