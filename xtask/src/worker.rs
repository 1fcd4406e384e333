//! Build of the Worker: a folder of modules in `dist/worker`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use walkdir::WalkDir;

use crate::setup;
use crate::workspace::{self, Manner, step};

/// Name of the Worker's compilation target.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

const PACKAGE: &str = "creole-cloudflare";

/// Returns the folder of the Worker's modules, which exists after a build. In `dist` they are those
/// to deploy.
pub(crate) fn folder(manner: Manner) -> PathBuf {
    manner.folder().join("worker")
}

/// Builds the modules to deploy, and returns their folder.
pub(crate) fn shipped() -> Result<PathBuf> {
    let manner = Manner::Shipped;
    package(&module(manner)?, &packager()?, folder(manner))
}

fn packager() -> Result<PathBuf> {
    // The packager is not optimized: it runs for a second, and would compile for minutes.
    step("building what packs it", || workspace::build("xtask-worker", &[], ""))
}

/// Returns the folder of the Worker's modules: `CREOLE_WORKER_DIR` if set, else newly built.
pub(crate) fn ready() -> Result<PathBuf> {
    workspace::ready("CREOLE_WORKER_DIR", shipped)
}

/// Returns the folder of the Worker with test hooks: `CREOLE_WORKER_HOOKS_DIR` if set, else newly
/// built.
pub(crate) fn ready_with_hooks() -> Result<PathBuf> {
    workspace::ready("CREOLE_WORKER_HOOKS_DIR", || {
        package_with_hooks(&module_with_hooks()?, &packager()?)
    })
}

/// Packages the Worker with test hooks. This version is never in `dist`.
pub(crate) fn package_with_hooks(module: &Path, packager: &Path) -> Result<PathBuf> {
    package(module, packager, Manner::Quick.folder().join("worker-with-hooks"))
}

/// Builds the Worker's WebAssembly module with test hooks.
pub(crate) fn module_with_hooks() -> Result<PathBuf> {
    setup::target(TARGET)?;
    step("building the Worker with hooks", || {
        let built = workspace::quick_module(PACKAGE, TARGET, workspace::HOOKS)?;
        workspace::copied(&built, Manner::Quick.folder().join("worker-with-hooks.wasm"))
    })
}

/// Builds the Worker's WebAssembly module.
pub(crate) fn module(manner: Manner) -> Result<PathBuf> {
    setup::target(TARGET)?;
    step("building the Worker", || match manner {
        Manner::Shipped => workspace::module(PACKAGE, "worker", TARGET),
        Manner::Quick => {
            let built = workspace::quick_module(PACKAGE, TARGET, &[])?;
            workspace::copied(&built, manner.folder().join("worker.wasm"))
        }
    })
}

/// Makes a folder of deployable modules from a WebAssembly module.
pub(crate) fn package(module: &Path, packager: &Path, folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(folder.parent().unwrap_or(&folder))?;
    setup::run(Command::new(packager).arg(module).arg(&folder))?;
    Ok(folder)
}

/// Returns the modules in a folder as they are deployed: name and contents.
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
