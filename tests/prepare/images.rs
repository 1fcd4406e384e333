//! Images by URL, of which the upstream takes the data alone.

use std::sync::Arc;

use creole::observe::log::{self, Log};
use creole::observe::report::Report;
use creole::{Call, Cancel, Config, End, Failure, Fetch, Head, HostCan, Pings};

use super::support::drive::{self, Exchange, NOW, SEED, Steps as _, headers};
use super::*;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n01234567";
const PNG_URL: &str = "data:image/png;base64,iVBORw0KGgowMTIzNDU2Nw==";

const CONFIG: &str = r#"{
    "upstreams": {"main": {"url": "http://main", "profile_overrides": {"image_parts": "data"}}},
    "fetch_images": {"hosts": ["*.a.example", "http://127.0.0.1:9"], "bytes_max": 1024, "timeout_ms": 5000}
}"#;

const ANSWER: &[u8] = br#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;

/// Behaviour of the server of an image.
#[derive(Clone)]
enum Does<'a> {
    Answers(u16, &'a [(&'a str, &'a str)], &'a [u8]),
    BreaksOff(&'a [u8]),
    Fails(Failure),
    /// Server that sends these bytes, and then nothing.
    Stalls(&'a [u8]),
}

const SENDS: Does<'_> = Does::Answers(200, &[], PNG);

fn image(url: &str) -> Value {
    json!({"type": "image", "source": {"type": "url", "url": url}})
}

fn text() -> Value {
    json!({"type": "text", "text": "what?"})
}

fn can() -> HostCan {
    HostCan { ping: Pings::Sent, ask_again: true, fetch: true, ..HostCan::default() }
}

/// The image is new.
fn new(images: &[Value]) -> Value {
    let content = [images, &[text()]].concat();
    json!([{"role": "user", "content": content}])
}

/// Returns two histories with an image that is old: it was answered, or a tool took it.
fn old(image: &Value) -> [Value; 2] {
    let shown = json!([
        {"role": "user", "content": [image, text()]},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": "more"},
    ]);
    let taken = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "shot", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [image]}]},
    ]);
    [shown, taken]
}

struct Got {
    head: Head,
    body: String,
    /// The calls for images.
    fetched: Vec<Call>,
    /// Bodies that the upstream was sent.
    asked: Vec<Value>,
    report: Report,
}

impl Got {
    fn urls(&self) -> Vec<&str> {
        self.fetched.iter().map(|call| fetch_of(call).unwrap().url.as_str()).collect()
    }

    fn error(&self) -> String {
        assert_eq!((self.head.status, self.asked.len()), (400, 0), "{}", self.body);
        let error: Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(error["error"]["type"], "invalid_request_error");
        error["error"]["message"].as_str().unwrap().to_owned()
    }
}

fn begin(config: &Arc<Config>, can: HostCan, messages: &Value) -> Exchange {
    let mut exchange = Exchange::new(Arc::clone(config), SEED, can);
    let sent =
        headers(&[("x-api-key", "sk-client"), ("cookie", "c"), ("traceparent", "00-a-b-01")]);
    exchange.decide("POST", "/v1/messages", &sent);
    let body = json!({"model": "m", "max_tokens": 9, "messages": messages}).to_string();
    exchange.handle_request_body(body.into_bytes(), NOW);
    exchange
}

