//! Tests of `failure.rs`.

use super::*;
use crate::json::Str;
use crate::model::Text;

fn failed(words: &str, is_error: bool, is_complete: Option<bool>) -> bool {
    let quoted = serde_json::to_string(words).unwrap();
    let text: Str<'_> = Reader::new(&quoted, 1).string().unwrap();
    let content = vec![Block::Text(Text { text, cached: None, citations: None })];
    let result = ToolResult { id: Str::plain("t"), content, is_error, cleared: false };
    is_failure(&result, || is_complete.unwrap())
}

#[test]
fn errors_are_known_by_their_shape() {
    for words in [
        r#"[{"error":"No prompt specified"}]"#,
        r#" {"error": {"code": 1}} "#,
        r#"{"errors":["a"]}"#,
        r#"{"isError":true,"content":[]}"#,
        r#"{"success": false}"#,
        r#"{"status":"error","message":"m"}"#,
        r#"{"success":false,"error":"x","data":null}"#,
        r#"{"data":null,"errors":[{"message":"e"}]}"#,
        r#"{"type":"error","error":{"type":"e","message":"m"},"request_id":"r"}"#,
        r#"{"timestamp":1,"status":500,"error":"Internal Server Error","path":"/x"}"#,
        r#"{"error":true,"code":3,"message":"m"}"#,
        r#""[{\"error\":\"x\"}]""#,
        "Error: missing command",
        "error executing tool w",
        "<tool_use_error>InputValidationError: x</tool_use_error>",
        "Traceback (most recent call last):\n File",
        "MCP error -32602: x",
        "TypeError: Cannot read properties of undefined (reading 'id')\n    at run (/app/x.js:1:2)",
        "requests.exceptions.HTTPError: 404 Client Error",
        "java.lang.IllegalStateException: x",
        "Request failed with status code 400",
        "[q for 'x'] Result:\nThe tool execution failed with the following error:\n<error>\nx\n</error>",
        "[q] Result:\r\nError: x",
        r#"{"status":400,"object":"error","code":"validation_error","message":"m","request_id":"r"}"#,
        r#"{"error":"invalid_grant","error_description":"Token has expired"}"#,
        r#"{"type":"t","title":"Invalid","status":400,"errors":{"q":["x"]},"traceId":"0"}"#,
    ] {
        // `None` means that the schema of the tool is not read.
        assert!(failed(words, false, None), "{words}");
    }
    assert!(failed("fine", true, None));
    let long = format!("{{\"error\":\"{}\"}}", "x".repeat(4000));
    assert!(failed(&long, false, None));
    let trace = format!("Error: {}", "x".repeat(40_000));
    assert!(failed(&trace, false, None));
    let log = format!("TypeError: {}", "x".repeat(1100));
    assert!(!failed(&log, false, None));
}

#[test]
fn results_are_no_errors() {
    for words in [
        r#"[{"output":"there is an error in line 3"}]"#,
        r#"[{"response":"ok"}]"#,
        r#"{"error":null,"data":1}"#,
        r#"{"error":"","data":1}"#,
        r#"{"success":true}"#,
        r#"[{"error":"x"},{"output":"y"}]"#,
        "[]",
        "TypeError is what JavaScript calls it: a value has another type",
        "3 Errors: none of them new",
        "The ValueError: what it means",
        "TypeErrors: 3",
        "lastError: none\nstatus: ok",
        "[q for 'x'] Result:\na.txt",
        "[q for 'x'] Results: Error: x",
        "[q for 'x' Result:\nError: x",
        r#"{"detail":"Password reset e-mail has been sent."}"#,
        "12 files changed",
        "error handling in Rust is done with Result",
        "",
    ] {
        assert!(!failed(words, false, Some(true)), "{words}");
    }
    let long = format!("{} error", "x".repeat(40_000));
    assert!(!failed(&long, false, None));
}

#[test]
fn what_has_an_error_in_it_is_no_error() {
    for words in [
        r#"{"id":5,"status":"failed","log":"test 5 timed out"}"#,
        r#"[{"id":1,"workflow":"w","status":"error"}]"#,
        r#"[{"type":"error","msg":"unused variable"}]"#,
        r#"{"success":false,"tests":10,"failed":2}"#,
        r#"{"errors":3,"warnings":4}"#,
        r#"{"errors":3}"#,
        r#"{"object":"page","error":"none of them"}"#,
        r#"{"object":"list","results":[],"category":"error"}"#,
        r#"{"object":"errors","message":"m"}"#,
        r#"[{"status":"failed","category":"unit","name":"t1","message":"expected 1"}]"#,
        "NullPointerException: 3 occurrences, 12 users",
        r#"{"detail":[{"type":"missing"}],"data":1}"#,
        r#"{"data":{"a":1},"errors":["e"]}"#,
        r#"{"id":7,"error":"none"}"#,
        r#"{"error":"None","message":"fine"}"#,
        r#"{"error":[ ],"message":"fine"}"#,
        r#"{"state":"done","output":"x","error":{"code":0,"message":""}}"#,
        r#"{"error":{"code":0,"message":""}}"#,
    ] {
        assert!(!failed(words, false, None), "{words}");
    }
}

#[test]
fn json_does_not_complain_whatever_words_are_in_it() {
    for words in [
        r#"[{"response":"Project 1: on time, no risks"}]"#,
        r#"{"id":1,"title":"Login does not work"}"#,
        r#"["missing","required"]"#,
    ] {
        assert!(!failed(words, false, None), "{words}");
    }
    for words in ["{}", "[]"] {
        assert!(failed(words, false, Some(false)), "{words}");
    }
}

#[test]
fn the_schema_decides_only_where_a_result_complains() {
    for words in [
        "command is missing",
        "",
        "null",
        "Please provide a prompt",
        "undefined",
        "错误：缺少必填参数 q",
        "[q] Result:\nMissing value for required parameter 'q'.",
        r#"{"detail":[{"type":"missing","loc":["body","q"],"msg":"Field required","input":{}}]}"#,
    ] {
        assert!(failed(words, false, Some(false)), "{words}");
        assert!(!failed(words, false, Some(true)), "{words}");
    }
    assert!(failed("ValueError: q", false, Some(false)));
    // A result with other data beside a complaint is no failure.
    assert!(!failed(r#"{"name":"p","detail":"missing"}"#, false, None));
    assert!(!failed(r#"{"detail":{"name":"x","price":3}}"#, false, None));
    let long = format!("{{\"output\":\"what is missing: {}\"}}", "x".repeat(4000));
    assert!(!failed(&long, false, None));
    // A normal tool result means that the input was good enough.
    assert!(!failed("a.txt\nb.txt", false, None));
    let reference = Block::ToolReference(Str::plain("w"));
    let result = ToolResult {
        id: Str::plain("t"),
        content: vec![reference],
        is_error: false,
        cleared: false,
    };
    assert!(!is_failure(&result, || false));
}
