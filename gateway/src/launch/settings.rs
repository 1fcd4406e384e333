//! Temporary settings file for a client, which is deleted when the client has ended.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::private_files;

#[derive(Debug)]
pub(crate) struct Settings(PathBuf);

impl Settings {
    /// Writes a settings file. Only this user can read the file, because it has the gateway's key.
    pub(crate) fn write(contents: &str, ending: &str, unique: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("creole-launch-{unique}.{ending}"));
        // A file that already has this name belongs to another program.
        let mut file = private_files::options().write(true).create_new(true).open(&path)?;
        let settings = Self(path);
        file.write_all(contents.as_bytes())?;
        Ok(settings)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        // If the removal fails, the system clears the temporary folder later.
        let _ = fs::remove_file(&self.0);
    }
}

/// Returns true if the client's arguments already name a settings file.
pub(crate) fn is_given(flag: &str, arguments: &[OsString]) -> bool {
    arguments.iter().any(|argument| {
        let text = argument.to_string_lossy();
        text.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_the_variables_and_goes_with_its_value() {
        let unique = format!("test-{}", std::process::id());
        let settings = Settings::write(r#"{"A":"b"}"#, "json", &unique).unwrap();
        let path = settings.path().to_owned();
        assert_eq!(fs::read_to_string(&path).unwrap(), r#"{"A":"b"}"#);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!(Settings::write("", "json", &unique).is_err());
        drop(settings);
        assert!(!path.exists());
    }

    #[test]
    fn settings_of_the_users_are_seen_in_both_forms() {
        let given = |arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
            is_given("--settings", &arguments)
        };
        assert!(given(&["-p", "--settings", "a.json"]) && given(&["--settings=a.json"]));
        assert!(!given(&["-p", "--setting-sources", "user"]));
    }
}
