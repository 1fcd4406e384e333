//! The artefacts in `dist/`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::setup;
use crate::workspace::{self, step};

/// One file in `dist/`.
pub(crate) struct Artefact {
    /// Its name there.
    pub(crate) name: &'static str,
    /// The package that it is built from.
    pub(crate) package: &'static str,
    /// The target that it is built for.
    pub(crate) target: &'static str,
}

/// The filter for Envoy.
pub(crate) const FILTER: Artefact =
    Artefact { name: "creole.wasm", package: "creole-envoy", target: "wasm32-wasip1" };

/// Every artefact.
pub(crate) const ARTEFACTS: &[Artefact] = &[FILTER];

/// Builds every artefact.
pub(crate) fn all() -> Result<Vec<PathBuf>> {
    ARTEFACTS.iter().map(one).collect()
}

/// Builds one artefact and gives its path.
pub(crate) fn one(artefact: &Artefact) -> Result<PathBuf> {
    setup::target(artefact.target)?;
    step(&format!("building dist/{}", artefact.name), || {
        let arguments = ["--profile", "wasm", "--target", artefact.target];
        let built = workspace::build(artefact.package, &arguments, "wasm")?;
        let path = workspace::root().join("dist").join(artefact.name);
        fs::create_dir_all(workspace::root().join("dist"))?;
        fs::copy(&built, &path).with_context(|| format!("copying {}", built.display()))?;
        Ok(path)
    })
}
