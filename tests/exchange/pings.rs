//! Pings in front of an answer, behind which the upstream may still be called again.

use super::host::request;
use super::*;
use creole::To;
use creole::observe::report::Outcome;
use support::fold;

const PING: &str = ": ping\n\n";

const NO_VISION: &str = "this model has no vision, image_url is not supported";

/// A host that pings and asks again.
const HOST: HostCan = HostCan {
    ping: Pings::Sent,
    ask_again: true,
    list_models: false,
    fetch: false,
    call_services: false,
    calls_at_once: 1,
    later_answers_whole: false,
    read_documents: false,
    serve_others: false,
};

/// A request for a stream, with an image that a tool gave.
fn seeing() -> Value {
    let image = json!({"type": "image", "source":
        {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
    request(
        "m",
        json!({"stream": true, "tools": [{"name": "shot", "input_schema": {"type": "object"}}], "messages": [
            {"role": "user", "content": "Look"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "shot", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [image]}]},
        ]}),
    )
}

fn error(message: &str) -> String {
    json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string()
}

/// A client that waits: what it has, and the time.
struct Waiting {
    exchange: Exchange,
    heads: Vec<Head>,
    out: Vec<u8>,
    /// Bodies of the calls.
    asked: Vec<Value>,
    now: u64,
}

impl Waiting {
    fn new(host: HostCan, config: &str, body: &Value) -> Self {
        let (exchange, call) =
            started_by(host, &drive::config(config), body.to_string().as_bytes());
        let asked = vec![serde_json::from_slice(&call.body).unwrap()];
        Self { exchange, heads: Vec::new(), out: Vec::new(), asked, now: NOW }
    }

    /// Polls as hosts do: the head, then the body.
    fn poll(&mut self) {
        self.heads.extend(self.exchange.poll_head());
        self.exchange.poll_body(&mut self.out);
    }

    /// Moves the time on to the exchange's next timeout. Returns what the client gets then.
    fn silence(&mut self) -> String {
        let (due, before) = (self.exchange.poll_timeout().unwrap(), self.out.len());
        assert!(due > self.now, "time stands still");
        self.now = due;
        self.exchange.handle_timeout(due);
        self.poll();
        String::from_utf8(self.out[before..].to_vec()).unwrap()
    }

    fn head(&mut self, status: u16) {
        self.exchange.handle_call_head(status, &[], self.now);
    }

    fn pieces<'a>(&mut self, pieces: impl IntoIterator<Item = &'a [u8]>) {
        for piece in pieces {
            self.exchange.handle_call_body(piece, self.now);
            if self.exchange.is_call_due() {
                return;
            }
            self.poll();
        }
    }

    fn end(&mut self) {
        if !self.exchange.is_call_due() {
            self.exchange.handle_call_end(End::Complete, self.now);
        }
        if !self.exchange.is_call_due() {
            self.poll();
        }
    }

    /// The upstream refuses, with its status or in its stream.
    fn refuse(&mut self, status: u16, message: &str) {
        self.head(status);
        let body = match status {
            200 => format!("data: {}\n\n", error(message)),
            _ => error(message),
        };
        self.pieces([body.as_bytes()]);
        self.end();
    }

    /// The call that is due, if one is.
    fn again(&mut self) -> bool {
        let call = self.exchange.poll_call(self.now);
        self.asked.extend(call.iter().map(|call| serde_json::from_slice(&call.body).unwrap()));
        self.poll();
        call.is_some()
    }

    /// The stream as clients read it.
    fn events(&self) -> Vec<grammar::Event> {
        let rules = Rules { head_sent_early: true, ..Rules::default() };
        let events = grammar::check_stream(&self.out, rules);
        events.unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&self.out)))
    }

    /// Checks that one stream was promised and has this text.
    fn check_text(&self, text: &str) {
        assert!(self.exchange.is_ended());
        assert!(self.heads.len() == 1 && self.heads[0].status == 200, "{:?}", self.heads);
        let events = self.events();
        assert_eq!(events[0].name, "message_start");
        let message = fold::fold(&events).message;
        assert_eq!(message["content"], json!([{"type": "text", "text": text}]));
        assert_eq!(self.exchange.report().response_bytes, self.out.len());
        assert_eq!(self.exchange.report().outcome, Outcome::Answered);
    }

    /// Checks that one stream was promised that ends with this error.
    fn check_error(&self, kind: &str, message: &str) {
        assert!(self.exchange.is_ended());
        assert!(self.heads.len() == 1 && self.heads[0].status == 200, "{:?}", self.heads);
        let events = self.events();
        let last = events.last().unwrap();
        assert_eq!((last.name.as_str(), &last.data["error"]["type"]), ("error", &json!(kind)));
        let told = last.data["error"]["message"].as_str().unwrap();
        assert!(told.contains(message), "{told}");
        assert!(matches!(self.exchange.report().outcome, Outcome::Failed(..)));
        assert_eq!(self.exchange.report().response_bytes, self.out.len());
    }
}

