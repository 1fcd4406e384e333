//! State of a file, by which a later change is noticed.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

/// File that was read, or could not be read, with its state before that.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileState {
    path: PathBuf,
    /// Time of the last change, and size in bytes; `None` if there was no file.
    state: Option<(SystemTime, u64)>,
}

impl FileState {
    /// Returns the state of the file at a path.
    pub(crate) fn of(path: PathBuf) -> Self {
        let found = fs::metadata(&path);
        let state = found.and_then(|found| Ok((found.modified()?, found.len()))).ok();
        Self { path, state }
    }

    /// Returns the state of the same file now.
    pub(crate) fn now(&self) -> Self {
        Self::of(self.path.clone())
    }
}
