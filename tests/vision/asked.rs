//! Questions to the model that sees: what it is asked, and by whose credential.

use creole::config::Log;
use creole::observe::metrics::{Counters, ModelEntry};
use creole::observe::report::Outcome;
use creole::{Config, End, To};

use super::session::answer;
use super::support::drive;
use super::*;

fn with_image() -> Value {
    json!([{"role": "user", "content": [image(PNG), {"type": "text", "text": "CANARY beside it"}]}])
}

#[test]
fn it_is_shown_an_image_and_nothing_of_the_conversation() {
    for protocol in ["openai", "responses", "anthropic"] {
        let config = CONFIG.replace(
            r#""url": "http://eyes""#,
            &format!(r#""url": "http://eyes", "protocol": "{protocol}""#),
        );
        let mut messages =
            history(json!([{"type": "text", "text": "CANARY of a result"}, image(PNG)]));
        messages.as_array_mut().unwrap().extend(with_image().as_array().unwrap().clone());
        let mut session = Session::with(&config, messages);
        session.body["messages"][3]["content"][0]["title"] = json!("CANARY of an image");
        let mut exchange = session.begin();
        let call = exchange.poll_call(drive::NOW).unwrap();
        assert_eq!(call.upstream(), Some("eyes"));
        let body = String::from_utf8(call.body.clone()).unwrap();
        assert!(body.contains(PNG) && body.contains("see-1"), "{body}");
        let all = format!("{body}{:?}", call.headers);
        assert!(!all.contains("CANARY"), "{protocol}: {all}");
        let value = |name: &str| call.headers.iter().find(|(known, _)| known == name);
        let own = value("authorization").or_else(|| value("x-api-key")).unwrap();
        assert!(own.1.ends_with("secret-of-EYES"));
        assert!(value("traceparent").is_some());
    }
}

#[test]
fn one_upstream_can_have_a_model_that_sees_beside_one_that_does_not() {
    let config = r#"{"upstreams": {"main": {"url": "http://main", "key": "client",
        "profile_overrides": {"image_parts": "none"}}}, "vision": {"model": "see-1"}}"#;
    let session = Session::with(config, with_image());
    let mut exchange = session.begin();
    let call = exchange.poll_call(drive::NOW).unwrap();
    let body: Value = serde_json::from_slice(&call.body).unwrap();
    assert_eq!(body["model"], "see-1");
    let url = &body["messages"][1]["content"][0]["image_url"]["url"];
    assert_eq!(*url, format!("data:image/png;base64,{PNG}"));
    // There is no other upstream that it could be for.
    assert!(
        call.headers.iter().any(|(_, value)| value.contains("CANARY-key")),
        "{:?}",
        call.headers
    );
    answer(&mut exchange, &says("a tree")[0]);
    let call = exchange.poll_call(drive::NOW).unwrap();
    let sent = String::from_utf8(call.body).unwrap();
    assert!(sent.contains("a tree") && !sent.contains(PNG), "{sent}");
    // Of itself it is not asked.
    let mut session = Session::with(config, with_image());
    session.body["model"] = json!("see-1");
    let mut exchange = session.begin();
    let sent = String::from_utf8(exchange.poll_call(drive::NOW).unwrap().body).unwrap();
    assert!(sent.contains("[image omitted") && sent.contains("see-1"), "{sent}");
}

