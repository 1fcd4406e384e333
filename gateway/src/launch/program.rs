//! Program file of a client: where it is, and its installation by its own installer.

use std::path::PathBuf;
use std::process::Command;

use which::WhichConfig;
use which::sys::{RealSys, Sys};

use super::clients::Client;
use super::menu::Menu;
use crate::CommandFailed;

/// Finds the program of a client. If it is missing and the user `is_asked`, installs the version
/// that was tried.
pub(crate) fn find_or_install(client: &Client, is_asked: bool) -> Result<PathBuf, CommandFailed> {
    let Client { program, install, .. } = client;
    let missing = || CommandFailed::Run(format!("{program} is not installed: {install}"));
    if let Some(found) = find(program, RealSys) {
        return Ok(found);
    }
    if !is_asked || !Menu::confirm(&format!("Install {program} by `{install}`?"))? {
        return Err(missing());
    }
    let mut words = install.split(' ');
    let installer = words.next().unwrap_or_default();
    let Some(installer) = find(installer, RealSys) else {
        return Err(CommandFailed::Run(format!(
            "{installer} is missing, which installs {program}"
        )));
    };
    let ended = Command::new(installer).args(words).status();
    if !ended.is_ok_and(|status| status.success()) {
        return Err(CommandFailed::Run(format!("{program} could not be installed: {install}")));
    }
    find(program, RealSys).ok_or_else(|| {
        CommandFailed::Run(format!("{program} was installed in a folder that is not in PATH"))
    })
}

/// Finds a program in the folders of `PATH`. On Windows, npm installs three files for a program: a
/// script for `sh`, which Windows cannot run, a `.cmd` file, and a `PowerShell` script. `PATHEXT`
/// leads to the `.cmd` file.
pub(crate) fn find(name: &str, system: impl Sys) -> Option<PathBuf> {
    WhichConfig::new_with_sys(system).binary_name(name.into()).first_result().ok()
}

#[cfg(test)]
mod tests {
    use std::ffi::{OsStr, OsString};
    use std::fs::{self, DirEntry, Metadata};
    use std::io;
    use std::path::Path;

    use super::*;

    /// Simulated Windows with these folders in `PATH`. A file without an extension is no program
    /// there.
    struct Windows(Vec<PathBuf>);

    impl Sys for Windows {
        type ReadDirEntry = DirEntry;
        type Metadata = Metadata;

        fn is_windows(&self) -> bool {
            true
        }

        fn current_dir(&self) -> io::Result<PathBuf> {
            RealSys.current_dir()
        }

        fn home_dir(&self) -> Option<PathBuf> {
            None
        }

        fn env_split_paths(&self, _: &OsStr) -> Vec<PathBuf> {
            self.0.clone()
        }

        fn env_path(&self) -> Option<OsString> {
            Some("unused".into())
        }

        fn env_path_ext(&self) -> Option<OsString> {
            Some(".COM;.EXE;.BAT;.CMD;.VBS;.JS".into())
        }

        fn metadata(&self, path: &Path) -> io::Result<Metadata> {
            RealSys.metadata(path)
        }

        fn symlink_metadata(&self, path: &Path) -> io::Result<Metadata> {
            RealSys.symlink_metadata(path)
        }

        fn read_dir(
            &self,
            path: &Path,
        ) -> io::Result<Box<dyn Iterator<Item = io::Result<DirEntry>>>> {
            RealSys.read_dir(path)
        }

        fn is_valid_executable(&self, _: &Path) -> io::Result<bool> {
            Err(io::Error::from_raw_os_error(193))
        }
    }

    /// Creates a folder with empty files, and returns the path of the folder.
    fn folder(name: &str, files: &[&str]) -> PathBuf {
        let name = format!("creole-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        files.iter().for_each(|file| fs::write(folder.join(file), "").unwrap());
        folder
    }

    #[test]
    fn on_windows_the_command_file_of_npm_is_found() {
        let npm = folder("npm", &["claude", "claude.ps1", "claude.CMD"]);
        let own = folder("own", &["claude.EXE", "claude.CMD"]);
        let empty = folder("empty", &["claude", "claude.ps1"]);
        let found = |folders: &[&PathBuf]| {
            find("claude", Windows(folders.iter().map(|folder| (*folder).clone()).collect()))
        };
        assert_eq!(found(&[&empty, &npm]), Some(npm.join("claude.CMD")));
        assert_eq!(found(&[&own, &npm]), Some(own.join("claude.EXE")));
        assert_eq!(found(&[&empty]), None);
        [npm, own, empty].iter().for_each(|folder| fs::remove_dir_all(folder).unwrap());
    }
}
