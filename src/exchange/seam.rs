//! Types that an [`Exchange`](super::Exchange) and its host hand to each other.

use std::fmt;

use super::JSON;
use super::unreachable::Unreachable;
use crate::error::{Error, ErrorKind, Fault};
use crate::headers::Header;
use crate::ids::Ids;
use crate::observe::report::Cause;
use crate::protocols::messages::write_error;

/// Status and headers for the client. Names are in lower case; `content-length` is the host's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// HTTP status.
    pub status: u16,
    /// Headers for the client, without those that the host adds itself.
    pub headers: Vec<Header>,
}

impl Head {
    pub(super) fn add(&mut self, name: &str, value: String) {
        self.headers.push((name.to_owned(), value));
    }
}

/// Whole response, which the host sends at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// Status and headers.
    pub head: Head,
    /// The body; empty for `HEAD`.
    pub body: Vec<u8>,
}

impl Reply {
    /// Returns the answer of a host without a usable configuration, if it cannot refuse to start.
    /// Its log has the reason, which is not for clients.
    #[must_use]
    pub fn not_configured(seed: u128) -> Self {
        let message = "This gateway is not configured correctly; its log says why.";
        let error = Error::new(Fault::Operator, ErrorKind::Api, message);
        let mut reply = Self::of(&error, Ids::new(seed).request());
        reply.head.add("x-should-retry", "false".to_owned());
        reply
    }

    /// Writes an error that belongs to no exchange.
    pub(super) fn of(error: &Error, request_id: String) -> Self {
        let mut body = Vec::new();
        write_error::body(error, &request_id, &mut body);
        let mut head = Head { status: error.status, headers: Vec::new() };
        head.add("content-type", JSON.to_owned());
        head.add("request-id", request_id);
        Self { head, body }
    }
}

/// Instruction for the host on a request, decided by its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestHead {
    /// Collect the body and give it to
    /// [`Exchange::handle_request_body`](super::Exchange::handle_request_body).
    Translate,
    /// Send a request that is not Creole's on untouched, and send the answer back untouched.
    PassThrough,
    /// Send the answer that [`Exchange::poll_reply`](super::Exchange::poll_reply) gives.
    Answered,
}

/// Request for an upstream, or for something on the web.
#[derive(Clone, PartialEq, Eq)]
pub struct Call {
    /// Name of the upstream in the configuration; empty for something on the web.
    pub upstream: String,
    /// Path with the upstream's `base_path`.
    pub path: String,
    /// Headers to send, complete except for `host` and `content-length`. The client's own headers
    /// are not sent.
    pub headers: Vec<Header>,
    /// The body.
    pub body: Vec<u8>,
    /// Address to fetch from the web, if the call is not for an upstream. Only for hosts that
    /// [can](HostCan::fetch).
    pub fetch: Option<Fetch>,
}

/// Something to fetch from the web. A redirection is an answer like any other: the host does not
/// follow it.
#[derive(Clone, PartialEq, Eq)]
pub struct Fetch {
    /// URL to fetch, which the configuration allows. A client chose it, and it may hold a
    /// signature: no log has it.
    pub url: String,
    /// True if the server may be in a private network, or on the host's own machine.
    pub may_be_private: bool,
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetch")
            .field("may_be_private", &self.may_be_private)
            .finish_non_exhaustive()
    }
}

// The headers have credentials, the body a prompt.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("upstream", &self.upstream)
            .field("path", &self.path)
            .field("body_bytes", &self.body.len())
            .field("fetch", &self.fetch)
            .finish_non_exhaustive()
    }
}

impl Call {
    /// Returns the method. `GET` is only for hosts that [can list models](HostCan::list_models), or
    /// fetch, and has no body.
    #[must_use]
    pub fn method(&self) -> &'static str {
        if self.body.is_empty() { "GET" } else { "POST" }
    }
}

/// Instruction for the host on the rest of an upstream's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// Read the answer to its end, which is near: a host that does so, for a moment, can use the
    /// connection again.
    ReadOut,
    /// Close the connection, because the upstream would go on with text that nobody reads, such as
    /// text behind a stop sequence unknown to it.
    Cut,
}

/// End of an upstream's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The body ended completely, by the rules of HTTP.
    Complete,
    /// The connection broke.
    Aborted,
}

/// Failures that a host notices, and that no upstream answered for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The client's body is larger than `request_bytes_max`.
    RequestTooLarge,
    /// The exchanges of the host together hold `buffered_bytes_max`.
    Overloaded,
    /// Connect, TLS or DNS failed, or the connection broke before an answer.
    Unreachable(Unreachable),
    /// The answer broke off before any of it was sent to the client. The client gets an error.
    BrokeOff,
    /// The answer is compressed, and cannot be unpacked, or unpacks to too much.
    Undecodable,
    /// The host knows that no server is healthy, or its queues are full.
    NoHealthyUpstream,
    /// The host's own timeout, before the head.
    Timeout,
    /// The host has no route for the request.
    NoRoute,
    /// The host refuses the client, for this reason.
    Forbidden(&'static str),
    /// The host's configuration of this route cannot be read. Its log says why.
    Misconfigured,
    /// The client's body broke off.
    RequestIncomplete,
    /// The client's body came too slowly.
    RequestTooSlow,
}

impl Failure {
    /// Returns true if the upstream could not be asked, and the request is not at fault.
    pub(super) fn is_of_upstream(&self) -> bool {
        matches!(
            self,
            Self::NoRoute | Self::Unreachable(_) | Self::NoHealthyUpstream | Self::Timeout
        )
    }

    /// Returns true if the failure concerns only one call, so that a preparation can go on without
    /// the answer to its call.
    pub(super) fn is_of_call(&self) -> bool {
        self.is_of_upstream() || matches!(self, Self::BrokeOff | Self::Undecodable)
    }

    /// Returns the cause for the report, and the error for the client.
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
                let message = "This gateway's configuration of the route is not valid.";
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
        }
    }
}

/// Abilities of a host. The default is the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCan {
    /// Times at which the host can write to the client while the upstream is silent.
    pub ping: Pings,
    /// Send another request after the first, so that
    /// [`Exchange::poll_call`](super::Exchange::poll_call) gives one: to an upstream that refused
    /// the first, for which the exchange keeps the client's body, or to the judge of an answer of
    /// which the client has all but the end. A request to a model that describes images may come
    /// before the first.
    pub ask_again: bool,
    /// Send a request without a body ([`Call::method`]): the upstream is asked for its models where
    /// the configuration names none.
    pub list_models: bool,
    /// Send a request to any URL ([`Call::fetch`]) and give its answer, before the request that has
    /// an answer for the client. Its server must be checked: unless [`Fetch::may_be_private`], no
    /// address may be connected to that is not public, whatever its name resolves to. Needs
    /// [`Self::ask_again`].
    pub fetch: bool,
    /// Read PDFs, for upstreams that take no files
    /// ([`Exchange::poll_document`](super::Exchange::poll_document)).
    pub read_documents: bool,
    /// Leave requests for paths that are not Creole's to other services behind the host, as a proxy
    /// can. Creole does not answer them.
    pub serve_others: bool,
}

/// Times at which the host can send bytes to the client while the upstream is silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pings {
    /// The host has timers and may write at any time.
    Sent,
    /// The host may write at any time after the head of the answer. The head goes out with the
    /// upstream's first bytes.
    AfterHead,
    /// The host writes only when the upstream sends something.
    #[default]
    No,
}

/// Error message for an answer that is compressed and cannot be read.
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
