//! Host: the `wasi:http` component in `wasmtime serve`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::{Plan, Prepared, Started};
use crate::children::Children;
use crate::{build, setup};

/// Paths of the files that `wasmtime serve` with the component needs.
pub(crate) struct Component {
    wasmtime: PathBuf,
    component: PathBuf,
}

pub(super) fn prepare() -> Result<Component> {
    let wasmtime = setup::wasmtime()?;
    let component = build::ready(&build::WASI_HTTP)?;
    Ok(Component { wasmtime, component })
}

impl Prepared for Component {
    fn start(&self, plan: &Plan, children: &mut Children) -> Result<Started> {
        let log = plan.folder.join("wasmtime.log");
        let mut command = Command::new(&self.wasmtime);
        // The pool of instances holds 333 requests, and further requests get 500.
        command.args(["serve", "-Scli", "-Opooling-allocator=n", "--addr"]);
        command.arg(plan.listen.to_string());
        // Without a value, Wasmtime takes the variable from its own environment: a secret must not
        // stand in a list of processes.
        command.args(["--env", "CREOLE_CONFIG"]).env("CREOLE_CONFIG", &plan.config);
        for name in &plan.secrets {
            command.args(["--env", name]);
        }
        command.arg(&self.component);
        children.start("Wasmtime", &mut command, &log)?;
        Ok(Started { log, metrics: None, notes: Vec::new() })
    }
}
