//! The filter without a host: what it decides about whatever does not need a translation.

mod envoy;

use creole::observe::log::Level;
use creole_envoy::Filter;
use creole_envoy::action::{Action, Decision, Flow, LocalResponse, Side};
use envoy::{Envoy, MESSAGES, header};

#[test]
fn what_is_not_ours_passes_untouched_and_unread() {
    for (method, path) in [
        ("POST", "/v1/chat/completions"),
        ("GET", "/v1/chat/completions"),
        ("POST", "/v1/messagesX"),
        ("POST", "/v1/embeddings"),
        ("GET", "/metrics"),
    ] {
        let mut envoy = Envoy::new("{}");
        assert_eq!(envoy.request(method, path, &[], false), Decision::pass(), "{method} {path}");
        assert!(!envoy.filter.reads(envoy.id, Side::Request));
        assert!(!envoy.filter.reads(envoy.id, Side::Response));
        assert_eq!(envoy.body(b"{}", true), Decision::pass());
        assert_eq!(envoy.head(200, &[], false, "via_upstream"), Decision::pass());
        assert_eq!(envoy.answer(b"{}", true), Decision::pass());
        assert_eq!(envoy.head(503, &[], false, "no_healthy_upstream"), Decision::pass());
        assert_eq!(envoy.log("via_upstream"), Vec::new(), "nothing of ours happened");
    }
}

#[test]
fn probes_are_answered_here() {
    let version = [header("anthropic-version", "2023-06-01")];
    for (method, path, headers) in [
        ("HEAD", "/", &version[..]),
        ("GET", "/?beta=true", &version),
        ("GET", "/api/hello", &version),
        ("GET", "/v1/models?limit=5", &[]),
    ] {
        let mut envoy = Envoy::new("{}");
        let decision = envoy.request(method, path, headers, true);
        let response = envoy::local(&decision);
        assert_eq!((response.status, decision.flow), (200, Flow::Stop), "{method} {path}");
        assert_eq!(response.body.is_empty(), method == "HEAD", "{path}");
    }
}

#[test]
fn the_home_page_of_a_site_is_not_a_probe() {
    let browser = [header("user-agent", "Mozilla/5.0"), header("cookie", "a=b")];
    for (method, path) in [("GET", "/"), ("HEAD", "/"), ("GET", "/?a=b"), ("HEAD", "/api/hello")] {
        for headers in [&browser[..], &[]] {
            let mut envoy = Envoy::new("{}");
            assert_eq!(envoy.request(method, path, headers, true), Decision::pass(), "{path}");
            assert_eq!(envoy.head(200, &[], false, "via_upstream"), Decision::pass());
            assert_eq!(envoy.log("via_upstream"), Vec::new(), "nothing of ours happened");
        }
    }
}

#[test]
fn envoys_own_replies_are_told_from_ours_by_their_details() {
    let configuration = include_str!("../envoy.yaml");
    assert!(configuration.contains("code_details.startsWith('creole')"));
    assert!(LocalResponse::DETAILS.starts_with("creole"));
}

#[test]
fn an_answer_from_here_passes_its_own_response_callbacks() {
    let mut envoy = Envoy::new("{}");
    let decision = envoy.request("GET", "/v1/messages", &[], true);
    assert_eq!(envoy::local(&decision).status, 405);
    // Envoy calls these for the answer above, with whatever details it likes.
    assert_eq!(envoy.head(405, &[], false, LocalResponse::DETAILS), Decision::pass());
    assert_eq!(envoy.answer(b"{\"type\":\"error\"}", true), Decision::pass());
    assert_eq!(envoy.filter.on_response_trailers(envoy.id, 1), Decision::pass());
    assert_eq!(envoy.lines(LocalResponse::DETAILS).len(), 1);
}

#[test]
fn a_refusal_by_the_head_waits_until_the_client_has_sent_its_body() {
    let mut envoy = Envoy::new("{}");
    let headers = [header("content-encoding", "gzip")];
    assert_eq!(envoy.request("POST", MESSAGES, &headers, false), Decision::stop(Vec::new()));
    let drained = Decision::stop(vec![Action::ReplaceBody(Side::Request, Vec::new())]);
    assert_eq!(envoy.body(b"abc", false), drained);
    let decision = envoy.body(b"", true);
    assert_eq!(envoy::local(&decision).status, 400);
    assert_eq!(envoy.filter.held_bytes(), 0);
}

