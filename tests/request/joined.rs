//! Thinking blocks of one answer that a client made one of.

use super::thinking::signature;
use super::*;
use creole::carry::signature::{Signature, SignatureField};
use proptest::prelude::*;

/// Separators with which clients join signatures: those of LangChain4j and Prism, and what else may
/// come.
const JOINS: [&str; 4] = ["\n", "", " ", "\r\n\r\n"];

fn encoded(signatures: &[Signature], join: &str) -> String {
    let texts: Vec<String> = signatures.iter().map(|signature| signature.encode().0).collect();
    texts.join(join)
}

/// The history in which a turn with such a block and a call comes back.
fn history(thinking: &str, signature: &str) -> Value {
    let block = json!({"type": "thinking", "thinking": thinking, "signature": signature});
    json!({"messages": [
        user("q"),
        assistant(json!([block, text("Hi"), call("toolu_1")])),
        user(json!([result("toolu_1", "ok")])),
    ]})
}

fn returned(thinking: &str, signature: &str, overrides: Value) -> Value {
    let request = history(thinking, signature);
    sent_to("default", overrides, request)["messages"][1].take()
}

fn with_item(field: SignatureField, shown: &str, item: &Value) -> Signature {
    Signature { opaque: Some(json!([item]).to_string()), ..signature(field, shown) }
}

#[test]
fn items_of_all_blocks_that_a_client_joined_go_back() {
    let text = json!({"type": "reasoning.text", "text": "I think", "signature": "S"});
    let encrypted = json!({"type": "reasoning.encrypted", "data": "E", "id": "rs_1"});
    let signatures = [
        with_item(SignatureField::ReasoningDetails, "I think", &text),
        with_item(SignatureField::ReasoningDetails, "", &encrypted),
    ];
    for join in JOINS {
        let own = encoded(&signatures, join);
        for thinking in ["I think", "I think\n"] {
            let message = returned(thinking, &own, json!({}));
            assert_eq!(message["reasoning_details"], json!([text, encrypted]), "{join:?}");
            assert_eq!(message.get("reasoning"), None);
            assert_eq!(warned(history(thinking, &own)), "");
        }
        // Of a text that is not the model's they are kept, and it is not.
        let message = returned("I thought", &own, json!({}));
        assert_eq!(message["reasoning_details"], json!([text, encrypted]), "{join:?}");
        assert_eq!(warned(history("I thought", &own)), "thinking_modified");
    }
}

#[test]
fn the_signature_of_a_call_goes_back_out_of_a_block_that_a_client_joined() {
    let mut second = signature(SignatureField::ReasoningContent, "");
    second.call_signatures = vec![("toolu_1".to_owned(), "S".to_owned())];
    let signatures = [signature(SignatureField::Marked, "I think"), second];
    for join in JOINS {
        let own = encoded(&signatures, join);
        let message = returned("I think\n", &own, json!({"tool_schema": "gemini"}));
        let google = json!({"google": {"thought_signature": "S"}});
        assert_eq!(message["tool_calls"][0]["extra_content"], google, "{join:?}");
    }
}

#[test]
fn texts_that_a_client_joined_go_back_as_one() {
    let sign = |texts: &[&str]| {
        let signatures = texts.iter().map(|text| signature(SignatureField::ReasoningContent, text));
        encoded(&signatures.collect::<Vec<_>>(), "\n")
    };
    for (texts, joined) in [
        (&["I think", "so"][..], &["I thinkso", "I think\nso", "I think\nso\n"][..]),
        (&["a", "", "b"], &["ab", "a\nb", "a\n\nb"]),
        (&["", "a"], &["a", "\na"]),
        (&["a", "", "\nb"], &["a\nb", "a\n\nb", "a\n\n\nb"]),
        (&["a\n\n\n", "\nb"], &["a\n\n\n\nb", "a\n\n\n\n\nb"]),
        (&["", "", "\nb", ""], &["\nb", "\n\n\nb\n"]),
        (&["é\"", "\\"], &["é\"\\", "é\"\n\\"]),
        (&["a", "a", "a"], &["aaa", "a\na\na"]),
    ] {
        let own = sign(texts);
        for joined in joined {
            let message = returned(joined, &own, json!({}));
            assert_eq!(message["reasoning_content"], *joined, "{texts:?}");
            assert_eq!(warned(history(joined, &own)), "");
        }
    }
}

#[test]
fn a_text_that_lacks_a_part_or_has_more_is_not_the_one_that_was_signed() {
    let signatures = ["a", "b"].map(|text| signature(SignatureField::ReasoningContent, text));
    let own = encoded(&signatures, "\n");
    for thinking in ["", "a", "b", "ba", "a b", "ab!", "!ab", "\nab", "a\n\n", "a\n!\nb"] {
        assert_eq!(warned(history(thinking, &own)), "thinking_modified", "{thinking:?}");
        assert_eq!(returned(thinking, &own, json!({})).get("reasoning_content"), None);
    }
    // Of one block nothing was joined.
    let alone = signatures[0].encode().0;
    for thinking in ["a\n", "\na", "ab"] {
        assert_eq!(warned(history(thinking, &alone)), "thinking_modified", "{thinking:?}");
    }
    assert_eq!(
        refused_strictly(history("ba", &own)).split(':').next(),
        Some("messages.1.content.0")
    );
}

