//! Protocols of upstreams and clients, one folder each, without knowledge of each other. Only this
//! file knows all protocols.
//!
//! A request is parsed and checked once (`client_request`). Then the upstream's protocol writes the
//! upstream request: `chat` and `responses` from the decisions in `decide` (repaired turns, tools,
//! thinking), `messages` as a list of edits to the client's own bytes.

mod breakpoints;
pub(crate) mod chat;
mod clearing;
pub(crate) mod client;
mod client_request;
mod conversation;
mod count;
mod decide;
mod effort;
mod fields;
mod local;
pub(crate) mod messages;
mod own_tools;
pub(crate) mod responses;
mod sizes;
#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::panic)]
mod tests;
mod upstream;
mod words;

use crate::answer::json::{JsonAnswer, ObjectKind, ObjectReader};
use crate::answer::{Answer, AnswerReader, ReaderOutput, Rules};
pub(crate) use crate::answer::{AnswerWriter, WriterPhase};
use crate::config::{Config, CountTokens, Protocol, Settings, Upstream};
use crate::error::{Error, ErrorKind, Fault};
use crate::headers::Header;
use crate::ids::Ids;
use crate::model::request_context::RequestContext;
use crate::observe::warning::Warnings;
pub use crate::tokens::counted::TokenCount;
pub use crate::upstream_error::refused::{Refused, WindowSpace};
use chat::read_answer::ChatReader;
use client::{ClientProtocol, Endpoint};
use client_request::ClientRequest;
use messages::relay_answer::MessagesRelay;
pub(crate) use own_tools::{calls_mcp, runs_here};
pub use upstream::Translated;
pub(crate) use upstream::{CountRequest, UpstreamProtocol};

/// Returns the implementation of an upstream protocol that the configuration names.
#[must_use]
pub(crate) fn of(protocol: Protocol) -> &'static dyn UpstreamProtocol {
    match protocol {
        Protocol::Openai => &chat::Chat,
        Protocol::Anthropic => &messages::Messages,
        Protocol::Responses => &responses::Responses,
        #[cfg(test)]
        Protocol::Lines => &tests::lines::Lines,
    }
}

/// Protocols that clients use. Errors without a request are written in the first.
pub(crate) const CLIENTS: &[&dyn ClientProtocol] = &[
    MESSAGES,
    #[cfg(test)]
    &tests::line_client::LineClient,
];

/// Protocol of the requests that Creole itself makes, in which its steps write and read.
pub(crate) const MESSAGES: &dyn ClientProtocol = &messages::Messages;

/// Returns the protocol of a client's request, and its endpoint, by the path.
#[must_use]
pub(crate) fn client_of(path: &str) -> Option<(&'static dyn ClientProtocol, Endpoint)> {
    CLIENTS.iter().find_map(|protocol| Some((*protocol, protocol.endpoint(path)?)))
}

/// Returns the protocol of errors for which there is no request.
#[must_use]
pub(crate) fn first_client() -> &'static dyn ClientProtocol {
    CLIENTS.first().copied().unwrap_or(MESSAGES)
}

/// Returns true if a path belongs to a protocol of clients.
#[must_use]
pub(crate) fn is_of_client(path: &str) -> bool {
    CLIENTS.iter().any(|protocol| protocol.owns(path))
}

/// Returns the protocol that a client with these headers uses for lists of models, if they tell.
#[must_use]
pub(crate) fn lists_for(headers: &[Header]) -> Option<&'static dyn ClientProtocol> {
    CLIENTS.iter().copied().find(|protocol| protocol.lists_for(headers))
}

/// Returns the protocol in which a list of models is written for a client with these headers.
#[must_use]
pub(crate) fn list_protocol(headers: &[Header]) -> &'static dyn ClientProtocol {
    lists_for(headers).unwrap_or_else(first_client)
}

/// Returns the protocol in which a request is written. For a request without an upstream, all
/// protocols give the same error.
fn for_request(client: &ClientRequest<'_>) -> &'static dyn UpstreamProtocol {
    let mut protocols = client.config.upstreams.values().map(|upstream| upstream.protocol);
    let first = protocols.next().unwrap_or(Protocol::Openai);
    // The body is parsed only if the upstreams use different protocols.
    let is_only = protocols.all(|protocol| protocol == first);
    let routed = if is_only { None } else { client.route() };
    of(routed.map_or(first, |upstream| upstream.protocol))
}

/// Translates the body of a request of the Messages API. `headers` are the client's headers that
/// are kept.
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

/// Translates the body of a request of the Messages API without the parts that the upstream
/// refused.
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
    let sender = Sender { protocol: MESSAGES, headers, can_run_tools: false };
    translate(refused, body, config, sender, warnings)
}

/// Sender of a request.
#[derive(Clone, Copy)]
pub(crate) struct Sender<'s> {
    pub(crate) protocol: &'static dyn ClientProtocol,
    /// Headers of the client that are kept for the upstream.
    pub(crate) headers: &'s [Header],
    /// True if the host can run server tools between the rounds of an answer.
    pub(crate) can_run_tools: bool,
}

