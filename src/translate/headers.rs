//! Table E (being built).
use crate::Millis;
use crate::config::Key;
use crate::error::Error;

/// Name (in lower case) and value.
pub type Header = (String, String);

/// Look-up by name.
pub trait Headers {
    /// The first value.
    fn value(&self, name: &str) -> Option<&str>;
}

impl Headers for [Header] {
    fn value(&self, name: &str) -> Option<&str> {
        self.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Those headers of the client that the exchange needs later.
#[must_use]
pub fn kept(headers: &[Header]) -> Vec<Header> {
    headers.to_vec()
}
/// All headers for the upstream, beside `host` and `content-length`.
///
/// # Errors
/// No credentials.
pub fn to_upstream(_client: &[Header], _key: &Key, _stream: bool) -> Result<Vec<Header>, Error> {
    Ok(Vec::new())
}
/// Those headers of the upstream that the client gets, renamed.
#[must_use]
pub fn to_client(_upstream: &[Header], _now: Millis) -> Vec<Header> {
    Vec::new()
}
/// Whether a text can be a header's value.
#[must_use]
pub fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}
