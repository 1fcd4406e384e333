//! Calls with ids: which events count, and that polls harm nothing.

use std::collections::VecDeque;

use creole::{CallId, DocumentText, Exchange, To};

use super::*;

const CONFIG: &str = r#"{
    "upstreams": {"main": {"url": "http://main", "profile_overrides": {"image_parts": "data"}}},
    "fetch_images": {"hosts": ["*.a.example"]}
}"#;
fn host() -> HostCan {
    HostCan { ping: Pings::Sent, ask_again: true, fetch: true, ..HostCan::default() }
}
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n01234567";
const REFUSAL: &[u8] = br#"{"error":{"message":"Unsupported parameter: 'temperature'","type":"invalid_request_error","param":"temperature","code":"unsupported_parameter"}}"#;
const STREAM: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Results of the polls of a host.
#[derive(Debug, Default, PartialEq)]
struct Polled {
    heads: Vec<Head>,
    body: Vec<u8>,
    calls: Vec<Call>,
    cancelled: Vec<CallId>,
}

impl Polled {
    /// Polls everything, in an order that the number chooses.
    fn poll(&mut self, exchange: &mut Exchange, order: u64) {
        for at in 0..5 {
            match (order + at) % 5 {
                0 => self.cancelled.extend(exchange.poll_cancel().map(|(id, _)| id)),
                1 => self.calls.extend(exchange.poll_call(NOW)),
                2 => self.heads.extend(exchange.poll_head()),
                3 => exchange.poll_body(&mut self.body),
                _ => drop(exchange.poll_timeout()),
            }
        }
    }
}

/// Runs an exchange whose image is fetched, and whose upstream refuses a parameter and then
/// answers. `after` is called after each event, with the calls that were made.
fn run(after: &mut dyn FnMut(&mut Exchange, &mut Polled)) -> Polled {
    let mut exchange = Exchange::new(drive::config(CONFIG), SEED, host());
    let mut polled = Polled::default();
    exchange.handle_request_head("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
    after(&mut exchange, &mut polled);
    let image = json!({"type": "image", "source": {"type": "url", "url": "https://i.a.example/1"}});
    let body = json!({"model": "m", "max_tokens": 9, "stream": true, "temperature": 0.5,
        "messages": [{"role": "user", "content": [image, {"type": "text", "text": "?"}]}]});
    exchange.handle_request_body(body.to_string().into_bytes(), NOW);
    after(&mut exchange, &mut polled);
    let mut answers = VecDeque::from([(200, PNG), (400, REFUSAL), (200, STREAM)]);
    for at in 0.. {
        let Some(Call { id, .. }) = polled.calls.get(at) else { break };
        let (id, (status, answer)) = (*id, answers.pop_front().unwrap());
        exchange.handle_call_head(id, status, &[], NOW);
        after(&mut exchange, &mut polled);
        for piece in answer.chunks(20) {
            exchange.handle_call_body(id, piece, NOW);
            after(&mut exchange, &mut polled);
        }
        exchange.handle_call_end(id, End::Complete, NOW);
        after(&mut exchange, &mut polled);
    }
    assert!(answers.is_empty() && exchange.is_ended());
    assert_eq!(polled.heads.len(), 1);
    assert!(String::from_utf8_lossy(&polled.body).contains("event: message_stop"));
    polled
}

/// Returns the results of polls in their usual order, twice after each event.
fn usual() -> Polled {
    run(&mut |exchange, polled| {
        polled.poll(exchange, 0);
        polled.poll(exchange, 0);
    })
}

#[test]
fn polls_in_any_order_after_every_event_give_the_same_bytes() {
    let usual = usual();
    assert_eq!(usual.calls.len(), 3);
    assert!(matches!(usual.calls[0].to, To::Web(_)));
    assert_eq!(usual.calls[2].upstream(), Some("main"));
    for seed in 0..200_u64 {
        let mut random = seed;
        let polled = run(&mut |exchange, polled| {
            for _ in 0..1 + random % 3 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                polled.poll(exchange, random >> 33);
            }
            while let Some(call) = exchange.poll_call(NOW) {
                polled.calls.push(call);
            }
        });
        assert_eq!((polled.heads, polled.body), (usual.heads.clone(), usual.body.clone()));
        assert_eq!(polled.calls, usual.calls, "seed {seed}");
    }
}

#[test]
fn events_of_a_call_that_is_not_open_change_nothing() {
    let polled = run(&mut |exchange, polled| {
        polled.poll(exchange, 0);
        let is_ended = exchange.is_ended();
        let over = polled.calls.iter().rev().skip(1).map(|call| call.id);
        for id in over.chain([CallId(0), CallId(99)]).collect::<Vec<_>>() {
            exchange.handle_call_head(id, 500, &[], NOW);
            exchange.handle_call_body(id, b"{}", NOW);
            exchange.handle_call_failure(id, Failure::BrokeOff, NOW);
            exchange.handle_document(id, Ok(DocumentText::whole("text".to_owned())));
            exchange.handle_call_end(id, End::Aborted, NOW);
        }
        assert_eq!(exchange.is_ended(), is_ended);
        polled.poll(exchange, 0);
    });
    assert_eq!(polled, usual());
}

#[test]
fn a_call_that_the_host_has_not_ended_is_cancelled_once() {
    let mut exchange = Exchange::new(drive::config("{}"), SEED, host());
    exchange.handle_request_head("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
    let body = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"?"}]}"#;
    exchange.handle_request_body(body.to_vec(), NOW);
    let id = exchange.poll_call(NOW).unwrap().id;
    assert_eq!(exchange.poll_cancel(), None);
    exchange.handle_failure(Failure::Overloaded, NOW);
    assert_eq!(exchange.poll_cancel(), Some((id, Cancel::ReadOut)));
    assert_eq!(exchange.poll_cancel(), None);
    assert_eq!(exchange.poll_reply().unwrap().head.status, 529);
}
