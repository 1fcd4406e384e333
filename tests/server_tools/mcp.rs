//! MCP servers of a request, whose tools any model calls.

use super::*;

/// Configuration with the server `s` at `http://mcp`; `more` are further keys of `mcp`.
fn with_server(more: &str) -> std::sync::Arc<creole::Config> {
    let mcp = format!(r#", "mcp": {{"servers": {{"s": {{"url": "http://mcp/x"}}}}{more}}}"#);
    session::config(&mcp)
}

/// A request that names the server `s`, with a toolset that has `more` members.
fn session(more: Value, turns: &[Turn], answers: &[Search]) -> Session {
    let mut toolset = json!({"type": "mcp_toolset", "mcp_server_name": "s"});
    toolset.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut session = Session::new(turns, answers)
        .with("tools", json!([toolset]))
        .with("mcp_servers", json!([{"type": "url", "name": "s", "url": "http://mcp/x"}]));
    session.headers.push(("anthropic-beta", "mcp-client-2025-11-20"));
    session.config = with_server("");
    session
}

/// The answer of a server to its request with this `id`.
fn result(id: u64, result: Value) -> Search {
    let rpc = json!({"jsonrpc": "2.0", "id": id, "result": result});
    Search::Gives(200, rpc.to_string())
}

fn listed(names: &[&str]) -> Value {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let tools = names.iter().map(
        |name| json!({"name": name, "description": format!("Does {name}"), "inputSchema": schema}),
    );
    json!({"tools": tools.collect::<Vec<_>>(), "resultType": "complete"})
}

fn said(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "resultType": "complete"})
}

