//! What ends the process.

use std::io;
use std::sync::Arc;

use tokio::sync::Notify;

/// What asks the gateway to stop.
pub(crate) enum Stop {
    /// SIGINT and SIGTERM.
    Signals(Signals),
    /// The command that the gateway is a part of.
    Told(Arc<Notify>),
}

impl Stop {
    pub(crate) fn listen() -> io::Result<Self> {
        Signals::listen().map(Self::Signals)
    }

    pub(crate) async fn asked(&mut self) {
        match self {
            Self::Signals(signals) => signals.asked().await,
            Self::Told(told) => told.notified().await,
        }
    }
}

/// The signals that the process obeys.
pub(crate) struct Signals {
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
            #[cfg(unix)]
            terminate: signal(SignalKind::terminate())?,
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    #[cfg(unix)]
    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    async fn asked(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
