//! `cargo xtask test`: every check of the project, in order.
//!
//! A stage is a row in [`stages`](stages::stages). The closing line, `N passed, N failed`, adds up
//! the `test result:` lines of the stages; a stage that fails without such a line counts as one
//! failure. Stages that mostly wait, or for which cargo builds more, are in [`stages_beside`] and
//! run in parallel to the others: see [`beside`]. The module [`output`] decides which lines are
//! shown; the output of a failed stage is shown once more at the end.

mod beside;
mod built;
mod output;
mod stages;

use std::fs;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;

use self::beside::Beside;
use self::built::Built;
use self::output::Output;
use self::stages::{ON_DEMAND, SECOND_TIER, Stage, Work, stages, stages_beside};
use crate::workspace::{self, Manner};
use crate::{clients, size};

/// Environment variable with the seed for tests with random cases, so that a commit always gives
/// the same result. Plain `cargo test` uses random seeds.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "1");

/// Maximum time for one command of a stage. The slowest takes a few minutes; a command that hangs
/// would otherwise never fail.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// Options of `cargo xtask test`.
#[derive(Args)]
pub(crate) struct TestOptions {
    /// Only the stages whose name contains one of these words; some run in no other way.
    #[arg(value_name = "WORD")]
    only: Vec<String>,
    /// The second tier, too: what takes long, and what repeats on another host. Its date goes into
    /// docs/status.md.
    #[arg(long, conflicts_with = "only")]
    all: bool,
    /// One stage beside the others, by its whole name; the environment names what was built.
    #[arg(long, hide = true, value_name = "STAGE")]
    beside: Option<String>,
}

/// Result of one test stage.
struct StageOutcome {
    name: &'static str,
    passed: u64,
    failed: u64,
    ignored: u64,
    good: bool,
    /// True if the stage failed at first, and passed when it was run again.
    again: bool,
    seconds: f64,
    /// Processor time of the stage's commands in seconds; 0 if the system does not report it.
    processor: f64,
    output: Output,
}

impl StageOutcome {
    fn of(name: &'static str) -> Self {
        let output = Output::default();
        let (good, again) = (false, false);
        let (seconds, processor) = (0.0, 0.0);
        Self { name, passed: 0, failed: 0, ignored: 0, good, again, seconds, processor, output }
    }

    /// Returns the outcome of a stage that ended without a result, which counts as a failure.
    fn lost(name: &'static str) -> Self {
        Self { failed: 1, ..Self::of(name) }
    }

    fn word(&self) -> &'static str {
        match (self.good, self.again) {
            (true, false) => "ok",
            (true, true) => "again",
            (false, _) => "FAILED",
        }
    }
}

