//! Tests of `thinking.rs`.

use super::*;
use crate::protocols::chat::wire::Chunk;

fn opaque(details: &[&str]) -> String {
    let delta = |detail: &&str| format!(r#""reasoning_details":[{detail}]"#);
    opaque_of(&details.iter().map(delta).collect::<Vec<_>>())
}

fn opaque_of(deltas: &[String]) -> String {
    let mut block = ThinkingBlock::new(SignatureField::ReasoningDetails, true);
    for delta in deltas {
        let text = format!(r#"{{"choices":[{{"delta":{{{delta}}}}}]}}"#);
        let chunk = Chunk::read(&text).unwrap();
        let delta = chunk.choices.iter().next().unwrap().delta.clone().unwrap();
        for detail in delta.reasoning_details.iter() {
            block.push_detail(detail);
        }
    }
    block.signature("", Vec::new()).opaque.unwrap_or_default()
}

#[test]
fn the_fragments_of_an_item_are_joined_and_others_kept_as_they_are() {
    assert_eq!(
        opaque(&[
            r#"{"type":"reasoning.text", "text":"a","format":"f","index":0,"signature":null}"#,
            r#"{"type":"reasoning.text","text":"\u00e9","index":0}"#,
            r#"{"type":"reasoning.text","signature":"S","index":0}"#,
            r#"{"type":"reasoning.text","text":"other","index":1}"#,
            r#"{"type":"reasoning.summary","summary":"b","index":3}"#,
            r#"{"type":"reasoning.summary","summary":"c","index":3}"#,
            r#"{"type":"reasoning.encrypted","data":"E", "id":"r","index":2}"#,
            r#"{"type":"reasoning.encrypted","id":"without data"}"#,
        ]),
        concat!(
            r#"[{"type":"reasoning.text","format":"f","index":0,"text":"a\u00e9","signature":"S"},"#,
            r#"{"type":"reasoning.text","text":"other","index":1},"#,
            r#"{"type":"reasoning.summary","index":3,"summary":"bc"},"#,
            r#"{"type":"reasoning.encrypted","data":"E","id":"r","index":2}]"#
        )
    );
}
#[test]
fn the_fragments_of_both_lists_are_joined_where_each_chunk_has_both() {
    let delta = |detail: &str, block: &str| {
        format!(
            r#""reasoning_details":[{{"type":"reasoning.text",{detail}}}],"thinking_blocks":[{{"type":"thinking",{block}}}]"#
        )
    };
    assert_eq!(
        opaque_of(&[
            delta(r#""text":"a""#, r#""thinking":"a""#),
            delta(r#""text":"b""#, r#""thinking":"b""#),
            delta(r#""text":"","signature":"S""#, r#""thinking":"","signature":"S""#),
        ]),
        concat!(
            r#"[{"type":"reasoning.text","text":"ab","signature":"S"},"#,
            r#"{"type":"thinking","thinking":"ab","signature":"S"}]"#
        )
    );
}
