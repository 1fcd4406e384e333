//! Interface of the protocols that upstreams use, and the requests written in these protocols.

use super::client_request::ClientRequest;
use crate::StopReason;
use crate::answer::AnswerReader;
use crate::config::{Key, Settings, Upstream};
use crate::error::Error;
use crate::headers::{self, Header};
use crate::model::Request;
use crate::model::request_context::RequestContext;
use crate::observe::warning::Warnings;
use crate::tokens::counted::TokenCount;
use crate::upstream_error::refused::Refused;

/// Protocol of upstreams, which writes their requests and reads their answers.
pub(crate) trait UpstreamProtocol: Sync {
    /// Returns the path of upstream requests, relative to the upstream's base path.
    fn endpoint(&self) -> &'static str;

    /// Returns all headers of a request, besides `host` and `content-length`.
    ///
    /// # Errors
    /// There is no credential to send.
    fn headers(&self, client: &[Header], key: &Key, stream: bool) -> Result<Vec<Header>, Error> {
        headers::to_upstream(client, key, stream)
    }

    /// Returns the header with the gateway's own credential, which replaces the client's
    /// credential; `None` if the client's credential is used.
    fn own_credential(&self, key: &Key) -> Option<(&'static str, String)> {
        headers::bearer(key)
    }

    /// Writes a request without the parts that the upstream refused.
    ///
    /// # Errors
    /// The request cannot be served.
    fn write_request(
        &self,
        client: &ClientRequest<'_>,
        refused: &[Refused],
        warnings: &mut Warnings,
    ) -> Result<Translated, Error>;

    /// Estimates the input tokens of a request.
    ///
    /// # Errors
    /// The request cannot be served.
    fn estimate(&self, client: &ClientRequest<'_>) -> Result<TokenCount, Error>;

    /// Returns the upstream's path for token counts, or `None` if the upstream cannot count.
    fn count_path(&self, upstream: &Upstream) -> Option<String>;

    /// Writes the request that makes an upstream count tokens, or returns `None` if the upstream
    /// cannot count.
    fn write_count(&self, client: &ClientRequest<'_>) -> Option<CountRequest>;

    /// Returns true if the request that `context` describes can contain the part `refused`. If
    /// false, an upstream's error that names the part has another cause.
    fn may_refuse(&self, refused: &Refused, context: &RequestContext) -> bool;

    /// Returns true if tool calls and results can be rewritten as text for an upstream that refuses
    /// their pairing.
    fn rebuilds_calls(&self) -> bool {
        false
    }

    /// Returns true if request parts that the upstream refused once are left out of later requests.
    fn remembers_refusals(&self) -> bool {
        false
    }

    /// Returns true if a message may begin before the upstream has sent anything, so that pings can
    /// follow. If false, the client must wait for the start of the upstream's message.
    fn begins_in_silence(&self) -> bool {
        true
    }

    /// Returns true if the upstream's list of models has the form of the Messages API.
    fn lists_in_messages(&self) -> bool {
        false
    }

    /// Creates the reader for an upstream's answer in this protocol.
    fn reader(&self, context: &mut RequestContext, settings: &Settings) -> Box<dyn AnswerReader>;
}

/// Result of translating a client request.
#[derive(Debug)]
pub enum Translated {
    /// Request to send to an upstream.
    Send {
        /// Name of the upstream in the configuration.
        upstream: String,
        /// Request body in the upstream's protocol.
        body: Vec<u8>,
        /// Facts about the request that are needed to read the answer.
        context: Box<RequestContext>,
    },
    /// Answer made by Creole, without an upstream call.
    Answer {
        /// Facts about the request that are needed to write the answer.
        context: Box<RequestContext>,
        /// Text of the answer; if empty, the answer has no text block.
        text: String,
        /// Value of `stop_reason` in the answer.
        stop_reason: StopReason,
    },
}

impl Translated {
    /// Returns the request to send to the upstream, with the body that was written. Requests with
    /// `max_tokens` 0 only fill a prompt cache at Anthropic, so they are answered without an
    /// upstream.
    pub(crate) fn written(
        request: &Request<'_>,
        upstream: &Upstream,
        body: Vec<u8>,
        mut context: Box<RequestContext>,
    ) -> Self {
        if request.max_tokens == Some(0) {
            // No upstream reads the prompt.
            context.input_tokens = 0;
            let text = String::new();
            return Self::Answer { context, text, stop_reason: StopReason::MaxTokens };
        }
        Self::Send { upstream: upstream.name.clone(), body, context }
    }

    /// Returns the answer of a request that the steps have answered, so that no model is asked.
    pub(crate) fn without_model(self) -> Self {
        let (Self::Send { mut context, .. } | Self::Answer { mut context, .. }) = self;
        // No upstream reads the prompt.
        context.input_tokens = 0;
        Self::Answer { context, text: String::new(), stop_reason: StopReason::EndTurn }
    }
}

/// Request that makes an upstream count tokens.
#[derive(Debug)]
pub(crate) struct CountRequest {
    /// Name of the upstream in the configuration.
    pub upstream: String,
    /// Body of the request to the upstream's tokenizer.
    pub body: Vec<u8>,
    /// Estimated number of tokens in the parts of the client's request that are not sent to the
    /// tokenizer.
    pub beside: u64,
    /// True if older versions of the server reject the request.
    pub may_be_older: bool,
    /// Facts about the request that are needed to read the answer.
    pub context: Box<RequestContext>,
}
