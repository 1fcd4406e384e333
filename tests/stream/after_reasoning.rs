//! Line breaks between reasoning and text, which templates write and some servers take for text.

use super::*;

fn thought(text: &str) -> Value {
    json!({"reasoning_content": text})
}

#[test]
fn an_answer_after_reasoning_does_not_begin_with_line_breaks() {
    let expected = "thinking \"Hm.\", text \"Hi\\n\\nthere\"; end_turn";
    for texts in [
        &["\n\nHi\n\nthere"] as &[&str],
        &["\n\n", "Hi", "\n\n", "there"],
        &["\n", "\n", "Hi\n", "\nthere"],
        &["\r\n\r\nHi\n\nthere"],
        &["", "\n\nH", "i\n\nthere"],
        &["Hi\n\nthere"],
    ] {
        let mut chunks = vec![thought("Hm"), thought(".")];
        chunks.extend(texts.iter().map(|part| text(part)));
        case().gives(&done(&chunks), expected);
        let hidden = case().with(|context, _| context.thinking.display = Display::Hidden);
        hidden.gives(&done(&chunks), "text \"Hi\\n\\nthere\"; end_turn");
        let body = json!({"choices": [{"message": {"reasoning_content": "Hm.", "content": texts.concat()}, "finish_reason": "stop"}]}).to_string();
        for stream in [true, false] {
            assert_eq!(show(&case().whole(stream, &body)), expected, "{texts:?}");
            assert_eq!(show(&hidden.whole(stream, &body)), "text \"Hi\\n\\nthere\"; end_turn");
        }
    }
    // However it is written, and in whichever field.
    for raw in [r"\n\nHi", r"\u000a\u000AHi", r"\u000D\nHi"] {
        for field in ["reasoning", "reasoning_text", "thinking"] {
            let sse = format!(
                "data: {{\"choices\":[{{\"delta\":{{\"{field}\":\"Hm.\"}}}}]}}\n\ndata: {{\"choices\":[{{\"delta\":{{\"content\":\"{raw}\"}}}}]}}\n\ndata: [DONE]\n\n"
            );
            case().gives(&sse, "thinking \"Hm.\", text \"Hi\"; end_turn");
        }
    }
}

#[test]
fn a_stop_sequence_that_begins_the_text_behind_reasoning_is_no_stop() {
    let c = case().with(|context, _| context.limits.stop_sequences = vec!["\n\n".to_owned()]);
    c.gives(
        &done(&[thought("Hm."), text("\n\nHi"), text("\n\nthere")]),
        "thinking \"Hm.\", text \"Hi\"; stop_sequence \"\\n\\n\"",
    );
}

#[test]
fn line_breaks_after_a_thought_of_white_space_are_none_of_the_text() {
    // transformers' server, where the template wrote an empty thought.
    case().gives(
        &done(&[thought("\n\n"), text("\n\nHi"), text("\n\nthere")]),
        "text \"Hi\\n\\nthere\"; end_turn",
    );
    let hidden = case().with(|context, _| context.thinking.display = Display::Hidden);
    hidden.gives(&done(&[thought("\n"), text("\n"), text("\nHi")]), "text \"Hi\"; end_turn");
}

#[test]
fn other_texts_keep_their_line_breaks() {
    // Without reasoning.
    case().gives(&done(&[text("\n\nHi")]), "text \"\\n\\nHi\"; end_turn");
    case().gives(&done(&[thought(""), text("\n\nHi")]), "text \"\\n\\nHi\"; end_turn");
    // Behind the first words.
    case().gives(
        &done(&[text("Hi"), thought("Hm."), text("\n\nthere")]),
        "text \"Hi\", thinking \"Hm.\", text \"\\n\\nthere\"; end_turn",
    );
    let hidden = case().with(|context, _| context.thinking.display = Display::Hidden);
    hidden.gives(
        &done(&[text("Hi"), thought("Hm."), text("\n\nthere")]),
        "text \"Hi\\n\\nthere\"; end_turn",
    );
    // What indents the first line stays.
    case().gives(
        &done(&[thought("Hm."), text("\n    if x:\n")]),
        "thinking \"Hm.\", text \"    if x:\\n\"; end_turn",
    );
}

#[test]
fn line_breaks_alone_between_reasoning_and_a_call_are_no_text() {
    case().gives(
        &done(&[
            thought("Hm."),
            text("\n\n"),
            call(0, "a", "w", "{}"),
            json!({"finish": "tool_calls"}),
        ]),
        "thinking \"Hm.\", tool_use r_a w {}; tool_use",
    );
    let inline = case().with(|context, _| context.profile.inline_think = true);
    inline.gives(
        &done(&[text("<think>Hm."), text("\n\nSo.</think>"), text("\n\nHi")]),
        "thinking \"Hm.\\n\\nSo.\", text \"Hi\"; end_turn",
    );
}
