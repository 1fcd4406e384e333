//! Parser of Envoy's `response.code_details`, which names who answered a request, and why.
//!
//! Envoy answers a request itself when the upstream cannot be reached, is too slow or does not
//! exist. Such an answer passes the filter like an upstream's response, with plain text as its
//! body; only the details distinguish the two.

use creole::text::words;
use creole::{Failure, Unreachable};

/// Value of `response.code_details` for a response of the upstream.
pub const VIA_UPSTREAM: &str = "via_upstream";

/// Value of `response.code_details` if `creole-guard` refused a translated request because of the
/// cluster that it would have gone to.
pub const REFUSED_ROUTE: &str = "rbac_access_denied_matched_policy[creole_route]";

/// Value of `response.code_details` if Envoy ended a stream because a write of the filter was above
/// the buffer limit.
pub const WRITE_TOO_LARGE: &str = "response_payload_too_large";

/// Origin of a response: the upstream, or Envoy itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Response of the upstream, or of another filter in its place, which is translated by its
    /// status.
    Upstream,
    /// Error response of Envoy itself, because of this failure.
    Envoy(Failure),
}

/// Returns the origin of a response with these details and this status. `request_complete` is true
/// if the client's body is complete.
#[must_use]
pub fn origin(details: &str, status: u16, request_complete: bool) -> Origin {
    // `upstream_reset_before_response_started{connection_termination|delayed_connect_error:_…}`
    let (name, reason) = words::split_once(details, "{").unwrap_or((details, ""));
    let failure = match name {
        "" | VIA_UPSTREAM => return Origin::Upstream,
        "route_not_found" | "cluster_not_found" | REFUSED_ROUTE => Failure::NoRoute,
        "request_payload_too_large" => Failure::RequestTooLarge,
        "no_healthy_upstream" => Failure::NoHealthyUpstream,
        "upstream_reset_before_response_started" => reset(reason),
        _ if is_timeout(name) && request_complete => Failure::Timeout,
        _ if is_timeout(name) => Failure::RequestIncomplete,
        // The client sent invalid HTTP. Invalid HTTP of an upstream is a `protocol_error`.
        _ if ["http1.", "http2.", "http3."].iter().any(|codec| name.starts_with(codec)) => {
            Failure::RequestIncomplete
        }
        // Overload manager, maintenance mode, circuit breakers and filters behind this one choose
        // their own details.
        _ => match status {
            413 => Failure::RequestTooLarge,
            503 => Failure::NoHealthyUpstream,
            504 => Failure::Timeout,
            _ => return Origin::Upstream,
        },
    };
    Origin::Envoy(failure)
}

fn is_timeout(name: &str) -> bool {
    const TIMEOUTS: &str = "response_timeout upstream_response_timeout upstream_per_try_timeout \
        upstream_per_try_idle_timeout stream_idle_timeout request_overall_timeout max_duration_timeout \
        upstream_max_stream_duration_reached";
    words::is_among(TIMEOUTS, name)
}

fn reset(reason: &str) -> Failure {
    let (reason, transport) = words::split_once(reason, "|").unwrap_or((reason, ""));
    let reason = match words::before(reason, b"}:") {
        "overflow" => return Failure::NoHealthyUpstream,
        "connection_timeout" => Unreachable::TimedOut,
        "connection_termination" | "http1_premature_upstream_half_close" => Unreachable::Closed,
        "remote_reset" | "remote_refused_stream_reset" => Unreachable::StreamRefused,
        "protocol_error" => Unreachable::NotHttp,
        _ => not_connected(transport),
    };
    Failure::Unreachable(reason)
}

/// Returns the reason why no connection to the upstream was made. The transport's message may
/// contain addresses, so it is matched and not passed on.
fn not_connected(transport: &str) -> Unreachable {
    let says = |word: &str| words::has(transport, word);
    if says("TLS_error") && says("CERTIFICATE_VERIFY_FAILED") {
        Unreachable::BadCertificate
    } else if says("TLS_error") && says("WRONG_VERSION_NUMBER") {
        Unreachable::NotTls
    } else if says("TLS_error") {
        Unreachable::Handshake
    } else if says("Connection_refused") {
        Unreachable::Refused
    } else if says("No_route_to_host") {
        Unreachable::NoHost
    } else if says("Network_is_unreachable") {
        Unreachable::NoNetwork
    } else {
        Unreachable::NotConnected
    }
}

/// Cause of a stream that ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Cause: the client disconnected.
    Client,
    /// Cause: the upstream broke the connection off.
    Upstream,
    /// Cause: one of Envoy's timeouts ended the stream.
    Timeout,
}

/// Returns the cause of a broken stream with these details.
#[must_use]
pub fn broken_by(details: &str, request_complete: bool) -> Break {
    let name = words::before(details, b"{");
    if is_timeout(name) {
        Break::Timeout
    } else if request_complete && (name.starts_with("upstream") || name == "via_upstream") {
        Break::Upstream
    } else {
        Break::Client
    }
}

#[cfg(test)]
mod tests;
