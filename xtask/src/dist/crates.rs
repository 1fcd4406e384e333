//! Archives of the published crates, packed by cargo as a registry receives them.
//!
//! Every package of the workspace without `publish = false` is published.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use cargo_metadata::Package;

use crate::{setup, workspace};

/// Returns the packages that are published to a registry. Cargo represents `publish = false` as an
/// empty list of registries.
pub(super) fn published() -> Result<Vec<Package>> {
    let mut packages = workspace::packages()?;
    packages.retain(|package| package.publish.as_ref().is_none_or(|to| !to.is_empty()));
    Ok(packages)
}

/// Writes the archives of the published crates into a folder. Cargo verifies each archive by
/// building its contents with the archives before it.
pub(crate) fn packages(folder: &Path) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    let published = published()?;
    forget(&published)?;
    // Output that cargo compiled from earlier archives is removed with its folder.
    let target = workspace::root().join("target/crates");
    workspace::emptied(&target)?;
    let mut cargo = workspace::cargo(["package", "--quiet", "--allow-dirty", "--target-dir"]);
    cargo.arg(&target);
    for package in &published {
        cargo.args(["--package", package.name.as_str()]);
    }
    setup::run(&mut cargo)?;
    let mut written = Vec::new();
    for Package { name, version, .. } in &published {
        let file = format!("{name}-{version}.crate");
        let path = folder.join(&file);
        fs::copy(target.join("package").join(file), &path)?;
        written.push(path);
    }
    Ok(written)
}

/// Removes the unpacked contents of earlier archives, because cargo would reuse an unpacked crate
/// of the same version.
fn forget(published: &[Package]) -> Result<()> {
    for registry in workspace::registries()?.iter().filter(|it| it.is_local) {
        for Package { name, version, .. } in published {
            let folder = registry.path.join(format!("{name}-{version}"));
            if folder.exists() {
                fs::remove_dir_all(&folder)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
