//! Calls that models write into their text, in the shapes in which servers and models were seen to
//! leave them.

use super::*;

pub(super) fn with(syntax: TextToolCalls) -> Case {
    case().with(|context, _| context.profile.text_tool_calls = syntax)
}

/// A case of this syntax, with a tool whose schema is known.
pub(super) fn with_tool(syntax: TextToolCalls, name: &str, schema: &Value) -> Case {
    with(syntax).with(|context, _| {
        let schema = Some(schema.to_string().into());
        context.tools.push(Tool {
            outgoing: name.into(),
            name: name.into(),
            schema,
            ..Tool::default()
        });
    })
}

impl Case {
    #[track_caller]
    pub(super) fn reads(&self, answer: &str, expected: &str) {
        self.gives(&done(&[text(answer), json!({"finish": "stop"})]), expected);
    }

    #[track_caller]
    pub(super) fn leaves(&self, answer: &str) {
        self.reads(answer, &format!("text {}; end_turn", json!(answer)));
    }

    /// The answer was cut off at its limit.
    #[track_caller]
    pub(super) fn leaves_at_the_limit(&self, answer: &str) {
        let expected = format!("text {}; max_tokens", json!(answer));
        self.gives(&done(&[text(answer), json!({"finish": "length"})]), &expected);
    }
}

#[test]
fn a_call_may_begin_on_the_line_of_the_text_where_its_first_tag_ends_the_line() {
    for (syntax, call) in [
        (TextToolCalls::Hermes, "<tool_call> \n{\"name\": \"w\", \"arguments\": {}}\n</tool_call>"),
        (TextToolCalls::QwenXml, "<tool_call>\n<function=w>\n</function>\n</tool_call>"),
        (
            TextToolCalls::Minimax,
            "<minimax:tool_call>\r\n<invoke name=\"w\">\n</invoke>\n</minimax:tool_call>",
        ),
    ] {
        let c = with(syntax);
        c.reads(&format!("Sure.{call}"), "text \"Sure.\", tool_use minted w {}; tool_use");
        c.reads(
            &format!("So `a` is `b`: {call}"),
            "text \"So `a` is `b`: \", tool_use minted w {}; tool_use",
        );
        // Quoted, as an example within a sentence, in a block of code, or as the last word.
        c.leaves(&format!("Write `{call}`"));
        c.leaves(&format!("Write {}", call.replacen(['\r', '\n'], "", 2)));
        c.leaves(&format!("```\nSure.{call}"));
        // The others have a second tag, which begins a line.
        for told in ["- so: ", "> so ", "1. so ", "<pre><code>", "    so "] {
            if syntax != TextToolCalls::Hermes {
                break;
            }
            c.leaves(&format!("{told}{call}"));
        }
        let tag = call.lines().next().unwrap();
        // Told of in a line before the call.
        let (name, before) =
            (tag.trim_end(), format!("It did not take {}\nNow:\n", tag.trim_end()));
        c.reads(
            &format!("{before}{call}"),
            &format!("text {}, tool_use minted w {{}}; tool_use", json!(before)),
        );
        c.leaves(&format!("It is {name}\n\n{}", " \n".repeat(99)));
        c.leaves(&format!("It begins with {}", tag.trim_end()));
    }
}

#[test]
fn a_bracket_that_begins_no_list_of_calls_does_not_wait() {
    for (syntax, start, waits) in [
        (TextToolCalls::Pythonic, "[1] says ", false),
        (TextToolCalls::Pythonic, "[x](http://a) ", false),
        (TextToolCalls::Pythonic, "\n [Note the (first) ", false),
        (TextToolCalls::Pythonic, "[w(a='", true),
        (TextToolCalls::Pythonic, "[ w (a='", true),
        (TextToolCalls::Llama, "[1] says ", false),
        (TextToolCalls::Llama, "[ {", true),
    ] {
        let c = with(syntax).with(|_, settings| settings.waiting_bytes_max = 3000);
        let chunks: Vec<_> = start
            .split_inclusive(' ')
            .map(text)
            .chain((0..9).map(|_| text(&"y".repeat(600))))
            .collect();
        let error = c.run(true, [done(&chunks).as_bytes()]).error;
        assert_eq!(error.is_some(), waits, "{syntax:?} {start:?} {error:?}");
    }
    // What follows it can be a call.
    with(TextToolCalls::Pythonic).reads(
        "[1] says so: <|tool_call_start|>[w(n=1)]<|tool_call_end|>",
        "text \"[1] says so: \", tool_use minted w {\"n\":1}; tool_use",
    );
}

