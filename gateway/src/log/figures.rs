//! Numbers and texts of an exchange in the form that people read, in a terminal and on the web
//! page.

use creole::Millis;
use creole::observe::log::LoggedRequest;
use creole::observe::report::{Outcome, Report};
use creole::text::harmless;

/// Maximum number of letters of a name that a client or an upstream chose, in a log line.
const LETTERS_MAX: usize = 60;

/// Maximum number of letters of the reason of a failure, in a log line.
const REASON_LETTERS_MAX: usize = 200;

/// Minimum duration of an answer, in milliseconds, for which a speed is shown.
const SPEED_MS_MIN: Millis = 20;

/// Figures of an exchange for the log and the web page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    /// HTTP status that the client got.
    pub(crate) status: u16,
    /// Time from the arrival of the request's head to the end of the exchange.
    pub(crate) duration_ms: Millis,
    /// Time from the arrival of the request's head to the upstream's first content.
    pub(crate) first_ms: Option<Millis>,
    /// Number of prompt tokens, including tokens read from a cache.
    pub(crate) input_tokens: u64,
    /// Speed of the answer, in tokens per second.
    pub(crate) speed: Option<f64>,
}

impl Figures {
    pub(crate) fn of(request: &LoggedRequest, report: &Report, now: Millis) -> Self {
        let answer = &report.answer;
        let first = report.content_at.filter(|_| report.outcome != Outcome::Open);
        // An answer without streaming comes when all of its tokens are made.
        let began = if report.stream { first } else { Some(report.requested_at) };
        let spent = now.saturating_sub(began.unwrap_or(now));
        let speed = (spent >= SPEED_MS_MIN && answer.output_tokens > 0)
            .then(|| answer.output_tokens as f64 * 1000.0 / spent as f64);
        let status = match &request.passed {
            Some((status, _)) => *status,
            None if report.outcome == Outcome::Open => 499,
            None => report.status,
        };
        let cached = answer.cache_read_tokens.saturating_add(answer.cache_creation_tokens);
        Self {
            status,
            duration_ms: now.saturating_sub(request.began),
            first_ms: first.map(|at| at.saturating_sub(request.began)),
            input_tokens: answer.input_tokens.saturating_add(cached),
            speed,
        }
    }
}

/// Returns the name of the model that served the request, or an empty text if the client sent the
/// same name.
pub(crate) fn other_model(report: &Report) -> &str {
    let served = report.served_model();
    if served == report.model { "" } else { served }
}

/// Returns a count in readable form: `950`, `12.1k`, `3.4M`.
pub(crate) fn count(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..99_950 => format!("{:.1}k", number as f64 / 1e3),
        99_950..999_500 => format!("{:.0}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// Returns a duration in readable form: `85 ms`, `1.2 s`, `3 min 5 s`.
pub(crate) fn time(ms: Millis) -> String {
    let seconds = ms / 1_000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..59_950 => format!("{:.1} s", ms as f64 / 1e3),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// Returns a speed in readable form: `43/s`, `4.2/s`.
pub(crate) fn speed(tokens: f64) -> String {
    if tokens < 10.0 { format!("{tokens:.1}/s") } else { format!("{tokens:.0}/s") }
}

/// Returns a name that a client or an upstream chose, shortened and made [harmless] for one line.
pub(crate) fn text(text: &str) -> String {
    beginning(text, LETTERS_MAX)
}

/// Returns why an exchange failed, in Creole's own words and the upstream's codes. The upstream's
/// message may quote a prompt, and is left out.
pub(crate) fn why(report: &Report) -> String {
    let why = [&report.reason, &report.upstream_codes].into_iter().flatten();
    reason(&why.map(String::as_str).collect::<Vec<_>>().join("; "))
}

/// Returns the reason of a failed exchange for a line: cleaned like [`text`], but longer.
pub(crate) fn reason(text: &str) -> String {
    beginning(text, REASON_LETTERS_MAX)
}

fn beginning(text: &str, letters_max: usize) -> String {
    let mut letters = text.chars().map(harmless::letter);
    let mut short: String = letters.by_ref().take(letters_max).collect();
    if letters.next().is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests;
