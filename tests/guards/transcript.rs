//! The transcripts in docs/guards.md are what really happens.
//!
//! `CREOLE_WRITE=1 cargo test --test guards transcript` writes them anew.

use std::fmt::Write as _;
use std::fs;

use super::*;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/guards.md");

/// Describes one request: what the model got last, and what the client got.
fn line(turn: &Turn) -> String {
    let mut line = String::new();
    let messages = turn.sent["messages"].as_array().into_iter().flatten();
    if let Some(last) = messages.last().filter(|_| turn.asked > 0) {
        let content = match &last["content"] {
            Value::String(text) => text.replace('\n', " ⏎ "),
            parts => parts.to_string(),
        };
        write!(line, "{}: {content}\n    ", last["role"].as_str().unwrap()).unwrap();
    }
    write!(line, "→ {}", turn.head.status).unwrap();
    for block in turn.body["content"].as_array().into_iter().flatten() {
        match block["type"].as_str().unwrap() {
            "text" => write!(line, " text {}", block["text"]).unwrap(),
            _ => write!(line, " {} {}", block["name"].as_str().unwrap(), block["input"]).unwrap(),
        }
    }
    if let Some(reason) = turn.body["stop_reason"].as_str() {
        write!(line, ", {reason}").unwrap();
    } else {
        let kind = turn.body["error"]["type"].as_str().unwrap();
        write!(line, " {kind}: {}", turn.message()).unwrap();
    }
    for name in ["x-should-retry", "x-creole-tool-turn", "x-creole-guard"] {
        if !turn.header(name).is_empty() {
            write!(line, "\n      {name}: {}", turn.header(name)).unwrap();
        }
    }
    if turn.asked > 1 {
        write!(line, "\n      (the upstream was asked {} times)", turn.asked).unwrap();
    }
    line
}

fn lines(title: &str, turns: &[Turn]) -> String {
    let mut text = format!("{title}\n");
    let mut at = 0;
    while at < turns.len() {
        let line = line(&turns[at]);
        let same = turns[at..].iter().take_while(|turn| self::line(turn) == line).count();
        writeln!(text, "{:3} {line}", at + 1).unwrap();
        if same > 1 {
            writeln!(text, "    … and {} more like it", same - 1).unwrap();
        }
        at += same;
    }
    text
}

fn before_and_after(before: &[Turn], after: &[Turn]) -> String {
    format!("{}\n{}", lines("off", before), lines("on", after))
}

fn looping(
    tools: &[Value],
    model: impl Fn(&Value) -> Value,
    run: &dyn Fn(&Value) -> (String, bool),
    guards: Value,
    turns_max: usize,
) -> String {
    let upstream = strict(model);
    before_and_after(
        &agent(&off(), tools, &upstream, run, turns_max),
        &agent(&config(guards), tools, &upstream, run, turns_max),
    )
}

fn broken(messages: &[Value], upstream: Upstream<'_>) -> String {
    let body = request(messages, &[tool("look", &[])]);
    // The client sends it again, as people do who press the key once more.
    let ask = |config: Arc<Config>| (0..2).map(|_| ask(&config, &body, upstream, true)).collect();
    let (before, after): (Vec<Turn>, Vec<Turn>) = (ask(off()), ask(config(json!({}))));
    before_and_after(&before, &after[..1])
}

fn held() -> String {
    let body = request(&[user("q")], &[tool("shell", &["command"])]);
    let model = |_: &Value| (200, calls("shell", &json!({})));
    let hold = drive::config(r#"{"invalid_tool_call":"hold","tool_stream":"buffered"}"#);
    before_and_after(
        &[ask(&config(json!({})), &body, &model, false)],
        &[ask(&hold, &body, &model, false)],
    )
}

fn stalled() -> String {
    let body = request(&[user("q")], &[]).to_string();
    let mut exchange = Exchange::new(drive::config("{}"), SEED, can(Pings::Sent));
    exchange.decide("POST", "/v1/messages", &headers(&[("x-api-key", "k")]));
    exchange.request(body.as_bytes(), NOW).unwrap();
    let at = exchange.poll_timeout().unwrap();
    let mut out = Vec::new();
    let head = exchange.timeout(at, &mut out).unwrap();
    let turn = Turn {
        head,
        body: serde_json::from_slice(&out).unwrap(),
        sent: Value::Null,
        asked: 0,
        report: exchange.report(),
    };
    format!("after {} ms of silence\n    {}\n", at - NOW, line(&turn))
}

fn scenes() -> Vec<(&'static str, String)> {
    let count = std::cell::Cell::new(0);
    let news = |_: &Value| {
        count.set(count.get() % 6 + 1);
        (format!("page {}", count.get()), false)
    };
    let no_command = |_: &Value| ("missing required field: command".to_owned(), true);
    let the_same = |_: &Value| ("a.txt".to_owned(), false);
    let shell = [tool("shell", &["command"])];
    let look = [tool("look", &[])];
    let model = |name| stubborn(name, json!({}));
    let orphan = [user("Look"), call("toolu_1", "look", json!({})), user("What is it?")];
    let paired = [
        user("Look"),
        call("toolu_1", "look", json!({})),
        answered(result("toolu_1", "a.txt")),
        user("What is it?"),
    ];
    let mistral = |body: &Value| {
        let refused = body.to_string().contains("\"tool_call_id\"");
        let message = "Unexpected role 'user' after role 'tool'";
        if refused { (400, json!({"message": message})) } else { (200, says("A file.")) }
    };
    vec![
        ("pairing", broken(&orphan, &strict(|_| says("I could not look.")))),
        ("pairing-refused", broken(&paired, &mistral)),
        ("breaker-failing", looping(&shell, model("shell"), &no_command, json!({}), 20)),
        ("breaker-repeating", looping(&look, model("look"), &the_same, json!({}), 20)),
        ("tool-turns", looping(&look, model("look"), &news, json!({"tool_turns_max": 3}), 6)),
        ("invalid-call", held()),
        ("stall", stalled()),
    ]
}

#[test]
fn the_transcripts_in_the_document_are_what_happens() {
    let document = fs::read_to_string(DOCUMENT).unwrap();
    let mut written = document.clone();
    for (name, transcript) in scenes() {
        let start = format!("<!-- transcript: {name} -->\n```text\n");
        let from = written.find(&start).unwrap_or_else(|| panic!("no {start}")) + start.len();
        let to = from + written[from..].find("```").unwrap();
        written.replace_range(from..to, &transcript);
    }
    if std::env::var_os("CREOLE_WRITE").is_some() {
        fs::write(DOCUMENT, &written).unwrap();
    } else {
        assert!(written == document, "run CREOLE_WRITE=1 cargo test --test guards transcript");
    }
}
