//! The crates that are published, as archives in which cargo has put all that a registry gets.
//!
//! What is published is every package of the workspace without `publish = false`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use cargo_metadata::Package;

use crate::{setup, workspace};

/// The packages that go to a registry. An empty list of registries is what `publish = false` becomes.
pub(super) fn published() -> Result<Vec<Package>> {
    let mut packages = workspace::packages()?;
    packages.retain(|package| package.publish.as_ref().is_none_or(|to| !to.is_empty()));
    Ok(packages)
}

/// Writes the archives into a folder. That each can be built alone is what `cargo xtask test crates` shows.
pub(crate) fn packages(folder: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    let published = published()?;
    let mut cargo = workspace::cargo(["package", "--quiet", "--no-verify", "--allow-dirty"]);
    for package in &published {
        cargo.args(["--package", package.name.as_str()]);
    }
    setup::run(&mut cargo)?;
    let mut written = Vec::new();
    for Package { name, version, .. } in &published {
        let file = format!("{name}-{version}.crate");
        let path = folder.join(&file);
        fs::copy(workspace::root().join("target/package").join(file), &path)?;
        written.push(path);
    }
    Ok(written)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