/// Runs the stages, all of them even after a failure. Returns true if every stage passed. The last
/// printed line has the counts.
pub(crate) fn test(options: &TestOptions) -> Result<bool> {
    let (stages, beside) = (stages(), stages_beside());
    if let Some(name) = &options.beside {
        let Some(stage) = beside.iter().find(|stage| stage.name == name) else {
            bail!("no stage {name} runs beside others");
        };
        let outcome = run(stage, &mut Built::default(), Manner::Quick);
        beside::report(&outcome);
        return Ok(outcome.good);
    }
    every_package_has_a_stage(&stages)?;
    every_word_has_a_stage(&options.only, stages.iter().chain(&beside))?;
    let wanted = |stage: &&Stage| {
        if options.only.is_empty() {
            let is_first = !SECOND_TIER.contains(&stage.name);
            !ON_DEMAND.contains(&stage.name) && (options.all || is_first)
        } else {
            options.only.iter().any(|word| stage.name.contains(word.as_str()))
        }
    };
    let measures = stages.iter().filter(wanted).any(Stage::measures);
    let manner = if options.all || measures { Manner::Shipped } else { Manner::Quick };
    let start = Instant::now();
    let names: Vec<&'static str> = beside.iter().filter(wanted).map(|stage| stage.name).collect();
    let last = if names.is_empty() {
        stages.iter().rposition(|stage| wanted(&stage))
    } else {
        Some(stages.len())
    };
    let mut built = Built::default();
    let mut outcomes = Vec::new();
    let mut others = Beside::none();
    for (at, stage) in stages.iter().enumerate() {
        let builds = matches!(stage.work, Work::Build);
        if wanted(&stage) || builds && last.is_some_and(|last| at < last) {
            println!("\n== {}", stage.name);
            let before = processor_time();
            let mut outcome = run(stage, &mut built, manner);
            outcome.processor = processor_time() - before;
            if builds && outcome.good {
                others = Beside::start(&names, &built.variables)?;
            } else if builds {
                outcomes.extend(names.iter().map(|name| StageOutcome::lost(name)));
            }
            let ended = others.ended();
            // The system's count also includes the processor time of the stages that ended
            // meanwhile.
            outcome.processor -= ended.iter().map(|other| other.processor).sum::<f64>();
            outcomes.push(outcome);
            outcomes.extend(ended);
        }
    }
    outcomes.extend(others.all());
    if !built.variables.is_empty() {
        run_again(&mut outcomes, &stages, &mut built, manner)?;
    }
    failures(&outcomes);
    summary(&outcomes, start.elapsed().as_secs_f64());
    let is_good = outcomes.iter().all(|outcome| outcome.good && !(options.all && outcome.again));
    if options.all && is_good {
        note_run(&outcomes)?;
    }
    Ok(is_good)
}

/// Returns the processor time of all ended commands in seconds; 0 if the system does not report it.
fn processor_time() -> f64 {
    const TICKS_IN_A_SECOND: f64 = 100.0;
    let status = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may have spaces. After the name, the 14th and the 15th field are the
    // times of children.
    let (_, fields) = status.rsplit_once(')').unwrap_or_default();
    let children = fields.split_whitespace().skip(13).take(2);
    let ticks: f64 = children.filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / TICKS_IN_A_SECOND
}

/// Marks in docs/status.md before and after the last run of every stage.
const LAST_RUN: [&str; 2] = ["<!-- last run -->", "<!-- end of the last run -->"];

/// Writes the date of a run of every stage into docs/status.md.
fn note_run(outcomes: &[StageOutcome]) -> Result<()> {
    let path = workspace::root().join("docs/status.md");
    let page = fs::read_to_string(&path)?;
    let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output()?.stdout;
    let passed: u64 = outcomes.iter().map(|outcome| outcome.passed).sum();
    let last = format!("{}, {passed} passed", String::from_utf8(date)?.trim());
    fs::write(path, with_last_run(&page, &last).context("docs/status.md has no place for it")?)?;
    Ok(())
}

/// Returns the page with the part about the last run replaced; `None` if the page lacks the marks.
fn with_last_run(page: &str, last: &str) -> Option<String> {
    let [start, end] = LAST_RUN;
    let (before, rest) = page.split_once(start)?;
    let (_, behind) = rest.split_once(end)?;
    Some(format!("{before}{start}{last}{end}{behind}"))
}

/// Runs failed stages again whose tests depend on time, since these can fail on a busy machine. The
/// first failure is shown; the second run happens while nothing else runs, so that real faults fail
/// again.
fn run_again(
    outcomes: &mut [StageOutcome],
    stages: &[Stage],
    built: &mut Built,
    manner: Manner,
) -> Result<()> {
    let beside = stages_beside();
    for outcome in outcomes.iter_mut().filter(|outcome| !outcome.good) {
        let name = outcome.name;
        let is_it = |stage: &&Stage| stage.name == name;
        let next = match (stages.iter().find(is_it), beside.iter().find(is_it)) {
            (Some(stage), _) if stage.has_clocks() => {
                println!("\n== {name}, again");
                Some(run(stage, built, manner))
            }
            (_, Some(stage)) if stage.has_clocks() => {
                Beside::start(&[name], &built.variables)?.all().pop()
            }
            _ => None,
        };
        let Some(next) = next else { continue };
        let output = std::mem::take(&mut outcome.output);
        *outcome = StageOutcome { output, again: true, ..next };
    }
    Ok(())
}