/// A server of images does `does`, in pieces of so many bytes; the upstream answers.
fn run_cut(messages: &Value, does: &dyn Fn(&str) -> Does<'static>, size: usize) -> Got {
    let config = drive::config(CONFIG);
    let mut exchange = begin(&config, can(), messages);
    let (mut fetched, mut asked, mut now) = (Vec::new(), Vec::new(), NOW);
    while let Some(call) = exchange.poll_call(now) {
        assert_eq!(exchange.poll_head(), None);
        let Some(Fetch { url, .. }) = fetch_of(&call) else {
            asked.push(serde_json::from_slice(&call.body).unwrap());
            answer(&mut exchange, 200, &[], ANSWER, now);
            break;
        };
        let does = does(url);
        fetched.push(call);
        match does {
            Does::Fails(failure) => exchange.handle_failure(failure, now),
            Does::Answers(status, sent, body) => {
                exchange.handle_call_head(status, &headers(sent), now);
                for piece in body.chunks(size) {
                    exchange.handle_call_body(piece, now);
                }
                exchange.handle_call_end(End::Complete, now);
            }
            Does::BreaksOff(body) => {
                exchange.handle_call_head(200, &[], now);
                exchange.handle_call_body(body, now);
                exchange.handle_call_end(End::Aborted, now);
            }
            Does::Stalls(body) => {
                exchange.handle_call_head(200, &[], now);
                exchange.handle_call_body(body, now);
                now = exchange.poll_timeout().unwrap();
                assert_eq!(now, NOW + 5_000, "one time for all images");
                exchange.handle_timeout(now);
            }
        }
        assert!(exchange.is_ended() || exchange.is_call_due());
    }
    let mut body = Vec::new();
    exchange.poll_body(&mut body);
    let head = exchange.poll_head().unwrap();
    assert!(exchange.is_ended());
    let report = exchange.report();
    Got { head, body: String::from_utf8(body).unwrap(), fetched, asked, report }
}

fn run(messages: &Value, does: &dyn Fn(&str) -> Does<'static>) -> Got {
    run_cut(messages, does, usize::MAX)
}

fn answer(exchange: &mut Exchange, status: u16, sent: &[(&str, &str)], body: &[u8], now: u64) {
    exchange.handle_call_head(status, &headers(sent), now);
    exchange.handle_call_body(body, now);
    exchange.handle_call_end(End::Complete, now);
}

#[test]
fn an_image_is_fetched_and_sent_as_data_however_its_bytes_come() {
    let url = "https://i.a.example/1?sig=s3cret";
    for size in 1..=PNG.len() {
        let got = run_cut(&new(&[image(url)]), &|_| SENDS, size);
        assert_eq!((got.head.status, got.urls()), (200, vec![url]));
        assert_eq!(got.asked[0]["messages"][0]["content"][0]["image_url"]["url"], PNG_URL);
        let images = got.report.images.unwrap();
        assert_eq!((images.fetched, images.missing, images.bytes), (1, 0, PNG.len()));
        assert_eq!(got.report.warnings.count(), 0);
        assert_eq!(got.report.upstream_response_bytes, ANSWER.len());
    }
}

#[test]
fn nothing_of_the_clients_goes_to_the_server_of_an_image() {
    let got = run(&new(&[image("https://i.a.example/1?sig=s3cret")]), &|_| SENDS);
    let call = &got.fetched[0];
    assert_eq!((call.method(), call.upstream(), call.path.as_str()), ("GET", None, ""));
    let names: Vec<&str> = call.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["accept", "accept-encoding", "user-agent"]);
    assert!(!format!("{call:?}").contains("example"), "{call:?}");
    assert!(!fetch_of(call).unwrap().may_be_private);
    let got = run(&new(&[image("http://127.0.0.1:9/1")]), &|_| SENDS);
    assert!(fetch_of(&got.fetched[0]).unwrap().may_be_private);
}

#[test]
fn several_are_fetched_one_after_another_and_equal_ones_once() {
    let (one, two) = (image("https://i.a.example/1"), image("https://i.a.example/2"));
    let got = run(&new(&[one.clone(), two, one]), &|_| SENDS);
    assert_eq!(got.urls(), ["https://i.a.example/1", "https://i.a.example/2"]);
    assert_eq!(got.asked[0].to_string().matches(PNG_URL).count(), 3);
}

#[test]
fn one_in_the_history_is_fetched_too() {
    for messages in old(&image("https://i.a.example/1")) {
        let got = run(&messages, &|_| SENDS);
        assert_eq!((got.fetched.len(), got.report.warnings.count()), (1, 0));
        assert!(got.asked[0].to_string().contains(PNG_URL), "{}", got.asked[0]);
    }
}

