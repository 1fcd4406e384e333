//! Whole bodies to whole bodies (being built).
pub mod error;
pub mod headers;
pub mod models;
pub mod signature;
pub mod tool_id;
pub mod tools;

use crate::asked::Asked;
use crate::config::Config;
use crate::error::Error;
use crate::warning::Warnings;
use headers::Header;

/// What becomes of a request.
#[derive(Debug)]
pub enum Translated {
    /// It goes to an upstream.
    Send {
        /// Its name in the configuration.
        upstream: String,
        /// The Chat Completions request.
        body: Vec<u8>,
        /// What the answer must know.
        asked: Box<Asked>,
        /// The guards that acted.
        guards: Vec<&'static str>,
    },
    /// It is answered here.
    Answer {
        /// What the answer must know.
        asked: Box<Asked>,
        /// The text; none if empty.
        text: String,
        /// `stop_reason`
        stop_reason: &'static str,
        /// The guards that acted.
        guards: Vec<&'static str>,
    },
}

/// Translates the body of `POST /v1/messages`. `headers` are those of the client that are kept.
///
/// # Errors
/// The request cannot be served.
pub fn request(
    _body: &str,
    _config: &Config,
    _headers: &[Header],
    _warnings: &mut Warnings,
) -> Result<Translated, Error> {
    Err(Error::misbehaved("not built"))
}

/// Answers `POST /v1/messages/count_tokens` with an estimate.
///
/// # Errors
/// The body is not a Messages request, or counting is switched off.
pub fn count_tokens(_body: &str, _config: &Config) -> Result<u64, Error> {
    Err(Error::misbehaved("not built"))
}
