//! Calls that a model just made, and the definitions they are made by.

use super::*;

fn called(settings: Value, arguments: Value, stream: bool) -> Turn {
    let config = drive::config(&settings.to_string());
    let mut body = request(&[user("q")], &[tool("shell", &["command"])]);
    body["stream"] = json!(stream);
    ask(&config, &body, &|_| (200, calls("shell", &arguments)), false)
}

#[test]
fn an_input_that_violates_its_schema_is_counted_passed_or_held() {
    let empty = || json!({});
    let passed = called(json!({}), empty(), false);
    assert_eq!(passed.body["stop_reason"], "tool_use");
    assert_eq!(passed.header("x-creole-warnings"), "");
    for settings in [
        json!({"tool_stream": "buffered"}),
        json!({"invalid_tool_call": "repair"}),
        json!({"invalid_tool_call": "repair", "tool_stream": "buffered"}),
    ] {
        let turn = called(settings.clone(), empty(), false);
        assert_eq!(turn.body["stop_reason"], "tool_use", "{settings}");
        let warnings = turn.header("x-creole-warnings").to_owned();
        assert!(warnings.contains("tool_input_violates_schema"), "{settings} {warnings}");
        let fits = called(settings, json!({"command": "ls"}), false);
        assert!(!fits.header("x-creole-warnings").contains("violates"));
    }
    let hold = || json!({"invalid_tool_call": "hold", "tool_stream": "buffered"});
    let held = called(hold(), empty(), false);
    assert_eq!(held.head.status, 502);
    assert_eq!(held.message(), "Model produced an invalid tool call");
    assert!(held.header("x-creole-warnings").contains("tool_input_violates_schema"));
    let fits = called(hold(), json!({"command": "ls"}), false);
    assert_eq!(fits.body["stop_reason"], "tool_use");
}

#[test]
fn lossless_repairs_come_before_the_check_and_are_counted() {
    let schema = json!({"type": "object", "properties": {"command": {"type": "string"}},
        "required": ["command"], "additionalProperties": false});
    let body = request(&[user("q")], &[json!({"name": "Run_Shell", "input_schema": schema})]);
    let config = drive::config(r#"{"invalid_tool_call":"repair","tool_stream":"buffered"}"#);
    let arguments = json!({"command": "ls", "id": "toolu_9"});
    let turn = ask(&config, &body, &|_| (200, calls("run shell", &arguments)), false);
    assert_eq!(turn.body["content"][0]["input"], json!({"command": "ls"}));
    assert_eq!(turn.body["content"][0]["name"], "Run_Shell");
    let warnings = turn.header("x-creole-warnings");
    assert!(warnings.contains("tool_input_repaired") && warnings.contains("tool_name_repaired"));
    assert!(!warnings.contains("violates"), "{warnings}");
}

#[test]
fn strict_mode_checks_definitions_as_the_real_api_does() {
    let strict = drive::config(r#"{"strict":true}"#);
    let refused = |schema: Value| {
        let body = request(&[user("q")], &[json!({"name": "w", "input_schema": schema})]);
        let turn = ask(&strict, &body, &|_| (200, says("ok")), false);
        (turn.head.status, turn.message().to_owned())
    };
    let path = "tools.0.custom.input_schema";
    for (schema, message) in [
        (json!({}), format!("{path}.type: Field required")),
        (json!({"type": null}), format!("{path}.type: Field required")),
        (json!({"type": "string"}), format!("{path}.type: Input should be 'object'")),
        (
            json!({"type": "object", "properties": []}),
            format!("{path}.properties: Input should be a valid dictionary"),
        ),
        (
            json!({"type": "object", "required": "a"}),
            format!("{path}.required: Input should be a valid list"),
        ),
        (
            json!({"type": "object", "anyOf": []}),
            format!(
                "{path}: input_schema does not support oneOf, allOf, or anyOf at the top level"
            ),
        ),
    ] {
        assert_eq!(refused(schema), (400, message));
    }
    assert_eq!(refused(json!({"type": "object", "properties": {"a": {"anyOf": []}}})).0, 200);
}