/// Whole, cut in two at each byte, and byte by byte.
fn cuts(bytes: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    let halves = (1..bytes.len()).map(move |at| vec![&bytes[..at], &bytes[at..]]);
    [vec![bytes], bytes.chunks(1).collect()].into_iter().chain(halves)
}

fn text_of(protocol: &str, text: &str) -> String {
    if protocol == "responses" {
        let part = json!({"type": "output_text", "text": text, "annotations": []});
        let item =
            json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [part]});
        let over = json!({"id": "resp_1", "status": "completed", "output": [item]});
        let event = json!({"type": "response.completed", "response": over});
        return format!("data: {event}\n\n");
    }
    format!("{}data: [DONE]\n\n", String::from_utf8(stopped(text)).unwrap())
}

#[test]
fn a_refusal_behind_pings_is_asked_again_and_the_client_gets_one_right_stream() {
    for protocol in ["openai", "responses"] {
        let config = format!(r#"{{"upstreams": {{"a": {{"protocol": "{protocol}"}}}}}}"#);
        let refusal = format!("data: {}\n\n", error(NO_VISION));
        let answer = text_of(protocol, "Hi");
        let both = [(refusal.as_str(), true), (answer.as_str(), false)];
        for (cut, of_refusal) in both {
            for pieces in cuts(cut.as_bytes()) {
                let mut client = Waiting::new(HOST, &config, &seeing());
                client.head(200);
                // A second ping is one more comment.
                assert_eq!((client.silence().as_str(), client.silence().as_str()), (PING, PING));
                match of_refusal {
                    true => client.pieces(pieces.clone()),
                    false => client.pieces([refusal.as_bytes()]),
                }
                client.end();
                assert!(client.again(), "{}", String::from_utf8_lossy(&client.out));
                assert!(client.asked[0].to_string().contains("iVBORw0KGgo="));
                assert!(!client.asked[1].to_string().contains("iVBORw0KGgo="));
                // The client waits on, before the second head and behind it.
                assert_eq!(client.silence(), PING);
                client.head(200);
                assert_eq!(client.silence(), PING);
                match of_refusal {
                    true => client.pieces([answer.as_bytes()]),
                    false => client.pieces(pieces),
                }
                client.end();
                client.check_text("Hi");
                assert!(client.out.starts_with(PING.repeat(4).as_bytes()));
                let report = client.exchange.report();
                assert_eq!(report.retries, 1);
                // The head was gone before the refusal.
                assert_eq!(header(&client.heads[0], "x-creole-warnings"), None);
                assert!(report.warnings.header().unwrap().contains("images_refused"));
            }
        }
    }
}

#[test]
fn a_whole_answer_for_a_stream_is_waited_for_with_comments_and_may_be_refused() {
    let whole = json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1}})
    .to_string();
    for pieces in cuts(whole.as_bytes()) {
        let mut client = Waiting::new(HOST, "{}", &seeing());
        client.refuse(400, "This model doesn't support streaming.");
        assert!(client.again() && client.heads.is_empty());
        assert_ne!(client.asked[1]["stream"], true);
        // Its head comes with its end.
        assert_eq!((client.silence().as_str(), client.silence().as_str()), (PING, PING));
        client.refuse(400, NO_VISION);
        assert!(client.again());
        assert_eq!(client.silence(), PING);
        client.head(200);
        let mut collected = 0;
        for piece in pieces {
            client.pieces([piece]);
            collected += piece.len();
            assert!(client.exchange.held_bytes() >= collected);
            // A bracket may be its end, which is looked for first.
            if collected < whole.len() && client.silence() != PING {
                assert_eq!(client.silence(), PING);
            }
        }
        client.end();
        client.check_text("Hi");
        assert_eq!(client.exchange.report().retries, 2);
    }
    // Where it was a stream that was asked for, a refusal keeps its status.
    let mut client = Waiting::new(HOST, "{}", &seeing());
    client.now = client.exchange.poll_timeout().unwrap() - 1;
    assert!(client.now > NOW + 500_000);
    client.refuse(429, "slow down");
    assert_eq!((client.heads[0].status, client.heads.len()), (429, 1));
}

