//! Upstreams that refuse how much is asked for.

use super::*;

/// One request for so many tokens, in strict mode too, to a model that gives `most`.
fn limited(wanted: u64, most: u64, refusal: &str, retries: bool) -> [Turn; 2] {
    [false, true].map(|strict| {
        let mut body = request(&[user("q")], &[]);
        body["max_tokens"] = json!(wanted);
        let upstream = |body: &Value| match body["max_tokens"].as_u64() > Some(most) {
            true => (400, json!({"error": {"message": refusal}})),
            false => (200, says("fine")),
        };
        let config = drive::config(&json!({"strict": strict}).to_string());
        ask(&config, &body, &upstream, retries)
    })
}

const GROQ: &str = "`max_completion_tokens` must be less than or equal to `65536`, the maximum value for `max_completion_tokens` is less than the `context_window` for this model";

#[test]
fn a_model_that_gives_fewer_tokens_is_asked_once_more_for_as_many_as_it_gives() {
    for (most, refusal) in [
        (65_536, GROQ),
        (8_192, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
        (
            8_192,
            "max_tokens: 128000 > 8192, which is the maximum allowed number of output tokens for m",
        ),
    ] {
        for turn in limited(128_000, most, refusal, true) {
            assert_eq!((turn.head.status, turn.asked), (200, 2), "{refusal}");
            assert_eq!(turn.sent["max_tokens"], most);
            assert_eq!(turn.header("x-creole-warnings"), "max_tokens_refused");
        }
    }
}

#[test]
fn an_account_is_asked_for_as_much_as_it_can_afford() {
    let refusal = |most| {
        format!(
            "This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, but can only afford {most}. To increase, visit x"
        )
    };
    for (most, asked) in [(9200, 2), (120, 1)] {
        let mut body = request(&[user("q")], &[]);
        body["max_tokens"] = json!(32_000);
        let upstream = |body: &Value| match body["max_tokens"].as_u64() > Some(most) {
            true => (402, json!({"error": {"message": refusal(most), "code": 402}})),
            false => (200, says("fine")),
        };
        let turn = ask(&drive::config("{}"), &body, &upstream, true);
        let status = if asked == 2 { 200 } else { 402 };
        assert_eq!((turn.head.status, turn.asked), (status, asked));
    }
}

#[test]
fn a_limit_that_helps_nobody_is_told_as_it_is() {
    for (wanted, refusal, retries) in [
        (128_000, GROQ, false),
        // So few no model gives.
        (128_000, "max_tokens must be less than or equal to 2", true),
        (128_000, "temperature must be less than or equal to 2", true),
        (65_536, GROQ, true),
        (
            2_000,
            "max_tokens: 128000 > 8192, which is the maximum allowed number of output tokens for m",
            true,
        ),
    ] {
        for turn in limited(wanted, 1024, refusal, retries) {
            assert_eq!((turn.head.status, turn.asked), (400, 1), "{refusal}");
        }
    }
    // Nor is a second one.
    for turn in limited(128_000, 1024, GROQ, true) {
        assert_eq!((turn.head.status, turn.asked), (400, 2));
    }
}
