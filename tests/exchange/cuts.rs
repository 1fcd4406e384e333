//! Stop sequences that the upstream does not know: the text is cut here, and the upstream goes on.

use super::*;

const UNTOLD: &str = r#"{"upstreams":{"u":{"profile_overrides":{"stop":false}}}}"#;

fn stopping(stream: bool) -> Vec<u8> {
    let mut body: Value = serde_json::from_slice(&ask(stream)).unwrap();
    body["stop_sequences"] = json!(["END"]);
    body.to_string().into_bytes()
}

fn piece(text: &str) -> Vec<u8> {
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {chunk}\n\n").into_bytes()
}

fn last_counts(body: &[u8]) -> (u64, u64) {
    let events = grammar::check_stream(body, Rules::default()).unwrap();
    assert_eq!(events.last().unwrap().name, "message_stop");
    let delta = &events[events.len() - 2].data;
    assert_eq!(delta["delta"]["stop_reason"], "stop_sequence");
    assert_eq!(delta["delta"]["stop_sequence"], "END");
    let count = |name: &str| delta["usage"][name].as_u64().unwrap();
    (count("input_tokens"), count("output_tokens"))
}

/// An exchange whose text was just cut, with what the client has.
fn cut(pings: Pings) -> (Exchange, Vec<u8>) {
    let (mut exchange, request) = started(&drive::config(UNTOLD), pings, &stopping(true));
    let sent: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(sent.get("stop"), None);
    let mut body = Vec::new();
    exchange.handle_call_head(200, &[], NOW);
    exchange.piece(&piece("Hello END and"), NOW, &mut body);
    assert!(!exchange.is_ended());
    (exchange, body)
}

#[test]
fn an_upstream_that_goes_on_behind_a_cut_is_left_at_once() {
    for pings in [Pings::Sent, Pings::AfterHead, Pings::No] {
        let (mut exchange, mut body) = cut(pings);
        let mut now = NOW;
        while !exchange.is_ended() {
            now += 10;
            exchange.piece(&piece(" more"), now, &mut body);
            assert!(now <= NOW + 200, "{pings:?} reads on");
        }
        assert!(exchange.poll_cancel() == Some(Cancel::Cut), "{pings:?}");
        // What is estimated is what came until the cut.
        assert_eq!(last_counts(&body).1, 4);
        assert_eq!(exchange.report().cause(), "stop_sequence");
        let warnings = exchange.report().warnings;
        assert!(warnings.iter().any(|warning| warning.code == "usage_estimated"));
        // Nothing that still comes changes that.
        let length = body.len();
        exchange.piece(&piece(" more"), now + 10, &mut body);
        exchange.end(End::Aborted, now + 20, &mut body);
        assert_eq!((body.len(), exchange.poll_cancel()), (length, None));
    }
}

#[test]
fn an_upstream_that_is_silent_behind_a_cut_is_left_by_the_timer_where_the_host_can_write() {
    for (pings, end) in [(Pings::Sent, 200), (Pings::AfterHead, 200), (Pings::No, 10_000)] {
        let (mut exchange, mut body) = cut(pings);
        assert_eq!(exchange.poll_timeout(), Some(NOW + end), "{pings:?}");
        exchange.timeout(NOW + end - 1, &mut body);
        assert!(!exchange.is_ended());
        exchange.timeout(NOW + end, &mut body);
        assert!(exchange.is_ended() && exchange.poll_cancel() == Some(Cancel::Cut));
        last_counts(&body);
    }
}

#[test]
fn counts_that_come_at_once_behind_a_cut_are_taken() {
    let (mut exchange, mut body) = cut(Pings::Sent);
    exchange.piece(&piece(" so on"), NOW + 50, &mut body);
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 70, "completion_tokens": 30}});
    let stop = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]});
    let last = format!("data: {stop}\n\ndata: {usage}\n\ndata: [DONE]\n\n");
    exchange.piece(last.as_bytes(), NOW + 199, &mut body);
    assert!(exchange.is_ended() && exchange.poll_cancel() != Some(Cancel::Cut));
    assert_eq!(last_counts(&body), (70, 30));
}

#[test]
fn a_message_that_is_collected_ends_at_its_cut_too() {
    let (mut exchange, _) = started(&drive::config(UNTOLD), Pings::Sent, &stopping(false));
    let mut body = Vec::new();
    exchange.handle_call_head(200, &[], NOW);
    assert_eq!(exchange.piece(&piece("Hello END"), NOW, &mut body), None);
    let head = exchange.piece(&piece(" more"), NOW + 300, &mut body).unwrap();
    assert_eq!((head.status, exchange.poll_cancel()), (200, Some(Cancel::Cut)));
    let message: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(message["content"][0]["text"], "Hello ");
    assert_eq!(message["stop_sequence"], "END");
}

#[test]
fn an_answer_that_ends_by_itself_leaves_no_upstream() {
    let (mut exchange, _) = started(&drive::config("{}"), Pings::Sent, &ask(true));
    let mut body = Vec::new();
    exchange.handle_call_head(200, &[], NOW);
    exchange.piece(&stopped("Hi"), NOW, &mut body);
    let mut now = NOW;
    while !exchange.is_ended() {
        now = exchange.poll_timeout().unwrap();
        exchange.timeout(now, &mut body);
    }
    assert!(now >= NOW + 10_000 && exchange.poll_cancel() != Some(Cancel::Cut));
}