#[test]
fn what_does_not_come_is_an_error_if_it_is_new_and_words_if_it_is_not() {
    let large: &'static [u8] = Box::leak([PNG, &[0; 2_000]].concat().into_boxed_slice());
    for (does, why) in [
        (Does::Answers(404, &[], b"<html>"), "its server answered with status 404"),
        (Does::Answers(500, &[], b""), "its server answered with status 500"),
        (Does::Answers(200, &[], b"<html>"), "it is no JPEG, PNG, GIF or WebP"),
        (Does::Answers(200, &[], b""), "it is no JPEG, PNG, GIF or WebP"),
        (Does::Answers(200, &[], large), "it has more than 1024 bytes"),
        (
            Does::Answers(302, &[("location", "https://evil.test/")], b""),
            "its server sends readers elsewhere",
        ),
        (
            Does::Answers(302, &[("location", "http://169.254.169.254/")], b"x"),
            "its server sends readers elsewhere",
        ),
        (Does::Answers(302, &[], b""), "its server answered with status 302"),
        (Does::BreaksOff(PNG), "its server broke off"),
        (Does::Stalls(PNG), "it did not come in time"),
        (Does::Fails(Failure::Timeout), "it did not come in time"),
        (
            Does::Fails(Failure::Unreachable(creole::Unreachable::NoName)),
            "its server could not be reached",
        ),
        (Does::Fails(Failure::NoRoute), "its server could not be reached"),
        (Does::Fails(Failure::Undecodable), "its server broke off"),
    ] {
        let url = "https://i.a.example/1?sig=s3cret";
        let got = run(&new(&[text(), image(url)]), &|_| does.clone());
        let expected = format!(
            "messages[0].content[1].source.url: the image could not be fetched: {why}; send it as base64"
        );
        assert_eq!(got.error(), expected);
        assert_eq!(got.report.model, "m");
        let line = log::line(&log::LoggedRequest::default(), &got.report, Log::Debug, NOW).unwrap();
        assert!(
            line.contains("\"images\":{\"fetched\":0,\"missing\":1") && !line.contains("s3cret"),
            "{line}"
        );
        for messages in old(&image(url)) {
            let got = run(&messages, &|_| does.clone());
            assert_eq!((got.head.status, got.fetched.len()), (200, 1), "{why}");
            let sent = got.asked[0].to_string();
            assert!(sent.contains(&format!("[image omitted: {why}]")), "{sent}");
            assert_eq!(got.report.warnings.header().as_deref(), Some("image_not_fetched"));
            let images = got.report.images.unwrap();
            assert_eq!((images.fetched, images.missing), (0, 1));
        }
    }
}

#[test]
fn an_image_may_be_as_large_as_is_said_and_no_byte_more_is_read() {
    let whole: &'static [u8] = Box::leak([PNG, &[0; 1_008]].concat().into_boxed_slice());
    let got =
        run_cut(&new(&[image("https://i.a.example/1")]), &|_| Does::Answers(200, &[], whole), 7);
    assert_eq!((got.head.status, got.report.images.unwrap().bytes), (200, 1_024));

    let config = drive::config(CONFIG);
    let mut exchange = begin(&config, can(), &new(&[image("https://i.a.example/1")]));
    exchange.poll_call(NOW).unwrap();
    exchange.handle_call_head(200, &[], NOW);
    exchange.handle_call_body(whole, NOW);
    assert_eq!((exchange.poll_cancel(), exchange.is_call_due()), (None, false));
    assert!(exchange.held_bytes() > 1_024);
    exchange.handle_call_body(b"0", NOW);
    assert_eq!((exchange.poll_cancel(), exchange.is_call_due()), (Some(Cancel::Cut), true));
    exchange.handle_call_body(whole, NOW);
    assert_eq!(exchange.poll_call(NOW), None);
    assert_eq!(exchange.poll_reply().unwrap().head.status, 400);
}

