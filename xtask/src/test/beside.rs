//! Test stages that run in parallel to others. Each runs as a separate process of this program; its
//! output goes to a file and is printed when the stage has ended.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::built::Variables;
use super::{LIMIT, StageOutcome, counts, processor_time};
use crate::workspace::own;

/// Maximum number of parallel stages, besides the stage that computes. Parallel stages mostly wait.
const AT_ONCE: usize = 2;

/// Parallel stages that are running or waiting to run.
pub(super) struct Beside {
    /// Names of the stages that have not ended.
    running: Vec<&'static str>,
    outcomes: Receiver<(StageOutcome, String)>,
}

impl Beside {
    /// Returns an empty set of parallel stages.
    pub(super) fn none() -> Self {
        Self { running: Vec::new(), outcomes: mpsc::channel().1 }
    }

    /// Starts these stages in parallel.
    pub(super) fn start(names: &[&'static str], variables: &Variables) -> Result<Self> {
        let waiting = Arc::new(Mutex::new(VecDeque::from(names.to_vec())));
        let logs = own().join("stages");
        fs::create_dir_all(&logs).with_context(|| logs.display().to_string())?;
        let (ended, outcomes) = mpsc::channel();
        for _ in 0..AT_ONCE {
            let (waiting, logs) = (Arc::clone(&waiting), logs.clone());
            let (ended, variables) = (ended.clone(), variables.clone());
            thread::spawn(move || {
                let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                while let Some(name) = next() {
                    if ended.send(stage(name, &variables, &logs)).is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Self { running: names.to_vec(), outcomes })
    }

    /// Prints and returns the results of the stages that ended since the last call.
    pub(super) fn ended(&mut self) -> Vec<StageOutcome> {
        let ended: Vec<StageOutcome> = self.outcomes.try_iter().map(show).collect();
        self.running.retain(|name| ended.iter().all(|outcome| outcome.name != *name));
        ended
    }

    /// Waits for all remaining stages, and returns their results. A stage without a result has
    /// failed.
    pub(super) fn all(self) -> Vec<StageOutcome> {
        let Self { mut running, outcomes } = self;
        let mut ended: Vec<StageOutcome> = outcomes.into_iter().map(show).collect();
        running.retain(|name| ended.iter().all(|outcome| outcome.name != *name));
        ended.extend(running.into_iter().map(StageOutcome::lost));
        ended
    }
}

/// Prints the result of a stage as the last lines of its process.
pub(super) fn report(outcome: &StageOutcome) {
    println!("{PROCESSOR}{:.1}", processor_time());
    println!("{} passed, {} failed", outcome.passed, outcome.failed);
}

/// Label of the line with the processor time of a stage.
const PROCESSOR: &str = "seconds of processor time: ";

/// Runs one test stage in a separate process. Returns the outcome and the output of the stage.
fn stage(name: &'static str, variables: &Variables, logs: &Path) -> (StageOutcome, String) {
    let start = Instant::now();
    let log = logs.join(format!("{name}.log"));
    let (good, text) = match process(name, variables, &log) {
        Ok(good) => (good, fs::read(&log).unwrap_or_default()),
        Err(error) => (false, format!("{error:#}\n").into_bytes()),
    };
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let last = text.lines().last().and_then(counts);
    if last.is_some() {
        text.truncate(text.trim_end().rfind('\n').unwrap_or_default());
    }
    let told = text.rfind(PROCESSOR).map(|at| text.split_off(at));
    let processor = told.and_then(|told| told.strip_prefix(PROCESSOR)?.trim().parse().ok());
    let processor = processor.unwrap_or_default();
    let [passed, failed, ignored] = last.unwrap_or_default();
    // A process that died counted nothing, so its stage counts as one failure.
    let failed = failed.max(u64::from(!good || last.is_none()));
    let good = failed == 0;
    let seconds = start.elapsed().as_secs_f64();
    (
        StageOutcome {
            passed,
            failed,
            ignored,
            good,
            seconds,
            processor,
            ..StageOutcome::of(name)
        },
        text,
    )
}

fn process(name: &str, variables: &Variables, log: &Path) -> Result<bool> {
    let out = File::create(log).with_context(|| log.display().to_string())?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["test", "--beside", name]).envs(variables.iter().cloned());
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
    let (mut child, start) = (command.spawn()?, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        // Each command of a stage has its own limit, but other work of a stage, such as installing
        // clients, has none. So a whole stage has a limit, too.
        if start.elapsed() > LIMIT.saturating_mul(2) {
            child.kill()?;
            child.wait()?;
            bail!("it still ran after {} s", start.elapsed().as_secs());
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn show((mut outcome, text): (StageOutcome, String)) -> StageOutcome {
    println!("\n== {}", outcome.name);
    outcome.output.show(&text);
    outcome
}