#[test]
fn json_that_describes_a_tool_is_no_call_of_it() {
    let llama = with(TextToolCalls::Llama);
    for described in [
        r#"{"name": "w", "version": "1.0.0", "main": "index.js"}"#,
        r#"{"name": "w"}"#,
        r#"{"name": "w", "parameters": {"a": 1}, "description": "Weather"}"#,
        r#"{"name": "w", "parameters": {"type": "object", "properties": {}}}"#,
        r#"{"type": "function", "name": "w", "parameters": {"properties": {"a": {}}, "type": "object"}}"#,
        r#"{"name": "w", "parameters": {"a": 1}}; {"name": "t", "main": "index.js"}"#,
    ] {
        llama.leaves(described);
    }
    llama.reads(
        r#"{"type": "function", "id": "a", "name": "w", "arguments": {"type": "object"}}"#,
        r#"tool_use r_a w {"type":"object"}; tool_use"#,
    );
    llama.reads(r#"{"name": "w", "parameters": {}}"#, "tool_use minted w {}; tool_use");
    // A tool that makes tools.
    let properties = json!({"properties": {"type": {}, "properties": {}}});
    with_tool(TextToolCalls::Llama, "make", &properties).reads(
        r#"{"name": "make", "parameters": {"type": "object", "properties": {}}}"#,
        r#"tool_use minted make {"properties":{},"type":"object"}; tool_use"#,
    );
    // Its token leaves no doubt.
    llama.reads(r#"<|python_tag|>{"name": "w"}"#, "tool_use minted w {}; tool_use");
}

#[test]
fn an_example_in_a_value_of_qwen_does_not_become_a_call() {
    let write = json!({"properties": {"path": {"type": "string"}, "content": {"type": "string"}}});
    let qwen = with_tool(TextToolCalls::QwenXml, "write", &write);
    let example = "<tool_call>\n<function=w>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>";
    let start =
        "<function=write>\n<parameter=path>\na.md\n</parameter>\n<parameter=content>\n# Format\n";
    // The limit came where the example ends.
    qwen.leaves_at_the_limit(&format!("<tool_call>\n{start}\n{example}"));
    qwen.leaves_at_the_limit(&format!("{start}</function>\n{example}"));
    qwen.leaves_at_the_limit(example);
    // Whose end that is, nothing says.
    qwen.leaves(&format!("<tool_call>\n{start}\n{example}"));
    qwen.reads(
        "<function=write>\n<parameter=path>\na.md\n<parameter=content>\nHi\n</function>",
        r#"tool_use minted write {"content":"Hi","path":"a.md"}; tool_use"#,
    );
}

#[test]
fn channels_of_harmony_are_read_without_a_call_too() {
    let harmony = with(TextToolCalls::Harmony);
    let none = harmony
        .clone()
        .with(|context, _| context.tools = creole::model::request_context::Tools::default());
    let think = "<|channel|>analysis<|message|>Think.<|end|>";
    for case in [&harmony, &none] {
        case.reads(
            &format!("{think}<|start|>assistant<|channel|>final<|message|>Hi <b>"),
            r#"thinking "Think.", text "Hi <b>"; end_turn"#,
        );
        case.reads("<|channel|>final<|message|>Hi there.", r#"text "Hi there."; end_turn"#);
        case.reads(
            "<|channel|>commentary<|message|>I'll look.<|end|>",
            r#"text "I'll look."; end_turn"#,
        );
        case.reads("\n<|channel|>analysis<|message|>Think", r#"thinking "Think"; end_turn"#);
        case.gives(
            &done(&[text("<|channel|>analysis<|message|>Think"), json!({"finish": "length"})]),
            r#"thinking "Think"; max_tokens"#,
        );
        case.gives(
            &done(&[
                text(&format!("{think}<|start|>assistant<|chan")),
                json!({"finish": "length"}),
            ]),
            r#"thinking "Think."; max_tokens"#,
        );
        case.reads(
            "<|channel|>analysis<|message|>Think.<|start|>assistant<|channel|>final<|message|>Hi",
            r#"thinking "Think.", text "Hi"; end_turn"#,
        );
        // What is said of it.
        case.reads(
            "The channel is <|channel|>final<|message|> for you.",
            r#"text "The channel is  for you."; end_turn"#,
        );
        case.leaves("<|channel|>final");
        case.leaves("`<|channel|>final<|message|>` begins the answer.");
    }
    none.reads(
        &format!("{think}<|start|>assistant to=functions.w<|channel|>commentary<|message|>{{}}"),
        r#"thinking "Think.", text "{}"; end_turn"#,
    );
    harmony.reads(
        "Let me see.<|end|><|start|>assistant<|channel|>commentary to=functions.w<|message|>{}<|call|>",
        r#"text "Let me see.", tool_use minted w {}; tool_use"#,
    );
    harmony.gives(
        &done(&[text(think), call(0, "call_b", "t", "{}"), json!({"finish": "tool_calls"})]),
        r#"thinking "Think.", tool_use b t {}; tool_use"#,
    );
    let both =
        format!("{think}<|start|>assistant to=functions.w<|channel|>commentary<|message|>{{}}");
    harmony.gives(
        &done(&[text(&both), call(0, "call_b", "t", "{}"), json!({"finish": "tool_calls"})]),
        r#"thinking "Think.", text "{}", tool_use b t {}; tool_use"#,
    );
}

#[test]
fn channels_of_harmony_are_read_where_no_call_is_allowed() {
    let forbidden =
        with(TextToolCalls::Harmony).with(|context, _| context.withheld = Withheld::Forbidden);
    let think = "<|channel|>analysis<|message|>Think.<|end|><|start|>assistant";
    forbidden.reads(
        &format!("{think}<|channel|>final<|message|>Hi"),
        r#"thinking "Think.", text "Hi"; end_turn"#,
    );
    forbidden.reads(
        &format!("{think} to=functions.w<|channel|>commentary<|message|>{{}}"),
        "thinking \"Think.\", text \"[The model called a tool, which this request forbids.]\"; end_turn !withheld_tool_called",
    );
}

#[test]
fn a_complete_call_needs_no_end_of_its_wrapper() {
    use TextToolCalls::*;
    let w = "tool_use minted w {\"a\":1}; tool_use";
    let kimi = "<|tool_call_begin|>w<|tool_call_argument_begin|>{\"a\":1}<|tool_call_end|>";
    let v3 = "<｜tool▁call▁begin｜>w<｜tool▁sep｜>{\"a\":1}<｜tool▁call▁end｜>";
    for (syntax, call, end) in [
        (Hermes, "<tool_call>\n{\"name\":\"w\",\"arguments\":{\"a\":1}}".to_owned(), "</tool_call>"),
        (
            QwenXml,
            "<tool_call>\n<function=w>\n<parameter=a>\n1\n</parameter>\n</function>".to_owned(),
            "</tool_call>",
        ),
        (
            Glm,
            "<tool_call>w<arg_key>a</arg_key><arg_value>1</arg_value>".to_owned(),
            "</tool_call>",
        ),
        (
            Minimax,
            "<minimax:tool_call><invoke name=\"w\"><parameter name=\"a\">1</parameter></invoke>".to_owned(),
            "</minimax:tool_call>",
        ),
        (Mistral, "[TOOL_CALLS] [{\"name\":\"w\",\"arguments\":{\"a\":1}}".to_owned(), "]"),
        (
            Deepseek,
            "<｜DSML｜tool_calls><｜DSML｜invoke name=\"w\"><｜DSML｜parameter name=\"a\" string=\"false\">1</｜DSML｜parameter></｜DSML｜invoke>".to_owned(),
            "</｜DSML｜tool_calls>",
        ),
        (Deepseek, ["<｜tool▁calls▁begin｜>", v3].concat(), "<｜tool▁calls▁end｜>"),
        (Deepseek, v3.to_owned(), "<｜tool▁calls▁end｜>"),
    ] {
        let c = with(syntax);
        for answer in [format!("{call}\n"), format!("I look.\n{call}\n{end}")] {
            let expected = if answer.starts_with('I') {
                format!("text \"I look.\\n\", {w}")
            } else {
                w.to_owned()
            };
            c.reads(&answer, &expected);
        }
        c.leaves(&format!("{call} so"));
        c.leaves_at_the_limit(&call);
        // The call itself is not complete.
        let cut = call.char_indices().nth_back(5).unwrap().0;
        c.leaves(call.split_at(cut).0);
    }
    let c = with(Kimi);
    for before in ["", "<|tool_calls_section_begin|>"] {
        let expected = "tool_use r_w w {\"a\":1}; tool_use";
        c.reads(&[before, kimi].concat(), expected);
        c.reads(&[before, kimi, "<|tool_calls_section_end|><|im_end|>"].concat(), expected);
        c.leaves(&[before, kimi, " so"].concat());
        c.leaves_at_the_limit(&[before, kimi].concat());
    }
    // Nor does an object of its own end.
    for answer in [kimi.replace("<|tool_call_end|>", ""), kimi.replace("{\"a\":1}", "")] {
        let input = if answer.contains("{") { "{\"a\":1}" } else { "{}" };
        c.reads(
            &["<|tool_calls_section_begin|>", &answer, "<|tool_calls_section_end|>"].concat(),
            &format!("tool_use r_w w {input}; tool_use"),
        );
        c.reads(&answer, &format!("tool_use r_w w {input}; tool_use"));
    }
    c.leaves_at_the_limit(&kimi.replace("<|tool_call_end|>", ""));
    // Without arguments, nothing says that a call is complete.
    with(Glm).leaves("<tool_call>w\n");
}

#[test]
fn tags_of_deepseek_are_read_whatever_their_bars() {
    let deepseek = with(TextToolCalls::Deepseek);
    let call = "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"w\">\n<｜DSML｜parameter name=\"a\" string=\"true\">\n| DSML </｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>";
    let expected = r#"tool_use minted w {"a":"\n| DSML "}; tool_use"#;
    for bars in ["｜", "｜｜", "|", "||", "‖", "‖‖", "|｜"] {
        let written = call.replace("<｜DSML｜tool", "<|DSML|tool").replace('｜', bars);
        deepseek.reads(&written, expected);
        deepseek
            .reads(&written.replace(&format!("{bars}invoke"), &format!("{bars} invoke")), expected);
    }
    // Each tag on its own.
    deepseek.reads(&call.replace("</｜DSML｜", "</||DSML||"), expected);
    for doubtful in [
        "<｜DSML｜tool_calls> is how it begins.",
        "<|DSML|",
        "<｜｜｜DSML｜｜｜invoke name=\"w\"></｜｜｜DSML｜｜｜invoke>",
        "<｜DSML｜invoke name=\"w\"><｜DSML｜parameter name=\"a\" string=\"true\">1<||DSML||parameter name=\"b\">2</｜DSML｜parameter></｜DSML｜invoke>",
    ] {
        deepseek.leaves(doubtful);
    }
}

#[test]
fn a_call_of_glm_is_read_with_a_tag_too_few_or_too_many() {
    let glm = with(TextToolCalls::Glm);
    let expected = r#"tool_use minted w {"a":"ls -la","b":2}; tool_use"#;
    for start in [
        "<arg_key>a</arg_key>ls -la</arg_value>",
        "<arg_key>a</arg_key>\nls -la</arg_value>",
        "<arg_key>a</arg_key></arg_key><arg_value>ls -la</arg_value>",
        "<arg_key>a</arg_key>\n</arg_key>ls -la</arg_value>",
    ] {
        glm.reads(
            &format!(
                "<tool_call>w\n{start}\n<arg_key>b</arg_key><arg_value>2</arg_value></tool_call>"
            ),
            expected,
        );
    }
    glm.reads("<tool_call>w</arg_value></tool_call>", "tool_use minted w {}; tool_use");
    for doubtful in [
        "<tool_call>w<arg_key>a</arg_key>ls</tool_call>",
        "<tool_call>w<arg_key>a</arg_key><arg_value>ls</tool_call>",
        "<tool_call>w<arg_key>a</arg_key>x<arg_value>ls</arg_value></tool_call>",
        "<tool_call>w<arg_key>a</arg_key>ls<arg_key>b</arg_key>2</arg_value></tool_call>",
    ] {
        glm.leaves(doubtful);
    }
}

#[test]
fn a_call_of_harmony_may_name_the_tool_alone() {
    let harmony = with(TextToolCalls::Harmony);
    let think = "<|channel|>analysis<|message|>Think.<|end|><|start|>assistant";
    for end in ["<|call|>", "<|end|>", ""] {
        for name in ["w", "functions.w"] {
            harmony.reads(
                &format!("{think}<|channel|>commentary to={name} <|constrain|>json<|message|>{{\"a\":1}}{end}"),
                r#"thinking "Think.", tool_use minted w {"a":1}; tool_use"#,
            );
        }
    }
    for name in ["rm", "functions.rm", ""] {
        harmony.reads(
            &format!("{think}<|channel|>commentary to={name}<|message|>{{}}<|call|>"),
            r#"thinking "Think.", text "{}"; end_turn"#,
        );
    }
}

#[test]
fn a_raw_line_break_within_a_string_of_a_call_is_a_line_break() {
    use TextToolCalls::*;
    let object = "{\"a\": \"x\n\ty\\\"\\n \u{1}\", \"b\": [\"\r\n\"]\n}";
    let expected = r#"w {"a":"x\n\ty\"\n \u0001","b":["\r\n"]}; tool_use"#;
    for (syntax, before, after) in [
        (Hermes, "<tool_call>\n{\"name\":\"w\",\n\"arguments\":", "}\n</tool_call>"),
        (Llama, "{\"name\":\"w\",\n\"parameters\":", "}"),
        (Mistral, "[TOOL_CALLS]w[ARGS]", ""),
    ] {
        with(syntax)
            .reads(&[before, object, after].concat(), &format!("tool_use minted {expected}"));
        with(syntax).leaves(&[before, object.trim_end_matches('}'), after].concat());
    }
    with(Harmony).reads(
        &["<|channel|>commentary to=functions.w<|message|>", object, "<|call|>"].concat(),
        &format!("tool_use minted {expected}"),
    );
    let quoted =
        "<tool_call>{\"name\":\"w\",\"arguments\":\"{\\\"a\\\":\\\"x\\ny\\\"}\"}</tool_call>";
    with(Hermes).reads(quoted, r#"tool_use minted w {"a":"x\ny"}; tool_use"#);
    // Nothing else is mended.
    with(Hermes).leaves("<tool_call>{\"name\":\"w\",\"arguments\":{\"a\":\"x\n\"y\"}}</tool_call>");
}

#[test]
fn a_call_of_qwen_is_read_with_a_tag_too_many() {
    let qwen = with(TextToolCalls::QwenXml);
    let call = "<function=w>\n<parameter=a>\n1\n</parameter>\n</function>\n";
    for stray in ["</function>\n", "</function_invocation>\n", ""] {
        qwen.reads(
            &format!("<tool_call>\n{call}{stray}</tool_call>"),
            r#"tool_use minted w {"a":1}; tool_use"#,
        );
    }
    // Two in one wrapper.
    for between in ["", "</tool_call>\n", "</tool_call>\n<tool_call>\n"] {
        qwen.reads(
            &format!("<tool_call>\n{call}{between}{call}</tool_call>"),
            r#"tool_use minted w {"a":1}, tool_use minted w {"a":1}; tool_use"#,
        );
    }
    qwen.leaves(&format!("<tool_call>\n{call}<tool_call>\n</tool_call>"));
    qwen.leaves("<tool_call>\n</tool_call>");
}

#[test]
fn the_reader_of_minimax_reads_the_tags_of_claude_too() {
    let minimax = with(TextToolCalls::Minimax);
    let call = "<invoke name=\"w\">\n<parameter name=\"a\">1</parameter>\n</invoke>";
    let expected = r#"tool_use minted w {"a":1}"#;
    minimax.reads(call, &format!("{expected}; tool_use"));
    minimax.reads(&format!("{call}\n{call}"), &format!("{expected}, {expected}; tool_use"));
    for word in ["function_calls", "tool_calls", "minimax:tool_call"] {
        minimax.reads(
            &format!("I look.\n\n<{word}>\n{call}\n</{word}>"),
            &format!("text \"I look.\\n\\n\", {expected}; tool_use"),
        );
        minimax.leaves(&format!("Use <{word}>{call}</{word}>"));
        minimax.leaves(&format!("```\n<{word}>\n{call}\n</{word}>\n```"));
        minimax.leaves(&format!("<{word}>{call}</{word}> so"));
        minimax.leaves(&format!("<{word}></{word}>"));
    }
    minimax.leaves(&format!("<tool_calls>{call}</function_calls>"));
    minimax.leaves(&format!("- {call}"));
    minimax.leaves(&call.replace("\"w\"", "\"rm\""));
}

#[test]
fn control_tokens_may_follow_the_end_of_a_fence() {
    let kimi = "<|tool_calls_section_begin|><|tool_call_begin|>w<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>";
    let c = with(TextToolCalls::Kimi);
    for before in ["```bash\nls\n```", "So:\n~~~\nls\n  ~~~~ ", "- ```\n  ls\n  ```"] {
        c.reads(
            &[before, kimi].concat(),
            &format!("text {}, tool_use r_w w {{}}; tool_use", json!(before)),
        );
    }
    // These marks begin a fence, or end none.
    for before in ["```", "```bash\nls\n~~~", "````\nls\n```", "```\nls\n```x"] {
        c.leaves(&[before, kimi].concat());
    }
    c.leaves(&["```\nls\n```", kimi, "\n```"].concat());
    c.leaves("```\nls\n```<|tool_calls_sec");
    let hermes = "<tool_call>\n{\"name\":\"w\"}\n</tool_call>";
    with(TextToolCalls::Hermes).leaves(&["```\nls\n```", hermes].concat());
}

#[test]
fn any_stop_tokens_may_follow_a_call() {
    let hermes = with(TextToolCalls::Hermes);
    let markup = "<tool_call>\n{\"name\":\"w\"}\n</tool_call>";
    for tokens in [
        "<|im_end|>",
        "<|im_end|>\n<|endoftext|>",
        "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    ] {
        hermes.reads(&[markup, tokens].concat(), "tool_use minted w {}; tool_use");
    }
    hermes.leaves(&[markup, "<|im_end|> so"].concat());
    hermes.leaves("<tool_call>\n</s>");
    let mistral = with(TextToolCalls::Mistral);
    for markup in
        ["[TOOL_CALLS]{\"name\":\"w\"}", "[TOOL_CALLS][{\"name\":\"w\"}][/TOOL_CALLS]</s>"]
    {
        mistral.reads(markup, "tool_use minted w {}; tool_use");
    }
}

#[test]
fn no_head_of_a_message_of_harmony_stays_in_a_text() {
    let harmony = with(TextToolCalls::Harmony);
    let think = "<|channel|>analysis<|message|>Think.<|end|><|start|>assistant";
    let call = "<|channel|>commentary to=functions.w <|constrain|>json<|message|>";
    for (behind, expected) in [
        // A tool that is not there, or no function.
        (
            r#"<|channel|>commentary to=functions.rm<|message|>{"a":1}<|call|>"#,
            r#"thinking "Think.", text "{\"a\":1}""#,
        ),
        (
            "<|channel|>analysis to=python code<|message|>print(1)<|call|>",
            r#"thinking "Think.\n\nprint(1)""#,
        ),
        ("<|channel|>commentary to=assistant<|message|>Hi", r#"thinking "Think.", text "Hi""#),
        (
            "<|channel|>commentary to=assistant<|channel|>analysis<|message|>Hm<|end|>",
            r#"thinking "Think.\n\nHm""#,
        ),
        // An input that is none.
        (
            "<|channel|>commentary to=functions.w<|message|>{\"a\" b}<|call|>",
            r#"thinking "Think.", text "{\"a\" b}""#,
        ),
        (
            "<|channel|>commentary to=functions.w<|message|>{} so<|call|>",
            r#"thinking "Think.", text "{} so""#,
        ),
        // Heads that are begun anew, and odd ones.
        (
            "<|channel|>commentary?<|end|><|start|>assistant<|channel|>analysis<|message|>Hm",
            r#"thinking "Think.\n\nHm""#,
        ),
        ("<|channel|>comment<|message|>Hi", r#"thinking "Think.", text "Hi""#),
        ("<|message|>Hi", r#"thinking "Think.", text "Hi""#),
        (
            r#"<|channel|>final <|constrain|>json<|message|>{"a":1}<|return|>"#,
            r#"thinking "Think.", text "{\"a\":1}""#,
        ),
        (
            "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>final<|message|>Done.",
            r#"thinking "Think.", text "I look.\n\nDone.""#,
        ),
        ("<|chan", r#"thinking "Think.", text "<|start|>assistant<|chan""#),
    ] {
        harmony.reads(&[think, behind].concat(), &format!("{expected}; end_turn"));
    }
    harmony.reads(
        "<|channel|>analysis<|message|>Think.<|end|>Hi there.",
        r#"thinking "Think.", text "Hi there."; end_turn"#,
    );
    harmony.reads(
        "<|channel|>analysis<|message|>Think.<|end|>Hi.<|end|><|start|>assistant<|channel|>final<|message|>Done.",
        r#"thinking "Think.", text "Hi.\n\nDone."; end_turn"#,
    );
    harmony.reads(
        "Let me check.<|end|><|start|>assistant<|channel|>final<|message|> Done.",
        r#"text "Let me check. Done."; end_turn"#,
    );
    // With prose behind it, a call is an example.
    for behind in [" runs it.", "<|start|>user"] {
        harmony.reads(
            &["So: ", call, "{}<|call|>", behind].concat(),
            &format!("text {}; end_turn", json!(["So: {}", behind].concat())),
        );
    }
    harmony.reads(
        &["So: ", call, "{}<|call|> or <|channel|>final<|message|>Hi"].concat(),
        r#"text "So: {}\n\n or \n\nHi"; end_turn"#,
    );
    // The limit came in a call.
    for (before, given) in [("", ""), ("{}<|call|><|start|>assistant", ", tool_use minted w {}")] {
        let whole = if before.is_empty() { String::new() } else { [call, before].concat() };
        let answer = [think, &whole, call, "{\"a\":\"half"].concat();
        harmony.gives(
            &done(&[text(&answer), json!({"finish": "length"})]),
            &format!("thinking \"Think.\"{given}; max_tokens"),
        );
    }
}
