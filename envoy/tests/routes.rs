//! Routes with a configuration of their own in their metadata.

mod envoy;

use creole::headers::Headers;
use creole::observe::log::Level;
use creole_envoy::action::{Action, Decision, Flow, Side};
use creole_envoy::stream::Route;
use envoy::{Envoy, MESSAGES, header, local, text, written};

const ASK: &[u8] =
    br#"{"model":"claude","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;

fn key() -> Vec<creole::Header> {
    vec![header("x-api-key", "k")]
}

fn sent(envoy: &mut Envoy) -> String {
    assert_eq!(envoy.request("POST", MESSAGES, &key(), false).flow, Flow::Stop);
    let decision = envoy.body(ASK, true);
    text(&written(&decision, Side::Request, ASK)).to_owned()
}

#[test]
fn a_route_changes_models_and_settings_for_its_own_streams_alone() {
    let mut envoy = Envoy::new(r#"{"models":{"*":{"model":"of-all"}}}"#);
    envoy.route = r#"{"models":{"*":{"model":"of-route"}},"request_bytes_max":1024}"#.to_owned();
    assert!(sent(&mut envoy).starts_with(r#"{"model":"of-route""#));
    envoy.next_stream();
    envoy.request("POST", MESSAGES, &key(), false);
    assert_eq!(local(&envoy.body(&[b' '; 2000], true)).status, 413);
    envoy.next_stream();
    envoy.route.clear();
    assert!(sent(&mut envoy).starts_with(r#"{"model":"of-all""#));
}

#[test]
fn a_route_that_is_configured_badly_serves_nobody_and_is_told_once() {
    let mut envoy = Envoy::new("{}");
    envoy.route = r#"{"guards":{"pairing":"mend"}}"#.to_owned();
    let decision = envoy.request("POST", MESSAGES, &key(), false);
    let Some(Action::Log(Level::Error, line)) = decision.actions.first() else {
        panic!("{decision:?}");
    };
    let expected = "route metadata: configuration: guards.pairing: expected one of";
    assert!(line.starts_with(expected), "{line}");
    let response = local(&envoy.body(ASK, true));
    assert_eq!(response.status, 500);
    assert!(text(&response.body).contains("configuration of the route is not valid"));
    envoy.next_stream();
    let again = envoy.request("POST", MESSAGES, &key(), false);
    assert_eq!(again, Decision::stop(Vec::new()), "the log has it already");
    assert_eq!(local(&envoy.body(ASK, true)).status, 500);
    // What is not ours has no use for it.
    envoy.next_stream();
    assert_eq!(envoy.request("POST", "/v1/embeddings", &key(), false), Decision::pass());
}

#[test]
fn a_route_whose_metadata_the_host_does_not_give_serves_nobody() {
    let mut envoy = Envoy::new(r#"{"models":{"*":{"model":"of-all"}}}"#);
    envoy.gives_route = false;
    envoy.request("POST", MESSAGES, &key(), false);
    assert_eq!(local(&envoy.body(ASK, true)).status, 500);
    envoy.next_stream();
    envoy.gives_route = true;
    assert!(sent(&mut envoy).contains("of-all"));
}

#[test]
fn without_paused_heads_a_bad_route_is_refused_at_once() {
    let mut envoy = Envoy::new(r#"{"pause_headers":false}"#);
    envoy.route = "{".to_owned();
    assert_eq!(local(&envoy.request("POST", MESSAGES, &key(), false)).status, 500);
}

#[test]
fn a_new_configuration_forgets_what_routes_made_of_the_old_one() {
    let mut envoy = Envoy::new(r#"{"models":{"*":{"model":"old"}}}"#);
    envoy.route = r#"{"strict":true}"#.to_owned();
    assert!(sent(&mut envoy).starts_with(r#"{"model":"old""#));
    envoy.filter.on_configure(1, r#"{"models":{"*":{"model":"new"}}}"#, |_| None).unwrap();
    envoy.next_stream();
    assert!(sent(&mut envoy).starts_with(r#"{"model":"new""#));
}

#[test]
fn any_number_of_routes_is_served() {
    let mut envoy = Envoy::new("{}");
    for number in 0..200 {
        envoy.route = format!(r#"{{"models":{{"*":{{"model":"m{number}"}}}}}}"#);
        assert!(sent(&mut envoy).contains(&format!(r#""m{number}""#)), "{number}");
        envoy.next_stream();
    }
}

#[test]
fn a_route_too_many_makes_only_the_oldest_forgotten() {
    let mut envoy = Envoy::new("{}");
    let mut told = |number: usize| {
        envoy.next_stream();
        envoy.route = format!(r#"{{"no such key":{number}}}"#);
        let decision = envoy.request("POST", MESSAGES, &key(), false);
        decision.actions.iter().any(|action| matches!(action, Action::Log(..)))
    };
    for number in 0..65 {
        assert!(told(number), "{number}");
    }
    for number in 1..65 {
        assert!(!told(number), "{number}");
    }
    assert!(told(0));
}

/// Not a matter of routes' metadata, but of where a head leads that leaves before its body.
#[test]
fn without_paused_heads_a_count_leaves_for_the_tokenizer_and_a_message_for_its_protocol() {
    for (upstream, path, expected) in [
        (r#"{"profile":"vllm"}"#, "/v1/messages/count_tokens", "/tokenize"),
        (r#"{"profile":"vllm"}"#, MESSAGES, "/v1/chat/completions"),
        (r#"{"protocol":"anthropic"}"#, "/v1/messages/count_tokens", "/v1/messages/count_tokens"),
        (r#"{"protocol":"anthropic"}"#, MESSAGES, "/v1/messages"),
    ] {
        let config = format!(
            r#"{{"pause_headers":false,"count_tokens":"upstream","upstreams":{{"a":{upstream}}}}}"#
        );
        let mut envoy = Envoy::new(&config);
        let decision = envoy.request("POST", path, &key(), false);
        let head = envoy::replaced(&decision, Side::Request);
        assert_eq!(head.value(":path"), Some(expected), "{upstream} {path}");
        envoy.body(&ASK[..9], false);
        envoy.body(&ASK[9..], true);
        // What comes back is Creole's own head, whoever counted.
        let decision = envoy.head(200, &[header("server", "of the upstream")], false, "");
        let head = envoy::replaced(&decision, Side::Response);
        assert_eq!(head.value("content-type"), Some("application/json"), "{upstream} {path}");
        assert_eq!(head.value("server"), None, "{upstream} {path}");
    }
}

fn went(envoy: &mut Envoy, cluster: &str, is_checked: bool, details: &str) -> Decision {
    assert!(envoy.filter.awaits_route(envoy.id));
    envoy.filter.on_route(envoy.id, Route { cluster: cluster.to_owned(), is_checked });
    let status = if details == "via_upstream" { 200 } else { 403 };
    envoy.head(status, &[], true, details)
}

fn log(decision: &Decision) -> &str {
    match decision.actions.first() {
        Some(Action::Log(Level::Error, line)) => line,
        _ => "",
    }
}

#[test]
fn where_nobody_looks_at_routes_nothing_more_is_sent_for_a_while() {
    let mut envoy = Envoy::new("{}");
    sent(&mut envoy);
    let decision = went(&mut envoy, "web", false, "via_upstream");
    assert!(log(&decision).starts_with("route check: nothing behind this filter"), "{decision:?}");
    assert_eq!(local(&decision).status, 500);
    envoy.next_stream();
    envoy.request("POST", MESSAGES, &key(), false);
    assert_eq!(local(&envoy.body(ASK, true)).status, 500, "it is not sent");
    // What is not ours passes, and the filters may have changed in the meantime.
    envoy.next_stream();
    assert_eq!(envoy.request("POST", "/v1/embeddings", &key(), false), Decision::pass());
    envoy.next_stream();
    envoy.now += 60_000;
    sent(&mut envoy);
    assert_eq!(log(&went(&mut envoy, "upstream", true, "via_upstream")), "");
}

/// Whether a request for this host is sent.
fn is_sent(envoy: &mut Envoy, host: &str) -> bool {
    envoy.next_stream();
    envoy.host = host.to_owned();
    envoy.request("POST", MESSAGES, &key(), false);
    let decision = envoy.body(ASK, true);
    !matches!(decision.actions.last(), Some(Action::SendLocalResponse(it)) if it.status == 500)
}

#[test]
fn beside_guarded_routes_an_unguarded_one_stops_its_own_host_alone() {
    let mut envoy = Envoy::new("{}");
    assert!(is_sent(&mut envoy, "guarded"));
    went(&mut envoy, "upstream", true, "via_upstream");
    assert!(is_sent(&mut envoy, "bare"));
    let decision = went(&mut envoy, "web", false, "via_upstream");
    assert_eq!(local(&decision).status, 500, "it is refused itself");
    for _ in 0..3 {
        assert!(is_sent(&mut envoy, "guarded") && is_sent(&mut envoy, "other"));
        assert!(!is_sent(&mut envoy, "bare") && !is_sent(&mut envoy, "BARE"));
    }
    envoy.now += 60_000;
    assert!(is_sent(&mut envoy, "bare"), "it is tried again");
}

#[test]
fn a_guarded_host_gets_its_turn_though_an_unguarded_one_was_first() {
    let mut envoy = Envoy::new("{}");
    assert!(is_sent(&mut envoy, "bare"));
    went(&mut envoy, "web", false, "via_upstream");
    assert!(!is_sent(&mut envoy, "guarded"), "nobody knows yet that there is a guard");
    envoy.now += 30_000;
    assert!(!is_sent(&mut envoy, "bare") && is_sent(&mut envoy, "guarded"));
    went(&mut envoy, "upstream", true, "via_upstream");
    envoy.now += 30_000;
    assert!(is_sent(&mut envoy, "bare"));
    went(&mut envoy, "web", false, "via_upstream");
    assert!(is_sent(&mut envoy, "guarded") && !is_sent(&mut envoy, "bare"));
}

#[test]
fn a_bounded_number_of_hosts_is_remembered() {
    let mut envoy = Envoy::new("{}");
    assert!(is_sent(&mut envoy, "guarded"));
    went(&mut envoy, "upstream", true, "via_upstream");
    for number in 0..65 {
        assert!(is_sent(&mut envoy, &format!("bare{number}")), "{number}");
        went(&mut envoy, "web", false, "via_upstream");
    }
    assert!((1..65).all(|number| !is_sent(&mut envoy, &format!("bare{number}"))));
    assert!(is_sent(&mut envoy, "bare0"), "the oldest is forgotten");
}

#[test]
fn an_operator_can_do_without_the_check_of_routes() {
    let mut envoy = Envoy::new(r#"{"check_route":false}"#);
    sent(&mut envoy);
    let decision = went(&mut envoy, "web", false, "via_upstream");
    assert_eq!((log(&decision), local(&decision).status), ("", 502), "an empty answer, translated");
    // A route cannot.
    envoy.next_stream();
    envoy.route = r#"{"check_route":false}"#.to_owned();
    let decision = envoy.request("POST", MESSAGES, &key(), false);
    assert!(log(&decision).contains("a route cannot change it"), "{decision:?}");
}

#[test]
fn a_request_that_the_guard_refused_is_a_404_and_the_log_says_where_it_would_have_gone() {
    for config in ["{}", r#"{"pause_headers":false}"#] {
        let mut envoy = Envoy::new(config);
        envoy.request("POST", MESSAGES, &key(), false);
        envoy.body(ASK, true);
        let refused = "rbac_access_denied_matched_policy[creole_route]";
        let decision = went(&mut envoy, "web \"x\"", true, refused);
        assert_eq!(local(&decision).status, 404);
        assert!(log(&decision).contains(r#"the cluster "web \"x\"", which"#), "{decision:?}");
    }
}