#[test]
fn a_refused_upload_that_does_not_end_is_answered_anyway() {
    let mut envoy = Envoy::new(r#"{"request_bytes_max": 2000}"#);
    let headers = [header("content-length", "100000")];
    assert_eq!(envoy.request("POST", MESSAGES, &headers, false).flow, Flow::Stop);
    let mut pieces = 0;
    let decision = loop {
        pieces += 1;
        let decision = envoy.body(&[b' '; 600], false);
        if decision.actions.len() > 1 {
            break decision;
        }
    };
    assert_eq!((pieces, envoy::local(&decision).status), (7, 413));
}

#[test]
fn a_body_that_is_too_large_without_saying_so_is_refused_and_not_kept() {
    for config in
        [r#"{"request_bytes_max": 2000}"#, r#"{"request_bytes_max": 2000, "pause_headers": false}"#]
    {
        let mut envoy = Envoy::new(config);
        envoy.request("POST", MESSAGES, &[], false);
        assert_eq!(envoy.body(&[b' '; 1999], false).flow, Flow::Stop);
        assert_eq!(envoy.filter.held_bytes(), 1999);
        assert_eq!(envoy.body(b"  ", false).actions.len(), 1);
        assert_eq!(envoy.filter.held_bytes(), 0, "it is thrown away from here on");
        let response = envoy::local(&envoy.body(b" ", true));
        assert_eq!(response.status, 413);
        assert!(envoy::text(&response.body).contains("request_too_large"));
    }
}

#[test]
fn streams_share_one_limit_and_give_back_what_they_held() {
    let mut envoy = Envoy::new(r#"{"buffered_bytes_max": 2000}"#);
    envoy.request("POST", MESSAGES, &[], false);
    assert_eq!(envoy.body(&[b' '; 1000], false).flow, Flow::Stop);
    let first = envoy.id;
    envoy.next_stream();
    envoy.connection = 2;
    envoy.request("POST", MESSAGES, &[], false);
    assert_eq!(envoy.body(&[b' '; 600], false).flow, Flow::Stop);
    let decision = envoy.body(&[b' '; 600], true);
    let response = envoy::local(&decision);
    assert_eq!(response.status, 529);
    assert!(envoy::text(&response.body).contains("overloaded_error"));
    assert_eq!(envoy.filter.held_bytes(), 1000);
    envoy.filter.on_log(first, "downstream_remote_disconnect", 7);
    envoy.filter.on_delete(first);
    assert_eq!(envoy.filter.held_bytes(), 0);
}

#[test]
fn who_holds_most_gives_an_unfinished_body_up_and_is_answered_with_the_next_tick() {
    let mut envoy = Envoy::new(r#"{"buffered_bytes_max": 2000}"#);
    envoy.request("POST", MESSAGES, &[], false);
    envoy.body(&[b' '; 1000], false);
    let first = envoy.id;
    envoy.next_stream();
    envoy.connection = 2;
    envoy.request("POST", MESSAGES, &[], false);
    let body = format!(
        r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"{}"}}]}}"#,
        "x".repeat(850)
    );
    let sent = envoy.body(body.as_bytes(), true);
    assert!(
        sent.actions.iter().any(
            |action| matches!(action, Action::SendLocalResponse(reply) if reply.status == 401)
        ),
        "{sent:?}"
    );
    assert_eq!(envoy.filter.held_bytes(), 0, "its memory is free at once");
    let now = envoy.now;
    let given_up = envoy.tick(now + 1);
    let [(id, actions)] = given_up.as_slice() else { panic!("{given_up:?}") };
    let [Action::SendLocalResponse(response)] = actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!((*id, response.status), (first, 529));
}

#[test]
fn a_refused_request_without_an_end_is_answered_all_the_same() {
    let mut envoy = Envoy::new(
        r#"{"client_keys": [{"env": "TEAM"}], "upstreams": {"default": {"key": "none"}}}"#,
    );
    assert_eq!(envoy.request("POST", MESSAGES, &[], false).flow, Flow::Stop);
    let now = envoy.now;
    assert_eq!(envoy.tick(now + 900), []);
    let answered = envoy.tick(now + 1000);
    let [Action::SendLocalResponse(response)] = answered[0].1.as_slice() else {
        panic!("{answered:?}")
    };
    assert_eq!(response.status, 401);
}

