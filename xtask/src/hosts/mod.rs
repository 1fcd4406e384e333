//! Hosts that `cargo xtask run` can start, one file each.

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
    /// Configuration of Creole, as one line of JSON.
    pub(crate) config: String,
    /// Names of the environment variables that the configuration uses as secrets.
    pub(crate) secrets: Vec<String>,
    /// Folder for rendered configurations and logs.
    pub(crate) folder: PathBuf,
}

/// Files and addresses of a host that was started.
pub(crate) struct Started {
    /// Path of the host's log.
    pub(crate) log: PathBuf,
    /// URL of the host's metrics, if it serves any.
    pub(crate) metrics: Option<String>,
    /// Notes for the user about the started host, one line each.
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

    /// Installs and builds what the host needs, and returns the prepared host.
    pub(crate) fn prepare(self) -> Result<Box<dyn Prepared>> {
        Ok(match self {
            Self::Envoy => Box::new(envoy::prepare()?),
            Self::Gateway => Box::new(gateway::prepare()?),
            Self::Component => Box::new(component::prepare()?),
            Self::Worker => Box::new(worker::prepare()?),
        })
    }
}

/// Host whose files are ready, so that it can be started.
pub(crate) trait Prepared {
    /// Starts the host's process, and returns before the host accepts requests.
    fn start(&self, plan: &Plan, children: &mut Children) -> Result<Started>;
}
