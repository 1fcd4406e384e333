//! Windows and limits that the configuration knows of a model.

use super::*;

const KNOWN: &str = r#"{"upstreams": {"u": {"url": "http://u", "key": "none"}}, "models": {
    "known": {"model": "m", "max_input_tokens": 40000, "max_tokens": 8192},
    "output": {"model": "m", "max_tokens": 8192}, "*": {"model": "m"}}}"#;

fn body(model: &str, max_tokens: u64, prompt: &str) -> Value {
    json!({"model": model, "max_tokens": max_tokens, "messages": [{"role": "user", "content": prompt}]})
}

/// The limit that an upstream is asked for, and the warnings of the answer.
fn asked(config: &str, sent: &[(&str, &str)], body: &Value) -> (u64, Vec<String>) {
    let mut exchange = Exchange::new(drive::config(config), SEED, can(Pings::No));
    exchange.decide("POST", "/v1/messages", &headers(sent));
    let call = exchange.request(body.to_string().as_bytes(), NOW).unwrap();
    let request: Value = serde_json::from_slice(&call.body).unwrap();
    let warnings = exchange.report().warnings.iter().map(|it| it.text().to_string()).collect();
    (request["max_tokens"].as_u64().unwrap(), warnings)
}

#[test]
fn the_limit_of_an_answer_is_lowered_to_what_the_model_gives() {
    for model in ["known", "output"] {
        let (most, warnings) = asked(KNOWN, &[], &body(model, 32_000, "Hi"));
        assert_eq!((most, warnings), (8192, vec!["max_tokens_lowered".to_owned()]), "{model}");
        assert_eq!(asked(KNOWN, &[], &body(model, 8192, "Hi")), (8192, vec![]), "{model}");
    }
    assert_eq!(asked(KNOWN, &[], &body("other", 128_000, "Hi")), (128_000, vec![]));
    let upstreams = KNOWN.replace(
        r#""key": "none""#,
        r#""key": "none", "profile_overrides": {"max_tokens_max": 4096}"#,
    );
    assert_eq!(asked(&upstreams, &[], &body("known", 32_000, "Hi")).0, 4096);
}

#[test]
fn the_limit_of_an_answer_is_lowered_to_what_is_left_of_the_window() {
    // About 36,000 tokens.
    let long = "word ".repeat(26_000);
    let (most, warnings) = asked(KNOWN, &[], &body("known", 8192, &long));
    assert!((1024..8192).contains(&most), "{most}");
    assert_eq!(warnings, ["max_tokens_lowered"]);
    // Too long for any answer: the upstream says by how much.
    let longer = "word ".repeat(40_000);
    let (most, warnings) = asked(KNOWN, &[], &body("known", 8192, &longer));
    assert_eq!((most, warnings), (8192, vec!["window_smaller".to_owned()]));
    assert_eq!(asked(KNOWN, &[], &body("output", 8192, &longer)), (8192, vec![]));
}

#[test]
fn a_client_that_asks_for_a_longer_window_than_there_is_is_told() {
    let betas = [("anthropic-beta", "claude-code-20250219,context-1m-2025-08-07")];
    let (_, warnings) = asked(KNOWN, &betas, &body("known[1m]", 100, "Hi"));
    assert_eq!(warnings, ["window_smaller"]);
    assert_eq!(asked(KNOWN, &betas, &body("output", 100, "Hi")).1, Vec::<String>::new());
    assert_eq!(asked(KNOWN, &betas[..0], &body("known", 100, "Hi")).1, Vec::<String>::new());
}

#[test]
fn an_error_without_numbers_gets_those_of_the_window() {
    for (model, expected) in [
        (
            "known",
            "prompt is too long: 40001 tokens > 40000 maximum (Input too long for the context window)",
        ),
        ("output", "prompt is too long: Input too long for the context window"),
    ] {
        let mut exchange = Exchange::new(drive::config(KNOWN), SEED, can(Pings::No));
        exchange.decide("POST", "/v1/messages", &[]);
        exchange.request(body(model, 100, "Hi").to_string().as_bytes(), NOW).unwrap();
        let refusal = json!({"error": {"message": "Input too long for the context window", "code": "context_length_exceeded"}});
        let answer =
            drive::respond(exchange, 400, &[], [refusal.to_string().as_bytes()], End::Complete);
        assert_eq!(error_of(&answer.body)["message"], expected);
    }
}
