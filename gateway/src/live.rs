//! An exchange while it lives, and the line in the log when it ends.
//!
//! The line is written when the value is dropped, whoever drops it: the service when it has answered,
//! or hyper when the client has gone. So there is exactly one for each request.

use std::fmt::Write as _;
use std::sync::Arc;

use creole::error::Fault;
use creole::report::{Outcome, Report};
use creole::{Config, Exchange, Failure, Head, Millis, Pings};

use crate::answer::Body;
use crate::clock::Clock;
use crate::headers;

/// Longest name in a line of the log that a client can choose.
const NAME_CHARS_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) exchange: Exchange,
    pub(crate) clock: Clock,
    /// Status and upstream of an answer that was passed through, which the exchange does not see.
    pub(crate) passed: Option<(u16, String)>,
    method: String,
    path: String,
    began: Millis,
}

impl Live {
    /// `path` may have a query; it is not logged, because some clients put keys there.
    pub(crate) fn new(
        config: Arc<Config>,
        seed: u128,
        clock: Clock,
        method: &str,
        path: &str,
    ) -> Self {
        Self {
            exchange: Exchange::new(config, seed, Pings::Sent),
            clock,
            passed: None,
            method: clean(method),
            path: clean(path.split('?').next().unwrap_or_default()),
            began: clock.now(),
        }
    }

    /// Waits until the exchange wants [`Exchange::handle_timeout`] to be called.
    pub(crate) async fn timeout(&self) {
        match self.exchange.poll_timeout() {
            Some(at) => tokio::time::sleep_until(self.clock.instant(at)).await,
            None => std::future::pending().await,
        }
    }

    /// The answer to a failure before the head.
    pub(crate) fn fail(&mut self, failure: Failure) -> hyper::Response<Body> {
        let mut out = Vec::new();
        let head = self.exchange.handle_failure(failure, self.clock.now(), &mut out);
        response(head.unwrap_or_else(no_head), Body::whole(out))
    }

    fn line(&self, report: &Report, now: Millis) -> String {
        let mut line = format!("{} {}", self.method, self.path);
        let (status, upstream) = match &self.passed {
            Some((status, upstream)) => (*status, upstream),
            None => (report.status, &report.upstream),
        };
        let _ = write!(line, " {status} {}ms", now.saturating_sub(self.began));
        if self.passed.is_some() {
            line.push_str(" passed");
        }
        match report.outcome {
            Outcome::Open | Outcome::Answered => {}
            Outcome::Failed(kind, fault) => {
                let _ = write!(line, " {} fault={}", kind.word(), fault.word());
            }
            Outcome::Abandoned => line.push_str(" abandoned"),
        }
        for (name, value) in [("model", &report.model), ("upstream", upstream)] {
            if !value.is_empty() {
                let _ = write!(line, " {name}={}", clean(value));
            }
        }
        if report.stream {
            line.push_str(" stream");
        }
        if let Some(at) = report.first_byte_at.filter(|_| report.head_at.is_some()) {
            let _ = write!(line, " first={}ms", at.saturating_sub(self.began));
        }
        let answer = &report.answer;
        if answer.input_tokens | answer.cache_read_tokens | answer.output_tokens != 0 {
            let input = answer.input_tokens.saturating_add(answer.cache_creation_tokens);
            let input = input.saturating_add(answer.cache_read_tokens);
            let _ = write!(line, " in={input} cached={}", answer.cache_read_tokens);
            let _ = write!(line, " out={}", answer.output_tokens);
        }
        if let Some(stop_reason) = answer.stop_reason {
            let _ = write!(line, " stop={stop_reason}");
        }
        if let Some(codes) = report.warnings.header() {
            let _ = write!(line, " warnings={codes}");
        }
        if !report.guards.is_empty() {
            let _ = write!(line, " guards={}", report.guards.join(","));
        }
        let _ = write!(line, " {}", report.request_id);
        line
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let now = self.clock.now();
        // Nothing changes where everything was said.
        self.exchange.handle_client_gone(now);
        let report = self.exchange.report();
        let line = self.line(&report, now);
        match report.outcome {
            Outcome::Failed(_, Fault::Upstream) => tracing::warn!("{line}"),
            Outcome::Failed(_, Fault::Operator) if report.status >= 500 => {
                tracing::error!("{line}");
            }
            _ => tracing::info!("{line}"),
        }
    }
}

/// A response with a head of the exchange.
pub(crate) fn response(head: Head, body: Body) -> hyper::Response<Body> {
    let mut response = hyper::Response::new(body);
    *response.status_mut() =
        hyper::StatusCode::from_u16(head.status).unwrap_or(hyper::StatusCode::BAD_GATEWAY);
    *response.headers_mut() = headers::map(head.headers);
    response
}

/// Should an exchange end without a head, the client still gets an answer.
pub(crate) fn no_head() -> Head {
    Head { status: 502, headers: Vec::new() }
}

/// A text that a client chose, so that it cannot forge a second line or colour the terminal.
fn clean(text: &str) -> String {
    let safe = |char: char| if char.is_control() || char == ' ' { '?' } else { char };
    text.chars().take(NAME_CHARS_MAX).map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_cannot_forge_a_line_of_the_log_or_put_its_key_there() {
        let config = Arc::new(Config::default());
        let live = Live::new(config, 1, Clock::start(), "GET\n", "/v1/x\u{1b}[31m?key=sk-1");
        let mut report = live.exchange.report();
        report.model = "a\nb c".to_owned();
        let line = live.line(&report, live.began);
        assert!(line.starts_with("GET? /v1/x?[31m 0 0ms model=a?b?c req_"), "{line}");
    }
}