#[test]
fn refused_requests_that_wait_count_with_their_whole_heads() {
    let config = r#"{"buffered_bytes_max": 16777216, "client_keys": [{"env": "TEAM"}],
        "upstreams": {"default": {"key": "none"}}}"#;
    let mut envoy = Envoy::new(config);
    let large = header("cookie", &"c".repeat(50_000));
    let mut waiting = 0;
    for _ in 0..1000 {
        envoy.next_stream();
        let decision = envoy.request("POST", MESSAGES, std::slice::from_ref(&large), false);
        match decision.actions.as_slice() {
            [] => waiting += 1,
            _ => assert_eq!(envoy::local(&decision).status, 401),
        }
    }
    assert!((100..168).contains(&waiting), "half of the memory: {waiting}");
    // Others get what they hold; then they are answered, as they would have been.
    envoy.next_stream();
    envoy.connection = 2;
    envoy.now += 900;
    envoy.request("POST", MESSAGES, &[header("x-api-key", "secret-TEAM")], false);
    assert_eq!(envoy.body(&vec![b' '; 29 << 18], false).flow, Flow::Stop);
    let now = envoy.now;
    let answered = envoy.tick(now);
    let [Action::SendLocalResponse(response)] = answered[0].1.as_slice() else {
        panic!("{answered:?}")
    };
    assert_eq!(response.status, 401);
}

#[test]
fn refusals_that_envoy_keeps_take_no_memory_from_others() {
    let config = r#"{"buffered_bytes_max": 16777216, "client_keys": [{"env": "TEAM"}],
        "upstreams": {"default": {"key": "none"}}}"#;
    let mut envoy = Envoy::new(config);
    let large = header("cookie", &"c".repeat(50_000));
    // Their clients take no byte of the answers: no stream is deleted.
    for number in 0..2000 {
        envoy.next_stream();
        envoy.connection = 2 + number / 100;
        envoy.request("POST", MESSAGES, std::slice::from_ref(&large), false);
        assert_eq!(envoy::local(&envoy.body(b"", true)).status, 401);
    }
    envoy.next_stream();
    envoy.connection = 1;
    envoy.request("POST", MESSAGES, &[header("x-api-key", "secret-TEAM")], false);
    assert_eq!(envoy.body(&vec![b' '; 29 << 18], false).flow, Flow::Stop);
    let now = envoy.now;
    assert_eq!(envoy.tick(now), []);
}

#[test]
fn a_request_that_a_tick_has_refused_is_not_refused_again() {
    let mut envoy = Envoy::new(r#"{"buffered_bytes_max": 2000}"#);
    envoy.request("POST", MESSAGES, &[], false);
    envoy.body(b"{", false);
    let (first, now) = (envoy.id, envoy.now);
    let ended = envoy.tick(now + 30_000);
    assert_eq!(
        (ended.len(), ended[0].0, envoy::local(&Decision::stop(ended[0].1.clone())).status),
        (1, first, 408)
    );
    for (connection, bytes) in [(2, 1500), (3, 700)] {
        envoy.next_stream();
        envoy.connection = connection;
        envoy.request("POST", MESSAGES, &[], false);
        assert_eq!(envoy.body(&vec![b' '; bytes], false).flow, Flow::Stop);
    }
    let ended: Vec<_> = envoy.tick(now + 30_000).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ended, [first + 1], "the one that holds most");
}

#[test]
fn a_body_that_comes_into_reserved_memory_is_not_silent() {
    let mut envoy = Envoy::new(r#"{"buffered_bytes_max": 16777216}"#);
    let mut begin = |connection: u64| {
        envoy.next_stream();
        envoy.connection = connection;
        envoy.request("POST", MESSAGES, &[], false);
        envoy.id
    };
    let (other, upload) = (begin(1), begin(2));
    let mut send = |id: u32, bytes: usize, now: u64| {
        envoy.filter.on_request_body(id, vec![b' '; bytes], false, now)
    };
    let now = 1_000_000;
    send(other, 3 << 19, now);
    send(upload, 3 << 20, now);
    // Twice as much is reserved.
    send(upload, 2000, now + 1000);
    send(other, 2000, now + 2900);
    send(upload, 2000, now + 2900);
    envoy.now = now + 3000;
    envoy.next_stream();
    envoy.connection = 3;
    envoy.request("POST", MESSAGES, &[], false);
    assert_eq!(envoy.body(&vec![b' '; 13 << 19], false).flow, Flow::Stop);
    let ended: Vec<_> = envoy.tick(now + 3000).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ended, [other], "the older one");
}

