//! Whole bodies to whole bodies.
//!
//! A request goes through three phases: it is read once (`anthropic`) and checked (`check`), its history is repaired
//! (`history`, `conversation`), and the body for the upstream is written straight into its buffer
//! (`messages`, `parts`), shaped by the upstream's profile. For an upstream that speaks Messages
//! itself, only what is wrong in the history is written anew (`native`).

pub(crate) mod chat;
pub(crate) mod messages;

use crate::config::{Config, CountTokens};
use crate::error::{Error, ErrorKind, Fault};
use crate::headers::Header;
use crate::model::request_context::RequestContext;
use crate::observe::warning::Warnings;
use crate::text::surrogates;
pub use crate::upstream_error::refused::{Refused, Room};
use chat::write_request::Aim;

/// What becomes of a request.
#[derive(Debug)]
pub enum Translated {
    /// It goes to an upstream.
    Send {
        /// Its name in the configuration.
        upstream: String,
        /// The request in the upstream's protocol.
        body: Vec<u8>,
        /// What the answer must know.
        context: Box<RequestContext>,
    },
    /// It is answered here.
    Answer {
        /// What the answer must know.
        context: Box<RequestContext>,
        /// The text; none if empty.
        text: String,
        /// `stop_reason`
        stop_reason: &'static str,
    },
}

/// Translates the body of `POST /v1/messages`. `headers` are those of the client that are kept.
///
/// # Errors
/// The request cannot be served.
pub fn request(
    body: &str,
    config: &Config,
    headers: &[Header],
    warnings: &mut Warnings,
) -> Result<Translated, Error> {
    match messages::relay::translate(body, config, warnings)? {
        Some(translated) => Ok(translated),
        None => chat::write_request::translate(body, config, headers, Aim::Answer(&[]), warnings),
    }
}

/// Translates a request without the parts that the upstream refused.
///
/// # Errors
/// The request cannot be served.
pub fn request_without(
    refused: &[Refused],
    body: &str,
    config: &Config,
    headers: &[Header],
    warnings: &mut Warnings,
) -> Result<Translated, Error> {
    if !messages::relay::takes(body, config) {
        return chat_request_without(refused, body, config, headers, warnings);
    }
    let mut without = surrogates::without_halves(body).into_owned();
    for refused in refused {
        without = messages::relay::Without { refused, warnings }.request(&without)?.into_owned();
    }
    request(&without, config, headers, warnings)
}

/// Translates a request for an upstream of Chat Completions, without the parts that it refused.
///
/// # Errors
/// The request cannot be served.
pub(crate) fn chat_request_without(
    refused: &[Refused],
    body: &str,
    config: &Config,
    headers: &[Header],
    warnings: &mut Warnings,
) -> Result<Translated, Error> {
    chat::write_request::translate(body, config, headers, Aim::Answer(refused), warnings)
}

/// Answers `POST /v1/messages/count_tokens` with an estimate.
///
/// # Errors
/// The body is not a Messages request, or counting is switched off.
pub fn count_tokens(body: &str, config: &Config) -> Result<u64, Error> {
    if config.settings.count_tokens == CountTokens::Off {
        let message = "count_tokens: this is switched off in this gateway";
        return Err(Error::new(Fault::Client, ErrorKind::NotFound, message));
    }
    chat::write_request::estimate(body, config)
}
