//! The log: one JSON object in each line of standard error, about an exchange or about the gateway
//! itself.

use std::fmt;
use std::io;

use creole::config::Log;
use creole::json::Writer as Json;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Events with this target are lines of the core: their message is a JSON object.
pub(crate) const EXCHANGE: &str = "exchange";

/// From here on, everything goes to standard error.
pub(crate) fn start(log: Log) {
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_max_level(level(log))
        .event_format(Lines)
        .init();
}

fn level(log: Log) -> LevelFilter {
    match log {
        Log::Off => LevelFilter::OFF,
        Log::Error => LevelFilter::ERROR,
        Log::Warn => LevelFilter::WARN,
        Log::Info => LevelFilter::INFO,
        Log::Debug => LevelFilter::DEBUG,
    }
}

#[derive(Debug)]
struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut message = Message::default();
        event.record(&mut message);
        writer.write_str("{\"time\":\"")?;
        SystemTime.format_time(&mut writer)?;
        writer.write_str("\",")?;
        match message.0.strip_prefix('{').filter(|_| event.metadata().target() == EXCHANGE) {
            Some(rest) => writeln!(writer, "{rest}"),
            None => {
                let level = event.metadata().level().as_str().to_ascii_lowercase();
                let mut out = Vec::new();
                Json::new(&mut out).text(&message.0);
                let text = String::from_utf8_lossy(&out);
                writeln!(writer, "\"level\":\"{level}\",\"message\":{text}}}")
            }
        }
    }
}

/// What an event says; there are no other fields in here.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
