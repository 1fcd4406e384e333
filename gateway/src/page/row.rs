//! Rows of the web page's list of exchanges: the names and numbers that are kept of each exchange.

use creole::Millis;
use creole::observe::log::{Level, LoggedRequest, level};
use creole::observe::report::{Outcome, Report, ToolCounts};

use crate::log::figures::{self, Figures};

/// Maximum number of warnings that are kept of one exchange.
const WARNINGS_MAX: usize = 12;

/// A finished exchange in the page's list. Texts that clients or upstreams chose are shortened and
/// cleaned.
#[derive(Clone, Debug)]
pub(crate) struct FinishedRow {
    pub(crate) ended_at: Millis,
    /// Name of the model, as the client wrote it; for requests without a model, method and path.
    pub(crate) model: String,
    /// Name of the model that answered, if it differs from `model`.
    pub(crate) served: String,
    pub(crate) upstream: String,
    pub(crate) client_key: String,
    pub(crate) stream: bool,
    pub(crate) level: Level,
    pub(crate) cause: &'static str,
    /// Reason of a failure, in Creole's own words and the upstream's codes. The upstream's message
    /// may quote a prompt, and is left out.
    pub(crate) reason: String,
    /// Id of a failed request, as in the client's error and in the log.
    pub(crate) request_id: String,
    pub(crate) figures: Figures,
    pub(crate) cached_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) tool_calls: u32,
    /// Calls of server tools that Creole ran, by kind of tool.
    pub(crate) server_calls: ToolCounts,
    pub(crate) retries: u32,
    pub(crate) guards: Vec<&'static str>,
    pub(crate) warnings: Vec<(&'static str, String)>,
}

impl FinishedRow {
    /// Returns the row of an exchange; `None` for a probe such as a health check, because a
    /// thousand of them would hide the others.
    pub(crate) fn of(request: &LoggedRequest, report: &Report, now: Millis) -> Option<Self> {
        let path = request.path.split(['?', '#']).next().unwrap_or_default();
        if matches!(path, "/" | "/api/hello") && report.outcome == Outcome::Answered {
            return None;
        }
        let model = if report.model.is_empty() {
            format!("{} {}", figures::text(&request.method), figures::text(path))
        } else {
            figures::text(&report.model)
        };
        let upstream = request.passed.as_ref().map_or(&report.upstream, |(_, upstream)| upstream);
        let warnings = report.warnings.iter().take(WARNINGS_MAX);
        let level = level(report);
        let is_failure = report.status >= 400 || matches!(report.outcome, Outcome::Failed(..));
        let of_failure = |text: String| if is_failure { text } else { String::new() };
        Some(Self {
            ended_at: now,
            model,
            served: figures::text(figures::other_model(report)),
            upstream: figures::text(upstream),
            client_key: figures::text(report.client_key.as_deref().unwrap_or_default()),
            stream: report.stream,
            level,
            cause: if report.outcome == Outcome::Open { "passed" } else { report.cause() },
            reason: of_failure(figures::why(report)),
            request_id: of_failure(figures::text(&report.request_id)),
            figures: Figures::of(request, report, now),
            cached_tokens: report.answer.cache_read_tokens,
            output_tokens: report.answer.output_tokens,
            tool_calls: report.answer.tool_calls,
            server_calls: report.tools.as_ref().map(|tools| tools.calls).unwrap_or_default(),
            retries: report.retries,
            guards: report.warnings.guards().to_vec(),
            warnings: warnings.map(|it| (it.code, figures::text(&it.name))).collect(),
        })
    }

    /// Returns true if the exchange failed for the client. A client that closed the connection
    /// (499) does not count as a failure.
    pub(crate) fn is_failed(&self) -> bool {
        self.figures.status >= 400 && self.figures.status != 499
    }
}

/// An exchange that is still running, in the page's list.
#[derive(Clone, Debug)]
pub(crate) struct RunningRow {
    pub(crate) began: Millis,
    pub(crate) model: String,
    pub(crate) upstream: String,
    pub(crate) stream: bool,
    /// Time from the beginning of the exchange to the upstream's first content, in milliseconds.
    pub(crate) first_ms: Option<Millis>,
    pub(crate) chunks: u64,
    pub(crate) tool_calls: u32,
    pub(crate) retries: u32,
}

impl RunningRow {
    pub(crate) fn of(request: &LoggedRequest, report: &Report) -> Self {
        let upstream = request.passed.as_ref().map_or(&report.upstream, |(_, upstream)| upstream);
        let path = request.path.split(['?', '#']).next().unwrap_or_default();
        Self {
            began: request.began,
            model: figures::text(if report.model.is_empty() { path } else { &report.model }),
            upstream: figures::text(upstream),
            stream: report.stream,
            first_ms: report.content_at.map(|at| at.saturating_sub(request.began)),
            chunks: report.answer.chunks,
            tool_calls: report.answer.tool_calls,
            retries: report.retries,
        }
    }
}