#[test]
fn what_was_not_shown_in_several_blocks_goes_back() {
    let hidden = |text: &str| Signature {
        full_text: Some(text.to_owned()),
        ..signature(SignatureField::ReasoningContent, "")
    };
    let own = encoded(&[hidden("One. "), hidden("Two.")], "\n");
    for thinking in ["", "\n"] {
        assert_eq!(returned(thinking, &own, json!({}))["reasoning_content"], "One. Two.");
    }
    let item = json!({"type": "reasoning.encrypted", "data": "E"});
    let own =
        encoded(&[(); 2].map(|()| with_item(SignatureField::ReasoningContent, "", &item)), "\n");
    let message = returned("\n", &own, json!({}));
    assert_eq!(message["reasoning_details"], json!([item, item]));
    assert_eq!(message.get("reasoning_content"), None, "the line break is the client's");
}

#[test]
fn inputs_that_a_client_lost_are_found_in_joined_signatures() {
    let mut last = signature(SignatureField::ReasoningContent, "");
    last.call_inputs = vec![("toolu_1".to_owned(), r#"{"q":"x"}"#.to_owned())];
    let own = encoded(&[signature(SignatureField::ReasoningContent, ""), last], "");
    let message = returned("", &own, json!({}));
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], r#"{"q":"x"}"#);
}

#[test]
fn joined_reasoning_of_another_model_does_not_go_back() {
    let of = |mark: &str| Signature {
        upstream: mark.to_owned(),
        ..signature(SignatureField::ReasoningContent, "a")
    };
    for (marks, goes_back) in [
        (["m::m", ""], true),
        (["", "m::m"], true),
        (["m::another", ""], false),
        (["", "m::another"], false),
        (["m::another", "0a1b2c3d"], false),
        (["0a1b2c3d", "m::another"], false),
    ] {
        let message = returned("aa", &encoded(&marks.map(of), "\n"), json!({}));
        assert_eq!(message.get("reasoning_content").is_some(), goes_back, "{marks:?}");
    }
}

/// RubyLLM keeps the first of several signatures, any-llm the last. What is in it goes back; a text
/// that is longer than the one it signs is not known to be the model's.
#[test]
fn one_of_several_signatures_gives_what_it_has() {
    let item = json!({"type": "reasoning.encrypted", "data": "E"});
    let own = with_item(SignatureField::ReasoningContent, "a", &item).encode().0;
    let message = returned("a", &own, json!({}));
    assert_eq!(message["reasoning_content"], "a");
    assert_eq!(message["reasoning_details"], json!([item]));
    for joined in ["ab", "a\nb", "ba"] {
        let message = returned(joined, &own, json!({}));
        assert_eq!(message.get("reasoning_content"), None);
        assert_eq!(message["reasoning_details"], json!([item]));
    }
}

#[test]
fn signatures_that_are_not_all_ours_are_not_read() {
    let own = signature(SignatureField::ReasoningContent, "x").encode().0;
    for other in
        ["EqQBCkYIARgCKkDx", "VFhT", "VFhTAQ==", "VFhTAg8=", "=VFhT", &own[..own.len() - 4]]
    {
        for join in JOINS {
            let both = [&*own, join, other].concat();
            assert_eq!(Signature::decode(&both), None, "{both}");
            let both = [other, join, &own].concat();
            assert_eq!(Signature::decode(&both), None, "{both}");
        }
    }
}

proptest! {
    #[test]
    fn joined_signatures_are_read_as_all_of_them_and_no_cut_of_them_fails_badly(
        // White space alone is no block.
        shown in prop::collection::vec("(\n{0,2}[a\u{e9}][a\n\u{e9}]{0,3})?", 1..5),
        records in prop::collection::vec(("[a-c]{0,4}", any::<String>()), 5),
        join in 0..JOINS.len(),
        cut in any::<prop::sample::Index>(),
        text in "[a\n\u{e9}]{0,8}",
    ) {
        let sign = |(shown, record): (&String, &(String, String))| Signature {
            call_signatures: vec![record.clone()],
            ..signature(SignatureField::Reasoning, shown)
        };
        let signatures: Vec<_> = shown.iter().zip(&records).map(sign).collect();
        let own = encoded(&signatures, JOINS[join]);
        let read = Signature::decode(&own).unwrap();
        let hashes: Vec<u64> = signatures.iter().map(|signature| signature.hash).collect();
        prop_assert_eq!([&[read.hash], &*read.joined].concat(), hashes);
        prop_assert_eq!(&*read.call_signatures, &records[..shown.len()]);
        prop_assert!(read.matches(&shown.concat()));
        prop_assert!(shown.len() < 2 || read.matches(&shown.join("\n")));
        let bare = |text: &str| text.replace('\n', "");
        prop_assert!(!read.matches(&text) || bare(&text) == bare(&shown.concat()));
        let (start, end) = own.split_at(cut.index(own.len()));
        for piece in [start, end] {
            if let Some(read) = Signature::decode(piece) {
                prop_assert!(read.joined.len() < shown.len());
                prop_assert!(!read.matches("b"));
            }
        }
    }
}