fn add() -> [Turn; 2] {
    [turn("", &[("mcp__s__add", r#"{"a":1,"b":2}"#)]), turn("3", &[])]
}

fn functions(asked: &Value) -> Vec<&str> {
    let tools = asked["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

#[test]
fn a_tool_of_a_server_is_listed_offered_and_called() {
    let answers = [result(1, listed(&["add"])), result(2, said("3"))];
    let got = session(json!({}), &add(), &answers).run();
    assert_eq!(got.kinds(), ["mcp_tool_use", "mcp_tool_result", "text"]);
    let content = &got.message["content"];
    assert_eq!(content[0]["name"], "add");
    assert_eq!(content[0]["server_name"], "s");
    assert_eq!(content[0]["input"], json!({"a": 1, "b": 2}));
    assert_eq!(content[1]["tool_use_id"], content[0]["id"]);
    assert_eq!(content[1]["content"], json!([{"type": "text", "text": "3"}]));
    assert_eq!(content[1]["is_error"], false);
    assert_eq!(got.searched, ["http://mcp/x"; 2], "one request for the list, one for the call");
    let [first, second] = &got.asked[..] else { panic!("{:?}", got.asked) };
    assert_eq!(functions(first), ["mcp__s__add"]);
    assert_eq!(first["tools"][0]["function"]["description"], "Does add");
    let call = &second["messages"][1]["tool_calls"][0];
    assert_eq!(call["function"]["name"], "mcp__s__add");
    assert_eq!(second["messages"][2]["content"], "3");
    assert_eq!(second["messages"][2]["tool_call_id"], call["id"]);
}

#[test]
fn the_history_keeps_calls_and_results_and_pins_nothing() {
    let texts = json!([{"type": "text", "text": "3"}, {"type": "text", "text": "and more"}]);
    let answers = [result(1, listed(&["add"])), result(2, json!({"content": texts}))];
    let mut session = session(json!({}), &add(), &answers);
    let got = session.run();
    assert_eq!(got.message["content"][1]["content"], texts);
    assert_eq!(got.asked[1]["messages"][2]["content"], "3\nand more");
    let sent = got.asked[1]["messages"].as_array().unwrap().clone();
    session.body["messages"] = json!([
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": got.message["content"]},
        {"role": "user", "content": "And?"}]);
    session.turns = vec![turn("4", &[])];
    session.searches = vec![result(1, listed(&["add"]))];
    let next = session.run();
    assert_eq!(next.asked[0]["messages"].as_array().unwrap()[..sent.len()], sent[..]);
}

#[test]
fn with_the_newest_beta_an_answer_begins_with_the_list_and_the_list_is_pinned() {
    let answers = [result(1, listed(&["add", "sub"])), result(2, said("3"))];
    let newest = [("anthropic-beta", "mcp-client-2026-09-15")];
    let configs = json!({"configs": {"sub": {"enabled": false}}});
    let mut session = session(configs, &add(), &answers);
    session.headers = newest.to_vec();
    let got = session.run();
    let kinds = ["mcp_tool_listing", "mcp_tool_use", "mcp_tool_result", "text"];
    assert_eq!(got.kinds(), kinds);
    let listing = &got.message["content"][0];
    assert_eq!(listing["mcp_server_name"], "s");
    let names: Vec<&Value> =
        listing["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["add", "sub"], "what the server lists, before the client's choice");
    assert_eq!(functions(&got.asked[0]), ["mcp__s__add"]);
    session.body["messages"] = json!([
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": got.message["content"]},
        {"role": "user", "content": "Again"}]);
    session.turns = vec![turn("4", &[])];
    session.searches = Vec::new();
    let next = session.run();
    assert_eq!((next.kinds(), next.searched.len()), (vec!["text"], 0));
    assert_eq!(functions(&next.asked[0]), ["mcp__s__add"]);
}

#[test]
fn a_client_is_not_told_the_tools_that_the_operator_does_not_permit() {
    for (limits, told) in [
        (r#", "blocked_tools": ["sub"]"#, vec!["add", "mul"]),
        (r#", "allowed_tools": ["mul"]"#, vec!["mul"]),
    ] {
        let three = result(1, listed(&["add", "sub", "mul"]));
        let mut session = session(json!({}), &[turn("Hi", &[])], &[three]);
        session.headers = vec![("anthropic-beta", "mcp-client-2026-09-15")];
        let mcp = format!(r#", "mcp": {{"servers": {{"s": {{"url": "http://mcp/x"{limits}}}}}}}"#);
        session.config = session::config(&mcp);
        let got = session.run();
        let tools = got.message["content"][0]["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, told);
    }
}

#[test]
fn a_list_is_told_even_if_the_model_gets_none_of_its_tools() {
    let mut session = session(json!({}), &[turn("Hi", &[])], &[result(1, listed(&[]))]);
    session.headers = vec![("anthropic-beta", "mcp-client-2026-09-15")];
    let got = session.run();
    assert_eq!(got.kinds(), ["mcp_tool_listing", "text"]);
    assert_eq!(got.message["content"][0]["tools"], json!([]));
}

#[test]
fn a_call_beside_one_of_the_client_waits_for_the_clients_result() {
    let turns = [turn("", &[("mcp__s__add", "{}"), ("run", "{}")])];
    let mut session = session(json!({}), &turns, &[result(1, listed(&["add"]))]);
    let run = json!({"name": "run", "input_schema": {"type": "object"}});
    session.body["tools"].as_array_mut().unwrap().push(run);
    let got = session.run();
    assert_eq!(got.kinds(), ["mcp_tool_use", "tool_use"]);
    assert_eq!(got.message["stop_reason"], "tool_use");
    let id = got.message["content"][1]["id"].clone();
    session.body["messages"] = json!([
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": got.message["content"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "ok"}]}]);
    session.turns = vec![turn("Done.", &[])];
    session.searches = vec![result(1, listed(&["add"])), result(2, said("3"))];
    let next = session.run();
    assert_eq!(next.kinds(), ["mcp_tool_result", "text"]);
    assert_eq!(next.message["content"][0]["tool_use_id"], got.message["content"][0]["id"]);
    let contents: Vec<&Value> = next.asked[0]["messages"].as_array().unwrap()[2..]
        .iter()
        .map(|message| &message["content"])
        .collect();
    assert_eq!(contents, [&json!("3"), &json!("ok")]);
}

#[test]
fn each_equal_call_is_run_and_a_failure_is_told_to_the_model() {
    let call = [("mcp__s__add", "{}")];
    let turns = [turn("", &call), turn("", &call), turn("", &call), turn("Done.", &[])];
    let failed = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
    let error = json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -32602, "message": "bad"}});
    let answers = [
        result(1, listed(&["add"])),
        result(2, failed),
        Search::Gives(200, error.to_string()),
        Search::Fails,
    ];
    let got = session(json!({}), &turns, &answers).run();
    let told: Vec<&Value> =
        [2, 4, 6].iter().map(|at| &got.asked[3]["messages"][*at]["content"]).collect();
    assert_eq!(
        told,
        [
            "Error: no",
            "Error: MCP error -32602: bad",
            "Error: The MCP server s could not be reached."
        ]
    );
    assert_eq!(got.message["content"][1]["is_error"], true);
}

#[test]
fn only_enabled_tools_are_offered_and_deferred_ones_wait_for_a_search() {
    let configs = json!({"add": {"enabled": true}, "x": {"enabled": true}});
    let more = json!({"default_config": {"enabled": false}, "configs": configs});
    let answers = [result(1, listed(&["add", "sub"]))];
    let got = session(more, &[turn("Hi", &[])], &answers).run();
    assert_eq!(functions(&got.asked[0]), ["mcp__s__add"]);
}

#[test]
fn a_server_that_is_not_configured_is_refused_without_a_connection() {
    let mut session = session(json!({}), &[], &[]);
    session.body["mcp_servers"][0]["url"] = "https://other.example/".into();
    let got = session.once(false);
    assert_eq!((got.status, got.searched.len()), (400, 0));
    assert_eq!(
        got.message["error"]["message"],
        "mcp_servers[0].url: this server is not among those that this gateway may use"
    );
}

#[test]
fn a_server_that_gives_no_tools_fails_the_request_or_is_skipped() {
    for (answer, status) in
        [(Search::Gives(401, String::new()), 400), (Search::Gives(503, String::new()), 502)]
    {
        let got = session(json!({}), &[], std::slice::from_ref(&answer)).once(false);
        assert_eq!(got.status, status, "{answer:?}");
        let message = got.message["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("mcp_servers[0]: server \"s\" did not give its tools: "));
        let mut skipped = session(json!({}), &[turn("Hi", &[])], &[answer]);
        skipped.config = with_server(r#", "unavailable": "skip""#);
        let got = skipped.run();
        assert_eq!(got.asked[0].get("tools"), None);
        assert!(got.report.warnings.header().unwrap().contains("mcp_unavailable:s"));
    }
}

#[test]
fn the_first_version_of_the_connector_needs_no_toolset() {
    let mut session = session(json!({}), &[turn("Hi", &[])], &[result(1, listed(&["add", "sub"]))]);
    session.body.as_object_mut().unwrap().remove("tools");
    session.body["mcp_servers"][0]["tool_configuration"] = json!({"allowed_tools": ["add"]});
    session.headers[1].1 = "mcp-client-2025-04-04";
    assert_eq!(functions(&session.run().asked[0]), ["mcp__s__add"]);
    session.headers[1].1 = "mcp-client-2025-11-20";
    assert_eq!(session.once(false).status, 400);
}

#[test]
fn a_server_of_the_operator_is_offered_to_every_client() {
    let mut session = Session::new(&add(), &[result(1, listed(&["add"])), result(2, said("3"))]);
    session.body.as_object_mut().unwrap().remove("tools");
    session.config =
        session::config(r#", "mcp": {"servers": {"s": {"url": "http://mcp/x", "offer": true}}}"#);
    assert_eq!(session.run().kinds(), ["mcp_tool_use", "mcp_tool_result", "text"]);
}

#[test]
fn a_tool_that_the_operator_blocks_is_not_called_however_the_request_is_written() {
    let hidden = json!({"name": "remove", "input_schema": {"type": "object"}});
    let mut session = session(json!({"tools": [hidden]}), &[turn("Hi", &[])], &[]);
    session.config = session::config(
        r#", "mcp": {"servers": {"s": {"url": "http://mcp/x", "blocked_tools": ["remove"]}}}"#,
    );
    let call = json!({"type": "mcp_tool_use", "id": "mcptoolu_x", "name": "remove",
        "server_name": "s", "input": {}});
    session.body["messages"] = json!([{"role": "user", "content": "Q"},
        {"role": "assistant", "content": [call]}]);
    for servers in [
        r#"[{"type":"url","name":"s","url":"mcp:s"}]"#,
        r#"[{"type":"url","name":"s","url":"mcp:s","url":null}]"#,
        r#"[{"type":"url","name":"s","name":null,"url":"mcp:s"}]"#,
    ] {
        let body = session.body.to_string();
        let at = body.find(r#""mcp_servers":[{"#).unwrap();
        let end = at + body[at..].find(']').unwrap() + 1;
        let body = [&body[..at], r#""mcp_servers":"#, servers, &body[end..]].concat();
        let got = session.of_text(&body);
        assert!(got.searched.is_empty(), "{servers}");
        assert!(got.asked.iter().all(|asked| asked.get("tools").is_none()), "{servers}");
    }
}

#[test]
fn an_input_that_is_no_json_is_not_sent_to_the_server() {
    let turns = [turn("", &[("mcp__s__add", "not json")]), turn("Done.", &[])];
    let got = session(json!({}), &turns, &[result(1, listed(&["add"]))]).run();
    let told = &got.asked[1]["messages"][2]["content"];
    assert_eq!(told, "Error: The input is not a JSON object.");
}

#[test]
fn deferred_tools_of_a_server_are_found_by_a_search() {
    let turns = [
        turn("", &[("tool_search_tool_bm25", r#"{"query":"does sub"}"#)]),
        turn("", &[("mcp__s__sub", "{}")]),
        turn("Done.", &[]),
    ];
    let answers = [result(1, listed(&["add", "sub"])), result(2, said("1"))];
    let more = json!({"default_config": {"defer_loading": true}});
    let mut session = session(more, &turns, &answers);
    let search = json!({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"});
    session.body["tools"].as_array_mut().unwrap().push(search);
    session.config = session::config(
        r#", "tool_search": "run", "mcp": {"servers": {"s": {"url": "http://mcp/x"}}}"#,
    );
    let got = session.run();
    assert_eq!(functions(&got.asked[0]), ["tool_search_tool_bm25"]);
    assert!(functions(&got.asked[1]).contains(&"mcp__s__sub"));
    assert_eq!(got.asked[2]["messages"].as_array().unwrap().last().unwrap()["content"], "1");
}

#[test]
fn a_server_of_the_operator_never_spoils_a_request_of_a_client() {
    let offer = r#", "mcp": {"servers": {"s": {"url": "http://mcp/x", "offer": true}}}"#;
    let mut session = Session::new(&[turn("Hi", &[])], &[Search::Fails]);
    session.config = session::config(offer);
    assert_eq!(functions(&session.run().asked[0]), ["web_search"], "a server that is down");
    let own = json!({"name": "mcp__s__add", "input_schema": {"type": "object"}});
    session.body["tools"] = json!([own]);
    session.searches = vec![result(1, listed(&["add", "sub"]))];
    assert_eq!(functions(&session.run().asked[0]), ["mcp__s__add", "mcp__s__sub"]);
    session.body["tools"] = json!([{"type": "web_search_20250305", "name": "web_search"}]);
    session.body["messages"][0]["content"] = "Perform a web search for the query: alpha".into();
    session.searches =
        vec![result(1, listed(&["add"])), found(&[("https://a.example/", "A", "x")])];
    let got = session.run();
    assert_eq!(got.kinds(), ["server_tool_use", "web_search_tool_result", "text"]);
}
