//! `creole check` of the services that server tools ask: a scripted SearXNG and MCP server, and the
//! demo model as the upstream.

use std::process::{Command, Stdio};

use creole_demo::{Demo, Options};
use serde_json::{Value, json};

use crate::rig::{self, Upstream, nobody};

const KEY: &str = "sk-canary-of-a-service";

const RESULTS: &str = r#"{"results":[{"url":"https://a.example/x","title":"A","content":"One."},{"url":"https://b.example/","title":"B","content":"Two."}]}"#;

/// Runs a check with this configuration, and returns its exit code and output.
async fn check(flags: &[&str], config: &Value) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_creole"));
    command.arg("check").args(flags).args(["--config", &rig::file(&config.to_string())]);
    command.env("CANARY", KEY).stdin(Stdio::null());
    let ran = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = rig::soon("the check", ran).await.unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains(KEY), "{text}");
    (output.status.code().unwrap(), text)
}

#[track_caller]
fn assert_row(text: &str, row: &str) {
    assert!(text.lines().any(|line| line.starts_with(row)), "no row {row:?}: {text}");
}

/// An upstream without a model behind it.
fn demo() -> (Demo, Value) {
    let demo = Demo::start(Options::default()).unwrap();
    let upstreams = json!({"main": {"url": demo.url(), "key": "none"}});
    (demo, upstreams)
}

async fn searxng(status: u16, body: &'static str) -> (Upstream, String) {
    let service = Upstream::answering(status, "application/json", body).await;
    let url = format!("http://{}", service.address);
    (service, url)
}

/// A server of the newest revision with two tools. Another key than the operator's is refused.
async fn mcp() -> Upstream {
    Upstream::start(|asked, mut out| {
        let has_key =
            asked.headers.get("authorization").is_some_and(|it| it == &format!("Bearer {KEY}"));
        let rpc: Value = serde_json::from_str(&asked.body).unwrap();
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        let result =
            json!({"resultType": "complete", "ttlMs": 1, "tools": [tool("add"), tool("sub")]});
        let answer = json!({"jsonrpc": "2.0", "id": rpc["id"], "result": result});
        tokio::spawn(async move { out.send_data(answer.to_string().into()).await });
        (if has_key { 200 } else { 401 }, "application/json")
    })
    .await
}

#[tokio::test]
async fn each_service_is_asked_once_and_has_a_row_with_a_count() {
    let (demo, upstreams) = demo();
    let ((search, url), server) = (searxng(200, RESULTS).await, mcp().await);
    let mcp_url = format!("http://{}/mcp", server.address);
    let config = json!({"upstreams": upstreams, "server_tools": {
        "web_search": {"kind": "searxng", "url": url, "side_query": "model"}, "web_fetch": {},
        "mcp": {"unavailable": "skip", "servers": {
            "notes": {"url": mcp_url, "key": {"env": "CANARY"}},
            "theirs": {"url": mcp_url, "key": "client"}}}}});
    let (code, text) = check(&[], &config).await;
    assert_eq!(code, 0, "{text}");
    assert!(text.starts_with("server tools\n\n"), "{text}");
    assert_row(&text, "search     works    2 results in ");
    assert_row(&text, "fetch      works    on");
    assert_row(&text, "mcp        works    notes: 2 tools");
    assert_row(&text, "mcp        limited  theirs: not asked");
    assert!(text.contains("An agent can work with it"), "{text}");
    assert_eq!(search.asked.lock().unwrap().len(), 1);
    assert_eq!(search.last().path, "/search?q=Wikipedia&format=json");
    assert_eq!(server.asked.lock().unwrap().len(), 1);
    let asked = demo.requests();
    assert!(asked.iter().all(|asked| !asked.body.contains("Wikipedia")), "{asked:?}");
    let (_, text) = check(&["--json"], &config).await;
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["services"][0]["step"], "search", "{text}");
    assert_eq!(read["services"][2]["text"], "notes: 2 tools", "{text}");
}

#[tokio::test]
async fn a_service_that_fails_has_its_reason_and_a_next_step() {
    let (_demo, upstreams) = demo();
    let (_search, forbids) = searxng(403, "").await;
    let server = mcp().await;
    let nobody = nobody().await;
    let of = |url: &str, mcp: &str| {
        json!({"upstreams": upstreams, "server_tools": {
            "web_search": {"kind": "searxng", "url": url},
            "mcp": {"servers": {"notes": {"url": mcp}}}}})
    };
    let keyless = format!("http://{}/mcp", server.address);
    let (code, text) = check(&[], &of(&forbids, &keyless)).await;
    assert_eq!(code, 1, "{text}");
    let row = format!("search     fails    {forbids} answers 403: add json to search.formats");
    assert_row(&text, &row);
    assert_row(&text, "mcp        fails    notes: it refused the credentials: look at its key");
    let secret = format!("{nobody}/?key={KEY}");
    let (code, text) = check(&[], &of(&secret, &secret)).await;
    assert_eq!(code, 1, "{text}");
    let row =
        format!("search     fails    {nobody}/ (the connection was refused): start the service");
    assert_row(&text, &row);
    let row =
        "mcp        fails    notes: it could not be reached (the connection was refused): start";
    assert_row(&text, row);
}

#[tokio::test]
async fn services_of_flags_are_checked_and_named_again_in_the_commands() {
    let (demo, _) = demo();
    let (_search, url) = searxng(200, RESULTS).await;
    let upstream = format!("{}/v1", demo.url());
    let mut command = Command::new(env!("CARGO_BIN_EXE_creole"));
    command.args(["check", "--upstream", &upstream, "--model", "demo", "--search", &url]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = rig::soon("the check", output).await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_row(&text, "search     works    2 results");
    assert!(text.contains(&format!("  creole serve --upstream {upstream} ")), "{text}");
    assert!(text.contains(&format!(" --search {url}\n")), "{text}");
}
