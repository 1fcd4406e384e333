//! Tests of `pattern.rs`.

use super::*;

/// Returns a chunk with this delta, in the form that servers send.
fn chunk(delta: &str) -> String {
    format!(
        r#"{{"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","usage":null,"choices":[{{"index":1,"delta":{delta},"logprobs":null,"finish_reason":null}}],"system_fingerprint":"f"}}"#
    )
}

fn learned(data: &str) -> ChunkPattern {
    let mut pattern = ChunkPattern::default();
    pattern.learn(data, &Chunk::read(data).unwrap());
    pattern
}

/// Returns true if the pattern of `known` reads `data`, and checks the result against a whole
/// parse.
fn read(known: &str, data: &str) -> bool {
    let Some((choice, delta)) = learned(known).read(data) else { return false };
    let chunk = Chunk::read(data).unwrap();
    let (place, _) = sole_text(&chunk).unwrap();
    assert_eq!(place.choice, choice, "{data}");
    let mut read = chunk.choices.iter().next().unwrap().delta.clone().unwrap();
    // The role of the previous chunk still applies.
    read.role = None;
    assert_eq!(format!("{delta:?}"), format!("{read:?}"), "{data}");
    true
}

const DELTAS: [&str; 7] = [
    r#"{"text":TEXT,"content":null}"#,
    r#"{"content":TEXT}"#,
    r#"{"role":"assistant","content":TEXT,"refusal":null}"#,
    r#"{"content":[{"type":"text","text":TEXT}]}"#,
    r#"{"reasoning_content":TEXT,"content":null}"#,
    r#"{"content":"","reasoning":TEXT}"#,
    r#"{"tool_calls":[{"index":2,"function":{"arguments":TEXT}}]}"#,
];

#[test]
fn a_chunk_with_another_text_is_read_as_ever() {
    for delta in DELTAS {
        let known = chunk(&delta.replace("TEXT", r#"" the""#));
        for text in [r#""a""#, r#"" longer than before""#, r#""\"\\\n\u00e9é漢🎉""#, r#""\ud83d""#]
        {
            assert!(read(&known, &chunk(&delta.replace("TEXT", text))), "{delta} {text}");
        }
    }
}

#[test]
fn random_letters_at_the_end_may_differ() {
    let chunk = |text: &str, end: &str| {
        let chunk = chunk(&format!(r#"{{"content":"{text}"}}"#));
        format!("{},{end}}}", chunk.strip_suffix('}').unwrap())
    };
    for name in ["obfuscation", "p"] {
        let known = chunk("a", &format!(r#""{name}":"kLx""#));
        assert!(read(&known, &chunk("b", &format!(r#""{name}":"9""#))));
        assert!(read(&known, &chunk("b", &format!(r#""{name}":"\"}}""#))));
        for end in [
            format!(r#""{name}":"9","usage":{{"prompt_tokens":1}}"#),
            format!(r#""{name}":7"#),
            format!(r#""x{name}":"9""#),
        ] {
            assert!(!read(&known, &chunk("b", &end)), "{end}");
        }
    }
    // Text in any other member than the padding can have a meaning.
    assert!(!read(&chunk("a", r#""error":"""#), &chunk("b", r#""error":"no""#)));
}

#[test]
fn what_differs_in_more_than_its_text_is_not_read() {
    for delta in DELTAS {
        let known = chunk(&delta.replace("TEXT", r#"" the""#));
        for (at, _) in known.char_indices() {
            // The function `read` checks the result if the change was inside of the text.
            for other in ["", "x", "\"", "\\", "{", " ", "0", "é"] {
                let mut data = known.clone();
                data.replace_range(at..=at, other);
                let changed = data != known;
                let inside = data.len() > 20 && learned(&known).read(&data).is_some();
                assert!(!inside || read(&known, &data), "{data}");
                let outside =
                    at < known.find(" the").unwrap() || at > known.find(" the").unwrap() + 3;
                assert!(!(changed && outside && inside), "{data}");
            }
        }
    }
    for text in [r#""""#, "null", "7", r#""a"#, r#""a","content":"b""#, "\"a\nb\""] {
        for delta in DELTAS {
            let known = chunk(&delta.replace("TEXT", r#"" the""#));
            assert!(!read(&known, &chunk(&delta.replace("TEXT", text))), "{delta} {text}");
        }
    }
}

#[test]
fn a_chunk_that_says_more_than_one_text_is_no_pattern() {
    let calls = r#"{"tool_calls":[{"index":0,"id":"x","function":{"arguments":"{"}}]}"#;
    let two = r#"{"tool_calls":[{"index":0,"function":{"arguments":"a"}},{"index":1,"function":{"arguments":"b"}}]}"#;
    let chunks = [
        chunk(r#"{"content":"a","reasoning":"b"}"#),
        chunk(r#"{"content":["a","b"]}"#),
        chunk(r#"{"content":"a","refusal":"b"}"#),
        chunk(r#"{"content":"a","extra_content":{"google":{"thought":true}}}"#),
        chunk(r#"{"content":[{"type":"refusal","refusal":"a"}]}"#),
        chunk(r#"{"content":["a",7]}"#),
        chunk(r#"{"content":""}"#),
        chunk(calls),
        chunk(two),
        chunk(r#"{"content":"a"}"#).replace(r#""finish_reason":null"#, r#""finish_reason":"stop""#),
        chunk(r#"{"content":"a"}"#).replace(r#""usage":null"#, r#""usage":{"prompt_tokens":1}"#),
        chunk(r#"{"content":"a"}"#).replace(r#""model""#, r#""error":"e","model""#),
        chunk(r#"{"content":"a"}"#).replace(r#""model""#, r#""type":"message","model""#),
        chunk(&format!(r#"{{"content":"a","padding":"{}"}}"#, "x".repeat(LENGTH_MAX))),
    ];
    for data in chunks {
        assert!(!read(&data, &data), "{data}");
    }
}

#[test]
fn a_server_that_never_repeats_itself_is_not_learned_from_for_ever() {
    let mut pattern = ChunkPattern::default();
    let data = |number: usize| chunk(&format!(r#"{{"content":"a","number":{number}}}"#));
    for number in 0..usize::from(MISSES_MAX) {
        pattern.learn(&data(number), &Chunk::read(&data(number)).unwrap());
        assert!(pattern.read(&data(number + 1)).is_none());
    }
    pattern.learn(&data(99), &Chunk::read(&data(99)).unwrap());
    assert!(pattern.read(&data(99)).is_none());
}
