//! Child processes of a command: watched while the command runs, and stopped when it ends.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// Maximum time for a child to end by itself before it is killed.
const PATIENCE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(100);

/// Flag that is set by Ctrl-C or SIGTERM.
#[derive(Clone)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Installs the signal handler once, and returns the shared flag.
    pub(crate) fn shared() -> Result<Self> {
        static STOP: OnceLock<Stop> = OnceLock::new();
        if let Some(stop) = STOP.get() {
            return Ok(stop.clone());
        }
        let stop = Self(Arc::default());
        let flag = Arc::clone(&stop.0);
        ctrlc::set_handler(move || flag.store(true, Ordering::Relaxed))?;
        Ok(STOP.get_or_init(|| stop).clone())
    }

    pub(crate) fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Running child processes, in the order of their start. They are stopped in the reverse order.
pub(crate) struct Children {
    stop: Stop,
    running: Vec<Running>,
}

struct Running {
    name: &'static str,
    log: PathBuf,
    child: Child,
}

impl Children {
    pub(crate) fn new(stop: Stop) -> Self {
        Self { stop, running: Vec::new() }
    }

    /// Starts a child process whose output goes to a file.
    pub(crate) fn start(
        &mut self,
        name: &'static str,
        command: &mut Command,
        log: &Path,
    ) -> Result<()> {
        let out = File::create(log).with_context(|| log.display().to_string())?;
        command.stdout(out.try_clone()?);
        self.spawn(name, command.stderr(out), log).map(drop)
    }

    /// Starts a child process that prints one line when it is ready, and returns that line.
    pub(crate) fn start_and_read_line(
        &mut self,
        name: &'static str,
        command: &mut Command,
        log: &Path,
    ) -> Result<String> {
        command.stderr(File::create(log).with_context(|| log.display().to_string())?);
        let out = self.spawn(name, command.stdout(Stdio::piped()), log)?;
        let mut line = String::new();
        if let Some(out) = out {
            BufReader::new(out).read_line(&mut line)?;
        }
        if line.is_empty() {
            bail!("{name} did not start:\n{}", end_of(log));
        }
        Ok(line.trim_end().to_owned())
    }

    fn spawn(
        &mut self,
        name: &'static str,
        command: &mut Command,
        log: &Path,
    ) -> Result<Option<ChildStdout>> {
        let mut child =
            command.stdin(Stdio::null()).spawn().with_context(|| format!("starting {name}"))?;
        let out = child.stdout.take();
        self.running.push(Running { name, log: log.to_path_buf(), child });
        Ok(out)
    }

    /// Returns the process id of the child that was started last.
    pub(crate) fn newest(&self) -> Option<u32> {
        self.running.last().map(|running| running.child.id())
    }

    /// Waits until `ready` returns true, as long as every child process runs.
    pub(crate) fn wait_until(
        &mut self,
        what: &str,
        most: Duration,
        ready: impl Fn() -> bool,
    ) -> Result<()> {
        let start = Instant::now();
        while !ready() {
            self.check()?;
            if self.stop.asked() {
                bail!("stopped");
            }
            if start.elapsed() > most {
                bail!("{what} does not answer after {} s", most.as_secs());
            }
            thread::sleep(GLANCE);
        }
        Ok(())
    }

    /// Watches the children. Returns when a signal asks to stop; fails when a child ends.
    pub(crate) fn watch(&mut self) -> Result<()> {
        while !self.stop.asked() {
            // Ctrl-C also ends the children, so a child that ends right after Ctrl-C is no failure.
            if let Err(death) = self.check() {
                thread::sleep(GLANCE);
                if self.stop.asked() {
                    break;
                }
                return Err(death);
            }
            thread::sleep(GLANCE);
        }
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        for running in &mut self.running {
            if let Some(status) = running.child.try_wait()? {
                bail!("{} ended by itself ({status}):\n{}", running.name, end_of(&running.log));
            }
        }
        Ok(())
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for running in self.running.iter_mut().rev() {
            if !matches!(running.child.try_wait(), Ok(None)) {
                continue;
            }
            // The standard library only knows how to kill. A child that has ended meanwhile is
            // fine.
            let pid = i32::try_from(running.child.id()).ok().and_then(Pid::from_raw);
            let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
            let start = Instant::now();
            while matches!(running.child.try_wait(), Ok(None)) {
                if start.elapsed() > PATIENCE {
                    let _ = running.child.kill();
                    let _ = running.child.wait();
                    break;
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// Returns the last lines of a child's log.
fn end_of(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().rev().take(12).collect();
    lines.into_iter().rev().map(|line| format!("  {line}\n")).collect()
}
