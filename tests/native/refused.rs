//! Refusals by an upstream of requests that went up unchanged.

use creole::{HostCan, Pings};

use super::support::drive::{Exchange, Steps as _, can};

use super::*;

/// The second request, and what it was counted as.
pub(super) fn again(
    config: &Arc<Config>,
    body: &Value,
    status: u16,
    message: &str,
) -> Option<(Value, String)> {
    // However it is written.
    let body = serde_json::to_string_pretty(body).unwrap();
    let host = HostCan { ask_again: true, ..can(Pings::Sent) };
    let mut exchange = Exchange::new(Arc::clone(config), 7, host);
    exchange.decide("POST", "/v1/messages", &drive::headers(&[("x-api-key", "k")]));
    exchange.request(body.as_bytes(), 1).unwrap();
    exchange.handle_call_head(status, &[], 1);
    let error =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    exchange.piece(error.to_string().as_bytes(), 1, &mut Vec::new());
    exchange.end(End::Complete, 1, &mut Vec::new());
    let again = exchange.poll_call(1)?;
    let warnings = exchange.report().warnings.header().unwrap_or_default();
    Some((serde_json::from_slice(&again.body).unwrap(), warnings))
}

fn request(messages: Value) -> Value {
    json!({"model": "m", "max_tokens": 32_000, "temperature": 0.2, "top_k": 4,
        "thinking": {"type": "enabled", "budget_tokens": 16_000},
        "output_config": {"effort": "max"}, "future": {"a": [1]}, "messages": messages})
}

fn hello() -> Value {
    json!([{"role": "user", "content": "hi"}])
}

/// A tool gave an image and a PDF, and the model has thought.
fn looked() -> Value {
    let source = |media_type| json!({"type": "base64", "media_type": media_type, "data": "AA"});
    json!([
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]},
        {"role": "assistant", "content": [
            {"type": "redacted_thinking", "data": "x"},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": 1.0}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [
                {"type": "text", "text": "see"},
                {"type": "image", "source": source("image/png"), "cache_control": {"type": "ephemeral"}},
                {"type": "document", "source": source("application/pdf")}]},
            {"type": "document", "source": source("application/pdf")}]},
    ])
}

#[test]
fn a_model_without_eyes_is_asked_again_without_images() {
    let body = request(looked());
    for message in [
        "messages[3].content: unknown variant `image`, expected one of `text`, `tool_result`",
        "this model does not support image input",
        "Could not process image",
    ] {
        let (sent, warnings) = again(&config(), &body, 400, message).expect(message);
        let mut expected = body.clone();
        expected["messages"][3]["content"][0]["content"][1] = json!({"type": "text",
            "text": "[image omitted: this model does not take images]",
            "cache_control": {"type": "ephemeral"}});
        assert_eq!(sent, expected);
        assert_eq!(warnings, "dropped:image,images_refused");
    }
    // One that the user has just given is the user's to mend.
    let mut body = body;
    body["messages"] =
        json!([{"role": "user", "content": [looked()[3]["content"][0]["content"][1]]}]);
    assert_eq!(again(&config(), &body, 400, "Could not process image"), None);
}

#[test]
fn an_image_that_a_model_gave_is_refused_like_others() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
    let body = request(json!([
        {"role": "user", "content": "draw"},
        {"role": "assistant", "content": [image]},
        {"role": "user", "content": "now in red"}]));
    let message = "this model does not support image input";
    let (sent, _) = again(&config(), &body, 400, message).unwrap();
    assert_eq!(sent["messages"][1]["content"][0]["type"], "text", "{sent}");
}

#[test]
fn a_model_that_reads_no_pdf_is_asked_again_without_those_of_tools() {
    let body = request(looked());
    let message = "This model does not support PDF input";
    let (sent, warnings) = again(&config(), &body, 400, message).unwrap();
    let mut expected = body.clone();
    expected["messages"][3]["content"][0]["content"][2] = json!({"type": "text",
        "text": "[document omitted: this model does not take PDF documents]"});
    assert_eq!(sent, expected);
    assert_eq!(warnings, "dropped:document,documents_refused");
}

#[test]
fn thinking_that_is_refused_leaves_the_conversation() {
    let body = request(looked());
    let message = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let (sent, warnings) = again(&config(), &body, 400, message).unwrap();
    let mut expected = body.clone();
    let messages = expected["messages"].as_array_mut().unwrap();
    messages[2]["content"].as_array_mut().unwrap().remove(0);
    // Nothing is left of the second.
    messages.remove(1);
    assert_eq!(sent, expected);
    assert_eq!(warnings, "dropped:reasoning,reasoning_refused");
    let body = request(hello());
    assert_eq!(again(&config(), &body, 400, message), None);
}

