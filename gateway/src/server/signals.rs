//! Operating system signals that end the process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Time within which a second signal is treated as the same signal. A terminal sends Ctrl-C to
/// every process, and a parent process such as npm forwards it again.
const SAME_SIGNAL: Duration = Duration::from_millis(500);

/// Source of the request to stop the gateway.
pub(crate) enum Stop {
    /// Stop at SIGINT or SIGTERM.
    Signals(StopSignals),
    /// Stop when the command that runs the gateway sends this notification.
    Notified(Arc<Notify>),
}

impl Stop {
    pub(crate) fn listen() -> io::Result<Self> {
        StopSignals::listen().map(Self::Signals)
    }

    pub(crate) async fn asked(&mut self) {
        match self {
            Self::Signals(signals) => signals.asked().await,
            Self::Notified(notify) => notify.notified().await,
        }
    }
}

/// Receiver of the signals that stop the process.
pub(crate) struct StopSignals {
    /// Time of the last signal that was not ignored.
    last: Option<Instant>,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl StopSignals {
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
