//! Errors: their cause, the party that must act, and the message that the client reads.
//!
//! [`ErrorKind`] is what an Anthropic client acts on: it is the `error.type` in the response and
//! decides, with the status, whether an SDK retries. [`Fault`] tells operators who must act. The
//! message states the path of the bad value and what was expected, never the content of a prompt or
//! a credential.
//!
//! [`Rejection`] holds the refusal of an upstream; it reaches a client only through
//! [`Error::rejected`].

mod for_log;
mod rejection;

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::json;
pub use rejection::Parameter;
pub(crate) use rejection::{
    ContextLimit, MAX_TOKENS, NO_SPACE, OF_OUTPUT, Reason, Rejection, WrongAddress, cut, of_status,
};
#[cfg(test)]
pub(crate) use rejection::{MESSAGE_CHARS_MAX, UNPAID};

/// Type of an error in the Messages API (`error.type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Type `invalid_request_error`: status 400, and every other 4xx status without a type of its
    /// own.
    InvalidRequest,
    /// Type `authentication_error`: status 401.
    Authentication,
    /// Type `billing_error`: status 402.
    Billing,
    /// Type `permission_error`: status 403.
    Permission,
    /// Type `not_found_error`: status 404.
    NotFound,
    /// Type `conflict_error`: status 409.
    Conflict,
    /// Type `request_too_large`: status 413.
    RequestTooLarge,
    /// Type `rate_limit_error`: status 429.
    RateLimit,
    /// Type `api_error`: status 500 or 502.
    Api,
    /// Type `timeout_error`: status 504.
    Timeout,
    /// Type `overloaded_error`: status 529.
    Overloaded,
}

impl ErrorKind {
    /// Returns the value of `error.type` in responses.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request_error",
            Self::Authentication => "authentication_error",
            Self::Billing => "billing_error",
            Self::Permission => "permission_error",
            Self::NotFound => "not_found_error",
            Self::Conflict => "conflict_error",
            Self::RequestTooLarge => "request_too_large",
            Self::RateLimit => "rate_limit_error",
            Self::Api => "api_error",
            Self::Timeout => "timeout_error",
            Self::Overloaded => "overloaded_error",
        }
    }

    /// Returns the HTTP status that belongs to the error type.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::Authentication => 401,
            Self::Billing => 402,
            Self::Permission => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::RequestTooLarge => 413,
            Self::RateLimit => 429,
            Self::Api => 500,
            Self::Timeout => 504,
            Self::Overloaded => 529,
        }
    }
}

/// Party that must act on an error: client, upstream or operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Client, whose request is not valid or not supported.
    Client,
    /// Upstream (model server), which failed or violated its protocol.
    Upstream,
    /// Operator of this gateway, whose configuration or limits cause the error.
    Operator,
}

impl Fault {
    /// Returns the name of the party for logs and metrics.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Upstream => "upstream",
            Self::Operator => "operator",
        }
    }
}

/// Contents of an error response for a client: status, body and headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorDetails {
    /// Value of `error.type` in the response.
    pub kind: ErrorKind,
    /// HTTP status of the response, if the headers have not been sent yet.
    pub status: u16,
    /// Value of `error.message` in the response.
    pub message: String,
    /// Value of `error.details.error_code` in the response, for codes that clients act on.
    pub code: Option<Cow<'static, str>>,
    /// Value of the header `x-should-retry`, if an SDK would decide wrongly by the status alone.
    pub should_retry: Option<bool>,
    /// Value of the header `retry-after` in seconds, if an upstream sends it only in the body.
    pub retry_after: Option<u64>,
    /// Value of the header `allow` of a 405: methods that a path supports.
    pub allow: Option<String>,
}

/// Cause of an error, by the party that must act.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ErrorCause {
    /// Error caused by the client. `too_many`: the request has more items of some kind than Creole
    /// reads ([`crate::model::limits`]).
    Client { details: ErrorDetails, too_many: bool },
    /// Error caused by the operator, who runs this gateway.
    Operator { details: ErrorDetails },
    /// Error caused by the upstream. `broke_off`: the response ended early, without a reason.
    Upstream { details: ErrorDetails, broke_off: bool },
    /// Refusal of the request by the upstream. `fault`: the party that must act.
    Rejected { details: ErrorDetails, fault: Fault, rejection: Rejection },
}

/// Error response of Creole.
///
/// The type is one pointer, because nearly all functions can return an error and nearly none does.
/// It dereferences to the details that a client reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<ErrorCause>);

impl ErrorDetails {
    /// Creates the error details that a client reads, with the status of the error type.
    fn new(kind: ErrorKind, message: String) -> Self {
        let status = kind.status();
        Self {
            kind,
            status,
            message,
            code: None,
            should_retry: None,
            retry_after: None,
            allow: None,
        }
    }
}

impl Error {
    /// Creates an error with the status of its type.
    #[must_use]
    pub fn new(fault: Fault, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::with_message(fault, kind, message.into())
    }

    #[cold]
    #[inline(never)]
    fn with_message(fault: Fault, kind: ErrorKind, message: String) -> Self {
        let details = ErrorDetails::new(kind, message);
        Self(Box::new(match fault {
            Fault::Client => ErrorCause::Client { details, too_many: false },
            Fault::Operator => ErrorCause::Operator { details },
            Fault::Upstream => ErrorCause::Upstream { details, broke_off: false },
        }))
    }

