//! Check of the stream accumulators in the official SDKs and the Vercel AI SDK: each reads the
//! streams of all fixtures, and its message must be the one that the tests of the core fold.

use std::process::Command;

use anyhow::{Result, bail};

use super::{Client, SDKS, install};
use crate::{catalog, setup, workspace};

/// Runs the check of the accumulators. `write` is the command that writes the streams; `each` runs
/// the reader of each SDK and counts its tests.
pub(crate) fn test(
    mut write: Command,
    mut each: impl FnMut(&mut Command) -> Result<()>,
) -> Result<()> {
    let streams = workspace::own().join("streams");
    workspace::emptied(&streams)?;
    setup::run(write.arg("upstream_answers").env("CREOLE_STREAMS_DIR", &streams))?;
    let readers = SDKS.iter().chain(&["vercel-ai"]);
    let names: Vec<String> = readers.map(|name| (*name).to_owned()).collect();
    let mut failed = Vec::new();
    for client in catalog::chosen::<Client>(&names)? {
        println!("\n{}", client.name);
        install::install(&client)?;
        let script = if client.main.ends_with(".py") { "accumulate.py" } else { "accumulate.mjs" };
        let clients = workspace::root().join("harness/clients");
        // A client that is no official SDK has its own script, because it names the parts of a
        // message differently.
        let own = clients.join(&client.folder).join(script);
        let script = if own.is_file() { own } else { clients.join("sdk").join(script) };
        let mut command = Command::new(install::program(&client));
        command.arg(script).arg(&streams);
        command.current_dir(client.installed()).env("PATH", install::path(&client.installed())?);
        if let Err(error) = each(&mut command) {
            println!("{error:#}");
            failed.push(client.name);
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}
