//! Memory of refusals: what an upstream refused once is left out of later requests.

use super::host::{Host, request};
use super::*;

const TEN_MINUTES: u64 = 600_000;

fn no_temperature(sent: &Value) -> Option<&'static str> {
    let message = "Unsupported parameter: 'temperature' is not supported with this model.";
    sent.get("temperature").map(|_| message)
}

#[test]
fn what_was_refused_once_is_left_out_from_the_start() {
    let host = Host::new(true, &no_temperature);
    let first = host.ask(&request("m", json!({})), NOW);
    assert_eq!((first.status(), first.asked.len()), ((200, None), 2));
    let second = host.ask(&request("m", json!({})), NOW + 1);
    assert_eq!((second.status(), second.asked.len()), ((200, None), 1));
    assert!(first.warnings().contains("parameter_refused:sampling"), "{}", first.warnings());
    assert_eq!(second.warnings(), first.warnings());
    // There is nothing to leave out, and nothing to warn of.
    let mut without = request("m", json!({}));
    without.as_object_mut().unwrap().remove("temperature");
    assert_eq!(host.ask(&without, NOW + 1).warnings(), "");
}

#[test]
fn a_host_that_cannot_ask_again_has_its_client_do_so() {
    let host = Host::new(false, &|sent| {
        let unknown = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        sent.get("max_tokens").map(|_| unknown).or_else(|| no_temperature(sent))
    });
    for refused in ["max_tokens_field", "sampling"] {
        let got = host.ask(&request("m", json!({})), NOW);
        assert_eq!((got.status(), got.asked.len()), ((529, Some("true")), 1));
        assert!(got.warnings().contains(&format!("parameter_refused:{refused}")));
        let error = error_of(&got.body);
        assert_eq!(error["type"], "overloaded_error");
        assert!(error["message"].as_str().unwrap().contains("Unsupported parameter: '"));
    }
    let got = host.ask(&request("m", json!({})), NOW);
    assert_eq!(got.status(), (200, None));
    assert_eq!(got.asked[0]["max_completion_tokens"], 9);
    assert!(got.warnings().contains("parameter_refused:max_tokens_field"), "{}", got.warnings());
    assert!(got.warnings().contains("parameter_refused:sampling"), "{}", got.warnings());
}

#[test]
fn what_is_still_refused_without_it_is_told() {
    let host =
        Host::new(false, &|_| Some("Unsupported parameter: 'temperature' is not supported."));
    assert_eq!(host.ask(&request("m", json!({})), NOW).status(), (529, Some("true")));
    for _ in 0..2 {
        assert_eq!(host.ask(&request("m", json!({})), NOW).status(), (400, None));
    }
}

#[test]
fn it_is_forgotten_after_ten_minutes() {
    let host = Host::new(true, &no_temperature);
    let asked = |at| host.ask(&request("m", json!({})), at).asked.len();
    assert_eq!(asked(NOW), 2);
    assert_eq!(asked(NOW + TEN_MINUTES - 1), 1);
    assert_eq!(asked(NOW + TEN_MINUTES), 2);
    assert_eq!(asked(NOW + TEN_MINUTES + 1), 1);
}

