//! The log line of an exchange: one JSON object, with the same fields on every host.
//!
//! The line says what happened in names, counts and times. It never holds a prompt, a tool input or
//! a credential. It is written from a [`Report`], which has none, and from a path without its
//! query, because some clients put keys there.

mod refused;

use std::borrow::Cow;

use crate::Millis;
use crate::error::Fault;
use crate::json::Writer;
use crate::observe::metrics;
use crate::observe::report::{
    JudgeReport, Outcome, Report, RequestCounts, ToolsReport, VisionReport,
};
use crate::setting::word_enum;
use crate::text::{harmless, words};

pub use refused::RefusedLines;

/// Maximum length, in bytes, of a text in a log line that a client or an upstream chose.
const TEXT_BYTES_MAX: usize = 100;

/// Maximum length, in bytes, of an upstream's error message in a log line. It is longer than for
/// other texts, because a person must understand the message.
const MESSAGE_BYTES_MAX: usize = 300;

/// Size, in bytes, that is enough for most log lines; the buffer's initial capacity.
const LINE_BYTES: usize = 768;

/// Facts about a request that the host knows, for the log line of the exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedRequest {
    /// HTTP method of the request.
    pub method: String,
    /// Path of the request, without the query, which is not logged.
    pub path: String,
    /// Time at which the request's head arrived.
    pub began: Millis,
    /// Status and upstream of an answer that was passed through untranslated.
    pub passed: Option<(u16, String)>,
    /// Host's own description of how the exchange ended: Envoy's `response_code_details`.
    pub details: String,
}

impl LoggedRequest {
    /// Returns the facts of a request that begins now, with texts cut to the length that a log line
    /// may have.
    #[must_use]
    pub fn new(method: &str, path: &str, began: Millis) -> Self {
        let path = short(words::before(path, b"?#"));
        Self { method: short(method).to_owned(), path: path.to_owned(), began, ..Self::default() }
    }
}

word_enum! {
    /// Amount of detail in the log.
    Log {
        /// No log lines at all.
        Off = "off",
        /// Log lines about problems that an operator must act on.
        Error = "error",
        /// Lines of `error`, and lines about what was not as it should be.
        Warn = "warn",
        /// Lines of `warn`, and one line for each exchange.
        Info = "info",
        /// Lines of `info`, and the shapes (never the contents) of what passed.
        Debug = "debug",
    }
}

/// Severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Severity of an exchange that went well, or failed by the client's fault.
    Info,
    /// Severity of an exchange that failed by the upstream's fault.
    Warn,
    /// Severity of an exchange that failed for a reason that the operator must fix.
    Error,
}

impl Level {
    /// Returns the least verbose setting `log` at which lines of this level are written.
    fn setting(self) -> Log {
        match self {
            Self::Info => Log::Info,
            Self::Warn => Log::Warn,
            Self::Error => Log::Error,
        }
    }
}

/// Returns the severity of the log line about a finished exchange.
#[must_use]
pub fn level(report: &Report) -> Level {
    match report.outcome {
        Outcome::Failed(_, Fault::Upstream) => Level::Warn,
        // Status 529 stands for Creole's own limit of bytes, whose excess goes away by itself.
        Outcome::Failed(_, Fault::Operator) if report.status >= 500 && report.status != 529 => {
            Level::Error
        }
        Outcome::Failed(_, Fault::Operator) => Level::Warn,
        _ => Level::Info,
    }
}

/// Returns the log line of a finished exchange, or `None` if the setting `log` excludes it. At
/// `debug` the line also has the shape of the request.
#[must_use]
pub fn line(request: &LoggedRequest, report: &Report, log: Log, now: Millis) -> Option<String> {
    let level = level(report).setting();
    if log < level {
        return None;
    }
    let mut out = Vec::with_capacity(LINE_BYTES);
    let mut json = Writer::new(&mut out);
    json.begin_object().key("level").text(level.word());
    write_request(request, report, &mut json);
    write_numbers(request, report, now, &mut json);
    write_warnings(report, &mut json);
    if let Some(judge) = &report.judge {
        write_judge(judge, &mut json);
    }
    if let Some(images) = &report.images {
        json.key("images").begin_object().key("fetched").u64(images.fetched as u64);
        json.key("missing").u64(images.missing as u64).key("bytes").u64(images.bytes as u64);
        json.key("duration_ms").u64(images.duration_ms).end_object();
    }
    if let Some(documents) = &report.documents {
        json.key("documents").begin_object().key("read").u64(documents.read as u64);
        json.key("unread").u64(documents.unread as u64);
        json.key("duration_ms").u64(documents.duration_ms).end_object();
    }
    if let Some(tools) = &report.tools {
        write_tools(tools, &mut json);
    }
    if let Some(vision) = &report.vision {
        write_vision(vision, &mut json);
    }
    // The shape of a request that was refused early is not known.
    if log == Log::Debug && report.counts.messages > 0 {
        write_shape(&report.counts, &mut json);
    }
    json.end_object();
    let line = String::from_utf8(out).ok()?;
    Some(match harmless::line(&line) {
        Cow::Borrowed(_) => line,
        Cow::Owned(line) => line,
    })
}

