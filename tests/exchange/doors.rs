//! Checks of what may come in: methods, base URLs, loops, keys of clients.

use super::*;

#[test]
fn without_a_model_map_the_upstream_is_asked_for_its_models() {
    let version = ("anthropic-version", "2023-06-01");
    let own =
        r#"{"upstreams":{"default":{"url":"http://u","key":{"secret":"K"},"base_path":"/x"}}}"#;
    let begin = |config: &str, sent: &[(&str, &str)]| {
        let host = HostCan { list_models: true, ..can(Pings::Sent) };
        let mut exchange = Exchange::new(drive::config(config), SEED, host);
        let head = exchange.decide("GET", "/v1/models?limit=1000", &headers(sent));
        (exchange, head)
    };
    let list = br#"{"object":"list","data":[{"id":"qwen","object":"model"}]}"#;
    for (status, body, expected) in [
        (200, &list[..], json!(["qwen"])),
        (200, b"<html>", json!([])),
        (404, b"404 page not found", json!([])),
        (401, br#"{"error":{"message":"no"}}"#, json!([])),
    ] {
        let (mut exchange, head) = begin(own, &[version]);
        assert_eq!(head, Decision::Translate);
        let sent = exchange.request(b"", NOW).unwrap();
        assert_eq!((sent.method(), sent.path.as_str()), ("GET", "/x/models"));
        assert!(
            sent.headers.contains(&("authorization".to_owned(), "Bearer secret-of-K".to_owned()))
        );
        assert!(sent.headers.iter().all(|(name, _)| name != "content-type"));
        let answer = drive::respond(exchange, status, &[], body.chunks(7), End::Complete);
        assert_eq!(answer.head.status, 200, "{status}");
        let told: Value = serde_json::from_slice(&answer.body).unwrap();
        let ids: Vec<&Value> =
            told["data"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
        assert_eq!(json!(ids), expected, "{status}");
        assert_eq!((answer.report.status, answer.report.cause()), (200, "reply"));
    }
    // One that is not there, or silent, has no names.
    for silent in [true, false] {
        let (mut exchange, _) = begin(own, &[version]);
        exchange.request(b"", NOW).unwrap();
        let mut out = Vec::new();
        let head = if silent {
            let at = exchange.poll_timeout().unwrap();
            assert!(at <= NOW + 3000, "Claude Code waits no longer");
            exchange.timeout(at, &mut out)
        } else {
            exchange.failed(Failure::Unreachable(Unreachable::Refused), NOW, &mut out)
        };
        assert_eq!(head.unwrap().status, 200);
        assert!(String::from_utf8(out).unwrap().starts_with(r#"{"data":[],"#));
        assert!(exchange.is_ended());
    }
    // A client without a key, where the upstream has none either.
    let (mut exchange, _) = begin("{}", &[version]);
    assert_eq!(exchange.request(b"", NOW).unwrap_err().head.status, 200);
    // A client of Chat Completions gets what the upstream says, and so does one of Messages from an
    // upstream of its kind.
    assert_eq!(begin(own, &[]).1, Decision::PassThrough);
    let native = r#"{"upstreams":{"default":{"url":"http://u","protocol":"anthropic"}}}"#;
    assert_eq!(begin(native, &[version]).1, Decision::PassThrough);
    // A map is what clients may use.
    let mapped = r#"{"models":{"a":{}}}"#;
    assert_eq!(refused(begin(mapped, &[version]).1).head.status, 200);
}

#[test]
fn claude_code_can_choose_each_model_that_is_listed() {
    let agent = [("anthropic-version", "2023-06-01"), ("user-agent", "claude-code/2.1.332")];
    let first = |body: &[u8]| -> Value {
        serde_json::from_slice::<Value>(body).unwrap()["data"][0]["id"].clone()
    };
    let host = HostCan { list_models: true, ..can(Pings::Sent) };
    for (config, expected) in [
        (r#"{"upstreams":{"default":{"key":"none"}}}"#, "claude-creole/qwen"),
        (r#"{"models":{"*":{"model":"llama"}}}"#, "claude-creole/llama"),
        (r#"{"models":{"claude-*":{"model":"llama"}}}"#, "claude-llama"),
    ] {
        let mut exchange = Exchange::new(drive::config(config), SEED, host);
        let body = match exchange.decide("GET", "/v1/models?limit=1000", &headers(&agent)) {
            Decision::Translate => {
                exchange.request(b"", NOW).unwrap();
                let list = [&br#"{"data":[{"id":"qwen"}]}"#[..]];
                drive::respond(exchange, 200, &[], list, End::Complete).body
            }
            answered => refused(answered).body,
        };
        assert_eq!(first(&body), expected);
        let mut exchange = Exchange::new(drive::config(config), SEED, host);
        assert_eq!(
            exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")])),
            Decision::Translate
        );
        let asked = json!({"model": expected, "max_tokens": 9,
            "messages": [{"role": "user", "content": "Hi"}]});
        let sent = exchange.request(asked.to_string().as_bytes(), NOW).unwrap();
        let sent: Value = serde_json::from_slice(&sent.body).unwrap();
        assert_eq!(sent["model"], expected.rsplit(['/', '-']).next().unwrap());
    }
}

/// An upstream that was asked for its models and has sent its head.
fn listing() -> Exchange {
    let config = drive::config(r#"{"upstreams":{"default":{"url":"http://u","key":"none"}}}"#);
    let host = HostCan { list_models: true, ..can(Pings::Sent) };
    let mut exchange = Exchange::new(config, SEED, host);
    let sent = headers(&[("anthropic-version", "2023-06-01")]);
    assert_eq!(exchange.decide("GET", "/v1/models", &sent), Decision::Translate);
    exchange.request(b"", NOW).unwrap();
    exchange.handle_call_head(200, &[], NOW + 2400);
    exchange
}

#[test]
fn a_list_of_models_counts_towards_what_is_held() {
    let mut exchange = listing();
    let piece = format!(r#"{{"data":[{}"#, " ".repeat(50_000));
    for count in 1..4 {
        exchange.piece(piece.as_bytes(), NOW + 2400, &mut Vec::new());
        assert_eq!(exchange.held_bytes(), piece.len() * count);
    }
    exchange.end(End::Complete, NOW + 2401, &mut Vec::new());
    assert_eq!(exchange.held_bytes(), 0);
}

#[test]
fn one_time_is_for_the_whole_list_of_models() {
    let list = r#"{"object":"list","data":[{"id":"qwen"}]}"#;
    for (came, expected) in [(&list[..9], json!([])), ("", json!([])), (list, json!(["qwen"]))] {
        for (fails, is_sent) in [(false, false), (false, true), (true, false)] {
            let mut exchange = listing();
            let mut out = Vec::new();
            let early = is_sent.then(|| {
                exchange.release_head();
                exchange.poll_head().unwrap()
            });
            // Each byte is a sign of life, and gives it no more time.
            for (number, byte) in came.bytes().enumerate() {
                let now = NOW + 2400 + number as u64;
                assert_eq!(exchange.piece(&[byte], now, &mut out), None);
            }
            assert_eq!(exchange.poll_timeout(), Some(NOW + 2500));
            assert_eq!(exchange.timeout(NOW + 2499, &mut out), None);
            assert!(!exchange.is_ended() && out.is_empty());
            let head = if fails {
                let failure = Failure::Unreachable(Unreachable::Closed);
                exchange.failed(failure, NOW + 2499, &mut out)
            } else {
                exchange.timeout(NOW + 2500, &mut out)
            };
            assert_eq!(early.or(head).unwrap().status, 200, "{came}");
            let told: Value = serde_json::from_slice(&out).unwrap();
            let ids = told["data"].as_array().unwrap().iter().map(|it| it["id"].clone());
            assert_eq!(json!(ids.collect::<Vec<_>>()), expected, "{came}");
            assert_eq!((exchange.report().cause(), exchange.is_ended()), ("reply", true));
        }
    }
}

/// Returns the decision of an exchange on a head.
fn head_of(config: &str, method: &str, path: &str, sent: &[(&str, &str)]) -> Decision {
    let mut exchange = Exchange::new(drive::config(config), SEED, can(Pings::No));
    exchange.decide(method, path, &headers(sent))
}

fn refused(head: Decision) -> creole::Reply {
    match head {
        Decision::Reply(reply) => reply,
        other => panic!("it was not refused: {other:?}"),
    }
}

#[test]
fn only_known_methods_go_to_an_upstream() {
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        assert_eq!(head_of("{}", method, "/v1/files", &[]), Decision::PassThrough, "{method}");
    }
    for method in ["TRACE", "TRACK", "CONNECT", "DEBUG", "PRI", "PURGE", "get", "GET, TRACE", ""] {
        for path in ["/v1/files", "/", "/elsewhere", "/v1/models"] {
            let reply = refused(head_of("{}", method, path, &[]));
            assert_eq!(reply.head.status, 405, "{method} {path}");
            let allowed = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
            assert_eq!(header(&reply.head, "allow"), Some(allowed));
            assert_eq!(error_of(&reply.body)["type"], "invalid_request_error");
        }
        let reply = refused(head_of("{}", method, "/v1/messages", &[]));
        assert_eq!((reply.head.status, header(&reply.head, "allow")), (405, Some("POST")));
    }
}

#[test]
fn the_methods_of_other_services_are_left_to_them() {
    let host = HostCan { serve_others: true, ..HostCan::default() };
    let mut exchange = Exchange::new(drive::config("{}"), SEED, host);
    let head = exchange.decide("PROPFIND", "/files", &[]);
    assert_eq!(head, Decision::PassThrough);
}

const KEYS: &str = r#"{"client_keys":[{"secret":"TEAM_A","name":"a"},{"secret":"TEAM_B"}],
    "upstreams":{"default":{"url":"http://u","key":{"secret":"K"}}}}"#;

#[test]
fn where_clients_have_keys_nobody_else_comes_in() {
    for (method, path) in [
        ("POST", "/v1/messages"),
        ("POST", "/v1/messages/count_tokens"),
        ("POST", "/v1/messages/batches"),
        ("GET", "/v1/messages"),
        ("GET", "/v1/models"),
        ("HEAD", "/v1/models/m"),
        ("POST", "/v1/files"),
        ("GET", "/metrics"),
        ("TRACE", "/v1/files"),
    ] {
        for (sent, message) in [
            (&[][..], "x-api-key header is required"),
            (&[("x-api-key", " ")], "x-api-key header is required"),
            (&[("x-api-key", "secret-of-TEAM_")], "invalid x-api-key"),
            (&[("x-api-key", "secret-of-K")], "invalid x-api-key"),
            (&[("authorization", "Basic secret-of-TEAM_A")], "invalid x-api-key"),
            (
                &[("x-api-key", "secret-of-TEAM_A, x"), ("cookie", "secret-of-TEAM_A")],
                "invalid x-api-key",
            ),
        ] {
            let reply = refused(head_of(KEYS, method, path, sent));
            assert_eq!(reply.head.status, 401, "{method} {path} {sent:?}");
            assert_eq!(header(&reply.head, "x-should-retry"), Some("false"));
            if method != "HEAD" {
                let error = error_of(&reply.body);
                let expected = json!({"type": "authentication_error", "message": message});
                assert_eq!(error, expected, "{method} {path} {sent:?}");
            }
        }
        for key in [
            ("x-api-key", "secret-of-TEAM_A"),
            ("X-Api-Key", "Bearer secret-of-TEAM_B"),
            ("authorization", "Bearer secret-of-TEAM_A"),
            ("authorization", "bearer  secret-of-TEAM_B"),
        ] {
            if let Decision::Reply(reply) = head_of(KEYS, method, path, &[key]) {
                assert_ne!(reply.head.status, 401, "{method} {path} {key:?}");
            }
        }
    }
    for (method, path) in [("GET", "/"), ("HEAD", "/api/hello")] {
        assert_eq!(refused(head_of(KEYS, method, path, &[])).head.status, 200, "{path}");
    }
}

#[test]
fn the_key_of_a_client_is_named_in_the_report_and_sent_to_no_upstream() {
    let both = [("x-api-key", "other"), ("authorization", "Bearer secret-of-TEAM_A")];
    for key in [r#""none""#, r#"{"secret":"K"}"#, r#""client""#] {
        for protocol in ["openai", "anthropic"] {
            let config = KEYS.replace(r#"{"secret":"K"}"#, key);
            let config = config.replace(r#""url""#, &format!(r#""protocol":"{protocol}","url""#));
            let mut exchange = Exchange::new(drive::config(&config), SEED, can(Pings::Sent));
            let head = exchange.decide("POST", "/v1/messages", &headers(&both));
            assert_eq!(head, Decision::Translate);
            assert_eq!(exchange.report().client_key.as_deref(), Some("a"));
            // Hosts refuse a configuration that would send it on.
            let Ok(sent) = exchange.request(&ask(true), NOW) else {
                assert_eq!(key, r#""client""#);
                continue;
            };
            let text = format!("{:?}", sent.headers);
            assert!(!text.contains("TEAM_A") && !text.contains("other"), "{text}");
            assert_eq!(text.contains("secret-of-K"), key.contains('K'), "{text}");
            let line = exchange.report();
            let line = creole::observe::log::line(
                &creole::observe::log::LoggedRequest::default(),
                &line,
                Log::Info,
                NOW,
            );
            assert!(line.unwrap().contains(r#""client_key":"a""#));
        }
    }
}

#[test]
fn a_filter_asks_for_keys_on_its_own_paths_alone() {
    let status = |path: &str| {
        let host = HostCan { serve_others: true, ..HostCan::default() };
        let mut exchange = Exchange::new(drive::config(KEYS), SEED, host);
        match exchange.decide("POST", path, &[]) {
            Decision::Reply(reply) => reply.head.status,
            _ => 0,
        }
    };
    assert_eq!((status("/v1/messages"), status("/v1/models"), status("/shop")), (401, 401, 0));
}

#[test]
fn gateways_that_lead_to_each_other_end_after_a_few_rounds() {
    let mut hops = None;
    for round in 0..4 {
        let mut sent = headers(&[("x-api-key", "k")]);
        sent.extend(hops.map(|hops| ("x-creole-hops".to_owned(), hops)));
        let mut exchange = Exchange::new(drive::config("{}"), SEED, can(Pings::No));
        let head = exchange.decide("POST", "/v1/messages", &sent);
        assert_eq!(head, Decision::Translate, "round {round}");
        let up = exchange.request(&ask(true), NOW).unwrap();
        hops = up.headers.iter().find(|(name, _)| name == "x-creole-hops").map(|it| it.1.clone());
    }
    assert_eq!(hops.as_deref(), Some("4"));
    for path in ["/v1/messages", "/v1/messages/count_tokens", "/v1/files", "/v1/models"] {
        for hops in ["4", "5", "4294967295"] {
            let mut exchange = Exchange::new(drive::config("{}"), SEED, can(Pings::No));
            let sent = headers(&[("x-api-key", "k"), ("x-creole-hops", hops)]);
            let reply = refused(exchange.decide("POST", path, &sent));
            assert_eq!(reply.head.status, 508, "{path} {hops}");
            assert_eq!(header(&reply.head, "x-should-retry"), Some("false"));
            let message = error_of(&reply.body)["message"].as_str().unwrap().to_owned();
            assert!(message.contains("lead to each other"), "{message}");
            assert_eq!(exchange.report().cause(), "loop");
        }
    }
}

#[test]
fn a_key_that_cannot_be_sent_is_told_so_and_a_long_one_is_sent() {
    // As an Entra token with groups is.
    let long = format!("Bearer {}", "a".repeat(10_455));
    let sent = |name: &str, value: &str| {
        let mut exchange = Exchange::new(drive::config("{}"), SEED, can(Pings::No));
        exchange.decide("POST", "/v1/messages", &headers(&[(name, value)]));
        exchange.request(&ask(true), NOW)
    };
    for name in ["authorization", "x-api-key"] {
        let up = sent(name, &long).unwrap();
        assert!(up.headers.contains(&("authorization".to_owned(), long.clone())), "{name}");
        let reply = sent(name, &"k".repeat(40_000)).unwrap_err();
        let expected = format!("{name}: expected at most 32768 bytes, but found 40000");
        assert_eq!(reply.head.status, 401);
        assert_eq!(error_of(&reply.body)["message"], expected);
        let reply = sent(name, "k\u{e9}y").unwrap_err();
        let expected = format!("{name}: expected visible ASCII characters in one line");
        assert_eq!(error_of(&reply.body)["message"], expected);
    }
}

#[test]
fn headers_of_the_operator_go_with_every_request_and_are_never_shown() {
    let config = r#"{"count_tokens":"upstream","upstreams":{"default":{"url":"http://u","headers":{
        "CF-Access-Client-Id":{"secret":"ACCESS"},"x-team":"a","User-Agent":"own","traceparent":"t"},
        "profile_overrides":{"tokenizer":"messages"}}}}"#;
    let client = headers(&[("x-api-key", "k"), ("traceparent", "00-1-2-01"), ("x-team", "b")]);
    for path in ["/v1/messages", "/v1/messages/count_tokens"] {
        let mut exchange = Exchange::new(drive::config(config), SEED, can(Pings::No));
        exchange.decide("POST", path, &client);
        let up = exchange.request(&ask(false), NOW).unwrap();
        for (name, value) in [
            ("cf-access-client-id", "secret-of-ACCESS"),
            ("x-team", "a"),
            ("user-agent", "own"),
            ("traceparent", "t"),
            ("authorization", "Bearer k"),
        ] {
            let found: Vec<_> = up.headers.iter().filter(|(known, _)| known == name).collect();
            assert_eq!(found, [&(name.to_owned(), value.to_owned())], "{path}");
        }
        if path.ends_with("messages") {
            let said = br#"{"error":{"message":"no access for secret-of-ACCESS"}}"#;
            let answer = drive::respond(exchange, 403, &[], [&said[..]], End::Complete);
            assert_eq!(error_of(&answer.body)["message"], "no access for ***");
        }
    }
}

#[test]
fn a_base_url_with_the_path_that_others_have_is_understood() {
    for (path, expected) in [
        ("//v1/messages", "/v1/messages"),
        ("//v1/messages?beta=true", "/v1/messages?beta=true"),
        ("/v1//v1/messages", "/v1/messages"),
        ("/v1/messages/", "/v1/messages/"),
        ("/messages/", "/v1/messages/"),
        ("/anthropic/v1/messages", "/v1/messages"),
        ("/anthropic//v1/messages?beta=true", "/v1/messages?beta=true"),
        ("/anthropic/v1/v1/messages", "/v1/messages"),
        ("/anthropic/v1/messages/count_tokens", "/v1/messages/count_tokens"),
        ("/anthropic/messages", "/v1/messages"),
        ("/api/anthropic/v1/models/a", "/v1/models/a"),
        ("/anthropic", "/"),
        ("/anthropic/", "/"),
        ("/anthropic/api/hello", "/api/hello"),
        // What is not Creole's keeps its path.
        ("/anthropic/v1/files", "/anthropic/v1/files"),
        ("/anthropics/v1/messages", "/anthropics/v1/messages"),
        ("/x/v1/messages", "/x/v1/messages"),
        ("/v1/anthropic/v1/messages", "/v1/anthropic/v1/messages"),
        ("//v1/files", "//v1/files"),
        ("/v1/files//content", "/v1/files//content"),
        ("//", "//"),
    ] {
        assert_eq!(creole::with_version(path), expected, "{path}");
    }
}

#[test]
fn a_slash_at_the_end_of_a_path_is_no_other_path() {
    let sent = [("x-api-key", "k")];
    for path in ["/v1/messages/", "/v1/messages//", "/v1/messages/count_tokens/?beta=true"] {
        assert_eq!(head_of("{}", "POST", path, &sent), Decision::Translate, "{path}");
    }
    let listed = refused(head_of(r#"{"models":{"a":{}}}"#, "GET", "/v1/models/", &[]));
    assert_eq!(listed.head.status, 200);
    assert!(String::from_utf8(listed.body).unwrap().contains(r#""id":"a""#));
    // Batches are not served, with a slash or without.
    let reply = refused(head_of("{}", "POST", "/v1/messages/batches/", &sent));
    assert_eq!(reply.head.status, 404);
}

#[test]
fn a_path_that_is_not_served_is_told_the_right_one() {
    let mut exchange = Exchange::new(drive::config("{}"), SEED, can(Pings::No));
    let head = exchange.decide("POST", "/x/v1/messages", &[]);
    assert_eq!(head, Decision::PassThrough);
    let reply = exchange.reply_to(Failure::NoRoute, NOW);
    assert_eq!(reply.head.status, 404);
    let message = error_of(&reply.body)["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("This gateway has no such route. It serves /v1/messages"),
        "{message}"
    );
}
