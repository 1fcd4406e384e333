//! Tests of `request.rs`.

use super::*;

fn error(body: &str) -> String {
    let mut warnings = Warnings::new(false);
    Request::read(body, &mut warnings).unwrap_err().message.clone()
}

#[test]
fn a_wrong_body_is_refused_with_its_path() {
    let message = |content: &str| {
        format!(
            r#"{{"model":"m","max_tokens":1,"messages":[{{"role":"user","content":{content}}}]}}"#
        )
    };
    for (body, expected) in [
        ("", "The request body is not valid JSON: expected a value at byte 0"),
        ("not json", "The request body is not valid JSON: expected a value at byte 0"),
        (
            "[1}",
            "The request body is not valid JSON: expected a comma or the end of an array at byte 2",
        ),
        ("[]", "The request body: expected an object, but found an array"),
        (r#"{"model":"m","#, "The request body is not valid JSON: expected a key at byte 13"),
        (r#"{"messages":[],"max_tokens":1}"#, "model: Field required"),
        (r#"{"model":"m","max_tokens":1}"#, "messages: Field required"),
        (r#"{"model":null,"messages":[],"max_tokens":1}"#, "model: Field required"),
        (r#"{"max_tokens":-1}"#, "max_tokens: Input should be greater than or equal to 0"),
        (r#"{"max_tokens":1.5}"#, "max_tokens: Input should be a valid integer"),
        (r#"{"max_tokens":1e30}"#, "max_tokens: Input should be a valid integer"),
        (r#"{"max_tokens":-1.0}"#, "max_tokens: Input should be a valid integer"),
        (r#"{"max_tokens":"5"}"#, "max_tokens: Input should be a valid integer"),
        (r#"{"stream":"yes"}"#, "stream: expected a boolean, but found a string"),
        (r#"{"messages":{}}"#, "messages: expected an array, but found an object"),
        (r#"{"messages":["x"]}"#, "messages[0]: expected an object, but found a string"),
        (r#"{"messages":[{"content":"x"}]}"#, "messages[0].role: Field required"),
        (r#"{"messages":[{"role":"user"}]}"#, "messages[0].content: Field required"),
        (
            r#"{"messages":[{"role":"tool","content":"x"}]}"#,
            "messages[0].role: Input should be 'user', 'assistant' or 'system'",
        ),
        (&message("7"), "messages[0].content: expected a string or an array, but found a number"),
        (&message(r#"[{"text":"x"}]"#), "messages[0].content[0].type: Field required"),
        (&message(r#"[{"type":"text"}]"#), "messages[0].content[0].text: Field required"),
        (
            &message(r#"[{"text":[],"type":"text"}]"#),
            "messages[0].content[0].text: expected a string, but found an array",
        ),
        (
            &message(
                r#"[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"base64","data":5}}]}]"#,
            ),
            "messages[0].content[0].content[0].source.data: expected a string, but found a number",
        ),
        (
            r#"{"thinking":{"type":"on"}}"#,
            "thinking: Input tag 'on' found using 'type' does not match any of the expected tags: 'adaptive', 'between_tools', 'disabled', 'enabled'",
        ),
        (
            r#"{"system":[{"type":"image"}]}"#,
            "system[0]: Input tag 'image' found using 'type' does not match any of the expected tags: 'text'",
        ),
    ] {
        assert_eq!(error(body), expected, "{body}");
    }
}

#[test]
fn a_whole_number_may_have_a_point() {
    for (number, expected) in [("4096", 4096), ("4096.0", 4096), ("4e3", 4000)] {
        let body = format!(r#"{{"model":"m","messages":[],"max_tokens":{number}}}"#);
        let request = Request::read(&body, &mut Warnings::new(true)).unwrap();
        assert_eq!(request.max_tokens, Some(expected), "{number}");
    }
}

#[test]
fn the_type_of_a_block_may_come_last() {
    let body = r#"{"max_tokens":1,"messages":[{"content":[{"content":[{"text":"a","type":"text"}],"is_error":true,"tool_use_id":"t","type":"tool_result"}],"role":"user"}],"model":"m"}"#;
    let request = Request::read(body, &mut Warnings::new(false)).unwrap();
    let [Message { role: Role::User, content, .. }] = &request.messages[..] else { panic!() };
    let [Block::ToolResult(result)] = &content[..] else { panic!() };
    assert!(result.is_error && result.id == "t");
    assert!(matches!(&result.content[..], [Block::Text(text)] if text.text == "a"));
}

#[test]
fn thinking_as_other_servers_of_messages_take_it_is_adaptive() {
    for (thinking, strictly) in [
        (r#"{"type":"enabled"}"#, "thinking.budget_tokens: Field required"),
        (
            r#"{"type":"auto"}"#,
            "thinking: Input tag 'auto' found using 'type' does not match any of the expected tags: 'adaptive', 'between_tools', 'disabled', 'enabled'",
        ),
    ] {
        let body = format!(r#"{{"model":"m","max_tokens":1,"messages":[],"thinking":{thinking}}}"#);
        let mut warnings = Warnings::new(false);
        let request = Request::read(&body, &mut warnings).unwrap();
        assert!(matches!(request.thinking.unwrap().mode, ThinkingMode::Adaptive));
        assert_eq!(warnings.header().unwrap(), "thinking_without_budget");
        let strict = Request::read(&body, &mut Warnings::new(true)).unwrap_err();
        assert_eq!(strict.message, strictly);
    }
}

#[test]
fn members_of_other_blocks_are_unknown_fields() {
    let body = r#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a","tool_use_id":"t"}],"x":1}],"novel":{}}"#;
    let mut warnings = Warnings::new(false);
    Request::read(body, &mut warnings).unwrap();
    assert_eq!(
        warnings.header().unwrap(),
        "unknown_field:tool_use_id,unknown_field:x,unknown_field:novel"
    );
    let strict = Request::read(body, &mut Warnings::new(true)).unwrap_err();
    assert_eq!(
        strict.message,
        "messages[0].content[0].tool_use_id: Extra inputs are not permitted"
    );
}
