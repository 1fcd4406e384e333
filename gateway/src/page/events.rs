//! Live updates of the gateway's web page: server-sent events, each with the sections of the page
//! that changed.
//!
//! No event is queued. Whenever the page's connection can take more, and at most a few times per
//! second, an event is made from the current state. So a page that reads slowly only delays its own
//! updates.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use creole::Config;
use tokio::time::{Instant, Sleep};

use super::board::{Board, Watching};
use super::{html, probe};
use crate::clock::Clock;
use crate::upstream::client::UpstreamClient;

/// Interval at which a page checks the state for changes.
const TICK: Duration = Duration::from_millis(400);

/// Number of checks without a change after which an event is sent anyway, because only writing
/// shows that the browser has gone.
const QUIET_TICKS: u32 = 30;

/// State and configuration from which the page's events are made.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) board: Arc<Board>,
    pub(crate) config: Arc<Config>,
    pub(crate) client: UpstreamClient,
}

impl Source {
    /// Asks all upstreams whose last known status is too old.
    pub(crate) fn look(&self) {
        let now = Clock::start().now();
        for upstream in self.config.upstreams.values() {
            if !self.board.is_due(&upstream.name, now) {
                continue;
            }
            let (source, name) = (self.clone(), upstream.name.clone());
            tokio::spawn(async move {
                let Some(upstream) = source.config.upstreams.get(&name) else { return };
                let (answer, windows) = probe::ask(&source.client, upstream).await;
                source.board.note(&name, answer, windows, Clock::start().now());
            });
        }
    }
}

/// Body of the response that updates the page: a stream of server-sent events.
pub(crate) struct Events {
    source: Source,
    _watching: Watching,
    timer: Pin<Box<Sleep>>,
    /// Version of the `Board` that was sent last.
    version: Option<u64>,
    had_running: bool,
    quiet: u32,
}

impl Events {
    pub(crate) fn new(source: Source, watching: Watching) -> Self {
        let timer = Box::pin(tokio::time::sleep_until(Instant::now()));
        let (version, had_running, quiet) = (None, false, 0);
        Self { source, _watching: watching, timer, version, had_running, quiet }
    }

    /// Returns the next event; `None` when the gateway stops.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            ready!(self.timer.as_mut().poll(context));
            let now = Instant::now();
            self.timer.as_mut().reset(now.checked_add(TICK).unwrap_or(now));
            self.source.look();
            let board = &self.source.board;
            if board.is_closed() {
                return Poll::Ready(None);
            }
            let version = board.version();
            let is_changed = self.version != Some(version);
            // The times of running exchanges go on although nothing else changes.
            if !is_changed && !self.had_running {
                self.quiet = self.quiet.saturating_add(1);
                if self.quiet < QUIET_TICKS {
                    continue;
                }
                self.quiet = 0;
                return Poll::Ready(Some(Bytes::from_static(b": still here\n\n")));
            }
            let config = &self.source.config;
            let (text, has_running) = board
                .with(|state| (html::update(config, state, is_changed), !state.running.is_empty()));
            (self.version, self.had_running, self.quiet) = (Some(version), has_running, 0);
            return Poll::Ready(Some(Bytes::from(text)));
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Events").field("version", &self.version).finish_non_exhaustive()
    }
}
