//! Gateways of launches that are running: a file for each, with which other commands find the page.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::private_files;

/// Maximum time to connect to a gateway of this machine.
const CONNECT_TIME: Duration = Duration::from_millis(200);

/// Returns the folder of the files.
fn folder() -> Result<PathBuf, String> {
    private_files::state_folder().map(|state| state.join("running"))
}

/// File about a gateway that runs. Only this user can read the file, because it has the gateway's
/// key. It is deleted when the gateway ends.
#[derive(Debug)]
pub(super) struct RunFile(PathBuf);

impl RunFile {
    pub(super) fn write(address: SocketAddr, key: &str, client: &str) -> Result<Self, String> {
        let folder = folder()?;
        let failed = |error: io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(failed)?;
        let path = folder.join(format!("{}.json", std::process::id()));
        let place = std::env::current_dir().unwrap_or_default();
        let place = place.to_string_lossy();
        let about =
            json!({"address": address.to_string(), "key": key, "client": client, "folder": place});
        private_files::replace(&path, &about.to_string()).map_err(failed)?;
        Ok(Self(path))
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        // A file that stays is deleted by the next command that reads it.
        let _ = fs::remove_file(&self.0);
    }
}

/// Gateway of a launch that is running.
#[derive(Clone, Debug)]
pub(super) struct RunningGateway {
    pub(super) address: SocketAddr,
    pub(super) key: String,
    /// Name of the client.
    pub(super) client: String,
    /// Folder in which the client was launched.
    pub(super) folder: PathBuf,
}

/// Returns the gateways that are running. Files of gateways that have ended are deleted.
pub(super) fn all() -> Vec<RunningGateway> {
    let files = folder().ok().and_then(|folder| fs::read_dir(folder).ok());
    let paths = files.into_iter().flatten().flatten().map(|file| file.path());
    let (mut found, mut paths) = (Vec::new(), paths.collect::<Vec<_>>());
    paths.sort();
    for path in paths {
        match read(&path) {
            Some(gateway) if answers(gateway.address) => found.push(gateway),
            Some(_) => {
                let _ = fs::remove_file(&path);
            }
            // The file is of another version, or is being written.
            None => {}
        }
    }
    found
}

fn read(path: &Path) -> Option<RunningGateway> {
    let about: Value = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    let text = |name: &str| about.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(RunningGateway {
        address: text("address")?.parse().ok()?,
        key: text("key")?,
        client: text("client")?,
        folder: text("folder")?.into(),
    })
}

/// Returns true if a program accepts a connection at an address of this machine. Windows does not
/// refuse a connection within the time.
fn answers(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, CONNECT_TIME).is_ok()
}
