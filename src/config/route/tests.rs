//! Tests of `route.rs`.

use super::*;
use crate::config::Pairing;

#[test]
fn a_route_has_its_own_models_and_settings_over_those_of_all() {
    let all = Config::from_json(
        r#"{"upstreams":{"n8n":{"guards":{"tool_turns_max":10}},"code":{}},"strict":true,
                "models":{"*":{"upstream":"code"}},"guards":{"pairing":"reject"}}"#,
        |_| None,
    )
    .unwrap();
    let route = all
        .for_route(
            r#"{"models":{"*":{"upstream":"n8n","model":"m"}},"guards":{"tool_turns_max":5}}"#,
        )
        .unwrap();
    assert_eq!(
        route.route("x").map(|(upstream, model)| (&*upstream.name, model)),
        Some(("n8n", "m"))
    );
    assert!(route.settings.strict);
    for upstream in route.upstreams.values() {
        let guards = route.guards(upstream);
        assert_eq!((guards.tool_turns_max, guards.pairing), (5, Pairing::Reject));
    }
    assert_eq!(all.for_route("{}").as_ref(), Ok(&all));
    for (text, expected) in [
        ("", "configuration: expected a value"),
        (r#"{"upstreams":{}}"#, "configuration: upstreams: expected no such key, because a route"),
        (r#"{"pause_headers":false}"#, "configuration: pause_headers: expected no such key"),
        (
            r#"{"strikt":true}"#,
            "configuration: strikt: unknown key; did you mean strict? Expected one of models, strict",
        ),
        (
            r#"{"models":{"m":{"upstream":"x"}}}"#,
            "configuration: models.m.upstream: expected a name",
        ),
        (
            r#"{"guards":{"pairing":"mend"}}"#,
            "configuration: guards.pairing: expected one of repair",
        ),
        (r#"{"ping_interval_ms":1}"#, "configuration: ping_interval_ms: expected at least 10 ms"),
    ] {
        let error = all.for_route(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}
