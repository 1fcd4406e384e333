//! Build of the artefacts in `dist/`: filter, components and Worker.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;

use crate::workspace::{self, Manner, step};
use crate::{component, setup, worker};

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
            BuildPart::Filter => one(&FILTER, Manner::Shipped),
            BuildPart::Worker => worker::shipped(),
            BuildPart::Component => one(&COMPONENT, Manner::Shipped),
            BuildPart::WasiHttp => one(&WASI_HTTP, Manner::Shipped),
        }?;
    }
    Ok(())
}

/// Builds an artefact with cargo. Returns the path of the module, which still needs finishing.
fn unfinished(artefact: &Artefact, manner: Manner) -> Result<PathBuf> {
    setup::target(artefact.target)?;
    match manner {
        Manner::Shipped => workspace::module(artefact.package, "wasm", artefact.target),
        Manner::Quick => workspace::quick_module(artefact.package, artefact.target, &[]),
    }
}

/// Returns the path of a finished artefact: from its environment variable if set, else newly built.
pub(crate) fn ready(artefact: &Artefact) -> Result<PathBuf> {
    workspace::ready(artefact.variable, || one(artefact, Manner::Shipped))
}

/// Returns the path of the filter with test hooks, by which a request can make the VM trap. It is
/// never in `dist`. `CREOLE_WASM_HOOKS` gives the path if set.
pub(crate) fn filter_with_hooks() -> Result<PathBuf> {
    workspace::ready("CREOLE_WASM_HOOKS", || {
        setup::target(FILTER.target)?;
        let built = workspace::quick_module(FILTER.package, FILTER.target, workspace::HOOKS)?;
        let path = Manner::Quick.folder().join("creole-with-hooks.wasm");
        workspace::copied(&built, path)
    })
}

/// Returns the path of a built artefact in `dist/`.
pub(crate) fn path(artefact: &Artefact) -> PathBuf {
    Manner::Shipped.folder().join(artefact.name)
}

/// Builds one artefact and returns its path.
pub(crate) fn one(artefact: &Artefact, manner: Manner) -> Result<PathBuf> {
    let path = manner.folder().join(artefact.name);
    step(&format!("building {}", path.display()), || {
        let built = unfinished(artefact, manner)?;
        if artefact.encoded {
            fs::create_dir_all(manner.folder())?;
            component::encode(&fs::read(&built)?, &path)?;
            Ok(path.clone())
        } else {
            workspace::copied(&built, path.clone())
        }
    })
}
