//! Reproducible archives: the same files give the same bytes, on any machine at any time.

use std::io::{Cursor, Write as _};

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// File to be put in an archive.
pub(crate) struct File {
    /// Path of the file in the archive.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    /// True if the file is a program, which must be executable.
    pub(crate) runs: bool,
}

impl File {
    /// Returns a file for an archive, without the permission to execute the file.
    pub(crate) fn plain(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: bytes.into(), runs: false }
    }

    /// Returns an executable file for an archive.
    pub(crate) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: bytes.into(), runs: true }
    }

    fn mode(&self) -> u32 {
        if self.runs { 0o755 } else { 0o644 }
    }
}

/// Returns a tar archive with all times at 1970 and all files owned by root.
pub(crate) fn tar(files: &[File]) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for file in files {
        let mut header = tar::Header::new_ustar();
        header.set_mode(file.mode());
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(u64::try_from(file.bytes.len())?);
        archive.append_data(&mut header, &file.path, file.bytes.as_slice())?;
    }
    Ok(archive.into_inner()?)
}

/// Compresses bytes with gzip, at the highest level.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    packed.write_all(bytes)?;
    Ok(packed.finish()?)
}

/// Returns a zip archive with all times at 1980, the earliest that zip supports.
pub(crate) fn zip(files: &[File]) -> Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for file in files {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(9))
            .last_modified_time(DateTime::default())
            .unix_permissions(file.mode());
        archive.start_file(file.path.as_str(), options)?;
        archive.write_all(&file.bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    fn files() -> [File; 2] {
        [File::program("a/creole", [7; 1000]), File::plain("a/README", "words")]
    }

    #[test]
    fn a_tar_archive_holds_the_files_without_a_time() {
        let packed = gzip(&tar(&files()).unwrap()).unwrap();
        assert!(packed == gzip(&tar(&files()).unwrap()).unwrap() && packed.len() < 1000);
        let mut bytes = Vec::new();
        GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            assert_eq!((entry.header().mtime().unwrap(), entry.header().uid().unwrap()), (0, 0));
            let (path, mode) = (entry.path().unwrap().into_owned(), entry.header().mode().unwrap());
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            found.push((path.display().to_string(), mode, bytes));
        }
        let wanted = files().map(|file| (file.path.clone(), file.mode(), file.bytes)).into_iter();
        assert_eq!(found, wanted.collect::<Vec<_>>());
        assert_eq!(found.iter().map(|it| it.1).collect::<Vec<_>>(), [0o755, 0o644]);
    }

    #[test]
    fn a_zip_archive_holds_the_files_without_a_time() {
        let packed = zip(&files()).unwrap();
        assert_eq!(packed, zip(&files()).unwrap());
        let mut archive = zip::ZipArchive::new(Cursor::new(packed)).unwrap();
        assert_eq!(archive.len(), 2);
        for file in files() {
            let mut found = archive.by_name(&file.path).unwrap();
            assert_eq!(found.last_modified().unwrap().year(), 1980);
            assert_eq!(found.unix_mode().unwrap() & 0o777, file.mode());
            let mut bytes = Vec::new();
            found.read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, file.bytes);
        }
    }
}
