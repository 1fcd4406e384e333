//! Several questions of one step that are open at the same time: what comes in any order gives the
//! same bytes as one question after another.

use creole::{CallId, Exchange, Fetch, Header, To};

use super::*;

/// Upstream that takes images only as data, from whichever server the client names.
const FETCHES: &str = r#"{
    "upstreams": {"main": {"url": "http://main", "profile_overrides": {"image_parts": "data"}}},
    "fetch_images": {"hosts": ["*.a.example"], "bytes_max": 1024}
}"#;

/// Upstream whose model sees nothing, and a model that describes images.
const DESCRIBES: &str = r#"{
    "upstreams": {
        "main": {"url": "http://main", "key": "none", "profile_overrides": {"image_parts": "none"}},
        "eyes": {"url": "http://eyes", "key": "none"}
    },
    "models": {"*": {"upstream": "main"}},
    "vision": {"model": "see-1", "upstream": "eyes"}
}"#;

/// Host that makes up to `at_once` calls at the same time.
struct Host {
    exchange: Exchange,
    open: Vec<Call>,
    /// Calls that were made while others were open.
    beside: Vec<CallId>,
    /// Largest number of calls that were open.
    most: usize,
}

impl Host {
    fn new(config: &str, at_once: u8, messages: Value) -> Self {
        let can = HostCan {
            ping: Pings::Sent,
            ask_again: true,
            fetch: true,
            calls_at_once: at_once,
            ..HostCan::default()
        };
        let mut exchange = Exchange::new(drive::config(config), SEED, can);
        exchange.handle_request_head("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
        let body = json!({"model": "m", "max_tokens": 9, "messages": messages});
        exchange.handle_request_body(body.to_string().into_bytes(), NOW);
        Self { exchange, open: Vec::new(), beside: Vec::new(), most: 0 }
    }

    /// Polls all calls that are due, and drops those that are cancelled.
    fn poll(&mut self, now: u64) {
        while let Some(call) = self.exchange.poll_call(now) {
            if !self.open.is_empty() {
                self.beside.push(call.id);
            }
            self.open.push(call);
        }
        while let Some((id, _)) = self.exchange.poll_cancel() {
            self.open.retain(|call| call.id != id);
        }
        self.most = self.most.max(self.open.len());
    }

    fn answer(&mut self, id: CallId, status: u16, headers: &[Header], body: &[u8]) {
        self.exchange.handle_call_head(id, status, headers, NOW);
        let (first, rest) = body.split_at(body.len() / 2);
        self.exchange.handle_call_body(id, first, NOW);
        self.exchange.handle_call_body(id, rest, NOW);
        self.exchange.handle_call_end(id, End::Complete, NOW);
    }

    /// Answers a call for an image as its path says.
    fn fetch(&mut self, call: &Call) {
        let To::Web(fetch) = &call.to else { panic!("{call:?}") };
        let moved = [("location".to_owned(), "https://i.a.example/moved".to_owned())];
        match fetch.url.rsplit('/').next().unwrap() {
            "gone" => self.answer(call.id, 404, &[], b""),
            "moves" => self.answer(call.id, 302, &moved, b""),
            name => {
                self.answer(call.id, 200, &[], &[b"\x89PNG\r\n\x1a\n", name.as_bytes()].concat())
            }
        }
    }

    /// Runs until the upstream is called. `random` chooses the call to answer next.
    fn run(mut self, mut random: u64, answer: &dyn Fn(&mut Self, &Call)) -> (Call, String, usize) {
        loop {
            self.poll(NOW);
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            assert!(!self.open.is_empty(), "nothing is open, and the upstream was not called");
            let at = usize::try_from(random >> 33).unwrap() % self.open.len();
            let call = self.open.swap_remove(at);
            if call.upstream() == Some("main") {
                let report = self.exchange.report();
                let said = report.warnings.header().unwrap_or_default();
                return (call, said, self.most);
            }
            answer(&mut self, &call);
        }
    }
}

/// A conversation with the given images in an older turn.
fn older(images: Vec<Value>) -> Value {
    json!([{"role": "user", "content": images}, {"role": "assistant", "content": "a"},
        {"role": "user", "content": "b"}])
}

fn on_the_web(name: &str) -> Value {
    json!({"type": "image", "source": {"type": "url", "url": format!("https://i.a.example/{name}")}})
}

fn body(call: &Call) -> Value {
    serde_json::from_slice(&call.body).unwrap()
}

#[test]
fn images_that_come_in_any_order_give_the_same_request() {
    let names = ["1", "gone", "2", "moves", "3", "4", "moves", "5", "gone", "6"];
    let images = || older(names.iter().map(|name| on_the_web(name)).collect());
    let fetch = |host: &mut Host, call: &Call| {
        if let To::Web(Fetch { url, .. }) = &call.to {
            assert!(url.starts_with("https://i.a.example/"));
        }
        host.fetch(call);
    };
    let (one, said, most) = Host::new(FETCHES, 0, images()).run(1, &fetch);
    assert_eq!(most, 1, "a host that says nothing makes one call at a time");
    assert_eq!(body(&one).to_string().matches("data:image/png").count(), 8);
    for seed in 0..100 {
        for (at_once, open) in [(2, 2), (4, 4), (200, 4)] {
            let (call, told, most) = Host::new(FETCHES, at_once, images()).run(seed, &fetch);
            assert_eq!((body(&call), &told), (body(&one), &said), "seed {seed}");
            assert_eq!(most, open, "{at_once} calls at once");
        }
    }
}

#[test]
fn images_that_may_not_fit_are_fetched_one_at_a_time() {
    let config = FETCHES.replace("1024}", "1000000}, \"request_bytes_max\": 1500000");
    let images = older(["1", "2", "3"].iter().map(|name| on_the_web(name)).collect());
    let host = Host::new(&config, 4, images);
    let (_, _, most) = host.run(1, &|host, call| host.fetch(call));
    assert_eq!(most, 1);
}

#[test]
fn a_new_image_that_is_missing_ends_the_other_fetches() {
    let images: Vec<_> = ["1", "2", "3", "gone"].iter().map(|name| on_the_web(name)).collect();
    let mut host = Host::new(FETCHES, 4, json!([{"role": "user", "content": images}]));
    host.poll(NOW);
    assert_eq!(host.open.len(), 4);
    // The newest image is fetched first.
    let call = host.open.remove(0);
    host.fetch(&call);
    host.poll(NOW);
    assert!(host.open.is_empty(), "the host is told to end the other calls");
    let reply = host.exchange.poll_reply().unwrap();
    assert_eq!(reply.head.status, 400);
    let said = String::from_utf8_lossy(&reply.body);
    assert!(said.contains("messages[0].content[3].source.url"), "{said}");
}

#[test]
fn what_has_come_when_the_time_is_over_is_used() {
    let images = older(["1", "2", "3"].iter().map(|name| on_the_web(name)).collect());
    let mut host = Host::new(FETCHES, 4, images);
    host.poll(NOW);
    // The first question, for the newest image, stays open.
    for call in host.open.split_off(1) {
        host.fetch(&call);
    }
    let at = host.exchange.poll_timeout().unwrap();
    host.exchange.handle_timeout(at);
    host.poll(at);
    let sent = body(host.open.last().unwrap()).to_string();
    assert_eq!(sent.matches("data:image/png").count(), 2);
    assert!(sent.contains("it did not come in time"));
}

#[test]
fn what_two_open_questions_are_refused_for_is_left_out_of_both() {
    let refusal = json!({"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter"}});
    let image = |data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    let images = || {
        let data = ["iVBORw0KGgoAAAAN1111", "iVBORw0KGgoAAAAN2222", "iVBORw0KGgoAAAAN3333"];
        older(data.iter().map(|data| image(data)).collect())
    };
    let describe = |host: &mut Host, call: &Call| {
        let asked = body(call);
        if asked.get("max_tokens").is_some() {
            return host.answer(call.id, 400, &[], refusal.to_string().as_bytes());
        }
        let asked = asked.to_string();
        let said = ["1111", "2222", "3333"].into_iter().find(|data| asked.contains(data)).unwrap();
        let answer = json!({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]});
        host.answer(call.id, 200, &[], answer.to_string().as_bytes());
    };
    let (one, said, _) = Host::new(DESCRIBES, 1, images()).run(1, &describe);
    for data in ["1111", "2222", "3333"] {
        assert!(body(&one).to_string().contains(&format!("another model: {data}")), "{one:?}");
    }
    for seed in 0..100 {
        let (call, told, most) = Host::new(DESCRIBES, 4, images()).run(seed, &describe);
        assert_eq!((body(&call), &told), (body(&one), &said), "seed {seed}");
        assert_eq!(most, 3);
    }
}

