//! Sessions: the conversation to which a request belongs, as an upstream is told.

use super::*;

const TOLD: &str = r#"{"upstreams": {"u": {"url": "http://u", "key": "none",
    "session_headers": ["X-Session-Affinity", "x-dynamo-session-id"]}}}"#;

fn call_of(config: &str, sent: &[(&str, &str)], body: &Value) -> Vec<(String, String)> {
    let mut exchange = Exchange::new(drive::config(config), SEED, can(Pings::No));
    assert_eq!(exchange.decide("POST", "/v1/messages", &headers(sent)), Decision::Translate);
    exchange.request(body.to_string().as_bytes(), NOW).unwrap().headers
}

fn values<'h>(headers: &'h [(String, String)], name: &str) -> Vec<&'h str> {
    let found = headers.iter().filter(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str()).collect()
}

fn body(user_id: Option<&str>) -> Value {
    let mut body: Value = serde_json::from_slice(&ask(false)).unwrap();
    if let Some(user_id) = user_id {
        body["metadata"] = json!({"user_id": user_id});
    }
    body
}

#[test]
fn an_upstream_learns_the_conversation_under_the_names_that_it_reads() {
    let of_claude_code = [("x-claude-code-session-id", "s-1")];
    let user_id = r#"{"device_id": "d", "session_id": "s-2"}"#;
    for (headers, user_id, expected) in [
        (&of_claude_code[..], None, vec!["s-1"]),
        (&of_claude_code, Some(user_id), vec!["s-1"]),
        (&[("x-session-affinity", "s-3")], None, vec!["s-3"]),
        (&[], Some(user_id), vec!["s-2"]),
        (&[], Some("user_a_account_b_session_s-4"), vec!["s-4"]),
        (&[], Some("somebody"), vec![]),
        (&[], None, vec![]),
    ] {
        let sent = call_of(TOLD, headers, &body(user_id));
        for name in ["x-session-affinity", "x-dynamo-session-id"] {
            assert_eq!(values(&sent, name), expected, "{headers:?} {user_id:?}");
        }
    }
}

#[test]
fn a_sub_agent_belongs_to_the_session_that_started_it() {
    let main = [("x-claude-code-session-id", "s-1")];
    let agent = [main[0], ("x-claude-code-agent-id", "a-1")];
    assert_eq!(call_of(TOLD, &main, &body(None)), call_of(TOLD, &agent, &body(None)));
}

#[test]
fn an_upstream_that_is_not_told_learns_nothing() {
    let config = r#"{"upstreams": {"u": {"url": "http://u", "key": "none"}, "v": {"url": "http://v",
        "key": "none", "session_headers": ["x-session-id"]}}, "models": {"*": {"upstream": "u"},
        "v": {"upstream": "v"}}}"#;
    let headers = [("x-session-id", "s-1"), ("x-claude-code-session-id", "s-1")];
    let sent = call_of(config, &headers, &body(None));
    assert!(sent.iter().all(|(_, value)| value != "s-1"), "{sent:?}");
    let mut other = body(None);
    other["model"] = json!("v");
    assert_eq!(values(&call_of(config, &headers, &other), "x-session-id"), ["s-1"]);
}

#[test]
fn a_hostile_id_goes_as_its_hash_and_adds_no_header() {
    let user_id = json!({"session_id": "s\r\nauthorization: Bearer x"}).to_string();
    let sent = call_of(TOLD, &[], &body(Some(&user_id)));
    let told = values(&sent, "x-session-affinity");
    assert!(
        told[0].len() == 64 && told[0].bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{told:?}"
    );
    assert_eq!(values(&sent, "authorization"), Vec::<&str>::new());
}

#[test]
fn the_operators_own_header_wins_and_the_hash_hides_the_id() {
    let config = r#"{"upstreams": {"u": {"url": "http://u", "key": "none", "session_id": "hash",
        "headers": {"x-session-id": "fixed"}, "session_headers": ["x-session-id", "x-smg-routing-key"]}}}"#;
    let sent = call_of(config, &[("session-id", "s-1")], &body(None));
    assert_eq!(values(&sent, "x-session-id"), ["fixed"]);
    assert_eq!(values(&sent, "x-smg-routing-key")[0].len(), 64);
}

#[test]
fn a_second_round_belongs_to_the_same_conversation() {
    let host = HostCan { ask_again: true, ..can(Pings::No) };
    let mut exchange = Exchange::new(drive::config(TOLD), SEED, host);
    exchange.decide("POST", "/v1/messages", &[]);
    let mut body = body(Some("user_a_session_s-4"));
    body["temperature"] = json!(0.5);
    let first = exchange.request(body.to_string().as_bytes(), NOW).unwrap();
    exchange.handle_call_head(400, &[], NOW);
    let refusal = json!({"error": {"message": "Unsupported parameter: temperature", "param": "temperature",
        "code": "unsupported_parameter"}});
    exchange.piece(refusal.to_string().as_bytes(), NOW, &mut Vec::new());
    exchange.end(End::Complete, NOW, &mut Vec::new());
    let second = exchange.poll_call(NOW).unwrap();
    assert_ne!(first.body, second.body);
    assert_eq!(values(&second.headers, "x-session-affinity"), ["s-4"]);
}

#[test]
fn a_request_of_another_protocol_keeps_the_headers_that_the_upstream_is_told_by() {
    let config = r#"{"upstreams": {"u": {"url": "http://u", "key": {"env": "KEY"},
        "session_headers": ["x-session-id"]}}}"#;
    let config = Config::from_json(config, |_| Some("sk-own".to_owned())).unwrap();
    let (upstream, _) = creole::passed(&config, "/v1/chat/completions").unwrap();
    let head = [("x-session-id", "s-1"), ("session-id", "s-1")];
    let passed = creole::PassedHead::of_request(head, upstream);
    let stays = |name: &str| passed.remove.iter().any(|removed| removed == name);
    assert!(!stays("x-session-id") && stays("session-id"));
}
