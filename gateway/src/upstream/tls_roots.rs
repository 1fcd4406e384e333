//! Root certificates that are trusted for TLS connections to upstreams.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

/// Environment variables for a file and folders of root certificates to use instead of the
/// machine's.
const CHOSEN: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Returns the trusted root certificates: Mozilla's, and those of this machine or of
/// `SSL_CERT_FILE` and `SSL_CERT_DIR`. A container often has no root certificates, and a company
/// has its own.
pub(crate) fn trusted() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    let (found, errors) = of_machine();
    for error in errors {
        tracing::warn!("root certificates: {error}");
    }
    if found.is_empty() && CHOSEN.map(std::env::var_os).iter().any(Option::is_some) {
        tracing::warn!("root certificates: SSL_CERT_FILE and SSL_CERT_DIR have none in PEM");
    }
    roots.add_parsable_certificates(found);
    roots
}

/// Certificates that were found, and error messages about files that could not be read.
type FoundRoots = (Vec<CertificateDer<'static>>, Vec<String>);

#[cfg(not(target_os = "macos"))]
fn of_machine() -> FoundRoots {
    let native = rustls_native_certs::load_native_certs();
    (native.certs, native.errors.iter().map(ToString::to_string).collect())
}

/// Reads root certificates from `SSL_CERT_FILE` and `SSL_CERT_DIR` only. Access to the keychain
/// needs a framework of Apple, which can be linked only on a Mac.
#[cfg(target_os = "macos")]
fn of_machine() -> FoundRoots {
    let [file, folders] = CHOSEN.map(std::env::var_os);
    chosen::read(file.as_deref(), folders.as_deref())
}

#[cfg(any(target_os = "macos", test))]
mod chosen {
    use std::ffi::OsStr;
    use std::fs;
    use std::path::PathBuf;

    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    use super::FoundRoots;

    /// Returns the certificates of a file, and of the files in folders. Other contents of a file
    /// are skipped.
    pub(super) fn read(file: Option<&OsStr>, folders: Option<&OsStr>) -> FoundRoots {
        let mut files: Vec<PathBuf> = file.into_iter().map(PathBuf::from).collect();
        let mut found: FoundRoots = Default::default();
        for folder in folders.into_iter().flat_map(std::env::split_paths) {
            match fs::read_dir(&folder) {
                Ok(entries) => files.extend(entries.flatten().map(|entry| entry.path())),
                Err(error) => found.1.push(format!("{}: {error}", folder.display())),
            }
        }
        for file in files.iter().filter(|file| !file.is_dir()) {
            match CertificateDer::pem_file_iter(file) {
                Ok(certificates) => found.0.extend(certificates.flatten()),
                Err(error) => found.1.push(format!("{}: {error}", file.display())),
            }
        }
        found
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::ffi::OsStr;
    use std::fs;

    use rcgen::generate_simple_self_signed;

    use super::chosen::read;

    #[test]
    fn on_macos_files_and_folders_of_certificates_are_read_and_what_cannot_be_is_named() {
        let folder = std::env::temp_dir().join(format!("creole-roots-{}", std::process::id()));
        fs::create_dir_all(folder.join("below")).unwrap();
        let [one, two] = ["one", "two"].map(|name| {
            let made = generate_simple_self_signed([format!("{name}.example")]).unwrap();
            let text = format!("a comment\n{}", made.cert.pem());
            fs::write(folder.join(name), &text).unwrap();
            made.cert.der().clone()
        });
        fs::write(folder.join("readme"), "no certificate").unwrap();
        let file = folder.join("one");
        assert_eq!(read(Some(file.as_os_str()), None), (vec![one.clone()], Vec::new()));
        let (mut found, errors) = read(None, Some(folder.as_os_str()));
        found.sort_by(|a, b| a.as_ref().cmp(b));
        let mut both = vec![one, two];
        both.sort_by(|a, b| a.as_ref().cmp(b));
        assert_eq!((found, errors), (both, Vec::new()));
        assert_eq!(read(None, None), (Vec::new(), Vec::new()));
        let gone = Some(OsStr::new("/not/there"));
        let (found, errors) = read(gone, gone);
        assert!(found.is_empty() && errors.len() == 2, "{errors:?}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
