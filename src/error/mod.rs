//! Errors: their cause, the party that must act, and the message that the client reads.
//!
//! [`ErrorKind`] is what an Anthropic client acts on: it is the `error.type` on the wire and
//! decides, with the status, whether an SDK retries. [`Fault`] is for operators: whose problem it
//! is. The message says where the bad value is and what was expected there, never what a prompt or
//! a credential says.
//!
//! [`Rejection`] holds what an upstream refused; its only way to a client is [`Error::rejected`].

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

/// `error.type` of the Messages API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// 400, and every other 4xx without a type of its own.
    InvalidRequest,
    /// 401
    Authentication,
    /// 402
    Billing,
    /// 403
    Permission,
    /// 404
    NotFound,
    /// 409
    Conflict,
    /// 413
    RequestTooLarge,
    /// 429
    RateLimit,
    /// 500, 502
    Api,
    /// 504
    Timeout,
    /// 529
    Overloaded,
}

impl ErrorKind {
    /// Returns the word on the wire.
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

    /// Returns the HTTP status that goes with the type.
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
    /// The client's request cannot be served as it is.
    Client,
    /// The model server failed, or broke its protocol.
    Upstream,
    /// This gateway's configuration or limits are at fault.
    Operator,
}

impl Fault {
    /// Returns the name of the party in logs and metrics.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Upstream => "upstream",
            Self::Operator => "operator",
        }
    }
}

/// Contents of an error's answer for a client: status, body and headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// `error.type`
    pub kind: ErrorKind,
    /// HTTP status, where the head has not been sent yet.
    pub status: u16,
    /// `error.message`
    pub message: String,
    /// `error.details.error_code`, where a client acts on it.
    pub code: Option<Cow<'static, str>>,
    /// `x-should-retry`, where an SDK would decide wrongly by the status.
    pub should_retry: Option<bool>,
    /// `retry-after` in seconds, where an upstream has it in the body alone.
    pub retry_after: Option<u64>,
    /// Methods that a path takes, for the header `allow` of a 405.
    pub allow: Option<String>,
}

/// Cause of an error, by the party that must act.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Failure {
    /// Fault of the client; `too_many`: the request has more of something than is read
    /// ([`crate::model::limits`]).
    Client { details: Details, too_many: bool },
    /// Fault of the operator, who runs this gateway.
    Operator { details: Details },
    /// Fault of the model server; `broke_off`: it gave no reason for an answer without an end.
    Upstream { details: Details, broke_off: bool },
    /// Refusal by the model server; `fault` is whoever the refusal is about.
    Rejected { details: Details, fault: Fault, rejection: Rejection },
}

/// Answer that is an error.
///
/// It is one pointer, because nearly all functions can return one and nearly none does. It
/// dereferences to what a client reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Failure>);

impl Details {
    /// Makes the details for a client, with the status of their kind.
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
    /// Makes an error with the status of its kind.
    #[must_use]
    pub fn new(fault: Fault, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::with_message(fault, kind, message.into())
    }

    #[cold]
    #[inline(never)]
    fn with_message(fault: Fault, kind: ErrorKind, message: String) -> Self {
        let details = Details::new(kind, message);
        Self(Box::new(match fault {
            Fault::Client => Failure::Client { details, too_many: false },
            Fault::Operator => Failure::Operator { details },
            Fault::Upstream => Failure::Upstream { details, broke_off: false },
        }))
    }

    /// Makes the error for a request that an upstream refused.
    pub(crate) fn rejected(rejection: Rejection) -> Self {
        let (fault, details) = rejection.to_client();
        Self(Box::new(Failure::Rejected { details, fault, rejection }))
    }

