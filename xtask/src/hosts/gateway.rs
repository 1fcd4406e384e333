//! Host: the native gateway.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::{Plan, Prepared, Started};
use crate::children::Children;
use crate::workspace::{self, step};

/// Native gateway, with the path of its binary.
pub(crate) struct Gateway {
    binary: PathBuf,
}

/// Builds the gateway with the profile of a release.
pub(crate) fn released() -> Result<Gateway> {
    let binary = step("building the gateway as it is released", || {
        workspace::build("creole-gateway", &["--bin", "creole", "--release"], "")
    })?;
    Ok(Gateway { binary })
}

pub(super) fn prepare() -> Result<Gateway> {
    let binary = step("building the gateway", binary)?;
    Ok(Gateway { binary })
}

/// Returns the path of the binary `creole`: `CREOLE_GATEWAY` if set, else newly built.
pub(crate) fn binary() -> Result<PathBuf> {
    workspace::ready("CREOLE_GATEWAY", || {
        workspace::build("creole-gateway", &["--bin", "creole"], "")
    })
}

impl Prepared for Gateway {
    fn start(&self, plan: &Plan, children: &mut Children) -> Result<Started> {
        let config = plan.folder.join("creole.json");
        fs::write(&config, &plan.config)?;
        let log = plan.folder.join("gateway.log");
        let mut command = Command::new(&self.binary);
        command.args(["serve", "--no-check", "--config"]).arg(&config);
        command.arg("--listen").arg(plan.listen.to_string());
        children.start("the gateway", &mut command, &log)?;
        let metrics = Some(format!("http://{}/metrics", plan.listen));
        Ok(Started { log, metrics, notes: vec![format!("Configuration: {}", config.display())] })
    }
}
