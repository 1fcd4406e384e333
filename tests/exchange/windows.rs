//! Prompt and answer that do not fit into the context window together.

use super::host::{Got, Host, request};
use super::*;

/// Returns vLLM's refusal of a prompt of this many tokens that leaves too little room for the
/// answer.
fn vllm(sent: &Value, prompt: u64, window: u64) -> Option<String> {
    let answer = sent["max_tokens"].as_u64().unwrap();
    (prompt + answer > window).then(|| {
        format!(
            "'max_tokens' or 'max_completion_tokens' is too large: {answer}. This model's maximum context length is {window} tokens and your request has {prompt} input tokens ({answer} > {window} - {prompt}). None"
        )
    })
}

/// Returns SGLang's refusal: of the limit alone, and then of the sum. `slack` is the number of
/// tokens that SGLang keeps to itself.
fn sglang(sent: &Value, prompt: u64, window: u64, slack: u64) -> Option<String> {
    let answer = sent["max_tokens"].as_u64().unwrap();
    let sum = prompt + answer;
    if answer > window {
        return Some(format!(
            "max_completion_tokens is too large: {answer}.This model supports at most {window} completion tokens."
        ));
    }
    (sum + slack > window).then(|| {
        format!(
            "Requested token count exceeds the model's maximum context length of {window} tokens. You requested a total of {sum} tokens: {prompt} tokens from the input messages and {answer} tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit."
        )
    })
}

/// Four letters are a token.
fn counted(sent: &Value) -> u64 {
    let texts = sent["messages"].as_array().unwrap().iter();
    let letters: usize = texts.map(|it| it["content"].as_str().unwrap_or_default().len()).sum();
    30 + letters as u64 / 4
}

fn says(letters: usize, max_tokens: u64) -> Value {
    let messages = json!([{"role": "user", "content": "word ".repeat(letters / 5)}]);
    request("m", json!({"max_tokens": max_tokens, "messages": messages}))
}

fn limits(got: &Got) -> Vec<u64> {
    got.asked.iter().map(|sent| sent["max_tokens"].as_u64().unwrap()).collect()
}

#[test]
fn an_answer_for_which_there_is_no_room_is_asked_for_with_what_is_left() {
    let refuses = |sent: &Value| vllm(sent, 24_235, 64_001);
    let host = Host::new(true, &refuses);
    let got = host.ask(&request("m", json!({"max_tokens": 128_000})), NOW);
    assert_eq!((got.status(), limits(&got)), ((200, None), vec![128_000, 39_766]));
    assert_eq!(got.warnings(), "max_tokens_refused");
}

