//! Log of a launched gateway: a file in the user's state folder, or the file that a flag names.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use jiff::Zoned;

use crate::CommandFailed;
use crate::private_files;
use crate::server::listen::log_file;

/// Size of the log in bytes, from which the next gateway begins a new one. The old log stays until
/// then.
const BYTES_MAX: u64 = 5 << 20;

/// Returns the file for the log; the error says why there is none.
fn usual() -> Result<PathBuf, String> {
    let path = private_files::state_folder()?.join("launch.log");
    let failed = |error| format!("{}: {error}", path.display());
    if fs::metadata(&path).is_ok_and(|log| log.len() > BYTES_MAX) {
        fs::rename(&path, path.with_extension("old.log")).map_err(failed)?;
    }
    private_files::append(&path).map_err(failed)?;
    Ok(path)
}

/// Returns the file for the log of this run, `named` by a flag or the usual one. Without a usual
/// one the launch goes on, and the user reads why there is no log.
///
/// # Errors
/// The named file cannot be written.
pub(super) fn file(named: Option<&Path>) -> Result<Option<PathBuf>, CommandFailed> {
    if let Some(path) = named {
        return log_file(path).map(|_| Some(path.to_owned()));
    }
    let path = usual().inspect_err(|why| super::say(&format!("no log is kept: {why}")));
    Ok(path.ok())
}

/// Returns the first line of a run in the log, with the date, which other lines do not have.
pub(super) fn first_line(client: &str, gateway: SocketAddr) -> String {
    let now = Zoned::now().strftime("%Y-%m-%d %H:%M %:z");
    let version = env!("CARGO_PKG_VERSION");
    format!("{now}: creole {version} launches {client} behind http://{gateway}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_the_user_named_and_that_cannot_be_written_ends_the_launch() {
        let folder = std::env::temp_dir().join("creole-no-such-folder");
        let CommandFailed::Usage(text) = file(Some(&folder.join("a.log"))).unwrap_err() else {
            panic!("not a wrong flag")
        };
        assert!(text.starts_with("--log ") && text.contains("a.log: "), "{text}");
    }
}
