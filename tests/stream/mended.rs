//! Arguments that a client would refuse and can do without.

use super::*;

const SCHEMA: &str = r#"{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},
    "limit":{"type":"integer","minimum":1,"default":9},"note":{"type":"string"}},"required":["path","content"],"additionalProperties":false}"#;

fn with_schema() -> Case {
    case().with(|context, _| {
        context.tools.push(Tool {
            outgoing: "write_file".to_owned(),
            name: "write.file".to_owned(),
            schema: Some(SCHEMA.into()),
            ..Tool::default()
        });
    })
}

#[test]
fn what_a_client_would_refuse_is_left_out_in_every_form_of_an_answer() {
    let c = with_schema();
    let input = r#"{"path":"","content":"","limit":"","note":null,"x":[]}"#;
    let expected =
        r#"tool_use a write.file {"content":"","path":""}; tool_use !tool_argument_mended"#;
    for name in ["Write-File", "functions.write_file"] {
        let outcome = c.stream(&done(&[call(0, "call_a", name, input)]));
        let shown = show(&outcome);
        assert!(shown.starts_with(&expected.replace(" !tool_argument_mended", "")), "{shown}");
        assert!(shown.contains(" !tool_name_repaired") && shown.contains(" !tool_argument_mended"));
    }
    let mut pieces = vec![call(0, "call_a", "write_file", "")];
    pieces.extend(input.split_inclusive(['"', ',']).map(|piece| call(0, "", "", piece)));
    c.gives(&done(&pieces), expected);
    let whole = json!({"choices": [{"message": {"tool_calls": [
        {"id": "call_a", "function": {"name": "write_file", "arguments": input}}]}}]});
    for stream in [true, false] {
        assert_eq!(show(&c.whole(stream, &whole.to_string())), expected);
    }
    // A call that is written as text.
    let hermes =
        c.clone().with(|context, _| context.profile.text_tool_calls = TextToolCalls::Hermes);
    let said = format!("<tool_call>{{\"name\":\"write_file\",\"arguments\":{input}}}</tool_call>");
    let outcome = hermes.run(true, [done(&[text(&said)]).as_bytes()]);
    assert!(
        show(&outcome).contains(r#"write.file {"content":"","path":""}; tool_use"#),
        "{}",
        outcome.out
    );
}

#[test]
fn passing_leaves_everything() {
    let c = with_schema().with(|_, settings| settings.tool_arguments = ToolArguments::Pass);
    let input = r#"{"path":"","content":"","limit":"","note":null,"x":[]}"#;
    c.gives(
        &done(&[call(0, "call_a", "write_file", input)]),
        r#"tool_use a write.file {"content":"","limit":"","note":null,"path":"","x":[]}; tool_use"#,
    );
}

#[test]
fn a_mended_call_is_not_held_for_what_was_left_out() {
    let c = with_schema().with(|_, settings| {
        settings.invalid_tool_call = InvalidToolCall::Hold;
        settings.tool_stream = ToolStream::Buffered;
    });
    c.gives(
        &done(&[call(0, "call_a", "write_file", r#"{"path":"a","content":"b","limit":0}"#)]),
        r#"tool_use a write.file {"content":"b","path":"a"}; tool_use !tool_argument_mended"#,
    );
    let checked =
        with_schema().with(|_, settings| settings.invalid_tool_call = InvalidToolCall::Repair);
    let outcome = checked.stream(&done(&[
        call(0, "call_a", "write_file", r#"{"path":"a","content":"b","#),
        call(0, "", "", r#""limit":0}"#),
    ]));
    assert!(!show(&outcome).contains("tool_input_violates_schema"), "{}", show(&outcome));
}

#[test]
fn a_long_text_leaves_while_it_comes_and_only_what_may_go_is_held() {
    let c = with_schema();
    let context = RequestContext { stream: true, ..c.context.clone() };
    let mut answer = answer_with(context, &c.settings);
    let mut pieces = Vec::new();
    let mut name = "write_file";
    for fragment in ["{\"content\":\"fir", "st", "\", \"limit\"", ": 2", "5, \"path\":\"/", "x\"}"]
    {
        let chunk =
            json!({"choices": [{"delta": call(0, "call_a", std::mem::take(&mut name), fragment)}]});
        let mut out = Vec::new();
        answer.handle_piece(format!("data: {chunk}\n\n").as_bytes(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let events = data.map(|data| serde_json::from_str::<Value>(data).unwrap());
        let texts: Vec<String> = events
            .filter_map(|event| Some(event["delta"]["partial_json"].as_str()?.to_owned()))
            .collect();
        pieces.push(texts.concat());
    }
    assert_eq!(
        pieces,
        ["{\"content\":\"fir", "st", "\"", "", ", \"limit\": 25, \"path\":\"/", "x\"}"]
    );
}

#[test]
fn what_breaks_off_is_not_completed() {
    let c = with_schema();
    for input in [r#"{"path":"a","limit":nu"#, r#"{"path":"a","limit":"#, r#"{"path":"a","lim"#] {
        let chunks = [call(0, "call_a", "write_file", input), json!({"finish": "length"})];
        c.streams(&done(&chunks), &format!("tool_use a write.file {}; max_tokens", json!(input)));
    }
    // Of what was left out before, no comma stays.
    let cut = [call(0, "call_a", "write_file", r#"{"note":null,"pa"#), json!({"finish": "length"})];
    c.streams(&done(&cut), r#"tool_use a write.file "{\"pa"; max_tokens !tool_argument_mended"#);
}
