//! The artefacts in `dist/`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use crate::workspace::{self, step};
use crate::{component, setup, shrink, worker};

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
    /// The variable that names a finished one: see [`ready`].
    pub(crate) variable: &'static str,
    /// What is done with cargo's file.
    pub(crate) finish: Finish,
    /// Its budget, in bytes. `cargo xtask test sizes` fails above it.
    pub(crate) bytes_max: usize,
}

/// How cargo's file becomes the artefact.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Finish {
    /// It is the artefact.
    Copy,
    /// It is a module, and is made smaller.
    Shrink,
    /// It is a module that holds the type of a component: it is made smaller and then a component.
    Component,
}

/// The filter for Envoy. Not built for WASI, of which it needs three functions only (`envoy/src/wasi.rs`).
pub(crate) const FILTER: Artefact = Artefact {
    name: "creole.wasm",
    package: "creole-envoy",
    target: "wasm32-unknown-unknown",
    profile: "wasm",
    variable: "CREOLE_WASM",
    finish: Finish::Shrink,
    bytes_max: 1_200_000,
};

/// The component to embed. Not built for WASI: its standard library would ask for files and a clock.
pub(crate) const COMPONENT: Artefact = Artefact {
    name: "creole.component.wasm",
    package: "creole-wit",
    target: "wasm32-unknown-unknown",
    profile: "wasm",
    variable: "CREOLE_COMPONENT",
    finish: Finish::Component,
    bytes_max: 1_500_000,
};

/// The component for servers of `wasi:http`.
pub(crate) const WASI_HTTP: Artefact = Artefact {
    name: "creole-http.component.wasm",
    package: "creole-wasi-http",
    target: "wasm32-wasip2",
    profile: "component",
    variable: "CREOLE_WASI_HTTP",
    finish: Finish::Copy,
    bytes_max: 1_500_000,
};

/// Every artefact.
pub(crate) const ARTEFACTS: &[Artefact] = &[FILTER, COMPONENT, WASI_HTTP];

/// What `cargo xtask build` makes.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Part {
    /// `creole.wasm`, the filter for Envoy.
    Filter,
    /// `worker/`, the modules for Cloudflare Workers.
    Worker,
    /// `creole.component.wasm`, the component to embed.
    Component,
    /// `creole-http.component.wasm`, the component for servers of `wasi:http`.
    WasiHttp,
}

/// Builds everything.
pub(crate) fn all() -> Result<()> {
    parts(Part::value_variants())
}

/// Builds these parts.
pub(crate) fn parts(chosen: &[Part]) -> Result<()> {
    for part in chosen {
        match part {
            Part::Filter => one(&FILTER).map(drop),
            Part::Worker => worker::shipped().map(drop),
            Part::Component => one(&COMPONENT).map(drop),
            Part::WasiHttp => one(&WASI_HTTP).map(drop),
        }?;
    }
    Ok(())
}

/// What cargo makes for an artefact, with the names of functions.
pub(crate) fn unfinished(artefact: &Artefact) -> Result<PathBuf> {
    setup::target(artefact.target)?;
    let arguments = ["--profile", artefact.profile, "--target", artefact.target];
    workspace::module(artefact.package, &arguments)
}

/// A finished artefact: the one that its variable names, else a new one. Tests that run side by side
/// must not build the files that the others use.
pub(crate) fn ready(artefact: &Artefact) -> Result<PathBuf> {
    std::env::var_os(artefact.variable).map_or_else(|| one(artefact), |path| Ok(path.into()))
}

/// The filter with what its tests need: a request can make its VM trap. Never in `dist`.
/// `CREOLE_WASM_HOOKS` if that is set.
pub(crate) fn filter_with_hooks() -> Result<PathBuf> {
    if let Some(chosen) = std::env::var_os("CREOLE_WASM_HOOKS") {
        return Ok(chosen.into());
    }
    setup::target(FILTER.target)?;
    let Artefact { package, target, profile, .. } = FILTER;
    workspace::module_with_hooks(package, &["--profile", profile, "--target", target])
}

/// Where an artefact is, once it is built.
pub(crate) fn path(artefact: &Artefact) -> PathBuf {
    workspace::root().join("dist").join(artefact.name)
}

/// Builds one artefact and gives its path.
pub(crate) fn one(artefact: &Artefact) -> Result<PathBuf> {
    step(&format!("building dist/{}", artefact.name), || {
        let built = unfinished(artefact)?;
        let path = path(artefact);
        fs::create_dir_all(workspace::root().join("dist"))?;
        match artefact.finish {
            Finish::Copy => {
                fs::copy(&built, &path).with_context(|| format!("copying {}", built.display()))?;
            }
            Finish::Shrink => fs::write(&path, shrink::module(&built)?)?,
            Finish::Component => component::encode(&shrink::module(&built)?, &path)?,
        }
        Ok(path)
    })
}
