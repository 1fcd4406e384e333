//! What the compiler leaves is made smaller by Binaryen's `wasm-opt`.
//!
//! There is no second way: without `wasm-opt` there is no artefact, because one of another size and
//! speed would be taken for the one that was tested.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::setup;
use crate::workspace;

/// For size; the names of functions go. `--low-memory-unused`: the first kilobyte of memory is the far
/// end of the stack, and who comes there is about to trap anyway. The features are those that rustc
/// itself assumes of a host, and the one that `.cargo/config.toml` adds, so that no host is asked for more.
const ARGUMENTS: [&str; 20] = [
    "--low-memory-unused",
    "--merge-similar-functions",
    "-Oz",
    "--flatten",
    "--rereloop",
    "-Oz",
    "-Oz",
    "--const-hoisting",
    "--reorder-functions",
    "--strip-debug",
    "--strip-producers",
    "--enable-bulk-memory",
    "--enable-bulk-memory-opt",
    "--enable-call-indirect-overlong",
    "--enable-multivalue",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-sign-ext",
    "--enable-simd",
];

/// Makes a module smaller. It takes half a minute, so each result is kept in `target/shrunk`, by
/// what went in.
pub(crate) fn module(module: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(module).with_context(|| module.display().to_string())?;
    let mut hasher = DefaultHasher::new();
    (setup::BINARYEN_VERSION, ARGUMENTS, &bytes).hash(&mut hasher);
    let folder = workspace::root().join("target/shrunk");
    fs::create_dir_all(&folder)?;
    let kept = folder.join(format!("{:016x}.wasm", hasher.finish()));
    if !kept.is_file() {
        // Under another name first: what is broken off must not be taken for a result.
        let half = kept.with_extension(format!("{}.half", std::process::id()));
        let status = wasm_opt()?.args(ARGUMENTS).arg(module).arg("--output").arg(&half).status()?;
        if !status.success() {
            bail!("wasm-opt failed on {}: {status}", module.display());
        }
        fs::rename(&half, &kept)?;
    }
    fs::read(&kept).with_context(|| kept.display().to_string())
}

/// `CREOLE_WASM_OPT` if that is set, else the one of the npm package, which is JavaScript.
fn wasm_opt() -> Result<Command> {
    if let Some(chosen) = std::env::var_os("CREOLE_WASM_OPT") {
        return Ok(Command::new(chosen));
    }
    let script = setup::wasm_opt()?;
    setup::need(&setup::NODE)?;
    let mut command = Command::new("node");
    command.arg(script);
    Ok(command)
}