/// Translates a request without the parts that the upstream refused.
///
/// # Errors
/// The request cannot be served.
pub(crate) fn translate(
    refused: &[Refused],
    body: &str,
    config: &Config,
    Sender { protocol, headers, can_run_tools }: Sender<'_>,
    warnings: &mut Warnings,
) -> Result<Translated, Error> {
    let client = ClientRequest { protocol, body, config, headers, target: None, can_run_tools };
    for_request(&client).write_request(&client, refused, warnings)
}

/// Writes a request of Creole's own for an upstream and its model, without the parts that the
/// upstream refused. `body` is in the format of the Messages API.
///
/// # Errors
/// The request cannot be served.
pub(crate) fn own_request(
    refused: &[Refused],
    body: &str,
    config: &Config,
    target: (&Upstream, &str),
) -> Result<Translated, Error> {
    let client = ClientRequest {
        protocol: MESSAGES,
        body,
        config,
        headers: &[],
        target: Some(target),
        can_run_tools: false,
    };
    // Warnings are discarded, because no client sent this request.
    of(target.0.protocol).write_request(&client, refused, &mut Warnings::new(false))
}

/// Answers a request of the Messages API for a token count with an estimate.
///
/// # Errors
/// The body is not a Messages request, or counting is switched off.
pub fn count_tokens(body: &str, config: &Config) -> Result<TokenCount, Error> {
    estimate(MESSAGES, body, config)
}

/// Answers a request for a token count with an estimate.
///
/// # Errors
/// The body is no request of the protocol, or counting is switched off.
pub(crate) fn estimate(
    protocol: &'static dyn ClientProtocol,
    body: &str,
    config: &Config,
) -> Result<TokenCount, Error> {
    if config.settings.count_tokens == CountTokens::Off {
        let message = "count_tokens: this is switched off in this gateway";
        return Err(Error::new(Fault::Client, ErrorKind::NotFound, message));
    }
    let headers = &[];
    let client =
        ClientRequest { protocol, body, config, headers, target: None, can_run_tools: true };
    for_request(&client).estimate(&client)
}

/// Returns the upstream's path for token counts, or `None` if the upstream cannot count or the
/// configuration does not ask upstreams.
#[must_use]
pub(crate) fn count_path(config: &Config, upstream: &Upstream) -> Option<String> {
    let is_wanted = config.settings.count_tokens == CountTokens::Upstream;
    is_wanted.then(|| of(upstream.protocol).count_path(upstream)).flatten()
}

/// Writes the request that makes an upstream count tokens, or returns `None` if the upstream cannot
/// count or the configuration does not ask upstreams.
#[must_use]
pub(crate) fn count_request(
    protocol: &'static dyn ClientProtocol,
    body: &str,
    config: &Config,
    headers: &[Header],
) -> Option<CountRequest> {
    let client =
        ClientRequest { protocol, body, config, headers, target: None, can_run_tools: true };
    let is_wanted = config.settings.count_tokens == CountTokens::Upstream;
    is_wanted.then(|| for_request(&client).write_count(&client)).flatten()
}

/// Creates the answer for a client of the Messages API, translated from an upstream of the given
/// protocol.
#[must_use]
pub fn answer(
    protocol: Protocol,
    context: Box<RequestContext>,
    settings: &Settings,
    ids: Ids,
) -> Answer {
    let writer = MESSAGES.writer(context.stream, ids);
    answer_of_round(protocol, context, settings, (ids, writer))
}

/// Creates the answer of one round, whose upstream speaks the given protocol, for the writer of the
/// client's message.
#[must_use]
pub(crate) fn answer_of_round(
    protocol: Protocol,
    mut context: Box<RequestContext>,
    settings: &Settings,
    (ids, writer): (Ids, Box<dyn AnswerWriter>),
) -> Answer {
    let rules = Rules::of(settings, &context);
    let reader = of(protocol).reader(&mut context, settings);
    Answer::new(context, rules, ids, reader, writer)
}

/// Creates a reader for an answer in JSON, whose objects are passed to `objects`. The reader
/// switches to another protocol if the objects turn out to belong to that protocol.
fn json_answer(objects: Box<dyn ObjectReader>, settings: &Settings) -> Box<dyn AnswerReader> {
    Box::new(JsonAnswer::new(objects, object_reader, settings.event_bytes_max))
}

/// Returns the reader for an upstream whose answer turns out to use a different protocol.
fn object_reader(kind: ObjectKind, to: &ReaderOutput<'_>) -> Box<dyn ObjectReader> {
    match kind {
        ObjectKind::Chunks => Box::new(ChatReader::new(to.context, to.context.ids_used.clone())),
        ObjectKind::Messages => Box::new(MessagesRelay::new(to.context.stream)),
    }
}
