//! What the stages run: the tests of all packages, programs, artefacts.
//!
//! The tests are built by one command. Cargo compiles a crate once for each set of features that is
//! asked of it, and asks for one set only in what it builds together: package by package, half of
//! the dependencies would be compiled two and three times. The artefacts are built at the same
//! time, because each is the work of a single core.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, Result, bail};

use crate::{build, compiled, setup, worker, workspace};

/// A variable for the tests, and the file that it names.
pub(super) type Variables = Vec<(&'static str, OsString)>;

/// What was built.
#[derive(Default)]
pub(super) struct Built {
    tests: Vec<Test>,
    /// The packages' own programs, by their names.
    programs: Vec<(String, PathBuf)>,
    /// What tests of real hosts use: see [`variables`].
    pub(super) variables: Variables,
}

/// The tests of one library, program or file below `tests/`.
struct Test {
    package: String,
    /// Of the library, the program or the file.
    name: String,
    program: PathBuf,
    /// Where cargo would run them.
    folder: PathBuf,
}

/// The artefacts, and the programs that run them.
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

/// Builds and installs everything.
pub(super) fn build() -> Result<Built> {
    // Before anything else: what is built side by side must not add them at the same time.
    setup::targets(&build::targets())?;
    let (built, artefacts) = thread::scope(|scope| {
        let artefacts = scope.spawn(artefacts);
        let built = tests();
        (built, artefacts.join())
    });
    let mut built = built?;
    let Ok(artefacts) = artefacts else { bail!("building the artefacts ended in a panic") };
    built.variables = variables(&built, &artefacts?)?;
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

fn artefacts() -> Result<Artefacts> {
    // Stages that run side by side must find everything there.
    setup::python_with_yaml()?;
    setup::python_with_prometheus()?;
    Ok(Artefacts {
        envoy: setup::envoy()?,
        workerd: setup::workerd()?,
        wasmtime: setup::wasmtime()?,
        python: setup::python_with_wasmtime()?,
        filter_with_hooks: build::filter_with_hooks()?,
        filter: build::one(&build::FILTER)?,
        component: build::one(&build::COMPONENT)?,
        wasi_http: build::one(&build::WASI_HTTP)?,
        worker_with_hooks: worker::module_with_hooks()?,
        worker: worker::module()?,
    })
}

/// What tests of real hosts use: `CREOLE_ENVOY` (the binary), `CREOLE_WASM` (the filter),
/// `CREOLE_WASM_COMPILED` (the same as machine code), `CREOLE_WASM_HOOKS` (the filter, able to trap
/// on demand), `CREOLE_DEMO` (the demo model's binary), `CREOLE_GATEWAY` (the binary),
/// `CREOLE_COMPONENT` (the component to embed), `CREOLE_COMPONENT_COMPILED` (as machine code),
/// `CREOLE_COMPONENT_COUNTING` (as machine code that counts), `CREOLE_WASI_HTTP` (the component for
/// servers), `CREOLE_WASMTIME` (the binary), `CREOLE_PYTHON` (an interpreter that has the package
/// wasmtime), `CREOLE_WORKERD` (the binary), `CREOLE_WORKER_DIR` (the Worker's modules) and
/// `CREOLE_WORKER_HOOKS_DIR` (the same, able to panic on demand). Cargo itself learns what runs
/// tests that are compiled to WebAssembly.
fn variables(built: &Built, artefacts: &Artefacts) -> Result<Variables> {
    let Artefacts { filter, component, .. } = artefacts;
    let packager = built.program("xtask-worker")?;
    let hooks = worker::package_with_hooks(&artefacts.worker_with_hooks, &packager)?;
    let worker = worker::package(&artefacts.worker, &packager, worker::folder())?;
    let mut runner = artefacts.wasmtime.clone().into_os_string();
    runner.push(format!(" run --dir=/ --env {}={}", super::SEED.0, super::SEED.1));
    let path = |path: &Path| path.as_os_str().to_owned();
    Ok(vec![
        ("CREOLE_ENVOY", path(&artefacts.envoy)),
        ("CREOLE_WASM", path(filter)),
        ("CREOLE_WASM_COMPILED", compiled::compile(filter, "creole.cwasm", &[])?.into()),
        ("CREOLE_WASM_HOOKS", path(&artefacts.filter_with_hooks)),
        ("CREOLE_DEMO", built.program("creole-demo")?.into()),
        ("CREOLE_GATEWAY", built.program("creole")?.into()),
        ("CREOLE_COMPONENT", path(component)),
        ("CREOLE_COMPONENT_COMPILED", compiled::compile(component, "component.cwasm", &[])?.into()),
        (
            "CREOLE_COMPONENT_COUNTING",
            compiled::compile(component, "counting.cwasm", compiled::COUNTING)?.into(),
        ),
        ("CREOLE_WASI_HTTP", path(&artefacts.wasi_http)),
        ("CREOLE_WASMTIME", path(&artefacts.wasmtime)),
        ("CREOLE_WORKERD", path(&artefacts.workerd)),
        ("CREOLE_WORKER_DIR", worker.into()),
        ("CREOLE_WORKER_HOOKS_DIR", hooks.into()),
        ("CREOLE_PYTHON", path(&artefacts.python)),
        ("CARGO_TARGET_WASM32_WASIP1_RUNNER", runner),
    ])
}

impl Built {
    /// Commands that run all tests of a package, by their names.
    pub(super) fn tests(&self, package: &str) -> Vec<(&str, Command)> {
        let tests = self.tests.iter().filter(|test| test.package == package);
        tests.map(|test| (test.name.as_str(), test.command())).collect()
    }

    /// A command that runs one file of tests of the core.
    pub(super) fn test(&self, name: &str) -> Result<Command> {
        let test = self.tests.iter().find(|test| test.package == "creole" && test.name == name);
        test.map(Test::command).with_context(|| format!("no tests {name} were built"))
    }

    /// A package's own program.
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
