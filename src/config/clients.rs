//! Keys that clients must send, for hosts whose upstreams get the operator's key.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::credentials::{SecretPlace, Secrets, check_credential};
use crate::setting::keys;

/// Maximum length, in bytes, of the name of a client key, which is a label value in metrics.
const NAME_BYTES_MAX: usize = 64;

/// Maximum number of client keys, because each has its own label value in metrics.
const KEYS_MAX: usize = 1000;

/// Keys that clients may send, by name. Only their SHA-256 hashes are stored.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClientKeys(Vec<(String, [u8; 32])>);

keys! {
    /// Client key, as written in the document.
    pub(super) ClientKeyDocument {
        /// Name of the environment variable, or of the Worker's secret, that holds the key.
        env: Option<String> = None;
        /// Former name of `env`.
        secret: Option<String> = None;
        /// Absolute path of the file that holds the key, for the gateway, which reads the file
        /// again when it changes.
        file: Option<String> = None;
        /// Name of the key in logs and metrics. Absent: the name of the variable or of the file.
        name: Option<String> = None;
    }
}

impl ClientKeys {
    /// Returns true if there are no client keys, so that every client is admitted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a client key with a name.
    ///
    /// # Errors
    /// The reason, which does not quote the key.
    pub(super) fn add(&mut self, name: &str, key: &str) -> Result<(), String> {
        let key = bare(key);
        check_credential(key)?;
        let hash = hash(key);
        if let Some((other, _)) = self.0.iter().find(|(_, known)| *known == hash) {
            return Err(format!("expected a key of its own, but found that of {other}"));
        }
        if self.0.iter().any(|(known, _)| known == name) {
            return Err(format!("expected a name of its own, but {name} has another key"));
        }
        if self.0.len() >= KEYS_MAX {
            return Err(format!("expected at most {KEYS_MAX} keys"));
        }
        self.0.push((name.to_owned(), hash));
        Ok(())
    }

    /// Adds a client key that the document names.
    ///
    /// # Errors
    /// The member of the document that is wrong, and the reason.
    pub(super) fn add_document(
        &mut self,
        document: &ClientKeyDocument,
        secrets: &Secrets<'_>,
    ) -> Result<(), (&'static str, String)> {
        let [env, former, file] =
            [&document.env, &document.secret, &document.file].map(Option::as_deref);
        let place = SecretPlace::of(env, former, file);
        let key = place.read(secrets)?;
        let usual = place.name.rsplit(['/', '\\']).next().unwrap_or_default();
        let name = document.name.as_deref().unwrap_or(usual);
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_letter) {
            // The error does not quote the name: the default is the variable's name, which may be
            // the key itself.
            let expected = format!(
                "expected at most {NAME_BYTES_MAX} letters, digits and any of - _ . (absent: the name of the variable or file)"
            );
            return Err(("name", expected));
        }
        self.add(name, &key).map_err(|reason| (place.member, reason))
    }

    /// Returns the name of the first of `keys` that is a client key. The duration does not depend
    /// on how similar a wrong key is to a right one.
    pub(crate) fn name_of<'k>(&self, keys: impl Iterator<Item = &'k str>) -> Option<&str> {
        let mut found = None;
        for key in keys {
            let hash = hash(bare(key));
            for (name, known) in &self.0 {
                if bool::from(known.ct_eq(&hash)) {
                    found = found.or(Some(name.as_str()));
                }
            }
        }
        found
    }
}

/// Prints only the names of the keys, because configurations are printed.
impl fmt::Debug for ClientKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// Returns a key without the scheme `Bearer` before it, if there is one.
fn bare(key: &str) -> &str {
    let key = key.trim();
    match key.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim_start(),
        _ => key,
    }
}

fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

#[cfg(test)]
mod tests;
