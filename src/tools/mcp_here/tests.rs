//! Tests of the MCP servers of a request.

use serde_json::{Value, json};

use super::*;
use crate::config::Config;

const SCHEMA: &str = r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#;

fn settings(mcp: &Value) -> McpConnector {
    let text = json!({"server_tools": {"mcp": mcp}}).to_string();
    let secret = |_: &str| Some("own-secret".to_owned());
    Config::from_json(&text, secret).unwrap().settings.server_tools.mcp
}

/// Configuration with the server `s`, which takes the client's token.
fn with_s() -> McpConnector {
    settings(&json!({"servers": {"s": {"url": "https://s.example/mcp", "key": "client"}}}))
}

fn request(servers: &Value, tools: &Value) -> String {
    json!({
        "model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Q"}],
        "mcp_servers": servers, "tools": tools,
    })
    .to_string()
}

fn server_s() -> Value {
    json!({"type": "url", "name": "s", "url": "https://s.example/mcp", "authorization_token": "t"})
}

fn toolset() -> Value {
    json!({"type": "mcp_toolset", "mcp_server_name": "s"})
}

fn plan(body: &str, betas: &str, settings: &McpConnector) -> Result<McpPlan, String> {
    let request = Request::read(body, &mut Warnings::new(false)).unwrap();
    McpPlan::read(&request, body, betas, settings).map_err(|error| error.message.clone())
}

fn listed_tools(names: &[&str]) -> Vec<ListedTool> {
    let tool = |name: &&str| ListedTool {
        name: (*name).to_owned(),
        description: "says \"hi\"".to_owned(),
        input_schema: SCHEMA.to_owned(),
    };
    names.iter().map(tool).collect()
}

/// Returns the functions of a request whose servers listed these tools, and the names of those that
/// are deferred.
fn offered(body: &str, names: &[&str], settings: &McpConnector) -> (Vec<String>, Vec<String>) {
    let plan = plan(body, "", settings).unwrap();
    let tools = listed_tools(names);
    let lists: Vec<&[ListedTool]> =
        plan.servers.iter().filter(|it| it.is_asked()).map(|_| tools.as_slice()).collect();
    let body = String::from_utf8(plan.pinned(body, &lists)).unwrap();
    let again = self::plan(&body, "", settings).unwrap();
    assert!(again.servers.iter().all(|server| server.tools == McpTools::Toolset));
    let request = Request::read(&body, &mut Warnings::new(true)).unwrap();
    let toolsets = request.tools.iter().filter(|tool| tool.tool_type == "mcp_toolset");
    let functions: Vec<_> = toolsets
        .flat_map(|it| functions(it, request.mcp_servers, settings, NameRules::plain()))
        .collect();
    let names = |is_deferred: bool| {
        let is_it = move |state: Availability| (state == Availability::Deferred) == is_deferred;
        let those = functions.iter().filter(|(_, state)| is_it(*state));
        those.map(|(function, _)| function.outgoing.to_string()).collect()
    };
    (names(false), names(true))
}

#[test]
fn a_toolset_becomes_functions() {
    let body = request(&json!([server_s()]), &json!([toolset()]));
    let plan = plan(&body, "", &with_s()).unwrap();
    let [server] = plan.servers.as_slice() else { panic!() };
    assert!(server.is_asked());
    assert_eq!(server.target.token.as_deref(), Some("t"));
    assert!(!format!("{plan:?}").contains("s.example"));
    let (now, later) = offered(&body, &["add", "a.b"], &with_s());
    let [add, dotted] = now.as_slice() else { panic!("{now:?}") };
    assert!(add == "mcp__s__add" && dotted.starts_with("mcp__s__a_b_") && later.is_empty());
}

#[test]
fn the_function_has_the_description_and_the_schema_of_the_tool() {
    let body = request(&json!([server_s()]), &json!([toolset()]));
    let plan = plan(&body, "", &with_s()).unwrap();
    let body = String::from_utf8(plan.pinned(&body, &[&listed_tools(&["add"])])).unwrap();
    let request = Request::read(&body, &mut Warnings::new(false)).unwrap();
    let servers = request.mcp_servers;
    let functions = functions(&request.tools[0], servers, &with_s(), NameRules::plain());
    let (function, _) = &functions[0];
    assert!(function.description_mentions("says \\\"hi\\\""));
    assert_eq!(function.schema, SCHEMA);
    let name = McpToolName::new("s", "add");
    assert_eq!(function.own.as_deref(), Some(&OwnTool::Mcp(name.clone())));
    assert_eq!(schema_in(&body, &name), Some(SCHEMA));
    assert_eq!(schema_in(&body, &McpToolName { tool: "x".to_owned(), ..name.clone() }), None);
}

