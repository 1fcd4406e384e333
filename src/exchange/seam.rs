//! Types that an [`Exchange`](super::Exchange) and its host pass to each other.

use std::fmt;

use super::JSON;
use super::unreachable::Unreachable;
use crate::Millis;
use crate::error::{Error, ErrorKind, Fault};
use crate::headers::Header;
use crate::ids::Ids;
use crate::observe::report::Cause;
use crate::protocols;
use crate::steps::Nothing;

/// Status and headers of the response to the client. Header names are in lower case; the host adds
/// `content-length`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// HTTP status of the response to the client.
    pub status: u16,
    /// Headers for the client, except the headers that the host adds.
    pub headers: Vec<Header>,
}

impl Head {
    pub(super) fn add(&mut self, name: &str, value: String) {
        self.headers.push((name.to_owned(), value));
    }
}

/// Whole response to the client, which the host sends at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Status and headers of the response.
    pub head: Head,
    /// Body of the response; empty for a `HEAD` request.
    pub body: Vec<u8>,
}

impl Reply {
    /// Returns the response of a host that runs although its configuration is unusable. The host's
    /// log has the reason, which is not shown to clients.
    #[must_use]
    pub fn not_configured(seed: u128) -> Self {
        let message = "This gateway is not configured correctly; its log says why.";
        let error = Error::new(Fault::Operator, ErrorKind::Api, message);
        let mut reply = Self::of(&error, Ids::new(seed).request());
        reply.head.add("x-should-retry", "false".to_owned());
        reply
    }

    /// Writes the response to an error for which there is no exchange.
    pub(super) fn of(error: &Error, request_id: String) -> Self {
        let mut body = Vec::new();
        protocols::first_client().write_error(error, &request_id, &mut body);
        let mut head = Head { status: error.status, headers: Vec::new() };
        head.add("content-type", JSON.to_owned());
        head.add("request-id", request_id);
        Self { head, body }
    }
}

/// Instruction for the host on a client request, decided by the request's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestHead {
    /// Instruction to collect the request body and give the body to
    /// [`Exchange::handle_request_body`](super::Exchange::handle_request_body).
    Translate,
    /// Instruction to forward the request unchanged, and the answer too, because the request's path
    /// is not Creole's.
    PassThrough,
    /// Instruction to send the response that [`Exchange::poll_reply`](super::Exchange::poll_reply)
    /// returns.
    Answered,
}

/// Number of a call, which differs for each call of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u32);

/// Call that the host makes: an HTTP request to an upstream or to a web server, or a document to
/// read.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    /// Id of the call, with which the host passes the call's results to the exchange.
    pub id: CallId,
    /// Recipient of the call.
    pub to: To,
    /// Request path, which begins with the upstream's `base_path`; empty unless the call is for an
    /// upstream.
    pub path: String,
    /// Headers to send, complete except for `host` and `content-length`. The client's own headers
    /// are not added.
    pub headers: Vec<Header>,
    /// Body of the request, or the document; empty for `GET`.
    pub body: Vec<u8>,
}

/// Recipient of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// Upstream with this name in the configuration.
    Upstream(String),
    /// Web server, only for hosts that [can fetch](HostCan::fetch).
    Web(Fetch),
    /// Service that the configuration names, such as a web search, only for hosts that [can call
    /// services](HostCan::call_services).
    Service(Service),
    /// Reader of the host that extracts the text of a PDF, only for hosts that [can read
    /// documents](HostCan::read_documents). The body has the bytes that the client declares to be a
    /// PDF. They come from an untrusted source, so the host must isolate the reader. The text goes
    /// to [`Exchange::handle_document`](super::Exchange::handle_document).
    Document {
        /// Deadline for all documents of the request. Afterwards, only texts that the host has
        /// already extracted are used. The exchange itself sets no timeout for a document.
        until: Millis,
    },
}

/// Service that the configuration names. The host returns a redirection as an answer and does not
/// follow the redirection, because the call can carry a credential.
#[derive(Clone, PartialEq, Eq)]
pub struct Service {
    /// Name of the service in the configuration and in logs, such as `web_search`.
    pub name: &'static str,
    /// URL of the call. The query can contain words of the user, so the URL must not be logged.
    pub url: String,
    /// Cluster that the configuration names for the service, for hosts that connect to clusters
    /// alone; empty if the configuration names none.
    pub cluster: String,
    /// True if a client named the service, which must then not be in a private network or on the
    /// host's own machine.
    pub is_public: bool,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Web address to fetch. The host returns a redirection as an answer and does not follow the
/// redirection.
#[derive(Clone, PartialEq, Eq)]
pub struct Fetch {
    /// URL to fetch, which the configuration allows. The URL came from a client and may contain a
    /// signature, so the URL must not be logged.
    pub url: String,
    /// True if the web server may be in a private network, or on the host's own machine.
    pub may_be_private: bool,
    /// Cluster that the configuration names for such fetches, for hosts that connect to clusters
    /// alone; empty if the configuration names none.
    pub cluster: String,
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch")
            .field("may_be_private", &self.may_be_private)
            .finish_non_exhaustive()
    }
}