#[test]
fn a_limit_and_parameters_that_are_refused_are_changed() {
    for (status, message, pointer, value, counted) in [
        (
            400,
            "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for m",
            "/max_tokens",
            Some(json!(8192)),
            "max_tokens_refused",
        ),
        (
            400,
            "\"m\" does not support thinking",
            "/thinking",
            None,
            "dropped:thinking,parameter_refused:reasoning_effort_values",
        ),
        (
            400,
            "temperature: `temperature` is deprecated for this model",
            "/temperature",
            None,
            "dropped:temperature,parameter_refused:sampling",
        ),
        (
            400,
            "top_k: Extra inputs are not permitted",
            "/top_k",
            None,
            "dropped:top_k,parameter_refused:top_k",
        ),
        (
            400,
            "output_config.effort: unknown variant `max`, expected one of `low`, `high`",
            "/output_config/effort",
            Some(json!("high")),
            "parameter_refused:reasoning_effort_values",
        ),
        (
            400,
            "output_config.effort: Extra inputs are not permitted",
            "/output_config",
            None,
            "dropped:output_config.effort,parameter_refused:reasoning_effort_values",
        ),
    ] {
        let body = request(hello());
        let (sent, warnings) = again(&config(), &body, status, message).expect(message);
        assert_eq!(sent.pointer(pointer), value.as_ref(), "{message}");
        assert_eq!(warnings, counted);
        // All else is what it was.
        assert_eq!(sent["future"], body["future"]);
        assert_eq!(sent["messages"], body["messages"]);
        let budget = if counted == "max_tokens_refused" { 4096 } else { 16_000 };
        if sent.get("thinking").is_some() {
            assert_eq!(sent["thinking"]["budget_tokens"], budget);
        }
    }
}

#[test]
fn what_clears_thinking_goes_with_it() {
    let clearing = json!({"type": "clear_thinking_20251015", "keep": "all"});
    let other = json!({"type": "clear_tool_uses_20250919"});
    for (edits, kept) in
        [(json!([clearing]), None), (json!([clearing, other]), Some(json!({"edits": [other]})))]
    {
        let mut body = request(hello());
        body["context_management"] = json!({"edits": edits});
        let (sent, _) = again(&config(), &body, 400, "\"m\" does not support thinking").unwrap();
        assert_eq!(sent.get("thinking"), None);
        assert_eq!(sent.get("context_management"), kept.as_ref());
    }
}

#[test]
fn what_no_second_request_can_mend_is_told() {
    let body = request(hello());
    for (status, message) in [
        (400, "messages: text content blocks must be non-empty"),
        (400, "Unsupported parameter: 'stop' is not supported with this model."),
        (400, "user: Extra inputs are not permitted"),
        (429, "top_k: Extra inputs are not permitted"),
        // Claude Code asks for the other type by itself.
        (
            400,
            "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\"",
        ),
        (400, "adaptive thinking is not supported on this model"),
        // It was not sent.
        (400, "service_tier: Extra inputs are not permitted"),
    ] {
        assert_eq!(again(&config(), &body, status, message), None, "{message}");
    }
    let strict = config_with(None, r#","strict":true"#);
    let message = "top_k: Extra inputs are not permitted";
    assert_eq!(again(&strict, &body, 400, message), None);
}

#[test]
fn a_member_that_decides_something_stands_once() {
    let config = drive::config(
        r#"{"upstreams":{"chat":{"url":"http://c"},"native":{"url":"http://n","protocol":"anthropic"}},
            "models":{"cheap":{"upstream":"native"},"dear":{"upstream":"native"},"other":{"upstream":"chat"}}}"#,
    );
    let ask = |members: &str| {
        let body = format!(
            r#"{{{members},"max_tokens":9,"messages":[{{"role":"user","content":"hi"}}]}}"#
        );
        let mut exchange = Exchange::new(Arc::clone(&config), 7, can(Pings::Sent));
        let key = drive::headers(&[("x-api-key", "k")]);
        exchange.decide("POST", "/v1/messages", &key);
        exchange.request(body.as_bytes(), 1)
    };
    for (members, name) in [
        (r#""model":"dear","model":"cheap""#, "model"),
        (r#""mod\u0065l":"dear","model":"cheap""#, "model"),
        (r#""model":"other","model":"cheap""#, "model"),
        (r#""model":"cheap","model":"cheap""#, "model"),
        (r#""model":"cheap","max_tokens":1"#, "max_tokens"),
        (r#""model":"cheap","messages":[]"#, "messages"),
        (r#""model":"cheap","stream":true,"stream":false"#, "stream"),
        (r#""model":"cheap","tools":[],"to\u006fls":[]"#, "tools"),
        (r#""model":"cheap","system":"a","system":"b""#, "system"),
        (r#""model":"cheap","service_tier":"auto","service_tier":"x""#, "service_tier"),
    ] {
        let reply = ask(members).unwrap_err();
        let body = String::from_utf8(reply.body).unwrap();
        assert_eq!(reply.head.status, 400, "{members}");
        assert!(body.contains(&format!("{name}: expected each name once")), "{members}: {body}");
    }
    // What nobody knows goes up as it came, and a translated request has one model.
    assert!(ask(r#""model":"cheap","future":1,"future":2"#).is_ok());
    let sent = ask(r#""model":"cheap","model":"other""#).unwrap();
    assert_eq!(sent.upstream(), Some("chat"));
    assert_eq!(String::from_utf8(sent.body).unwrap().matches("\"model\"").count(), 1);
}
