//! A call that stands in a text runs with the input that the model wrote, or not at all.

use super::text_calls::{with, with_tool};
use super::*;

#[test]
fn json_between_tags_runs_with_all_that_it_says_or_not_at_all() {
    use TextToolCalls::*;
    let forms: [(_, &[&str]); 3] = [
        (Hermes, &["<tool_call>", "</tool_call>"]),
        (Mistral, &["[TOOL_CALLS][", "]"]),
        (Llama, &["<|python_tag|>", ""]),
    ];
    for (syntax, around) in forms {
        let c = with(syntax);
        let written = |object: &str| around.join(object);
        for word in ["arguments", "parameters", "args", "input"] {
            for input in [r#"{"a":1}"#, r#""{\"a\":1}""#] {
                c.reads(
                    &written(&format!(r#"{{"name":"w","{word}":{input}}}"#)),
                    r#"tool_use minted w {"a":1}; tool_use"#,
                );
            }
        }
        for nothing in ["", r#","arguments":null"#, r#","arguments":"""#, r#","index":0"#] {
            c.reads(
                &written(&format!(r#"{{"name":"w"{nothing}}}"#)),
                "tool_use minted w {}; tool_use",
            );
        }
        for doubtful in [
            r#"{"name":"w","a":1}"#,
            r#"{"name":"w","arguments":{"a":1},"b":2}"#,
            r#"{"name":"w","arguments":{"a":1},"parameters":{}}"#,
            r#"{"name":"w","name":"t","arguments":{}}"#,
            r#"{"name":"w","arguments":[1]}"#,
            r#"{"name":"w","arguments":"{\"a\":1} {\"b\":2}"}"#,
            r#"{"name":"w","arguments":"a"}"#,
        ] {
            c.leaves(&written(doubtful));
        }
    }
}

const WRITE: &str = r#"{"properties":{"path":{"type":"string"},"content":{"type":"string"}},"required":["path","content"]}"#;

fn write(syntax: TextToolCalls) -> Case {
    with_tool(syntax, "write", &serde_json::from_str(WRITE).unwrap())
}

/// Returns a call of `write` in a syntax without its end, and that end.
fn written(syntax: TextToolCalls, path: &str, content: &str) -> (String, &'static str) {
    use TextToolCalls::*;
    match syntax {
        QwenXml => (
            format!(
                "<tool_call>\n<function=write>\n<parameter=path>\n{path}\n</parameter>\n<parameter=content>\n{content}\n"
            ),
            "</parameter>\n</function>\n</tool_call>",
        ),
        Glm => (
            format!(
                "<tool_call>write<arg_key>path</arg_key><arg_value>{path}</arg_value><arg_key>content</arg_key><arg_value>{content}"
            ),
            "</arg_value></tool_call>",
        ),
        Minimax => (
            format!(
                "<minimax:tool_call>\n<invoke name=\"write\">\n<parameter name=\"path\">{path}</parameter>\n<parameter name=\"content\">{content}"
            ),
            "</parameter>\n</invoke>\n</minimax:tool_call>",
        ),
        _ => (
            format!(
                "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"write\">\n<｜DSML｜parameter name=\"path\" string=\"true\">{path}</｜DSML｜parameter>\n<｜DSML｜parameter name=\"content\" string=\"true\">{content}"
            ),
            "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        ),
    }
}

const TAGGED: [TextToolCalls; 4] =
    [TextToolCalls::QwenXml, TextToolCalls::Glm, TextToolCalls::Minimax, TextToolCalls::Deepseek];

#[test]
fn a_value_that_swallows_the_end_of_its_call_runs_nothing() {
    for syntax in TAGGED {
        let c = write(syntax);
        let (readme, end) = written(syntax, "README.md", "hello");
        // The model takes the end of its example for its own.
        let (example, _) = written(syntax, "format.md", &format!("# Format\n\n{readme}"));
        c.leaves(&[&example, end].concat());
        // The first of two calls is not closed.
        let (first, _) = written(syntax, "a.md", "First.");
        c.leaves(&[&first, &readme, end].concat());
        let wrapper = end.rsplit_once("</").unwrap().1;
        c.leaves(&format!("{first}\n</{wrapper}\n{readme}{end}"));
    }
    for twice in [
        "<function=w>\n<parameter=a>\n1\n</parameter>\n<parameter=a>\n2\n</parameter>\n</function>",
        "<function=w>\n<parameter=a>\n1\n<parameter=a>\n2\n</parameter>\n</function>",
    ] {
        with(TextToolCalls::QwenXml).leaves(twice);
    }
    with(TextToolCalls::Glm).leaves("<tool_call>w<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>a</arg_key><arg_value>2</arg_value></tool_call>");
    with(TextToolCalls::Minimax).leaves("<invoke name=\"w\"><parameter name=\"a\">1</parameter><parameter name=\"a\">2</parameter></invoke>");
}

#[test]
fn a_value_may_hold_what_looks_like_its_end() {
    for syntax in TAGGED {
        let c = write(syntax);
        let (_, end) = written(syntax, "", "");
        let tag = end.split_inclusive('>').next().unwrap();
        let opener = match syntax {
            TextToolCalls::QwenXml => "<parameter=x>",
            TextToolCalls::Glm => "<arg_key>x</arg_key>",
            TextToolCalls::Minimax => "<parameter name=\"x\">",
            _ => "<｜DSML｜parameter name=\"x\" string=\"true\">",
        };
        for content in [
            format!("grep '{tag}' a.xml"),
            format!("a{tag}'a`{tag}`"),
            format!("a\n{opener}b{tag}\n</x>"),
            "<services>\n <parameter key=\"a\">b</parameter>\n <parameter key=\"c\">d</parameter>\n</services>".to_owned(),
        ] {
            let (call, end) = written(syntax, "a.md", &content);
            c.reads(
                &[call.as_str(), end].concat(),
                &format!(
                    "tool_use minted write {}; tool_use",
                    json!({"content": content, "path": "a.md"})
                ),
            );
            c.leaves(&call);
        }
        for doubtful in [
            // What is behind an end could be a damaged tag.
            format!("a{tag}\n<para=n>\nb"),
            format!("a{tag}<arg"),
            format!("a{tag}\nb"),
            // One end too many, or one too few.
            format!("a{tag}\n"),
            format!("a\n{opener}b"),
            format!("a{tag} b\n{opener}c"),
            // Of two parameters, in a value or without the end of one.
            format!("a\n{opener}b{tag}\n{opener}c{tag}\n</x>"),
            format!("a\n{}", opener.replace('x', "path")),
        ] {
            let (call, end) = written(syntax, "a.md", &doubtful);
            c.leaves(&[call.as_str(), end].concat());
        }
    }
    let qwen = write(TextToolCalls::QwenXml);
    qwen.leaves("<function=write>\n<parameter=path>\na </parameter> b\n<parameter=content>\nx\n</parameter>\n</function>");
    qwen.leaves("<function=write>\n<parameter=content>\na </parameter> b\n</function>");
    // A parameter that the tool does not have is one all the same, behind the end of a value.
    write(TextToolCalls::Minimax).reads(
        "<invoke name=\"write\"><parameter name=\"path\">a</parameter>\n<parameter name=\"mode\">w</parameter></invoke>",
        r#"tool_use minted write {"mode":"w","path":"a"}; tool_use"#,
    );
}

#[test]
fn claudes_form_is_read_as_deepseek_writes_it_without_its_mark() {
    let c = write(TextToolCalls::Minimax);
    c.reads(
        "<tool_calls>\n<invoke name=\"write\">\n<parameter name=\"path\" string=\"true\">5</parameter>\n<parameter name=\"n\" string=\"false\">5</parameter>\n</invoke>\n</tool_calls>",
        r#"tool_use minted write {"n":5,"path":"5"}; tool_use"#,
    );
    // A quote is missing.
    c.leaves("<invoke name=\"write\">\n<parameter name=\"path>/a</parameter>\n<parameter name=\"content\">4</parameter>\n</invoke>");
    write(TextToolCalls::QwenXml).leaves(
        "<function=write>\n<parameter=path\na\n</parameter>\n<parameter=content>\nx\n</parameter>\n</function>",
    );
    // Line breaks around a value are layout, if they are around all.
    c.reads(
        "<invoke name=\"write\"><parameter name=\"path\">a</parameter><parameter name=\"content\">\nb\n</parameter></invoke>",
        r#"tool_use minted write {"content":"\nb\n","path":"a"}; tool_use"#,
    );
    c.reads(
        "<invoke name=\"write\"><parameter name=\"path\" string=\"true\">\na\n</parameter></invoke>",
        r#"tool_use minted write {"path":"\na\n"}; tool_use"#,
    );
    for (value, read) in [("\na\n", "a"), ("\na", "\na"), ("\n\na\n", "\na"), ("a\n", "a\n")] {
        c.reads(
            &format!(
                "<invoke name=\"write\"><parameter name=\"path\">{value}</parameter></invoke>"
            ),
            &format!("tool_use minted write {}; tool_use", json!({"path": read})),
        );
    }
}

#[test]
fn sections_of_deepseek_v4_1_are_read() {
    let c = with(TextToolCalls::Deepseek);
    for (bars, section) in [
        ("｜", " calls"),
        ("｜", "calls"),
        ("｜", " call"),
        ("｜｜", " calls"),
        ("｜", " tool_calls"),
    ] {
        let call = "<D invoke name=\"w\">\n<D parameter name=\"a\" string=\"true\">ls</D parameter>\n</D invoke>";
        let answer = format!("I look.\n\n<D{section}>\n{call}\n</D{section}>")
            .replace('D', &format!("{bars}DSML{bars}"));
        c.reads(&answer, r#"text "I look.\n\n", tool_use minted w {"a":"ls"}; tool_use"#);
    }
}

#[test]
fn a_value_that_says_what_it_is_is_that() {
    let schema = json!({"properties": {
        "list": {"anyOf": [{"type": "string"}, {"type": "array"}]},
        "n": {"type": ["string", "number"]},
        "o": {"type": ["string", "object"]},
    }});
    let deepseek = with_tool(TextToolCalls::Deepseek, "set", &schema);
    for (key, value, read) in [
        ("list", r#"["a","b"]"#, r#"["a","b"]"#),
        ("n", "5", "5"),
        ("o", r#"{"a":1}"#, r#"{"a":1}"#),
        ("n", r#""abc""#, r#""abc""#),
        ("n", "abc", r#""abc""#),
    ] {
        deepseek.reads(
            &format!("<｜DSML｜invoke name=\"set\"><｜DSML｜parameter name=\"{key}\" string=\"false\">{value}</｜DSML｜parameter></｜DSML｜invoke>"),
            &format!("tool_use minted set {{\"{key}\":{read}}}; tool_use"),
        );
    }
    let glm = with_tool(TextToolCalls::Glm, "set", &schema);
    for (key, value, read) in [
        ("list", r#"["a"]"#, r#"["a"]"#),
        ("list", "[a", r#""[a""#),
        ("n", "5", r#""5""#),
        ("n", "[5]", r#""[5]""#),
        ("o", r#"{"a":1}"#, r#"{"a":1}"#),
    ] {
        glm.reads(
            &format!(
                "<tool_call>set<arg_key>{key}</arg_key><arg_value>{value}</arg_value></tool_call>"
            ),
            &format!("tool_use minted set {{\"{key}\":{read}}}; tool_use"),
        );
    }
}

#[test]
fn an_input_within_one_parameter_is_the_input() {
    let call = |key: &str, value: &str| {
        format!(
            "<｜DSML｜invoke name=\"write\"><｜DSML｜parameter name=\"{key}\" string=\"false\">{value}</｜DSML｜parameter></｜DSML｜invoke>"
        )
    };
    let c = write(TextToolCalls::Deepseek);
    for key in ["arguments", "parameters", "input"] {
        let expected = r#"tool_use minted write {"path":"a"}; tool_use"#;
        c.reads(&call(key, r#"{"path":"a"}"#), expected);
    }
    c.reads(&call("other", "{}"), r#"tool_use minted write {"other":{}}; tool_use"#);
    c.reads(&call("input", "[]"), r#"tool_use minted write {"input":[]}; tool_use"#);
    // The tool may have such a parameter.
    let open = call("input", "{}").replace("write", "w");
    c.reads(&open, r#"tool_use minted w {"input":{}}; tool_use"#);
}

#[test]
fn the_next_call_may_begin_where_a_section_does_not_end() {
    use TextToolCalls::*;
    for (syntax, start, end) in [
        (Hermes, "<tool_call>\n{\"name\":\"w\",\"arguments\":{\"a\":1}}\n", "</tool_call>"),
        (
            QwenXml,
            "<tool_call>\n<function=w>\n<parameter=a>\n1\n</parameter>\n</function>\n",
            "</tool_call>",
        ),
        (Glm, "<tool_call>w<arg_key>a</arg_key><arg_value>1</arg_value>", "</tool_call>"),
    ] {
        let both = "tool_use minted w {\"a\":1}, tool_use minted w {\"a\":1}; tool_use";
        with(syntax).reads(&[start, start, end].concat(), both);
        with(syntax).leaves_at_the_limit(&[start, start, end].concat());
        with(syntax).leaves(&[start, "so ", start, end].concat());
    }
}

#[test]
fn a_call_of_glm_without_its_end_runs_if_nothing_is_missing() {
    let c = write(TextToolCalls::Glm);
    let (call, end) = written(TextToolCalls::Glm, "a.md", "Hi");
    let value = end.strip_suffix("</tool_call>").unwrap();
    c.reads(
        &[call.as_str(), value].concat(),
        r#"tool_use minted write {"content":"Hi","path":"a.md"}; tool_use"#,
    );
    c.leaves("<tool_call>write<arg_key>path</arg_key><arg_value>a.md</arg_value>");
}

#[test]
fn a_call_in_seeds_wrapper_is_read() {
    with(TextToolCalls::QwenXml).reads(
        "I look.\n<seed:tool_call>\n<function=w>\n<parameter=a>\n1\n</parameter>\n</function>\n</seed:tool_call>",
        "text \"I look.\\n\", tool_use minted w {\"a\":1}; tool_use",
    );
}

#[test]
fn what_kimi_k3_says_and_calls_is_read() {
    let c = with(TextToolCalls::Kimi);
    let response = "<|open|>response<|sep|>I look.\n<|close|>response<|sep|>";
    let argument = |key: &str, kind: &str, value: &str| {
        format!(
            "<|open|>argument key=\"{key}\" type=\"{kind}\"<|sep|>{value}<|close|>argument<|sep|>"
        )
    };
    let call = |body: &str| {
        format!(
            "<|open|>tools<|sep|><|open|>call tool=\"w\" index=\"1\"<|sep|>{body}<|close|>call<|sep|><|close|>tools<|sep|>"
        )
    };
    let end = "<|close|>message<|sep|><|end_of_msg|>";
    let both =
        [argument("a", "string", " 5\n"), argument("b", "object", "{\"c\": [1e2]}")].concat();
    let expected = r#"tool_use minted w {"a":" 5\n","b":{"c":[100.0]}}; tool_use"#;
    c.reads(&call(&both), expected);
    c.reads(&[response, &call(&both), end].concat(), &format!("text \"I look.\\n\", {expected}"));
    c.reads(&["So:", &call("")].concat(), "text \"So:\", tool_use minted w {}; tool_use");
    let json = "<|open|>json type=\"object\"<|sep|>{\"a\": 1}<|close|>json<|sep|>";
    c.reads(&call(json), r#"tool_use minted w {"a":1}; tool_use"#);
    c.reads(&[response, end].concat(), "text \"I look.\\n\"; end_turn");
    c.gives(
        &done(&[text("<|open|>response<|sep|>I lo"), json!({"finish": "length"})]),
        "text \"I lo\"; max_tokens",
    );
    for doubtful in [
        argument("a", "number", "x"),
        argument("a", "string", "<|open|>argument"),
        argument("a", "string", "1").replace(" type=\"string\"", ""),
        argument("a", "string", "1").repeat(2),
        argument("a&amp;", "string", "1"),
        argument("a", "string", "1").replace("<|close|>", ""),
        [json, &both].concat(),
    ] {
        c.leaves(&call(&doubtful));
    }
    c.leaves(&call("").replace("\"w\"", "\"rm\""));
    c.leaves_at_the_limit(&call("").replace("<|close|>tools<|sep|>", ""));
}

#[test]
fn calls_of_minimax_m3_are_read() {
    let schema = json!({"properties": {
        "zip": {"type": "string"},
        "n": {"type": "integer"},
        "to": {"type": "array", "items": {"type": "string"}},
        "from": {"type": "object", "properties": {"zip": {"type": "string"}}},
        "items": {"type": "array", "items": {"type": "object", "properties": {"sku": {"type": "string"}}}},
    }});
    let c = with_tool(TextToolCalls::Minimax, "order", &schema);
    let call = |body: &str| {
        format!("@<tool_call>\n@<invoke name=\"order\">{body}@</invoke>\n@</tool_call>")
            .replace('@', "]<]minimax[>[")
    };
    for (body, input) in [
        ("", "{}"),
        ("@<zip> 075\n@</zip>@<n>5@</n>", r#"{"n":5,"zip":" 075\n"}"#),
        ("@<zip>a]@</zip>", r#"{"zip":"a]"}"#),
        ("@<zip></zip></invoke>@</zip>", r#"{"zip":"</zip></invoke>"}"#),
        ("\n@<to>\n@<item>5@</item>\n@<item>b@</item>\n@</to>\n", r#"{"to":["5","b"]}"#),
        ("@<from>@<zip>5@</zip>@</from>", r#"{"from":{"zip":"5"}}"#),
        (
            "@<items>@<item>@<sku>5@</sku>@<q>2@</q>@</item>@</items>",
            r#"{"items":[{"q":2,"sku":"5"}]}"#,
        ),
        ("@<to>@</to>@<from>\n@</from>", r#"{"from":{},"to":[]}"#),
    ] {
        let expected = format!("tool_use minted order {input}; tool_use");
        c.reads(&call(body), &expected);
        c.reads(&["So:", &call(body), "[e~["].concat(), &format!("text \"So:\", {expected}"));
        c.leaves(&["```\n", &call(body), "\n```"].concat());
        c.leaves(&[&call(body), " so"].concat());
    }
    for doubtful in [
        "@<zip>1@</zip>@<zip>2@</zip>",
        "@<zip>1",
        "@<zip>1@<n>2@</n>",
        "@<zip>1@</n>",
        "@<from>a @<zip>1@</zip>@</from>",
        "@<from>@<zip>1@</zip>@<item>2@</item>@</from>",
        "@<item>1@</item>",
        "so",
    ] {
        c.leaves(&call(doubtful));
    }
    let whole = call("@<n>5@</n>");
    let open = whole.strip_suffix("]<]minimax[>[</tool_call>").unwrap();
    c.reads(open, r#"tool_use minted order {"n":5}; tool_use"#);
    c.leaves_at_the_limit(open.trim_end());
}

#[test]
fn calls_of_gemma_are_read() {
    let c = with(TextToolCalls::Gemma);
    let call =
        |input: &str| format!("<|tool_call>call:w{input}<tool_call|>").replace('~', "<|\"|>");
    for (input, read) in [
        ("{}", "{}"),
        ("{a:~x, \"y\"\n}~}", r#"{"a":"x, \"y\"\n}"}"#),
        (
            "{a:5,b:-1e-05,c:true,d:None,e:null}",
            r#"{"a":5,"b":-0.00001,"c":true,"d":null,"e":null}"#,
        ),
        ("{ ~a b~: [~x~, [], {c: {d:~~}}] }", r#"{"a b":["x",[],{"c":{"d":""}}]}"#),
        ("{a:\"x\"}", r#"{"a":"x"}"#),
    ] {
        let expected = format!("tool_use minted w {read}; tool_use");
        c.reads(&call(input), &expected);
        c.reads(
            &["So:", &call(input), "<|tool_response>"].concat(),
            &format!("text \"So:\", {expected}"),
        );
    }
    let w = r#"tool_use minted w {}"#;
    c.reads(&call("{}").repeat(2), &format!("{w}, {w}; tool_use"));
    c.reads(call("{}").trim_end_matches("<tool_call|>"), &format!("{w}; tool_use"));
    c.leaves_at_the_limit(call("{}").trim_end_matches("<tool_call|>"));
    for doubtful in [
        "{a:x}",
        "{a:5 b}",
        "{a:}",
        "{a}",
        "{a:1,a:2}",
        "{a:~x}",
        "{a:[1}",
        "{a:1}}",
        "{{a:1}}",
        "{a,b:1}",
        "",
    ] {
        c.leaves(&call(doubtful));
    }
    c.leaves(&call("{}").replace(":w", ":rm"));
}

#[test]
fn calls_of_python_are_read() {
    let c = with(TextToolCalls::Pythonic);
    let w = |input: &str| format!("tool_use minted w {input}");
    for (arguments, read) in [
        ("", "{}"),
        ("city=\"Paris\", n = 5", r#"{"city":"Paris","n":5}"#),
        ("a='it\\'s \"x\"', b=-1.5e3,", r#"{"a":"it's \"x\"","b":-1.5e3}"#),
        (
            "a=True, b=False, c=None, d=true, e=null",
            r#"{"a":true,"b":false,"c":null,"d":true,"e":null}"#,
        ),
        (
            "a=[1, (2, 'x'), []], b={'k': {\"l\": 'm'}}",
            r#"{"a":[1,[2,"x"],[]],"b":{"k":{"l":"m"}}}"#,
        ),
        ("a='\\n\\x41\\u00e9\\ud83c\\udf89\\q\\\\'", r#"{"a":"\nA\u00e9🎉\\q\\"}"#),
        (
            r"a='\a\v\0\033[1m\1234\U0001f600\N{DASH}'",
            r#"{"a":"\u0007\u000b\u0000\u001b[1mS4😀\\N{DASH}"}"#,
        ),
        ("a='one\\\ntwo\\\r\nthree'", r#"{"a":"onetwothree"}"#),
        ("a=\"\"\"one\n\"two\" \"\"\"", r#"{"a":"one\n\"two\" "}"#),
        ("a='][)('", r#"{"a":"][)("}"#),
        ("a=(5), b=('x'), c=((1,)), d=()", r#"{"a":5,"b":"x","c":[1],"d":[]}"#),
        ("a=[(1), (2)], b={'k': ([3])}", r#"{"a":[1,2],"b":{"k":[3]}}"#),
    ] {
        let read: Value = serde_json::from_str(read).unwrap();
        let expected = w(&read.to_string());
        for (start, end) in [
            ("[", "]"),
            ("\n[ ", " ]<|eot|>"),
            ("<|tool_call_start|>[", "]<|tool_call_end|><|im_end|>"),
            ("<|python_start|>[", "]<|python_end|><|eom|>"),
            ("<function_calls>\n", "\n</function_calls>"),
        ] {
            let call = format!("{start}w({arguments}){end}");
            c.reads(&call, &format!("{expected}; tool_use"));
        }
    }
    let two = format!("{}, {}; tool_use", w(r#"{"n":1}"#), w(r#"{"n":2}"#));
    c.reads("[w(n=1), w(n=2)]", &two);
    c.reads("<function_calls>w(n=1)\nw(n=2)</function_calls>", &two);
    let token = "<|tool_call_start|>[w(n=1)]<|tool_call_end|>";
    c.reads(&format!("So: {token}"), &format!("text \"So: \", {}; tool_use", w(r#"{"n":1}"#)));
    // LFM2 says behind a call what it is for.
    c.reads(
        &format!("{token}I look."),
        &format!("text \"I look.\", {}; tool_use", w(r#"{"n":1}"#)),
    );
    for text in [
        "The form is <|tool_call_start|>[w(n=1)]<|tool_call_end|>, of which I make no use.",
        "<|tool_call_start|>[w(n=1)]<|tool_call_end|> or <|tool_call_start|>[w(n=2)]<|tool_call_end|>",
        "<|python_start|>[w(n=1)]<|python_end|> is the form.",
        "[1] says so.",
        "[w](http://w)",
        "[w(5)]",
        "[w(n=1, n=2)]",
        "[w(n=x)]",
        "[w(n=1 + 1)]",
        "[w(n='a' 'b')]",
        "[w(n='a]",
        "[w(n=1)] is what I would call.",
        "[w(n=1)",
        "[w(n={1: 2})]",
        "[w(=1)]",
        "[w(n='\\xg1')]",
        "[rm(n=1)]",
        "[]",
        "So: [w(n=1)]",
        "<function_calls>w(n=1)",
        "```\n<|tool_call_start|>[w(n=1)]\n```",
    ] {
        c.leaves(text);
    }
}