#[test]
fn a_redirection_to_an_allowed_host_is_followed() {
    let does = |url: &str| match url {
        "https://i.a.example/1" => {
            Does::Answers(302, &[("location", "https://j.a.example/2?q")], b"moved")
        }
        "https://j.a.example/2?q" => Does::Answers(307, &[("location", "/3")], b""),
        _ => SENDS,
    };
    let got = run(&new(&[image("https://i.a.example/1")]), &does);
    assert_eq!(
        got.urls(),
        ["https://i.a.example/1", "https://j.a.example/2?q", "https://j.a.example/3"]
    );
    assert_eq!(got.head.status, 200);
    let got = run(&new(&[image("https://i.a.example/1")]), &|_| {
        Does::Answers(301, &[("location", "https://i.a.example/1")], b"")
    });
    assert_eq!(got.fetched.len(), 4);
    assert!(got.error().contains("elsewhere"));
}

#[test]
fn one_that_fails_takes_no_time_and_no_image_from_the_others() {
    let does = |url: &str| if url.ends_with('2') { Does::Stalls(b"") } else { SENDS };
    let urls = ["3", "2", "1"].map(|at| image(&format!("https://i.a.example/{at}")));
    let messages = json!([
        {"role": "user", "content": urls},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": "more"},
    ]);
    let got = run(&messages, &does);
    // The one behind the silent one is not asked for: the time is over.
    assert_eq!(got.urls(), ["https://i.a.example/1", "https://i.a.example/2"]);
    let sent = got.asked[0].to_string();
    assert_eq!((sent.matches(PNG_URL).count(), sent.matches("[image omitted").count()), (1, 2));
    assert_eq!(got.report.images.unwrap().duration_ms, 5_000);
}

#[test]
fn a_retry_has_the_body_as_it_was_prepared() {
    let config = drive::config(CONFIG);
    let mut exchange = begin(&config, can(), &new(&[image("https://i.a.example/1")]));
    exchange.poll_call(NOW).unwrap();
    answer(&mut exchange, 200, &[], PNG, NOW);
    let first = exchange.poll_call(NOW).unwrap();
    assert_eq!(first.upstream(), Some("main"));
    let refusal = br#"{"error":{"message":"Unsupported parameter: 'max_tokens'","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#;
    answer(&mut exchange, 400, &[], refusal, NOW);
    let second = exchange.poll_call(NOW).unwrap();
    assert_eq!(second.upstream(), Some("main"));
    assert!(String::from_utf8(second.body).unwrap().contains(PNG_URL));
}

#[test]
fn memory_that_is_scarce_and_a_client_that_goes_end_it_cleanly() {
    let config = drive::config(CONFIG);
    let messages = new(&[image("https://i.a.example/1")]);
    let mut exchange = begin(&config, can(), &messages);
    exchange.poll_call(NOW).unwrap();
    exchange.forget_request_body();
    answer(&mut exchange, 200, &[], PNG, NOW);
    assert!(exchange.poll_call(NOW).unwrap().upstream().is_some(), "the body is needed until then");

    let mut exchange = begin(&config, can(), &messages);
    exchange.poll_call(NOW).unwrap();
    exchange.handle_client_gone(NOW);
    assert_eq!((exchange.is_ended(), exchange.held_bytes()), (true, 0));
    assert_eq!(exchange.poll_call(NOW), None);

    let mut exchange = begin(&config, can(), &messages);
    exchange.poll_call(NOW).unwrap();
    exchange.handle_failure(Failure::Overloaded, NOW);
    assert_eq!(exchange.poll_reply().unwrap().head.status, 529);
}