/// Prints the output of the failed stages again, because the first time can be far above.
fn failures(outcomes: &[StageOutcome]) {
    for outcome in outcomes.iter().filter(|outcome| !outcome.good || outcome.again) {
        println!("\n== {} failed{}", outcome.name, if outcome.good { " at first" } else { "" });
        outcome.output.print_end();
    }
}

fn summary(outcomes: &[StageOutcome], seconds: f64) {
    println!(
        "\n{:<20} {:>6} {:>8} {:>8} {:>8} {:>9} {:>9}",
        "stage", "", "passed", "failed", "ignored", "seconds", "processor"
    );
    for outcome in outcomes {
        let StageOutcome { name, passed, failed, ignored, seconds, processor, .. } = outcome;
        let word = outcome.word();
        println!(
            "{name:<20} {word:>6} {passed:>8} {failed:>8} {ignored:>8} {seconds:>9.1} {processor:>9.1}"
        );
    }
    let passed: u64 = outcomes.iter().map(|outcome| outcome.passed).sum();
    let failed: u64 = outcomes.iter().map(|outcome| outcome.failed).sum();
    let processor = processor_time();
    println!(
        "{:<20} {:>6} {passed:>8} {failed:>8} {:>8} {seconds:>9.1} {processor:>9.1}\n",
        "all", "", ""
    );
    println!("{passed} passed, {failed} failed");
}

fn run(stage: &Stage, built: &mut Built, manner: Manner) -> StageOutcome {
    let start = Instant::now();
    let mut outcome = StageOutcome::of(stage.name);
    let mut done = match stage.work {
        Work::Cargo(arguments) => {
            let mut command = workspace::cargo(arguments.split(' '));
            count(command.envs(built.variables.iter().cloned()), &mut outcome)
        }
        Work::Build => built::build(manner).map(|all| *built = all),
        Work::Tests(package) => tests(built, package, &[], &mut outcome),
        Work::Servers(package) => tests(built, package, &["--show-output"], &mut outcome),
        Work::Measures(package, name) => built.test(package, name).and_then(|mut command| {
            count(command.envs(built.variables.iter().cloned()), &mut outcome)
        }),
        Work::Sizes => sizes(&mut outcome),
        Work::Clients(host, protocol, names) => {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            clients::run_on(host, protocol, &names).map(|(passed, failed)| {
                (outcome.passed, outcome.failed) = (passed, failed);
            })
        }
        Work::Own(room) => room(built, &mut |command| count(command, &mut outcome)),
    };
    if done.is_ok() && stage.has_tests() && outcome.passed == 0 && outcome.failed == 0 {
        done = Err(anyhow!("no test was counted"));
    }
    if let Err(error) = &done {
        outcome.output.show(&format!("{error:#}"));
    }
    outcome.good = done.is_ok() && outcome.failed == 0;
    if !outcome.good && outcome.failed == 0 {
        outcome.failed = 1;
    }
    outcome.seconds = start.elapsed().as_secs_f64();
    outcome
}

/// Returns true if a test file measures artefacts, and so has a stage of its own.
fn measures(package: &str, name: &str) -> bool {
    let mut stages = stages().into_iter();
    stages.any(
        |stage| matches!(stage.work, Work::Measures(of, file) if (of, file) == (package, name)),
    )
}

