//! Eras of the protocol: which answer of a server means what.
//!
//! *Modern* servers are stateless. *Legacy* servers want a handshake, and may have sessions. A
//! server of which nothing is known is asked for its tools in the modern way; the answer shows the
//! era.

use super::answer::{Rpc, RpcError};
use crate::json;

/// Version of the modern protocol.
pub(super) const MODERN: &str = "2026-07-28";

/// Versions of the legacy protocol, newest first.
pub(super) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Newest version of the legacy protocol.
const NEWEST_LEGACY: &str = "2025-11-25";

/// Error code of a server that does not support the version of a request.
const UNSUPPORTED_VERSION: i64 = -32022;

/// Error codes that only modern servers send, besides that of an unsupported version.
const MODERN_CODES: [i64; 3] = [-32020, -32021, -32602];

/// Error code of a server that has no such method.
const UNKNOWN_METHOD: i64 = -32601;

/// Era of an MCP server, with its version if the era has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum McpEra {
    /// Era of version 2026-07-28, without sessions.
    Modern,
    /// Era of this earlier version, with a handshake.
    Legacy(&'static str),
}

impl McpEra {
    /// Returns the era of a version; `None` if the version is not known.
    pub(super) fn of(version: &str) -> Option<Self> {
        if version == MODERN {
            return Some(Self::Modern);
        }
        LEGACY.into_iter().find(|known| *known == version).map(Self::Legacy)
    }
}

/// Reason why an MCP server gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum McpFailure {
    /// Failure: the server refused the credentials.
    Credentials,
    /// Failure: the server answered with this HTTP status.
    Status(u16),
    Unreachable,
    TimedOut,
    /// Failure: the answer is larger than the limit.
    TooLarge,
    /// Failure: the answer is no message of the protocol.
    NotMcp,
    /// Failure: the server takes no Streamable HTTP at its address, perhaps because it speaks only
    /// the transport HTTP+SSE of 2024-11-05.
    OldTransport,
    Rpc(RpcError),
}

impl McpFailure {
    /// Returns the failure that an HTTP status stands for.
    pub(super) fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Credentials,
            200..=299 => Self::NotMcp,
            _ => Self::Status(status),
        }
    }

    /// Returns the reason in words, for an error that the client reads.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Credentials => "it refused the credentials".to_owned(),
            // Servers of Python redirect to their address with a `/` at its end, or without.
            Self::Status(status @ (301 | 302 | 303 | 307 | 308)) => format!(
                "it answered with HTTP status {status}, and redirections are not followed: name \
                 the address to which it leads"
            ),
            Self::Status(status) => format!("it answered with HTTP status {status}"),
            Self::Unreachable => "it could not be reached".to_owned(),
            Self::TimedOut => "it did not answer in time".to_owned(),
            Self::TooLarge => "its answer is too large".to_owned(),
            Self::NotMcp => "its answer is not MCP".to_owned(),
            Self::OldTransport => {
                "it takes no Streamable HTTP at this address (the transport HTTP+SSE of \
                 2024-11-05 is not supported)"
                    .to_owned()
            }
            // The words of the server may quote its credential.
            Self::Rpc(error) => format!("MCP error {}", error.code),
        }
    }

    /// Returns the HTTP status of a request that fails for this reason: the client's fault, the
    /// server's, or a timeout.
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Status(500..) | Self::Unreachable => 502,
            Self::TimedOut => 504,
            _ => 400,
        }
    }
}

/// Meaning of the answer to a list of tools that was asked for in the modern way.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProbeMeaning {
    /// Meaning: the server is modern, and the answer is the answer to the request.
    Modern,
    /// Meaning: the MCP server speaks an older revision, and gets a handshake with this version.
    Legacy(&'static str),
    Fails(McpFailure),
}

/// Returns the meaning of the answer to a probe.
pub(super) fn of_probe(status: u16, rpc: Option<&Rpc>) -> ProbeMeaning {
    match (status, rpc) {
        (401 | 403 | 500.., _) => ProbeMeaning::Fails(McpFailure::of_status(status)),
        (_, Some(Rpc::Error(error))) if error.code == UNSUPPORTED_VERSION => {
            let newest = LEGACY.into_iter().find(|own| error.supported.iter().any(|it| it == own));
            let fails = || ProbeMeaning::Fails(McpFailure::Rpc(error.clone()));
            newest.map_or_else(fails, ProbeMeaning::Legacy)
        }
        (_, Some(Rpc::Error(error))) if MODERN_CODES.contains(&error.code) => ProbeMeaning::Modern,
        (404, Some(Rpc::Error(error))) if error.code == UNKNOWN_METHOD => ProbeMeaning::Modern,
        (200..=299, Some(Rpc::Result(_))) => ProbeMeaning::Modern,
        (200..=299, Some(Rpc::Error(_))) => ProbeMeaning::Legacy(NEWEST_LEGACY),
        _ if may_be_of_other_era(status) => ProbeMeaning::Legacy(NEWEST_LEGACY),
        _ => ProbeMeaning::Fails(McpFailure::of_status(status)),
    }
}

/// Returns true if a server of another era may answer with this status, without having acted.
pub(super) fn may_be_of_other_era(status: u16) -> bool {
    matches!(status, 400 | 404 | 405 | 406 | 415)
}

/// Returns the version with which a server answers the first message of a handshake.
///
/// # Errors
/// The server refused the handshake, or answered with an unknown version.
pub(super) fn negotiated(status: u16, rpc: Option<&Rpc>) -> Result<&'static str, McpFailure> {
    let result = match rpc {
        Some(Rpc::Result(result)) if (200..300).contains(&status) => result,
        Some(Rpc::Error(error)) if !matches!(status, 401 | 403 | 500..) => {
            return Err(McpFailure::Rpc(error.clone()));
        }
        None if matches!(status, 400 | 404 | 405) => return Err(McpFailure::OldTransport),
        _ => return Err(McpFailure::of_status(status)),
    };
    let version = json::member(result, "protocolVersion").and_then(json::string);
    let version = version.ok_or(McpFailure::NotMcp)?.decode();
    LEGACY.into_iter().find(|own| *own == version).ok_or(McpFailure::NotMcp)
}

/// Returns true if the server says that it no longer knows the session of a request.
pub(super) fn is_session_lost(status: u16, rpc: Option<&Rpc>) -> bool {
    match (status, rpc) {
        (404, _) => true,
        (400, Some(Rpc::Error(error))) => {
            let message = error.message.to_ascii_lowercase();
            message.contains("session") || message.contains("initialized")
        }
        _ => false,
    }
}
