//! Signals that end the process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// A signal that comes this soon after another is the same one. A terminal sends those of its keys
/// to every process, and what started this one (npm) hands them on.
const SAME_SIGNAL: Duration = Duration::from_millis(500);

/// Source from which the gateway is asked to stop.
pub(crate) enum Stop {
    /// SIGINT and SIGTERM.
    Signals(Signals),
    /// The command that the gateway is a part of, by this.
    Notified(Arc<Notify>),
}

impl Stop {
    pub(crate) fn listen() -> io::Result<Self> {
        Signals::listen().map(Self::Signals)
    }

    pub(crate) async fn asked(&mut self) {
        match self {
            Self::Signals(signals) => signals.asked().await,
            Self::Notified(notify) => notify.notified().await,
        }
    }
}

/// The signals that the process obeys.
pub(crate) struct Signals {
    /// Time at which the last signal came that was obeyed.
    last: Option<Instant>,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            last: None,
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn asked(&mut self) {
        loop {
            self.any().await;
            if self.last.is_none_or(|last| last.elapsed() >= SAME_SIGNAL) {
                break;
            }
        }
        self.last = Some(Instant::now());
    }

    #[cfg(unix)]
    async fn any(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    async fn any(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