#[test]
fn a_window_is_remembered_with_the_prompt_that_did_not_fit() {
    let refuses = |sent: &Value| vllm(sent, counted(sent), 8_192);
    let host = Host::new(true, &refuses);
    let got = host.ask(&says(8_000, 32_000), NOW);
    assert_eq!((got.status(), limits(&got)), ((200, None), vec![32_000, 6_162]));
    // It fits at once now; a shorter prompt leaves more, a longer one less.
    let got = host.ask(&says(8_000, 32_000), NOW + 1);
    assert_eq!((got.status(), limits(&got)), ((200, None), vec![6_162]));
    assert_eq!(got.warnings(), "max_tokens_refused");
    for (letters, least, most) in [(4_000, 6_300, 7_162), (12_000, 4_500, 5_162)] {
        let got = host.ask(&says(letters, 32_000), NOW + 2);
        let limits = limits(&got);
        assert_eq!((got.status(), limits.len()), ((200, None), 1), "{limits:?}");
        assert!((least..=most).contains(&limits[0]), "{letters}: {limits:?}");
    }
    // Less than that is what the client wants.
    let got = host.ask(&says(8_000, 500), NOW + 3);
    assert_eq!((limits(&got), got.warnings()), (vec![500], ""));
    // A prompt that leaves no room is told by the upstream.
    let got = host.ask(&says(40_000, 32_000), NOW + 4);
    assert_eq!((got.status().0, limits(&got)), (400, vec![32_000]));
    let message = error_of(&got.body)["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("prompt is too long: "), "{message}");
}

#[test]
fn a_window_that_was_named_as_a_limit_is_not_remembered_as_one() {
    for slack in [0, 1] {
        let refuses = |sent: &Value| sglang(sent, counted(sent), 4_096, slack);
        let host = Host::new(true, &refuses);
        let got = host.ask(&says(4_000, 32_000), NOW);
        // 1,030 tokens of prompt; older servers keep one to themselves.
        let mut expected = vec![32_000, 4_096, 3_066, 3_065];
        expected.truncate(3 + slack as usize);
        assert_eq!((got.status(), limits(&got)), ((200, None), expected));
        // What is remembered fits, for this prompt and for others.
        for letters in [4_000, 2_000, 6_000, 400] {
            let got = host.ask(&says(letters, 32_000), NOW + 1);
            assert_eq!((got.status(), got.asked.len()), ((200, None), 1), "{letters}");
        }
    }
}

#[test]
fn a_limit_below_the_window_is_remembered_beside_it() {
    let refuses = |sent: &Value| {
        let answer = sent["max_tokens"].as_u64().unwrap();
        let limit = format!(
            "max_tokens is too large: {answer}. This model supports at most 6000 completion tokens, whereas you provided {answer}."
        );
        (answer > 6_000).then_some(limit).or_else(|| vllm(sent, counted(sent), 8_192))
    };
    let host = Host::new(true, &refuses);
    let got = host.ask(&says(12_000, 32_000), NOW);
    assert_eq!((got.status(), limits(&got)), ((200, None), vec![32_000, 6_000, 5_162]));
    for (letters, limit) in [(12_000, 5_162), (100, 6_000)] {
        let got = host.ask(&says(letters, 32_000), NOW + 1);
        assert_eq!((got.status(), limits(&got)), ((200, None), vec![limit]), "{letters}");
    }
}

#[test]
fn a_host_that_cannot_ask_again_has_its_client_ask_for_what_is_left() {
    let refuses = |sent: &Value| vllm(sent, counted(sent), 8_192);
    let host = Host::new(false, &refuses);
    let got = host.ask(&says(8_000, 32_000), NOW);
    assert_eq!((got.status(), got.warnings()), ((529, Some("true")), "max_tokens_refused"));
    let got = host.ask(&says(8_000, 32_000), NOW);
    assert_eq!((got.status(), limits(&got)), ((200, None), vec![6_162]));
}

#[test]
fn a_limit_of_a_minute_is_no_window() {
    let refuses = |sent: &Value| {
        let requested = 1_000 + sent["max_tokens"].as_u64().unwrap();
        (requested > 6_000).then(|| {
            format!(
                "Request too large for model `m` in organization `o` on tokens per minute (TPM): Limit 6000, Requested {requested}, please reduce your message size and try again."
            )
        })
    };
    let host = Host { status: 413, ..Host::new(true, &refuses) };
    for _ in 0..2 {
        let got = host.ask(&request("m", json!({"max_tokens": 8_000})), NOW);
        assert_eq!((got.status(), limits(&got)), ((200, None), vec![8_000, 5_000]));
    }
}

#[test]
fn a_window_that_is_remembered_fits_a_conversation_with_reasoning_too() {
    // The upstream counts the reasoning, and so does it the next time.
    let refuses = |sent: &Value| {
        let thought = sent["messages"][1]["reasoning_content"].as_str().unwrap();
        vllm(sent, counted(sent) + thought.len() as u64 / 4, 16_384)
    };
    let config = r#"{"upstreams": {"a": {"url": "http://a", "profile_overrides": {"foreign_thinking": "forward"}}}}"#;
    let host = Host { config: drive::config(config), ..Host::new(true, &refuses) };
    let thought: Vec<String> = (0..4_000).map(|at| format!("{at}: hm")).collect();
    let thinking = json!({"type": "thinking", "thinking": thought.join(", "), "signature": "s"});
    let messages = json!([
        {"role": "user", "content": "word ".repeat(2_000)},
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "a"}]},
        {"role": "user", "content": "more"},
    ]);
    let body = request("m", json!({"max_tokens": 32_000, "messages": messages}));
    let got = host.ask(&body, NOW);
    let first = limits(&got);
    assert_eq!((got.status(), first.len(), first[0]), ((200, None), 2, 32_000), "{first:?}");
    let got = host.ask(&body, NOW + 1);
    assert_eq!((got.status(), limits(&got)), ((200, None), first[1..].to_vec()));
}

