//! The filter without a host, where a request is translated: what goes where and when. What the
//! bytes say is the core's matter and is tested there.

mod envoy;

use creole::observe::log::Level;
use creole_envoy::action::{Action, Decision, Flow, Side};
use creole_envoy::heads::ROUTING_HEADER;
use envoy::{Envoy, MESSAGES, header, local, replaced, text, written};

const REQUEST: &str =
    r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hello"}]}"#;
const STREAM: &str =
    r#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"Hello"}]}"#;
const ANSWER: &str = r#"{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}"#;
const CHUNKS: [&str; 3] = [
    "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hi\"}}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" you\"},\"finish_reason\":null}]}\n\n",
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
];
const PAUSED: &str = "{}";
const UNPAUSED: &str = r#"{"pause_headers": false}"#;

fn key() -> Vec<creole::Header> {
    vec![header("x-api-key", "sk-client"), header("anthropic-version", "2023-06-01")]
}

/// An exchange whose request has gone to the upstream.
fn sent(config: &str, body: &str) -> Envoy {
    let mut envoy = Envoy::new(config);
    envoy.request("POST", MESSAGES, &key(), false);
    assert_eq!(envoy.body(body.as_bytes(), true).flow, Flow::Continue);
    envoy
}

fn value<'a>(head: &'a [creole::Header], name: &str) -> Option<&'a str> {
    head.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

