//! `cargo xtask dist`: builds every artefact of a release, with licences, checksums and a bill of
//! materials.
//!
//! ```text
//! dist/creole.wasm, creole.component.wasm, …   as `cargo xtask build` leaves them
//! dist/envoy.yaml                              the template for Envoy
//! dist/creole-VERSION-worker.tar.gz             the Worker, ready for wrangler and workerd
//! dist/creole-VERSION-TRIPLE.tar.gz, .zip       the binary for each system, with its licence
//! dist/npm/, dist/pypi/                         the same binaries as packages for npm and PyPI
//! dist/image/                                   the gateway as an OCI image layout, for two processors
//! dist/oci/                                     the filter as an OCI image layout, made without a daemon
//! dist/crates/                                  the crates as a registry gets them
//! dist/sbom.cdx.json                            what is in the artefacts: CycloneDX 1.6
//! dist/SHA256SUMS                               of all files, for `sha256sum --check`
//! ```

pub(crate) mod archive;
pub(crate) mod binaries;
mod crates;
mod image;
mod notices;
pub(crate) mod npm;
pub(crate) mod package;
mod reproduce;
mod sbom;
pub(crate) mod wheels;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use sha2::{Digest as _, Sha256};
use walkdir::{DirEntry, WalkDir};

use self::archive::File;
use self::package::{Binary, Facts};
use crate::build;
use crate::setup;
use crate::worker;
use crate::workspace::{self, Manner, step};

/// Name of the Worker's archive without its ending, which is also the name of its only folder.
const WORKER_NAME: &str = concat!("creole-", env!("CARGO_PKG_VERSION"), "-worker");

/// Options of `cargo xtask dist`.
#[derive(Args)]
pub(crate) struct DistOptions {
    /// Only these, beside what is there; all of them if none is named.
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<DistPart>,
    /// Where on GitHub the release is, for packages. Else GITHUB_REPOSITORY says it.
    #[arg(long, value_name = "OWNER/NAME")]
    repository: Option<String>,
    /// Instead of making it, make what is there a second time, in another folder, and compare the
    /// bytes of every file.
    #[arg(long, conflicts_with = "parts")]
    twice: bool,
    /// With `--twice`, build this binary again, and take those that are not named as they are; may
    /// be repeated. Without it, all are built again.
    #[arg(
        long,
        requires = "twice",
        value_name = "TRIPLE",
        value_parser = binaries::TARGETS.iter().map(|it| it.triple).collect::<Vec<_>>()
    )]
    binary: Vec<String>,
}

/// Parts that `cargo xtask dist` can make.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DistPart {
    /// The filter, also as an image, with its template for Envoy, the Worker, and the components.
    Wasm,
    /// An archive of the binary for each system.
    Binaries,
    /// The packages for npm and PyPI, with the same binaries.
    Packages,
    /// The gateway's image.
    Image,
    /// The crates as a registry gets them.
    Crates,
}

impl DistPart {
    fn make(self, dist: &Path, repository: Option<&str>) -> Result<()> {
        match self {
            Self::Wasm => {
                build::all()?;
                let filter = fs::read(build::path(&build::FILTER))?;
                let template = workspace::root().join("envoy/envoy.yaml");
                fs::write(dist.join("envoy.yaml"), fs::read(template)?)?;
                let settings = workspace::root().join("cloudflare/wrangler.toml");
                let packed = worker_archive(
                    &worker::folder(Manner::Shipped),
                    &fs::read_to_string(settings)?,
                )?;
                fs::write(dist.join(format!("{WORKER_NAME}.tar.gz")), packed)?;
                step("writing dist/oci", || image::of_module(&filter, &dist.join("oci")))
            }
            Self::Binaries => binaries::archives(dist),
            Self::Packages => {
                let (binaries, facts) = (Binary::all()?, Facts::read(repository)?);
                step("writing dist/npm", || npm::packages(&binaries, &facts, &dist.join("npm")))?;
                step("writing dist/pypi", || {
                    wheels::wheels(&binaries, &facts, &dist.join("pypi"))
                })?;
                Ok(())
            }
            Self::Image => step("writing dist/image", || image::of_gateway(&dist.join("image"))),
            Self::Crates => {
                step("packing the crates", || crates::packages(&dist.join("crates")).map(drop))
            }
        }
    }
}

