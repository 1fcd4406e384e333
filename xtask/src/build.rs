//! The artefacts in `dist/`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::workspace::{self, step};
use crate::{component, setup, worker};

/// One file in `dist/`.
pub(crate) struct Artefact {
    /// Its name there.
    pub(crate) name: &'static str,
    /// The package that it is built from.
    pub(crate) package: &'static str,
    /// The target that it is built for.
    pub(crate) target: &'static str,
    /// The cargo profile that it is built with.
    pub(crate) profile: &'static str,
    /// What is done with cargo's file.
    pub(crate) finish: Finish,
}

/// How cargo's file becomes the artefact.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Finish {
    /// It is the artefact.
    Copy,
    /// It is a module that holds the type of a component, and is made one.
    Component,
}

/// The filter for Envoy.
pub(crate) const FILTER: Artefact = Artefact {
    name: "creole.wasm",
    package: "creole-envoy",
    target: "wasm32-wasip1",
    profile: "wasm",
    finish: Finish::Copy,
};

/// The component to embed. Not built for WASI: its standard library would ask for files and a clock.
pub(crate) const COMPONENT: Artefact = Artefact {
    name: "creole.component.wasm",
    package: "creole-wit",
    target: "wasm32-unknown-unknown",
    profile: "component",
    finish: Finish::Component,
};

/// The component for servers of `wasi:http`.
pub(crate) const WASI_HTTP: Artefact = Artefact {
    name: "creole-http.component.wasm",
    package: "creole-wasi-http",
    target: "wasm32-wasip2",
    profile: "component",
    finish: Finish::Copy,
};

/// Every artefact.
pub(crate) const ARTEFACTS: &[Artefact] = &[FILTER, COMPONENT, WASI_HTTP];

/// Builds every artefact.
pub(crate) fn all() -> Result<()> {
    for artefact in ARTEFACTS {
        one(artefact)?;
    }
    worker::shipped()?;
    Ok(())
}

/// Builds one artefact and gives its path.
pub(crate) fn one(artefact: &Artefact) -> Result<PathBuf> {
    setup::target(artefact.target)?;
    step(&format!("building dist/{}", artefact.name), || {
        let arguments = ["--profile", artefact.profile, "--target", artefact.target];
        let built = workspace::build(artefact.package, &arguments, "wasm")?;
        let path = workspace::root().join("dist").join(artefact.name);
        fs::create_dir_all(workspace::root().join("dist"))?;
        match artefact.finish {
            Finish::Copy => {
                fs::copy(&built, &path).with_context(|| format!("copying {}", built.display()))?;
            }
            Finish::Component => component::encode(&built, &path)?,
        }
        Ok(path)
    })
}
