//! Costs of bodies that are full of the smallest elements: memory, time, and bytes sent.

use std::sync::Arc;

use creole::{Config, End, Exchange, HostCan, RequestHead};

use crate::meter::{assert_ratio, most_held_by, processor_time_of};
use crate::smallest::{self, Hole};

/// Body sizes in bytes: small for the first try of every body, and large for the most costly
/// bodies.
const SMALL: usize = 24 << 10;
const LARGE: usize = if cfg!(debug_assertions) { 3 << 18 } else { 8 << 20 };

/// Number of the worst bodies that are tried again with a large size.
const WORST: usize = 10;

/// Maximum ratio of the costs of a byte in a large and a small body. Work that is not linear costs
/// as many times as much as the body is larger.
const RATIO_MAX: f64 = 4.0;

/// Limit of the bytes held, and of those sent: `times` for each byte of a body, and `any` more for
/// every body.
#[derive(Clone, Copy)]
struct Most {
    times: usize,
    any: usize,
}

const MOST: Most = Most { times: 8, any: 1 << 20 };

/// Limit for Responses. The names and texts of an item are kept until the answer ends, because the
/// whole item may come again: a kilobyte for each of 4,096 items. The shortest part of an item is
/// shorter than any part of Chat Completions.
const MOST_OF_RESPONSES: Most = Most { times: 12, any: 4 << 20 };

const CHAT: &str = r#"{"upstreams":{"u":{"url":"http://u"}}}"#;
const MESSAGES: &str = r#"{"upstreams":{"u":{"url":"http://u","protocol":"anthropic"}}}"#;
const RESPONSES: &str = r#"{"upstreams":{"u":{"url":"http://u","protocol":"responses"}}}"#;

fn config(json: &str) -> Arc<Config> {
    Arc::new(Config::from_json(json, |_| None).expect("it is a configuration"))
}

/// Measured cost of one body.
struct Cost {
    input: usize,
    held: usize,
    sent: usize,
    time: u64,
    status: u16,
}

impl Cost {
    /// Measures one body. `work` takes the body, as hosts give it away, and returns the status and
    /// the number of bytes that are sent.
    fn of(body: &str, work: &dyn Fn(String) -> (u16, usize)) -> Self {
        let (mut result, mut time, given) = ((0, 0), 0, body.to_owned());
        let held = most_held_by(|| time = processor_time_of(|| result = work(given)));
        Self { input: body.len(), held, sent: result.1, time, status: result.0 }
    }

    fn nanoseconds(&self) -> f64 {
        self.time as f64 / self.input as f64
    }

    fn check(&self, what: &str, most: Most) {
        let most = self.input * most.times + most.any;
        assert!(self.held <= most, "{what}: {} bytes held for {}", self.held, self.input);
        assert!(self.sent <= most, "{what}: {} bytes sent for {}", self.sent, self.input);
    }

    fn print(&self, what: &str) {
        let times = |bytes: usize| bytes as f64 / self.input as f64;
        println!(
            "  {:>6.1} held {:>6.1} sent {:>7.1} ns a byte  {}  {what}",
            times(self.held),
            times(self.sent),
            self.nanoseconds(),
            self.status
        );
    }
}

/// Measures every filling of every hole, and the most costly ones with large bodies.
fn measure(name: &str, most: Most, holes: &[Hole], work: &dyn Fn(String) -> (u16, usize)) {
    let mut costs = Vec::new();
    for hole in holes {
        for filling in hole.fillings() {
            let what = format!("{} of {}", hole.name, filling.text());
            let cost = Cost::of(&hole.body(filling, SMALL), work);
            cost.check(&what, most);
            costs.push((cost, what, hole, filling));
        }
    }
    println!("{name}: {} bodies", costs.len());
    costs.sort_by_key(|(cost, ..)| std::cmp::Reverse(cost.held));
    for (_, what, hole, filling) in costs.iter().take(WORST) {
        // Most memory is held just below a limit on numbers, where the body is not refused yet.
        let mut bytes = LARGE;
        while bytes > SMALL {
            let cost = Cost::of(&hole.body(filling, bytes), work);
            cost.check(what, most);
            if cost.status == 200 {
                cost.print(what);
                break;
            }
            bytes = bytes * 3 / 4;
        }
    }
    costs.sort_by_key(|(cost, ..)| std::cmp::Reverse(cost.time));
    for (_, what, hole, filling) in costs.iter().take(WORST / 2) {
        let (small, large) = (hole.body(filling, SMALL), hole.body(filling, LARGE));
        let of = |body: &str| Cost::of(body, work).nanoseconds();
        assert_ratio(what, RATIO_MAX, || of(&small), || of(&large));
    }
}

