//! Paths in the workspace, and calls of cargo.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use cargo_metadata::{Artifact, Message, Metadata, MetadataCommand, Package};

/// Name of the environment variable with the workspace's path, for a workspace that is a copy of
/// the one in which this program was built.
pub(crate) const ROOT: &str = "CREOLE_ROOT";

/// Returns the root folder of the workspace.
pub(crate) fn root() -> PathBuf {
    std::env::var_os(ROOT).map_or_else(home, PathBuf::from)
}

fn home() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// Returns the folder `.creole`, with programs installed for this project (such as Envoy) and logs.
/// A copied workspace uses the folder of the original.
pub(crate) fn own() -> PathBuf {
    home().join(".creole")
}

/// Returns the path in the environment variable `variable`, else the path that `make` builds.
/// Parallel tests use the variables, because they must not rebuild each other's files.
pub(crate) fn ready(variable: &str, make: impl FnOnce() -> Result<PathBuf>) -> Result<PathBuf> {
    std::env::var_os(variable).map_or_else(make, |chosen| Ok(chosen.into()))
}

/// Returns a command for the `cargo` that started this program, to run in the workspace's folder.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).stdin(Stdio::null()).args(arguments);
    without_cargo(&mut command);
    command
}

/// Returns the folder in which cargo keeps its downloads.
fn cargo_home() -> Result<PathBuf> {
    match std::env::var_os("CARGO_HOME") {
        Some(folder) => Ok(folder.into()),
        None => Ok(std::env::home_dir().context("this user has no home folder")?.join(".cargo")),
    }
}

/// Folder in which cargo has unpacked the crates of one registry.
pub(crate) struct Registry {
    pub(crate) path: PathBuf,
    /// True if the registry is a folder on this machine.
    pub(crate) is_local: bool,
}

/// Returns the registries whose crates cargo has unpacked, in a stable order.
pub(crate) fn registries() -> Result<Vec<Registry>> {
    let mut found = Vec::new();
    for folder in fs::read_dir(cargo_home()?.join("registry/src")).into_iter().flatten() {
        let folder = folder?;
        // A registry's folder is named by its host and a hash; a folder of this machine has no
        // host.
        let is_local = folder.file_name().to_string_lossy().starts_with('-');
        found.push(Registry { path: folder.path(), is_local });
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// Removes from a child's environment the variables that cargo sets for this program only.
pub(crate) fn without_cargo(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
}

/// Builds a package. Returns the path of the output file with this ending.
pub(crate) fn build(package: &str, arguments: &[&str], ending: &str) -> Result<PathBuf> {
    compile("build", package, arguments, ending)
}

/// Manner of building an artefact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Compiled for speed, into `dist/`: what is released, and what is measured.
    Shipped,
    /// Compiled in a fraction of the time, into `target/quick/`: what tests run that measure
    /// nothing. See docs/dev/decisions/0033-quick-artefacts-for-tests.md.
    Quick,
}

impl Manner {
    /// Returns the folder of the finished artefacts.
    pub(crate) fn folder(self) -> PathBuf {
        root().join(match self {
            Self::Shipped => "dist",
            Self::Quick => "target/quick",
        })
    }
}

/// Arguments of cargo for a module with hooks for tests, which is never in `dist`.
pub(crate) const HOOKS: &[&str] = &["--features", "test-hooks"];

/// Builds a library as a WebAssembly module, quickly. All such builds share a target folder, so
/// that the core is compiled once for each target.
pub(crate) fn quick_module(package: &str, target: &str, arguments: &[&str]) -> Result<PathBuf> {
    let folder = root().join("target/quick/cargo").display().to_string();
    let usual = [&only_module("quick", target)[..], &["--target-dir", &folder]].concat();
    compile("rustc", package, &[&usual, arguments].concat(), "wasm")
}

/// Builds a library as a WebAssembly module, without paths of this machine inside.
pub(crate) fn module(package: &str, profile: &str, target: &str) -> Result<PathBuf> {
    let remapped = remapped(&root(), target)?;
    let remapped = remapped.each_ref().map(String::as_str);
    compile("rustc", package, &[&only_module(profile, target)[..], &remapped].concat(), "wasm")
}

/// Returns arguments for a module alone. Cargo optimizes across crates only if the library is not
/// also built as a Rust library.
fn only_module<'a>(profile: &'a str, target: &'a str) -> [&'a str; 7] {
    ["--lib", "--crate-type", "cdylib", "--profile", profile, "--target", target]
}

