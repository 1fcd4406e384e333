//! Tests of `same.rs`.

use super::*;
use crate::model::{Image, Text};

fn same_result(left: &ToolResult<'_>, right: &ToolResult<'_>) -> bool {
    KnownResult::of(left).is_same(right)
}

fn hash(name: &'static str, id: &'static str, input: &str) -> u64 {
    let (id, name) = (Str::plain(id), Str::plain(name));
    of_call(&ToolUse::of(id, name, input))
}

#[test]
fn calls_are_the_same_however_they_are_written() {
    let base = hash("w", "t1", r#"{"a":"\u0062\/\\\n\b","list":[1,{"x":null,"y":true}],"id":7}"#);
    let other = r#" { "list" : [ 1 , { "y":true,"x":null } ], "id": 7,"a":"b/\\\u000a\u0008" } "#;
    assert_eq!(base, hash("w", "t2", other));
    let echoed = |id, input| hash("w", id, input);
    assert_eq!(
        echoed("toolu_1", r#"{"q":"x","id":"toolu_1"}"#),
        echoed("toolu_2", r#"{"id":"toolu_2","q":"x"}"#)
    );
    assert_eq!(echoed("t", "not json"), echoed("u", "not json"));
    assert_eq!(
        hash("Bash", "t", r#"{"description":"a","command":"ls","task_progress":[1]}"#),
        hash("Bash", "t", r#"{"command":"ls","description":"b"}"#)
    );
    for [one, other] in [
        [r#"{"command":"ls","explanation":"a","goal":"b"}"#, r#"{"command":"ls","goal":"c"}"#],
        [r#"{"command":"ls","summary":"a"}"#, r#"{"command":"ls","summary":"b"}"#],
    ] {
        assert_eq!(hash("run_in_terminal", "t", one), hash("run_in_terminal", "t", other));
        assert_ne!(hash("w", "t", one), hash("w", "t", other));
    }
    assert_ne!(
        hash("terminal_ticket", "t", r#"{"goal":"a"}"#),
        hash("terminal_ticket", "t", r#"{"goal":"b"}"#)
    );
    for [one, other] in [
        [
            r#"{"path":"a","summary":"x","security_risk":"LOW"}"#,
            r#"{"summary":"y","path":"a","security_risk":"HIGH"}"#,
        ],
        [
            r#"{"command":"ls","summary":"x","riskLevelReason":"y"}"#,
            r#"{"command":"ls","riskLevelReason":"z"}"#,
        ],
    ] {
        assert_eq!(hash("w", "t", one), hash("w", "t", other));
    }
    assert_ne!(
        echoed("t", r#"{"summary":"a","task_progress":"x"}"#),
        echoed("t", r#"{"summary":"b","task_progress":"x"}"#)
    );
    // The input member `description` is compared if the tool runs no shell commands.
    assert_ne!(
        echoed("t", r#"{"command":"create","description":"a"}"#),
        echoed("t", r#"{"command":"create","description":"b"}"#)
    );
}

#[test]
fn calls_that_differ_are_not_the_same() {
    let texts = [
        "{}",
        "[]",
        "null",
        r#"{"a":null}"#,
        r#"{"a":"null"}"#,
        r#"{"a":["b","c"]}"#,
        r#"{"a":["c","b"]}"#,
        r#"{"a":[["b"],"c"]}"#,
        r#"{"a":"b","b":"a"}"#,
        r#"{"a":"a","b":"b"}"#,
        r#"{"a":{"a":"b"}}"#,
        r#"{"id":"other"}"#,
        r#"{"a":{"id":"t"}}"#,
        r#"{"a":"0123456789abcdef"}"#,
        r#"{"a":"0123456789abcdeg"}"#,
        r#"{"a":1}"#,
        r#"{"a":true}"#,
        r#"{"description":"a"}"#,
        r#"{"description":"b"}"#,
        r#"{"command":"ls"}"#,
        r#"{"a":{"command":"ls"}}"#,
        r#"{"a":{"command":"ls","description":"a"}}"#,
    ];
    let mut all: Vec<u64> = texts.iter().map(|input| hash("w", "t", input)).collect();
    all.push(hash("v", "t", "{}"));
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), texts.len() + 1);
}

#[test]
fn results_are_compared_by_what_they_say() {
    let result = |words: &'static str, is_error| {
        let text = Text { text: Str::plain(words), cached: None, citations: None };
        ToolResult {
            id: Str::plain(words),
            content: vec![Block::Text(text)],
            is_error,
            cleared: false,
        }
    };
    assert!(same_result(&result("a", false), &result("a", false)));
    assert!(!same_result(&result("a", false), &result("b", false)));
    assert!(!same_result(&result("a", false), &result("a", true)));
    for (left, right, same) in [
        (r#""a\nb""#, r#""a\u000ab""#, true),
        (r#""a\nb""#, r#""a\nc""#, false),
        (r#""\u0041b""#, r#""Ab""#, true),
        (r#""\u0041b""#, r#""\u0042b""#, false),
        (r#""\ud83d\ude00!""#, "\"😀!\"", true),
        (r#""\\n""#, r#""\n""#, false),
        (r#""\\\n""#, r#""\\\u000a""#, true),
        (r#""a""#, r#""a\u0020""#, false),
        (r#""tab\there""#, r#""tab\u0009here, and on""#, false),
    ] {
        let read = |text| Reader::new(text, 1).string().unwrap();
        assert_eq!(same_text(read(left), read(right)), same, "{left} {right}");
        assert_eq!(same_text(read(right), read(left)), same, "{right} {left}");
        let far = |text: &str| text.replacen('"', &format!("\"{}", "x".repeat(70)), 1);
        let (left, right) = (far(left), far(right));
        assert_eq!(same_text(read(&left), read(&right)), same, "{left} {right}");
    }
    // The first byte at which the two texts differ is far from their end.
    let (left, right) =
        [r#""a\n"#, r#""a\u000a"#].map(|text| text.to_owned() + &"x".repeat(70) + "\"").into();
    let read = |text| Reader::new(text, 1).string().unwrap();
    assert!(same_text(read(&left), read(&right)) && same_text(read(&right), read(&left)));
    let empty =
        ToolResult { id: Str::plain("t"), content: Vec::new(), is_error: false, cleared: false };
    assert!(!same_result(&result("a", false), &empty));
}

#[test]
fn what_a_client_adds_to_a_result_makes_no_difference() {
    let of = |texts: &[&str]| {
        let block = |text: &&str| {
            let quoted = Box::leak(format!("\"{text}\"").into_boxed_str());
            let text = Reader::new(quoted, 1).string().unwrap();
            Block::Text(Text { text, cached: None, citations: None })
        };
        ToolResult {
            id: Str::plain("t"),
            content: texts.iter().map(block).collect(),
            is_error: false,
            cleared: false,
        }
    };
    let reminder = r"\n\n<system-reminder>\nToken usage: 7/9; a < b\n</system-reminder>\n";
    let (one, two) = (format!("a.txt{reminder}"), format!("a.txt{reminder}{reminder}"));
    let plain = of(&["a.txt"]);
    for same in [of(&[&one]), of(&[&two]), of(&["a.txt", reminder]), of(&[&one, reminder])] {
        assert!(same_result(&plain, &same) && same_result(&same, &plain), "{same:?}");
        assert_eq!(of_result(&plain), of_result(&same), "{same:?}");
    }
    // An escaped backslash and a letter are no white space.
    let (path, noted) = (of(&[r"C:\\n"]), of(&[&format!(r"C:\\n{reminder}")]));
    assert!(same_result(&path, &noted) && of_result(&path) == of_result(&noted));
    for other in [
        of(&[&format!("b.txt{reminder}")]),
        of(&["a.txt", "b"]),
        of(&[&format!("{reminder}a.txt")]),
        of(&[r"a.txt</system-reminder>"]),
        of(&[reminder]),
        of(&[]),
    ] {
        assert!(!same_result(&plain, &other) && !same_result(&other, &plain), "{other:?}");
        assert_ne!(of_result(&plain), of_result(&other), "{other:?}");
    }
}

#[test]
fn results_of_every_kind_are_the_same_if_they_say_the_same() {
    let found = |title: &'static str, text: &'static str| {
        let text = Text { text: Str::plain(text), cached: None, citations: None };
        let (source, title) = (Str::plain("s"), Str::plain(title));
        let content = vec![Block::Text(text)];
        Block::SearchResult(Box::new(SearchResult { source, title, content }))
    };
    let document = |at, source| {
        let (title, context) = (None, None);
        Block::Document(Box::new(DocumentBlock { at, source, title, context, cached: None }))
    };
    let data = |data| DocumentSource::Base64 {
        media_type: Str::plain("application/pdf"),
        data: Str::plain(data),
    };
    let image = |data| {
        let source = ImageSource::Base64 { media_type: Str::plain("image/png"), data };
        Block::Image(Box::new(Image { at: 3, source, cached: None }))
    };
    let blocks = [
        found("t", "a"),
        found("t", "b"),
        found("u", "a"),
        document(1, data("QQ==")),
        document(1, data("Qg==")),
        document(1, DocumentSource::Text(Str::plain("QQ"))),
        document(1, DocumentSource::Content(vec![found("t", "a")])),
        image(Str::plain("QQ==")),
        Block::ToolReference(Str::plain("QQ==")),
        Block::BrowserState { tabs: "[1]", changes: "" },
        Block::BrowserState { tabs: "", changes: "[1]" },
    ];
    let of = |block: Block<'static>| ToolResult {
        id: Str::plain("t"),
        content: vec![block],
        is_error: false,
        cleared: false,
    };
    let results = blocks.map(of);
    for (at, left) in results.iter().enumerate() {
        for (other, right) in results.iter().enumerate() {
            assert_eq!(same_result(left, right), at == other, "{left:?} {right:?}");
            assert_eq!(of_result(left) == of_result(right), at == other, "{left:?} {right:?}");
        }
    }
    // The position of a document in the request makes no difference.
    let (here, there) = (of(document(1, data("QQ=="))), of(document(2, data("QQ=="))));
    assert!(same_result(&here, &there) && of_result(&here) == of_result(&there));
}
