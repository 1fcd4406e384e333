//! Where things are, and how cargo is called.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// What is installed for this project alone: Envoy, logs.
pub(crate) fn own() -> PathBuf {
    root().join(".creole")
}

/// `cargo`, the one that started this program, in the workspace's folder.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).stdin(Stdio::null()).args(arguments);
    without_cargo(&mut command);
    command
}

/// What cargo tells the program that it runs is not meant for those that this one starts.
pub(crate) fn without_cargo(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
}

/// Builds, and gives the files of the package that the compiler names, by their ending.
pub(crate) fn build(package: &str, arguments: &[&str], ending: &str) -> Result<PathBuf> {
    compile("build", package, arguments, ending)
}

/// The stack of a module, at the start of its memory. 64 kB less than usual: what comes after it, the
/// constants, then has addresses below 1 MiB, which are a byte shorter wherever one is named.
const STACK: &str = "link-arg=-zstack-size=983040";

/// As [`module`], with what tests need of it and is never in `dist`. In a folder of its own: in the usual
/// one each would take the other's place, and be compiled again.
pub(crate) fn module_with_hooks(package: &str, arguments: &[&str]) -> Result<PathBuf> {
    let folder = root().join("target/with-hooks").display().to_string();
    let hooks = ["--features", "test-hooks", "--target-dir", &folder];
    module(package, &[arguments, &hooks].concat())
}

/// Builds a library as a WebAssembly module and nothing else. Cargo optimizes across crates only
/// what is no Rust library at the same time, and says nothing about it.
pub(crate) fn module(package: &str, arguments: &[&str]) -> Result<PathBuf> {
    let arguments =
        [&["--lib", "--crate-type", "cdylib"], arguments, &["--", "-C", STACK]].concat();
    compile("rustc", package, &arguments, "wasm")
}

fn compile(command: &str, package: &str, arguments: &[&str], ending: &str) -> Result<PathBuf> {
    // A binary can have another name than its package.
    let wanted = arguments.iter().skip_while(|argument| **argument != "--bin").nth(1);
    let wanted = wanted.copied().unwrap_or(package);
    let mut command = cargo([command, "-p", package, MESSAGES]);
    let mut found = None;
    for message in messages(command.args(arguments)).with_context(|| package.to_owned())? {
        let this = message.pointer("/target/name").and_then(Value::as_str);
        if this.is_none_or(|name| name.replace('_', "-") != wanted) {
            continue;
        }
        let files = message.get("filenames").and_then(Value::as_array).into_iter().flatten();
        let executable = message.get("executable").into_iter();
        let files = files.chain(executable).filter_map(Value::as_str);
        found = files
            .map(PathBuf::from)
            .rfind(|file| file.extension().unwrap_or_default() == ending)
            .or(found);
    }
    found.with_context(|| format!("cargo named no file for {package}"))
}

/// With this, cargo says what it makes: see [`messages`].
pub(crate) const MESSAGES: &str = "--message-format=json-render-diagnostics";

/// What cargo says of each file that it makes, asked by [`MESSAGES`].
pub(crate) fn messages(command: &mut Command) -> Result<Vec<Value>> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut messages = Vec::new();
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        messages.extend(serde_json::from_str(&line?));
    }
    if !child.wait()?.success() {
        bail!("it does not build");
    }
    Ok(messages)
}

/// Makes a folder with nothing in it, whatever was there.
pub(crate) fn emptied(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// What `cargo metadata` says.
pub(crate) fn metadata(arguments: &[&str]) -> Result<Value> {
    let mut cargo = cargo(["metadata", "--format-version=1"]);
    let output = cargo.args(arguments).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("cargo metadata: {}", output.status);
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata")
}

/// The workspace's packages: their names and the files that define them.
pub(crate) fn packages() -> Result<Vec<(String, PathBuf)>> {
    let read = metadata(&["--no-deps"])?;
    let packages = read.get("packages").and_then(Value::as_array).into_iter().flatten();
    let text = |package: &Value, key| Some(package.get(key)?.as_str()?.to_owned());
    let named = |package| Some((text(package, "name")?, text(package, "manifest_path")?.into()));
    Ok(packages.filter_map(named).collect())
}

/// Says what is being done, and how long it took.
pub(crate) fn step<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    eprintln!("· {what}");
    let start = Instant::now();
    let done = work().with_context(|| what.to_owned())?;
    let seconds = start.elapsed().as_secs_f64();
    if seconds >= 1.0 {
        eprintln!("  {seconds:.1} s");
    }
    Ok(done)
}