/// Copies a file that cargo made, because its next build can replace the file. Returns the path of
/// the copy.
pub(crate) fn copied(built: &Path, path: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(path.parent().unwrap_or(&path))?;
    fs::copy(built, &path).with_context(|| format!("copying {}", built.display()))?;
    Ok(path)
}

fn compile(command: &str, package: &str, arguments: &[&str], ending: &str) -> Result<PathBuf> {
    // A binary can have another name than its package.
    let wanted = arguments.iter().skip_while(|argument| **argument != "--bin").nth(1);
    let wanted = wanted.copied().unwrap_or(package);
    let made = artifacts(&[&[command, "--package", package], arguments].concat());
    let made = made.with_context(|| package.to_owned())?.into_iter();
    made.filter(|made| made.target.name.replace('_', "-") == wanted)
        .flat_map(|made| made.filenames.into_iter().chain(made.executable))
        .rfind(|file| file.extension().unwrap_or_default() == ending)
        .map(Into::into)
        .with_context(|| format!("cargo named no file for {package}"))
}

/// Runs cargo, and returns all artefacts that it reports.
pub(crate) fn artifacts(arguments: &[&str]) -> Result<Vec<Artifact>> {
    let mut cargo = cargo(arguments);
    let cargo = cargo.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit());
    let output = cargo.output()?;
    ensure!(output.status.success(), "it does not build");
    let mut made = Vec::new();
    for message in Message::parse_stream(output.stdout.as_slice()) {
        if let Message::CompilerArtifact(artifact) = message? {
            made.push(artifact);
        }
    }
    Ok(made)
}

/// Creates an empty folder, and removes any old contents.
pub(crate) fn emptied(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// Returns the metadata of all packages with their dependencies, in the tested versions.
pub(crate) fn metadata() -> Result<Metadata> {
    let mut command = MetadataCommand::new();
    let locked = command.current_dir(root()).other_options(["--locked".to_owned()]);
    locked.exec().context("cargo metadata")
}

/// Returns the workspace's packages.
pub(crate) fn packages() -> Result<Vec<Package>> {
    let mut command = MetadataCommand::new();
    Ok(command.current_dir(root()).no_deps().exec().context("cargo metadata")?.packages)
}

/// Runs `work`, and prints a message before it and the duration after it.
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

/// Returns cargo arguments that keep this machine's paths out of the build, since panic messages
/// name source files.
pub(crate) fn remapped(root: &Path, triple: &str) -> Result<[String; 2]> {
    rustflags(root, triple, None)
}

/// Returns cargo arguments that keep this machine's paths out of the build, and one more compiler
/// flag.
pub(crate) fn rustflags(root: &Path, triple: &str, more: Option<&str>) -> Result<[String; 2]> {
    let mut flags = vec![format!("--remap-path-prefix={}=/creole", root.display())];
    for registry in registries()? {
        // Local registries are left out: packing the crates makes such folders, and other flags
        // would compile everything anew.
        if !registry.is_local {
            flags.push(format!("--remap-path-prefix={}=/crates", registry.path.display()));
        }
    }
    flags.extend(more.map(str::to_owned));
    let flags = serde_json::to_string(&flags)?;
    // The flags are a setting, because RUSTFLAGS would replace the flags in .cargo/config.toml.
    Ok(["--config".to_owned(), format!("target.{triple}.rustflags = {flags}")])
}