#[test]
fn a_question_that_is_refused_for_ever_is_given_up() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAAN1111"}});
    let mut host = Host::new(DESCRIBES, 4, older(vec![image]));
    let mut asked = 0;
    loop {
        host.poll(NOW);
        let call = host.open.pop().unwrap();
        if call.upstream() == Some("main") {
            break;
        }
        asked += 1;
        let named = ["max_tokens", "max_completion_tokens", "temperature"][asked % 3];
        let refusal = json!({"error": {"message": format!("Unsupported parameter: '{named}' is not supported with this model."),
            "type": "invalid_request_error", "param": named, "code": "unsupported_parameter"}});
        host.answer(call.id, 400, &[], refusal.to_string().as_bytes());
    }
    assert!(asked <= 3, "asked {asked} times");
}

#[test]
fn a_redirection_that_waits_when_the_time_is_over_takes_nobody_elses_image() {
    let images = older(["1", "2", "moves", "3"].iter().map(|name| on_the_web(name)).collect());
    let mut host = Host::new(FETCHES, 4, images);
    host.poll(NOW);
    // The newest image, for which the first question is, stays open.
    for call in host.open.split_off(1) {
        host.fetch(&call);
    }
    let at = host.exchange.poll_timeout().unwrap();
    host.exchange.handle_timeout(at);
    host.poll(at);
    let sent = body(host.open.last().unwrap());
    let content = sent["messages"][0]["content"].as_array().unwrap();
    let is_fetched = |at: usize| content[at].to_string().contains("data:image/png");
    assert_eq!([0, 1, 2, 3].map(is_fetched), [true, true, false, false], "{sent}");
    assert_ne!(content[0], content[1], "each has its own image");
}

