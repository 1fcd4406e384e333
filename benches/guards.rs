//! What the guards cost: translates one request of an agent twenty times, with guards (`on`),
//! without (`off`), or only makes the request (`none`). Count instructions, not time;
//! docs/dev/performance.md has the commands.

#![allow(clippy::arithmetic_side_effects, clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use creole::observe::warning::Warnings;
use creole::{Config, protocols as translate};
use serde_json::{Value, json};

const ROUNDS: usize = 20;
const BYTES: usize = 100_000;

fn main() {
    let which = std::env::args().nth(1).unwrap_or_default();
    let guards = match which.as_str() {
        "on" => json!({"tool_turns_max": 1000}),
        "off" => json!({"pairing": "off", "breaker": {"failures_max": 0, "withhold_after": 0}}),
        _ => Value::Null,
    };
    let body = request();
    if guards.is_null() {
        println!("{} bytes", body.len());
        return;
    }
    let config = Config::from_json(&json!({"guards": guards}).to_string(), |_| None).unwrap();
    for _ in 0..ROUNDS {
        let mut warnings = Warnings::new(false);
        translate::request(&body, &config, &[], &mut warnings).unwrap();
        assert!(warnings.guards().is_empty());
    }
}

/// One task, most of whose bytes are results, as in a coding agent; every tenth result reads like a
/// complaint.
fn request() -> String {
    let schema = json!({"type": "object", "required": ["command"], "properties": {
        "command": {"type": "string", "description": "What to run"},
        "timeout": {"type": "integer", "minimum": 1},
        "description": {"type": "string"}}});
    let tools: Vec<Value> = ["Bash", "Read", "Edit", "Grep", "Task", "Write"]
        .iter()
        .map(|name| json!({"name": name, "description": "Does things. ".repeat(40), "input_schema": schema}))
        .collect();
    let mut messages = vec![json!({"role": "user", "content": "Make the tests pass."})];
    let (mut bytes, mut number) = (0, 0);
    while bytes < BYTES {
        number += 1;
        let id = format!("toolu_{number:024}");
        let input = json!({"command": format!("cargo test --lib part_{number} 2>&1 | tail -20"),
            "description": "Runs the tests", "timeout": 60_000});
        let line = format!("src/part_{number}.rs:12:    let value = \"text\"; // of {number}\n");
        let content = if number % 10 == 0 {
            format!("no such test: part_{number}, error")
        } else {
            line.repeat(1 + number % 30)
        };
        bytes += content.len() + 300;
        messages.push(json!({"role": "assistant", "content": [
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": id, "name": "Bash", "input": input}]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": content},
            {"type": "text", "text": "<system-reminder>\nKeep the list of tasks up to date.\n</system-reminder>"}]}));
    }
    json!({"model": "m", "max_tokens": 1000, "tools": tools, "messages": messages}).to_string()
}
