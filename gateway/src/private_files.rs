//! Files that only this user can read, and the folder for those that outlive a command.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

/// Returns options that create a file for this user alone.
pub(crate) fn options() -> OpenOptions {
    #[cfg(unix)]
    {
        let mut options = File::options();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options
    }
    #[cfg(not(unix))]
    File::options()
}

/// Opens a file for appending, and creates it for this user alone.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    options().append(true).create(true).open(path)
}

/// Returns the folder for what outlives a command, in the place that the platform has for it:
/// `$XDG_STATE_HOME/creole` on Linux. Creates the folder.
///
/// # Errors
/// No home folder is known, or the folder cannot be made. The text names the folder.
pub(crate) fn state_folder() -> Result<PathBuf, String> {
    let places = etcetera::choose_base_strategy().map_err(|_| "no home folder is known")?;
    let folder = places.state_dir().unwrap_or_else(|| places.data_dir()).join("creole");
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// Replaces the contents of a file in one step, so that no reader sees a part of them. The file is
/// for this user alone.
pub(crate) fn replace(path: &Path, contents: &str) -> io::Result<()> {
    replace_with(path, contents, None)
}

/// Replaces the contents of a file in one step, as [`replace`] does, and gives the file
/// permissions, if there are some.
pub(crate) fn replace_with(
    path: &Path,
    contents: &str,
    permissions: Option<fs::Permissions>,
) -> io::Result<()> {
    let beside = path.with_extension(format!("new-{}", std::process::id()));
    let written = options().write(true).create(true).truncate(true).open(&beside);
    written
        .and_then(|mut file| {
            file.write_all(contents.as_bytes())?;
            permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions))
        })
        .and_then(|()| fs::rename(&beside, path))
        .inspect_err(|_| {
            // The file beside may not exist.
            let _ = fs::remove_file(&beside);
        })
}
