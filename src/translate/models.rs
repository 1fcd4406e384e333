//! `/v1/models` (being built).
use crate::config::Config;
use crate::error::Error;
/// The list.
#[must_use]
pub fn list(_config: &Config) -> Vec<u8> {
    Vec::new()
}
/// One of them.
///
/// # Errors
/// There is none of that name.
pub fn one(_config: &Config, _id: &str) -> Result<Vec<u8>, Error> {
    Ok(Vec::new())
}
