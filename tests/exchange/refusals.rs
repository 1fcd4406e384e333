//! Stop sequences and messages without words that an upstream does not take as they were sent.

use super::host::{Host, request};
use super::*;

fn stops(count: usize) -> Value {
    let names: Vec<_> = (0..count).map(|at| format!("END{at}")).collect();
    request("m", json!({"stop_sequences": names}))
}

fn sent_stops(sent: &Value) -> usize {
    sent["stop"].as_array().map_or(0, Vec::len)
}

#[test]
fn as_many_stop_sequences_are_sent_as_the_upstream_takes() {
    for (message, most) in [
        (
            "[{'type': 'too_long', 'loc': ('body', 'stop', 'list[str]'), 'msg': 'List should have at most 4 items after validation, not 6', 'input': ['END0', 'END1'], 'ctx': {'field_type': 'List', 'max_length': 4}}]",
            4,
        ),
        (
            "Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 6 instead.",
            4,
        ),
        ("`stop` supports up to 2 stop sequences. Given: 6", 2),
        ("['END0', 'END1'] is too long - 'stop'", 0),
    ] {
        let refuses = |sent: &Value| (sent_stops(sent) > most).then_some(message);
        let host = Host::new(true, &refuses);
        for asked in [2, 1] {
            let got = host.ask(&stops(6), NOW);
            assert_eq!((got.status(), got.asked.len()), ((200, None), asked), "{message}");
            assert_eq!(sent_stops(got.asked.last().unwrap()), most);
            let key = if most == 0 { "stop" } else { "max_stop" };
            assert_eq!(got.warnings(), format!("parameter_refused:{key}"));
        }
        // As many as it takes are sent as they came.
        let few = most.max(1);
        let got = host.ask(&stops(few), NOW);
        assert_eq!(sent_stops(&got.asked[0]), few.min(most), "{message}");
        // Envoy has its client ask again.
        let host = Host::new(false, &refuses);
        assert_eq!(host.ask(&stops(6), NOW).status(), (529, Some("true")));
        assert_eq!(host.ask(&stops(6), NOW).status(), (200, None));
    }
}

#[test]
fn a_list_that_is_too_long_is_not_taken_for_stop_sequences() {
    let message = "tools: List should have at most 4 items after validation, not 5";
    let always = |_: &Value| Some(message);
    let host = Host::new(true, &always);
    let got = host.ask(&stops(6), NOW);
    assert_eq!((got.status().0, got.asked.len()), (400, 1));
    // None was sent.
    let message = "body.stop: List should have at most 4 items after validation, not 5";
    let always = |_: &Value| Some(message);
    let host = Host::new(true, &always);
    let got = host.ask(&request("m", json!({})), NOW);
    assert_eq!((got.status().0, got.asked.len()), (400, 1));
}

#[test]
fn a_message_with_calls_alone_is_sent_as_the_upstream_takes_it() {
    let called = json!([
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r"}]},
    ]);
    for (status, refused, message) in [
        (
            422,
            Value::Null,
            "[{'type': 'string_type', 'loc': ('body', 'messages', 1, 'content'), 'msg': 'Input should be a valid string', 'input': None}]",
        ),
        (400, Value::Null, "messages[1]: invalid type: null, expected a string"),
        (500, Value::Null, "can only concatenate str (not \"NoneType\") to str"),
        (400, json!(""), "messages[1].content cannot be empty"),
    ] {
        let refuses = |sent: &Value| (sent["messages"][1]["content"] == refused).then_some(message);
        let overrides = if refused.is_null() { "null" } else { "empty" };
        let config = json!({"upstreams": {"a": {"profile_overrides":
            {"empty_assistant_content": overrides}}}});
        let config = drive::config(&config.to_string());
        let host = Host { status, config, ..Host::new(true, &refuses) };
        for asked in [2, 1] {
            let got = host.ask(&request("m", json!({"messages": called})), NOW);
            assert_eq!((got.status(), got.asked.len()), ((200, None), asked), "{message}");
            assert_eq!(got.warnings(), "parameter_refused:empty_assistant_content");
        }
        // Where no such message was sent, it means something else.
        let always = |_: &Value| Some(message);
        let host = Host { status, ..Host::new(true, &always) };
        assert_eq!(host.ask(&request("m", json!({})), NOW).asked.len(), 1, "{message}");
    }
}

/// Tests an answer that turns out to be wrongly packed only after the refusal in it was read.
#[test]
fn a_refusal_that_cannot_be_unpacked_to_its_end_leads_to_another_request() {
    let can = HostCan { ask_again: true, ..HostCan::default() };
    let mut exchange = Exchange::new(drive::config("{}"), SEED, can);
    exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
    let body = request("m", json!({})).to_string();
    exchange.request(body.as_bytes(), NOW).unwrap();
    exchange.handle_call_head(400, &[], NOW);
    exchange.handle_call_body(
        br#"{"error": {"message": "Unsupported parameter: 'temperature'"}}"#,
        NOW,
    );
    exchange.handle_failure(Failure::Undecodable, NOW);
    let again = exchange.poll_call(NOW).expect("another request");
    assert!(!String::from_utf8(again.body).unwrap().contains("temperature"));
    assert_eq!(exchange.report().retries, 1);
}

#[test]
fn documents_stay_where_the_upstream_takes_no_images() {
    let message = "This model supports text and pdf input, but does not support image input";
    let refuses = |sent: &Value| sent.to_string().contains("image_url").then_some(message);
    let config =
        drive::config(r#"{"upstreams": {"a": {"profile_overrides": {"file_parts": true}}}}"#);
    let host = Host { config, ..Host::new(true, &refuses) };
    let source = |kind: &str| json!({"type": "base64", "media_type": kind, "data": "iVBORw0KGgoAAAANSUhEUg=="});
    let content = json!([
        {"type": "image", "source": source("image/png")},
        {"type": "document", "source": source("application/pdf")},
        {"type": "text", "text": "what?"},
    ]);
    let got =
        host.ask(&request("m", json!({"messages": [{"role": "user", "content": content}]})), NOW);
    assert_eq!((got.status(), got.asked.len()), ((200, None), 2));
    assert!(got.asked[1].to_string().contains("application/pdf"), "{:?}", got.asked[1]);
}

#[test]
fn an_effort_that_is_refused_by_its_value_is_not_left_out_of_other_requests() {
    let message = "1 validation error for Request\nreasoning_effort\n  Value error, reasoning_effort is not supported [type=value_error, input_value='xhigh', input_type=str]";
    let refuses = |sent: &Value| (sent["reasoning_effort"] == "xhigh").then_some(message);
    let config = drive::config(r#"{"upstreams": {"a": {"profile": "openai-chat"}}}"#);
    let host = Host { config, ..Host::new(true, &refuses) };
    let with = |effort: &str| {
        request("m", json!({"output_config": {"effort": effort}, "thinking": {"type": "adaptive"}}))
    };
    let got = host.ask(&with("max"), NOW);
    assert_eq!(got.status(), (200, None), "{:?}", got.asked);
    let got = host.ask(&with("high"), NOW);
    assert_eq!(got.asked[0]["reasoning_effort"], "high", "{:?}", got.asked);
}
