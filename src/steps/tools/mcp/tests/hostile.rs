//! Tests against servers that mean harm, or are broken.

use super::*;

#[test]
fn a_list_is_cut_at_the_number_of_tools() {
    let all: Vec<String> = (0..10_000).map(|number| format!("t{number}")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut tester = Tester::default();
    let list = tester.list(|got| got.result(&tools(&all))).unwrap();
    assert_eq!((list.tools.len(), tester.sent.len()), (256, 1));
    assert_eq!(tester.warnings(), "mcp_tool_dropped");
}

#[test]
fn a_list_that_never_ends_is_left_after_twenty_pages() {
    let mut tester = Tester::default();
    let mut page = 0;
    let list = tester.list(|got| {
        page += 1;
        let next = format!(r#"],"nextCursor":"{page}"}}"#);
        got.result(&tools(&[&format!("t{page}")]).replace("]}", &next))
    });
    assert_eq!((list.unwrap().tools.len(), page), (20, 20));
}

#[test]
fn names_that_are_no_names_are_dropped() {
    let long = "x".repeat(129);
    let bad = ["", "a b", "a\nb", "a\u{7}", "ü", "a/b", "a\"", "<b>", &long];
    let mut tester = Tester::default();
    let list =
        tester.list(|got| got.result(&tools(&[bad.as_slice(), &["fine.-_9"]].concat()))).unwrap();
    assert_eq!(names(&list), ["fine.-_9"]);
    let dropped: u64 = tester.report.warnings.count();
    assert_eq!(dropped, 9);
}

#[test]
fn descriptions_are_cut_and_large_schemas_dropped() {
    let long = "ü".repeat(1 << 19);
    let schema = format!(r#"{{"description":"{long}"}}"#);
    let list = format!(
        r##"{{"tools":[{{"name":"a","description":"{long}","inputSchema":{{}}}},
            {{"name":"b","inputSchema":{schema}}},{{"name":"c","inputSchema":[]}},
            {{"name":"d","inputSchema":{{"$ref":"#/$defs/x","$defs":{{"x":{{"$ref":"#/$defs/x"}}}}}}}},
            {{"name":"e"}}]}}"##
    );
    let mut tester = Tester::default();
    let list = tester.list(|got| got.result(&list)).unwrap();
    assert_eq!(names(&list), ["a", "d", "e"]);
    let [a, d, e] = list.tools.as_slice() else { panic!() };
    assert_eq!((a.description.len(), a.description.ends_with('ü')), (4096, true));
    assert_eq!(d.input_schema, r##"{"$ref":"#/$defs/x","$defs":{"x":{"$ref":"#/$defs/x"}}}"##);
    assert_eq!(e.input_schema, r#"{"type":"object"}"#);
}

#[test]
fn the_response_to_another_request_is_no_response() {
    let result = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    for id in ["2", "null", "\"1\"", "1.5", "[1]", "{}", "18446744073709551617", "-1"] {
        assert_eq!(answer::response(None, result(id).as_bytes(), 1), None, "{id}");
    }
    let ours = Some(answer::Rpc::Result("{}".to_owned()));
    let response = |content_type, body: &str| answer::response(content_type, body.as_bytes(), 1);
    assert_eq!(response(None, &format!("\u{feff} {}\n", result("1"))), ours);
    assert_eq!(response(None, &format!("[{},{}]", result("2"), result("1"))), ours);
    let stream = Some("text/event-stream");
    let (other, own) = (result("2"), result("1"));
    assert_eq!(response(stream, &format!("data: {other}\n\ndata: {own}\n\n")), ours);
    assert_eq!(response(stream, &format!("data: {own}\r\n\r\ndata: {other}")), ours);
    assert_eq!(response(stream, &format!("data: {other}\n\n")), None);
    for body in ["", "<html>", "null", "[]", "{", "{\"id\":1}", "{\"id\":1,\"result\":{}} x"] {
        assert_eq!(response(None, body), None, "{body}");
        assert_eq!(response(stream, body), None, "{body}");
    }
    // An error without an id is about our request, because each answer is for one request.
    assert!(response(None, NOT_INITIALIZED).is_some());
    let other = NOT_INITIALIZED.replace("null", "7");
    assert_eq!(response(None, &other), None);
}

#[test]
fn a_stream_that_goes_on_ends_with_the_response() {
    let mut end = RpcEnd::new(3, 1 << 20);
    for number in 0..10_000 {
        assert!(!end.has_come(b"\n\n: ping\n\n"));
        let other = format!(
            "data: {{\"id\":{},\"result\":1}}\n\n",
            if number == 3 { 4 } else { number + 4 }
        );
        assert!(!end.has_come(other.as_bytes()));
    }
    assert!(!end.has_come(b"data: {\"id\":3,\"method\":\"x\",\"result\":1}\n\n"));
    let own = b"data: {\"id\":3,\"result\":1}\n\n";
    let (last, before) = own.split_last().unwrap();
    for byte in before {
        assert!(!end.has_come(&[*byte]));
    }
    assert!(end.has_come(&[*last]));
    assert!(end.held_bytes() < 1 << 12);
}

#[test]
fn an_answer_that_was_cut_is_too_large() {
    let mut tester = Tester::default();
    let list = tester.list(|_| {
        let mut cut = answer(200, "text/event-stream", &"data: {}\n\n".repeat(1000));
        cut.is_whole = false;
        Came::Web(cut)
    });
    assert_eq!(list, Err(McpFailure::TooLarge));
}

#[test]
fn outputs_are_cut() {
    let mut tester = Tester::default();
    tester.list(modern).unwrap();
    let text = "ü".repeat(200_000);
    let output = tester.call("{}", |got| {
        got.result(&format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#))
    });
    assert!(output.text().ends_with("ü[… cut …]"));
    assert!(output.held_bytes() <= 262_144 + 20);
    let many = r#"{"type":"text","text":""},"#.repeat(10_000);
    let output = tester.call("{}", |got| got.result(&format!(r#"{{"content":[{many}7]}}"#)));
    assert_eq!(output.texts.len(), 257);
    let odd = r#"{"type":"a"},"#.repeat(10_000);
    let output = tester.call("{}", |got| got.result(&format!(r#"{{"content":[{odd}7]}}"#)));
    assert_eq!(output.text(), "(no output)");
}

#[test]
fn deep_schemas_and_sessions_that_no_header_can_carry_do_no_harm() {
    let deep = format!("{}1{}", "{\"properties\":".repeat(200), "}".repeat(200));
    let mut tester = Tester::default();
    let list = format!(r#"{{"tools":[{{"name":"a","inputSchema":{deep}}}]}}"#);
    assert!(tester.list(|got| got.result(&list)).is_err());
    let mut tester = Tester::default();
    let list = tester.list(|got| {
        if got.is("initialize") {
            let result = r#"{"protocolVersion":"2025-06-18"}"#;
            let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, got.id());
            let mut answer = answer(200, "application/json", &body);
            answer.session_id = Some("a\r\nb: c".to_owned());
            return Came::Web(answer);
        }
        assert_eq!(got.header("mcp-session-id"), "");
        match got.header("mcp-protocol-version") {
            "2026-07-28" => got.answer(400, ""),
            _ if got.is("tools/list") => got.result(&tools(&["add"])),
            _ => got.answer(202, ""),
        }
    });
    assert_eq!(names(&list.unwrap()), ["add"]);
}