/// Returns the Worker as one archive for a release: wrangler's settings, its modules, and their
/// list for workerd.
fn worker_archive(folder: &Path, settings: &str) -> Result<Vec<u8>> {
    // In a clone the modules are in another folder than the settings.
    let settings = settings.replace("../dist/worker", "worker");
    ensure!(!settings.contains("../"), "wrangler.toml names a folder outside of the archive");
    let mut files = vec![File::plain(format!("{WORKER_NAME}/wrangler.toml"), settings)];
    let list = ("modules.capnp".to_owned(), fs::read(folder.join("modules.capnp"))?);
    for (name, bytes) in worker::modules(folder)?.into_iter().chain([list]) {
        files.push(File::plain(format!("{WORKER_NAME}/worker/{name}"), bytes));
    }
    archive::gzip(&archive::tar(&files)?)
}

/// Returns the folder `dist/`, which receives everything that is built for a release.
pub(crate) fn folder() -> PathBuf {
    workspace::root().join("dist")
}

/// Builds the chosen parts, then the bill of materials and the checksums of everything in `dist/`.
pub(crate) fn dist(options: &DistOptions) -> Result<()> {
    if options.twice {
        return reproduce::reproduce(options);
    }
    let dist = folder();
    let parts = if options.parts.is_empty() {
        // Files that an older version left would get checksums.
        emptied(&dist)?;
        DistPart::value_variants()
    } else {
        &options.parts
    };
    fs::create_dir_all(&dist)?;
    let repository = options.repository.clone().or_else(|| std::env::var("GITHUB_REPOSITORY").ok());
    for part in parts {
        part.make(&dist, repository.as_deref())?;
    }
    let bill = sbom::sbom(&workspace::metadata()?)?;
    fs::write(dist.join("sbom.cdx.json"), format!("{bill:#}\n"))?;
    let sums = sums(&dist)?;
    fs::write(dist.join("SHA256SUMS"), &sums)?;
    print!("{sums}");
    Ok(())
}

/// Installs and runs the contents of `dist/` with the scripts in `harness/dist`. `each` runs a
/// command and counts its tests.
pub(crate) fn test(each: impl FnOnce(&mut Command) -> Result<()>) -> Result<()> {
    let script = workspace::root().join("harness/dist/artefacts.py");
    let (zig, _) = setup::zig()?;
    let mut command = Command::new("python3");
    each(command.arg("-B").arg(script).args([workspace::root(), folder(), zig]))
}

/// Checks the workflows of CI and releases.
pub(crate) fn workflows(each: impl FnOnce(&mut Command) -> Result<()>) -> Result<()> {
    let script = workspace::root().join("harness/dist/workflows.py");
    let mut command = Command::new("python3");
    each(command.arg("-B").arg(script).args([workspace::root(), setup::actionlint()?]))
}

/// Removes everything from `dist/` except the web pages, which are not an artefact.
fn emptied(dist: &Path) -> Result<()> {
    for entry in fs::read_dir(dist).into_iter().flatten() {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("site") {
            fs::remove_dir_all(&path)?;
        } else if !path.is_dir() {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the checksums of every file below `folder`, as `sha256sum` prints them.
fn sums(folder: &Path) -> Result<String> {
    let mut lines = String::new();
    // The web pages are no artefact, because they can be made anew at any time.
    let shipped = |entry: &DirEntry| entry.path() != folder.join("site");
    for entry in WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(shipped) {
        let file = entry?.into_path();
        if file.is_file() && !file.ends_with("SHA256SUMS") {
            let name = file.strip_prefix(folder)?.display();
            lines.push_str(&format!("{}  {name}\n", digest(&fs::read(&file)?)));
        }
    }
    Ok(lines)
}

/// Returns the texts of a list in `deny.toml`.
#[cfg(test)]
fn list(deny: &str, name: &str) -> Vec<String> {
    let after = deny.split(&format!("\n{name} = [")).nth(1).unwrap_or_default();
    let inside = after.split(']').next().unwrap_or_default();
    inside.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod tests;
