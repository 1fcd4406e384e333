//! Check that Creole's guards prevent failures, with the newest Python SDK. Failures must happen
//! with a host without guards, and must not with guards.

use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};

use super::{Client, install};
use crate::catalog;
use crate::children::{Children, Stop};
use crate::hosts::Host;
use crate::run;
use crate::workspace;

/// Folder of the client whose installed SDK is used.
const SDK: &str = "python-sdk-2";

/// Returns configurations: without guards, with guards, and for Envoy also with writing from a
/// timer. Their timeouts are shorter than the client's own timeout.
fn configurations(host: Host) -> Vec<Value> {
    let on = json!({
        "guards": {"tool_turns_max": 9}, "first_byte_timeout_ms": 500, "stall_timeout_ms": 500
    });
    let mut deferred = on.clone();
    if let Some(document) = deferred.as_object_mut() {
        document.insert("deferred_flush".to_owned(), true.into());
    }
    let off = json!({
        "guards": {"pairing": "off", "breaker": {"failures_max": 0, "withhold_after": 0}}
    });
    if matches!(host, Host::Envoy) { vec![off, on, deferred] } else { vec![off, on] }
}

/// Runs the test script of the guards on a host. `each` runs the command and counts its tests.
pub(crate) fn test(host: Host, each: impl FnOnce(&mut Command) -> Result<()>) -> Result<()> {
    let mut children = Children::new(Stop::shared()?);
    let client = catalog::read::<Client>(SDK)?;
    install::install(&client)?;
    let mut command = Command::new(install::program(&client));
    command.arg(workspace::root().join("harness/clients/sdk/guards.py")).arg(host.name());
    command.current_dir(client.installed());
    for document in configurations(host) {
        let serving = run::start_anywhere(host, None, document, None, &mut children)?;
        let demo = &serving.upstream;
        command.arg(format!("http://{}", serving.listen));
        command.arg(format!("http://{}:{}", demo.host, demo.port));
    }
    each(&mut command)
}
