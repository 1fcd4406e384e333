//! The hosts that `cargo xtask run` can start: one file each.

mod component;
pub(crate) mod envoy;
pub(crate) mod gateway;
pub(crate) mod worker;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use serde::Deserialize;

use crate::children::Children;
use crate::http::Url;

/// Host in which the translator runs.
#[derive(Clone, Copy, Debug, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Host {
    /// The proxy-wasm filter in Envoy.
    Envoy,
    /// The native binary `creole`.
    Gateway,
    /// The `wasi:http` component in `wasmtime serve`.
    Component,
    /// The Worker in workerd, Cloudflare's runtime.
    Worker,
}

/// Settings with which a host is started.
pub(crate) struct Plan {
    pub(crate) listen: SocketAddr,
    pub(crate) upstream: Url,
    /// Creole's configuration, in one line.
    pub(crate) config: String,
    /// The environment variables that the configuration names as secrets.
    pub(crate) secrets: Vec<String>,
    /// The folder for rendered configurations and logs.
    pub(crate) folder: PathBuf,
}

/// Files and addresses of a host that was started.
pub(crate) struct Started {
    /// Path of the host's log.
    pub(crate) log: PathBuf,
    /// URL of the host's metrics, if it serves any.
    pub(crate) metrics: Option<String>,
    /// More that is worth knowing, a line each.
    pub(crate) notes: Vec<String>,
}

impl Host {
    /// Returns the host's name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Envoy => "envoy",
            Self::Gateway => "gateway",
            Self::Component => "component",
            Self::Worker => "worker",
        }
    }

    /// Installs and builds what the host needs, and gives the files.
    pub(crate) fn prepare(self) -> Result<Box<dyn Prepared>> {
        Ok(match self {
            Self::Envoy => Box::new(envoy::prepare()?),
            Self::Gateway => Box::new(gateway::prepare()?),
            Self::Component => Box::new(component::prepare()?),
            Self::Worker => Box::new(worker::prepare()?),
        })
    }
}

/// A host that can be started.
pub(crate) trait Prepared {
    /// Starts it. It need not answer yet.
    fn start(&self, plan: &Plan, children: &mut Children) -> Result<Started>;
}