#[test]
fn a_body_that_does_not_come_is_refused_after_its_time() {
    let mut envoy = Envoy::new("{}");
    envoy.request("POST", MESSAGES, &[], false);
    envoy.body(b"{", false);
    let now = envoy.now;
    assert_eq!(envoy.tick(now + 29_000), []);
    let ended = envoy.tick(now + 30_000);
    let [Action::SendLocalResponse(response)] = ended[0].1.as_slice() else { panic!("{ended:?}") };
    assert_eq!(response.status, 408);
}

#[test]
fn a_foreign_web_page_in_a_browser_of_this_machine_is_refused() {
    for (host, origin, status) in [
        ("localhost:8080", "https://evil.example", Some(403)),
        ("127.0.0.1:8080", "null", Some(403)),
        ("127.0.0.1:8080", "http://localhost:3000", None),
        ("models.example", "https://app.example", None),
    ] {
        let mut envoy = Envoy::new("{}");
        envoy.host = host.to_owned();
        envoy.request("POST", MESSAGES, &[header("origin", origin)], false);
        let now = envoy.now;
        let refused = envoy.tick(now + 1000).first().map(|(_, actions)| match &actions[0] {
            Action::SendLocalResponse(response) => response.status,
            other => panic!("{other:?}"),
        });
        assert_eq!(refused, status, "{host} {origin}");
    }
}

