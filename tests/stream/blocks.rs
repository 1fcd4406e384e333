//! Text, reasoning, refusals.

use creole::carry::signature::Signature;

use super::*;

#[test]
fn white_space_alone_is_no_block_and_is_kept_before_text() {
    let c = case();
    let w = || call(0, "call_a", "w", "{}");
    c.gives(&done(&[text("\n\n"), w()]), "tool_use a w {}; tool_use");
    c.gives(&done(&[text(" \n"), text("Hi")]), "text \" \\nHi\"; end_turn");
    c.gives(&done(&[text("a"), w(), text("\n")]), "text \"a\", tool_use a w {}; tool_use");
    c.gives(&done(&[text(" ")]), "; end_turn");
    let reasoning = |text: &str| json!({"reasoning_content": text});
    c.gives(&done(&[reasoning("\n"), text("Hi"), reasoning("")]), "text \"Hi\"; end_turn");
    c.gives(
        &done(&[reasoning(" "), reasoning("Hm"), text("Hi")]),
        "thinking \" Hm\", text \"Hi\"; end_turn",
    );
}

#[test]
fn halves_of_a_pair_reach_the_client_together() {
    let c = case();
    let half = |key: &str, raw: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"{key}\":\"{raw}\"}}}}]}}\n\n")
    };
    let done = "data: [DONE]\n\n";
    for (key, kind) in [("content", "text"), ("reasoning", "thinking")] {
        let whole = half(key, "a\\ud83c") + &half(key, "\\udf89b") + done;
        c.gives(&whole, &format!("{kind} \"a🎉b\"; end_turn"));
        c.gives(&(half(key, "x") + &whole), &format!("{kind} \"xa🎉b\"; end_turn"));
        let lone = half(key, "a\\ud83c") + &half(key, "b") + &half(key, "\\udf89") + done;
        c.gives(&lone, &format!("{kind} \"a\u{fffd}b\u{fffd}\"; end_turn"));
        let last = half(key, "a\\ud83c") + done;
        c.gives(&last, &format!("{kind} \"a\u{fffd}\"; end_turn"));
    }
}

#[test]
fn reasoning_comes_from_one_field_only() {
    let c = case();
    for (delta, expected) in [
        (json!({"reasoning": "b", "reasoning_content": "a"}), "a"),
        (json!({"reasoning_text": "c", "reasoning": "b", "reasoning_content": ""}), "b"),
        (
            json!({"reasoning": "b", "reasoning_details": [{"type": "reasoning.text", "text": "d"}]}),
            "d",
        ),
        (
            json!({"reasoning": "b", "reasoning_details": [{"type": "reasoning.encrypted", "data": "E"}]}),
            "b",
        ),
        (
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "p"}]}]}),
            "p",
        ),
    ] {
        // The key order inside of a chunk does not matter: reasoning is first.
        let mut both = delta.clone();
        if both.get("content").is_none() {
            both["content"] = json!("Hi");
            c.gives(&done(&[both]), &format!("thinking {expected:?}, text \"Hi\"; end_turn"));
        }
        let sse = done(&[delta.clone(), delta, text("Hi")]);
        c.gives(&sse, &format!("thinking \"{expected}{expected}\", text \"Hi\"; end_turn"));
    }
    // The field is chosen once.
    let sse =
        done(&[json!({"reasoning": "a"}), json!({"reasoning": "b", "reasoning_content": "b"})]);
    c.gives(&sse, "thinking \"ab\"; end_turn");
    // By a text: white space may come in a field that says no more.
    let sse = done(&[
        json!({"reasoning_content": "\n", "reasoning": "\n"}),
        json!({"reasoning_content": "\n", "reasoning": "a"}),
        json!({"reasoning": "b"}),
    ]);
    c.gives(&sse, "thinking \"\\nab\"; end_turn");
}

