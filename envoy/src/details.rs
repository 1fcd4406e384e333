//! Envoy's `response.code_details`: who answered, and why.
//!
//! Envoy answers for itself when an upstream cannot be reached, is too slow or does not exist.
//! Those answers pass the filter like an upstream's, with a plain text as their body; the details
//! alone tell them apart.

use creole::text::words;
use creole::{Failure, Unreachable};

/// The details of an upstream's answer.
pub const VIA_UPSTREAM: &str = "via_upstream";

/// The details where `creole-guard` has refused a translated request for where it would have gone.
pub const REFUSED_ROUTE: &str = "rbac_access_denied_matched_policy[creole_route]";

/// Origin of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The upstream, or another filter that speaks for it: to be translated by its status.
    Upstream,
    /// Envoy, because of this failure.
    Envoy(Failure),
}

/// Returns the origin of a response with these details and this status. `request_complete`: the
/// client's body is.
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
        // What a client sent was not HTTP any more. An upstream's is a `protocol_error`.
        _ if ["http1.", "http2.", "http3."].iter().any(|codec| name.starts_with(codec)) => {
            Failure::RequestIncomplete
        }
        // Overload manager, maintenance mode, circuit breakers and filters behind this one: their
        // details are theirs to choose.
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

/// Returns the reason why there was no connection. What the transport says of it may name
/// addresses, so it is matched and not passed on.
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

/// Cause of the end of a stream that broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// The client went away.
    Client,
    /// The upstream broke off.
    Upstream,
    /// A timeout of Envoy's ended the stream.
    Timeout,
}

/// Returns who ended a stream with these details.
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