/// Two clients of one model, of which the first has the upstream say `words`: what the second is
/// asked for.
fn limits_of_the_next(words: &str) -> Vec<u64> {
    let refuses = |sent: &Value| {
        let text = sent["messages"][0]["content"].as_str().unwrap();
        text.contains("word").then(|| words.to_owned())
    };
    let host = Host::new(true, &refuses);
    host.ask(&says(8_000, 32_000), NOW);
    limits(&host.ask(&request("m", json!({"max_tokens": 32_000})), NOW + 1))
}

#[test]
fn numbers_that_an_error_quotes_of_one_client_limit_no_other() {
    for (words, next) in [
        // A window that is quoted
        (
            "Invalid value: {\"format\":\"input length and `max_tokens` exceed context limit: 1900 + 5000 > 4000\"}",
            32_000,
        ),
        // One beside which the prompt would be a few words
        (
            "input length and `max_tokens` exceed context limit: 9 + 5000 > 4000, decrease input length or `max_tokens` and try again",
            32_000,
        ),
        // A limit that is quoted
        (
            "Invalid value: \"max_tokens: 32000 > 2048, which is the maximum allowed number of output tokens for x\"",
            32_000,
        ),
        // The same words of the upstream itself, with its name before them
        (
            "Claude says: max_tokens: 32000 > 2048, which is the maximum allowed number of output tokens for x",
            2_048,
        ),
        ("Claude says: max_tokens: 32000 > 2048, which is the maximum for x", 32_000),
    ] {
        assert_eq!(limits_of_the_next(words), [next], "{words}");
    }
}

#[test]
fn an_upstream_that_speaks_messages_is_asked_for_what_is_left_too() {
    let refuses = |sent: &Value| {
        let answer = sent["max_tokens"].as_u64().unwrap();
        (answer > 58_000).then(|| {
            format!(
                "input length and `max_tokens` exceed context limit: 142000 + {answer} > 200000, decrease input length or `max_tokens` and try again"
            )
        })
    };
    let config = r#"{"upstreams": {"a": {"url": "http://a", "protocol": "anthropic"}}}"#;
    let host = Host { config: drive::config(config), ..Host::new(true, &refuses) };
    let thinking = json!({"type": "enabled", "budget_tokens": 60_000});
    let got = host.ask(&request("m", json!({"max_tokens": 64_000, "thinking": thinking})), NOW);
    assert_eq!(limits(&got), [64_000, 58_000]);
    assert_eq!(got.asked[1]["thinking"]["budget_tokens"], 29_000);
}

#[test]
fn a_window_that_is_almost_full_is_told_so_that_the_client_compacts() {
    for (letters, asked) in [(28_000, 2), (28_700, 1)] {
        let refuses = |sent: &Value| vllm(sent, counted(sent), 8_192);
        let host = Host::new(true, &refuses);
        let got = host.ask(&says(letters, 32_000), NOW);
        assert_eq!(got.asked.len(), asked, "{letters}");
        if asked == 1 {
            let message = error_of(&got.body)["message"].as_str().unwrap().to_owned();
            let words = "input length and `max_tokens` exceed context limit: 7205 + 32000 > 8192";
            assert!(message.starts_with(words), "{message}");
        }
    }
}

#[test]
fn no_upstream_that_speaks_messages_is_asked_to_think_for_less_than_it_can() {
    for (window, thinking, asked) in [
        (144_040, json!({"type": "enabled", "budget_tokens": 2_000}), 1),
        (144_048, json!({"type": "enabled", "budget_tokens": 2_000}), 2),
        (144_040, json!({"type": "enabled", "budget_tokens": 1_020}), 2),
        (144_040, json!({"type": "adaptive"}), 2),
    ] {
        let refuses = |sent: &Value| {
            let answer = sent["max_tokens"].as_u64().unwrap();
            (answer + 142_000 > window).then(|| {
                format!("input length and `max_tokens` exceed context limit: 142000 + {answer} > {window}, decrease input length or `max_tokens` and try again")
            })
        };
        let config = r#"{"upstreams": {"a": {"url": "http://a", "protocol": "anthropic"}}}"#;
        let host = Host { config: drive::config(config), ..Host::new(true, &refuses) };
        let got = host.ask(&request("m", json!({"max_tokens": 64_000, "thinking": thinking})), NOW);
        assert_eq!(got.asked.len(), asked, "{window} {thinking}");
        if asked == 1 {
            let message = error_of(&got.body)["message"].as_str().unwrap().to_owned();
            assert!(message.contains("142000 + 64000 > 144040"), "{message}");
        }
    }
}