#[test]
fn what_no_other_request_mends_becomes_an_error_event() {
    for status in [400, 200] {
        let mut client = Waiting::new(HOST, "{}", &seeing());
        client.head(200);
        client.silence();
        client.pieces([format!("data: {}\n\n", error(NO_VISION)).as_bytes()]);
        client.end();
        while client.again() {
            assert!(client.asked.len() < 9);
            client.silence();
            client.refuse(status, NO_VISION);
        }
        client.check_error("invalid_request_error", NO_VISION);
        assert!((2..=5).contains(&client.asked.len()), "{}", client.asked.len());
        assert_eq!(client.exchange.held_bytes(), 0);
    }
    // What is no refusal of a request is not asked again.
    let mut client = Waiting::new(HOST, "{}", &seeing());
    client.head(200);
    client.silence();
    client.pieces([&b"data: {\"error\":{\"message\":\"overloaded\",\"code\":529}}\n\n"[..]]);
    client.end();
    assert!(!client.again());
    client.check_error("overloaded_error", "overloaded");
    // Nor are failures that no upstream answered for, here of the second call, nor silence.
    for failure in [Some(Failure::Unreachable(Unreachable::Refused)), Some(Failure::Timeout), None]
    {
        let mut client = Waiting::new(HOST, "{}", &seeing());
        client.head(200);
        client.silence();
        client.pieces([format!("data: {}\n\n", error(NO_VISION)).as_bytes()]);
        assert!(client.again());
        let kind = match failure {
            Some(Failure::Unreachable(_)) => "api_error",
            _ => "timeout_error",
        };
        match failure {
            Some(failure) => client.exchange.handle_failure(failure, client.now),
            None => {
                while !client.exchange.is_ended() {
                    client.silence();
                }
            }
        }
        client.poll();
        client.check_error(kind, "pstream");
        assert!(!client.again());
    }
}

#[test]
fn an_answer_that_ends_with_nothing_behind_a_ping_is_an_error_event() {
    for (body, end) in [("", End::Complete), ("", End::Aborted), (": x\n\n", End::Complete)] {
        let mut client = Waiting::new(HOST, "{}", &seeing());
        client.head(200);
        client.silence();
        client.pieces([body.as_bytes()]);
        client.exchange.handle_call_end(end, client.now);
        client.poll();
        client.check_error("api_error", "");
    }
}

