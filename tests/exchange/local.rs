//! Requests that need no model, where the configuration wants them answered here.

use super::*;

const BOTH: &str = r#"{"answer_locally": ["quota_probe", "title"]}"#;

fn probe(more: Value) -> Value {
    let mut body = json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "quota"}],
        "metadata": {"user_id": "u"}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Returns a request for a title, in the form that Claude Code uses.
fn title(said: Value) -> Value {
    json!({"model": "m", "max_tokens": 32000, "system": "Write a title.",
        "messages": [{"role": "user", "content": said}],
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object",
            "properties": {"title": {"type": "string"}}, "required": ["title"], "additionalProperties": false}}}})
}

/// The message that was given here; nothing where an upstream is asked.
fn answered(config: &str, mut body: Value) -> Option<Value> {
    let whole = answer_to(config, &body)?;
    body["stream"] = json!(true);
    let streamed = answer_to(config, &body).unwrap();
    let events = String::from_utf8(streamed.1.clone()).unwrap();
    grammar::check_stream(events.as_bytes(), Rules::default()).unwrap();
    assert!(events.contains("event: message_stop"), "{events}");
    let message: Value = serde_json::from_slice(&whole.1).unwrap();
    let text = message["content"][0]["text"].to_string();
    assert!(events.contains(&format!(r#""text":{text}"#)), "{text} {events}");
    for answer in [whole, streamed] {
        assert!(answer.0.starts_with("answered_locally:"), "{}", answer.0);
    }
    Some(message)
}

/// The header with the warnings, and the body.
fn answer_to(config: &str, body: &Value) -> Option<(String, Vec<u8>)> {
    let mut exchange = Exchange::new(drive::config(config), SEED, can(Pings::No));
    exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
    exchange.handle_request_body(body.to_string().into_bytes(), NOW);
    if exchange.poll_call(NOW).is_some() {
        return None;
    }
    let reply = exchange.poll_reply().unwrap();
    assert_eq!(reply.head.status, 200);
    Some((header(&reply.head, "x-creole-warnings").unwrap_or_default().to_owned(), reply.body))
}

#[test]
fn a_probe_gets_its_one_token_here() {
    let message = answered(BOTH, probe(json!({}))).unwrap();
    assert_eq!(message["content"], json!([{"type": "text", "text": "OK"}]));
    assert_eq!((&message["stop_reason"], &message["model"]), (&json!("max_tokens"), &json!("m")));
    assert_eq!(message["usage"]["output_tokens"], 1);
}

#[test]
fn a_title_is_the_beginning_of_what_was_said() {
    for (said, expected) in [
        (json!("Fix the \"login\" page"), r#"{"title":"Fix the \"login\" page"}"#),
        (
            json!("Rewrite the parser of the configuration so that errors name the line"),
            r#"{"title":"Rewrite the parser of the configuration so that"}"#,
        ),
        (
            json!([{"type": "text", "text": "<system-reminder>x</system-reminder>"}, {"type": "text", "text": "\n Hi\nthere"}]),
            r#"{"title":"Hi"}"#,
        ),
    ] {
        let message = answered(BOTH, title(said)).unwrap();
        assert_eq!(message["content"][0]["text"], expected);
        assert_eq!(message["stop_reason"], "end_turn");
    }
    assert_eq!(answered(BOTH, title(json!("<only>\n<tags>"))), None);
}

#[test]
fn nothing_is_answered_here_that_nobody_asked_for() {
    assert_eq!(answered("{}", probe(json!({}))), None);
    assert_eq!(answered("{}", title(json!("Hi"))), None);
    assert_eq!(answered(r#"{"answer_locally": ["title"]}"#, probe(json!({}))), None);
    assert_eq!(answered(r#"{"answer_locally": ["quota_probe"]}"#, title(json!("Hi"))), None);
}

#[test]
fn what_a_model_has_to_answer_goes_to_it() {
    let tool = json!([{"name": "t", "input_schema": {"type": "object"}}]);
    for body in [
        probe(json!({"max_tokens": 2})),
        probe(json!({"tools": tool})),
        probe(json!({"stop_sequences": ["x"]})),
        probe(
            json!({"messages": [{"role": "user", "content": "Is this a longer question than a word?"}]}),
        ),
        probe(
            json!({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "a"}]}),
        ),
    ] {
        assert_eq!(answered(BOTH, body.clone()), None, "{body}");
    }
    let mut more = title(json!("Hi"));
    more["output_config"]["format"]["schema"]["properties"]["branch"] = json!({"type": "string"});
    assert_eq!(answered(BOTH, more), None);
    let mut other = title(json!("Hi"));
    other["output_config"]["format"]["schema"]["properties"]["title"]["type"] = json!("array");
    assert_eq!(answered(BOTH, other), None);
}

#[test]
fn a_model_without_an_upstream_is_not_found_here_either() {
    let config = r#"{"answer_locally": ["quota_probe"], "models": {"a": {}}}"#;
    let mut exchange = Exchange::new(drive::config(config), SEED, can(Pings::No));
    exchange.decide("POST", "/v1/messages", &[]);
    exchange.handle_request_body(probe(json!({})).to_string().into_bytes(), NOW);
    assert!(exchange.poll_call(NOW).is_none());
    assert_eq!(exchange.poll_reply().unwrap().head.status, 404);
}
