//! The interface of the protocols that upstreams speak, and the requests that they write.

use super::client::ClientRequest;
use crate::StopReason;
use crate::answer::AnswerReader;
use crate::config::{Key, Settings, Upstream};
use crate::error::Error;
use crate::headers::{self, Header};
use crate::model::request_context::RequestContext;
use crate::observe::warning::Warnings;
use crate::tokens::counted::TokenCount;
use crate::upstream_error::refused::Refused;

/// A protocol that upstreams speak: how requests are written in it, and answers read.
pub(crate) trait UpstreamProtocol: Sync {
    /// Returns the path of requests, below the upstream's base path.
    fn endpoint(&self) -> &'static str;

    /// Returns all headers of a request, besides `host` and `content-length`.
    ///
    /// # Errors
    /// There is no credential to send.
    fn headers(&self, client: &[Header], key: &Key, stream: bool) -> Result<Vec<Header>, Error> {
        headers::to_upstream(client, key, stream)
    }

    /// Returns the header with a secret of the gateway's own, which replaces what a client sent;
    /// `None` where the client's is used.
    fn own_credential(&self, key: &Key) -> Option<(&'static str, String)> {
        headers::bearer(key)
    }

    /// Writes a request without what the upstream refused.
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

    /// Returns the path at which an upstream counts tokens; `None` if it cannot.
    fn count_path(&self, upstream: &Upstream) -> Option<String>;

    /// Writes the request that has an upstream count tokens; `None` if the upstream cannot count
    /// them.
    fn write_count(&self, client: &ClientRequest<'_>) -> Option<CountRequest>;

    /// Whether a request with this context can have what is refused. Where it has not, an error
    /// that names it means something else.
    fn may_refuse(&self, refused: &Refused, context: &RequestContext) -> bool;

    /// Returns true if calls and results can be written as words, where the upstream refuses how
    /// they are paired.
    fn rebuilds_calls(&self) -> bool {
        false
    }

    /// Returns true if later requests are written without what was refused of an earlier one.
    fn remembers_refusals(&self) -> bool {
        false
    }

    /// Returns true if a message may begin while nothing of it is known, so that pings can follow.
    /// Where its beginning is the upstream's own, the client must wait for that.
    fn begins_in_silence(&self) -> bool {
        true
    }

    /// Returns true if the upstream's list of models has the form of the Messages API.
    fn lists_in_messages(&self) -> bool {
        false
    }

    /// Starts to read an answer.
    fn reader(&self, context: &mut RequestContext, settings: &Settings) -> Box<dyn AnswerReader>;
}

/// Outcome of translating a request.
#[derive(Debug)]
pub enum Translated {
    /// The request goes to an upstream.
    Send {
        /// Name of the upstream in the configuration.
        upstream: String,
        /// The request in the upstream's protocol.
        body: Vec<u8>,
        /// Facts of the request that reading the answer needs.
        context: Box<RequestContext>,
    },
    /// The request is answered here, without an upstream.
    Answer {
        /// Facts of the request that writing the answer needs.
        context: Box<RequestContext>,
        /// The text; none if empty.
        text: String,
        /// `stop_reason`
        stop_reason: StopReason,
    },
}

/// A request that has an upstream count tokens.
#[derive(Debug)]
pub(crate) struct CountRequest {
    /// Name of the upstream in the configuration.
    pub upstream: String,
    /// The request for its tokenizer.
    pub body: Vec<u8>,
    /// Tokens that the tokenizer is not shown.
    pub beside: u64,
    /// True if older versions of this server refuse the request.
    pub may_be_older: bool,
    /// Facts of the request that reading its answer needs.
    pub context: Box<RequestContext>,
}
