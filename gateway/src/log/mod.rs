//! The log: one line for each exchange, and lines about the gateway itself, on standard error or in
//! a file. A line is a JSON object, or a short text for a person at a terminal.
//!
//! A separate thread writes the lines. Standard error may be a pipe that nobody reads, or the disk
//! may be full, and no request may wait or fail for that. If the queue is full, lines are dropped
//! and counted.

pub(crate) mod figures;
pub(crate) mod rate_limit;
pub(crate) mod text;

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use creole::config::Log;
use creole::json::Writer as Json;
use creole::text::harmless;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Target of log events about an exchange. Their message is a JSON object, or a line of text
/// without the time.
pub(crate) const EXCHANGE: &str = "exchange";

/// Beginning of the target of log events from the gateway's own modules.
const OWN: &str = env!("CARGO_CRATE_NAME");

/// Maximum number of log lines that wait to be written.
const WAITING_MAX: usize = 1024;

/// Maximum time to wait for the last log lines when the process ends.
const FINISH_TIME: Duration = Duration::from_secs(1);

/// Pause between two checks for a free slot in a full queue.
const FULL_PAUSE: Duration = Duration::from_millis(5);

/// Format of the log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For a person.
    Text,
    /// For programs.
    Json,
}

impl Format {
    /// Returns the format that fits the log's output: text for a terminal, JSON for programs. The
    /// output is `file`, or else standard error.
    pub(crate) fn of_reader(file: Option<&File>) -> Self {
        let is_terminal = file.map_or_else(|| io::stderr().is_terminal(), File::is_terminal);
        if is_terminal { Self::Text } else { Self::Json }
    }
}

/// Starts the log, which writes to this file, or else to standard error.
///
/// # Errors
/// Returns an error if the thread for the log cannot be started.
pub(crate) fn start(log: Log, format: Format, file: Option<File>) -> io::Result<Queue> {
    let (sender, entries) = sync_channel(WAITING_MAX);
    let queue = Queue { sender, lost: Arc::default() };
    let lost = Arc::clone(&queue.lost);
    let mut out: Box<dyn Write + Send> = match (file, format) {
        // `anstream` removes the colours if nobody sees them, or if NO_COLOR is set.
        (None, Format::Text) => Box::new(anstream::stderr()),
        (Some(file), Format::Text) => Box::new(anstream::AutoStream::auto(file)),
        (None, Format::Json) => Box::new(io::stderr()),
        (Some(file), Format::Json) => Box::new(file),
    };
    let thread = thread::Builder::new().name("log".to_owned());
    thread.spawn(move || write_all(&entries, &lost, format, &mut *out))?;
    let lines = queue.clone();
    tracing_subscriber::fmt()
        .with_writer(move || lines.clone())
        .with_max_level(level(log))
        // Internal errors would go to standard error, and panic if it is closed.
        .log_internal_errors(false)
        .event_format(LineWriter(format))
        .finish()
        // Lines of libraries are left out: their `debug` events have fields that no line shows.
        .with(
            Targets::new()
                .with_targets([(EXCHANGE, LevelFilter::TRACE), (OWN, LevelFilter::TRACE)]),
        )
        .init();
    Ok(queue)
}

/// Queue of lines for the thread that writes the log.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    sender: SyncSender<LogEntry>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum LogEntry {
    Line(Vec<u8>),
    /// Request for a notice once all earlier lines have been written.
    Finish(SyncSender<()>),
}

impl Queue {
    /// Waits until all log lines have been written, for a limited time.
    pub(crate) fn finish(&self) {
        let began = Instant::now();
        let (done, finished) = sync_channel(1);
        let mut entry = LogEntry::Finish(done);
        // The thread that empties a full queue of log lines is slow, and may go on soon.
        while let Err(TrySendError::Full(back)) = self.sender.try_send(entry) {
            if began.elapsed() >= FINISH_TIME {
                return;
            }
            entry = back;
            thread::sleep(FULL_PAUSE);
        }
        let _ = finished.recv_timeout(FINISH_TIME.saturating_sub(began.elapsed()));
    }
}

impl Write for Queue {
    /// Queues one whole log line, which is the argument of each call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.sender.try_send(LogEntry::Line(line.to_vec())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_all(entries: &Receiver<LogEntry>, lost: &AtomicU64, format: Format, out: &mut dyn Write) {
    let mut is_cut = false;
    for entry in entries {
        let missing = lost.swap(0, Ordering::Relaxed);
        if missing > 0
            && write_line(lost_lines(missing, format).as_bytes(), &mut is_cut, out).is_err()
        {
            lost.fetch_add(missing, Ordering::Relaxed);
        }
        match entry {
            LogEntry::Line(line) => {
                if write_line(&line, &mut is_cut, out).is_err() {
                    lost.fetch_add(1, Ordering::Relaxed);
                }
            }
            LogEntry::Finish(done) => {
                let _ = done.try_send(());
            }
        }
    }
}

/// Writes a log line. If `is_cut` is true, only a part of the previous line was written, so a line
/// end is written first.
fn write_line(mut line: &[u8], is_cut: &mut bool, out: &mut dyn Write) -> io::Result<()> {
    if *is_cut {
        out.write_all(b"\n")?;
        *is_cut = false;
    }
    while !line.is_empty() {
        match out.write(line) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                line = line.get(written..).unwrap_or_default();
                *is_cut = !line.is_empty();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the log line that reports dropped lines.
fn lost_lines(missing: u64, format: Format) -> String {
    let said = format!("{missing} lines of the log were lost: they could not be written in time");
    let mut line = String::new();
    // Errors of writing to the text are ignored: an incomplete log line is better than none.
    let _ = write_own(&mut Writer::new(&mut line), format, Level::WARN, &said);
    line
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
struct LineWriter(Format);

impl<S, N> FormatEvent<S, N> for LineWriter
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
        if event.metadata().target() != EXCHANGE {
            return write_own(&mut writer, self.0, *event.metadata().level(), &message.0);
        }
        if self.0 == Format::Text {
            text::write_time(&mut writer)?;
            return writeln!(writer, "{}", message.0);
        }
        write_time(&mut writer)?;
        writeln!(writer, "{}", message.0.strip_prefix('{').unwrap_or(&message.0))
    }
}

/// Writes a log line about the gateway itself.
fn write_own(writer: &mut Writer<'_>, format: Format, level: Level, said: &str) -> fmt::Result {
    if format == Format::Text {
        text::write_time(writer)?;
        return text::write_own(writer, level, said);
    }
    write_time(writer)?;
    let level = level.as_str().to_ascii_lowercase();
    let mut out = Vec::new();
    Json::new(&mut out).text(&harmless::line(said));
    writeln!(writer, "\"level\":\"{level}\",\"message\":{}}}", String::from_utf8_lossy(&out))
}

/// Writes the beginning of a log line in JSON, with the current time.
fn write_time(writer: &mut Writer<'_>) -> fmt::Result {
    writer.write_str("{\"time\":\"")?;
    SystemTime.format_time(writer)?;
    writer.write_str("\",")
}

/// Message of a log event; events of this program have no other fields.
#[derive(Default)]
pub(crate) struct Message(pub(crate) String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests;
