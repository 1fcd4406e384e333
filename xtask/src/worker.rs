//! The Worker: a folder of modules in `dist/worker`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::setup;
use crate::workspace::{self, step};

/// The target that it is built for.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// What was made.
pub(crate) struct Built {
    /// The folder with the modules.
    pub(crate) folder: PathBuf,
    /// The WebAssembly as the compiler left it, with the names of functions.
    pub(crate) module: PathBuf,
}

/// Builds what is deployed.
pub(crate) fn shipped() -> Result<Built> {
    build(Path::new("dist/worker"), &[])
}

/// The folder with what is deployed: `CREOLE_WORKER_DIR` if that is set, else a new one.
pub(crate) fn ready() -> Result<PathBuf> {
    match std::env::var_os("CREOLE_WORKER_DIR") {
        Some(chosen) => Ok(chosen.into()),
        None => shipped().map(|built| built.folder),
    }
}

/// Builds the same with the hooks that its tests need. Never in `dist`.
pub(crate) fn with_hooks() -> Result<Built> {
    build(Path::new("target/worker-hooks"), &["--features", "test-hooks"])
}

fn build(folder: &Path, features: &[&str]) -> Result<Built> {
    setup::target(TARGET)?;
    step(&format!("building {}", folder.display()), || {
        let arguments = [&["--profile", "wasm", "--target", TARGET], features].concat();
        let module = workspace::build("creole-cloudflare", &arguments, "wasm")?;
        // Without optimizing: it runs for a second, and compiles for minutes otherwise.
        let packager = workspace::build("xtask-worker", &[], "")?;
        let folder = workspace::root().join(folder);
        fs::create_dir_all(folder.parent().unwrap_or(&folder))?;
        let status = Command::new(packager).arg(&module).arg(&folder).status()?;
        if !status.success() {
            bail!("making the modules of {} failed", module.display());
        }
        Ok(Built { folder, module })
    })
}

/// The modules of a folder as they are deployed, by name.
pub(crate) fn modules(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(modules(&path)?);
        } else if path.extension().is_none_or(|extension| extension != "capnp") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push((name, fs::read(&path)?));
        }
    }
    found.sort();
    Ok(found)
}