/// Runs all tests of a package, even after a failure.
fn tests(
    built: &Built,
    package: &str,
    arguments: &[&str],
    outcome: &mut StageOutcome,
) -> Result<()> {
    let mut failed = Vec::new();
    let mut commands = built.tests(package);
    commands.retain(|(name, _)| !measures(package, name));
    if commands.is_empty() {
        bail!("no tests of {package} were built");
    }
    for (name, mut command) in commands {
        outcome.output.show(&format!("-- {name}"));
        command.args(arguments).envs(built.variables.iter().cloned());
        if let Err(error) = count(&mut command, outcome) {
            failed.push(format!("{name}: {error:#}"));
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("{}", failed.join("\n")) }
}

/// Compares the artefacts' sizes with their budgets; an artefact above its budget is a failure.
fn sizes(outcome: &mut StageOutcome) -> Result<()> {
    let (looked_at, found) = size::over_budget()?;
    outcome.failed = u64::try_from(found.len())?;
    outcome.passed = looked_at.saturating_sub(outcome.failed);
    if found.is_empty() { Ok(()) } else { bail!("{}", found.join("\n")) }
}

/// Runs a command, prints its output, and counts its tests.
fn count(command: &mut Command, outcome: &mut StageOutcome) -> Result<()> {
    count_within(LIMIT, command, outcome)
}

/// Runs a command for at most `limit`, and counts its tests. A process that the command started can
/// outlive it and keep the pipe open.
fn count_within(limit: Duration, command: &mut Command, outcome: &mut StageOutcome) -> Result<()> {
    let (output, write) = std::io::pipe()?;
    let mut child = command
        .env(SEED.0, SEED.1)
        .stdin(Stdio::null())
        .stdout(write.try_clone()?)
        .stderr(write)
        .spawn()?;
    // `command` keeps its ends of the pipe open, and reading would never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (printed, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in output::lines(output) {
            if printed.send(line).is_err() {
                break;
            }
        }
    });
    let start = Instant::now();
    loop {
        let line = match lines.recv_timeout(limit.saturating_sub(start.elapsed())) {
            Ok(line) => line?,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                child.kill()?;
                child.wait()?;
                bail!("it still ran after {} s", limit.as_secs());
            }
        };
        outcome.output.show(&line);
        if let Some([passed, failed, ignored]) = counts(&line) {
            outcome.passed = outcome.passed.saturating_add(passed);
            outcome.failed = outcome.failed.saturating_add(failed);
            outcome.ignored = outcome.ignored.saturating_add(ignored);
        }
    }
    let status = child.wait()?;
    if status.success() { Ok(()) } else { bail!("{status}") }
}

/// Returns the numbers of passed, failed and ignored tests in a line like `test result: ok. 3
/// passed; 0 failed; 1 ignored; …` or `3 passed, 0 failed`.
fn counts(line: &str) -> Option<[u64; 3]> {
    let counts = match line.strip_prefix("test result: ") {
        Some(result) => result.split_once(". ")?.1.replace("; ", ", "),
        None if line.ends_with(" failed") && line.contains(" passed, ") => line.to_owned(),
        None => return None,
    };
    let count = |word: &str| {
        let part = counts.split(", ").find(|part| part.ends_with(word));
        part.and_then(|part| part.split(' ').next()?.parse().ok()).unwrap_or(0)
    };
    Some([count("passed"), count("failed"), count("ignored")])
}

/// Checks that each word matches a stage's name, since a misspelt word would silently select
/// nothing.
fn every_word_has_a_stage<'a>(
    words: &[String],
    stages: impl Iterator<Item = &'a Stage>,
) -> Result<()> {
    let names: Vec<&str> = stages.map(|stage| stage.name).collect();
    match words.iter().find(|word| !names.iter().any(|name| name.contains(word.as_str()))) {
        Some(word) => bail!("no stage has {word} in its name; there are: {}", names.join("; ")),
        None => Ok(()),
    }
}

/// Checks that every package of the workspace has a stage that runs its tests.
fn every_package_has_a_stage(stages: &[Stage]) -> Result<()> {
    let covered = |package: &str| {
        stages
            .iter()
            .any(|stage| matches!(stage.work, Work::Tests(of) | Work::Servers(of) if of == package))
    };
    let packages = workspace::packages()?.into_iter().map(|package| package.name.to_string());
    let missing: Vec<String> = packages.filter(|package| !covered(package)).collect();
    if !missing.is_empty() {
        bail!("no stage in xtask/src/test/stages.rs runs the tests of {}", missing.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
