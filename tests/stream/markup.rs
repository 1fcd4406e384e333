//! Text that is more than text: reasoning and calls that stand in it.

use creole::carry::signature::{Signature, SignatureField};

use super::*;

#[test]
fn tags_in_marked_reasoning_are_neither_reasoning_nor_text() {
    let google = json!({"google": {"thought": true}});
    let marked = |text: &str| json!({"content": text, "extra_content": google});
    let whole = |chunk: &Value| {
        let body = json!({"choices": [{"message": chunk, "finish_reason": "stop"}]}).to_string();
        let [streamed, message] = [true, false].map(|stream| show(&case().whole(stream, &body)));
        assert_eq!(streamed, message);
        message
    };
    let expected = "thinking \"One. Two.\", text \"The answer.\"; end_turn";
    assert_eq!(whole(&marked("<thought>One. Two.</thought>The answer.")), expected);
    assert_eq!(whole(&marked("<thought>One. Two.")), "thinking \"One. Two.\"; end_turn");
    for chunks in [
        vec![marked("<thought>One. Two.</thought>The answer.")],
        vec![marked("<thought>One."), marked(" Two."), text("</thought>The answer.")],
        vec![marked("<thought>One."), marked(" Two.</thought>"), text("The answer.")],
        vec![marked("One."), marked(" Two."), text("The "), text("answer.")],
        vec![marked("<thought>One. Two."), text("</thought>"), text("The answer.")],
    ] {
        case().gives(&done(&chunks), expected);
        let escaped = done(&chunks).replace('<', "\\u003c").replace('>', "\\u003e");
        case().gives(&escaped, expected);
        // The same as messages.
        case().gives(&done(&chunks).replace("\"delta\"", "\"message\""), expected);
    }
    let mut last = call(0, "call_a", "w", "{}");
    last["content"] = json!("</thought>");
    case().gives(
        &done(&[marked("<thought>Plan"), last]),
        "thinking \"Plan\", tool_use a w {}; tool_use",
    );
    // What is not marked, and was not, is text.
    case().gives(&done(&[text("</thought>a")]), "text \"</thought>a\"; end_turn");
    let hidden = case().with(|context, _| context.thinking.display = Display::Hidden);
    let answer = done(&[marked("<thought>One.</thought>The answer.")]);
    hidden.gives(&answer, "text \"The answer.\"; end_turn");
}

#[test]
fn a_call_of_glm_follows_text_on_the_same_line() {
    let glm = case().with(|context, _| context.profile.text_tool_calls = TextToolCalls::Glm);
    let markup = "<tool_call>w<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call>";
    let expected = "text \"Let me look.\", tool_use minted w {\"city\":\"Paris\"}; tool_use";
    glm.gives(&done(&[text(&format!("Let me look.{markup}"))]), expected);
    for doubtful in [format!("Use `{markup}`"), format!("Use {markup} so")] {
        let expected = format!("text {}; end_turn", json!(doubtful));
        glm.gives(&done(&[text(&doubtful)]), &expected);
    }
}

#[test]
fn a_call_that_a_model_shows_in_code_is_not_run() {
    let hermes = case().with(|context, _| context.profile.text_tool_calls = TextToolCalls::Hermes);
    let markup = "<tool_call>\n{\"name\":\"w\",\"arguments\":{\"city\":\"Paris\"}}\n</tool_call>";
    for before in [
        "````\n```\n",
        "```\n```xml\n",
        "So:\n- ```xml\n  ",
        "> 1. ~~~~\n~~~\n",
        "So:\n\n    ",
        "So:\n\t",
    ] {
        let shown = format!("{before}{markup}");
        hermes.gives(&done(&[text(&shown)]), &format!("text {}; end_turn", json!(shown)));
    }
    // What is no fence, or no longer one, hides no call.
    for before in ["```json {}```\n", "```\nx\n```\n", "- ```\n  x\n  ```\n", "1. One\n"] {
        let expected =
            format!("text {}, tool_use minted w {{\"city\":\"Paris\"}}; tool_use", json!(before));
        hermes.gives(&done(&[text(&format!("{before}{markup}"))]), &expected);
    }
}

#[test]
fn reasoning_that_comes_in_a_field_and_in_the_text_is_shown_once() {
    let c = case().with(|context, _| context.profile.inline_think = true);
    let field = |text: &str| json!({"reasoning_content": text});
    let expected = "thinking \"Hmm.\", text \"Hi\"; end_turn";
    c.gives(&done(&[field("Hmm."), text("<think>Hmm.</think>Hi")]), expected);
    c.gives(&done(&[field("Hmm."), text("<think>Hm"), text("m.</think>\n\nHi")]), expected);
    c.gives(&done(&[field("Hmm."), text("</think>\n\nHi")]), expected);
    c.gives(&done(&[field("Hmm."), text("\n</thi"), text("nk>Hi")]), expected);
    c.gives(&done(&[text("</think>Hi")]), "text \"Hi\"; end_turn");
    // Once more at the end, in a message.
    let repeated = json!({"message": {"content": "Hi", "reasoning_content": "Hmm."}});
    let last = json!({"choices": [repeated]});
    c.gives(&done(&[text("<think>Hmm.</think>Hi"), last]), expected);
    for (start, end) in [
        ("<reasoning>", "</reasoning>"),
        ("<mm:think>", "</mm:think>"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
    ] {
        c.gives(&done(&[text(&format!("{start}Hmm.{end}Hi"))]), expected);
    }
    c.gives(
        &done(&[field("\n"), text("<think>Hmm.</think>Hi")]),
        "thinking \"\\nHmm.\", text \"Hi\"; end_turn",
    );
    // The signature says where it stood, as only one tag is read by templates.
    for (tag, field) in [("think", SignatureField::Inline), ("thinking", SignatureField::Marked)] {
        let outcome = c.stream(&done(&[text(&format!("<{tag}>Hmm.</{tag}>Hi"))]));
        let signature = message(&outcome)["content"][0]["signature"].take();
        let signature = Signature::decode(signature.as_str().unwrap()).unwrap();
        assert_eq!(signature.field, field);
    }
}
