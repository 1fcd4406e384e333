//! An exchange while it lives: its clock, its waits, and its line in the log.

use std::fmt::Write as _;

use creole::config::Log;
use creole::error::Fault;
use creole::report::Outcome;
use creole::{Exchange, Failure, Head, Millis};
use wasip2::http::types::ResponseOutparam;
use wasip2::io::poll::{self, Pollable};

use crate::answer;
use crate::clock::Clock;

/// Longest name in a line of the log that a client can choose.
const NAME_CHARS_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) exchange: Exchange,
    pub(crate) clock: Clock,
    /// Status and upstream of an answer that was passed through, which the exchange does not see.
    pub(crate) passed: Option<(u16, String)>,
    pub(crate) method: String,
    /// May have a query.
    pub(crate) path: String,
    pub(crate) began: Millis,
}

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// What was waited for is ready.
    Ready,
    /// The exchange wants [`Exchange::handle_timeout`].
    Timeout,
}

impl Live {
    /// Waits until `what` is ready, or the exchange wants to be told the time.
    pub(crate) fn wait(&self, what: &Pollable) -> Woken {
        let Some(at) = self.exchange.poll_timeout() else {
            what.block();
            return Woken::Ready;
        };
        let timer = self.clock.timer(at);
        // What is waited for goes first: after a long wait for a slow client its bytes are there, and
        // the timer would call the upstream stalled.
        if poll::poll(&[what, &timer]).contains(&0) { Woken::Ready } else { Woken::Timeout }
    }

    /// Tells the exchange the time; gives the head and adds the bytes that the client must get.
    pub(crate) fn time(&mut self, out: &mut Vec<u8>) -> Option<Head> {
        self.exchange.handle_timeout(self.clock.now(), out)
    }

    /// The answer to a failure before the head.
    pub(crate) fn fail(&mut self, failure: Failure, out: ResponseOutparam) {
        let mut body = Vec::new();
        let head = self.exchange.handle_failure(failure, self.clock.now(), &mut body);
        answer::whole(out, &head.unwrap_or_else(answer::no_head), &body);
    }

    /// Writes the line of the log.
    pub(crate) fn log(&self) {
        let report = self.exchange.report();
        let level = match report.outcome {
            Outcome::Failed(_, Fault::Operator) if report.status >= 500 => Log::Error,
            Outcome::Failed(_, Fault::Upstream) => Log::Warn,
            _ => Log::Info,
        };
        if level <= self.exchange.config().settings.log {
            eprintln!("{} {}", level.word(), self.line());
        }
    }

    fn line(&self) -> String {
        let report = self.exchange.report();
        // Some clients put keys into the query.
        let path = self.path.split(['?', '#']).next().unwrap_or_default();
        let mut line = format!("{} {}", clean(&self.method), clean(path));
        let (status, upstream) = match &self.passed {
            Some((status, upstream)) => (*status, upstream),
            None => (report.status, &report.upstream),
        };
        let _ = write!(line, " {status} {}ms", self.clock.now().saturating_sub(self.began));
        match report.outcome {
            _ if self.passed.is_some() => line.push_str(" passed"),
            Outcome::Open | Outcome::Answered => {}
            Outcome::Failed(kind, fault) => {
                let _ = write!(line, " {} fault={}", kind.word(), fault.word());
            }
            Outcome::Abandoned => line.push_str(" abandoned"),
        }
        let warnings = report.warnings.header().unwrap_or_default();
        let stop = report.answer.stop_reason.unwrap_or_default();
        let guards = report.guards.join(",");
        for (name, value) in [
            ("model", report.model.as_str()),
            ("upstream", upstream),
            ("stop", stop),
            ("warnings", &warnings),
            ("guards", &guards),
        ] {
            if !value.is_empty() {
                let _ = write!(line, " {name}={}", clean(value));
            }
        }
        let answer = &report.answer;
        let input = answer.input_tokens.saturating_add(answer.cache_creation_tokens);
        let input = input.saturating_add(answer.cache_read_tokens);
        if input | answer.output_tokens != 0 {
            let _ = write!(line, " in={input} out={}", answer.output_tokens);
        }
        let _ = write!(line, " {}", report.request_id);
        line
    }
}

/// A text that a client chose, so that it cannot forge a second line or colour the terminal.
fn clean(text: &str) -> String {
    let safe = |char: char| if char.is_control() || char == ' ' { '?' } else { char };
    text.chars().take(NAME_CHARS_MAX).map(safe).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_client_cannot_forge_a_line_of_the_log() {
        assert_eq!(super::clean("a\nb \u{1b}[31m"), "a?b??[31m");
        assert_eq!(super::clean(&"x".repeat(1000)).len(), super::NAME_CHARS_MAX);
    }
}
