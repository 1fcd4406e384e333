//! Tests of eras, handshakes and sessions.

use super::*;

/// Legacy server with sessions, whose answers are event streams.
#[derive(Default)]
struct Legacy {
    /// Number of the session that is valid.
    session: u32,
    /// Version that the server negotiates; empty: the newest.
    version: &'static str,
    calls: u32,
}

impl Legacy {
    fn serve(&mut self, got: &Got) -> Came {
        let version = if self.version.is_empty() { "2025-11-25" } else { self.version };
        if got.is("initialize") {
            assert_eq!(got.header("mcp-protocol-version"), "");
            self.session = self.session.saturating_add(1);
            let result = format!(
                r#"{{"protocolVersion":"{version}","capabilities":{{}},"serverInfo":{{}}}}"#
            );
            let mut answer = answer(200, "text/event-stream", &events(got, &result));
            answer.session_id = Some(format!("session-{}", self.session));
            return Came::Web(answer);
        }
        if got.header("mcp-session-id") != format!("session-{}", self.session) {
            return match got.header("mcp-session-id") {
                "" => got.answer(400, NOT_INITIALIZED),
                _ => got.error(400, -32000, "Bad Request: No valid session ID provided"),
            };
        }
        assert_eq!(got.header("mcp-protocol-version"), version);
        assert_eq!(got.header("mcp-method"), "");
        assert!(!got.body().contains("_meta"));
        if got.is("notifications/initialized") {
            assert_eq!((got.id(), got.question.message_id), ("", None));
            return got.answer(202, "");
        }
        let result = match got.is("tools/list") {
            true => tools(&["add"]),
            false => r#"{"content":[{"type":"text","text":"3"}]}"#.to_owned(),
        };
        self.calls = self.calls.saturating_add(u32::from(got.is("tools/call")));
        came(200, "text/event-stream; charset=utf-8", &events(got, &result))
    }
}

/// Returns a stream with a priming event, a notification, a request of the server, and the result.
fn events(got: &Got, result: &str) -> String {
    let id = got.id();
    format!(
        ": hello\nid: 1\nretry: 5\ndata:\n\n\
         data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{}}}}\n\n\
         data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n\n\
         event: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\ndata: \"result\":{result}}}\n\n"
    )
}

const HANDSHAKE: [&str; 3] = ["initialize", "notifications/initialized", "tools/list"];

#[test]
fn a_legacy_server_gets_a_handshake_once() {
    let (mut tester, mut server) = (Tester::default(), Legacy::default());
    let list = tester.list(|got| server.serve(got)).unwrap();
    assert_eq!((names(&list), list.ttl_ms, list.is_public), (vec!["add"], 60_000, false));
    assert_eq!(tester.sent, [&["tools/list"], HANDSHAKE.as_slice()].concat());
    assert_eq!(tester.shared.era("s"), Some(McpEra::Legacy("2025-11-25")));
    tester.sent.clear();
    assert_eq!(tester.call("{}", |got| server.serve(got)).text(), "3");
    assert_eq!(tester.sent, ["tools/call"]);
}

#[test]
fn each_legacy_version_is_taken_and_no_other() {
    for version in era::LEGACY {
        let (mut tester, mut server) = (Tester::default(), Legacy::default());
        server.version = version;
        assert!(tester.list(|got| server.serve(got)).is_ok());
        assert_eq!(tester.shared.era("s"), Some(McpEra::Legacy(version)));
    }
    let (mut tester, mut server) = (Tester::default(), Legacy::default());
    server.version = "2099-01-01";
    assert_eq!(tester.list(|got| server.serve(got)), Err(McpFailure::NotMcp));
}

#[test]
fn a_lost_session_is_opened_anew_once() {
    let (mut tester, mut server) = (Tester::default(), Legacy::default());
    tester.list(|got| server.serve(got)).unwrap();
    tester.sent.clear();
    server.session = 7;
    assert_eq!(tester.call("{}", |got| server.serve(got)).text(), "3");
    let expected = ["tools/call", "initialize", "notifications/initialized", "tools/call"];
    assert_eq!((tester.sent.as_slice(), server.calls), (expected.map(str::to_owned).as_slice(), 1));
    // Lost again within the exchange: the call fails.
    tester.sent.clear();
    let output = tester.call("{}", |got| got.answer(404, ""));
    assert_eq!(output.text(), "The MCP server s could not be reached.");
    assert_eq!(tester.sent, ["tools/call", "tools/call"]);
}

#[test]
fn a_tool_that_fails_is_not_called_again() {
    let (mut tester, mut server) = (Tester::default(), Legacy::default());
    tester.list(|got| server.serve(got)).unwrap();
    tester.sent.clear();
    let output = tester.call("{}", |got| got.error(200, -32603, "session of the bank expired"));
    assert_eq!(output.text(), "MCP error -32603: session of the bank expired");
    assert_eq!(tester.sent, ["tools/call"]);
}

#[test]
fn the_answer_to_the_probe_shows_the_era() {
    for (status, code, is_modern) in [
        (400, -32020, true),
        (200, -32021, true),
        (400, -32602, true),
        (404, -32601, true),
        (200, -32601, false),
        (400, -32000, false),
        (405, -32601, false),
        (415, -32000, false),
    ] {
        let mut tester = Tester::default();
        let failure = tester.list(|got| match got.is("tools/list") {
            true => got.error(status, code, "no"),
            false => got.answer(503, ""),
        });
        let sent = tester.sent.len();
        assert_eq!((failure.is_err(), sent), (true, if is_modern { 1 } else { 2 }), "{code}");
    }
}

