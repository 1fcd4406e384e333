//! Estimates of input tokens: they count what goes to the upstream.

use super::thinking::signature;
use super::*;
use creole::carry::signature::{Signature, SignatureField};

/// Returns the input tokens that are told before the upstream counts: by `count_tokens`, and in
/// `message_start`.
fn told(config: &Config, request: &Value) -> (u64, u64) {
    let body = whole(request.clone());
    let (_, asked) = try_with(config, &body).0.unwrap();
    (translate::count_tokens(&body, config).unwrap().input, asked.input_tokens)
}

#[test]
fn reasoning_that_goes_back_is_counted_and_what_stays_here_is_not() {
    let thought = "The quick brown fox jumps over the lazy dog. ".repeat(100);
    let own = |field: SignatureField, shown: &str, hidden: Option<&str>| {
        let full_text = hidden.map(str::to_owned);
        let signature = Signature { full_text, ..signature(field, shown) }.encode().0;
        json!({"type": "thinking", "thinking": shown, "signature": signature})
    };
    let foreign = json!({"type": "thinking", "thinking": thought, "signature": "EqoB"});
    let redacted = |block: &Value| json!({"type": "redacted_thinking", "data": block["signature"]});
    let hidden = own(SignatureField::Reasoning, "", Some(&thought));
    let changed = {
        let mut block = own(SignatureField::Reasoning, &thought, None);
        block["thinking"] = json!(format!("Not {thought}"));
        block
    };
    let forward = json!({"foreign_thinking": "forward"});
    for (profile, overrides, block) in [
        ("vllm", json!({}), own(SignatureField::Reasoning, &thought, None)),
        ("default", json!({}), own(SignatureField::ReasoningContent, &thought, None)),
        ("default", json!({}), own(SignatureField::Inline, &thought, None)),
        ("default", json!({}), own(SignatureField::Marked, &thought, None)),
        ("deepseek", json!({}), own(SignatureField::Marked, &thought, None)),
        (
            "mistral",
            json!({"reasoning_history": "auto"}),
            own(SignatureField::Parts, &thought, None),
        ),
        ("default", json!({}), hidden.clone()),
        ("default", json!({}), redacted(&hidden)),
        ("openai-chat", json!({}), own(SignatureField::ReasoningContent, &thought, None)),
        ("vllm", json!({"reasoning_history": "never"}), hidden),
        ("vllm", json!({}), foreign.clone()),
        ("vllm", forward.clone(), foreign.clone()),
        ("openai-chat", forward, foreign),
        ("vllm", json!({}), changed),
    ] {
        let config = config(profile, overrides, json!({}));
        let history = |first: &[Value]| {
            let call = json!({"type": "tool_use", "id": "toolu_1", "name": "w", "input": {}});
            let blocks: Vec<Value> = first.iter().cloned().chain([text("So."), call]).collect();
            json!({"messages": [user("q"), assistant(json!(blocks)), user(json!([result("toolu_1", "ok")]))]})
        };
        let (with, without) = (history(std::slice::from_ref(&block)), history(&[]));
        let (counted, started) = told(&config, &with);
        let (counted_before, started_before) = told(&config, &without);
        // Whether the request that is sent has it.
        let sent = try_with(&config, &whole(with)).0.unwrap().0.to_string();
        let is_sent = sent.contains(thought.trim_end());
        let (careful, quick) = (counted - counted_before, started - started_before);
        if is_sent {
            // 900 words, and 4,500 bytes.
            assert!((880..1150).contains(&careful), "{profile} {careful} for {block}");
            assert!((1250..1300).contains(&quick), "{profile} {quick} for {block}");
        } else {
            assert_eq!((careful, quick), (0, 0), "{profile} {block}");
        }
    }
}

#[test]
fn a_schema_that_stands_in_the_prompt_is_counted() {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string", "description": "Where it rains, in all letters."}}});
    let with = json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}});
    for (profile, counts) in [("deepseek", true), ("default", false)] {
        let config = config(profile, json!({}), json!({}));
        let (counted, started) = told(&config, &with);
        let (counted_before, started_before) = told(&config, &json!({}));
        assert_eq!(counted > counted_before + 20, counts, "{profile}");
        assert_eq!(started > started_before + 20, counts, "{profile}");
    }
}
