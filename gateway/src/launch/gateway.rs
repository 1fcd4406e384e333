//! Gateway that runs on a separate thread of this process, as long as the client does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use creole::Config;
use tokio::sync::Notify;

use crate::CommandFailed;
use crate::server::door::{Door, View};
use crate::server::listen;
use crate::server::ready::Ready;
use crate::server::signals::Stop;

/// Time, in seconds, for which connections may end. It is short, because no client is left to read
/// the rest of an answer.
const SHUTDOWN_SECONDS: u64 = 1;

/// Gateway that runs on a separate thread of this process.
pub(super) struct LaunchedGateway {
    pub(super) address: SocketAddr,
    stop: Arc<Notify>,
    thread: JoinHandle<Result<(), CommandFailed>>,
}

impl LaunchedGateway {
    /// Starts a gateway on a free port. `first_line` is its first line in the log.
    pub(super) fn start(
        config: Config,
        view: View,
        first_line: impl FnOnce(SocketAddr) -> String + Send + 'static,
    ) -> Result<Self, CommandFailed> {
        let stop = Arc::new(Notify::new());
        let notify = Arc::clone(&stop);
        let (sender, ready) = channel();
        let thread = thread::Builder::new().name("gateway".to_owned());
        let thread = thread
            .spawn(move || serve_until(config, view, Stop::Notified(notify), sender, first_line))
            .map_err(|error| CommandFailed::Run(format!("cannot start a thread: {error}")))?;
        match ready.recv() {
            Ok(address) => Ok(Self { address, stop, thread }),
            Err(_) => Err(ended(thread).err().unwrap_or_else(|| {
                CommandFailed::Run("the gateway ended before it was ready".to_owned())
            })),
        }
    }

    /// Stops the gateway, and returns how it ended.
    pub(super) fn stop(self) -> Result<(), CommandFailed> {
        self.stop.notify_one();
        ended(self.thread)
    }
}

fn serve_until(
    config: Config,
    view: View,
    stop: Stop,
    sender: Sender<SocketAddr>,
    first_line: impl FnOnce(SocketAddr) -> String,
) -> Result<(), CommandFailed> {
    let door = Door { view, ..Door::local("127.0.0.1:0".to_owned(), SHUTDOWN_SECONDS) };
    let told = |ready: Ready| {
        tracing::info!("{}", first_line(ready.address));
        // The thread that starts the gateway waits for the address.
        let _ = sender.send(ready.address);
    };
    listen::run_with(&door, config, None, || Ok(stop), told)
}

fn ended(thread: JoinHandle<Result<(), CommandFailed>>) -> Result<(), CommandFailed> {
    thread.join().unwrap_or_else(|_| Err(CommandFailed::Run("the gateway failed".to_owned())))
}
