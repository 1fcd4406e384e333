//! Calls beside a stream's own request: tools, later rounds, verdicts.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "tests")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

mod envoy;

use creole::Failure;
use creole_envoy::Filter;
use creole_envoy::action::{Action, Decision, Flow, HttpCall, LocalResponse, Side};
use creole_envoy::stream::Route;
use envoy::{Envoy, MESSAGES, header, text};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

const SEARCH: &str = r#"{"upstreams": {"main": {"key": "none"}}, "server_tools":
    {"web_search": {"kind": "searxng", "url": "http://search:8888/x", "cluster": "finder"}}}"#;

const RESULTS: &[u8] =
    br#"{"results":[{"url":"https://a.example/x","title":"A","content":"Alpha is 1."}]}"#;

/// Request of a client with the tool `web_search`.
fn request(stream: bool, said: &str) -> Vec<u8> {
    format!(
        r#"{{"model":"m","max_tokens":99,"stream":{stream},"tools":[{{"type":"web_search_20250305","name":"web_search"}}],"messages":[{{"role":"user","content":"{said}"}}]}}"#
    )
    .into_bytes()
}

/// Piece of a stream that says something.
fn says(said: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{said}\"}}}}]}}\n\n"
    )
}

/// End of a stream.
fn ends(reason: &str) -> String {
    format!(
        "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\ndata: [DONE]\n\n"
    )
}

/// Piece of a stream that calls `web_search` for each query.
fn searches(queries: &[&str]) -> String {
    let call = |(at, query): (usize, &&str)| {
        format!(
            r#"{{"index":{at},"id":"call_{at}","type":"function","function":{{"name":"web_search","arguments":"{{\"query\":\"{query}\"}}"}}}}"#
        )
    };
    let calls: Vec<String> = queries.iter().enumerate().map(call).collect();
    let calls = calls.join(",");
    format!(
        "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{calls}]}}}}]}}\n\n"
    )
}

/// Whole answer that says something.
fn whole(said: &str) -> String {
    format!(
        r#"{{"id":"c","choices":[{{"index":0,"finish_reason":"stop","message":{{"role":"assistant","content":"{said}"}}}}]}}"#
    )
}

/// Stream whose request has gone to the cluster `model`.
fn begun(config: &str, body: &[u8]) -> Envoy {
    let mut envoy = Envoy::new(config);
    envoy.request("POST", MESSAGES, &[header("x-api-key", "k")], false);
    assert_eq!(envoy.body(body, true).flow, Flow::Continue);
    answered(&mut envoy, EVENTS);
    envoy
}

/// Passes the head of the model's answer.
fn answered(envoy: &mut Envoy, kind: &str) {
    let route = Route { cluster: "model".to_owned(), is_checked: true };
    envoy.filter.on_route(envoy.id, route);
    let decision = envoy.head(200, &[header("content-type", kind)], false, "via_upstream");
    assert_eq!(decision.flow, Flow::Stop);
}

/// Stream that is held behind a first round with these searches, and its open calls.
fn behind(config: &str, queries: &[&str]) -> (Envoy, String, Vec<(u32, HttpCall)>) {
    let mut envoy = begun(config, &request(true, "What is it?"));
    let first = envoy.answer((says("Let me see.") + &searches(queries)).as_bytes(), false);
    assert_eq!(first.flow, Flow::Continue);
    let said = text(&envoy::written(&first, Side::Response, b"")).to_owned();
    let last = envoy.answer(ends("tool_calls").as_bytes(), false);
    assert_eq!(last.flow, Flow::Pause);
    assert!(last.actions.contains(&Action::ReplaceBody(Side::Response, Vec::new())), "{last:?}");
    let calls = envoy.taken(&last.actions);
    assert_eq!(envoy.answer(b"", true), Decision::pause(Vec::new()));
    (envoy, said, calls)
}