#[test]
fn the_newest_version_that_both_sides_know_is_taken() {
    let unsupported = |got: &Got, versions: &str| {
        let error =
            format!(r#"{{"code":-32022,"message":"no","data":{{"supported":{versions}}}}}"#);
        let id = got.id();
        got.answer(400, &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#))
    };
    let mut tester = Tester::default();
    let _ = tester.list(|got| match got.is("tools/list") {
        true => unsupported(got, r#"["2024-11-05","2025-06-18","2030-01-01"]"#),
        false => {
            assert!(got.body().contains(r#""protocolVersion":"2025-06-18""#));
            got.answer(503, "")
        }
    });
    assert_eq!(tester.sent, ["tools/list", "initialize"]);
    let mut tester = Tester::default();
    let failure = tester.list(|got| unsupported(got, r#"["2030-01-01"]"#)).unwrap_err();
    assert_eq!((failure.reason().as_str(), failure.status()), ("MCP error -32022", 400));
}

#[test]
fn the_old_transport_is_refused_with_words() {
    for status in [400, 404, 405] {
        let mut tester = Tester::default();
        let failure = tester.list(|got| got.answer(status, "Method Not Allowed")).unwrap_err();
        assert_eq!(failure, McpFailure::OldTransport);
        assert!(failure.reason().contains("HTTP+SSE"));
        assert_eq!(tester.sent, ["tools/list", "initialize"]);
    }
}

#[test]
fn a_configured_version_needs_no_probe() {
    for (version, sent) in [("2026-07-28", 1), ("2025-06-18", 3)] {
        let (mut tester, mut server) = (Tester::default(), Legacy::default());
        server.version = "2025-06-18";
        let mut target = McpTarget::clone(&target());
        target.revision = Some(version);
        let (settings, shared) = (Settings::default(), &mut tester.shared);
        let mut job = McpListJob::new(Arc::new(target), None, &settings, shared);
        let serve = |got: &Got| if sent == 1 { modern(got) } else { server.serve(got) };
        assert!(matches!(tester.run(&mut job, serve), McpOutcome::McpList(Ok(_))));
        assert_eq!(tester.sent.len(), sent);
    }
}

#[test]
fn a_remembered_era_that_is_wrong_costs_time_and_nothing_else() {
    let (mut tester, mut server) = (Tester::default(), Legacy::default());
    let mut job = tester.list_job(Some(McpEra::Modern));
    assert!(matches!(tester.run(&mut job, |got| server.serve(got)), McpOutcome::McpList(Ok(_))));
    let (mut tester, mut server) = (Tester::default(), Legacy::default());
    let remembered = Some(McpEra::Modern);
    let shared = &mut tester.shared;
    let job = McpCallJob::new(target(), ("add", SCHEMA), "{}", remembered, shared);
    assert_eq!(tester.end(&mut job.unwrap(), |got| server.serve(got)).text(), "3");
    assert_eq!(server.calls, 1);
    let mut tester = Tester::default();
    let mut job = tester.list_job(Some(McpEra::Legacy("2025-03-26")));
    let serve = |got: &Got| match got.is("initialize") {
        true => got.error(404, -32601, "no such method"),
        false => modern(got),
    };
    assert!(matches!(tester.run(&mut job, serve), McpOutcome::McpList(Ok(_))));
    assert_eq!(tester.sent, ["initialize", "tools/list"]);
}

#[test]
fn calls_at_the_same_time_wait_for_the_first_to_open_the_session() {
    let (mut tester, mut server) = (Tester::default(), Legacy::default());
    let (mut first, mut second) = (tester.call_job("{}"), tester.call_job("{}"));
    assert!(tester.ask(&first).is_some() && tester.ask(&second).is_none());
    for _ in 0..3 {
        let came = server.serve(&tester.ask(&first).unwrap());
        assert!(first.take(came, &mut tester.shared, &mut tester.report).is_none());
    }
    // The session is open, and both calls are under way at the same time.
    let (one, two) = (tester.ask(&first).unwrap(), tester.ask(&second).unwrap());
    assert!(one.is("tools/call") && two.is("tools/call") && one.id() != two.id());
    // The session is lost for both.
    server.session = 5;
    let (one, two) = (server.serve(&one), server.serve(&two));
    assert!(first.take(one, &mut tester.shared, &mut tester.report).is_none());
    assert_eq!(tester.end(&mut first, |got| server.serve(got)).text(), "3");
    assert!(second.take(two, &mut tester.shared, &mut tester.report).is_none());
    assert_eq!(tester.end(&mut second, |got| server.serve(got)).text(), "3");
    assert_eq!((server.session, server.calls), (6, 2));
}

#[test]
fn the_next_call_tries_if_the_first_cannot_open_the_session() {
    let (mut tester, mut server) = (Tester::default(), Legacy::default());
    let (mut first, mut second) = (tester.call_job("{}"), tester.call_job("{}"));
    let output = tester.end(&mut first, |_| Came::Nothing(Nothing::Unreachable));
    assert!(output.is_error);
    assert_eq!(tester.end(&mut second, |got| server.serve(got)).text(), "3");
}
