//! Tests of the filter's module under every order of callbacks: pieces of every size, the end alone
//! or joined, trailers, ticks in between, many streams in one VM, and endings inside of a hostcall.
#![allow(clippy::panic, clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests")]

use creole_hosts::emulator::world::Side;
use creole_hosts::emulator::{Emulator, Rules, Stream, head_of};
use creole_hosts::suite::{self, FINISH, chunk, completion, messages};
use creole_hosts::{Answer, End, Got, Host as _, Request, Trial};
use serde_json::{Value, json};

fn emulator(config: &Value) -> Emulator {
    Emulator::new(config, Rules::default()).unwrap_or_else(|reason| panic!("{reason}"))
}

fn keyed() -> Value {
    suite::config(&["0001"], json!({}))
}

fn trial(request: Request, answer: Answer) -> Trial {
    Trial { key: "0001".to_owned(), request, answer }
}

/// Returns answers of the upstream, each with true for a streaming client, and the status that the
/// client must get.
fn answers() -> Vec<(bool, Answer, u16)> {
    let events = Answer::events([chunk("Hello"), chunk(" world"), FINISH.to_owned()]);
    let refusal = Answer::whole(429, "application/json", r#"{"error":{"message":"slow"}}"#);
    vec![
        (true, events.clone(), 200),
        (true, Answer { trailers: vec![("x-sum".to_owned(), "1".to_owned())], ..events }, 200),
        (false, Answer::json(completion("Hello")), 200),
        (true, Answer::json(completion("Hello")), 200),
        (true, refusal.clone(), 429),
        (false, refusal, 429),
        (true, Answer::whole(200, "text/html", "<html>no</html>"), 502),
        (false, Answer::whole(200, "application/json", ""), 502),
        (false, Answer::whole(204, "application/json", ""), 502),
    ]
}

/// Asserts that the reference answer, which the answers under all rules must equal, is itself
/// right.
fn assert_answered(got: &Got, stream: bool, status: u16) {
    assert_eq!((got.status, got.end), (status, End::Complete), "{}", got.text());
    if status != 200 {
        assert!(got.text().starts_with(r#"{"type":"error","error":{"type":""#), "{}", got.text());
        return;
    }
    let end =
        if stream { "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n" } else { "}" };
    assert!(got.text().contains("Hello") && got.text().ends_with(end), "{}", got.text());
}

/// Returns all ways in which Envoy can cut a body.
fn all_rules() -> impl Iterator<Item = Rules> {
    [0, 1, 2, 7, 64, 1000]
        .into_iter()
        .flat_map(|cut| [false, true].map(|end_apart| Rules { cut, end_apart, ..Rules::default() }))
}

#[test]
fn however_envoy_cuts_the_client_gets_the_same() {
    let emulator = emulator(&keyed());
    for (stream, answer, status) in answers() {
        for with_trailers in [false, true] {
            let mut request = messages("0001", stream, "hi");
            if with_trailers {
                request.headers.push(("content-length".into(), request.body.len().to_string()));
                request.trailers.push(("x-sum".to_owned(), "1".to_owned()));
                request.piece_bytes = 30;
            }
            let trial = trial(request, answer.clone());
            let reference = emulator.send(&trial);
            assert_answered(&reference, stream, status);
            let reference = suite::comparable(&reference);
            for rules in all_rules() {
                let got = suite::comparable(&emulator.send_under(&trial, rules));
                assert_eq!(got, reference, "{rules:?}");
            }
        }
    }
    emulator.with(|vm| {
        assert_eq!(vm.world().refused, Vec::<String>::new(), "Envoy would refuse this");
        assert!(vm.world().streams.is_empty());
    });
}

#[test]
fn without_paused_heads_every_body_is_the_same() {
    let config = json!({"pause_headers": false});
    let paused = emulator(&json!({}));
    let unpaused = emulator(&config);
    for (stream, answer, status) in answers() {
        let trial = trial(messages("0001", stream, "hi"), answer);
        let reference = paused.send(&trial);
        assert_answered(&reference, stream, status);
        for rules in all_rules() {
            let got = unpaused.send_under(&trial, Rules { stop_all: true, ..rules });
            if reference.status == 200 || got.status == reference.status {
                assert_eq!(got.end, reference.end, "{rules:?} {trial:?}");
                let (got, reference) = (same_body(&got.body), same_body(&reference.body));
                assert_eq!(got, reference, "{rules:?}");
            } else {
                // The head had left before the body turned out to be wrong.
                assert_eq!(got.status, 200);
                assert!(got.text().contains("\"type\":\"error\""), "{rules:?}: {}", got.text());
            }
        }
    }
    unpaused.with(|vm| assert_eq!(vm.world().refused, Vec::<String>::new()));
}

#[test]
fn a_timer_writes_what_the_callbacks_would() {
    let plain = emulator(&keyed());
    let deferred = emulator(&suite::config(&["0001"], json!({"deferred_flush": true})));
    for (stream, answer, status) in answers() {
        let trial = trial(messages("0001", stream, "hi"), answer);
        let reference = plain.send(&trial);
        assert_answered(&reference, stream, status);
        let reference = suite::comparable(&reference);
        for rules in all_rules() {
            let got = suite::comparable(&deferred.send_under(&trial, rules));
            assert_eq!(got, reference, "{rules:?}");
        }
    }
    deferred.with(|vm| {
        assert_eq!(vm.world().refused, Vec::<String>::new(), "Envoy would refuse this");
        assert!(vm.world().streams.is_empty());
        assert!(vm.world().tick_ms > 1, "the timer rests again");
    });
}

fn same_body(body: &[u8]) -> String {
    creole_hosts::ordinals::Ordinals::default().replace(body)
}

#[test]
fn without_paused_heads_a_bad_request_is_refused_and_sends_no_body() {
    let emulator = emulator(&json!({"pause_headers": false}));
    for rules in all_rules() {
        let request = Request::messages("{\"model\": 1}");
        let rules = Rules { stop_all: true, ..rules };
        let got = emulator.send_under(&trial(request, Answer::json("{}")), rules);
        got.assert_error(400, "invalid_request_error", "model");
        assert!(got.upstream.is_empty());
    }
}

#[test]
fn paused_heads_where_envoy_does_not_allow_them_are_seen_as_a_hang() {
    // This configuration hangs in a real Envoy, too.
    let emulator = emulator(&keyed());
    let trial = trial(messages("0001", true, "hi"), Answer::json(completion("x")));
    let got = emulator.send_under(&trial, Rules { stop_all: true, ..Rules::default() });
    assert_eq!((got.status, got.end), (0, End::Silent));
}

#[test]
fn streams_that_take_turns_in_one_vm_do_not_mix() {
    let emulator = emulator(&keyed());
    let rules = Rules::default();
    emulator.with(|vm| {
        let trials: Vec<Trial> = (0..20)
            .map(|number| {
                let word = format!("word{number}.");
                let events = [chunk(&word), chunk(&word), FINISH.to_owned()];
                trial(messages("0001", true, &word), Answer::events(events))
            })
            .collect();
        let mut streams: Vec<Stream> = trials.iter().map(|_| Stream::new(vm, rules)).collect();
        for (stream, trial) in streams.iter_mut().zip(&trials) {
            stream.request_headers(vm, head_of(trial, rules), false);
        }
        for (stream, trial) in streams.iter_mut().zip(&trials).rev() {
            stream.request_body(vm, &trial.request.body, true);
        }
        for (stream, trial) in streams.iter_mut().zip(&trials) {
            stream.response_headers(vm, 200, &trial.answer.headers, false);
        }
        for piece in 0..3 {
            for (number, (stream, trial)) in streams.iter_mut().zip(&trials).enumerate() {
                match number % 4 {
                    // Clients of some streams leave, and upstreams of others break.
                    1 if piece == 1 => stream.client_gone(vm),
                    2 if piece == 2 => stream.upstream_reset(vm),
                    _ => stream.response_body(vm, &trial.answer.pieces[piece], piece == 2),
                }
            }
            streams.first_mut().unwrap().tick(vm, 100);
        }
        for (number, stream) in streams.iter().enumerate() {
            let text = stream.got.text();
            let own = text.matches(&format!("word{number}.")).count();
            let (end, words) = match number % 4 {
                1 => (End::Aborted, 1),
                2 => (End::Aborted, 2),
                _ => (End::Complete, 2),
            };
            assert_eq!((stream.got.end, own), (end, words), "stream {number}: {text}");
            assert_eq!(text.matches("word").count(), own, "stream {number}: {text}");
        }
        assert!(vm.world().streams.is_empty());
        assert_eq!(vm.world().refused, Vec::<String>::new());
    });
}

#[test]
fn a_stream_that_ends_inside_of_a_hostcall_hurts_no_other() {
    let emulator = emulator(&keyed());
    let good = trial(messages("0001", true, "hi"), answers().remove(0).1);
    let reference = suite::comparable(&emulator.send(&good));
    for side in [Side::Request, Side::Response] {
        emulator.with(|vm| {
            let mut stream = Stream::new(vm, Rules::default());
            stream.request_headers(vm, head_of(&good, Rules::default()), false);
            vm.world_mut().end_in_set_buffer = side == Side::Request;
            stream.request_body(vm, &good.request.body, true);
            if side == Side::Response {
                stream.response_headers(vm, 200, &good.answer.headers, false);
                vm.world_mut().end_in_set_buffer = true;
                stream.response_body(vm, &good.answer.pieces[0], false);
            }
            assert!(stream.is_over(), "{side:?}");
            assert!(vm.world().streams.is_empty());
        });
        assert_eq!(suite::comparable(&emulator.send(&good)), reference, "after {side:?}");
    }
}

#[test]
fn a_silent_upstream_is_answered_for_when_its_time_is_over() {
    let emulator = emulator(&suite::config(&["0001"], json!({"stall_timeout_ms": 5000})));
    let mut answer = Answer::events([chunk("Hello")]);
    answer.end = End::Silent;
    let got = emulator.send(&trial(messages("0001", true, "hi"), answer));
    assert_eq!((got.status, got.end), (200, End::Aborted), "{}", got.text());
    let mut answer = Answer::events([""]);
    answer.end = End::Silent;
    let got = emulator.send(&trial(messages("0001", true, "hi"), answer));
    got.assert_error(504, "timeout_error", "");
}

#[test]
fn an_upstream_that_goes_on_after_its_end_keeps_nobody_waiting() {
    let emulator = emulator(&keyed());
    let mut answer = Answer::events([chunk("Hello"), FINISH.to_owned()]);
    answer.end = End::Silent;
    let since = emulator.with(|vm| vm.world().now_ms);
    let got = emulator.send(&trial(messages("0001", true, "hi"), answer));
    assert!(got.text().contains("message_stop"));
    assert_ne!(got.end, End::Silent);
    let waited = emulator.with(|vm| vm.world().now_ms) - since;
    assert!(waited < 5000, "{waited} ms");
}

#[test]
fn a_refused_configuration_names_its_path() {
    let refused = |config| Emulator::new(&config, Rules::default()).err().unwrap();
    let reason = refused(json!({"stall_timeout_mss": 1}));
    assert!(reason.contains("stall_timeout_mss"), "{reason}");
    let reason = refused(json!({"upstreams": {"a": {"profile": "x"}}}));
    assert!(reason.contains("upstreams.a.profile"), "{reason}");
}

#[test]
fn a_secret_is_a_variable_of_the_vm() {
    let with_secret = |name: &str| {
        let mut config = keyed();
        config["upstreams"]["0001"]["key"] = json!({"secret": name});
        config
    };
    let trial = trial(messages("0001", false, "hi"), Answer::json(completion("Hello")));
    let got = emulator(&with_secret("UPSTREAM_KEY")).send(&trial);
    let head = &got.upstream.first().unwrap().headers;
    let sent = head.iter().find(|(name, _)| name == "authorization").map(|(_, value)| value);
    assert_eq!(sent.map(String::as_str), Some("Bearer sk=emulated"));
    for name in ["UPSTREAM_KE", "KEY", "UPSTREAM_KEY=sk", ""] {
        let refused = Emulator::new(&with_secret(name), Rules::default()).err();
        assert!(refused.is_some_and(|reason| reason.contains("upstreams.0001.key")), "{name}");
    }
}