/// Returns what ticks write until nothing more is due, and whether the stream was continued.
fn flushed(envoy: &mut Envoy) -> (String, bool) {
    let (mut out, mut goes_on) = (String::new(), false);
    for _ in 0..20 {
        let now = envoy.now + 1;
        for (_, actions) in envoy.tick(now) {
            for action in actions {
                match action {
                    Action::ReplaceBody(Side::Response, bytes) => out.push_str(text(&bytes)),
                    Action::ContinueResponse => {
                        assert!(envoy.filter.may_continue(envoy.id, Side::Response));
                        goes_on = true;
                    }
                    Action::SetTickPeriod { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    (out, goes_on)
}

fn one(calls: Vec<(u32, HttpCall)>) -> (u32, HttpCall) {
    let [call] = &calls[..] else { panic!("{calls:?}") };
    call.clone()
}

fn value<'c>(call: &'c HttpCall, name: &str) -> &'c str {
    call.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}

#[test]
fn a_search_before_the_model_holds_the_request() {
    for end_apart in [false, true] {
        let mut envoy = Envoy::new(SEARCH);
        let length = request(true, "Perform a web search for the query: alpha");
        let headers =
            [header("x-api-key", "k"), header("content-length", &length.len().to_string())];
        envoy.request("POST", MESSAGES, &headers, false);
        let held = envoy.body(&length, !end_apart);
        assert_eq!(held.flow, Flow::Pause);
        assert_eq!(held.actions[0], Action::ReplaceBody(Side::Request, Vec::new()));
        let (token, call) = one(envoy.taken(&held.actions));
        assert_eq!((call.cluster.as_str(), call.body.as_slice()), ("finder", &b""[..]));
        assert_eq!(value(&call, ":method"), "GET");
        assert_eq!(value(&call, ":path"), "/x/search?q=alpha&format=json");
        assert_eq!((value(&call, ":authority"), value(&call, ":scheme")), ("search:8888", "http"));
        assert!(!call.headers.iter().any(|(name, _)| name == "x-api-key"), "{call:?}");
        assert_eq!(call.timeout_ms, 17_000);
        if end_apart {
            assert_eq!(envoy.body(b"", true), Decision::pause(Vec::new()));
        }
        let actions = envoy.respond(token, 200, JSON, RESULTS);
        let [
            Action::Mark,
            Action::ReplaceHeaders(Side::Request, head),
            body,
            Action::ContinueRequest,
        ] = &actions[..]
        else {
            panic!("{actions:?}")
        };
        assert!(envoy.filter.may_continue(envoy.id, Side::Request));
        assert!(head.contains(&header("x-creole-upstream", "main")), "{head:?}");
        let Action::ReplaceBody(Side::Request, body) = body else { panic!("{body:?}") };
        assert!(text(body).contains("Alpha is 1."), "{}", text(body));
        assert!(head.contains(&header("content-length", &body.len().to_string())), "{head:?}");

        answered(&mut envoy, EVENTS);
        let said = envoy.answer((says("It is 1.") + &ends("stop")).as_bytes(), false);
        let said = envoy::written(&said, Side::Response, b"");
        assert!(text(&said).contains("web_search_tool_result"), "{}", text(&said));
        assert!(text(&said).ends_with("data: {\"type\":\"message_stop\"}\n\n"));
    }
}

#[test]
fn envoys_refusal_of_a_held_request_is_told_in_the_clients_shape() {
    let mut envoy = Envoy::new(SEARCH);
    envoy.request("POST", MESSAGES, &[], false);
    let held = envoy.body(&request(true, "Perform a web search for the query: alpha"), true);
    let (token, _) = one(envoy.taken(&held.actions));
    envoy.respond(token, 200, JSON, RESULTS);
    // Envoy answers inside of the write of the body.
    let head = [header("content-length", "17")];
    assert_eq!(envoy.head(413, &head, false, "request_payload_too_large").flow, Flow::Stop);
    assert!(!envoy.filter.may_continue(envoy.id, Side::Request), "continuing crashes Envoy");
    let told = envoy.answer(b"Payload Too Large", true);
    let told = envoy::written(&told, Side::Response, b"");
    assert!(text(&told).contains("request_too_large"), "{}", text(&told));
}

#[test]
fn the_end_of_a_stream_waits_for_tools_and_the_next_round() {
    let (mut envoy, said, calls) = behind(SEARCH, &["alpha"]);
    assert!(said.contains("Let me see.") && !said.contains("message_stop"), "{said}");
    let (token, call) = one(calls);
    assert_eq!(call.cluster, "finder");
    assert_eq!(flushed(&mut envoy), (String::new(), false), "one write is left");
    let actions = envoy.respond(token, 200, JSON, RESULTS);
    let (token, call) = one(envoy.taken(&actions));
    assert_eq!((call.cluster.as_str(), value(&call, ":method")), ("model", "POST"));
    assert_eq!(value(&call, ":path"), "/v1/chat/completions");
    assert_eq!(value(&call, ":authority"), "gateway", "as in the first request");
    assert!(!call.headers.iter().any(|(name, _)| name == "x-api-key"), "{call:?}");
    assert!(text(&call.body).contains("Alpha is 1."), "{}", text(&call.body));
    assert_eq!(call.timeout_ms, 592_000, "a later round comes whole");
    assert_eq!(flushed(&mut envoy), (String::new(), false));
    let actions = envoy.respond(token, 200, EVENTS, (says("It is 1.") + &ends("stop")).as_bytes());
    assert!(!actions.iter().any(Action::ends_stream), "{actions:?}");
    let (rest, goes_on) = flushed(&mut envoy);
    let all = said + &rest;
    assert!(goes_on && rest.contains("web_search_tool_result") && rest.contains("It is 1."));
    for event in ["message_start", "message_delta", "message_stop"] {
        assert_eq!(all.matches(&format!("event: {event}\n")).count(), 1, "{event}: {all}");
    }
    assert_eq!(envoy.filter.held_bytes(), 0);
    assert!(envoy.lines("via_upstream").iter().any(|(_, line)| line.contains("\"answered\"")));
}

#[test]
fn calls_give_the_same_bytes_in_whatever_order_their_answers_come() {
    let run = |newest_first: bool| {
        let (mut envoy, said, mut calls) = behind(SEARCH, &["alpha", "beta"]);
        assert_eq!(calls.len(), 2);
        if newest_first {
            calls.reverse();
        }
        let mut next = Vec::new();
        for (token, call) in calls {
            let results = if value(&call, ":path").contains("alpha") { RESULTS } else { b"{}" };
            next = envoy.respond(token, 200, JSON, results);
        }
        let (token, call) = one(envoy.taken(&next));
        envoy.respond(token, 200, EVENTS, (says("It is 1.") + &ends("stop")).as_bytes());
        (said + &flushed(&mut envoy).0, text(&call.body).to_owned())
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn a_whole_answer_is_this_filters_own_when_tools_were_run() {
    let mut envoy = Envoy::new(SEARCH);
    envoy.request("POST", MESSAGES, &[], false);
    envoy.body(&request(false, "What is it?"), true);
    answered(&mut envoy, JSON);
    let calls = r#"{"id":"c","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"web_search","arguments":"{\"query\":\"alpha\"}"}}]}}]}"#;
    let (first, rest) = calls.as_bytes().split_at(50);
    assert_eq!(envoy.answer(first, false).flow, Flow::Stop);
    let held = envoy.answer(rest, true);
    assert_eq!(held.flow, Flow::Pause);
    let (token, _) = one(envoy.taken(&held.actions));
    let actions = envoy.respond(token, 200, JSON, RESULTS);
    let (token, _) = one(envoy.taken(&actions));
    let actions = envoy.respond(token, 200, JSON, whole("It is 1.").as_bytes());
    let [Action::SendLocalResponse(LocalResponse { status, body, .. })] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!(*status, 200);
    assert!(text(body).contains("web_search_tool_result") && text(body).contains("It is 1."));
}

#[test]
fn a_call_without_an_answer_is_a_result() {
    let (mut envoy, _, calls) = behind(SEARCH, &["alpha"]);
    let actions = envoy.respond(one(calls).0, 0, "", b"");
    let (token, call) = one(envoy.taken(&actions));
    assert!(text(&call.body).contains("Error: unavailable."), "{}", text(&call.body));
    envoy.respond(token, 200, EVENTS, (says("No.") + &ends("stop")).as_bytes());
    let (rest, _) = flushed(&mut envoy);
    assert!(rest.contains("\"error_code\":\"unavailable\"") && rest.contains("message_stop"));
}

#[test]
fn a_call_that_envoy_does_not_take_fails_in_the_next_tick() {
    let mut envoy = begun(SEARCH, &request(true, "What is it?"));
    let last = envoy.answer((searches(&["alpha"]) + &ends("tool_calls")).as_bytes(), true);
    let call = last.actions.iter().find_map(|action| match action {
        Action::Call(call) => Some(call.id),
        _ => None,
    });
    let hurry = envoy.filter.on_call_refused(envoy.id, call.unwrap(), Failure::NoRoute);
    assert_eq!(hurry, Some(Action::SetTickPeriod { period_ms: 1 }));
    let now = envoy.now + 1;
    let actions: Vec<Action> = envoy.tick(now).into_iter().flat_map(|(_, all)| all).collect();
    let (_, call) = one(envoy.taken(&actions));
    assert!(text(&call.body).contains("Error: unavailable."), "{}", text(&call.body));
}

#[test]
fn a_call_that_takes_too_long_is_given_up_and_its_answer_thrown_away() {
    let (mut envoy, _, calls) = behind(SEARCH, &["alpha"]);
    let (late, now) = (one(calls).0, envoy.now);
    let mut ticked = |now| -> Vec<Action> {
        envoy.tick(now).into_iter().flat_map(|(_, actions)| actions).collect()
    };
    let early = ticked(now + 14_999);
    assert!(!early.iter().any(|action| matches!(action, Action::Call(_))), "{early:?}");
    let actions = ticked(now + 15_000);
    let (token, call) = one(envoy.taken(&actions));
    assert!(text(&call.body).contains("Error: unavailable."), "{}", text(&call.body));
    assert_eq!(envoy.respond(late, 200, JSON, RESULTS), Vec::new());
    envoy.respond(token, 200, EVENTS, (says("No.") + &ends("stop")).as_bytes());
    assert!(flushed(&mut envoy).0.contains("message_stop"));
}

#[test]
fn nothing_follows_for_a_client_that_left() {
    let (mut envoy, _, calls) = behind(SEARCH, &["alpha"]);
    let lines = envoy.lines("downstream_remote_disconnect");
    assert!(lines.iter().any(|(_, line)| line.contains("client_gone")), "{lines:?}");
    assert!(!envoy.filter.may_continue(envoy.id, Side::Response));
    envoy.filter.on_delete(envoy.id);
    let token = one(calls).0;
    assert_eq!(envoy.filter.take_call(token), None);
    assert_eq!(envoy.respond(token, 200, JSON, RESULTS), Vec::new());
    assert_eq!(envoy.filter.held_bytes(), 0);
}

#[test]
fn a_rest_that_envoy_could_not_write_at_once_becomes_an_error_event() {
    let config = SEARCH.replace(r#""kind""#, r#""snippet_bytes_max": 1048576, "kind""#);
    let (mut envoy, said, calls) = behind(&config, &["alpha"]);
    let content = "x".repeat(1 << 20);
    let results = format!(
        r#"{{"results":[{{"url":"https://a.example/","title":"A","content":"{content}"}}]}}"#
    );
    let actions = envoy.respond(one(calls).0, 200, JSON, results.as_bytes());
    let (token, _) = one(envoy.taken(&actions));
    envoy.respond(token, 200, EVENTS, (says("It is x.") + &ends("stop")).as_bytes());
    let (rest, goes_on) = flushed(&mut envoy);
    assert!(goes_on && rest.starts_with("event: error\n"), "{}", rest.len());
    assert!(rest.contains("The rest of the answer is larger"), "{rest}");
    assert!(!(said + &rest).contains("message_stop"));
    let lines = envoy.lines("via_upstream");
    assert!(lines.iter().any(|(_, line)| line.contains("rest_too_large")), "{lines:?}");
}

#[test]
fn a_rest_that_envoy_threw_away_is_no_answer_in_the_log() {
    let (mut envoy, _, calls) = behind(SEARCH, &["alpha"]);
    let actions = envoy.respond(one(calls).0, 200, JSON, RESULTS);
    let (token, _) = one(envoy.taken(&actions));
    envoy.respond(token, 200, EVENTS, (says("It is 1.") + &ends("stop")).as_bytes());
    flushed(&mut envoy);
    let lines = envoy.lines("response_payload_too_large");
    assert!(lines.iter().any(|(_, line)| line.contains("rest_too_large")), "{lines:?}");
    assert!(!envoy.filter.may_continue(envoy.id, Side::Response), "continuing crashes Envoy");
}

#[test]
fn an_upstream_that_does_not_end_its_answer_does_not_hold_the_rest() {
    let mut envoy = begun(SEARCH, &request(true, "What is it?"));
    let last = envoy.answer((searches(&["alpha"]) + &ends("tool_calls")).as_bytes(), false);
    let (token, _) = one(envoy.taken(&last.actions));
    let (first, goes_on) = flushed(&mut envoy);
    assert!(goes_on && first.contains("server_tool_use"), "{first}");
    let actions = envoy.respond(token, 200, JSON, RESULTS);
    let (token, _) = one(envoy.taken(&actions));
    assert!(flushed(&mut envoy).0.contains("web_search_tool_result"), "results come at once");
    envoy.respond(token, 200, EVENTS, (says("It is 1.") + &ends("stop")).as_bytes());
    assert!(flushed(&mut envoy).0.ends_with("data: {\"type\":\"message_stop\"}\n\n"));
    let now = envoy.now;
    assert_eq!(envoy.tick(now + 3000), [(envoy.id, vec![Action::CloseStream])]);
}

/// Returns what a tick does after some milliseconds.
fn after(envoy: &mut Envoy, pause_ms: u64) -> Vec<Action> {
    let now = envoy.now + pause_ms;
    envoy.tick(now).into_iter().flat_map(|(_, actions)| actions).collect()
}

#[test]
fn an_answer_that_only_a_timer_ends_does_not_hang() {
    let mut envoy = begun(SEARCH, &request(true, "What is it?"));
    let turn = (searches(&["alpha"]) + &ends("tool_calls")).replace("data: [DONE]\n\n", "");
    let first = envoy.answer(turn.as_bytes(), false);
    assert!(envoy.taken(&first.actions).is_empty());
    assert_eq!(after(&mut envoy, 60_001), [Action::CloseStream]);
}

#[test]
fn a_later_round_that_fails_is_repeated_and_then_an_error_event() {
    let (mut envoy, _, calls) = behind(SEARCH, &["alpha"]);
    let actions = envoy.respond(one(calls).0, 200, JSON, RESULTS);
    let (mut token, _) = one(envoy.taken(&actions));
    for pause_ms in [500, 1_000] {
        envoy.respond(token, 0, "", b"");
        let actions = after(&mut envoy, pause_ms);
        (token, _) = one(envoy.taken(&actions));
    }
    let own = b"upstream connect error or disconnect/reset before headers. reason: 10.0.0.7";
    envoy.respond(token, 503, "text/plain", own);
    let (rest, goes_on) = flushed(&mut envoy);
    assert!(goes_on && rest.contains("event: error\n") && !rest.contains("message_stop"), "{rest}");
    assert!(!rest.contains("10.0.0.7"), "{rest}");
}

#[test]
fn a_request_that_needs_no_call_passes_as_without_tools() {
    let with = begun(SEARCH, &request(true, "Hi")).answer(ends("stop").as_bytes(), false);
    let plain = r#"{"upstreams": {"main": {"key": "none"}}}"#;
    let hi = br#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let run = |config: &str| {
        let mut envoy = Envoy::new(config);
        let head = envoy.request("POST", MESSAGES, &[], false);
        let body = envoy.body(hi, true);
        answered(&mut envoy, EVENTS);
        let first = envoy.answer(says("one").as_bytes(), false);
        (head, body, first, envoy.answer(ends("stop").as_bytes(), true))
    };
    assert_eq!(run(SEARCH), run(plain));
    assert_eq!(with.flow, Flow::Continue);
}

#[test]
fn a_configuration_without_the_clusters_that_it_needs_is_refused() {
    let refused = |config: &str| {
        let mut filter = Filter::default();
        filter.on_context_create(1, 0);
        filter.on_configure(1, config, |_| None).unwrap_err()
    };
    let error = refused(&SEARCH.replace(r#", "cluster": "finder""#, ""));
    assert!(error.contains("server_tools.web_search.cluster: expected the name"), "{error}");
    let error =
        refused(&SEARCH.replace(r#""server_tools""#, r#""pause_headers": false, "server_tools""#));
    assert!(error.contains("server_tools: expected pause_headers to be true"), "{error}");
}

const JUDGE: &str = r#"{"upstreams": {"main": {"key": "none"},
    "safe": {"url": "http://safe:9/base", "key": {"env": "JUDGE"}, "cluster": "judges"}},
    "models": {"*": {"upstream": "main"}}, "safeguards": {"model": "guard-1", "upstream": "safe"}}"#;

fn safeguarded(stream: bool) -> Vec<u8> {
    format!(
        r#"{{"model":"m","max_tokens":99,"stream":{stream},"tools":[{{"name":"Bash","input_schema":{{"type":"object"}}}}],"safeguards":[{{"type":"dangerous_tool_use","classifier_context":{{"v":1}}}}],"messages":[{{"role":"user","content":"List"}}]}}"#
    )
    .into_bytes()
}

#[test]
fn the_judge_is_asked_while_the_end_of_the_answer_is_held() {
    let bash = r#"{"index":0,"id":"call_a","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"ls\"}"}}"#;
    for stream in [true, false] {
        let mut envoy = Envoy::new(JUDGE);
        envoy.request("POST", MESSAGES, &[header("x-api-key", "k")], false);
        assert_eq!(envoy.body(&safeguarded(stream), true).flow, Flow::Continue);
        answered(&mut envoy, if stream { EVENTS } else { JSON });
        let (key, end) = if stream { ("delta", "null") } else { ("message", "\"tool_calls\"") };
        let said = format!(
            r#"{{"id":"c","choices":[{{"index":0,"finish_reason":{end},"{key}":{{"role":"assistant","tool_calls":[{bash}]}}}}]}}"#
        );
        let said = if stream { format!("data: {said}\n\n{}", ends("tool_calls")) } else { said };
        let held = envoy.answer(said.as_bytes(), true);
        assert_eq!(held.flow, Flow::Pause);
        let (token, call) = one(envoy.taken(&held.actions));
        assert_eq!((call.cluster.as_str(), value(&call, ":authority")), ("judges", "safe:9"));
        assert_eq!(value(&call, ":path"), "/base/chat/completions");
        assert_eq!(value(&call, "authorization"), "Bearer secret-JUDGE");
        let verdict = r#"{\"calls\":[]}"#;
        let actions = envoy.respond(token, 200, JSON, whole(verdict).as_bytes());
        let got = match &actions[..] {
            [Action::SendLocalResponse(response)] => text(&response.body).to_owned(),
            _ => flushed(&mut envoy).0,
        };
        assert!(got.contains("safeguard_results") && got.contains("\"name\":\"Bash\""), "{got}");
        assert!(!got.contains("unsupported"), "{got}");
    }
}

#[test]
fn without_paused_heads_no_judge_is_asked_and_the_log_says_so() {
    let config = r#"{"upstreams": {"main": {"key": "none", "cluster": "main"}},
        "pause_headers": false, "safeguards": {"model": "guard-1", "upstream": "main"}}"#;
    let mut filter = Filter::default();
    filter.on_context_create(1, 0);
    let actions = filter.on_configure(1, config, |_| None).unwrap();
    let Some(Action::Log(_, line)) = actions.last() else { panic!("{actions:?}") };
    assert!(line.starts_with("configuration: pause_headers: is false, so no model"), "{line}");
}

#[test]
fn a_judge_without_a_cluster_is_not_asked_and_the_log_says_so() {
    let config = JUDGE.replace(r#", "cluster": "judges""#, "");
    let mut filter = Filter::default();
    filter.on_context_create(1, 0);
    let actions = filter.on_configure(1, &config, |_| Some("s".to_owned())).unwrap();
    let Some(Action::Log(_, line)) = actions.last() else { panic!("{actions:?}") };
    assert!(line.starts_with("configuration: upstreams.safe.cluster: names no cluster"), "{line}");
    let mut envoy = Envoy::new(&config);
    envoy.request("POST", MESSAGES, &[], false);
    envoy.body(&safeguarded(true), true);
    answered(&mut envoy, EVENTS);
    let said = envoy.answer(ends("stop").as_bytes(), true);
    let said = envoy::written(&said, Side::Response, b"");
    assert!(text(&said).contains("unsupported"), "{}", text(&said));
}

/// Refuses the request of a stream with this message.
fn refused_with(message: &str, body: &[u8]) -> (Envoy, Decision) {
    let mut envoy = Envoy::new(JUDGE);
    envoy.request("POST", MESSAGES, &[], false);
    envoy.body(body, true);
    envoy.filter.on_route(envoy.id, Route { cluster: "model".to_owned(), is_checked: true });
    envoy.head(400, &[header("content-type", JSON)], false, "via_upstream");
    let error = format!(r#"{{"error":{{"message":"{message}"}}}}"#);
    let decision = envoy.answer(error.as_bytes(), true);
    (envoy, decision)
}

#[test]
fn a_refusal_that_the_memory_keeps_is_the_clients_to_retry() {
    let stops = br#"{"model":"m","max_tokens":9,"stream":true,"stop_sequences":["a","b","c"],"messages":[{"role":"user","content":"hi"}]}"#;
    let (mut envoy, decision) =
        refused_with("`stop` supports up to 2 stop sequences. Given: 3", stops);
    assert_eq!(envoy.taken(&decision.actions), Vec::new());
    let said = envoy::written(&decision, Side::Response, b"");
    assert!(text(&said).contains("overloaded_error"), "{}", text(&said));
}

#[test]
fn a_refusal_that_no_memory_keeps_is_asked_again() {
    let image = br#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"See"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]},{"role":"assistant","content":"I see."},{"role":"user","content":"And now?"}]}"#;
    let (mut envoy, decision) = refused_with("This model does not support image input", image);
    assert_eq!(decision.flow, Flow::Pause);
    let (token, call) = one(envoy.taken(&decision.actions));
    assert_eq!(call.cluster, "model");
    assert!(!text(&call.body).contains("image_url"), "{}", text(&call.body));
    let answer = says("I did.") + &ends("stop");
    let actions = envoy.respond(token, 200, EVENTS, answer.as_bytes());
    let [Action::SendLocalResponse(response)] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!(response.status, 200);
    assert!(text(&response.body).contains("I did."), "{}", text(&response.body));
    assert!(text(&response.body).ends_with("data: {\"type\":\"message_stop\"}\n\n"));
}

#[test]
fn an_image_on_the_web_is_fetched_through_its_cluster_while_the_request_is_held() {
    let mut envoy = Envoy::new(
        r#"{"upstreams": {"main": {"key": "none", "profile_overrides": {"image_parts": "data"}}},
            "fetch_images": {"hosts": ["images.example.com"], "cluster": "egress"}}"#,
    );
    envoy.request("POST", MESSAGES, &[header("x-api-key", "k")], false);
    let held = envoy.body(
        br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://images.example.com/a.png?b=c"}}]}]}"#,
        true,
    );
    assert_eq!(held.flow, Flow::Pause);
    let (token, call) = one(envoy.taken(&held.actions));
    assert_eq!(call.cluster, "egress");
    let sent = [":scheme", ":authority", ":path"].map(|name| value(&call, name));
    assert_eq!(sent, ["https", "images.example.com", "/a.png?b=c"]);
    let actions = envoy.respond(token, 200, "image/png", b"\x89PNG\r\n\x1a\n and the rest");
    let Some(Action::ContinueRequest) = actions.last() else { panic!("{actions:?}") };
    let body = envoy::written(&Decision::go_on(actions), Side::Request, b"");
    assert!(text(&body).contains("data:image/png;base64,"), "{}", text(&body));
}
