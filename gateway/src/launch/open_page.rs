//! `creole page`: shows where the page of a running gateway is, and opens it in a browser.

use std::io::{self, IsTerminal as _};

use super::find::{self, GATEWAY};
use super::running::{self, RunningGateway};
use crate::CommandFailed;
use crate::terminal;
use crate::upstream::client::UpstreamClient;

/// Prints the pages of all gateways of this user, and opens the first in a browser: that of a
/// launch in this folder, if there is one.
pub(crate) fn run() -> Result<(), CommandFailed> {
    let here = std::env::current_dir().unwrap_or_default();
    let mut launched = running::all();
    launched.sort_by_key(|gateway| gateway.folder != here);
    let mut pages: Vec<_> = launched.iter().map(|gateway| (url(gateway), about(gateway))).collect();
    if serves()? {
        pages.push((format!("{GATEWAY}/"), "creole serve or creole demo".to_owned()));
    }
    for (url, about) in &pages {
        terminal::say(io::stdout(), &format!("{url}  {about}"))?;
    }
    let Some((first, _)) = pages.first() else {
        let reason = "no gateway runs here: creole launch or creole serve starts one";
        return Err(CommandFailed::Run(reason.to_owned()));
    };
    if io::stdout().is_terminal() && open::that_detached(first).is_err() {
        super::say("no browser could be opened");
    }
    Ok(())
}

fn url(gateway: &RunningGateway) -> String {
    format!("http://{}/", gateway.address)
}

fn about(gateway: &RunningGateway) -> String {
    let RunningGateway { key, client, folder, .. } = gateway;
    format!("{client} in {} (any name, password {key})", folder.display())
}

/// Returns true if a gateway answers at the usual address.
fn serves() -> Result<bool, CommandFailed> {
    let runtime = crate::runtime()?;
    let client = UpstreamClient::connect().map_err(CommandFailed::Run)?;
    Ok(runtime.block_on(find::is_gateway(&client, None)).is_ok())
}
