//! With `deferred_flush`, streams are written by the timer, also while the upstream is silent.
#![allow(clippy::arithmetic_side_effects, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod envoy;

use creole_envoy::action::{Action, Decision, Flow, Side};
use envoy::{Envoy, MESSAGES, header, text};

const REQUEST: &[u8] =
    br#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
const CHUNK: &[u8] =
    b"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"one\"}}]}\n\n";
const LAST: &[u8] = b"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// A stream whose first piece has come.
fn begun(config: &str) -> (Envoy, Decision) {
    let mut envoy = Envoy::new(config);
    envoy.request("POST", MESSAGES, &[header("x-api-key", "k")], false);
    envoy.body(REQUEST, true);
    let event_stream = [header("content-type", "text/event-stream")];
    envoy.head(200, &event_stream, false, "via_upstream");
    let first = envoy.answer(CHUNK, false);
    (envoy, first)
}

/// What a tick writes for the stream, and whether the timer is set back.
fn ticked(envoy: &mut Envoy, now: u64) -> (String, Option<u32>) {
    let (mut out, mut period) = (String::new(), None);
    for (id, actions) in envoy.tick(now) {
        match actions.as_slice() {
            [Action::ReplaceBody(Side::Response, bytes), Action::ContinueResponse] => {
                assert_eq!(id, envoy.id);
                out.push_str(text(bytes));
            }
            [Action::SetTickPeriod { period_ms }] => period = Some(*period_ms),
            other => panic!("{other:?}"),
        }
    }
    (out, period)
}

#[test]
fn a_tick_writes_what_the_pieces_gave() {
    let (mut envoy, first) = begun(r#"{"deferred_flush": true}"#);
    assert_eq!(first.flow, Flow::Pause);
    let [Action::ReplaceHeaders(Side::Response, head), rest @ ..] = first.actions.as_slice() else {
        panic!("{first:?}")
    };
    assert_eq!(head[0], header(":status", "200"));
    let drained = Action::ReplaceBody(Side::Response, Vec::new());
    assert_eq!(rest, [drained.clone(), Action::SetTickPeriod { period_ms: 1 }]);
    let now = envoy.now;
    let (out, period) = ticked(&mut envoy, now + 1);
    assert!(out.starts_with("event: message_start\n") && out.contains("one"), "{out}");
    assert_eq!(period, Some(1000), "nothing else waits");
    assert_eq!(ticked(&mut envoy, now + 2), (String::new(), None));
    // Two pieces, one write, one timer.
    let hurry = Action::SetTickPeriod { period_ms: 1 };
    assert_eq!(envoy.answer(CHUNK, false), Decision::pause(vec![drained.clone(), hurry]));
    assert_eq!(envoy.answer(LAST, false), Decision::pause(vec![drained]));
    assert!(envoy.filter.held_bytes() > 0);
    assert_eq!(envoy.answer(b"", true), Decision::pause(Vec::new()));
    let (out, _) = ticked(&mut envoy, now + 3);
    assert!(out.contains("one") && out.ends_with("data: {\"type\":\"message_stop\"}\n\n"), "{out}");
    assert_eq!(envoy.filter.held_bytes(), 0);
    assert_eq!(ticked(&mut envoy, now + 4), (String::new(), None));
}

#[test]
fn a_silent_upstream_gives_pings_and_then_an_error_event() {
    let config = r#"{"deferred_flush": true, "ping_interval_ms": 1000, "stall_timeout_ms": 2500}"#;
    let (mut envoy, _) = begun(config);
    let start = envoy.now;
    ticked(&mut envoy, start + 1);
    let ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
    assert_eq!(ticked(&mut envoy, start + 1001), (ping.to_owned(), None));
    assert_eq!(ticked(&mut envoy, start + 2001), (ping.to_owned(), None));
    let (out, _) = ticked(&mut envoy, start + 2500);
    assert!(out.starts_with("event: error\n") && out.contains("timeout_error"), "{out}");
    assert!(!out.contains("content_block_stop"), "{out}");
    // What is written right before a reset would be lost.
    assert_eq!(ticked(&mut envoy, start + 2600), (String::new(), None));
    assert_eq!(envoy.tick(start + 2700), [(envoy.id, vec![Action::CloseStream])]);
    assert!(envoy.lines("x").iter().any(|(_, line)| line.contains(r#""guards":"stall""#)));
}

#[test]
fn what_waits_for_a_tick_counts_once_and_not_without_limit() {
    let text = "x".repeat(1000);
    let chunk = format!(
        "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
    );
    let (mut envoy, _) = begun(r#"{"deferred_flush": true, "buffered_bytes_max": 2000}"#);
    envoy.answer(chunk.as_bytes(), false);
    let waiting = envoy.filter.held_bytes();
    assert!((1001..2000).contains(&waiting), "{waiting}");
    // Pieces that give nothing.
    for _ in 0..100 {
        assert_eq!(envoy.answer(b": still here\n\n", false).flow, Flow::Pause);
    }
    assert_eq!(envoy.filter.held_bytes(), waiting);
    let now = envoy.now;
    let (out, _) = ticked(&mut envoy, now + 1);
    assert!(out.len() == waiting && out.contains(&text), "{out}");
    assert_eq!(envoy.filter.held_bytes(), 0);
    // No tick comes, and there is no room for more.
    for _ in 0..3 {
        envoy.answer(chunk.as_bytes(), false);
    }
    let (out, _) = ticked(&mut envoy, now + 2);
    assert!(out.contains("event: error\n") && out.contains("overloaded_error"), "{out}");
    assert_eq!(envoy.filter.held_bytes(), 0);
}

#[test]
fn without_it_pieces_are_written_at_once() {
    let (_, first) = begun("{}");
    assert_eq!(first.flow, Flow::Continue);
}

#[test]
fn answers_that_are_no_streams_are_written_at_once() {
    let (mut envoy, _) = begun(r#"{"deferred_flush": true}"#);
    envoy.next_stream();
    envoy.request("POST", MESSAGES, &[header("x-api-key", "k")], false);
    let whole = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
    envoy.body(whole, true);
    envoy.head(200, &[], false, "via_upstream");
    let answer =
        br#"{"id":"c","choices":[{"index":0,"finish_reason":"stop","message":{"content":"hi"}}]}"#;
    assert_eq!(envoy.answer(answer, true).flow, Flow::Continue);
}
