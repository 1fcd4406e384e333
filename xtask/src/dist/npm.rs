//! Packages for npm: `creole`, which starts the program, and a package with the program for each
//! platform.
//!
//! npm installs the one optional dependency that fits the machine, so nothing is downloaded at
//! installation and no script runs. The names have no scope: a scope needs an organisation of that
//! name at the registry.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use super::archive::{self, File};
use super::binaries::{TARGETS, Target};
use super::package::{Binary, Facts};

const LAUNCHER: &str = include_str!("../../../gateway/npm/creole.js");

/// Name of the folder inside every npm package.
const FOLDER: &str = "package";

/// Writes the npm packages with these programs into a folder. The package that starts the program
/// comes last.
pub(crate) fn packages(binaries: &[Binary], facts: &Facts, folder: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    let mut written = Vec::new();
    for binary in binaries {
        let target = binary.target;
        let program = File::program(format!("{FOLDER}/bin/{}", target.file), binary.read()?);
        let readme = format!("The program of the package `creole` for {}.\n", target.triple);
        let notices = File::plain(format!("{FOLDER}/THIRD-PARTY.txt"), facts.notices.as_str());
        let manifest = of_target(target, facts);
        written.push(package(&manifest, &readme, [notices, program], facts, folder)?);
    }
    let launcher = File::program(format!("{FOLDER}/creole.js"), LAUNCHER);
    written.push(package(&of_launcher(facts), &facts.readme, [launcher], facts, folder)?);
    Ok(written)
}

/// Returns Node's names for the system and processor of a target: `process.platform` and
/// `process.arch`.
fn words(target: &Target) -> [&'static str; 2] {
    let has = |word: &str| target.triple.contains(word);
    let cpu = if has("aarch64") { "arm64" } else { "x64" };
    match () {
        () if has("windows") => ["win32", cpu],
        () if has("darwin") => ["darwin", cpu],
        () => ["linux", cpu],
    }
}

fn name(target: &Target) -> String {
    let [system, cpu] = words(target);
    format!("creole-{system}-{cpu}")
}

/// Returns the manifest members that both kinds of packages have.
fn manifest(name: &str, facts: &Facts) -> Map<String, Value> {
    let mut manifest = Map::new();
    let mut set = |key: &str, value: Value| manifest.insert(key.to_owned(), value);
    set("name", name.into());
    set("version", facts.version.clone().into());
    set("description", facts.description.clone().into());
    set("keywords", json!(facts.keywords));
    set("license", facts.license.clone().into());
    if let Some(repository) = &facts.repository {
        set("repository", json!({"type": "git", "url": format!("git+{repository}.git")}));
    }
    manifest
}

fn of_launcher(facts: &Facts) -> Map<String, Value> {
    // All platforms are listed, whatever was built: npm leaves out packages that do not fit the
    // machine.
    let programs: Map<String, Value> =
        TARGETS.iter().map(|it| (name(it), facts.version.clone().into())).collect();
    let mut manifest = manifest("creole", facts);
    manifest.insert("bin".to_owned(), json!({"creole": "creole.js"}));
    manifest.insert("engines".to_owned(), json!({"node": ">=18"}));
    manifest.insert("optionalDependencies".to_owned(), programs.into());
    manifest
}

fn of_target(target: &Target, facts: &Facts) -> Map<String, Value> {
    let [system, cpu] = words(target);
    let mut manifest = manifest(&name(target), facts);
    // Windows on arm64 runs programs for x64.
    let cpus = if system == "win32" { json!(["x64", "arm64"]) } else { json!([cpu]) };
    manifest.insert("os".to_owned(), json!([system]));
    manifest.insert("cpu".to_owned(), cpus);
    // Package managers that leave packages packed cannot start a program inside of a package.
    manifest.insert("preferUnplugged".to_owned(), true.into());
    manifest
}

/// Writes one package under the file name that `npm pack` would use.
fn package(
    manifest: &Map<String, Value>,
    readme: &str,
    files: impl IntoIterator<Item = File>,
    facts: &Facts,
    folder: &Path,
) -> Result<PathBuf> {
    let name = manifest.get("name").and_then(Value::as_str).context("a package has a name")?;
    let path = folder.join(format!("{name}-{}.tgz", facts.version));
    let manifest = format!("{:#}\n", Value::from(manifest.clone()));
    let usual = [
        File::plain(format!("{FOLDER}/package.json"), manifest),
        File::plain(format!("{FOLDER}/LICENSE"), facts.license_text.as_str()),
        File::plain(format!("{FOLDER}/README.md"), readme),
    ];
    let files: Vec<File> = usual.into_iter().chain(files).collect();
    let packed = archive::gzip(&archive::tar(&files)?)?;
    fs::write(&path, packed).with_context(|| path.display().to_string())?;
    Ok(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests;
