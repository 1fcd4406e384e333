//! Answers of reasoning alone, which an operator wants as text.

use creole::profile::ReasoningOnly;

use super::*;

fn thought(text: &str) -> Value {
    json!({"reasoning_content": text})
}

fn finish(word: &str) -> Value {
    json!({"finish": word})
}

fn as_text() -> Case {
    case().with(|context, _| context.profile.reasoning_only = ReasoningOnly::Text)
}

fn hidden() -> Case {
    as_text().with(|context, _| {
        context.thinking.display = Display::Hidden;
        context.thinking.returns = false;
    })
}

#[test]
fn reasoning_alone_is_said_once_more_as_text() {
    let chunks = [thought("The answer"), thought(" is \"4\".\n"), finish("stop")];
    let shown = r#"thinking "The answer is \"4\".\n", text "The answer is \"4\".\n"; end_turn !reasoning_as_text"#;
    let outcome = as_text().gives(&done(&chunks), shown);
    assert_eq!(outcome.warnings, ["reasoning_as_text"]);
    hidden().gives(&done(&chunks), r#"text "The answer is \"4\".\n"; end_turn !reasoning_as_text"#);
    let body = json!({"choices": [{"message": {"content": "", "reasoning": "It is 4."},
        "finish_reason": "stop"}]});
    for stream in [true, false] {
        let whole = as_text().whole(stream, &body.to_string());
        assert_eq!(
            show(&whole),
            r#"thinking "It is 4.", text "It is 4."; end_turn !reasoning_as_text"#
        );
    }
    case().gives(&done(&chunks), r#"thinking "The answer is \"4\".\n"; end_turn"#);
}

#[test]
fn an_answer_with_more_than_reasoning_stays_as_it_is() {
    as_text().gives(
        &done(&[thought("Hm"), text("Hi"), finish("stop")]),
        "thinking \"Hm\", text \"Hi\"; end_turn",
    );
    for chunks in [
        vec![thought("Hm"), call(0, "call_a", "w", "{}"), finish("tool_calls")],
        // The model was not done: more tokens would have made an answer.
        vec![thought("Hm"), finish("length")],
        vec![thought("Hm"), finish("content_filter")],
        vec![thought("Hm"), json!({"refusal": "No."}), finish("stop")],
        vec![thought(" \n"), finish("stop")],
        vec![finish("stop")],
    ] {
        let plain = case().stream(&done(&chunks));
        let outcome = as_text().gives(&done(&chunks), &show(&plain));
        assert!(!outcome.warnings.contains(&"reasoning_as_text".to_owned()), "{chunks:?}");
    }
}

#[test]
fn reasoning_that_is_longer_than_any_answer_stays_reasoning() {
    let long = "x".repeat(200 << 10);
    let outcome =
        as_text().run(true, [done(&[thought(&long), thought(&long), finish("stop")]).as_bytes()]);
    assert!(
        outcome.warnings.contains(&"answer_only_reasoning".to_owned()),
        "{:?}",
        outcome.warnings
    );
}