#[test]
fn configs_come_before_the_default_and_the_operator_before_both() {
    let list = ["add", "sub", "mul"];
    for (toolset, now, later) in [
        (
            json!({"default_config": {"enabled": false},
                "configs": {"add": {"enabled": true}, "x": {"enabled": true}}}),
            "add",
            "",
        ),
        (json!({"configs": {"add": {"enabled": false}}}), "sub mul", ""),
        (json!({"default_config": {"defer_loading": true}}), "", "add sub mul"),
        (
            json!({"default_config": {"defer_loading": true},
                "configs": {"add": {"defer_loading": false}, "sub": {"enabled": true}}}),
            "add",
            "sub mul",
        ),
        (json!({"configs": {"sub": {"defer_loading": true}}}), "add mul", "sub"),
        (json!({"default_config": null, "configs": null}), "add sub mul", ""),
    ] {
        let mut full = self::toolset();
        for (key, value) in toolset.as_object().unwrap() {
            full[key] = value.clone();
        }
        let body = request(&json!([server_s()]), &json!([full]));
        let short = |names: Vec<String>| names.join(" ").replace("mcp__s__", "");
        let (found_now, found_later) = offered(&body, &list, &with_s());
        assert_eq!((short(found_now).as_str(), short(found_later).as_str()), (now, later));
        // No request widens the operator's list, not even with a pinned list.
        let strict = settings(&json!({"servers": {"s": {"url": "https://s.example/mcp",
            "allowed_tools": ["add", "sub"], "blocked_tools": ["sub"]}}}));
        let (found_now, found_later) = offered(&body, &list, &strict);
        assert!(found_now.iter().chain(&found_later).all(|name| name == "mcp__s__add"));
    }
}

#[test]
fn each_server_has_one_toolset_and_each_toolset_a_server() {
    let refused = |servers: Value, tools: Value, betas: &str, expected: &str| {
        let error = plan(&request(&servers, &tools), betas, &with_s()).unwrap_err();
        assert_eq!(error, expected);
    };
    let needs = "mcp_servers[0]: server \"s\" needs exactly one mcp_toolset";
    refused(json!([server_s()]), json!([toolset(), toolset()]), "", needs);
    refused(json!([server_s()]), json!([]), "a,mcp-client-2025-11-20", needs);
    refused(json!([server_s()]), json!([]), "mcp-client-2026-09-15", needs);
    let other = json!({"type": "mcp_toolset", "mcp_server_name": "x"});
    let reason = "tools[1].mcp_server_name: no server \"x\" in mcp_servers";
    refused(json!([server_s()]), json!([toolset(), other]), "", reason);
    let twice = "mcp_servers[1].name: another server has this name";
    refused(json!([server_s(), server_s()]), json!([toolset()]), "", twice);
    let nameless = json!([{"type": "mcp_toolset"}]);
    let missing = "tools[0].mcp_server_name: Field required";
    refused(json!([server_s()]), nameless, "", missing);
}

#[test]
fn the_first_version_needs_no_toolset() {
    for (configuration, expected) in [
        (json!({"allowed_tools": ["add"]}), "mcp__s__add"),
        (json!({"enabled": false}), ""),
        (json!({}), "mcp__s__add mcp__s__sub"),
        (Value::Null, "mcp__s__add mcp__s__sub"),
    ] {
        let mut server = server_s();
        server["tool_configuration"] = configuration;
        let body = request(&json!([server]), &json!([]));
        assert!(plan(&body, "mcp-client-2025-04-04", &with_s()).is_ok());
        assert_eq!(offered(&body, &["add", "sub"], &with_s()).0.join(" "), expected);
    }
}

#[test]
fn only_servers_that_the_operator_permits_may_be_named() {
    let reason = "mcp_servers[0].url: this server is not among those that this gateway may use";
    let at =
        |url: &str| json!([{"type": "url", "name": "s", "url": url, "authorization_token": "t"}]);
    for url in [
        "https://other.example/mcp",
        "https://s.example/mcp/",
        "http://s.example/mcp",
        "mcp:other",
        "mcp:",
        "file:///etc/passwd",
        "",
    ] {
        let error = plan(&request(&at(url), &json!([toolset()])), "", &with_s()).unwrap_err();
        assert_eq!(error, reason, "{url}");
    }
    let body = request(&at("mcp:s"), &json!([toolset()]));
    let found = plan(&body, "", &with_s()).unwrap();
    assert_eq!(found.servers[0].target.url, "https://s.example/mcp");
    let hosts = settings(&json!({"from_requests": ["other.example"]}));
    let body = request(&at("https://other.example/mcp"), &json!([toolset()]));
    let found = plan(&body, "", &hosts).unwrap();
    assert_eq!(found.servers[0].target.token.as_deref(), Some("t"));
    assert!(!found.servers[0].target.is_public);
    let public = settings(&json!({"from_requests": "public"}));
    assert!(plan(&body, "", &public).unwrap().servers[0].target.is_public);
}

