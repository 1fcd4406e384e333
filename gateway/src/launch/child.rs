//! The launched client as a child process: it owns the terminal, and when it ends, `creole launch`
//! ends.

use std::io;
use std::process::{Child, Command};
use std::thread;

use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;

use crate::CommandFailed;

/// Runs a client to its end, and returns its exit code. A client that a signal ended gets 128 plus
/// the signal's number, as in shells. Meanwhile shows the `lines` about failures, if there are any.
pub(crate) async fn run(
    mut command: Command,
    mut lines: Option<Receiver<String>>,
) -> Result<u8, CommandFailed> {
    let failed = |error: io::Error| CommandFailed::Run(format!("cannot run the client: {error}"));
    // Signals are caught before the client starts: the keys that end the client must not end this
    // process first.
    let mut signals = ChildSignals::listen().map_err(failed)?;
    let child = command.spawn().map_err(failed)?;
    let id = child.id();
    let (ended, mut end) = oneshot::channel();
    let waiting = thread::Builder::new().name("client".to_owned());
    waiting.spawn(move || ended.send(wait(child))).map_err(failed)?;
    loop {
        tokio::select! {
            code = &mut end => return code.unwrap_or(Ok(1)).map_err(failed),
            () = signals.forwarded_to(id) => {}
            line = next(&mut lines) => super::say(&line),
        }
    }
}

/// Waits for the next line about a failure, for ever if there is none.
async fn next(lines: &mut Option<Receiver<String>>) -> String {
    match lines {
        Some(lines) => match lines.recv().await {
            Some(line) => line,
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

#[cfg(unix)]
fn wait(child: Child) -> io::Result<u8> {
    use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
    let client = Pid::from_child(&child);
    loop {
        let status = match waitpid(Some(client), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) => status,
            Ok(None) | Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        if let Some(code) = status.exit_status() {
            return Ok(u8::try_from(code).unwrap_or(1));
        }
        if let Some(signal) = status.terminating_signal() {
            return Ok(u8::try_from(signal.saturating_add(128)).unwrap_or(1));
        }
        if status.stopped() {
            // The shell watches only this process, and shows its prompt when this process stops,
            // too.
            kill_process(getpid(), Signal::STOP)?;
            // The shell has resumed this process.
            kill_process(client, Signal::CONT)?;
        }
    }
}

#[cfg(not(unix))]
fn wait(mut child: Child) -> io::Result<u8> {
    let code = child.wait()?.code().unwrap_or(1);
    Ok(u8::try_from(code).unwrap_or(1))
}

/// Receiver of the signals that ask this process to end. They are forwarded to the client, which
/// decides.
#[cfg(unix)]
struct ChildSignals {
    interrupt: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl ChildSignals {
    fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one signal, and forwards it to the client. A terminal sends signals of the
    /// keyboard to all its processes, so the client already has them.
    async fn forwarded_to(&mut self, id: u32) {
        use rustix::process::{Pid, Signal, kill_process};
        use std::io::IsTerminal as _;
        let keyboard = io::stdin().is_terminal();
        let signal = tokio::select! {
            _ = self.interrupt.recv() => (!keyboard).then_some(Signal::INT),
            _ = self.quit.recv() => (!keyboard).then_some(Signal::QUIT),
            _ = self.terminate.recv() => Some(Signal::TERM),
            _ = self.hang_up.recv() => Some(Signal::HUP),
        };
        let client = i32::try_from(id).ok().and_then(Pid::from_raw);
        if let (Some(signal), Some(client)) = (signal, client) {
            // The client may have ended meanwhile.
            let _ = kill_process(client, signal);
        }
    }
}

/// Placeholder on Windows, where Ctrl-C reaches all programs of a console.
#[cfg(not(unix))]
struct ChildSignals;

#[cfg(not(unix))]
impl ChildSignals {
    fn listen() -> io::Result<Self> {
        Ok(Self)
    }

    async fn forwarded_to(&mut self, _: u32) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
