//! WebAssembly compiled to machine code by the `wasmtime` program. Tests load the machine code,
//! because a library that can compile takes longer to build than everything else in this workspace.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::{setup, workspace};

/// Wasmtime features that are turned off, because the library in the tests is built without them.
const WITHOUT: &str =
    "gc=n,gc-support=n,function-references=n,concurrency-support=n,threads=n,exceptions=n";

/// Options of `wasmtime` for a module that counts its executed instructions.
pub(crate) const COUNTING: &[&str] = &["-W", "fuel=1"];

/// Compiles a module or a component to `target/compiled/NAME`.
pub(crate) fn compile(wasm: &Path, name: &str, options: &[&str]) -> Result<PathBuf> {
    let path = workspace::root().join("target/compiled").join(name);
    std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
    let mut command = Command::new(setup::wasmtime()?);
    command.args(["compile", "-W", WITHOUT]).args(options);
    setup::run(command.args([wasm.as_os_str(), OsStr::new("-o")]).arg(&path))?;
    Ok(path)
}
