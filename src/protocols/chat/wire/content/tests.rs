//! Tests of `content.rs`.

use crate::protocols::chat::wire::Chunk;

#[test]
fn content_is_a_string_or_parts() {
    let read = |content: &str| {
        let text = format!(r#"{{"choices":[{{"delta":{{"content":{content}}}}}]}}"#);
        let chunk = Chunk::read(&text).unwrap();
        let delta = chunk.choices.iter().next().unwrap().delta.clone().unwrap();
        let parts: Vec<String> = delta.content.iter().map(|part| format!("{part:?}")).collect();
        parts.join(" ")
    };
    assert_eq!(read(r#""a""#), r#"Text("a")"#);
    assert_eq!(read(r#""""#), "");
    assert_eq!(
        read(
            r#"[{"type":"thinking","thinking":[{"type":"text","text":"h"},{"text":"m"}]},
                {"type":"text","text":"a"},{"type":"reference","ids":[1]},"b"]"#
        ),
        r#"Thinking("h") Thinking("m") Text("a") Text("b")"#
    );
}

#[test]
fn what_nobody_knows_is_told_of() {
    let read = |delta: &str| {
        let text = format!(r#"{{"choices":[{{"delta":{delta}}}]}}"#);
        let chunk = Chunk::read(&text).unwrap();
        let delta = chunk.choices.iter().next().unwrap().delta.clone().unwrap();
        let parts: Vec<String> = delta.content.iter().map(|part| format!("{part:?}")).collect();
        (parts.join(" "), delta.content_dropped)
    };
    for hi in [
        r#"{"content":[{"type":"text","text":{"value":"Hi","annotations":[]}}]}"#,
        r#"{"content":[{"type":"input_text","text":"Hi"}]}"#,
        r#"{"content":{"type":"markdown","text":"Hi"}}"#,
        r#"{"content":[{"type":"text","content":"Hi"}]}"#,
        r#"{"text":"Hi"}"#,
        r#"{"text":"Hi","content":null}"#,
        r#"{"text":"Ho","content":"Hi"}"#,
        r#"{"content":"Hi","text":"Ho"}"#,
    ] {
        assert_eq!(read(hi), ("Text(\"Hi\")".to_owned(), false), "{hi}");
    }
    for lost in [
        r#"{"content":"Hi","images":[{"image_url":{"url":"data:"}}]}"#,
        r#"{"content":"Hi","audio":{"data":"UklG"}}"#,
        r#"{"content":"Hi","reasoning":{"a":"hm"}}"#,
    ] {
        assert_eq!(read(lost), ("Text(\"Hi\")".to_owned(), true), "{lost}");
    }
    assert!(read(r#"[{"content":"Hi"}]"#).1 && !read(r#"{"images":[],"audio":{}}"#).1);
    assert!(!read(r#"{"reasoning_details":"","thinking_blocks":null,"refusal":{}}"#).1);
    let told = r#"{"content":"Hi","reasoning_content":{"reasoningContent":{"reasoningText":{"text":"hm","signature":"s"}}}}"#;
    assert_eq!(read(told), ("Reasoning(\"hm\") Text(\"Hi\")".to_owned(), false));
    let part = r#"{"content":[{"type":"reasoning","reasoning":"hm"}]}"#;
    assert_eq!(read(part), ("Reasoning(\"hm\")".to_owned(), false));
    let beside = r#"{"choices":[{"message":{"content":"Hi"},"tool_calls":[{"id":"c"}]}]}"#;
    let chunk = Chunk::read(beside).unwrap();
    assert!(chunk.choices.iter().all(|it| it.message.as_ref().unwrap().content_dropped));
    for nothing in ["null", "[]", "{}", "[{}]", "[null]", r#"[{"type":"text","text":""}]"#] {
        let delta = format!(r#"{{"content":{nothing}}}"#);
        assert_eq!(read(&delta), (String::new(), false), "{delta}");
    }
    for lost in [r#"{"answer":"Hi"}"#, r#"[{"type":"chart","text":"Hi"}]"#, "[[7]]"] {
        let delta = format!(r#"{{"content":{lost}}}"#);
        assert_eq!(read(&delta), (String::new(), true), "{delta}");
    }
    for token in ["7", "0.005", "-1e3", "true"] {
        let delta = format!(r#"{{"content":{token}}}"#);
        assert_eq!(read(&delta), (format!("Text({token:?})"), false), "{delta}");
    }
}
