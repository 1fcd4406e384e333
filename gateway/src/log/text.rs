//! Log format for a person at a terminal: one short coloured line for each exchange.
//!
//! ```text
//! 22:31:05 200 claude-x → qwen3-coder @local  6.1 s  first 0.8 s  12.1k in (81% cached)  231 out  43/s  2 tool calls
//! 22:31:09 502 claude-sonnet-4-5 @local  unreachable  10.0 s  Upstream could not be reached: …  req_011C…
//! ```
//!
//! Colours are always written. If the output does not show colours, the stream that writes the
//! lines removes them.

use std::fmt::{self, Write};

use anstyle::{AnsiColor, Style};
use creole::Millis;
use creole::observe::log::{Level, LoggedRequest};
use creole::observe::report::{Outcome, Report};
use creole::text::harmless;
use jiff::Zoned;

use crate::log::figures::{self, Figures};

const FAINT: Style = Style::new().dimmed();
const NAME: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const CARE: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// Words for the ends of successful exchanges, which a log line does not highlight.
const USUAL: [&str; 3] = ["end_turn", "tool_use", "reply"];

/// Writes the beginning of a log line: the local time.
pub(super) fn write_time(out: &mut impl Write) -> fmt::Result {
    write!(out, "{FAINT}{}{FAINT:#} ", Zoned::now().strftime("%H:%M:%S"))
}

/// Writes a log line about the gateway itself, without the time.
pub(super) fn write_own(out: &mut impl Write, level: tracing::Level, said: &str) -> fmt::Result {
    let style = match level {
        tracing::Level::ERROR => BAD,
        tracing::Level::WARN => CARE,
        _ => FAINT,
    };
    let level = level.as_str().to_ascii_lowercase();
    writeln!(out, "{style}{level}{style:#} {}", harmless::line(said))
}

/// Returns the log line about an exchange, without the time.
pub(crate) fn line(request: &LoggedRequest, report: &Report, now: Millis) -> String {
    let mut out = String::with_capacity(256);
    // Writing to a String cannot fail.
    let _ = write(&mut out, request, report, now);
    out
}

fn write(out: &mut String, request: &LoggedRequest, report: &Report, now: Millis) -> fmt::Result {
    let figures = Figures::of(request, report, now);
    let style = match (creole::observe::log::level(report), figures.status) {
        (Level::Error, _) => BAD,
        (Level::Warn, _) | (_, 400..) => CARE,
        _ => GOOD,
    };
    write!(out, "{style}{}{style:#} ", figures.status)?;
    if report.model.is_empty() {
        let path = request.path.split(['?', '#']).next().unwrap_or_default();
        write!(out, "{} {NAME}{}{NAME:#}", figures::text(&request.method), figures::text(path))?;
    } else {
        write!(out, "{NAME}{}{NAME:#}", figures::text(&report.model))?;
        let served = figures::other_model(report);
        if !served.is_empty() {
            write!(out, " {FAINT}→{FAINT:#} {}", figures::text(served))?;
        }
    }
    let upstream = request.passed.as_ref().map_or(&report.upstream, |(_, upstream)| upstream);
    if !upstream.is_empty() {
        write!(out, " {FAINT}@{}{FAINT:#}", figures::text(upstream))?;
    }
    let cause = report.cause();
    if report.outcome != Outcome::Open && !USUAL.contains(&cause) {
        write!(out, "  {style}{cause}{style:#}")?;
    }
    write!(out, "  {}", figures::time(figures.duration_ms))?;
    write_answer(out, report, &figures)?;
    write_warnings(out, report)?;
    write_failure(out, report)
}

fn write_answer(out: &mut String, report: &Report, figures: &Figures) -> fmt::Result {
    let answer = &report.answer;
    if let Some(first_ms) = figures.first_ms.filter(|_| report.stream) {
        write!(out, "  {FAINT}first{FAINT:#} {}", figures::time(first_ms))?;
    }
    if figures.input_tokens > 0 {
        write!(out, "  {} {FAINT}in{FAINT:#}", figures::count(figures.input_tokens))?;
        if answer.cache_read_tokens > 0 {
            let share = answer.cache_read_tokens as f64 / figures.input_tokens as f64;
            write!(out, " {FAINT}({:.0}% cached){FAINT:#}", share * 100.0)?;
        }
    }
    if answer.output_tokens > 0 {
        write!(out, "  {} {FAINT}out{FAINT:#}", figures::count(answer.output_tokens))?;
    }
    if let Some(speed) = figures.speed {
        write!(out, "  {}", figures::speed(speed))?;
    }
    match answer.tool_calls {
        0 => {}
        1 => write!(out, "  1 {FAINT}tool call{FAINT:#}")?,
        calls => write!(out, "  {calls} {FAINT}tool calls{FAINT:#}")?,
    }
    for (kind, count) in report.tools.iter().flat_map(|tools| tools.calls.iter()) {
        write!(out, "  {} {FAINT}{kind}{FAINT:#}", count.calls)?;
        if count.failed > 0 {
            write!(out, " {CARE}({} failed){CARE:#}", count.failed)?;
        }
    }
    Ok(())
}

fn write_warnings(out: &mut String, report: &Report) -> fmt::Result {
    match report.retries {
        0 => {}
        1 => write!(out, "  {CARE}1 retry{CARE:#}")?,
        retries => write!(out, "  {CARE}{retries} retries{CARE:#}")?,
    }
    for guard in report.warnings.guards() {
        write!(out, "  {CARE}guard {guard}{CARE:#}")?;
    }
    if let Some(codes) = report.warnings.header() {
        write!(out, "  {CARE}{}{CARE:#}", codes.replace(',', " "))?;
    }
    Ok(())
}

/// Writes the reason of a failure, and the request id that the client got.
fn write_failure(out: &mut String, report: &Report) -> fmt::Result {
    if !matches!(report.outcome, Outcome::Failed(..)) {
        return Ok(());
    }
    let said = [&report.reason, &report.upstream_message].into_iter().flatten();
    if let Some(said) = said.map(String::as_str).find(|said| !said.is_empty()) {
        write!(out, "  {}", figures::reason(said))?;
    }
    if !report.request_id.is_empty() {
        write!(out, "  {FAINT}{}{FAINT:#}", figures::text(&report.request_id))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
