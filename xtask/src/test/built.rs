//! Build of everything that the test stages run: tests of all packages, programs, artefacts.
//!
//! One cargo command builds all tests. Cargo compiles a crate once for each set of features, and
//! unifies the sets only within one command: package by package, half of the dependencies would be
//! compiled two or three times. The artefacts are built at the same time, because each build uses a
//! single core.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, bail};

use crate::workspace::{self, Manner};
use crate::{build, compiled, setup, worker};

/// Environment variables for the tests, each with its value, which is usually a path.
pub(super) type Variables = Vec<(&'static str, OsString)>;

/// Results of the build, for the stages.
#[derive(Default)]
pub(super) struct Built {
    tests: Vec<Test>,
    /// Paths of the packages' own programs, by name.
    programs: Vec<(String, PathBuf)>,
    /// Environment variables for tests of real hosts: see [`variables`].
    pub(super) variables: Variables,
}

/// Test program for one library, program or file below `tests/`.
struct Test {
    package: String,
    /// Name of the tested library, program or test file.
    name: String,
    program: PathBuf,
    /// Working folder in which cargo would run the tests.
    folder: PathBuf,
}

/// Paths of the artefacts, and of the programs that run them.
struct Artefacts {
    envoy: PathBuf,
    workerd: PathBuf,
    wasmtime: PathBuf,
    python: PathBuf,
    filter: PathBuf,
    filter_with_hooks: PathBuf,
    component: PathBuf,
    wasi_http: PathBuf,
    worker: PathBuf,
    worker_with_hooks: PathBuf,
}

/// Builds and installs everything that the test stages need, the artefacts in this manner.
pub(super) fn build(manner: Manner) -> Result<Built> {
    // Targets are installed first, because the parallel builds must not add them at the same time.
    setup::targets(&build::targets())?;
    let (built, artefacts) = thread::scope(|scope| {
        let artefacts = scope.spawn(move || artefacts(manner));
        let built = tests();
        (built, artefacts.join())
    });
    let mut built = built?;
    let Ok(artefacts) = artefacts else { bail!("building the artefacts ended in a panic") };
    built.variables = variables(&built, &artefacts?, manner)?;
    Ok(built)
}

fn tests() -> Result<Built> {
    let packages = workspace::packages()?;
    let mut built = Built::default();
    for made in workspace::artifacts(&["test", "--workspace", "--no-run"])? {
        let Some(program) = made.executable else { continue };
        let (name, program) = (made.target.name, program.into());
        match packages.iter().find(|package| package.id == made.package_id) {
            Some(package) if made.profile.test => {
                let folder = package.manifest_path.parent().context("a package's folder")?.into();
                let package = package.name.to_string();
                built.tests.push(Test { package, name, program, folder });
            }
            _ => built.programs.push((name, program)),
        }
    }
    built.tests.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(built)
}

fn artefacts(manner: Manner) -> Result<Artefacts> {
    // Stages that run in parallel must find everything installed.
    setup::python_with_yaml()?;
    setup::python_with_prometheus()?;
    setup::python_with_kubernetes()?;
    setup::helm_and_promtool();
    Ok(Artefacts {
        envoy: setup::envoy()?,
        workerd: setup::workerd()?,
        wasmtime: setup::wasmtime()?,
        python: setup::python_with_wasmtime()?,
        filter_with_hooks: build::filter_with_hooks()?,
        filter: build::one(&build::FILTER, manner)?,
        component: build::one(&build::COMPONENT, manner)?,
        wasi_http: build::one(&build::WASI_HTTP, manner)?,
        worker_with_hooks: worker::module_with_hooks()?,
        worker: worker::module(manner)?,
    })
}

/// Returns the environment variables for tests of real hosts: `CREOLE_ENVOY` (the binary),
/// `CREOLE_WASM` (the filter), `CREOLE_WASM_COMPILED` (the same as machine code),
/// `CREOLE_WASM_HOOKS` (the filter, able to trap on demand), `CREOLE_DEMO` (the demo model's
/// binary), `CREOLE_GATEWAY` (the binary), `CREOLE_COMPONENT` (the component to embed),
/// `CREOLE_COMPONENT_COMPILED` (as machine code), `CREOLE_COMPONENT_COUNTING` (as machine code that
/// counts instructions, of what is shipped alone), `CREOLE_WASI_HTTP` (the component for servers),
/// `CREOLE_WASMTIME` (the binary), `CREOLE_PYTHON` (an interpreter that has the package wasmtime),
/// `CREOLE_WORKERD` (the binary), `CREOLE_WORKER_DIR` (the Worker's modules) and
/// `CREOLE_WORKER_HOOKS_DIR` (the same, able to panic on demand). Another variable gives cargo the
/// runner for tests that are compiled to WebAssembly.
fn variables(built: &Built, artefacts: &Artefacts, manner: Manner) -> Result<Variables> {
    let Artefacts { filter, component, .. } = artefacts;
    let packager = built.program("xtask-worker")?;
    let hooks = worker::package_with_hooks(&artefacts.worker_with_hooks, &packager)?;
    let worker = worker::package(&artefacts.worker, &packager, worker::folder(manner))?;
    let mut runner = artefacts.wasmtime.clone().into_os_string();
    runner.push(format!(" run --dir=/ --env {}={}", super::SEED.0, super::SEED.1));
    let path = |path: &Path| path.as_os_str().to_owned();
    let mut variables = vec![
        ("CREOLE_ENVOY", path(&artefacts.envoy)),
        ("CREOLE_WASM", path(filter)),
        ("CREOLE_WASM_COMPILED", compiled::compile(filter, "creole.cwasm", &[])?.into()),
        ("CREOLE_WASM_HOOKS", path(&artefacts.filter_with_hooks)),
        ("CREOLE_DEMO", built.program("creole-demo")?.into()),
        ("CREOLE_GATEWAY", built.program("creole")?.into()),
        ("CREOLE_COMPONENT", path(component)),
        ("CREOLE_COMPONENT_COMPILED", compiled::compile(component, "component.cwasm", &[])?.into()),
        ("CREOLE_WASI_HTTP", path(&artefacts.wasi_http)),
        ("CREOLE_WASMTIME", path(&artefacts.wasmtime)),
        ("CREOLE_WORKERD", path(&artefacts.workerd)),
        ("CREOLE_WORKER_DIR", worker.into()),
        ("CREOLE_WORKER_HOOKS_DIR", hooks.into()),
        ("CREOLE_PYTHON", path(&artefacts.python)),
        ("CARGO_TARGET_WASM32_WASIP1_RUNNER", runner),
    ];
    if manner == Manner::Shipped {
        let counting = compiled::compile(component, "counting.cwasm", compiled::COUNTING)?;
        variables.push(("CREOLE_COMPONENT_COUNTING", counting.into()));
    }
    Ok(variables)
}

impl Built {
    /// Returns commands that run all tests of a package, by name.
    pub(super) fn tests(&self, package: &str) -> Vec<(&str, Command)> {
        let tests = self.tests.iter().filter(|test| test.package == package);
        tests.map(|test| (test.name.as_str(), test.command())).collect()
    }

    /// Returns a command that runs one test file of a package.
    pub(super) fn test(&self, package: &str, name: &str) -> Result<Command> {
        let mut tests = self.tests(package).into_iter();
        let test = tests.find(|(test, _)| *test == name);
        Ok(test.with_context(|| format!("no tests {name} were built"))?.1)
    }

    /// Returns the path of a package's own program.
    pub(super) fn program(&self, name: &str) -> Result<PathBuf> {
        let found = self.programs.iter().find(|(program, _)| program == name);
        Ok(found.with_context(|| format!("no program {name} was built"))?.1.clone())
    }
}

impl Test {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        workspace::without_cargo(&mut command);
        command.current_dir(&self.folder);
        command
    }
}