#[test]
fn a_failure_behind_content_is_not_asked_again() {
    let mut client = Waiting::new(HOST, "{}", &seeing());
    client.head(200);
    client.silence();
    assert!(client.exchange.held_bytes() > seeing().to_string().len() - 1);
    client.pieces([&b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n"[..]]);
    assert_eq!(client.exchange.held_bytes(), client.exchange.answer_bytes());
    // Pings are events again.
    assert!(client.silence().starts_with("event: ping"));
    client.pieces([format!("data: {}\n\n", error(NO_VISION)).as_bytes()]);
    client.end();
    assert!(!client.again() && client.asked.len() == 1);
    client.check_error("invalid_request_error", NO_VISION);
    assert_eq!(client.events()[0].name, "message_start");
}

#[test]
fn a_request_that_was_forgotten_for_lack_of_memory_is_not_asked_again() {
    let mut client = Waiting::new(HOST, "{}", &seeing());
    client.head(200);
    client.silence();
    client.exchange.forget_request_body();
    assert!(client.exchange.held_bytes() < 100);
    assert_eq!(client.silence(), PING);
    client.pieces([format!("data: {}\n\n", error(NO_VISION)).as_bytes()]);
    client.end();
    assert!(!client.again());
    client.check_error("invalid_request_error", NO_VISION);
}

#[test]
fn where_no_retry_can_follow_a_ping_begins_the_message_as_before() {
    // The request has nothing that a good status leaves to refuse; or the host asks nobody again,
    // or pings not alone.
    let plain = request("m", json!({"stream": true}));
    let hosts = [
        (HOST, &plain),
        (can(Pings::Sent), &seeing()),
        (HostCan { ping: Pings::AfterHead, ..HOST }, &seeing()),
        (HostCan { ping: Pings::No, ..HOST }, &seeing()),
    ];
    for (host, body) in hosts {
        let mut client = Waiting::new(host, "{}", body);
        client.head(200);
        client.pieces([&b": in the queue\n\n"[..]]);
        client.now += 15_000;
        client.pieces([&b": in the queue\n\n"[..]]);
        assert!(client.out.starts_with(b"event: message_start\n"), "{host:?}");
        client.pieces([format!("data: {}\n\n", error(NO_VISION)).as_bytes()]);
        client.end();
        assert!(!client.again());
        client.check_error("invalid_request_error", NO_VISION);
    }
}

#[test]
fn preparations_come_before_pings_and_are_kept_behind_them() {
    let config = r#"{"fetch_images": {"hosts": ["pics.example"]},
        "upstreams": {"a": {"profile": "ollama"}}}"#;
    let mut body = seeing();
    body["messages"][0]["content"] = json!([{"type": "image", "source":
        {"type": "url", "url": "https://pics.example/a.png"}}]);
    let host = HostCan { fetch: true, ..HOST };
    let mut exchange = Exchange::new(drive::config(config), SEED, host);
    exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
    let call = exchange.request(body.to_string().as_bytes(), NOW).unwrap();
    assert!(matches!(call.to, To::Web(_)));
    let mut client =
        Waiting { exchange, heads: Vec::new(), out: Vec::new(), asked: Vec::new(), now: NOW };
    client.head(200);
    client.pieces([&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0"[..]]);
    client.end();
    assert!(client.again() && client.asked[0].to_string().contains("base64,"));
    client.head(200);
    assert_eq!(client.silence(), PING);
    client.pieces([format!("data: {}\n\n", error(NO_VISION)).as_bytes()]);
    assert!(client.again() && !client.asked[1].to_string().contains("base64,"));
    client.head(200);
    client.pieces([text_of("openai", "Hi").as_bytes()]);
    client.end();
    client.check_text("Hi");
}

#[test]
fn the_judge_is_asked_behind_a_retry_behind_a_ping() {
    let config = r#"{"safeguards": {"model": "guard"}}"#;
    let mut body = seeing();
    body["safeguards"] = json!([{"type": "dangerous_tool_use", "classifier_context": {"v": 1}}]);
    let mut client = Waiting::new(HOST, config, &body);
    client.head(200);
    assert_eq!(client.silence(), PING);
    client.pieces([format!("data: {}\n\n", error(NO_VISION)).as_bytes()]);
    assert!(client.again());
    client.head(200);
    assert_eq!(client.silence(), PING);
    let call = json!({"index": 0, "id": "call_a", "function": {"name": "shot", "arguments": "{}"}});
    let call = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]});
    client.pieces([format!("data: {call}\n\ndata: [DONE]\n\n").as_bytes()]);
    client.end();
    assert!(client.again() && client.asked[2]["model"] == "guard");
    assert!(client.silence().starts_with("event: ping\n"));
    client.refuse(500, "no judge");
    assert!(client.exchange.is_ended() && client.heads.len() == 1);
    let names: Vec<_> =
        grammar::events(&client.out).unwrap().into_iter().map(|event| event.name).collect();
    assert_eq!(names.first().unwrap(), "message_start");
    assert_eq!(names.last().unwrap(), "message_stop");
    assert_eq!(client.exchange.report().judge.unwrap().result, "error");
}
