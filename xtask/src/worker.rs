//! The Worker: a folder of modules in `dist/worker`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use walkdir::WalkDir;

use crate::setup;
use crate::workspace::{self, step};

/// The target that it is built for.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

const PACKAGE: &str = "creole-cloudflare";

/// The folder of what is deployed, once it is built.
pub(crate) fn folder() -> PathBuf {
    workspace::root().join("dist/worker")
}

/// Builds what is deployed, and gives its folder.
pub(crate) fn shipped() -> Result<PathBuf> {
    package(&module()?, &packager()?, folder())
}

fn packager() -> Result<PathBuf> {
    // Without optimizing: it runs for a second, and compiles for minutes otherwise.
    step("building what packs it", || workspace::build("xtask-worker", &[], ""))
}

/// The folder with what is deployed: `CREOLE_WORKER_DIR` if that is set, else a new one.
pub(crate) fn ready() -> Result<PathBuf> {
    workspace::ready("CREOLE_WORKER_DIR", shipped)
}

/// Returns the folder of the Worker with hooks: `CREOLE_WORKER_HOOKS_DIR` if that is set, else a
/// new one.
pub(crate) fn ready_with_hooks() -> Result<PathBuf> {
    workspace::ready("CREOLE_WORKER_HOOKS_DIR", || {
        package_with_hooks(&module_with_hooks()?, &packager()?)
    })
}

/// Packages the Worker with the hooks that its tests need. Never in `dist`.
pub(crate) fn package_with_hooks(module: &Path, packager: &Path) -> Result<PathBuf> {
    package(module, packager, workspace::root().join("target/worker-hooks"))
}

/// The WebAssembly with the hooks.
pub(crate) fn module_with_hooks() -> Result<PathBuf> {
    setup::target(TARGET)?;
    step("building the Worker for tests", || {
        workspace::module_with_hooks(PACKAGE, "worker", TARGET)
    })
}

/// The WebAssembly.
pub(crate) fn module() -> Result<PathBuf> {
    setup::target(TARGET)?;
    let remapped = workspace::remapped(&workspace::root(), TARGET)?;
    let remapped = remapped.each_ref().map(String::as_str);
    step("building the Worker", || workspace::module(PACKAGE, "worker", TARGET, &remapped))
}

/// Makes a folder of modules from WebAssembly.
pub(crate) fn package(module: &Path, packager: &Path, folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(folder.parent().unwrap_or(&folder))?;
    setup::run(Command::new(packager).arg(module).arg(&folder))?;
    Ok(folder)
}

/// The modules of a folder as they are deployed, by name.
pub(crate) fn modules(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        let path = entry?.into_path();
        if path.is_file() && path.extension().is_none_or(|extension| extension != "capnp") {
            let name = path.strip_prefix(folder)?.display().to_string();
            found.push((name, fs::read(&path)?));
        }
    }
    Ok(found)
}