/// Returns the status and size of the upstream's request, or of the reply.
fn request(config: &Arc<Config>, path: &str, body: String) -> (u16, usize) {
    let mut exchange = Exchange::new(Arc::clone(config), 7, HostCan::default());
    let headers = [("x-api-key".to_owned(), "k".to_owned())];
    let head = exchange.handle_request_head("POST", path, &headers);
    assert!(matches!(head, RequestHead::Translate));
    exchange.handle_request_body(body.into_bytes(), 0);
    match exchange.poll_call(0) {
        Some(call) => (200, call.body.len()),
        None => {
            let reply = exchange.poll_reply().expect("it is refused");
            (reply.head.status, reply.body.len())
        }
    }
}

/// Measures requests, each translated and counted.
fn measure_requests(name: &str, json: &str) {
    let config = config(json);
    let holes = smallest::of_requests();
    measure(name, MOST, &holes, &|body| request(&config, "/v1/messages", body));
    let path = "/v1/messages/count_tokens";
    measure(&format!("{name} for counts"), MOST, &holes, &|body| request(&config, path, body));
}

/// Measures answers, for a client that wants a stream and for one that does not. `body_of` makes
/// the upstream's body.
fn measure_answers(name: &str, json: &str, holes: &[Hole], body_of: impl Fn(&str) -> String) {
    let config = config(json);
    for stream in [true, false] {
        let asked = format!(
            "{{\"model\":\"m\",\"max_tokens\":9,\"stream\":{stream},\"thinking\":{{\"type\":\"adaptive\"}},\"messages\":[{{\"role\":\"user\",\
             \"content\":\"a\"}}],\"tools\":[{{\"name\":\"w\",\"input_schema\":{{}}}}]}}"
        );
        let name = format!("{name} (stream: {stream})");
        let most = if json == RESPONSES { MOST_OF_RESPONSES } else { MOST };
        measure(&name, most, holes, &|data| answer(&config, &asked, &body_of(&data)));
    }
}

/// Returns the status and size of the client's answer.
fn answer(config: &Arc<Config>, asked: &str, body: &str) -> (u16, usize) {
    let mut exchange = Exchange::new(Arc::clone(config), 7, HostCan::default());
    let headers = [("x-api-key".to_owned(), "k".to_owned())];
    exchange.handle_request_head("POST", "/v1/messages", &headers);
    exchange.handle_request_body(asked.as_bytes().to_vec(), 0);
    let call = exchange.poll_call(0).expect("it is a right request");
    exchange.handle_call_head(call.id, 200, &[], 1);
    let (mut out, mut sent, mut status) = (Vec::new(), 0, 0);
    for piece in body.as_bytes().chunks(16 << 10) {
        exchange.handle_call_body(call.id, piece, 2);
        exchange.poll_body(&mut out);
        status = exchange.poll_head().map_or(status, |head| head.status);
        sent += out.len();
        out.clear();
    }
    exchange.handle_call_end(call.id, End::Complete, 3);
    exchange.poll_body(&mut out);
    (exchange.poll_head().map_or(status, |head| head.status), sent + out.len())
}

fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

#[test]
fn no_request_of_the_smallest_things_holds_or_sends_many_times_its_bytes() {
    measure_requests("requests", CHAT);
}

#[test]
fn no_request_for_an_upstream_of_messages_holds_or_sends_many_times_its_bytes() {
    measure_requests("requests for Messages", MESSAGES);
}

#[test]
fn no_request_for_an_upstream_of_responses_holds_or_sends_many_times_its_bytes() {
    measure_requests("requests for Responses", RESPONSES);
}

#[test]
fn no_answer_of_the_smallest_things_holds_or_sends_many_times_its_bytes() {
    measure_answers("whole answers", CHAT, &smallest::of_chat(true), str::to_owned);
    let messages = smallest::of_messages(false);
    measure_answers("whole messages", MESSAGES, &messages, str::to_owned);
    let responses = smallest::of_responses(false);
    measure_answers("whole responses", RESPONSES, &responses, str::to_owned);
}

const BLOCK_START: &str =
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;

#[test]
fn no_event_of_the_smallest_things_holds_or_sends_many_times_its_bytes() {
    measure_answers("chunks", CHAT, &smallest::of_chat(false), |data| {
        event(data)
            + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
    });
    let start = r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"k","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}"#;
    measure_answers("events of Messages", MESSAGES, &smallest::of_messages(true), |data| {
        let begins = data.starts_with(r#"{"message""#) || data.contains(r#""message_start""#);
        let extends = data.contains(r#""content_block_delta""#);
        (if begins { String::new() } else { event(start) })
            + &(if extends { event(BLOCK_START) } else { String::new() })
            + &event(data)
            + &event(
                r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#,
            )
            + &event(r#"{"type":"message_stop"}"#)
    });
    let end = r#"{"type":"response.completed","response":{"object":"response","status":"completed","output":[]}}"#;
    measure_answers("events of Responses", RESPONSES, &smallest::of_responses(true), |data| {
        let ends = data.contains(r#""response.completed""#);
        event(data) + &(if ends { String::new() } else { event(end) })
    });
}
