//! Interface of the protocols that clients use.

use std::fmt;

use crate::answer::AnswerWriter;
use crate::config::{Config, Upstream};
use crate::error::Error;
use crate::headers::Header;
use crate::ids::Ids;
use crate::model::Request;
use crate::observe::warning::Warnings;
use crate::tokens::counted::TokenCount;

/// Protocol of clients, in which their requests are read, and answers and errors are written.
pub(crate) trait ClientProtocol: Sync {
    /// Returns the endpoint at a path, which has no query and no slash at its end; `None` if the
    /// protocol has no such path.
    fn endpoint(&self, path: &str) -> Option<Endpoint>;

    /// Returns true if a path, which has no query, is the protocol's alone, whether or not there is
    /// an endpoint.
    fn owns(&self, path: &str) -> bool;

    /// Parses a request body.
    ///
    /// # Errors
    /// The body is no request of the protocol.
    fn read<'a>(
        &self,
        body: &'a str,
        purpose: Purpose,
        warnings: &mut Warnings,
    ) -> Result<Request<'a>, Error>;

    /// Refuses a request that cannot be served, warns of parts that are left out, and returns the
    /// upstream with its name for the model.
    ///
    /// # Errors
    /// The request cannot be served.
    fn check<'c>(
        &self,
        request: &Request<'_>,
        model: &'c str,
        route: Option<(&'c Upstream, &'c str)>,
        headers: &[Header],
        calls_mcp_here: bool,
        warnings: &mut Warnings,
    ) -> Result<(&'c Upstream, &'c str), Error>;

    /// Refuses a conversation that the vendor's own API would refuse.
    ///
    /// # Errors
    /// The conversation breaks a rule of the vendor's API.
    fn check_strictly(&self, request: &Request<'_>) -> Result<(), Error>;

    /// Creates the writer of an answer. `stream`: true if the client gets events.
    fn writer(&self, stream: bool, ids: Ids) -> Box<dyn AnswerWriter>;

    /// Writes the body of an error response.
    fn write_error(&self, error: &Error, request_id: &str, out: &mut Vec<u8>);

    /// Writes the event that ends a stream with an error.
    fn write_error_event(&self, error: &Error, request_id: &str, out: &mut Vec<u8>);

    /// Returns the event that keeps a stream alive, as bytes.
    fn ping(&self) -> &'static [u8];

    /// Writes the answer to a request for a token count.
    fn write_count(&self, count: TokenCount) -> Vec<u8>;

    /// Returns true if a client with these headers uses the protocol for lists of models.
    fn lists_for(&self, headers: &[Header]) -> bool;

    /// Returns the kind of client for which a list of models is written.
    fn list_for(&self, headers: &[Header]) -> ListFor;

    /// Writes the list of the configured models.
    fn write_models(&self, config: &Config, list_for: ListFor) -> Vec<u8>;

    /// Rewrites an upstream's list of models; `None` if the body is no list.
    fn rewrite_models(&self, body: &[u8], list_for: ListFor) -> Option<Vec<u8>>;

    /// Writes the description of one model, with its id as written in the request's path.
    ///
    /// # Errors
    /// No request for the model would have a route.
    fn write_model(&self, config: &Config, id: &str) -> Result<Vec<u8>, Error>;
}

/// Purpose for which an upstream request is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Purpose: an answer of the upstream for the client.
    Answer,
    /// Purpose: the upstream shall count the request's tokens, for which `max_tokens` is not
    /// required.
    Count,
}

/// Prints no more than that there is a protocol, which has no state.
impl fmt::Debug for dyn ClientProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientProtocol")
    }
}

/// Kind of client for which a list of models is written, because Claude Code needs other ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListFor {
    /// Client other than Claude Code, which gets the names unchanged.
    Anyone,
    /// Claude Code, which gets ids with a prefix that makes Claude Code show the models.
    ClaudeCode,
}

/// Endpoint of a protocol for which Creole reads the client's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// Endpoint that answers with a model's message.
    Answer,
    /// Endpoint that counts the tokens of a request.
    Count,
}