#[test]
fn only_such_requests_to_that_model_are_changed() {
    let host = Host::new(true, &no_temperature);
    let tools = json!({"tools": [{"name": "t", "input_schema": {"type": "object"}}]});
    assert_eq!(host.ask(&request("m", json!({})), NOW).asked.len(), 2);
    assert_eq!(host.ask(&request("other", json!({})), NOW).asked.len(), 2);
    assert_eq!(host.ask(&request("m", tools.clone()), NOW).asked.len(), 2);
    assert_eq!(host.ask(&request("m", tools), NOW).asked.len(), 1);
    let strict = Host { config: drive::config(r#"{"strict": true}"#), ..host };
    assert_eq!(strict.ask(&request("m", json!({})), NOW).asked.len(), 2);
}

#[test]
fn what_depends_on_more_than_the_parameter_is_not_remembered() {
    for message in [
        "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        "`temperature` may only be set to 1 when thinking is enabled",
    ] {
        let refuses = |sent: &Value| sent.get("temperature").map(|_| message);
        let host = Host::new(true, &refuses);
        for _ in 0..2 {
            let got = host.ask(&request("m", json!({"top_p": 0.9})), NOW);
            assert_eq!((got.status(), got.asked.len()), ((200, None), 2), "{message}");
        }
        let host = Host::new(false, &refuses);
        assert_eq!(host.ask(&request("m", json!({})), NOW).status(), (400, None), "{message}");
    }
}

#[test]
fn credit_for_one_answer_is_no_limit_of_others() {
    let refuses = |sent: &Value| {
        let message = "This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only afford 20000.";
        (sent["max_tokens"] == 64_000).then_some(message)
    };
    let host = Host::new(true, &refuses);
    for _ in 0..2 {
        let got = host.ask(&request("m", json!({"max_tokens": 64_000})), NOW);
        assert_eq!((got.status(), got.asked.len()), ((200, None), 2));
    }
}

#[test]
fn thinking_that_is_spoilt_in_one_conversation_stays_in_others() {
    for message in [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.3.content.40: thinking or redacted_thinking blocks in the latest assistant message cannot be modified.",
    ] {
        let refuses = |sent: &Value| sent.to_string().contains("BAD").then_some(message);
        let host = Host::new(true, &refuses);
        let of = |said: &str| {
            let thinking = json!({"type": "thinking", "thinking": said, "signature": "s"});
            let said = json!([thinking, {"type": "text", "text": "a"}]);
            request(
                "m",
                json!({"messages": [
                {"role": "user", "content": "q"}, {"role": "assistant", "content": said},
                {"role": "user", "content": "r"}]}),
            )
        };
        let host = Host {
            config: drive::config(
                r#"{"upstreams": {"a": {"profile_overrides": {"foreign_thinking": "forward"}}}}"#,
            ),
            ..host
        };
        assert_eq!(host.ask(&of("BAD"), NOW).asked.len(), 2, "{message}");
        let got = host.ask(&of("good"), NOW);
        assert!(got.asked[0].to_string().contains("good"), "{message}: {:?}", got.asked);
    }
}

#[test]
fn an_effort_that_is_refused_alone_is_left_to_others() {
    let refuses = |sent: &Value| {
        let message = "reasoning_effort 'high' is not supported by this model";
        (sent["reasoning_effort"] == "high").then_some(message)
    };
    let config = r#"{"upstreams": {"a": {"profile_overrides": {"reasoning_effort_values": ["low", "high"]}}}}"#;
    let host = Host { config: drive::config(config), ..Host::new(true, &refuses) };
    let of = |effort: &str| request("m", json!({"output_config": {"effort": effort}}));
    assert_eq!(host.ask(&of("high"), NOW).asked.len(), 2);
    assert_eq!(host.ask(&of("low"), NOW).asked[0]["reasoning_effort"], "low");
}

#[test]
fn another_limit_than_the_remembered_one_is_taken() {
    let limit = std::cell::Cell::new(16_384);
    let refuses = |sent: &Value| {
        let message = match limit.get() {
            16_384 => {
                "max_tokens is too large: 64000. This model supports at most 16384 completion tokens, whereas you provided 64000."
            }
            _ => {
                "max_tokens is too large: 16384. This model supports at most 8192 completion tokens, whereas you provided 16384."
            }
        };
        (sent["max_tokens"].as_u64() > Some(limit.get())).then_some(message)
    };
    let host = Host::new(true, &refuses);
    let body = request("m", json!({"max_tokens": 64_000}));
    assert_eq!(host.ask(&body, NOW).asked.len(), 2);
    limit.set(8_192);
    let got = host.ask(&body, NOW);
    assert_eq!((got.status(), got.asked.len()), ((200, None), 2));
    assert_eq!(got.asked[1]["max_tokens"], 8_192);
}

#[test]
fn a_client_is_not_told_again_and_again_to_ask_again() {
    // The template refuses something else in these words.
    let refuses = |_: &Value| Some("reasoning_effort is not supported");
    let config = r#"{"upstreams": {"a": {"profile_overrides": {"reasoning_effort_values": []}}}}"#;
    let host = Host { config: drive::config(config), ..Host::new(false, &refuses) };
    let body = request("m", json!({"output_config": {"effort": "low"}}));
    assert_eq!(host.ask(&body, NOW).status(), (529, Some("true")));
    assert_eq!(host.ask(&body, NOW).status(), (400, None));
}

#[test]
fn so_many_models_are_remembered_and_no_long_names() {
    let host = Host::new(true, &no_temperature);
    let asked = |model: &str| host.ask(&request(model, json!({})), NOW).asked.len();
    for number in 0..256 {
        assert_eq!(asked(&number.to_string()), 2);
    }
    assert_eq!(asked("0"), 1);
    assert_eq!(asked("256"), 2);
    assert_eq!(asked("0"), 2);
    let long = "m".repeat(257);
    assert_eq!((asked(&long), asked(&long)), (2, 2));
}

#[test]
fn images_are_not_left_out_because_another_conversation_had_some() {
    let refuses = |sent: &Value| {
        let message = "this model does not support image input";
        sent.to_string().contains("image_url").then_some(message)
    };
    let host = Host::new(true, &refuses);
    let source = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="});
    let body = request(
        "m",
        json!({"messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]}),
    );
    for _ in 0..2 {
        assert_eq!(host.ask(&body, NOW).asked.len(), 2);
    }
}

#[test]
fn a_limit_of_the_answer_is_remembered() {
    let host = Host::new(true, &|sent| {
        let message = "max_tokens is too large: 64000. This model supports at most 16384 completion tokens, whereas you provided 64000.";
        (sent["max_tokens"] == 64_000).then_some(message)
    });
    let body = request("m", json!({"max_tokens": 64_000}));
    assert_eq!(host.ask(&body, NOW).asked.len(), 2);
    let got = host.ask(&body, NOW);
    assert_eq!(got.asked.len(), 1);
    assert_eq!(got.asked[0]["max_tokens"], 16_384);
}

#[test]
fn a_server_that_insists_on_alternation_gets_it_from_then_on() {
    let refuses = |sent: &Value| {
        let messages = sent["messages"].as_array().unwrap();
        let alternate = messages.windows(2).all(|pair| pair[0]["role"] != pair[1]["role"]);
        let is_right = messages[0]["role"] == "user" && alternate;
        (!is_right).then_some("Conversation roles must alternate user/assistant/user/assistant/...")
    };
    let host = Host::new(true, &refuses);
    // n8n's memory cuts so.
    let said = |role: &str, text: &str| json!({"role": role, "content": text});
    let messages = [said("assistant", "a"), said("user", "b")];
    for asked in [2, 1] {
        let got = host.ask(&request("m", json!({"messages": messages})), NOW);
        assert_eq!((got.status(), got.asked.len()), ((200, None), asked));
        let warnings = got.warnings();
        assert!(warnings.contains("parameter_refused:alternating_roles"), "{warnings}");
    }
    // Where they do alternate, nothing helps.
    let host = Host::new(true, &|_| Some("Conversation roles must alternate"));
    let got = host.ask(&request("m", json!({})), NOW);
    assert_eq!((got.status(), got.asked.len()), ((400, None), 1));
}

#[test]
fn an_error_about_what_was_not_sent_is_told_as_it_is() {
    let plain =
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}]});
    for named in [
        "temperature",
        "top_k",
        "stop",
        "parallel_tool_calls",
        "reasoning_effort",
        "service_tier",
        "user",
    ] {
        let message = format!("Unsupported parameter: '{named}' is not supported with this model.");
        let refuses = |_: &Value| Some(message.as_str());
        let host = Host::new(false, &refuses);
        for _ in 0..2 {
            assert_eq!(host.ask(&plain, NOW).status(), (400, None), "{named}");
        }
    }
}
