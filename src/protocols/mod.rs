//! Protocols: each is a folder that knows nothing of the others. This file alone knows all of them.
//!
//! A request is read and checked once (`client`). The upstream's protocol then writes it: `chat` out of the turns of
//! its repaired history, `messages` as an edit list over the client's own bytes.

pub(crate) mod chat;
mod client;
pub(crate) mod messages;
mod upstream;

use crate::config::{Config, CountTokens, Protocol, Upstream};
use crate::error::{Error, ErrorKind, Fault};
use crate::headers::Header;
use crate::observe::warning::Warnings;
pub use crate::upstream_error::refused::{Refused, Space};
use client::ClientRequest;
pub use upstream::Translated;
pub(crate) use upstream::{CountRequest, UpstreamProtocol};

/// The protocol of upstreams that the configuration names so.
#[must_use]
pub(crate) fn of(protocol: Protocol) -> &'static dyn UpstreamProtocol {
    match protocol {
        Protocol::Openai => &chat::Chat,
        Protocol::Anthropic => &messages::Messages,
    }
}

/// The protocol in which a request is written. Where it goes to no upstream, each refuses it alike.
fn for_request(client: &ClientRequest<'_>) -> &'static dyn UpstreamProtocol {
    let mut protocols = client.config.upstreams.values().map(|upstream| upstream.protocol);
    let first = protocols.next().unwrap_or(Protocol::Openai);
    // Where there is a choice, the body is looked at.
    let is_only = protocols.all(|protocol| protocol == first);
    let routed = if is_only { None } else { client.route() };
    of(routed.map_or(first, |upstream| upstream.protocol))
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
    request_without(&[], body, config, headers, warnings)
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
    let client = ClientRequest { body, config, headers };
    for_request(&client).write_request(&client, refused, warnings)
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
    let client = ClientRequest { body, config, headers: &[] };
    for_request(&client).estimate(&client)
}

/// Where an upstream counts tokens; nothing where it cannot, or is not to be asked.
#[must_use]
pub(crate) fn count_path(config: &Config, upstream: &Upstream) -> Option<String> {
    let is_wanted = config.settings.count_tokens == CountTokens::Upstream;
    is_wanted.then(|| of(upstream.protocol).count_path(upstream)).flatten()
}

/// The request for the upstream's count of a request; nothing where it cannot count, or is not to be asked.
#[must_use]
pub(crate) fn count_request(
    body: &str,
    config: &Config,
    headers: &[Header],
) -> Option<CountRequest> {
    let client = ClientRequest { body, config, headers };
    let is_wanted = config.settings.count_tokens == CountTokens::Upstream;
    is_wanted.then(|| for_request(&client).write_count(&client)).flatten()
}
