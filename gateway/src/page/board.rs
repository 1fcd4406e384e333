//! State that the gateway's web page shows: the last exchanges, the running exchanges, and the
//! health of the upstreams. The size of the state is bounded.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use creole::Millis;
use creole::observe::log::LoggedRequest;
use creole::observe::report::{Cause, Report, ToolCounts};

use super::row::{FinishedRow, RunningRow};
use crate::probe::model_names::is_same;

/// Maximum number of finished exchanges that the state of the web page keeps.
pub(crate) const ROWS_MAX: usize = 100;

/// Maximum number of open pages with live updates at one time.
const WATCHERS_MAX: usize = 16;

/// Age from which the status of an upstream is checked again, while a page is open.
const HEALTH_MS: Millis = 15_000;

/// State that the web page shows; the process has one `Board`.
#[derive(Debug, Default)]
pub(crate) struct Board {
    state: Mutex<BoardState>,
    /// Number of changes of the web page's state so far.
    version: AtomicU64,
    numbers: AtomicU64,
    watchers: Arc<AtomicUsize>,
    closed: AtomicBool,
}

#[derive(Debug, Default)]
pub(crate) struct BoardState {
    /// Finished exchanges; the newest is the last.
    pub(crate) rows: VecDeque<FinishedRow>,
    /// Exchanges that are running, by number.
    pub(crate) running: BTreeMap<u64, RunningRow>,
    pub(crate) totals: Totals,
    pub(crate) health: BTreeMap<String, Health>,
    /// Models that each upstream lists with the sizes of their context windows, by upstream.
    windows: BTreeMap<String, Vec<(String, u64)>>,
}

/// Totals of all exchanges and their tokens since the start of the process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) exchanges: u64,
    pub(crate) failed: u64,
    pub(crate) input_tokens: u64,
    pub(crate) cached_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) server_calls: ToolCounts,
}

/// Last known status of an upstream, with its time.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    pub(crate) at: Millis,
    pub(crate) answer: CheckResult,
}

/// Result of the last check of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CheckResult {
    /// The upstream answered the check with this HTTP status.
    Status(u16),
    /// The check got no response from the upstream, for this reason.
    Missing(String),
    /// The upstream is being checked now.
    Asked,
}

/// An open web page with live updates. The page counts as open until this value is dropped.
#[derive(Debug)]
pub(crate) struct Watching(Arc<AtomicUsize>);

impl Board {
    fn locked(&self) -> MutexGuard<'_, BoardState> {
        // The state stays usable if another thread panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `read` with the state of the web page, and returns the result of `read`.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&BoardState) -> T) -> T {
        read(&self.locked())
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns a number for an exchange that begins, for the web page.
    pub(crate) fn begin(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes the progress of a running exchange.
    pub(crate) fn show(&self, number: u64, request: &LoggedRequest, report: &Report) {
        let running = RunningRow::of(request, report);
        self.locked().running.insert(number, running);
        self.changed();
    }

    /// Notes the end of an exchange.
    pub(crate) fn end(&self, number: u64, request: &LoggedRequest, report: &Report, now: Millis) {
        let row = FinishedRow::of(request, report, now);
        let mut state = self.locked();
        state.running.remove(&number);
        if let Some(row) = row {
            state.note_health(&row, report);
            state.totals.add(&row);
            if state.rows.len() >= ROWS_MAX {
                state.rows.pop_front();
            }
            state.rows.push_back(row);
        }
        drop(state);
        self.changed();
    }

    /// Returns true if an upstream must be checked now, because its last known status is too old.
    pub(crate) fn is_due(&self, upstream: &str, now: Millis) -> bool {
        let mut state = self.locked();
        if let Some(known) = state.health.get(upstream)
            && now.saturating_sub(known.at) < HEALTH_MS
        {
            return false;
        }
        // The last known status stays visible until the upstream answers.
        state
            .health
            .entry(upstream.to_owned())
            .and_modify(|known| known.at = now)
            .or_insert(Health { at: now, answer: CheckResult::Asked });
        true
    }

    /// Notes the result of a check of an upstream, and the context windows of the models in its
    /// list.
    pub(crate) fn note(
        &self,
        upstream: &str,
        answer: CheckResult,
        windows: Vec<(String, u64)>,
        now: Millis,
    ) {
        let health = Health { at: now, answer };
        let mut state = self.locked();
        state.health.insert(upstream.to_owned(), health);
        if !windows.is_empty() {
            state.windows.insert(upstream.to_owned(), windows);
        }
        drop(state);
        self.changed();
    }

    /// Counts one more open page. Returns `None` if too many pages are open, or the gateway is
    /// stopping.
    pub(crate) fn watch(&self) -> Option<Watching> {
        let watching = Watching(Arc::clone(&self.watchers));
        let before = self.watchers.fetch_add(1, Ordering::Relaxed);
        // If too many pages are open, dropping `watching` takes the count back.
        (before < WATCHERS_MAX && !self.is_closed()).then_some(watching)
    }

    /// Ends the updates of all open pages, so that they do not delay the end of the process.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

impl BoardState {
    /// Returns the size of a model's context window in tokens, if its upstream states it.
    pub(crate) fn window(&self, upstream: &str, model: &str) -> Option<u64> {
        let windows = self.windows.get(upstream)?;
        windows.iter().find(|(name, _)| is_same(name, model)).map(|(_, window)| *window)
    }

    /// Notes the upstream's status after an exchange, which shows as much as a check of the
    /// upstream.
    fn note_health(&mut self, row: &FinishedRow, report: &Report) {
        if row.upstream.is_empty() {
            return;
        }
        let answer = match (report.upstream_status, report.failed_by) {
            (_, Some(Cause::Unreachable | Cause::Timeout | Cause::Stall)) => {
                CheckResult::Missing(row.cause.to_owned())
            }
            (Some(status), _) => CheckResult::Status(status),
            _ => return,
        };
        self.health.insert(report.upstream.clone(), Health { at: row.ended_at, answer });
    }
}

impl Totals {
    fn add(&mut self, row: &FinishedRow) {
        self.exchanges = self.exchanges.saturating_add(1);
        self.failed = self.failed.saturating_add(u64::from(row.is_failed()));
        self.input_tokens = self.input_tokens.saturating_add(row.figures.input_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(row.cached_tokens);
        self.output_tokens = self.output_tokens.saturating_add(row.output_tokens);
        self.server_calls.add_all(&row.server_calls);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