fn write_request(request: &LoggedRequest, report: &Report, json: &mut Writer<'_>) {
    json.key("request_id").text(&report.request_id);
    let path = words::before(&request.path, b"?#");
    json.key("method").text(short(&request.method)).key("path").text(short(path));
    let (status, upstream) = match &request.passed {
        Some((status, upstream)) => (*status, upstream),
        // The client went away before the answer that was to be passed on.
        None if report.outcome == Outcome::Open => (499, &report.upstream),
        None => (report.status, &report.upstream),
    };
    json.key("status").u64(status.into()).key("outcome").text(metrics::outcome(report));
    if report.outcome != Outcome::Open {
        json.key("cause").text(report.cause());
    }
    if let Outcome::Failed(kind, _) = report.outcome {
        json.key("error").text(kind.word());
    }
    for (key, value) in [
        ("model", Some(&report.model)),
        ("upstream_model", Some(&report.upstream_model)),
        (
            "served_model",
            report.answer.named_model.as_ref().filter(|_| !report.upstream_model.is_empty()),
        ),
        ("upstream", Some(upstream)),
        ("upstream_request_id", report.upstream_request_id.as_ref()),
        ("upstream_id", report.answer.upstream_id.as_ref()),
        ("client_key", report.client_key.as_ref()),
        ("trace_id", report.trace_id.as_ref()),
        ("details", Some(&request.details)),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            json.key(key).text(short(value));
        }
    }
    for (key, value) in [("reason", &report.reason), ("upstream_codes", &report.upstream_codes)] {
        if let Some(value) = value {
            json.key(key).text(words::beginning(value, MESSAGE_BYTES_MAX));
        }
    }
    if let Some(message) = report.upstream_message.as_deref().filter(|text| !text.is_empty()) {
        json.key("upstream_message").text(words::beginning(message, MESSAGE_BYTES_MAX));
    }
    if report.stream {
        json.key("stream").bool(true);
    }
}

fn write_numbers(request: &LoggedRequest, report: &Report, now: Millis, json: &mut Writer<'_>) {
    let answer = &report.answer;
    let since = |at: Millis| at.saturating_sub(request.began);
    json.key("duration_ms").u64(since(now));
    for (key, number) in [
        ("head_ms", report.head_at.map(since)),
        ("content_ms", report.content_at.map(since)),
        ("translation_us", report.translation_us),
        ("upstream_status", report.upstream_status.map(u64::from)),
    ] {
        if let Some(number) = number {
            json.key(key).u64(number);
        }
    }
    for (key, count) in [
        ("request_bytes", report.request_bytes as u64),
        ("upstream_request_bytes", report.upstream_request_bytes as u64),
        ("upstream_response_bytes", report.upstream_response_bytes as u64),
        ("response_bytes", report.response_bytes as u64),
        ("chunks", answer.chunks),
        ("input_tokens", answer.input_tokens),
        ("cache_read_input_tokens", answer.cache_read_tokens),
        ("cache_creation_input_tokens", answer.cache_creation_tokens),
        ("output_tokens", answer.output_tokens),
        ("thinking_tokens", answer.thinking_tokens),
        ("tool_calls", answer.tool_calls.into()),
        ("retries", report.retries.into()),
    ] {
        if count > 0 {
            json.key(key).u64(count);
        }
    }
}

fn write_warnings(report: &Report, json: &mut Writer<'_>) {
    let warnings = &report.warnings;
    if let Some((turn, most)) = warnings.tool_turn() {
        json.key("tool_turn").text(&format!("{turn}/{most}"));
    }
    if let Some(codes) = warnings.header() {
        json.key("warnings").text(&codes);
    }
    if !warnings.guards().is_empty() {
        json.key("guards").text(&warnings.guards().join(","));
    }
}

fn write_judge(judge: &JudgeReport, json: &mut Writer<'_>) {
    json.key("judge").begin_object();
    json.key("model").text(short(&judge.model)).key("upstream").text(short(&judge.upstream));
    if !judge.result.is_empty() {
        json.key("result").text(judge.result);
    }
    for (key, count) in [
        ("flagged", judge.flagged.into()),
        ("not_flagged", judge.not_flagged.into()),
        ("unjudged", judge.unjudged.into()),
        ("input_tokens", judge.input_tokens),
        ("output_tokens", judge.output_tokens),
        ("duration_ms", judge.duration_ms.unwrap_or_default()),
    ] {
        if count > 0 {
            json.key(key).u64(count);
        }
    }
    json.end_object();
}

fn write_tools(tools: &ToolsReport, json: &mut Writer<'_>) {
    let all = tools.calls.total();
    json.key("server_tools").begin_object().key("turns").u64(tools.turns.into());
    json.key("calls").u64(all.calls.into()).key("failed").u64(all.failed.into());
    json.key("by_tool").begin_object();
    for (kind, count) in tools.calls.iter() {
        json.key(kind).u64(count.calls.into());
    }
    json.end_object().key("duration_ms").u64(tools.duration_ms).end_object();
}

fn write_vision(vision: &VisionReport, json: &mut Writer<'_>) {
    json.key("vision").begin_object();
    json.key("model").text(short(&vision.model)).key("upstream").text(short(&vision.upstream));
    for (key, count) in [
        ("described", vision.described as u64),
        ("failed", vision.failed as u64),
        ("input_tokens", vision.input_tokens),
        ("output_tokens", vision.output_tokens),
        ("duration_ms", vision.duration_ms),
    ] {
        if count > 0 {
            json.key(key).u64(count);
        }
    }
    json.end_object();
}

fn write_shape(counts: &RequestCounts, json: &mut Writer<'_>) {
    json.key("shape").begin_object();
    for (key, count) in [
        ("messages", counts.messages),
        ("tools", counts.tools),
        ("tool_results", counts.tool_results),
        ("tool_ids_decoded", counts.ids_decoded),
        ("tool_ids_tagged", counts.ids_tagged),
        ("tool_ids_foreign", counts.ids_foreign),
    ] {
        json.key(key).u64(count.into());
    }
    json.end_object();
}

fn short(text: &str) -> &str {
    words::beginning(text, TEXT_BYTES_MAX)
}

#[cfg(test)]
mod tests;