#[test]
fn a_token_of_the_client_goes_only_where_the_operator_says() {
    let token = |key: Value| {
        let mut server = json!({"url": "https://s.example/mcp"});
        server["key"] = key;
        let settings = settings(&json!({"servers": {"s": server}}));
        let body = request(&json!([server_s()]), &json!([toolset()]));
        plan(&body, "", &settings).unwrap().servers[0].target.token.clone()
    };
    assert_eq!(token(json!("client")).as_deref(), Some("t"));
    assert_eq!(token(json!("none")), None);
    assert_eq!(token(json!({"env": "KEY"})).as_deref(), Some("own-secret"));
    let mut server = server_s();
    server["authorization_token"] = json!("a\r\nb: c");
    let body = request(&json!([server]), &json!([toolset()]));
    assert_eq!(plan(&body, "", &with_s()).unwrap().servers[0].target.token, None);
}

#[test]
fn a_pinned_list_is_not_asked_for() {
    let mut pinned = toolset();
    pinned["tools"] = json!([{"name": "add", "input_schema": {}}, {"name": "a b"}, 7]);
    let body = request(&json!([server_s()]), &json!([pinned]));
    assert!(!plan(&body, "", &with_s()).unwrap().servers[0].is_asked());
    assert_eq!(offered(&body, &["sub"], &with_s()).0, ["mcp__s__add"]);
    let listing = |name: &str| {
        json!({"role": "assistant", "content": [{"type": "mcp_tool_listing",
            "mcp_server_name": "s", "tools": [{"name": name, "input_schema": {}}]}]})
    };
    let user = json!({"role": "user", "content": "Q"});
    let mut body: Value =
        serde_json::from_str(&request(&json!([server_s()]), &json!([toolset()]))).unwrap();
    body["messages"] = json!([user, listing("old"), user, listing("new"), user]);
    let body = body.to_string();
    assert!(!plan(&body, "", &with_s()).unwrap().servers[0].is_asked());
    assert_eq!(offered(&body, &["sub"], &with_s()).0, ["mcp__s__new"]);
}

#[test]
fn an_offered_server_needs_nothing_in_the_request() {
    let settings = settings(&json!({"servers": {
        "o": {"url": "http://127.0.0.1:1/mcp", "key": {"env": "KEY"}, "offer": true},
        "s": {"url": "https://s.example/mcp", "key": "client"}}}));
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Q"}]}).to_string();
    assert_eq!(offered(&body, &["add"], &settings).0, ["mcp__o__add"]);
    let found = plan(&body, "", &settings).unwrap();
    let out = String::from_utf8(found.pinned(&body, &[&listed_tools(&["add"])])).unwrap();
    assert!(!out.contains("own-secret") && !out.contains("127.0.0.1"), "{out}");
    // With a server of the request, the offered one is added.
    let body = request(&json!([server_s()]), &json!([toolset()]));
    assert_eq!(offered(&body, &["add"], &settings).0, ["mcp__s__add", "mcp__o__add"]);
    // A request that names the offered server decides itself.
    let own = json!([{"type": "url", "name": "mine", "url": "mcp:o"}]);
    let tools = json!([{"type": "mcp_toolset", "mcp_server_name": "mine"}]);
    assert_eq!(offered(&request(&own, &tools), &["add"], &settings).0, ["mcp__mine__add"]);
}

#[test]
fn a_request_keeps_all_that_is_not_about_tools() {
    let body = r#"{ "model":"m","x":1.50,"tools":[{"name":"t","input_schema":{}},
        {"mcp_server_name":"s","type":"mcp_toolset"}],"messages":[],
        "mcp_servers":[{"name":"s","url":"mcp:s","type":"url"}]}"#;
    let found = plan(body, "", &with_s()).unwrap();
    let out = found.pinned(body, &[&[]]);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"model":"m","x":1.50,"messages":[],"tools":[{"name":"t","input_schema":{}},{"mcp_server_name":"s","type":"mcp_toolset","tools":[]}],"mcp_servers":[{"name":"s","url":"mcp:s","type":"url"}]}"#
    );
}

#[test]
fn a_server_without_a_list_is_an_error_with_its_path() {
    let body = request(&json!([server_s()]), &json!([toolset()]));
    let found = plan(&body, "", &with_s()).unwrap();
    for status in [400, 502, 504] {
        let error = found.servers[0].unavailable("it did not answer in time", status);
        assert_eq!(error.status, status);
        let expected =
            "mcp_servers[0]: server \"s\" did not give its tools: it did not answer in time";
        assert_eq!(error.message, expected);
    }
}