// The headers contain credentials, the body a prompt or a document.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("id", &self.id)
            .field("to", &self.to)
            .field("path", &self.path)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl Call {
    /// Returns the name of the upstream, if the call is for an upstream.
    #[must_use]
    pub fn upstream(&self) -> Option<&str> {
        match &self.to {
            To::Upstream(name) => Some(name),
            To::Web(_) | To::Service(_) | To::Document { .. } => None,
        }
    }

    /// Returns the HTTP method: `GET` for a call without a body, else `POST`. `GET` is used only
    /// with hosts that [can list models](HostCan::list_models), fetch or call services.
    #[must_use]
    pub fn method(&self) -> &'static str {
        if self.body.is_empty() { "GET" } else { "POST" }
    }
}

/// Instruction for the host on a call whose answer is not read any more. The host passes no more
/// results of the call to the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// Instruction to read the answer to its end, which is expected soon. A host that reads on for
    /// a moment can reuse the connection.
    ReadOut,
    /// Instruction to close the connection, because the upstream would go on sending unused text,
    /// for example after an unknown stop sequence.
    Cut,
}

/// Way in which an upstream's response body ended: completely or by a broken connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// End of a complete body, by the rules of HTTP.
    Complete,
    /// Break of the connection before the body was complete.
    Aborted,
}

/// Failures that the host detects, as opposed to errors that an upstream returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Client body that is larger than `request_bytes_max`.
    RequestTooLarge,
    /// Memory limit reached: the exchanges of the host together hold `buffered_bytes_max` bytes.
    Overloaded,
    /// Failure of DNS, TCP connect or TLS, or a connection that broke before an answer.
    Unreachable(Unreachable),
    /// Upstream answer that broke off before any byte was sent to the client. The client gets an
    /// error.
    BrokeOff,
    /// Upstream answer whose compression cannot be decoded, or that decodes to too many bytes.
    Undecodable,
    /// Failure for lack of a healthy server, or because the host's queues are full.
    NoHealthyUpstream,
    /// Timeout of the host before the head of the upstream's answer.
    Timeout,
    /// Client request for which the host has no route.
    NoRoute,
    /// Refusal of the client by the host, with the reason.
    Forbidden(&'static str),
    /// Invalid configuration of the route in the host, whose log has the reason.
    Misconfigured,
    /// Client body that ended before it was complete.
    RequestIncomplete,
    /// Client body that arrived too slowly.
    RequestTooSlow,
    /// Rest of an answer that is larger than the host can send at once.
    RestTooLarge,
}

impl Failure {
    /// Returns true if no upstream could be called, and the request is not at fault.
    pub(super) fn is_of_upstream(&self) -> bool {
        matches!(
            self,
            Self::NoRoute | Self::Unreachable(_) | Self::NoHealthyUpstream | Self::Timeout
        )
    }

    /// Returns the reason for a missing answer to a step's question.
    pub(super) fn as_nothing(&self) -> Nothing {
        match self {
            Self::Timeout => Nothing::TimedOut,
            Self::BrokeOff | Self::Undecodable => Nothing::BrokeOff,
            Self::Unreachable(Unreachable::NotAllowed) => Nothing::NotAllowed,
            _ => Nothing::Unreachable,
        }
    }

