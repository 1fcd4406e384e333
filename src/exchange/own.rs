//! Requests of Creole's own, for a model that the operator names: to the judge for verdicts
//! (`judging`), and for descriptions of images (`describing`). This file sends them, reads their
//! answers, and notes what the next one leaves out after a refusal.
//!
//! They are no requests of the client's. Of its headers only the trace goes along, with the count of hosts that were
//! passed, and the credential, with the beta of its kind, if that is what the upstream wants. With several upstreams
//! the configuration refuses the latter (`config/named_model.rs`): the client may have sent it for another one.

use super::Exchange;
use super::body::{first_of_body, is_whole};
use super::seam::Call;
use crate::config::{Key, Protocol, Upstream};
use crate::error::Error;
use crate::headers::{self, Header};
use crate::json;
use crate::model::request_context::RequestContext;
use crate::profile::ReasoningOnly;
use crate::protocols::{self, Refused, Translated};
use crate::text::words;
use crate::upstream_error;

/// Maximum number of requests for one answer: a server may refuse a parameter, and then a second
/// one.
const REQUESTS_MAX: usize = 3;

/// Answer to a request of Creole's own.
pub(super) struct OwnMessage {
    /// Text of all text blocks of the answer.
    pub(super) text: String,
    pub(super) stop_reason: Option<&'static str>,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
}

impl Exchange {
    /// Writes the call for a body, which is one of the Messages API; returns nothing if there can
    /// be none.
    pub(super) fn own_call(
        &self,
        (upstream, model): (&Upstream, &str),
        refused: &[Refused],
        body: &str,
    ) -> Option<(Call, Box<RequestContext>)> {
        let written = protocols::own_request(refused, body, &self.config, (upstream, model));
        let Translated::Send { body, context, .. } = written.ok()? else { return None };
        let path =
            format!("{}/{}", upstream.base_path, protocols::of(upstream.protocol).endpoint());
        let headers = own_headers(&self.client.headers, upstream).ok()?;
        let upstream = upstream.name.clone();
        Some((Call { upstream, path, headers, body, fetch: None }, context))
    }

    /// Reads the answer to a request of Creole's own, in the protocol of its upstream.
    ///
    /// # Errors
    /// The upstream refused, or what it sent is no answer.
    pub(super) fn read_own(
        &self,
        protocol: Protocol,
        status: u16,
        body: &[u8],
        context: &RequestContext,
    ) -> Result<OwnMessage, Error> {
        if !(200..300).contains(&status) {
            return Err(upstream_error::from_upstream(status, body, context));
        }
        let (mut context, settings) = (Box::new(context.clone()), &self.config.settings);
        // What a model only thinks is not what it says.
        context.profile.reasoning_only = ReasoningOnly::Keep;
        let mut answer = protocols::answer(protocol, context, settings, self.ids);
        let mut message = Vec::new();
        // Some servers send a stream, whatever they are asked for.
        if first_of_body(body).is_some_and(is_whole) {
            answer.handle_whole(body, &mut message)?;
        } else {
            answer.handle_piece(body, &mut message)?;
            answer.handle_end(&mut message)?;
        }
        let report = answer.report();
        Ok(OwnMessage {
            text: text_of(&message),
            stop_reason: report.stop_reason,
            input_tokens: report.input_tokens,
            output_tokens: report.output_tokens,
        })
    }
}

/// Returns true if the upstream refused something that can be left out, and adds it to `refused`.
pub(super) fn can_ask_again(
    refused: &mut Vec<Refused>,
    protocol: Protocol,
    error: &Error,
    context: &RequestContext,
) -> bool {
    let protocol = protocols::of(protocol);
    let Some(rejection) = error.rejection() else { return false };
    let new = rejection.reasons.iter().find_map(|reason| {
        Refused::of(reason, &rejection.message, context)
            // Without what is asked about, there is nothing to ask.
            .filter(|new| !matches!(new, Refused::Images | Refused::Documents))
            .filter(|new| protocol.may_refuse(new, context) && !refused.contains(new))
    });
    let is_new = new.is_some() && refused.len().saturating_add(1) < REQUESTS_MAX;
    refused.extend(new.filter(|_| is_new));
    is_new
}

fn own_headers(client: &[Header], upstream: &Upstream) -> Result<Vec<Header>, Error> {
    let is_own = |name: &str| {
        name.starts_with("anthropic-")
            || upstream.key != Key::Client && headers::CREDENTIALS.contains(&name)
    };
    let betas = oauth_betas(client).filter(|_| upstream.key == Key::Client);
    let client = client.iter().filter(|(name, _)| !is_own(name)).cloned().chain(betas);
    let client: Vec<_> = client.collect();
    let protocol = protocols::of(upstream.protocol);
    let mut headers = protocol.headers(&client, &upstream.key, false)?;
    headers::set_own(&upstream.headers, &mut headers);
    Ok(headers)
}

/// Returns the betas that name the kind of the client's credential: Anthropic takes a token of
/// OAuth only with one.
fn oauth_betas(client: &[Header]) -> Option<Header> {
    let sent = client.iter().filter(|(name, _)| name == "anthropic-beta");
    let betas = sent.flat_map(|(_, value)| value.split(',')).map(str::trim);
    let betas: Vec<_> = betas.filter(|beta| beta.starts_with("oauth-")).collect();
    (!betas.is_empty()).then(|| ("anthropic-beta".to_owned(), betas.join(",")))
}

/// Returns the text of all text blocks of a message.
fn text_of(message: &[u8]) -> String {
    let message = words::lossy(message);
    let mut said = String::new();
    for block in json::elements(json::member(&message, "content").unwrap_or("[]")) {
        let is_text = json::member(block, "type").is_some_and(|kind| kind == "\"text\"");
        if let Some(text) = json::member(block, "text").and_then(json::string).filter(|_| is_text) {
            said.push_str(&text.decode());
        }
    }
    said
}
