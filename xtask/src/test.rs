//! `cargo xtask test`: every check of the project, in order.
//!
//! A stage is a row in [`stages`]. The closing line, `N passed, N failed`, adds up what the stages print
//! as `test result:` lines; a stage that fails without one counts as one failure. Stages that mostly wait
//! are in [`stages_beside`] and run beside the others: see [`beside`].

mod beside;

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;

use self::beside::Beside;
use crate::hosts::{Host, gateway};
use crate::{build, clients, operate, setup, size, templates, worker, workspace};

/// How long the short form of the mixed load with faults takes; `cargo xtask chaos` takes longer.
const CHAOS_SECONDS: u64 = 15;

/// What can be chosen.
#[derive(Args)]
pub(crate) struct Options {
    /// Only the stages whose name contains one of these words.
    #[arg(value_name = "WORD")]
    only: Vec<String>,
    /// One stage beside the others, by its whole name; the environment has the artefacts.
    #[arg(long, hide = true, value_name = "STAGE")]
    beside: Option<String>,
}

/// One check.
struct Stage {
    name: &'static str,
    work: Work,
}

enum Work {
    /// cargo with these arguments. Rows after `Artefacts` get its variables.
    Cargo(&'static [&'static str]),
    /// Builds and installs what tests of real hosts use: see [`artefacts`].
    Artefacts,
    /// Compares the artefacts with their budgets.
    Sizes,
    /// Real clients, by name or tier, in front of this host.
    Clients(Host, &'static [&'static str]),
    /// What a room of this program does; it runs commands through what it is given.
    Own(fn(Each<'_>) -> Result<()>),
}

/// Runs a command, shows what it prints, and counts the tests in it.
type Each<'a> = &'a mut dyn FnMut(&mut Command) -> Result<()>;

/// A variable for the tests, and the file that it names.
type Variables = Vec<(&'static str, OsString)>;

/// In order: what is quick and fails often comes first. Every package of the workspace must have a row
/// with `-p PACKAGE`; tests that start real hosts come after `artefacts`.
fn stages() -> Vec<Stage> {
    let rows = [
        ("format", Work::Cargo(&["fmt", "--all", "--check"])),
        (
            "lints",
            Work::Cargo(&[
                "clippy",
                "--quiet",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ]),
        ),
        ("core", Work::Cargo(&["test", "--no-fail-fast", "-p", "creole"])),
        ("demo model", Work::Cargo(&["test", "--no-fail-fast", "-p", "creole-demo"])),
        ("xtask", Work::Cargo(&["test", "--no-fail-fast", "-p", "xtask"])),
        ("load generator", Work::Cargo(&["test", "--no-fail-fast", "-p", "creole-load"])),
        ("chat templates", Work::Own(|each| templates::test(each))),
        ("accumulators", Work::Own(|each| clients::accumulators::test(each))),
        ("filter", Work::Cargo(&["test", "--no-fail-fast", "-p", "creole-envoy"])),
        (
            "gateway",
            // With what its tests print: figures of many streams.
            Work::Cargo(&["test", "--no-fail-fast", "-p", "creole-gateway", "--", "--show-output"]),
        ),
        (
            "lints of Worker",
            Work::Cargo(&[
                "clippy",
                "--quiet",
                "-p",
                "creole-cloudflare",
                "--no-deps",
                "--target",
                worker::TARGET,
                "--features",
                "test-hooks",
                "--",
                "-D",
                "warnings",
            ]),
        ),
        (
            "parts of Worker",
            Work::Cargo(&[
                "test",
                "--no-fail-fast",
                "-p",
                "creole-cloudflare",
                "-p",
                "xtask-worker",
            ]),
        ),
        // Before the artefacts: it builds them anew, which must not happen while they are used.
        ("sizes", Work::Sizes),
        ("artefacts", Work::Artefacts),
        ("canary", Work::Cargo(&["test", "--no-fail-fast", "-p", "creole-canary"])),
        (
            "core as wasm",
            Work::Cargo(&["test", "--no-fail-fast", "-p", "creole", "--target", "wasm32-wasip1"]),
        ),
        ("hosts", Work::Cargo(&["test", "--no-fail-fast", "-p", "creole-hosts"])),
        (
            "lints wasm",
            Work::Cargo(&[
                "clippy",
                "--quiet",
                "-p",
                "creole-wit",
                "--target",
                "wasm32-unknown-unknown",
                "--",
                "-D",
                "warnings",
            ]),
        ),
        ("embedding", Work::Cargo(&["test", "--no-fail-fast", "-p", "creole-wit"])),
        ("wasi:http", Work::Cargo(&["test", "--no-fail-fast", "-p", "creole-wasi-http"])),
        (
            "Worker in workerd",
            Work::Cargo(&[
                "test",
                "--no-fail-fast",
                "-p",
                "creole-worker-tests",
                "--",
                "--show-output",
            ]),
        ),
    ];
    rows.map(|(name, work)| Stage { name, work }).into()
}

/// Those that mostly wait, for clients, clocks and servers. They come after the artefacts, and beside the
/// stages that compute.
fn stages_beside() -> Vec<Stage> {
    let rows = [
        ("clients, envoy", Work::Clients(Host::Envoy, &["default"])),
        ("clients, gateway", Work::Clients(Host::Gateway, clients::SDKS)),
        ("clients, worker", Work::Clients(Host::Worker, clients::SDKS)),
        ("guards, envoy", Work::Own(|each| clients::guards::test(Host::Envoy, each))),
        ("guards, gateway", Work::Own(|each| clients::guards::test(Host::Gateway, each))),
        ("guards, worker", Work::Own(|each| clients::guards::test(Host::Worker, each))),
        ("operation, envoy", Work::Own(|each| operate::observe(Host::Envoy, each))),
        ("operation, gateway", Work::Own(|each| operate::observe(Host::Gateway, each))),
        ("operation, worker", Work::Own(|each| operate::observe(Host::Worker, each))),
        ("operation, component", Work::Own(|each| operate::observe(Host::Component, each))),
        ("faults, envoy", Work::Own(|each| operate::faults(each))),
        ("manifests", Work::Own(|each| operate::manifests(each))),
        ("chaos, envoy", Work::Own(|each| operate::chaos(Host::Envoy, CHAOS_SECONDS, each))),
        ("chaos, gateway", Work::Own(|each| operate::chaos(Host::Gateway, CHAOS_SECONDS, each))),
        ("chaos, worker", Work::Own(|each| operate::chaos(Host::Worker, CHAOS_SECONDS, each))),
        (
            "chaos, component",
            Work::Own(|each| operate::chaos(Host::Component, CHAOS_SECONDS, each)),
        ),
    ];
    rows.map(|(name, work)| Stage { name, work }).into()
}

/// What one stage gave.
struct Outcome {
    name: &'static str,
    passed: u64,
    failed: u64,
    ignored: u64,
    good: bool,
    seconds: f64,
}

impl Outcome {
    /// A stage that gave nothing.
    fn lost(name: &'static str) -> Self {
        Self { name, passed: 0, failed: 1, ignored: 0, good: false, seconds: 0.0 }
    }
}

/// Runs the stages, all of them even after a failure, and says whether every one passed. The counts are
/// the last line that is printed.
pub(crate) fn test(options: &Options) -> Result<bool> {
    let (stages, beside) = (stages(), stages_beside());
    if let Some(name) = &options.beside {
        let Some(stage) = beside.iter().find(|stage| stage.name == name) else {
            bail!("no stage {name} runs beside others");
        };
        let outcome = run(stage, &mut Variables::new());
        beside::report(&outcome);
        return Ok(outcome.good);
    }
    every_package_has_a_stage(&stages)?;
    let wanted = |stage: &&Stage| {
        options.only.is_empty()
            || options.only.iter().any(|word| stage.name.contains(word.as_str()))
    };
    let start = Instant::now();
    let names: Vec<&'static str> = beside.iter().filter(wanted).map(|stage| stage.name).collect();
    // Stages that use the artefacts come after them; so they are built when such a stage is chosen.
    let last = if names.is_empty() {
        stages.iter().rposition(|stage| wanted(&stage))
    } else {
        Some(stages.len())
    };
    let mut variables = Variables::new();
    let mut outcomes = Vec::new();
    let mut others = Beside::none();
    for (at, stage) in stages.iter().enumerate() {
        let artefacts = matches!(stage.work, Work::Artefacts);
        if wanted(&stage) || artefacts && last.is_some_and(|last| at < last) {
            println!("\n== {}", stage.name);
            let outcome = run(stage, &mut variables);
            if artefacts && outcome.good {
                others = Beside::start(&names, &variables)?;
            } else if artefacts {
                outcomes.extend(names.iter().map(|name| Outcome::lost(name)));
            }
            outcomes.push(outcome);
            outcomes.extend(others.ended());
        }
    }
    outcomes.extend(others.all());
    if outcomes.is_empty() {
        bail!("no stage has such a name");
    }
    summary(&outcomes, start.elapsed().as_secs_f64());
    Ok(outcomes.iter().all(|outcome| outcome.good))
}

fn summary(outcomes: &[Outcome], seconds: f64) {
    println!(
        "\n{:<20} {:>6} {:>8} {:>8} {:>8} {:>9}",
        "stage", "", "passed", "failed", "ignored", "seconds"
    );
    for outcome in outcomes {
        let Outcome { name, passed, failed, ignored, seconds, .. } = outcome;
        let word = if outcome.good { "ok" } else { "FAILED" };
        println!("{name:<20} {word:>6} {passed:>8} {failed:>8} {ignored:>8} {seconds:>9.1}");
    }
    let passed: u64 = outcomes.iter().map(|outcome| outcome.passed).sum();
    let failed: u64 = outcomes.iter().map(|outcome| outcome.failed).sum();
    println!("{:<20} {:>6} {passed:>8} {failed:>8} {:>8} {seconds:>9.1}\n", "all", "", "");
    println!("{passed} passed, {failed} failed");
}

fn run(stage: &Stage, variables: &mut Variables) -> Outcome {
    let start = Instant::now();
    let mut outcome =
        Outcome { name: stage.name, passed: 0, failed: 0, ignored: 0, good: false, seconds: 0.0 };
    let done = match stage.work {
        Work::Cargo(arguments) => {
            let mut command = workspace::cargo(arguments);
            count(command.envs(variables.iter().cloned()), &mut outcome)
        }
        Work::Artefacts => artefacts().map(|ready| *variables = ready),
        Work::Sizes => sizes(&mut outcome),
        Work::Clients(host, names) => {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            clients::run_on(host, &names, false).map(|(passed, failed)| {
                (outcome.passed, outcome.failed) = (passed, failed);
            })
        }
        Work::Own(room) => room(&mut |command| count(command, &mut outcome)),
    };
    if let Err(error) = &done {
        println!("{error:#}");
    }
    outcome.good = done.is_ok() && outcome.failed == 0;
    if !outcome.good && outcome.failed == 0 {
        outcome.failed = 1;
    }
    outcome.seconds = start.elapsed().as_secs_f64();
    outcome
}

/// An artefact that is too large is a failure.
fn sizes(outcome: &mut Outcome) -> Result<()> {
    let (looked_at, found) = size::over_budget()?;
    outcome.failed = u64::try_from(found.len())?;
    outcome.passed = looked_at.saturating_sub(outcome.failed);
    if found.is_empty() { Ok(()) } else { bail!("{}", found.join("\n")) }
}

/// What tests of real hosts use: `CREOLE_ENVOY` (the binary), `CREOLE_WASM` (the filter), `CREOLE_DEMO`
/// (the demo model's binary), `CREOLE_GATEWAY` (the binary), `CREOLE_COMPONENT` (the component to
/// embed), `CREOLE_WASI_HTTP` (the one for servers), `CREOLE_WASMTIME` (the binary), `CREOLE_PYTHON` (an
/// interpreter that has the package wasmtime), `CREOLE_WORKERD` (the binary), `CREOLE_WORKER_DIR` (the
/// Worker's modules), `CREOLE_WORKER_HOOKS_DIR` (the same, able to panic on demand) and
/// `CREOLE_WASM_HOOKS` (the filter, able to trap on demand). Cargo itself learns what runs tests that are
/// compiled to WebAssembly.
fn artefacts() -> Result<Variables> {
    let envoy = setup::envoy()?;
    let wasmtime = setup::wasmtime()?;
    let mut runner = wasmtime.clone().into_os_string();
    runner.push(" run --dir=/");
    let python = setup::python_with_wasmtime()?;
    // Stages that run side by side must find everything there.
    setup::python_with_yaml()?;
    setup::python_with_prometheus()?;
    // Cargo writes both to one place, and the last one stays there.
    let filter_with_hooks = build::filter_with_hooks()?;
    let filter = build::one(&build::FILTER)?;
    let component = build::one(&build::COMPONENT)?;
    let wasi_http = build::one(&build::WASI_HTTP)?;
    let with_hooks = worker::with_hooks()?;
    let (workerd, modules) = (setup::workerd()?, worker::shipped()?);
    let gateway = gateway::binary()?;
    let demo = crate::run::demo_model()?;
    Ok(vec![
        ("CREOLE_ENVOY", envoy.into()),
        ("CREOLE_WASM", filter.into()),
        ("CREOLE_WASM_HOOKS", filter_with_hooks.into()),
        ("CREOLE_DEMO", demo.into()),
        ("CREOLE_GATEWAY", gateway.into()),
        ("CREOLE_COMPONENT", component.into()),
        ("CREOLE_WASI_HTTP", wasi_http.into()),
        ("CREOLE_WASMTIME", wasmtime.into()),
        ("CREOLE_WORKERD", workerd.into()),
        ("CREOLE_WORKER_DIR", modules.folder.into()),
        ("CREOLE_WORKER_HOOKS_DIR", with_hooks.folder.into()),
        ("CREOLE_PYTHON", python.into()),
        ("CARGO_TARGET_WASM32_WASIP1_RUNNER", runner),
    ])
}

/// Runs a command, shows what it prints, and counts the tests in it.
fn count(command: &mut Command, outcome: &mut Outcome) -> Result<()> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).split(b'\n')) {
        let line = line?;
        let mut out = std::io::stdout().lock();
        out.write_all(&line)?;
        out.write_all(b"\n")?;
        if let Some([passed, failed, ignored]) = counts(&String::from_utf8_lossy(&line)) {
            outcome.passed = outcome.passed.saturating_add(passed);
            outcome.failed = outcome.failed.saturating_add(failed);
            outcome.ignored = outcome.ignored.saturating_add(ignored);
        }
    }
    let status = child.wait()?;
    if status.success() { Ok(()) } else { bail!("{status}") }
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; …`, or `3 passed, 0 failed`.
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

/// A package whose tests no stage runs would look tested.
fn every_package_has_a_stage(stages: &[Stage]) -> Result<()> {
    let covered = |package: &str| {
        stages.iter().any(|stage| {
            matches!(stage.work, Work::Cargo(arguments)
                if arguments.windows(2).any(|pair| *pair == ["-p", package]))
        })
    };
    let missing: Vec<String> =
        workspace::packages()?.into_iter().filter(|package| !covered(package)).collect();
    if !missing.is_empty() {
        bail!("no stage in xtask/src/test.rs runs the tests of {}", missing.join(", "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_a_test_run_are_read() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(counts(line), Some([12, 3, 1]));
        assert_eq!(counts("18 passed, 2 failed"), Some([18, 2, 0]));
        assert_eq!(counts("test a ... ok"), None);
    }
}