#[test]
fn thousands_of_unfinished_requests_are_refused_before_memory_is_full() {
    let mut envoy = Envoy::new(r#"{"buffered_bytes_max": 16777216}"#);
    let large = header("cookie", &"c".repeat(50_000));
    let mut refused = 0;
    for stream in 0..10_000_u64 {
        envoy.next_stream();
        envoy.connection = stream / 100;
        let decision = envoy.request("POST", MESSAGES, std::slice::from_ref(&large), false);
        match decision.actions.first() {
            Some(Action::ReplaceHeaders(Side::Request, head)) => {
                assert!(head.iter().all(|(name, _)| name.starts_with(':')), "{head:?}");
            }
            Some(Action::SendLocalResponse(reply)) => refused += usize::from(reply.status == 529),
            other => panic!("{other:?}"),
        }
    }
    // Somebody else is served.
    envoy.next_stream();
    envoy.connection = 1_000_000;
    envoy.request("POST", MESSAGES, &[], false);
    assert_eq!(envoy.body(b"{", false).flow, Flow::Stop);
    let now = envoy.now;
    // A few in each tick: each answer is sent inside of the one before.
    let mut given_up = 0;
    loop {
        let ended = envoy.tick(now + 1);
        let count =
            ended.iter().filter(|(_, actions)| actions.iter().any(Action::ends_stream)).count();
        assert!(count <= 16);
        if count == 0 {
            break;
        }
        given_up += count;
    }
    assert!(refused + given_up > 7_000, "{refused} refused, {given_up} given up");
}

#[test]
fn memory_is_reserved_for_a_client_that_sends_and_counts_from_then_on() {
    let mut envoy = Envoy::new("{}");
    let length = 32 << 20;
    envoy.request("POST", MESSAGES, &[header("content-length", &length.to_string())], false);
    let piece = vec![b' '; 256 << 10];
    for sent in (1..=length / piece.len()).map(|pieces| pieces * piece.len()) {
        envoy.body(&piece, false);
        let held = envoy.filter.held_bytes();
        if sent == length {
            assert_eq!(held, 0, "the body is complete");
            break;
        }
        assert!((sent..=length).contains(&held), "{held} for {sent}");
        assert!(held <= 2 * sent + piece.len(), "{held} for {sent}");
    }
}

#[test]
fn a_body_that_cannot_be_read_is_refused_however_it_is_cut() {
    for length in [true, false] {
        for cut in 0..3 {
            let mut envoy = Envoy::new("{}");
            let headers = if length { vec![header("content-length", "3")] } else { Vec::new() };
            assert_eq!(envoy.request("POST", MESSAGES, &headers, false).flow, Flow::Stop);
            let (first, second) = b"\xff[x".split_at(cut);
            assert_eq!(envoy.body(first, false).flow, Flow::Stop);
            assert_eq!(envoy.body(second, false).flow, Flow::Stop, "the end is still to come");
            let response = envoy::local(&envoy.body(b"", true));
            assert_eq!(response.status, 400);
            assert!(envoy::text(&response.body).contains("not valid JSON"));
        }
    }
}

#[test]
fn a_request_without_a_body_is_refused_by_its_head() {
    let mut envoy = Envoy::new("{}");
    let decision = envoy.request("POST", MESSAGES, &[], true);
    assert!(envoy::local(&decision).status >= 400);
}

#[test]
fn trailers_of_a_request_that_is_not_complete_do_not_hang_it() {
    let mut envoy = Envoy::new("{}");
    envoy.request("POST", MESSAGES, &[], false);
    envoy.body(b"{", false);
    let decision = envoy.filter.on_request_trailers(envoy.id, 1);
    assert_eq!(envoy::local(&decision).status, 400);
}

#[test]
fn envoys_own_answers_to_an_incomplete_request_are_reshaped() {
    for (details, status, expected, word) in [
        ("route_not_found", 404, 404, "not_found_error"),
        ("request_payload_too_large", 413, 413, "request_too_large"),
        ("no_healthy_upstream", 503, 529, "overloaded_error"),
        ("upstream_reset_before_response_started{connection_failure}", 503, 502, "api_error"),
        ("stream_idle_timeout", 408, 400, "invalid_request_error"),
        ("via_upstream", 401, 502, "api_error"),
        ("via_upstream", 413, 413, "request_too_large"),
    ] {
        for eos in [true, false] {
            let mut envoy = Envoy::new(r#"{"pause_headers": false}"#);
            let decision = envoy.request("POST", MESSAGES, &[], false);
            assert_eq!(decision.flow, Flow::Continue, "the head leaves at once");
            envoy.body(b"{", false);
            let decision = envoy.head(status, &[], eos, details);
            let response = envoy::local(&decision);
            assert_eq!(response.status, expected, "{details}");
            let body = envoy::text(&response.body);
            assert!(body.contains(word) && body.starts_with(r#"{"type":"error""#), "{body}");
        }
    }
}

#[test]
fn a_head_that_leaves_early_is_not_the_clients() {
    let mut envoy = Envoy::new(r#"{"pause_headers": false}"#);
    let headers = [
        header("x-api-key", "sk-client"),
        header("content-length", "12"),
        header("cookie", "a=b"),
        header("x-request-id", "r"),
    ];
    let decision = envoy.request("POST", "/v1/messages?beta=true", &headers, false);
    let head = envoy::replaced(&decision, Side::Request);
    assert!(head.contains(&header(":path", "/v1/chat/completions")));
    assert!(head.contains(&header("x-creole-upstream", "default")));
    assert!(head.contains(&header("x-request-id", "r")));
    let gone = ["x-api-key", "content-length", "cookie"];
    assert!(!head.iter().any(|(name, _)| gone.contains(&name.as_str())), "{head:?}");
}

#[test]
fn a_client_that_leaves_is_counted_once_in_every_phase() {
    let mut envoy = Envoy::new("{}");
    envoy.request("POST", MESSAGES, &[], false);
    envoy.body(b"{", false);
    let lines = envoy.lines("downstream_remote_disconnect");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].1.contains(r#""status":499,"outcome":"abandoned""#), "{lines:?}");
    assert_eq!(lines[0].0, Level::Info);
}

#[test]
fn callbacks_of_streams_that_are_not_there_do_nothing() {
    let mut envoy = Envoy::new("{}");
    envoy.request("POST", MESSAGES, &[], false);
    envoy.filter.on_delete(envoy.id);
    assert!(!envoy.filter.has(envoy.id));
    assert_eq!(envoy.body(b"{}", true), Decision::pass());
    assert_eq!(envoy.head(200, &[], true, ""), Decision::pass());
    assert_eq!(envoy.log(""), Vec::new());
    // A local answer of a filter before this one: no request has come by.
    envoy.next_stream();
    assert_eq!(envoy.head(403, &[], false, "rbac_access_denied"), Decision::pass());
    assert_eq!(envoy.answer(b"no", true), Decision::pass());
}

#[test]
fn a_bad_configuration_is_refused_with_its_path() {
    for (text, expected) in [
        (r#"{"stall_timeout": 5}"#, "stall_timeout"),
        (r#"{"pause_headers": 5}"#, "pause_headers"),
        ("{", "configuration"),
        (r#"{"upstreams": {"a": {"key": {"secret": "NO_SUCH"}}}}"#, "upstreams.a.key.secret"),
        (r#"{"upstreams": {"a\nb": {}}}"#, r#"upstreams."a\nb".cluster"#),
        (r#"{"pause_headers": false, "upstreams": {"a": {}, "b": {}}}"#, "pause_headers is false"),
        (r#"{"pause_headers": false, "deferred_flush": true}"#, "deferred_flush"),
        (
            r#"{"server_tools": {"web_search": {"kind": "searxng", "url": "http://search"}}}"#,
            "server_tools.web_search.cluster: expected the name of a cluster",
        ),
    ] {
        let mut filter = Filter::default();
        filter.on_context_create(1, 0);
        let error = filter.on_configure(1, text, |_| None).unwrap_err();
        assert!(error.contains(expected), "{error}");
        filter.on_context_create(2, 1);
        let head = [header(":method", "POST"), header(":path", MESSAGES)];
        assert_eq!(
            filter.on_request_headers(2, head.to_vec(), false, (Some(""), None), 1, 1),
            Decision::pass()
        );
    }
}

#[test]
fn the_watch_is_as_fine_as_the_shortest_timeout_needs() {
    for (text, expected) in [
        ("", 1000),
        (r#"{"first_byte_timeout_ms": 2000}"#, 500),
        (r#"{"stall_timeout_ms": 1}"#, 200),
    ] {
        let mut filter = Filter::default();
        filter.on_context_create(1, 0);
        let actions = filter.on_configure(1, text, |_| None).unwrap();
        assert_eq!(actions, [Action::SetTickPeriod { period_ms: expected }]);
    }
}

#[test]
fn plugins_of_one_vm_keep_their_own_configurations() {
    let mut envoy = Envoy::new(r#"{"request_bytes_max": 1024}"#);
    envoy.filter.on_context_create(500, 0);
    envoy.filter.on_configure(500, "{}", |_| None).unwrap();
    envoy.filter.on_context_create(501, 500);
    envoy.id = 501;
    envoy.request("POST", MESSAGES, &[], false);
    assert_eq!(envoy.body(&[b' '; 5000], false).flow, Flow::Stop);
    assert_eq!(envoy.filter.held_bytes(), 5000);
    envoy.next_stream();
    envoy.request("POST", MESSAGES, &[], false);
    envoy.body(&[b' '; 5000], false);
    assert_eq!(envoy.filter.held_bytes(), 5000, "refused at 1024");
}

#[test]
fn an_upstream_that_answers_a_refused_request_is_not_heard() {
    let mut envoy = Envoy::new(r#"{"request_bytes_max": 2000, "pause_headers": false}"#);
    envoy.request("POST", MESSAGES, &[], false);
    envoy.body(&[b' '; 3000], false);
    let decision = envoy.head(401, &[header("www-authenticate", "x")], false, "via_upstream");
    assert_eq!(envoy::local(&decision).status, 413);
    assert_eq!(envoy.head(413, &[], false, LocalResponse::DETAILS), Decision::pass());
}

/// The processor time of this thread in nanoseconds; the clock's, where the system does not count
/// it.
fn processor_time(start: std::time::Instant) -> u64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|line| line.split(' ').next()?.parse().ok())
        .filter(|time| *time > 0)
        .unwrap_or_else(|| start.elapsed().as_nanos() as u64)
}

/// Nanoseconds for collecting so many bodies of so many pieces.
fn collect(bodies: usize, pieces: usize, announced: bool) -> u64 {
    let piece = vec![b' '; 4096];
    let length = [header("content-length", &pieces.saturating_mul(piece.len()).to_string())];
    let start = std::time::Instant::now();
    let before = processor_time(start);
    for _ in 0..bodies {
        let mut envoy = Envoy::new("{}");
        envoy.request("POST", MESSAGES, if announced { &length } else { &[] }, false);
        for _ in 0..pieces {
            envoy.body(&piece, false);
        }
    }
    processor_time(start).saturating_sub(before)
}

#[test]
fn a_large_body_is_collected_in_time_that_grows_with_its_size() {
    // 16 MiB at once, and in four parts. If each piece copied what is there, it would cost four
    // times as much, and seconds. As it is, it costs less than the steps in which the clock counts.
    const STEPS: u64 = 100_000_000;
    for announced in [false, true] {
        let mut found = Vec::new();
        let linear = (0..3).any(|_| {
            let (parts, whole) = (collect(4, 1024, announced), collect(1, 4096, announced));
            found.push((parts, whole));
            whole < STEPS || whole / 2 < parts
        });
        assert!(linear, "announced: {announced}: {found:?}");
    }
}