    /// Makes the error of a request that cannot be served; `message` begins with the path where
    /// there is one.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Fault::Client, ErrorKind::InvalidRequest, message)
    }

    /// Makes the error of a client's field or block that cannot be kept and must not be lost.
    #[must_use]
    pub fn unsupported(path: &str) -> Self {
        Self::unsupported_kind(path, "this")
    }

    /// Makes the error of a part of a request that cannot be kept: `kind` names it where its path
    /// does not.
    #[must_use]
    pub fn unsupported_kind(path: &str, kind: &str) -> Self {
        Self::invalid(format!("{path}: {kind} is not supported by this gateway"))
    }

    /// Makes the error of a method that a path does not take: 405. `allow` are the methods that it
    /// takes.
    #[must_use]
    pub fn method_not_allowed(method: &str, allow: &[&str]) -> Self {
        let allow = allow.join(", ");
        let mut error =
            Self::invalid(format!("{method}: only {allow} is allowed here")).with_status(405);
        error.allow = Some(allow);
        error
    }

    /// Makes the error of an upstream's answer that cannot be understood: 502.
    #[must_use]
    pub fn misbehaved(message: impl Into<String>) -> Self {
        Self::new(Fault::Upstream, ErrorKind::Api, message).with_status(502)
    }

    /// Makes the error of an answer without content.
    #[must_use]
    pub fn answer_empty() -> Self {
        Self::broken_off("Upstream sent an empty response")
    }

    /// Makes the error of an answer without its end.
    #[must_use]
    pub fn answer_broke_off() -> Self {
        Self::broken_off("Upstream stream ended before completion.")
    }

    fn broken_off(message: &str) -> Self {
        let details = Details { status: 502, ..Details::new(ErrorKind::Api, message.to_owned()) };
        Self(Box::new(Failure::Upstream { details, broke_off: true }))
    }

    /// Makes the error of an answer that is larger than may be held.
    #[must_use]
    pub fn answer_too_large() -> Self {
        Self::misbehaved("Upstream sent an answer that is too large")
    }

    /// Makes the error of a client's body that is no JSON text.
    pub(crate) fn not_json(error: &json::Error) -> Self {
        Self::invalid(format!("The request body is not valid JSON: {}", error.reason()))
    }

    /// Returns this error with `status`.
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

    /// Returns this error as that of a request with more of something than is read.
    pub(crate) fn with_too_many(mut self) -> Self {
        if let Failure::Client { too_many, .. } = &mut *self.0 {
            *too_many = true;
        }
        self
    }

    /// Returns the party that must act.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match *self.0 {
            Failure::Client { .. } => Fault::Client,
            Failure::Operator { .. } => Fault::Operator,
            Failure::Upstream { .. } => Fault::Upstream,
            Failure::Rejected { fault, .. } => fault,
        }
    }

    /// Returns true if the request has more of something than is read.
    pub(crate) fn is_too_many(&self) -> bool {
        matches!(*self.0, Failure::Client { too_many: true, .. })
    }

    /// Returns true if the answer ended before it was complete, and the upstream gave no reason.
    pub(crate) fn is_broken_off(&self) -> bool {
        matches!(*self.0, Failure::Upstream { broke_off: true, .. })
    }

    /// Returns the upstream's refusal, if that is the error.
    pub(crate) fn rejection(&self) -> Option<&Rejection> {
        match &*self.0 {
            Failure::Rejected { rejection, .. } => Some(rejection),
            _ => None,
        }
    }
}

impl Deref for Error {
    type Target = Details;

    fn deref(&self) -> &Details {
        match &*self.0 {
            Failure::Client { details, .. }
            | Failure::Operator { details }
            | Failure::Upstream { details, .. }
            | Failure::Rejected { details, .. } => details,
        }
    }
}

impl DerefMut for Error {
    fn deref_mut(&mut self) -> &mut Details {
        match &mut *self.0 {
            Failure::Client { details, .. }
            | Failure::Operator { details }
            | Failure::Upstream { details, .. }
            | Failure::Rejected { details, .. } => details,
        }
    }
}

impl From<json::Error> for Error {
    /// Makes the error of a client's body that could not be read.
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
