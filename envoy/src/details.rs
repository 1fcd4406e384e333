//! Envoy's `response.code_details`: who answered, and why.
//!
//! Envoy answers for itself when an upstream cannot be reached, is too slow or does not exist. Those
//! answers pass the filter like an upstream's, with a plain text as their body; the details alone
//! tell them apart.

use creole::{Failure, Unreachable, words};

/// The details of an upstream's answer.
pub const VIA_UPSTREAM: &str = "via_upstream";

/// The details where `creole-guard` has refused a translated request for where it would have gone.
pub const REFUSED_ROUTE: &str = "rbac_access_denied_matched_policy[creole_route]";

/// Who gave a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The upstream, or another filter that speaks for it: to be translated by its status.
    Upstream,
    /// Envoy, because of this.
    Envoy(Failure),
}

/// Who gave a response with these details and this status. `request_complete`: the client's body is.
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
        // Overload manager, maintenance mode, circuit breakers and filters behind this one: their details are theirs
        // to choose.
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

/// Why there was no connection. What the transport says of it may name addresses, so it is matched and
/// not passed on.
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

/// How a stream ended that never came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// The client went away.
    Client,
    /// The upstream broke off.
    Upstream,
    /// One of Envoy's timeouts.
    Timeout,
}

/// Who ended a stream with these details.
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
mod tests {
    use super::*;

    #[test]
    fn envoys_own_answers_are_told_from_the_upstreams() {
        assert_eq!(origin("via_upstream", 503, true), Origin::Upstream);
        assert_eq!(origin("", 200, true), Origin::Upstream);
        for (details, status) in
            [("route_not_found", 404), ("cluster_not_found", 404), (REFUSED_ROUTE, 403)]
        {
            assert_eq!(origin(details, status, true), Origin::Envoy(Failure::NoRoute), "{details}");
        }
        let full = "upstream_reset_before_response_started{overflow}";
        assert_eq!(origin(full, 503, true), Origin::Envoy(Failure::NoHealthyUpstream));
    }

    #[test]
    fn a_transport_failure_names_no_address() {
        assert_eq!(
            said(
                "remote_connection_failure|delayed_connect_error:_Connection_refused_10.0.0.7:443"
            ),
            "the connection was refused"
        );
        assert_eq!(said("remote_connection_failure|10.0.0.7:443_is_down"), "no connection");
    }

    #[test]
    fn envoys_reasons_are_told_in_the_words_of_all_hosts() {
        let tls = "remote_connection_failure|TLS_error:|268435581:SSL_routines:OPENSSL_internal:";
        for (reason, words) in [
            ("", "no connection"),
            ("local_connection_failure", "no connection"),
            ("connection_timeout", "the connection timed out"),
            ("connection_termination", "it closed the connection before it answered"),
            ("protocol_error", "it does not speak HTTP"),
            ("http1_premature_upstream_half_close", "it closed the connection before it answered"),
            ("remote_reset", "it refused the request"),
            ("remote_refused_stream_reset", "it refused the request"),
            (
                "remote_connection_failure|delayed_connect_error:_No_route_to_host",
                "its host is unreachable",
            ),
            (
                "remote_connection_failure|immediate_connect_error:_Network_is_unreachable",
                "its network is unreachable",
            ),
            (
                &format!("{tls}CERTIFICATE_VERIFY_FAILED:TLS_error_end"),
                "TLS: its certificate is not valid",
            ),
            (&format!("{tls}WRONG_VERSION_NUMBER:TLS_error_end"), "TLS: it does not speak TLS"),
            (&format!("{tls}NO_SHARED_CIPHER:TLS_error_end"), "TLS: the handshake failed"),
            ("a_reason_of_tomorrow", "no connection"),
        ] {
            assert_eq!(said(reason), words, "{reason}");
        }
    }

    fn said(reason: &str) -> String {
        let details = format!("upstream_reset_before_response_started{{{reason}}}");
        match origin(&details, 503, true) {
            Origin::Envoy(Failure::Unreachable(reason)) => reason.words().to_owned(),
            other => panic!("{reason}: {other:?}"),
        }
    }

    #[test]
    fn a_timeout_is_the_upstreams_only_once_it_has_the_request() {
        for (details, status) in [
            ("response_timeout", 504),
            ("upstream_response_timeout", 504),
            ("upstream_per_try_timeout", 504),
            ("upstream_per_try_idle_timeout", 504),
            ("stream_idle_timeout", 408),
            ("request_overall_timeout", 408),
            ("max_duration_timeout", 408),
            ("upstream_max_stream_duration_reached", 408),
        ] {
            let given = |complete| origin(details, status, complete);
            assert_eq!(given(true), Origin::Envoy(Failure::Timeout), "{details}");
            assert_eq!(given(false), Origin::Envoy(Failure::RequestIncomplete), "{details}");
            assert_eq!(broken_by(details, true), Break::Timeout, "{details}");
        }
    }

    #[test]
    fn a_client_that_breaks_the_protocol_is_not_the_upstreams_failure() {
        for (details, status) in [
            ("http1.codec_error", 400),
            ("http1.body_disallowed", 400),
            ("http2.violation.of.messaging.rule", 400),
            ("http3.unexpected_trailer", 400),
            ("http1.codec_error", 413),
        ] {
            let expected = Origin::Envoy(Failure::RequestIncomplete);
            assert_eq!(origin(details, status, false), expected, "{details}");
        }
        assert_eq!(origin("http1_filter_of_mine", 400, true), Origin::Upstream);
    }

    #[test]
    fn another_filters_refusal_is_translated_by_its_status() {
        assert_eq!(origin("rbac_access_denied_matched_policy[none]", 403, true), Origin::Upstream);
        assert_eq!(origin("request_rate_limited", 429, true), Origin::Upstream);
    }

    #[test]
    fn a_broken_stream_is_counted_for_whoever_broke_it() {
        let reset = "upstream_reset_after_response_started{protocol_error}";
        assert_eq!(broken_by(reset, true), Break::Upstream);
        assert_eq!(broken_by("downstream_remote_disconnect", true), Break::Client);
        assert_eq!(broken_by("stream_idle_timeout", true), Break::Timeout);
    }
}