#[test]
fn nothing_is_fetched_where_it_is_not_asked_for_or_not_possible() {
    let url = "https://i.a.example/1";
    let messages = new(&[image(url)]);
    let data = r#""profile_overrides": {"image_parts": "data"}"#;
    let fetch = r#""fetch_images": {"hosts": ["*.a.example"]}"#;
    for (flags, settings, can, status) in [
        (data, fetch, HostCan { fetch: false, ..can() }, 400),
        (data, fetch, HostCan { ask_again: false, ..can() }, 400),
        (data, r#""strict": false"#, can(), 400),
        (r#""profile_overrides": {"image_parts": "all"}"#, fetch, can(), 200),
        (r#""profile_overrides": {"image_parts": "none"}"#, fetch, can(), 200),
        (r#""protocol": "anthropic""#, fetch, can(), 200),
    ] {
        let config = format!(
            r#"{{"upstreams": {{"main": {{"url": "http://main", {flags}}}}}, {settings}}}"#
        );
        let mut exchange = begin(&drive::config(&config), can, &messages);
        let call = exchange.poll_call(NOW);
        assert_eq!(call.is_some(), status == 200, "{config}");
        assert!(call.is_none_or(|call| fetch_of(&call).is_none()));
        if status == 400 {
            let body = exchange.poll_reply().unwrap().body;
            assert!(
                String::from_utf8(body)
                    .unwrap()
                    .contains("image URLs are not supported by this model")
            );
        }
    }
}

#[test]
fn an_upstream_that_speaks_messages_gets_the_data_in_place() {
    let config = r#"{"upstreams": {"main": {"url": "http://main", "protocol": "anthropic",
        "profile_overrides": {"image_parts": "data"}}}, "fetch_images": {"hosts": ["*.a.example"]}}"#;
    let mut exchange =
        begin(&drive::config(config), can(), &new(&[image("https://i.a.example/1")]));
    exchange.poll_call(NOW).unwrap();
    answer(&mut exchange, 200, &[], PNG, NOW);
    let sent: Value = serde_json::from_slice(&exchange.poll_call(NOW).unwrap().body).unwrap();
    let expected =
        json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgowMTIzNDU2Nw=="});
    assert_eq!(sent["messages"][0]["content"][0]["source"], expected);
}

#[test]
fn a_head_without_an_image_ends_the_wait_for_its_body() {
    let config = drive::config(CONFIG);
    let url = "https://i.a.example/1";
    for (status, sent, next) in [
        (
            302,
            headers(&[("location", "/2"), ("content-length", "9")]),
            Some("https://i.a.example/2"),
        ),
        (404, headers(&[("content-length", "9")]), None),
    ] {
        let mut exchange = begin(&config, can(), &old(&image(url))[0]);
        exchange.poll_call(NOW).unwrap();
        exchange.handle_call_head(status, &sent, NOW);
        assert!(exchange.is_call_due(), "{status}");
        assert_eq!(exchange.poll_cancel(), Some(Cancel::Cut));
        let call = exchange.poll_call(NOW).unwrap();
        assert_eq!(fetch_of(&call).map(|fetch| fetch.url.as_str()), next);
    }
}

#[test]
fn words_in_place_of_an_image_may_go_beyond_the_largest_request() {
    let [mut messages, _] = old(&image("https://i.a.example/1"));
    messages[2]["content"] = json!("more ".repeat(300));
    let body = json!({"model": "m", "max_tokens": 9, "messages": messages}).to_string();
    let limits = format!(r#"{{"request_bytes_max": {}, "upstreams""#, body.len());
    let config = drive::config(&CONFIG.replacen("{\n    \"upstreams\"", &limits, 1));
    let mut exchange = begin(&config, can(), &messages);
    exchange.poll_call(NOW).unwrap();
    exchange.handle_failure(Failure::Timeout, NOW);
    let call = exchange.poll_call(NOW).unwrap();
    assert_eq!(call.upstream(), Some("main"));
    assert!(String::from_utf8(call.body).unwrap().contains("it did not come in time"));
}

#[test]
fn nothing_is_fetched_for_a_client_without_a_credential() {
    let mut exchange = Exchange::new(drive::config(CONFIG), SEED, can());
    exchange.decide("POST", "/v1/messages", &[]);
    let messages = new(&[image("https://i.a.example/1")]);
    let body = json!({"model": "m", "max_tokens": 9, "messages": messages}).to_string();
    exchange.handle_request_body(body.into_bytes(), NOW);
    assert_eq!(exchange.poll_call(NOW), None);
    assert_eq!(exchange.poll_head().unwrap().status, 401);
    assert_eq!(exchange.report().model, "m");
}
