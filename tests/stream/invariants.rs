//! Invariants that hold for any answer.

use proptest::prelude::*;

use super::*;

fn delta() -> impl Strategy<Value = Value> {
    let word = "[a-z <>{}\"\\\\é🎉\n]{0,6}";
    let arguments = prop_oneof![
        Just("{}".to_owned()),
        Just("{\"a\":".to_owned()),
        Just("1}".to_owned()),
        Just("{\"a\":1}".to_owned()),
        Just(" ".to_owned()),
        Just("\"x\"".to_owned()),
        word.prop_map(|text| text),
    ];
    prop_oneof![
        word.prop_map(|text| json!({"content": text})),
        word.prop_map(|text| json!({"reasoning": text})),
        word.prop_map(|text| json!({"refusal": text})),
        (0u64..3, "(|call_[ab]|x)", "(|w|t|no)", arguments)
            .prop_map(|(index, id, name, arguments)| call(index, &id, &name, &arguments)),
        "(stop|length|tool_calls|weird|)".prop_map(|word| json!({"finish": word})),
        (0u64..9).prop_map(
            |n| json!({"choices": [], "usage": {"prompt_tokens": n, "completion_tokens": n}})
        ),
    ]
}

fn any_case() -> impl Strategy<Value = Case> {
    (any::<[bool; 5]>(), 0u8..3, 0u8..3).prop_map(|(flags, thinking, invalid)| {
        let [buffered, one, returns, think, stop] = flags;
        case().with(|context, settings| {
            context.limits.one_tool_call = one;
            context.thinking.returns = returns;
            context.profile.inline_think = think;
            if stop {
                context.limits.stop_sequences = vec!["ab".to_owned()];
            }
            context.thinking.display =
                [Display::Hidden, Display::Omitted, Display::Shown][usize::from(thinking)];
            settings.invalid_tool_call =
                [InvalidToolCall::Pass, InvalidToolCall::Repair, InvalidToolCall::Hold]
                    [usize::from(invalid)];
            if buffered {
                settings.tool_stream = ToolStream::Buffered;
            }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_comes_the_grammar_holds(
        c in any_case(), deltas in prop::collection::vec(delta(), 0..12),
        size in 1usize..40, finished in any::<bool>(), mutation in any::<Option<(prop::sample::Index, u8)>>()
    ) {
        let mut body = if finished { done(&deltas) } else { sse(&deltas, "") }.into_bytes();
        if let (Some((at, byte)), false) = (&mutation, body.is_empty()) {
            let at = at.index(body.len());
            body[at] = *byte;
        }
        let whole = c.run(true, [body.as_slice()]);
        // The pieces do not matter; `message` checks the grammar.
        prop_assert_eq!(&c.run(true, body.chunks(size)), &whole);
        let streamed = message(&whole);
        let folded = c.run(false, [body.as_slice()]);
        // (A message leaves a call out that a stream has begun, and then may have nothing left.)
        let cut = streamed["stop_reason"] == "max_tokens"
            || streamed["stop_reason"] == "model_context_window_exceeded"
            || folded.warnings.iter().any(|code| code == "tool_call_cut_off");
        if whole.error.is_some() {
            prop_assert!(folded.error.is_some());
            return Ok(());
        }
        // An input is one object.
        let blocks = streamed["content"].as_array().unwrap();
        let invalid = whole.warnings.iter().any(|code| code == "tool_input_invalid");
        for block in blocks.iter().filter(|block| block["type"] == "tool_use") {
            prop_assert!(block["input"].get("partial_json").is_none() || cut || invalid, "{}", block);
        }
        // The reason says whether there is a call to run.
        let has_call = blocks.iter().any(|block| block["type"] == "tool_use");
        let other = cut || streamed["stop_reason"] == "refusal";
        prop_assert_eq!(streamed["stop_reason"] == "tool_use", has_call && !other);
        // A stream adds up to the message.
        if !cut && !invalid && !whole.warnings.iter().any(|code| code.contains("conflict") || code.contains("late")) {
            let message = message(&folded);
            prop_assert_eq!(&message["stop_reason"], &streamed["stop_reason"]);
            let (mut message, mut streamed) = (message, streamed);
            for blocks in [&mut message["content"], &mut streamed["content"]] {
                for block in blocks.as_array_mut().unwrap() {
                    // An id that comes after the block began is too late for a stream.
                    block["id"] = Value::Null;
                    // And a signature holds ids.
                    block["signature"] = Value::Null;
                }
            }
            prop_assert_eq!(&message["content"], &streamed["content"]);
            prop_assert_eq!(&message["usage"]["output_tokens"], &streamed["usage"]["output_tokens"]);
        }
    }
}

/// Deltas that repeat each other but for a word, as those of real servers do.
fn alike() -> impl Strategy<Value = Vec<Value>> {
    let words = prop::collection::vec("[a-z <>{}\"\\\\é🎉\n]{0,6}", 1..6);
    (0u8..5, words).prop_map(|(kind, words)| {
        let delta = |word: String| match kind {
            0 => text(&word),
            1 => json!({"reasoning_content": word, "content": null}),
            2 => json!({"reasoning": word}),
            3 => call(0, "", "", &word),
            _ => call(1, "", "", &word),
        };
        words.into_iter().map(delta).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn chunks_that_repeat_each_other_say_what_chunks_say_that_do_not(
        c in any_case(), first in delta(), runs in prop::collection::vec(alike(), 0..6)
    ) {
        let named = [call(0, "call_a", "w", ""), call(1, "call_b", "t", "")];
        let deltas: Vec<Value> =
            named.into_iter().chain([first]).chain(runs.into_iter().flatten()).collect();
        let repeating = done(&deltas);
        // A number of its own in each chunk, which nobody reads.
        let mut unlike = String::new();
        for (number, chunk) in repeating.split("data: {").enumerate() {
            if number > 0 {
                unlike.push_str(&format!("data: {{\"number\":{number},"));
            }
            unlike.push_str(chunk);
        }
        for stream in [true, false] {
            let (one, other) = (c.run(stream, [repeating.as_bytes()]), c.run(stream, [unlike.as_bytes()]));
            prop_assert_eq!(one, other);
        }
    }
}
