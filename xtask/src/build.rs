//! Build of the artefacts in `dist/`: filter, components and Worker.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use crate::workspace::{self, step};
use crate::{component, setup, worker};

/// Name of the cargo profile for artefacts.
const PROFILE: &str = "wasm";

/// File that `cargo xtask build` writes to `dist/`.
pub(crate) struct Artefact {
    /// Name of the file in `dist/`.
    pub(crate) name: &'static str,
    /// Name of the cargo package that the file is built from.
    pub(crate) package: &'static str,
    /// Name of the artefact's compilation target.
    pub(crate) target: &'static str,
    /// Name of the environment variable with the path of an artefact that is already built: see
    /// [`ready`].
    pub(crate) variable: &'static str,
    /// True if cargo's output is a core module with the component's type inside, from which the
    /// component must still be made.
    pub(crate) encoded: bool,
    /// Maximum size of the artefact in bytes. `cargo xtask test sizes` fails above this size.
    pub(crate) bytes_max: usize,
}

/// Proxy-wasm filter for Envoy. Not built for WASI, since it needs only three WASI functions
/// (`envoy/src/wasi.rs`).
pub(crate) const FILTER: Artefact = Artefact {
    name: "creole.wasm",
    package: "creole-envoy",
    target: "wasm32-unknown-unknown",
    variable: "CREOLE_WASM",
    encoded: false,
    bytes_max: 2_600_000,
};

/// WebAssembly component to embed. Not built for WASI, whose standard library would import files
/// and a clock.
pub(crate) const COMPONENT: Artefact = Artefact {
    name: "creole.component.wasm",
    package: "creole-wit",
    target: "wasm32-unknown-unknown",
    variable: "CREOLE_COMPONENT",
    encoded: true,
    bytes_max: 2_600_000,
};

/// WebAssembly component for servers of `wasi:http`.
pub(crate) const WASI_HTTP: Artefact = Artefact {
    name: "creole-http.component.wasm",
    package: "creole-wasi-http",
    target: "wasm32-wasip2",
    variable: "CREOLE_WASI_HTTP",
    encoded: false,
    bytes_max: 2_700_000,
};

/// List of all artefacts.
pub(crate) const ARTEFACTS: &[Artefact] = &[FILTER, COMPONENT, WASI_HTTP];

/// Returns the targets that artefacts are built for.
pub(crate) fn targets() -> Vec<&'static str> {
    ARTEFACTS.iter().map(|artefact| artefact.target).chain([worker::TARGET]).collect()
}

/// Parts that `cargo xtask build` can make.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BuildPart {
    /// `creole.wasm`, the filter for Envoy.
    Filter,
    /// `worker/`, the modules for Cloudflare Workers.
    Worker,
    /// `creole.component.wasm`, the component to embed.
    Component,
    /// `creole-http.component.wasm`, the component for servers of `wasi:http`.
    WasiHttp,
}

/// Builds all artefacts.
pub(crate) fn all() -> Result<()> {
    parts(BuildPart::value_variants())
}

/// Builds the chosen parts of `dist/`.
pub(crate) fn parts(chosen: &[BuildPart]) -> Result<()> {
    for part in chosen {
        match part {
            BuildPart::Filter => one(&FILTER),
            BuildPart::Worker => worker::shipped(),
            BuildPart::Component => one(&COMPONENT),
            BuildPart::WasiHttp => one(&WASI_HTTP),
        }?;
    }
    Ok(())
}

/// Builds an artefact with cargo. Returns the path of the module, which still needs finishing.
fn unfinished(artefact: &Artefact) -> Result<PathBuf> {
    setup::target(artefact.target)?;
    let remapped = workspace::remapped(&workspace::root(), artefact.target)?;
    let remapped = remapped.each_ref().map(String::as_str);
    workspace::module(artefact.package, PROFILE, artefact.target, &remapped)
}

/// Returns the path of a finished artefact: from its environment variable if set, else newly built.
pub(crate) fn ready(artefact: &Artefact) -> Result<PathBuf> {
    workspace::ready(artefact.variable, || one(artefact))
}

/// Returns the path of the filter with test hooks, by which a request can make the VM trap. It is
/// never in `dist`. `CREOLE_WASM_HOOKS` gives the path if set.
pub(crate) fn filter_with_hooks() -> Result<PathBuf> {
    workspace::ready("CREOLE_WASM_HOOKS", || {
        setup::target(FILTER.target)?;
        workspace::module_with_hooks(FILTER.package, FILTER.target)
    })
}

/// Returns the path of a built artefact in `dist/`.
pub(crate) fn path(artefact: &Artefact) -> PathBuf {
    workspace::root().join("dist").join(artefact.name)
}

/// Builds one artefact and returns its path.
pub(crate) fn one(artefact: &Artefact) -> Result<PathBuf> {
    step(&format!("building dist/{}", artefact.name), || {
        let built = unfinished(artefact)?;
        let path = path(artefact);
        fs::create_dir_all(workspace::root().join("dist"))?;
        if artefact.encoded {
            component::encode(&fs::read(&built)?, &path)?;
        } else {
            fs::copy(&built, &path).with_context(|| format!("copying {}", built.display()))?;
        }
        Ok(path)
    })
}