    /// Returns the failure's cause for the report, and the error for the client.
    pub(super) fn into_error(self) -> (Cause, Error) {
        match self {
            Self::RequestTooLarge => (Cause::RequestTooLarge, request_too_large()),
            Self::Overloaded => {
                let message = "This gateway is holding as much as it may. Try again.";
                (Cause::Overloaded, Error::new(Fault::Operator, ErrorKind::Overloaded, message))
            }
            Self::Unreachable(reason) => (Cause::Unreachable, unreachable_upstream(&reason)),
            Self::BrokeOff => (Cause::UpstreamBrokeOff, Error::answer_broke_off()),
            Self::Undecodable => (Cause::UpstreamBrokeOff, Error::misbehaved(ENCODING_UNREADABLE)),
            Self::NoHealthyUpstream => {
                let message = "No upstream is healthy. Try again.";
                (
                    Cause::NoHealthyUpstream,
                    Error::new(Fault::Upstream, ErrorKind::Overloaded, message),
                )
            }
            Self::Timeout => {
                let message = "Upstream did not answer in time.";
                (Cause::Timeout, Error::new(Fault::Upstream, ErrorKind::Timeout, message))
            }
            Self::NoRoute => {
                let message = "This gateway has no such route.";
                (Cause::NoRoute, Error::new(Fault::Operator, ErrorKind::NotFound, message))
            }
            Self::Forbidden(reason) => {
                (Cause::Forbidden, Error::new(Fault::Client, ErrorKind::Permission, reason))
            }
            Self::Misconfigured => {
                let message = "This gateway's configuration of the route is not valid: its operator must mend it";
                let error =
                    Error::new(Fault::Operator, ErrorKind::Api, message).with_should_retry(false);
                (Cause::Misconfigured, error)
            }
            Self::RequestIncomplete => {
                let message = "The request body is not valid JSON: it broke off";
                (Cause::RequestIncomplete, Error::invalid(message))
            }
            Self::RequestTooSlow => {
                let message = "The request body came too slowly. Try again.";
                let error = Error::new(Fault::Client, ErrorKind::Timeout, message).with_status(408);
                (Cause::RequestTooSlow, error.with_should_retry(true))
            }
            Self::RestTooLarge => {
                let message =
                    "The rest of the answer is larger than this gateway can send at once.";
                let error = Error::new(Fault::Operator, ErrorKind::Api, message);
                (Cause::RestTooLarge, error.with_should_retry(false))
            }
        }
    }
}

/// Capabilities of a host. By default every capability is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCan {
    /// Times at which the host can write to the client while the upstream is silent.
    pub ping: Pings,
    /// True if the host can send more than one call per exchange with
    /// [`Exchange::poll_call`](super::Exchange::poll_call). Further calls go to an upstream that
    /// refused the first call, for which the client's body is kept, or to the judge of an answer,
    /// whose end is held meanwhile. A call to a model that describes images may come before the
    /// first call.
    pub ask_again: bool,
    /// True if the host can send a request without a body ([`Call::method`]). Creole uses such a
    /// request to list an upstream's models where the configuration names none.
    pub list_models: bool,
    /// True if the host can fetch any URL ([`To::Web`]) before the call that answers the client.
    /// The host must check the server: unless [`Fetch::may_be_private`], the host may connect only
    /// to public addresses, whatever the name resolves to. Needs [`Self::ask_again`].
    pub fetch: bool,
    /// True if the host can call the services that the configuration names ([`To::Service`]), at
    /// any address, before and between the calls that answer the client. Needs
    /// [`Self::ask_again`].
    pub call_services: bool,
    /// True if the host can extract the text of PDFs, for upstreams that accept no files
    /// ([`To::Document`]).
    pub read_documents: bool,
    /// Maximum number of calls of one exchange that the host makes at the same time; 0 means 1. A
    /// step asks at most four questions at once. Needs [`Self::ask_again`].
    pub calls_at_once: u8,
    /// True if the host gets the answers to all calls after the upstream's first only whole, so
    /// that the client gets nothing meanwhile. The upstream then gets as much time for such a call
    /// as for an answer that is no stream. After a refusal that the host's memory keeps
    /// ([`Refusals`](super::Refusals)), the client is told to retry, and no call is made.
    pub later_answers_whole: bool,
    /// True if the host leaves requests for paths outside of Creole's to other services, as a proxy
    /// can. Creole does not answer these requests.
    pub serve_others: bool,
}

impl HostCan {
    /// Returns true if server tools can be run between the rounds of an answer.
    pub(super) fn run_tools(self) -> bool {
        self.call_services && self.ask_again
    }
}

/// Times at which the host can send bytes to the client while the upstream is silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pings {
    /// Host that has timers and may write to the client at any time.
    Sent,
    /// Host that may write at any time once the response head is sent. The head is sent with the
    /// upstream's first bytes.
    AfterHead,
    /// Host that writes to the client only when the upstream sends something.
    #[default]
    No,
}

/// Error message for an upstream answer whose compression cannot be decoded.
pub(super) const ENCODING_UNREADABLE: &str =
    "Upstream sent an invalid response: its content-encoding cannot be read";

pub(super) fn request_too_large() -> Error {
    Error::new(Fault::Client, ErrorKind::RequestTooLarge, "Request exceeds the maximum size")
}

pub(super) fn unreachable_upstream(reason: &Unreachable) -> Error {
    let message = format!("Upstream could not be reached: {}", reason.words());
    let fault = if reason.is_of_url() { Fault::Operator } else { Fault::Upstream };
    let error = Error::new(fault, ErrorKind::Api, message).with_status(502);
    if reason.heals() { error } else { error.with_should_retry(false) }
}