#[test]
fn without_a_model_map_the_upstream_is_asked_for_its_models() {
    let list = br#"{"object":"list","data":[{"id":"qwen3","object":"model"}]}"#;
    for config in [PAUSED, UNPAUSED] {
        for (status, body, expected) in [
            (200, &list[..], r#"{"data":[{"type":"model","id":"qwen3","#),
            (404, b"no", r#"{"data":[],"#),
        ] {
            let mut envoy = Envoy::new(config);
            let decision = envoy.request("GET", "/v1/models?limit=1000", &key(), true);
            assert_eq!(decision.flow, Flow::Continue);
            let head = replaced(&decision, Side::Request);
            assert_eq!(value(&head, ":path"), Some("/v1/models"));
            assert_eq!(value(&head, ":method"), Some("GET"));
            assert_eq!(value(&head, "authorization"), Some("Bearer sk-client"));
            assert_eq!(value(&head, ROUTING_HEADER), Some("default"));
            assert_eq!(value(&head, "content-type"), None);
            envoy.head(status, &[], false, "via_upstream");
            let decision = envoy.answer(body, true);
            let told = written(&decision, Side::Response, b"");
            assert!(text(&told).starts_with(expected), "{}", text(&told));
        }
    }
    // One that is not there costs the names alone.
    let mut envoy = Envoy::new(PAUSED);
    envoy.request("GET", "/v1/models", &key(), true);
    let decision = envoy.head(503, &[], true, "upstream_reset_before_response_started");
    assert_eq!(local(&decision).status, 200);
    // A client without a version may be one of another service.
    let mut envoy = Envoy::new(PAUSED);
    let decision = envoy.request("GET", "/v1/models", &[header("x-api-key", "k")], true);
    assert_eq!(local(&decision).status, 200);
}

#[test]
fn a_request_goes_on_whole_with_its_head_however_it_is_cut() {
    let mut whole = None;
    for cut in 0..=REQUEST.len() {
        for joined in [true, false] {
            let mut envoy = Envoy::new(PAUSED);
            let decision = envoy.request("POST", "/v1/messages?beta=true", &key(), false);
            assert_eq!(decision, Decision::stop(Vec::new()), "the head waits");
            let (first, second) = REQUEST.as_bytes().split_at(cut);
            let decision = envoy.body(first, false);
            assert_eq!(decision.flow, Flow::Stop);
            assert!(written(&decision, Side::Request, first).is_empty(), "Envoy keeps nothing");
            let decision = if joined {
                envoy.body(second, true)
            } else {
                assert_eq!(envoy.body(second, false).flow, Flow::Stop);
                envoy.body(b"", true)
            };
            assert_eq!(decision.flow, Flow::Continue);
            let body = written(&decision, Side::Request, b"");
            let head = replaced(&decision, Side::Request);
            assert_eq!(value(&head, "content-length"), Some(body.len().to_string().as_str()));
            assert_eq!(value(&head, ":path"), Some("/v1/chat/completions"));
            assert_eq!(value(&head, ":method"), Some("POST"));
            assert_eq!(value(&head, ROUTING_HEADER), Some("default"));
            assert_eq!(value(&head, "x-api-key"), None);
            assert_eq!(value(&head, "anthropic-version"), None);
            assert_eq!(envoy.filter.held_bytes(), 0);
            assert_eq!(whole.get_or_insert_with(|| body.clone()), &body);
        }
    }
}

#[test]
fn a_body_as_long_as_announced_needs_no_end_and_survives_trailers() {
    let mut envoy = Envoy::new(PAUSED);
    let mut headers = key();
    headers.push(header("content-length", &REQUEST.len().to_string()));
    envoy.request("POST", MESSAGES, &headers, false);
    assert_eq!(envoy.body(REQUEST.as_bytes(), false).flow, Flow::Continue);
    assert_eq!(envoy.filter.on_request_trailers(envoy.id, 1), Decision::pass());
    assert_eq!(envoy.body(b"", true), Decision::pass());
}

#[test]
fn the_model_chooses_the_route() {
    let config = r#"{"upstreams": {"a": {"url": "https://a.example"}, "b": {"cluster": "blue", "base_path": "/x"}},
        "models": {"m": {"upstream": "b", "model": "big"}, "*": {"upstream": "a"}}}"#;
    let mut envoy = Envoy::new(config);
    envoy.request("POST", MESSAGES, &key(), false);
    let decision = envoy.body(REQUEST.as_bytes(), true);
    let head = replaced(&decision, Side::Request);
    assert_eq!(value(&head, ROUTING_HEADER), Some("blue"));
    assert_eq!(value(&head, ":path"), Some("/x/chat/completions"));
    assert_eq!(value(&head, ":authority"), Some("gateway"));
    envoy.next_stream();
    envoy.request("POST", MESSAGES, &key(), false);
    let decision = envoy.body(REQUEST.replace("\"m\"", "\"other\"").as_bytes(), true);
    let head = replaced(&decision, Side::Request);
    assert_eq!(value(&head, ROUTING_HEADER), Some("a"));
    assert_eq!(value(&head, ":authority"), Some("a.example"));
}

#[test]
fn without_paused_heads_the_body_follows_its_head() {
    let mut envoy = Envoy::new(UNPAUSED);
    let decision = envoy.request("POST", MESSAGES, &key(), false);
    assert_eq!(decision.flow, Flow::Continue);
    let head = replaced(&decision, Side::Request);
    assert!(value(&head, "authorization").is_some_and(|value| value.ends_with("sk-client")));
    let decision = envoy.body(REQUEST.as_bytes(), true);
    assert_eq!((decision.flow, decision.actions.len()), (Flow::Continue, 1));
    assert!(!written(&decision, Side::Request, b"").is_empty());
}

#[test]
fn an_answer_is_written_once_with_its_length_however_it_is_cut() {
    let mut whole = None;
    for cut in 0..=ANSWER.len() {
        for length in [true, false] {
            let mut envoy = sent(PAUSED, REQUEST);
            let headers = match length {
                true => vec![header("content-length", &ANSWER.len().to_string())],
                false => vec![header("server", "theirs")],
            };
            let decision = envoy.head(200, &headers, false, "via_upstream");
            assert_eq!(decision, Decision::stop(Vec::new()));
            let (first, second) = ANSWER.as_bytes().split_at(cut);
            let mut decision = envoy.answer(first, false);
            if !(length && second.is_empty()) {
                assert_eq!(decision.flow, Flow::Stop);
                assert!(written(&decision, Side::Response, first).is_empty());
                decision = envoy.answer(second, true);
            }
            let body = written(&decision, Side::Response, b"");
            let head = replaced(&decision, Side::Response);
            assert_eq!(decision.flow, Flow::Continue);
            assert_eq!(value(&head, ":status"), Some("200"));
            assert_eq!(value(&head, "content-length"), Some(body.len().to_string().as_str()));
            assert_eq!(value(&head, "server"), None);
            assert!(text(&body).contains("Hi"));
            assert_eq!(whole.get_or_insert_with(|| body.clone()), &body);
            assert_eq!(envoy.filter.held_bytes(), 0);
            let lines = envoy.lines("via_upstream");
            assert!(lines[0].1.contains(r#""status":200,"outcome":"answered""#), "{lines:?}");
        }
    }
}

#[test]
fn events_are_written_in_the_callback_that_they_came_in() {
    for config in [PAUSED, UNPAUSED] {
        let mut envoy = sent(config, STREAM);
        let kind = [header("content-type", "text/event-stream"), header("content-length", "9999")];
        let decision = envoy.head(200, &kind, false, "via_upstream");
        let paused = config == PAUSED;
        assert_eq!(decision.flow, if paused { Flow::Stop } else { Flow::Continue });
        let early = (!paused).then(|| replaced(&decision, Side::Response));
        for (index, chunk) in CHUNKS.iter().enumerate() {
            let decision = envoy.answer(chunk.as_bytes(), false);
            assert_eq!(decision.flow, Flow::Continue);
            assert!(!written(&decision, Side::Response, b"").is_empty(), "{index}");
            if index == 0 {
                let head = early.clone().unwrap_or_else(|| replaced(&decision, Side::Response));
                assert_eq!(value(&head, ":status"), Some("200"));
                assert_eq!(value(&head, "content-length"), None);
                let kind = value(&head, "content-type").unwrap_or_default();
                assert!(kind.starts_with("text/event-stream"));
            } else {
                assert_eq!(decision.actions.len(), 1, "the head is sent once");
            }
            assert_eq!(envoy.filter.held_bytes(), 0);
        }
        assert_eq!(envoy.answer(b"", true).flow, Flow::Continue);
        assert!(envoy.lines("via_upstream")[0].1.contains(r#""outcome":"answered""#));
    }
}

#[test]
fn a_stream_that_comes_whole_goes_on_with_its_length_and_leaves_the_upstream_alone() {
    for (request, config) in
        [(STREAM, PAUSED), (REQUEST, PAUSED), (STREAM, r#"{"deferred_flush": true}"#)]
    {
        let mut envoy = sent(config, request);
        envoy.head(200, &[header("content-type", "text/event-stream")], false, "via_upstream");
        let decision = envoy.answer(CHUNKS.concat().as_bytes(), false);
        assert_eq!(
            decision.flow,
            Flow::Continue,
            "no answer from here: that would drop the upstream"
        );
        let (head, body) =
            (replaced(&decision, Side::Response), written(&decision, Side::Response, b""));
        assert_eq!(value(&head, "content-length"), Some(body.len().to_string().as_str()));
        assert!(text(&body).contains("Hi"));
        assert_eq!(envoy.answer(b"", true), Decision::pass());
        assert_eq!(envoy.filter.held_bytes(), 0);
        assert!(envoy.lines("via_upstream")[0].1.contains(r#""outcome":"answered""#));
    }
    // An upstream that does not end its answer is cut off, long after the client has all of it.
    let mut envoy = sent(PAUSED, STREAM);
    envoy.head(200, &[], false, "via_upstream");
    envoy.answer(CHUNKS.concat().as_bytes(), false);
    let start = envoy.now;
    assert!(envoy.tick(start + 2999).is_empty());
    assert_eq!(envoy.tick(start + 3000), [(envoy.id, vec![Action::CloseStream])]);
}

#[test]
fn an_error_in_an_answer_that_goes_on_waits_for_its_end_but_not_long() {
    let error = b"data: {\"error\":{\"message\":\"no\",\"code\":500}}\n\n";
    let begun = || {
        let mut envoy = sent(PAUSED, STREAM);
        envoy.head(200, &[], false, "via_upstream");
        assert_eq!(envoy.answer(error, false).flow, Flow::Stop);
        assert!(envoy.filter.held_bytes() > 0, "what waits counts");
        envoy
    };
    let mut envoy = begun();
    assert_eq!(envoy.answer(b"more", false).flow, Flow::Stop);
    let decision = envoy.answer(b"", true);
    assert_eq!(decision.flow, Flow::Continue);
    assert!(text(&written(&decision, Side::Response, b"")).starts_with(r#"{"type":"error""#));
    assert!(value(&replaced(&decision, Side::Response), ":status").is_some_and(|it| it >= "500"));
    assert_eq!(envoy.filter.held_bytes(), 0);
    // Trailers leave no place for a body.
    let mut envoy = begun();
    let decision = envoy.filter.on_response_trailers(envoy.id, envoy.now);
    assert!(local(&decision).status >= 500);
    let mut envoy = begun();
    let start = envoy.now;
    assert!(envoy.tick(start + 199).is_empty());
    let due = envoy.tick(start + 200);
    assert!(local(&Decision::go_on(due[0].1.clone())).status >= 500);
    assert_eq!(envoy.filter.held_bytes(), 0);
    assert!(envoy.tick(start + 5000).is_empty(), "once");
}

#[test]
fn a_piece_that_says_nothing_yet_waits_without_a_buffer() {
    let mut envoy = sent(PAUSED, STREAM);
    envoy.head(200, &[], false, "via_upstream");
    let drained = Decision::stop(vec![Action::ReplaceBody(Side::Response, Vec::new())]);
    assert_eq!(envoy.answer(b"\n", false), drained);
    assert_eq!(envoy.filter.held_bytes(), 1);
    // Once the head is sent, an empty piece goes on: it is not sent to the client.
    envoy.answer(CHUNKS[0].as_bytes(), false);
    assert_eq!(envoy.filter.held_bytes(), 0);
}

#[test]
fn an_upstreams_error_keeps_its_status_in_both_modes() {
    let error = br#"{"error":{"message":"slow down","type":"rate_limit"}}"#;
    let mut envoy = sent(PAUSED, REQUEST);
    assert_eq!(envoy.head(429, &[], false, "via_upstream").flow, Flow::Stop);
    let decision = envoy.answer(error, true);
    assert_eq!(value(&replaced(&decision, Side::Response), ":status"), Some("429"));
    assert!(text(&written(&decision, Side::Response, b"")).starts_with(r#"{"type":"error""#));

    let mut envoy = sent(UNPAUSED, REQUEST);
    let decision = envoy.head(429, &[], false, "via_upstream");
    assert_eq!(value(&replaced(&decision, Side::Response), ":status"), Some("429"));
    let decision = envoy.answer(error, true);
    assert!(text(&written(&decision, Side::Response, b"")).starts_with(r#"{"type":"error""#));

    // Without a body there is nothing to write to: the answer comes from here.
    for config in [PAUSED, UNPAUSED] {
        let mut envoy = sent(config, REQUEST);
        let decision = envoy.head(429, &[], true, "via_upstream");
        assert_eq!(local(&decision).status, 429);
        assert!(!local(&decision).body.is_empty());
    }
}

#[test]
fn envoys_own_answers_are_reshaped_in_both_modes() {
    // With a body, the answer takes its place, so that the filters in front see it. Without, it
    // comes from here.
    for (config, eos) in [(PAUSED, false), (PAUSED, true), (UNPAUSED, false)] {
        for (details, status, expected) in [
            ("no_healthy_upstream", 503, 529),
            ("upstream_reset_before_response_started{connection_termination}", 503, 502),
            ("upstream_reset_before_response_started{overflow}", 503, 529),
            ("response_timeout", 504, 504),
            ("upstream_per_try_idle_timeout", 504, 504),
            ("route_not_found", 404, 404),
            ("request_payload_too_large", 413, 413),
        ] {
            let mut envoy = sent(config, STREAM);
            let kind = [header("content-type", "text/plain")];
            let decision = envoy.head(status, &kind, eos, details);
            let (of_head, body) = if config == PAUSED && !eos {
                assert_eq!(decision, Decision::stop(Vec::new()), "{details}");
                assert_eq!(envoy.answer(b"no ", false).flow, Flow::Stop);
                let decision = envoy.answer(b"healthy upstream", true);
                assert_eq!(decision.flow, Flow::Continue);
                let head = replaced(&decision, Side::Response);
                let body = written(&decision, Side::Response, b"");
                assert_eq!(value(&head, "content-length"), Some(body.len().to_string().as_str()));
                (value(&head, ":status").unwrap_or_default().to_owned(), body)
            } else {
                let response = local(&decision);
                assert_eq!(envoy.head(expected, &[], false, "creole_reply"), Decision::pass());
                (response.status.to_string(), response.body)
            };
            assert_eq!(of_head, expected.to_string(), "{details}");
            assert!(text(&body).starts_with(r#"{"type":"error""#));
            assert_eq!(envoy.filter.held_bytes(), 0);
            let lines = envoy.lines("creole_reply");
            assert_eq!(lines.len(), 1);
            assert!(lines[0].1.contains(&format!(r#""details":"{details}""#)), "{lines:?}");
        }
    }
}

#[test]
fn an_encoded_answer_is_a_clear_error() {
    for config in [PAUSED, UNPAUSED] {
        let mut envoy = sent(config, REQUEST);
        let head = envoy.head(200, &[header("content-encoding", "gzip")], false, "via_upstream");
        let body = envoy.answer(b"\x1f\x8b\x08", true);
        let decision = if config == PAUSED { &body } else { &head };
        assert_eq!(value(&replaced(decision, Side::Response), ":status"), Some("502"));
        assert!(text(&written(&body, Side::Response, b"")).contains("content-encoding"));
    }
}

#[test]
fn trailers_end_an_answer_as_its_end_would() {
    let mut envoy = sent(PAUSED, REQUEST);
    envoy.head(200, &[], false, "via_upstream");
    assert_eq!(envoy.answer(ANSWER.as_bytes(), false).flow, Flow::Stop);
    let decision = envoy.filter.on_response_trailers(envoy.id, envoy.now);
    assert_eq!(local(&decision).status, 200);
    assert!(text(&local(&decision).body).contains("Hi"));
    assert!(envoy.lines("via_upstream")[0].1.contains(r#""outcome":"answered""#));

    // A stream has said everything by then.
    let mut envoy = sent(PAUSED, STREAM);
    envoy.head(200, &[], false, "via_upstream");
    for chunk in CHUNKS {
        envoy.answer(chunk.as_bytes(), false);
    }
    assert_eq!(envoy.filter.on_response_trailers(envoy.id, envoy.now), Decision::pass());
}

#[test]
fn an_answer_that_cannot_be_written_any_more_breaks_the_stream() {
    let mut envoy = sent(UNPAUSED, REQUEST);
    envoy.head(200, &[], false, "via_upstream");
    envoy.answer(ANSWER.as_bytes(), false);
    let decision = envoy.filter.on_response_trailers(envoy.id, envoy.now);
    assert_eq!(decision, Decision::stop(vec![Action::CloseStream]));
}

#[test]
fn an_upstream_that_does_not_answer_is_given_up() {
    for config in [
        r#"{"first_byte_timeout_ms": 1000}"#,
        r#"{"first_byte_timeout_ms": 1000, "pause_headers": false}"#,
    ] {
        let mut envoy = sent(config, REQUEST);
        let start = envoy.now;
        assert!(envoy.tick(start + 999).is_empty());
        let due = envoy.tick(start + 1000);
        assert_eq!((due.len(), due[0].0), (1, envoy.id));
        let response = local(&Decision::go_on(due[0].1.clone()));
        assert_eq!(response.status, 504);
        assert!(text(&response.body).contains("timeout_error"));
        assert!(envoy.tick(start + 5000).is_empty(), "once");
        assert_eq!(envoy.head(504, &[], false, "creole_reply"), Decision::pass());
    }
}

#[test]
fn an_upstream_that_stops_in_the_middle_breaks_the_stream() {
    let mut envoy = sent(r#"{"stall_timeout_ms": 1000}"#, STREAM);
    envoy.head(200, &[], false, "via_upstream");
    envoy.answer(CHUNKS[0].as_bytes(), false);
    let start = envoy.now;
    assert!(envoy.tick(start + 999).is_empty());
    assert_eq!(envoy.tick(start + 1000), [(envoy.id, vec![Action::CloseStream])]);
    let (level, line) = envoy.lines("creole").remove(0);
    assert_eq!(level, Level::Warn);
    assert!(
        line.contains(r#""error":"timeout_error""#) && line.contains(r#""cause":"stall""#),
        "{line}"
    );
}

#[test]
fn an_upstream_that_stops_before_its_first_byte_is_still_an_http_error() {
    let mut envoy = sent(r#"{"stall_timeout_ms": 1000}"#, STREAM);
    envoy.head(200, &[], false, "via_upstream");
    let due = envoy.tick(envoy.now + 1000);
    assert_eq!(local(&Decision::go_on(due[0].1.clone())).status, 504);
}

#[test]
fn streams_that_hold_too_much_of_an_answer_are_ended() {
    let mut envoy = sent(r#"{"buffered_bytes_max": 2000}"#, REQUEST);
    envoy.head(200, &[], false, "via_upstream");
    assert_eq!(envoy.answer(&ANSWER.as_bytes()[..20], false).flow, Flow::Stop);
    let decision = envoy.answer(&[b' '; 3000], false);
    assert_eq!(local(&decision).status, 529);
    assert_eq!(envoy.filter.held_bytes(), 0);

    // With the head sent, the error is in the body, and the upstream is cut off a moment later.
    let config = r#"{"buffered_bytes_max": 2000, "pause_headers": false}"#;
    let mut envoy = sent(config, REQUEST);
    envoy.head(200, &[], false, "via_upstream");
    envoy.answer(&ANSWER.as_bytes()[..20], false);
    let decision = envoy.answer(&[b' '; 3000], false);
    assert!(text(&written(&decision, Side::Response, b"")).contains("overloaded_error"));
    assert_eq!(decision.flow, Flow::Continue);
    assert!(written(&envoy.answer(b"more", false), Side::Response, b"more").is_empty());
    assert_eq!(envoy.tick(envoy.now + 1000), [(envoy.id, vec![Action::CloseStream])]);
    assert!(envoy.tick(envoy.now + 1000).is_empty());
}

#[test]
fn a_message_that_was_cut_is_whole_at_once_and_its_stream_ends_with_the_upstream() {
    let config = r#"{"upstreams":{"u":{"profile_overrides":{"stop":false}}}}"#;
    let body = STREAM.replacen('{', r#"{"stop_sequences":[" you"],"#, 1);
    let mut envoy = sent(config, &body);
    envoy.head(200, &[], false, "via_upstream");
    let start = envoy.now;
    envoy.answer(CHUNKS[0].as_bytes(), false);
    let cut = envoy.answer(CHUNKS[1].as_bytes(), false);
    assert!(!text(&written(&cut, Side::Response, b"")).contains("message_stop"));
    // The upstream may tell its counts for a moment. A tick could not write.
    assert!(envoy.tick(start + 300).is_empty());
    let next = envoy.answer(CHUNKS[1].as_bytes(), false);
    assert!(text(&written(&next, Side::Response, b"")).contains("message_stop"));
    // It goes on, and nobody sees it.
    let ended = envoy.now;
    for _ in 0..3 {
        let more = envoy.answer(CHUNKS[1].as_bytes(), false);
        assert!(written(&more, Side::Response, CHUNKS[1].as_bytes()).is_empty());
    }
    assert!(envoy.tick(ended + 29_999).is_empty());
    assert_eq!(envoy.tick(ended + 30_000), [(envoy.id, vec![Action::CloseStream])]);
}

#[test]
fn events_that_are_not_complete_count_however_far_their_streams_are() {
    let mut envoy = sent(r#"{"buffered_bytes_max": 100000}"#, STREAM);
    let line = [b"data: ".as_slice(), &[b'x'; 20_000]].concat();
    envoy.head(200, &[], false, "via_upstream");
    envoy.answer(CHUNKS[0].as_bytes(), false);
    for _ in 0..2 {
        envoy.answer(&line, false);
    }
    let first = envoy.filter.held_bytes();
    assert!((40_000..100_000).contains(&first), "{first}");
    envoy.next_stream();
    envoy.request("POST", MESSAGES, &key(), false);
    envoy.body(STREAM.as_bytes(), true);
    envoy.head(200, &[], false, "via_upstream");
    envoy.answer(CHUNKS[0].as_bytes(), false);
    let mut said = Vec::new();
    for _ in 0..4 {
        said.extend(written(&envoy.answer(&line, false), Side::Response, b""));
    }
    assert!(text(&said).contains("overloaded_error"), "{}", text(&said));
    assert_eq!(envoy.filter.held_bytes(), first, "what the second one held is free again");
    let (id, start) = (envoy.id, envoy.now);
    assert_eq!(envoy.tick(start + 1000), [(id, vec![Action::CloseStream])]);
    envoy.filter.on_delete(id);
    envoy.filter.on_delete(id - 1);
    assert_eq!(envoy.filter.held_bytes(), 0);
}

#[test]
fn an_answer_that_has_begun_does_not_end_at_the_share_of_its_owner() {
    let mut envoy = sent(r#"{"buffered_bytes_max": 100000}"#, STREAM);
    let line = [b"data: ".as_slice(), &[b'x'; 20_000]].concat();
    for begins in [false, true] {
        if begins {
            envoy.next_stream();
            envoy.request("POST", MESSAGES, &key(), false);
            envoy.body(STREAM.as_bytes(), true);
        }
        envoy.head(200, &[], false, "via_upstream");
        envoy.answer(CHUNKS[0].as_bytes(), false);
        for _ in 0..2 {
            let said = written(&envoy.answer(&line, false), Side::Response, b"");
            assert_eq!(text(&said), "");
        }
    }
    assert!(envoy.filter.held_bytes() > 80_000);
}

#[test]
fn a_stream_whose_pieces_give_nothing_holds_nothing() {
    let mut envoy = sent(r#"{"buffered_bytes_max": 2000}"#, STREAM);
    envoy.head(200, &[], false, "via_upstream");
    envoy.answer(CHUNKS[0].as_bytes(), false);
    // Reasoning for which the client did not ask.
    let thought =
        br#"data: {"id":"c","choices":[{"index":0,"delta":{"reasoning_content":"Hm."}}]}"#;
    for _ in 0..100 {
        assert!(written(&envoy.answer(thought, false), Side::Response, thought).is_empty());
        envoy.answer(b"\n\n", false);
    }
    assert_eq!(envoy.filter.held_bytes(), 0);
    let decision = envoy.answer(CHUNKS[1].as_bytes(), false);
    assert!(text(&written(&decision, Side::Response, b"")).contains(" you"), "{decision:?}");
}

#[test]
fn whoever_breaks_a_stream_is_named() {
    for (details, expected) in [
        ("downstream_remote_disconnect", r#""outcome":"abandoned""#),
        ("upstream_reset_after_response_started{protocol_error}", r#""outcome":"failed_upstream""#),
        ("stream_idle_timeout", r#""error":"timeout_error""#),
    ] {
        let mut envoy = sent(PAUSED, STREAM);
        envoy.head(200, &[], false, "via_upstream");
        envoy.answer(CHUNKS[0].as_bytes(), false);
        let lines = envoy.lines(details);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].1.contains(expected), "{lines:?}");
    }
}

#[test]
fn an_answer_that_breaks_before_anything_was_sent_is_one_that_broke_off() {
    let mut envoy = sent(PAUSED, REQUEST);
    envoy.head(200, &[], false, "via_upstream");
    let lines = envoy.lines("upstream_reset_after_response_started{protocol_error}");
    assert!(lines[0].1.contains(r#""cause":"upstream_broke_off""#), "{lines:?}");
}

#[test]
fn logs_hold_neither_contents_nor_credentials() {
    let mut envoy = sent(PAUSED, REQUEST);
    envoy.head(200, &[], false, "via_upstream");
    envoy.answer(ANSWER.as_bytes(), true);
    let lines = format!("{:?}", envoy.lines("via_upstream"));
    assert!(!lines.contains("Hello") && !lines.contains("sk-client") && !lines.contains("Hi"));
}

#[test]
fn the_answer_to_a_request_without_a_body_counts_too() {
    let mut envoy = Envoy::new(r#"{"buffered_bytes_max": 2000}"#);
    let headers = [header("anthropic-version", "2023-06-01"), header("x-api-key", "k")];
    let sent = envoy.request("GET", "/v1/models", &headers, true);
    assert_eq!(sent.flow, Flow::Continue);
    envoy.head(200, &[], false, "via_upstream");
    assert_eq!(local(&envoy.answer(&[b' '; 3000], false)).status, 529);
}
