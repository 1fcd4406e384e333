//! Calls that models write at the end of their reasoning, which they have not ended before.

use super::text_calls::with;
use super::*;

const CALL: &str = "<tool_call>\n{\"name\": \"w\", \"arguments\": {\"a\": 1}}\n</tool_call>";

fn reasoning(text: &str) -> Value {
    json!({"reasoning_content": text})
}

fn thought(text: &str) -> Value {
    reasoning(&format!("{text}\n{CALL}"))
}

fn stop() -> Value {
    json!({"finish": "stop"})
}

#[test]
fn a_call_at_the_end_of_the_reasoning_is_a_call_if_the_answer_says_nothing_else() {
    let hermes = with(TextToolCalls::Hermes);
    for answer in [
        vec![thought("I need it."), stop()],
        vec![reasoning("I need it."), reasoning("\n"), reasoning(CALL), stop()],
        // White space says nothing.
        vec![thought("I need it."), text("\n\n"), json!({"finish": "tool_calls"})],
    ] {
        hermes.gives(
            &done(&answer),
            r#"thinking "I need it.\n", tool_use minted w {"a":1}; tool_use"#,
        );
    }
    // Without a thought before it.
    hermes.gives(&done(&[reasoning(CALL), stop()]), r#"tool_use minted w {"a":1}; tool_use"#);
    // A `<think>` that was never closed, which the server left in the text.
    with(TextToolCalls::Hermes).with(|context, _| context.profile.inline_think = true).gives(
        &done(&[text(&format!("<think>I need it.\n{CALL}")), stop()]),
        r#"thinking "I need it.\n", tool_use minted w {"a":1}; tool_use"#,
    );
}

#[test]
fn reasoning_that_is_not_shown_calls_as_well() {
    let hidden =
        with(TextToolCalls::Hermes).with(|context, _| context.thinking.display = Display::Hidden);
    for (returns, thinking) in [(false, ""), (true, "thinking \"\", ")] {
        let case = hidden.clone().with(|context, _| context.thinking.returns = returns);
        case.gives(
            &done(&[thought("I need it."), stop()]),
            &format!(r#"{thinking}tool_use minted w {{"a":1}}; tool_use"#),
        );
    }
}

#[test]
fn a_call_in_reasoning_that_goes_on_stays_reasoning() {
    let hermes = with(TextToolCalls::Hermes);
    let whole = json!(format!("I could:\n{CALL}"));
    let said = format!(r#"thinking {whole}, text "Done."; end_turn"#);
    // The model weighed it, and then said something.
    hermes.gives(&done(&[thought("I could:"), text("Done."), stop()]), &said);
    hermes.gives(
        &done(&[thought("I could:"), call(0, "a", "t", "{}"), stop()]),
        &format!("thinking {whole}, tool_use r_a t {{}}; tool_use"),
    );
    // It went on to think, too.
    let more = json!(format!("I could:\n{CALL}\nBut no."));
    hermes.gives(
        &done(&[thought("I could:"), reasoning("\nBut no."), stop()]),
        &format!("thinking {more}; end_turn"),
    );
    // A call in the text is the one that it meant.
    let other = CALL.replace("\"w\"", "\"t\"");
    hermes.gives(
        &done(&[thought("I could:"), text(&other), stop()]),
        &format!(r#"thinking {whole}, tool_use minted t {{"a":1}}; tool_use"#),
    );
}

#[test]
fn reasoning_without_a_whole_call_stays_reasoning() {
    let hermes = with(TextToolCalls::Hermes);
    for thought in [
        "I write <tool_call> at the start",
        "As:\n```\n<tool_call>\n{\"name\": \"w\", \"arguments\": {}}\n</tool_call>\n```",
        "So:\n<tool_call>\n{\"name\": \"nobody\", \"arguments\": {}}\n</tool_call>",
        "So:\n<tool_call>\n{\"name\": \"w\", \"arg",
        "é \"quoted\"\n<tool",
    ] {
        hermes.gives(
            &done(&[reasoning(thought), stop()]),
            &format!("thinking {}; end_turn", json!(thought)),
        );
    }
    // Without the flag no reasoning is looked at.
    let whole = json!(format!("I need it.\n{CALL}"));
    case().gives(&done(&[thought("I need it."), stop()]), &format!("thinking {whole}; end_turn"));
}

#[test]
fn a_stop_sequence_that_cuts_the_text_makes_no_call_of_the_reasoning_before() {
    let stopping = with(TextToolCalls::Hermes)
        .with(|context, _| context.limits.stop_sequences = vec!["END".to_owned()]);
    let whole = json!(format!("I could:\n{CALL}"));
    stopping.gives(
        &done(&[thought("I could:"), text("END"), stop()]),
        &format!(r#"thinking {whole}; stop_sequence "END""#),
    );
}

#[test]
fn a_thought_that_was_cut_off_calls_nothing() {
    let whole = json!(format!("I need it.\n{CALL}"));
    for (finish, end) in [("length", "max_tokens"), ("content_filter", "refusal")] {
        with(TextToolCalls::Hermes).gives(
            &done(&[thought("I need it."), json!({"finish": finish})]),
            &format!("thinking {whole}; {end}"),
        );
    }
}

#[test]
fn white_space_behind_a_thought_does_not_part_it() {
    let hermes = with(TextToolCalls::Hermes);
    let unknown = CALL.replace("\"w\"", "\"nobody\"");
    let whole = json!(format!("I look.\n{unknown}"));
    let thought = reasoning(&format!("I look.\n{unknown}"));
    hermes.gives(
        &done(&[thought.clone(), text("\n\n"), stop()]),
        &format!("thinking {whole}; end_turn"),
    );
    hermes.gives(
        &done(&[thought, text("\n\n"), text("Hi"), stop()]),
        &format!(r#"thinking {whole}, text "Hi"; end_turn"#),
    );
}
