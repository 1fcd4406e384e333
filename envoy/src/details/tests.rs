//! Tests of `details.rs`.

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
        said("remote_connection_failure|delayed_connect_error:_Connection_refused_10.0.0.7:443"),
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
        ("protocol_error", "it does not speak HTTP (https:// instead of http://?)"),
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
        (
            &format!("{tls}WRONG_VERSION_NUMBER:TLS_error_end"),
            "TLS: it does not speak TLS (http:// instead of https://?)",
        ),
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