    /// Creates the error for a request that an upstream refused.
    pub(crate) fn rejected(rejection: Rejection) -> Self {
        let (fault, details) = rejection.to_client();
        Self(Box::new(ErrorCause::Rejected { details, fault, rejection }))
    }

    /// Creates the error for an invalid request. `message` begins with the path of the bad value,
    /// if there is one.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Fault::Client, ErrorKind::InvalidRequest, message)
    }

    /// Creates the error for a field or block of the client that cannot be translated and must not
    /// be lost.
    #[must_use]
    pub fn unsupported(path: &str) -> Self {
        Self::unsupported_kind(path, "this")
    }

    /// Creates the error for a part of a request that cannot be translated. `kind` names the part
    /// if the path alone does not.
    #[must_use]
    pub fn unsupported_kind(path: &str, kind: &str) -> Self {
        Self::invalid(format!("{path}: {kind} is not supported by this gateway"))
    }

    /// Creates the error 405 for a method that a path does not support. `allow`: the methods that
    /// the path supports.
    #[must_use]
    pub fn method_not_allowed(method: &str, allow: &[&str]) -> Self {
        let allow = allow.join(", ");
        let mut error =
            Self::invalid(format!("{method}: only {allow} is allowed here")).with_status(405);
        error.allow = Some(allow);
        error
    }

    /// Creates the error 502 for an invalid response of an upstream.
    #[must_use]
    pub fn misbehaved(message: impl Into<String>) -> Self {
        Self::new(Fault::Upstream, ErrorKind::Api, message).with_status(502)
    }

    /// Creates the error for an answer without content.
    #[must_use]
    pub fn answer_empty() -> Self {
        Self::broken_off("Upstream sent an empty response")
    }

    /// Creates the error for an answer that ended early.
    #[must_use]
    pub fn answer_broke_off() -> Self {
        Self::broken_off("Upstream stream ended before completion.")
    }

    fn broken_off(message: &str) -> Self {
        let details =
            ErrorDetails { status: 502, ..ErrorDetails::new(ErrorKind::Api, message.to_owned()) };
        Self(Box::new(ErrorCause::Upstream { details, broke_off: true }))
    }

    /// Creates the error for an answer that exceeds the size limit.
    #[must_use]
    pub fn answer_too_large() -> Self {
        Self::misbehaved("Upstream sent an answer that is too large")
    }

    /// Creates the error for a client's body that is not JSON.
    pub(crate) fn not_json(error: &json::Error) -> Self {
        Self::invalid(format!("The request body is not valid JSON: {}", error.reason()))
    }

    /// Returns this error with another HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Returns this error with a `code` on which clients act.
    #[must_use]
    pub fn with_code(mut self, code: &'static str) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Returns this error with the header `x-should-retry`.
    #[must_use]
    pub fn with_should_retry(mut self, retry: bool) -> Self {
        self.should_retry = Some(retry);
        self
    }

    /// Returns this error, marked as caused by too many items of some kind in the request.
    pub(crate) fn with_too_many(mut self) -> Self {
        if let ErrorCause::Client { too_many, .. } = &mut *self.0 {
            *too_many = true;
        }
        self
    }

    /// Returns this error as one that the client caused.
    pub(crate) fn caused_by_client(self) -> Self {
        let details = ErrorDetails::clone(&self);
        Self(Box::new(ErrorCause::Client { details, too_many: false }))
    }

    /// Returns the party that must act on the error: client, upstream or operator.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match *self.0 {
            ErrorCause::Client { .. } => Fault::Client,
            ErrorCause::Operator { .. } => Fault::Operator,
            ErrorCause::Upstream { .. } => Fault::Upstream,
            ErrorCause::Rejected { fault, .. } => fault,
        }
    }

    /// Returns true if the request has more items of some kind than Creole reads.
    pub(crate) fn is_too_many(&self) -> bool {
        matches!(*self.0, ErrorCause::Client { too_many: true, .. })
    }

    /// Returns true if the answer ended before it was complete, and the upstream gave no reason.
    pub(crate) fn is_broken_off(&self) -> bool {
        matches!(*self.0, ErrorCause::Upstream { broke_off: true, .. })
    }

    /// Returns the upstream's refusal, if the upstream refused the request.
    pub(crate) fn rejection(&self) -> Option<&Rejection> {
        match &*self.0 {
            ErrorCause::Rejected { rejection, .. } => Some(rejection),
            _ => None,
        }
    }
}

impl Deref for Error {
    type Target = ErrorDetails;

    fn deref(&self) -> &ErrorDetails {
        match &*self.0 {
            ErrorCause::Client { details, .. }
            | ErrorCause::Operator { details }
            | ErrorCause::Upstream { details, .. }
            | ErrorCause::Rejected { details, .. } => details,
        }
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut ErrorDetails {
        match &mut *self.0 {
            ErrorCause::Client { details, .. }
            | ErrorCause::Operator { details }
            | ErrorCause::Upstream { details, .. }
            | ErrorCause::Rejected { details, .. } => details,
        }
    }
}

impl From<json::Error> for Error {
    /// Creates the error for a client's body that could not be read.
    fn from(error: json::Error) -> Self {
        if error.is_syntax() { Self::not_json(&error) } else { Self::invalid(error.to_string()) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.status, self.kind.word(), self.message)
    }
}

impl std::error::Error for Error {}