/// Images to describe, whose data ends in these letters.
fn described(names: &[&str], length: usize) -> Value {
    let data = |name: &&str| format!("iVBORw0KGgoAAAAN{}{name}", "A".repeat(length));
    let image = |data: String| json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    older(names.iter().map(data).map(image).collect())
}

fn describe(host: &mut Host, call: &Call) {
    let asked = body(call).to_string();
    let said = ["1111", "2222", "3333", "4444"].into_iter().find(|data| asked.contains(data));
    let answer = json!({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]});
    host.answer(call.id, 200, &[], answer.to_string().as_bytes());
}

#[test]
fn an_upstream_that_takes_one_request_at_a_time_is_asked_one_at_a_time() {
    let names = ["1111", "2222", "3333", "4444"];
    let busy = br#"{"error":{"message":"Too many requests","type":"rate_limit_error"}}"#;
    let (one, said, _) = Host::new(DESCRIBES, 1, described(&names, 0)).run(1, &describe);
    for seed in 0..50 {
        let asked = std::cell::Cell::new(0);
        let answer = |host: &mut Host, call: &Call| {
            asked.set(asked.get() + 1);
            // The upstream refuses what comes while it has something else, and says so at any time.
            match host.beside.contains(&call.id) {
                true => host.answer(call.id, 429, &[], busy),
                false => describe(host, call),
            }
        };
        let (call, told, _) = Host::new(DESCRIBES, 4, described(&names, 0)).run(seed, &answer);
        assert_eq!((body(&call), &told), (body(&one), &said), "seed {seed}");
        assert!(asked.get() <= 8, "asked {} times", asked.get());
    }
}

#[test]
fn an_upstream_that_is_always_busy_is_given_up() {
    let busy = br#"{"error":{"message":"Too many requests","type":"rate_limit_error"}}"#;
    let asked = std::cell::Cell::new(0);
    let answer = |host: &mut Host, call: &Call| {
        asked.set(asked.get() + 1);
        host.answer(call.id, 429, &[], busy);
    };
    let host = Host::new(DESCRIBES, 4, described(&["1111", "2222", "3333", "4444"], 0));
    let (_, said, _) = host.run(1, &answer);
    assert!(said.contains("vision_failed:rate_limited"), "{said}");
    assert!((4..=8).contains(&asked.get()), "asked {} times", asked.get());
    // A single image has nothing beside it, so nothing is asked again.
    asked.set(0);
    Host::new(DESCRIBES, 4, described(&["1111"], 0)).run(1, &answer);
    assert_eq!(asked.get(), 1);
}

#[test]
fn large_images_are_described_one_at_a_time() {
    let config = DESCRIBES.replacen('{', "{\"request_bytes_max\": 400000, ", 1);
    let images = described(&["1111", "2222", "3333"], 40_000);
    let (call, _, most) = Host::new(&config, 4, images).run(1, &describe);
    assert_eq!(most, 1);
    assert!(body(&call).to_string().contains("another model: 3333"));
}
