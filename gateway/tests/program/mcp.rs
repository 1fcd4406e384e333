//! Tools of MCP servers that the gateway calls for a model, with a scripted model server and
//! scripted MCP servers.

use serde_json::{Value, json};

use crate::rig::{EVENT_STREAM, Gateway, Got, Upstream, client, request, send};

/// Argument of the model's call, which no log may contain.
const ARGUMENT: &str = "alpha-argument";

/// Starts an MCP server of the newest revision. It has one tool, whose name ends with the token of
/// the request. If `is_stream`, answers are events, and the stream goes on after them.
async fn server(is_stream: bool) -> Upstream {
    Upstream::start(move |asked, mut out| {
        let token = asked.headers.get("authorization").map_or("", |it| it.to_str().unwrap());
        let tool = format!("add{}", token.trim_start_matches("Bearer "));
        let rpc: Value = serde_json::from_str(&asked.body).unwrap();
        let result = match rpc["method"].as_str().unwrap() {
            "tools/list" => json!({"resultType": "complete", "ttlMs": 60_000, "tools": [
                {"name": tool, "inputSchema": {"type": "object", "properties": {}}}]}),
            _ => {
                json!({"resultType": "complete", "content": [{"type": "text", "text": "It is 3."}]})
            }
        };
        let answer = json!({"jsonrpc": "2.0", "id": rpc["id"], "result": result});
        let noise = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
        let body = match is_stream {
            true => format!("data: {noise}\n\ndata: {answer}\n\n"),
            false => answer.to_string(),
        };
        tokio::spawn(async move {
            let _ = out.send_data(body.into()).await;
            if is_stream {
                std::future::pending::<()>().await;
            }
        });
        (200, if is_stream { EVENT_STREAM } else { "application/json" })
    })
    .await
}

/// Starts a model server whose model calls its first tool once, and then answers.
async fn model() -> Upstream {
    Upstream::start(|asked, mut out| {
        let asked: Value = serde_json::from_str(&asked.body).unwrap();
        let messages = asked["messages"].as_array().unwrap();
        let is_answered = messages.iter().any(|message| message["role"] == "tool");
        let name = &asked["tools"][0]["function"]["name"];
        let arguments = json!({"it": ARGUMENT}).to_string();
        let call = json!({"id": "call_1", "type": "function",
            "function": {"name": name, "arguments": arguments}});
        let (message, reason) = match is_answered {
            true => (json!({"role": "assistant", "content": "3"}), "stop"),
            false => {
                (json!({"role": "assistant", "content": null, "tool_calls": [call]}), "tool_calls")
            }
        };
        let choice = json!({"index": 0, "message": message, "finish_reason": reason});
        let body = json!({"choices": [choice]}).to_string();
        tokio::spawn(async move { out.send_data(body.into()).await });
        (200, "application/json")
    })
    .await
}

fn gateway(model: &Upstream, servers: Value) -> Gateway {
    let config = json!({
        "upstreams": {"main": {"url": model.url()}},
        "server_tools": {"mcp": {"servers": servers}},
        "log": "debug",
    });
    Gateway::start_with(&[], &config.to_string(), &[])
}

/// Asks with a server `s` of the request, which has this token.
async fn ask(gateway: &Gateway, token: &str) -> Got {
    let body = json!({
        "model": "claude-x", "max_tokens": 1000,
        "mcp_servers": [{"type": "url", "name": "s", "url": "mcp:s", "authorization_token": token}],
        "tools": [{"type": "mcp_toolset", "mcp_server_name": "s"}],
        "messages": [{"role": "user", "content": "How much is it?"}],
    });
    let sent = request("POST", &gateway.url("/v1/messages"), body.to_string());
    send(&client(false), sent).await
}

fn url(server: &Upstream) -> String {
    format!("http://{}/mcp", server.address)
}

#[tokio::test]
async fn a_tool_is_called_between_two_rounds_whatever_form_the_answers_have() {
    for is_stream in [false, true] {
        let (model, server) = (model().await, server(is_stream).await);
        let gateway = gateway(&model, json!({"s": {"url": url(&server), "key": "client"}}));
        let got = ask(&gateway, "one").await;
        assert_eq!(got.status.as_u16(), 200, "{}", got.body);
        let content = &got.json()["content"];
        assert_eq!(content[0]["type"], "mcp_tool_use", "{}", got.body);
        assert_eq!(content[0]["name"], "addone", "{}", got.body);
        assert_eq!(content[1]["content"][0]["text"], "It is 3.", "{}", got.body);
        let asked = server.asked.lock().unwrap();
        let methods: Vec<&str> =
            asked.iter().map(|asked| asked.headers["mcp-method"].to_str().unwrap()).collect();
        assert_eq!(methods, ["tools/list", "tools/call"]);
        assert!(asked.iter().all(|asked| asked.headers["authorization"] == "Bearer one"));
        assert!(!asked.iter().any(|asked| asked.headers.contains_key("x-api-key")));
        for secret in [ARGUMENT, "Bearer one", "It is 3."] {
            assert!(!gateway.log().contains(secret), "{}", gateway.log());
        }
        let sent: String = model.asked.lock().unwrap().iter().map(|it| it.body.clone()).collect();
        assert!(!sent.contains("authorization_token"), "{sent}");
        assert!(!sent.contains(&url(&server)), "{sent}");
    }
}

#[tokio::test]
async fn a_flag_names_a_server_whose_tools_every_client_gets() {
    let (model, server) = (model().await, server(false).await);
    let (upstream, flag) = (model.url(), format!("notes={}", url(&server)));
    let gateway = Gateway::start_with(&["--upstream", &upstream, "--mcp", &flag], "", &[]);
    let body = json!({"model": "claude-x", "max_tokens": 1000,
        "messages": [{"role": "user", "content": "How much is it?"}]});
    let sent = request("POST", &gateway.url("/v1/messages"), body.to_string());
    let got = send(&client(false), sent).await;
    let content = &got.json()["content"];
    assert_eq!(content[0]["server_name"], "notes", "{}", got.body);
    assert_eq!(content[1]["content"][0]["text"], "It is 3.", "{}", got.body);
}

#[tokio::test]
async fn a_client_never_sees_the_tools_that_another_clients_token_shows() {
    let (model, server) = (model().await, server(false).await);
    let gateway = gateway(&model, json!({"s": {"url": url(&server), "key": "client"}}));
    for (token, tool) in [("one", "addone"), ("two", "addtwo"), ("one", "addone")] {
        let got = ask(&gateway, token).await;
        assert_eq!(got.json()["content"][0]["name"], tool, "{}", got.body);
    }
    let asked = server.asked.lock().unwrap();
    let lists = asked.iter().filter(|asked| asked.body.contains("tools/list")).count();
    assert_eq!(lists, 2, "the list of a token is kept");
}

#[tokio::test]
async fn a_server_that_nobody_allows_gets_no_connection() {
    let (model, server) = (model().await, server(false).await);
    let gateway = gateway(&model, json!({"other": {"url": "http://127.0.0.1:1/mcp"}}));
    let got = ask(&gateway, "one").await;
    assert_eq!(got.status.as_u16(), 400, "{}", got.body);
    assert!(server.asked.lock().unwrap().is_empty());
    assert!(model.asked.lock().unwrap().is_empty());
}