#[test]
fn an_address_is_not_given_on_to_it() {
    let config = CONFIG.replacen('{', r#"{"fetch_images": {"hosts": ["a.test"]}, "#, 1);
    for (config, host, fetch) in [
        (CONFIG, "a.test", true),
        (config.as_str(), "b.test", true),
        (config.as_str(), "a.test", false),
    ] {
        let url = json!({"type": "image", "source": {"type": "url", "url": format!("https://{host}/b.png?c")}});
        let content = json!([image(PNG), url, url, url, url, url]);
        let mut session = Session::with(config, json!([{"role": "user", "content": content}]));
        session.can.fetch = fetch;
        let got = session.run(&says("a tree"));
        // Nor do they take the place of one that can be described.
        assert_eq!(got.shown(), [format!("data:image/png;base64,{PNG}")]);
        assert_eq!(got.warnings(), "vision_failed:url,image_described,dropped:image");
        assert_eq!(got.report.vision.as_ref().unwrap().failed, 5);
        let mut session = Session::with(config, json!([{"role": "user", "content": [url]}]));
        session.can.fetch = fetch;
        let got = session.run(&[]);
        assert_eq!(got.warnings(), "vision_failed:url,dropped:image");
        assert!(got.messages()[0].to_string().contains("[image omitted: this model"));
    }
}

#[test]
fn an_image_on_the_web_is_fetched_and_then_described() {
    let config = CONFIG.replacen('{', r#"{"fetch_images": {"hosts": ["a.test"]}, "#, 1);
    let url = json!({"type": "image", "source": {"type": "url", "url": "https://a.test/b.png?c"}});
    let mut session = Session::with(&config, json!([{"role": "user", "content": [url]}]));
    session.can.fetch = true;
    let fetching = |status, bytes: &[u8]| {
        let mut exchange = session.begin();
        let call = exchange.poll_call(drive::NOW).unwrap();
        let To::Web(fetch) = call.to else { panic!("{call:?}") };
        assert_eq!(fetch.url, "https://a.test/b.png?c");
        exchange.handle_call_head(status, &[], drive::NOW);
        exchange.handle_call_body(bytes, drive::NOW);
        exchange.handle_call_end(End::Complete, drive::NOW);
        exchange
    };
    let mut exchange = fetching(200, b"\x89PNG\r\n\x1a\n01234567");
    let call = exchange.poll_call(drive::NOW).unwrap();
    assert_eq!(call.upstream(), Some("eyes"));
    let asked = String::from_utf8(call.body).unwrap();
    assert!(asked.contains("data:image/png;base64,iVBOR") && !asked.contains("a.test"), "{asked}");
    answer(&mut exchange, &says("a tree")[0]);
    let call = exchange.poll_call(drive::NOW).unwrap();
    assert!(String::from_utf8(call.body).unwrap().contains("a tree"));
    // One that does not come is no error: without it being fetched there would be words, too.
    let call = fetching(404, b"").poll_call(drive::NOW).unwrap();
    assert_eq!(call.upstream(), Some("main"));
    assert!(String::from_utf8(call.body).unwrap().contains("[image omitted: its server answered"));
}

#[test]
fn its_upstream_is_asked_again_without_what_it_refuses() {
    let refusal = json!({"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter"}});
    let eyes =
        [vec![Eyes::Answers(400, refusal.to_string())], says("a tree"), says("a dog")].concat();
    let content = json!([image(PNG), image(JPEG)]);
    let got = Session::new(json!([{"role": "user", "content": content}])).run(&eyes);
    let questions = got.questions();
    let limits: Vec<_> = questions.iter().map(|it| it.get("max_tokens").is_some()).collect();
    // Of the second image it is asked without it at once.
    assert_eq!(limits, [true, false, false]);
    assert_eq!(got.warnings(), "image_described");
}

#[test]
fn its_tokens_are_reported_by_themselves() {
    let content = json!([image(PNG), image(JPEG)]);
    let eyes = [says("a tree"), vec![Eyes::Answers(500, String::new())]].concat();
    let got = Session::new(json!([{"role": "user", "content": content}])).run(&eyes);
    let vision = got.report.vision.clone().unwrap();
    assert_eq!((vision.model.as_str(), vision.upstream.as_str()), ("see-1", "eyes"));
    assert_eq!((vision.described, vision.failed), (1, 1));
    assert_eq!((vision.input_tokens, vision.output_tokens), (70, 5));
    assert_eq!(vision.duration_ms, 0);
    assert_eq!(got.report.answer.input_tokens, 0);
    let mut report = got.report.clone();
    report.outcome = Outcome::Answered;
    let mut samples = Vec::new();
    Counters::default().count(&report, ModelEntry::NoMap, drive::NOW, |sample| {
        if sample.metric.name.contains("vision") {
            samples.push(format!("{} {:?} {}", sample.metric.name, sample.labels, sample.value));
        }
    });
    assert_eq!(
        samples,
        [
            r#"creole_vision_images_total ["described", "eyes"] 1"#,
            r#"creole_vision_images_total ["failed", "eyes"] 1"#,
            r#"creole_vision_tokens_total ["input", "eyes"] 70"#,
            r#"creole_vision_tokens_total ["output", "eyes"] 5"#,
        ]
    );
    let line = creole::observe::log::line(&Default::default(), &report, Log::Info, drive::NOW);
    let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
    assert_eq!(
        line["vision"],
        json!({"model": "see-1", "upstream": "eyes", "described": 1, "failed": 1, "input_tokens": 70,
            "output_tokens": 5})
    );
    assert_eq!(got.report.upstream_request_bytes, got.call.body.len());
}

#[test]
fn it_is_described_as_a_whole_and_gets_no_credential_of_another_upstream() {
    let refused = |upstreams: Value, vision: Value| {
        let text = json!({"upstreams": upstreams, "vision": vision}).to_string();
        Config::from_json(&text, |_| Some("secret".to_owned())).unwrap_err().to_string()
    };
    let two = json!({"a": {}, "b": {"key": "none"}});
    for (vision, expected) in [
        (json!({"upstream": "b"}), "model: expected the name of a model, as upstream is given"),
        (
            json!({"model": "m"}),
            "upstream: expected the name of an upstream, because there are several",
        ),
        (
            json!({"model": "m", "upstream": "c"}),
            "upstream: expected a name in upstreams, but found \"c\"",
        ),
        (
            json!({"model": "m", "upstream": "a"}),
            "upstream: expected an upstream with a key of its own",
        ),
    ] {
        let error = refused(two.clone(), vision);
        assert!(error.starts_with(&format!("configuration: vision.{expected}")), "{error}");
    }
    assert_eq!(drive::config(CONFIG).vision().unwrap().1, "see-1");
    assert_eq!(Config::default().vision(), None);
}
