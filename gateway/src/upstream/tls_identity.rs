//! Certificates of this program with their keys, in files that are read again when they change: for
//! clients that connect to the gateway, and for upstreams that want to know who asks.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::client::{ResolvesClientCert, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, RootCertStore, SignatureScheme};

use crate::file_state::FileState;

/// Minimum interval between two looks at the files.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Remaining life of a certificate below which its end is told.
const ENDS_SOON: Duration = Duration::from_secs(24 * 60 * 60);

/// Certificate and key of this program.
#[derive(Debug)]
pub(crate) struct Identity {
    certificate: PathBuf,
    key: PathBuf,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    loaded: Arc<CertifiedKey>,
    /// States of the files when they were last looked at.
    files: [FileState; 2],
    looked: Instant,
}

impl Identity {
    /// Reads a certificate, with those of its authorities, and its key from files.
    ///
    /// # Errors
    /// A file cannot be read, has no certificate or key, or the two do not fit each other.
    pub(crate) fn load(certificate: &Path, key: &Path) -> Result<Arc<Self>, String> {
        let files = [certificate, key].map(|file| FileState::of(file.to_owned()));
        let loaded = read(certificate, key)?;
        let current = Mutex::new(Current { loaded, files, looked: Instant::now() });
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Ok(Arc::new(Self { certificate, key, current }))
    }

    /// Returns the certificate of now. Files that changed and cannot be used change nothing.
    fn current(&self) -> Arc<CertifiedKey> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.looked.elapsed() >= LOOK_INTERVAL {
            current.looked = Instant::now();
            let files = current.files.each_ref().map(FileState::now);
            if files != current.files {
                current.files = files;
                match read(&self.certificate, &self.key) {
                    Ok(loaded) => {
                        current.loaded = loaded;
                        tracing::info!("{}: read again", self.certificate.display());
                    }
                    Err(reason) => tracing::error!("{reason}; the certificate before is kept"),
                }
            }
        }
        Arc::clone(&current.loaded)
    }
}

impl ResolvesServerCert for Identity {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Reads a certificate and its key, and tells in the log if the certificate ends soon.
fn read(certificate: &Path, key: &Path) -> Result<Arc<CertifiedKey>, String> {
    let wrong =
        |file: &Path, reason: &dyn std::fmt::Display| format!("{}: {reason}", file.display());
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(certificate, &error))?;
    let Some(first) = chain.first() else {
        return Err(wrong(certificate, &"no certificate in PEM"));
    };
    let provider = ring::default_provider();
    let end = end_of(first, &provider).map_err(|error| wrong(certificate, &error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let loaded =
        CertifiedKey::from_der(chain, private, &provider).map_err(|error| match error {
            Error::InconsistentKeys(_) => {
                wrong(key, &format!("not the key of {}", certificate.display()))
            }
            error => wrong(key, &error),
        })?;
    if let Some(warning) = end.and_then(|end| ends_soon(end, SystemTime::now())) {
        tracing::warn!("{}: {warning}", certificate.display());
    }
    Ok(Arc::new(loaded))
}

/// Returns the end of a certificate's life, as the library tells it of a certificate that is
/// checked in the far future.
fn end_of(
    certificate: &CertificateDer<'_>,
    provider: &CryptoProvider,
) -> Result<Option<UnixTime>, Error> {
    let future = UnixTime::since_unix_epoch(Duration::from_secs(u64::from(u32::MAX) * 64));
    let checked = verify_server_cert_signed_by_trust_anchor(
        &ParsedCertificate::try_from(certificate)?,
        &RootCertStore::empty(),
        &[],
        future,
        provider.signature_verification_algorithms.all,
    );
    Ok(match checked {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Some(not_after)
        }
        _ => None,
    })
}

/// Returns a warning for the log, if a certificate has ended or ends soon.
fn ends_soon(end: UnixTime, now: SystemTime) -> Option<String> {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    match end.as_secs().checked_sub(now) {
        None | Some(0) => Some("the certificate has expired".to_owned()),
        Some(rest) if rest < ENDS_SOON.as_secs() => {
            Some(format!("the certificate expires in {} min", rest / 60))
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn the_end_of_a_certificate_is_known_and_told_a_day_before() {
        let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.not_after = date_time_ymd(2030, 1, 2);
        let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let end = end_of(made.der(), &ring::default_provider()).unwrap().unwrap();
        assert_eq!(end.as_secs(), 1_893_542_400);
        let told = |before: u64| {
            let now = Duration::from_secs(end.as_secs() - before);
            ends_soon(end, SystemTime::UNIX_EPOCH + now)
        };
        assert_eq!(told(2 * 24 * 60 * 60), None);
        assert_eq!(told(600).as_deref(), Some("the certificate expires in 10 min"));
        assert_eq!(told(0).as_deref(), Some("the certificate has expired"));
    }
}
