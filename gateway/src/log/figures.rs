//! Numbers and texts of an exchange as people read them: in a terminal, on the page.

use creole::Millis;
use creole::observe::log::Request;
use creole::observe::report::{Outcome, Report};
use creole::text::harmless;

/// Maximum number of letters in a line for a name that a client or an upstream chose.
const LETTERS_MAX: usize = 60;

/// Maximum number of letters in a line for the reason of a failure.
const REASON_LETTERS_MAX: usize = 200;

/// Minimum time in milliseconds from which a speed can be told.
const SPEED_MS_MIN: Millis = 20;

/// Figures of an exchange for the log and the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figures {
    /// The status that the client got.
    pub(crate) status: u16,
    /// Time from the request's head to the end.
    pub(crate) duration_ms: Millis,
    /// Time from the request's head to the upstream's first content.
    pub(crate) first_ms: Option<Millis>,
    /// Number of all tokens of the prompt, with those that came from a cache.
    pub(crate) input_tokens: u64,
    /// Tokens of the answer in a second of its making.
    pub(crate) speed: Option<f64>,
}

impl Figures {
    pub(crate) fn of(request: &Request, report: &Report, now: Millis) -> Self {
        let answer = &report.answer;
        let first = report.content_at.filter(|_| report.outcome != Outcome::Open);
        // A whole answer comes when all of it is made.
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

/// The model that served, where it is not called as the client named it.
pub(crate) fn other_model(report: &Report) -> &str {
    let served = report.served_model();
    if served == report.model { "" } else { served }
}

/// Returns a count as people read it: `950`, `12.1k`, `3.4M`.
pub(crate) fn count(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..99_950 => format!("{:.1}k", number as f64 / 1e3),
        99_950..999_500 => format!("{:.0}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// Returns a time as people read it: `85 ms`, `1.2 s`, `3 min 5 s`.
pub(crate) fn time(ms: Millis) -> String {
    let seconds = ms / 1_000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..59_950 => format!("{:.1} s", ms as f64 / 1e3),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// Returns a speed as people read it: `43/s`, `4.2/s`.
pub(crate) fn speed(tokens: f64) -> String {
    if tokens < 10.0 { format!("{tokens:.1}/s") } else { format!("{tokens:.0}/s") }
}

/// A name that a client or an upstream chose: in one [harmless] line, and not too long.
pub(crate) fn text(text: &str) -> String {
    beginning(text, LETTERS_MAX)
}

/// Returns the reason of a failed exchange for a line: like [`text`], and longer.
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
