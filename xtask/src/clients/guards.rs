//! Check that the guards prevent failures: the newest SDK for Python against a host without guards,
//! where failures must happen, and against one with guards, where they must not.

use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};

use super::{Client, install};
use crate::catalog;
use crate::children::{Children, Stop};
use crate::hosts::Host;
use crate::run;
use crate::workspace;

/// The client whose installation is used.
const SDK: &str = "python-sdk-2";

/// Configurations without guards, and with them; for Envoy, also one that writes from a timer. A
/// client's own patience outlasts these times.
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

/// Runs the script against this host, by `each`.
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
