//! Web searches by a tool of an MCP server.

use super::*;

/// Configuration in which the tool `find` of the server `s` searches.
fn config(more: &str) -> String {
    format!(
        r#"{{"upstreams": {{"main": {{"key": "none"}}}}, "server_tools": {{
            "web_search": {{"kind": "mcp", "mcp": {{"server": "s", "tool": "find"{more}}}}},
            "mcp": {{"servers": {{"s": {{"url": "http://mcp/x", "revision": "2026-07-28"}}}}}}}}}}"#
    )
}

fn searching(answers: &[Search]) -> Session {
    let turns = [turn("", &[("web_search", r#"{"query":"alpha"}"#)]), turn("It is 1. [[1]]", &[])];
    let mut session = Session::new(&turns, answers);
    session.config = support::drive::config(&config(""));
    session
}

fn result(id: u64, result: Value) -> Search {
    Search::Gives(200, json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
}

#[test]
fn the_results_of_the_tool_are_results_of_the_search() {
    let pages = json!([{"url": "https://a.example/", "title": "A", "snippet": "Alpha is 1."},
        {"link": "https://b.example/", "name": "B"}, {"url": "no url"}]);
    let answer = result(1, json!({"structuredContent": {"result": pages}}));
    let got = searching(&[answer]).run();
    assert_eq!(got.kinds(), ["server_tool_use", "web_search_tool_result", "text"]);
    assert_eq!(got.searched, ["http://mcp/x"], "the tools are not listed");
    let found = got.message["content"][1]["content"].as_array().unwrap();
    let titles: Vec<&Value> = found.iter().map(|page| &page["title"]).collect();
    assert_eq!(titles, ["A", "B"]);
    let told = got.asked[1]["messages"][2]["content"].as_str().unwrap();
    assert!(told.contains("[1] A\nhttps://a.example/\nAlpha is 1.\n\n[2] B"), "{told}");
    assert_eq!(got.message["content"][2]["citations"][0]["title"], "A");
    assert_eq!(got.message["usage"]["server_tool_use"]["web_search_requests"], 1);
}

#[test]
fn a_tool_that_fails_is_a_search_that_fails() {
    let failed = json!({"isError": true, "content": [{"type": "text", "text": "no"}]});
    let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "no"}});
    for answer in [
        result(1, failed),
        Search::Gives(200, error.to_string()),
        Search::Gives(500, String::new()),
        Search::Gives(200, "<html>".to_owned()),
        Search::Fails,
    ] {
        let got = searching(std::slice::from_ref(&answer)).run();
        assert_eq!((got.codes(), got.searched.len()), (vec!["unavailable"], 1), "{answer:?}");
    }
}

#[test]
fn a_server_with_sessions_is_opened_once_for_all_searches_of_an_answer() {
    let ready = Search::Gives(202, String::new());
    let handshake = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
    let found = |id| result(id, json!({"content": [{"type": "text", "text": "Alpha"}]}));
    let turns = [
        turn("", &[("web_search", r#"{"query":"alpha"}"#)]),
        turn("", &[("web_search", r#"{"query":"beta"}"#)]),
        turn("Done.", &[]),
    ];
    let mut session = searching(&[result(1, handshake), ready, found(3), found(4)]);
    session.turns = turns.to_vec();
    session.config = support::drive::config(&config("").replace("2026-07-28", "2025-06-18"));
    let got = session.run();
    assert_eq!((got.codes(), got.searched.len()), (vec!["", ""], 4));
    let page = &got.message["content"][1]["content"][0];
    assert_eq!((&page["url"], &page["title"]), (&"mcp:s".into(), &"find".into()));
}

#[test]
fn a_search_tool_that_cannot_be_called_refuses_the_start() {
    let wrong = |document: &str| {
        creole::Config::from_json(document, |_| Some("key".to_owned())).unwrap_err()
    };
    let without = config("").replace(r#", "mcp": {"server": "s", "tool": "find"}"#, "");
    for (document, path) in [
        (without, "server_tools.web_search.mcp:"),
        (
            config("").replace(r#""server": "s""#, r#""server": "t""#),
            "server_tools.web_search.mcp.server:",
        ),
        (config(r#", "argument": """#), "server_tools.web_search.mcp.argument:"),
        (config("").replace("find", ""), "server_tools.web_search.mcp.tool:"),
        (
            config("").replace("2026-07-28\"", "2026-07-28\", \"key\": \"client\""),
            "server_tools.web_search.mcp.server:",
        ),
        (
            config("").replace("2026-07-28\"", "2026-07-28\", \"blocked_tools\": [\"find\"]"),
            "server_tools.web_search.mcp.tool:",
        ),
        (
            config("").replace(r#""kind": "mcp""#, r#""kind": "mcp", "url": "http://x""#),
            "server_tools.web_search.url:",
        ),
        (
            config("").replace(r#""kind": "mcp""#, r#""kind": "searxng", "url": "http://x""#),
            "server_tools.web_search.mcp:",
        ),
    ] {
        let error = wrong(&document).to_string();
        assert!(error.contains(path), "{error}\n{document}");
    }
}
