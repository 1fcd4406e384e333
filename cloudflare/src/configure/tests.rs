//! Tests of `configure.rs`.

use super::*;

#[test]
fn limits_are_lowered_to_what_an_isolate_bears() {
    let document = r#"{"request_bytes_max": 1000000, "response_bytes_max": 100000000}"#;
    let made = read(|name| match name {
        "CREOLE_CONFIG" => Some(Variable::Json(document.to_owned())),
        "UPSTREAM_URL" => Some(Variable::Text("https://a".to_owned())),
        _ => None,
    })
    .unwrap();
    assert_eq!(made.settings.request_bytes_max, 1_000_000);
    assert_eq!(made.settings.response_bytes_max, RESPONSE_BYTES_MAX);
    assert_eq!(made.settings.buffered_bytes_max, BUFFERED_BYTES_MAX);
}

#[test]
fn calls_of_server_tools_are_few_by_default() {
    for (document, expected) in [
        ("{}", TOOL_CALLS_MAX),
        (r#"{"server_tools": {"calls_max": 7}}"#, 7),
        (r#"{"server_tools": {"calls_max": 900}}"#, 900),
    ] {
        let made = read(|name| match name {
            "CREOLE_CONFIG" => Some(Variable::Text(document.to_owned())),
            "UPSTREAM_URL" => Some(Variable::Text("https://a".to_owned())),
            _ => None,
        });
        assert_eq!(made.unwrap().settings.server_tools.calls_max, expected, "{document}");
    }
}

#[test]
fn a_binding_that_is_no_text_is_no_key() {
    let error = |key: &'static str| {
        let document = format!(r#"{{"upstreams":{{"a":{{"key":{{"secret":"{key}"}}}}}}}}"#);
        let made = read(|name| match name {
            "CREOLE_CONFIG" => Some(Variable::Text(document.clone())),
            "UPSTREAM_URL" => Some(Variable::Text("https://a".to_owned())),
            name if name == key => Some(Variable::Json("{}".to_owned())),
            _ => None,
        });
        made.unwrap_err()
    };
    for key in ["UPSTREAM_KEY", "VLLM_KEY"] {
        let expected = format!("{key}: expected a text; the Secrets Store is not read");
        assert_eq!(error(key), expected);
    }
}