pub(super) fn signature(outcome: &Outcome) -> Signature {
    let message = message(outcome);
    let blocks = message["content"].as_array().unwrap();
    let block = blocks.iter().find(|block| block["type"] == "thinking").unwrap();
    Signature::decode(block["signature"].as_str().unwrap()).unwrap()
}

#[test]
fn opaque_reasoning_of_copilot_is_kept_with_its_text_or_without() {
    for (chunks, expected) in [
        (
            vec![json!({"reasoning_text": "Need w."}), json!({"reasoning_opaque": "O\n1"})],
            "thinking \"Need w.\", tool_use a w {}; tool_use",
        ),
        (
            vec![json!({"reasoning_text": "Need w.", "reasoning_opaque": "O\n1"})],
            "thinking \"Need w.\", tool_use a w {}; tool_use",
        ),
        (vec![json!({"reasoning_opaque": "O\n1"})], "thinking \"\", tool_use a w {}; tool_use"),
    ] {
        let chunks = [chunks, vec![call(0, "call_a", "w", "{}")]].concat();
        let outcome = case().gives(&done(&chunks), expected);
        assert_eq!(signature(&outcome).opaque.as_deref(), Some(r#"["O\n1"]"#));
    }
    let nothing = [json!({"reasoning_opaque": ""}), json!({"reasoning_opaque": null}), text("Hi")];
    case().gives(&done(&nothing), "text \"Hi\"; end_turn");
}

#[test]
fn hidden_reasoning_comes_back_with_calls() {
    let sse = done(&[
        json!({"reasoning_content": "Need "}),
        json!({"reasoning_content": "w."}),
        text("Ok"),
        call(0, "call_a", "w", "{}"),
    ]);
    let shown = case().gives(&sse, "thinking \"Need w.\", text \"Ok\", tool_use a w {}; tool_use");
    assert_eq!(signature(&shown).full_text, None);
    assert_eq!(signature(&shown).upstream, "");
    // Where there are several upstreams, it says which one thought.
    let marked = case().with(|context, _| context.thinking.upstream_mark = "0a1b2c3d".to_owned());
    let marked = marked.stream(&sse);
    assert_eq!(signature(&marked).upstream, "0a1b2c3d");
    let omitted = case().with(|context, _| context.thinking.display = Display::Omitted);
    let omitted = omitted.gives(&sse, "thinking \"\", text \"Ok\", tool_use a w {}; tool_use");
    assert_eq!(signature(&omitted).full_text.as_deref(), Some("Need w."));
    let hidden = case().with(|context, _| context.thinking.display = Display::Hidden);
    let outcome = hidden.gives(&sse, "text \"Ok\", thinking \"\", tool_use a w {}; tool_use");
    assert_eq!(signature(&outcome).full_text.as_deref(), Some("Need w."));
    hidden.gives(&done(&[json!({"reasoning": "a"}), text("Ok")]), "text \"Ok\"; end_turn");
    let never = hidden.with(|context, _| context.thinking.returns = false);
    never.gives(&sse, "text \"Ok\", tool_use a w {}; tool_use");
}

#[test]
fn the_inputs_that_thinking_carries_are_those_that_the_client_gets() {
    let schema = json!({"properties": {"list": {"type": "array"}}}).to_string();
    let repair = case().with(|context, settings| {
        context.thinking.display = Display::Hidden;
        context.tools.push(Tool {
            outgoing: "todo".into(),
            name: "todo".into(),
            schema: Some(schema.into()),
            ..Tool::default()
        });
        settings.invalid_tool_call = InvalidToolCall::Repair;
        settings.tool_stream = ToolStream::Buffered;
    });
    let sse = done(&[
        json!({"reasoning_content": "Need it."}),
        call(0, "call_a", "todo", r#"{"list":"[1]","id":"toolu_x"}"#),
    ]);
    let outcome = repair
        .gives(&sse, r#"thinking "", tool_use a todo {"list":[1]}; tool_use !tool_input_repaired"#);
    let carried = ("toolu_a".to_owned(), r#"{"list":[1]}"#.to_owned());
    assert_eq!(signature(&outcome).call_inputs, [carried]);
}

#[test]
fn thinking_that_was_not_asked_for_carries_the_inputs_of_all_calls() {
    let long = format!("{{\"q\":\"{}\"}}", "x".repeat(8 << 10));
    let sse = done(&[
        json!({"reasoning_content": "Need w."}),
        call(0, "call_a", "w", "{\"q\""),
        call(0, "", "", ":\"x\"}"),
        call(1, "call_b", "w", "{}"),
        json!({"reasoning_content": "More."}),
        call(2, "call_c", "w", "{\"n\":1}"),
        call(3, "call_d", "w", &long),
        call(4, "call_e", "w", "\"{\\\"q\\\":\\\"quoted\\\"}\""),
    ]);
    let hidden = case().with(|context, _| context.thinking.display = Display::Hidden);
    let outcome = hidden.gives(
        &sse,
        &format!(
            "thinking \"\", tool_use a w {{\"q\":\"x\"}}, tool_use b w {{}}, thinking \"\", \
             tool_use c w {{\"n\":1}}, tool_use d w {long}, \
             tool_use e w {{\"q\":\"quoted\"}}; tool_use"
        ),
    );
    let message = message(&outcome);
    let signatures = message["content"].as_array().unwrap().iter().filter_map(|block| {
        Signature::decode(block["signature"].as_str()?).map(|signature| signature.call_inputs)
    });
    let inputs =
        [("toolu_a", "{\"q\":\"x\"}"), ("toolu_c", "{\"n\":1}"), ("toolu_e", "{\"q\":\"quoted\"}")];
    let inputs = inputs.map(|(id, input)| (id.to_owned(), input.to_owned()));
    // n8n returns the last signature only.
    assert_eq!(signatures.collect::<Vec<_>>(), [vec![], inputs.to_vec()]);
    assert_eq!(signature(&case().stream(&sse)).call_inputs, []);
}

#[test]
fn a_signature_of_a_call_is_not_carried_where_nothing_goes_back() {
    let mut signed = call(0, "call_a", "w", "{}");
    signed["tool_calls"][0]["extra_content"] = json!({"google": {"thought_signature": "SIG"}});
    let sse = done(&[signed]);
    case().gives(&sse, "thinking \"\", tool_use a w {}; tool_use");
    let never = case().with(|context, _| {
        context.thinking.display = Display::Hidden;
        context.thinking.returns = false;
    });
    never.gives(&sse, "tool_use a w {}; tool_use");
}

#[test]
fn a_calls_signature_is_carried_with_its_place() {
    for (pointer, value, carried) in [
        ("", json!({"extra_content": {"google": {"thought_signature": "S"}}}), "S"),
        ("", json!({"extra_content": {"vertex": {"thought_signature": "S"}}}), "vertex\0S"),
        ("", json!({"thought_signature": "S", "extra_content": {"x": 1}}), "call\0S"),
        ("/function", json!({"thought_signature": "S"}), "function\0S"),
    ] {
        let mut chunk = call(0, "call_a", "w", "{}");
        let entry = chunk["tool_calls"][0].pointer_mut(pointer).unwrap().as_object_mut().unwrap();
        entry.extend(value.as_object().unwrap().clone());
        let outcome = case().gives(&done(&[chunk]), "thinking \"\", tool_use a w {}; tool_use");
        assert_eq!(signature(&outcome).call_signatures, [("toolu_a".into(), carried.into())]);
    }
}

#[test]
fn signatures_of_calls_with_one_upstream_id_are_told_apart() {
    let call = |index: u8, signature: Option<&str>| {
        let input = format!("{{\"a\":{index}}}");
        let mut call = call(index.into(), "call_a", "w", &input);
        if let Some(signature) = signature {
            call["tool_calls"][0]["extra_content"] =
                json!({"google": {"thought_signature": signature}});
        }
        call
    };
    let calls = |first, second| done(&[call(0, first), call(1, second)]);
    let (first, second) = ("tool_use a w {\"a\":0}", "tool_use u2_a w {\"a\":1}");
    let shown = format!("thinking \"\", {first}, {second}; tool_use");
    let outcome = case().gives(&calls(Some("A"), None), &shown);
    assert_eq!(signature(&outcome).call_signatures, [("toolu_a".into(), "A".into())]);
    let shown = format!("{first}, thinking \"\", {second}; tool_use");
    let outcome = case().gives(&calls(None, Some("B")), &shown);
    assert_eq!(signature(&outcome).call_signatures, [("toolu_u2_a".into(), "B".into())]);
}

#[test]
fn signed_calls_that_are_announced_together_wait_for_their_inputs() {
    let signed = |index: u8, id: &str| {
        let mut call = call(index.into(), id, "w", "{}");
        call["tool_calls"][0]["extra_content"] = json!({"google": {"thought_signature": id}});
        call
    };
    let inputs = [call(0, "", "", "{\"a\":1}"), call(1, "", "", "{\"b\":2}")];
    let chunks: Vec<_> =
        [signed(0, "call_a"), signed(1, "call_b")].into_iter().chain(inputs).collect();
    case().gives(
        &done(&chunks),
        "thinking \"\", tool_use a w {\"a\":1}, thinking \"\", tool_use b w {\"b\":2}; tool_use",
    );
}

#[test]
fn what_only_the_upstream_understands_is_carried_in_a_signature() {
    let detail = json!({"type": "reasoning.encrypted", "data": "ENC", "id": "rs_1"});
    let sse = done(&[json!({"reasoning_details": [detail]}), call(0, "call_a", "w", "{}")]);
    let outcome = case().gives(&sse, "thinking \"\", tool_use a w {}; tool_use");
    let opaque: Value = serde_json::from_str(&signature(&outcome).opaque.unwrap()).unwrap();
    assert_eq!(opaque, json!([detail]));

    let signed = |id: &str| {
        json!({"tool_calls": [{"id": id, "function": {"name": "w", "arguments": "{}"},
            "extra_content": {"google": {"thought_signature": "SIG"}}}]})
    };
    for thinking in [Display::Shown, Display::Hidden] {
        let c = case().with(|context, _| context.thinking.display = thinking);
        let outcome =
            c.gives(&done(&[signed("fc-1")]), "thinking \"\", tool_use r_fc-1 w {}; tool_use");
        assert_eq!(signature(&outcome).call_signatures, [("toolu_r_fc-1".into(), "SIG".into())]);
        let outcome =
            c.gives(&done(&[signed("")]), "thinking \"\", tool_use minted w {}; tool_use");
        let minted = Ids::new(7).call(0).replacen("call_", "toolu_", 1);
        assert_eq!(signature(&outcome).call_signatures[0].0, minted);
    }
    let outcome = case().gives(
        &done(&[json!({"reasoning": "Hm"}), signed("fc-1")]),
        "thinking \"Hm\", tool_use r_fc-1 w {}; tool_use",
    );
    assert_eq!(signature(&outcome).call_signatures.len(), 1);
}

#[test]
fn signed_thinking_blocks_are_carried_whole() {
    let piece = |text: &str, signature: Option<&str>| {
        json!({"reasoning_content": text, "thinking_blocks": [
            {"type": "thinking", "thinking": text, "signature": signature}]})
    };
    let redacted = json!({"type": "redacted_thinking", "data": "D"});
    let chunks = [
        piece("Hm", None),
        piece("m.", None),
        piece("", Some("S")),
        piece("So", Some("T")),
        json!({"thinking_blocks": [redacted]}),
        call(0, "call_a", "w", "{}"),
    ];
    let signed = |text: &str, signature: &str| json!({"type": "thinking", "thinking": text, "signature": signature});
    let c = case().with(|context, _| context.thinking.model_mark = "m::claude".to_owned());
    let outcome = c.gives(&done(&chunks), "thinking \"Hmm.So\", tool_use a w {}; tool_use");
    assert_eq!(signature(&outcome).upstream, "m::claude");
    let opaque: Value = serde_json::from_str(&signature(&outcome).opaque.unwrap()).unwrap();
    assert_eq!(opaque, json!([signed("Hmm.", "S"), signed("So", "T"), redacted]));
    // Where nobody signs, there is nothing to carry.
    let outcome = case().gives(&done(&chunks[..2]), "thinking \"Hmm.\"; end_turn");
    assert_eq!(signature(&outcome).opaque, None);
}

#[test]
fn a_refusal_is_text_and_a_reason() {
    let outcome = case().gives(
        &done(&[json!({"refusal": "I can't "}), json!({"refusal": "help."})]),
        "text \"I can't help.\"; refusal",
    );
    assert_eq!(message(&outcome)["stop_details"]["explanation"], "I can't help.");
    let outcome = case().gives(&done(&[json!({"finish": "content_filter"})]), "; refusal");
    assert_eq!(
        message(&outcome)["stop_details"],
        json!({"type": "refusal", "category": null, "explanation": null})
    );
    let long = case().stream(&done(&[json!({"refusal": "é".repeat(700)})]));
    let explanation = message(&long)["stop_details"]["explanation"].clone();
    assert_eq!(explanation.as_str().unwrap().len(), 1024);
}

#[test]
fn reasoning_behind_text_of_the_same_chunk_is_a_block_of_its_own() {
    let thought =
        |text: &str| json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]});
    let parts = |parts: Value| json!({"choices": [{"delta": {"content": parts}}]});
    let said = json!({"type": "text", "text": "b"});
    let chunks = [parts(json!([thought("a")])), parts(json!([said, thought("c"), thought("d")]))];
    case().gives(&done(&chunks), "thinking \"a\", text \"b\", thinking \"cd\"; end_turn");
}

#[test]
fn a_signature_is_the_same_however_the_reasoning_was_cut() {
    let signature = |texts: &[&str]| {
        let chunks: Vec<Value> = texts
            .iter()
            .map(|text| json!({"choices": [{"delta": {"reasoning_content": text}}]}))
            .chain([text("Hi")])
            .collect();
        message(&case().stream(&done(&chunks)))["content"][0]["signature"].clone()
    };
    let whole = signature(&["Hm, let me see."]);
    assert_eq!(signature(&["Hm", ", let me", " see."]), whole);
    assert_ne!(signature(&["Hm", ", let us", " see."]), whole);
}

#[test]
fn content_of_an_unknown_kind_is_told_of() {
    let odd =
        json!({"content": [{"type": "chart", "points": [1]}, {"type": "text", "text": "Hi"}]});
    let expected = "text \"Hi\"; end_turn !content_dropped";
    case().gives(&done(std::slice::from_ref(&odd)), expected);
    let body = json!({"choices": [{"message": odd, "finish_reason": "stop"}]}).to_string();
    assert_eq!(show(&case().whole(false, &body)), expected);
    case().gives(&done(&[json!({"text": "Hi"})]), "text \"Hi\"; end_turn");
    let parts = json!({"reasoning_content": [{"type": "text", "text": "Hmm."}]});
    case().gives(&done(&[parts, text("Hi")]), "thinking \"Hmm.\", text \"Hi\"; end_turn");
    let detail = json!({"reasoning_details": {"type": "reasoning.text", "text": "Hmm."}});
    case().gives(&done(&[detail, text("Hi")]), "thinking \"Hmm.\", text \"Hi\"; end_turn");
}
