//! Tests of `server_history.rs`.

use super::*;

fn result(content: &str) -> String {
    let mut out = b"before".to_vec();
    push_result(&mut out, content);
    String::from_utf8(out).unwrap().strip_prefix("before").unwrap().to_owned()
}

#[test]
fn what_can_be_read_is_kept_and_what_is_encrypted_is_not() {
    for (content, expected) in [
        (
            r#"[{"type":"web_search_result","url":"https://a","title":"A","encrypted_content":"E"},{"type":"web_search_result","title":"B \"b\"","url":"https://b","page_age":null}]"#,
            r#"A https://a\nB \"b\" https://b"#,
        ),
        (
            r#"{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}"#,
            "error: max_uses_exceeded",
        ),
        (
            r#"{"type":"web_fetch_result","url":"https://a","content":{"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"D"}}}"#,
            r"D\nT\nhttps://a",
        ),
        (
            r#"{"type":"web_fetch_result","url":"u","content":{"type":"document","source":{"data":"JVBE","type":"base64"}}}"#,
            "u",
        ),
        (
            r#"{"type":"bash_code_execution_result","stdout":"out\n","stderr":"","return_code":2,"content":[{"type":"bash_code_execution_output","file_id":"f1"}]}"#,
            r"out\n\nreturn code: 2\nfile: f1",
        ),
        (r#"{"type":"advisor_redacted_result","encrypted_content":"E"}"#, ""),
        (r#"{"type":"advisor_result","text":"Do it"}"#, "Do it"),
        (r#""plain""#, "plain"),
        (r#"[{"type":"text","text":"x"}]"#, "x"),
        (
            r#"{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"a"}]}"#,
            "Tool loaded: a",
        ),
        (
            r#"{"type":"text_editor_code_execution_str_replace_result","lines":["-a","+b"],"old_start":1}"#,
            r"-a\n+b",
        ),
        ("", ""),
        ("7", ""),
    ] {
        assert_eq!(result(content), expected, "{content}");
    }
}
