//! Generated bodies of requests and answers, the same in both dialects.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::plan::{Dialect, Scenario};

/// First and last word of every answer.
pub(crate) const FIRST: &str = "first-word";
pub(crate) const LAST: &str = "last-word";

const TOOLS: usize = 20;
const TURNS: usize = 40;
/// Source code for request bodies, as agents read and write it: one in fifty characters is escaped
/// in JSON.
const CODE: &str = "    let total = items.iter().map(|it| it.price * it.count).sum::<u64>();\n\
                    \tprintln!(\"{total} for {}\", items.len());\n";

/// Returns the request of a scenario, in the client's dialect.
pub(crate) fn request(scenario: Scenario, dialect: Dialect) -> Bytes {
    let text = format!("Say something. {}", scenario.marker());
    let mut messages = match scenario {
        Scenario::Agent => turns(dialect),
        _ => Vec::new(),
    };
    messages.push(json!({"role": "user", "content": text}));
    let mut body = json!({"model": "demo", "max_tokens": 4096, "stream": scenario.streams()});
    let system = "You are a helpful assistant. ".repeat(20);
    if let Dialect::Chat = dialect {
        messages.insert(0, json!({"role": "system", "content": system}));
    } else {
        set(&mut body, "system", json!(system));
    }
    set(&mut body, "messages", Value::Array(messages));
    if let Scenario::Agent = scenario {
        let tools = (0..TOOLS).map(|number| tool(dialect, number)).collect();
        set(&mut body, "tools", Value::Array(tools));
    }
    Bytes::from(body.to_string())
}

fn set(body: &mut Value, key: &str, value: Value) {
    if let Some(fields) = body.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}

fn tool(dialect: Dialect, number: usize) -> Value {
    let name = format!("tool_{number}");
    let description = "Reads a file and gives its lines with their numbers. ".repeat(8);
    let schema = json!({"type": "object", "required": ["path"], "properties": {
        "path": {"type": "string", "description": "The file, as an absolute path"},
        "offset": {"type": "integer", "description": "The first line that is wanted"},
        "limit": {"type": "integer", "description": "How many lines are wanted"}}});
    match dialect {
        Dialect::Messages => {
            json!({"name": name, "description": description, "input_schema": schema})
        }
        Dialect::Chat => json!({"type": "function", "function": {
            "name": name, "description": description, "parameters": schema}}),
    }
}

/// Returns tool calls and their results, like a coding agent's history.
fn turns(dialect: Dialect) -> Vec<Value> {
    let first = json!({"role": "user", "content": "Find the bug in this program."});
    let mut messages = vec![first];
    for turn in 0..TURNS {
        let id = format!("toolu_{turn:024}");
        let name = format!("tool_{}", turn.checked_rem(TOOLS).unwrap_or_default());
        let input = json!({"path": format!("/src/module_{turn}.rs"), "offset": turn});
        let result = CODE.repeat(14);
        let said = "I read the next file to see what calls this function.";
        match dialect {
            Dialect::Messages => {
                messages.push(json!({"role": "assistant", "content": [
                    {"type": "text", "text": said},
                    {"type": "tool_use", "id": id, "name": name, "input": input}]}));
                messages.push(json!({"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": id, "content": result}]}));
            }
            Dialect::Chat => {
                let function = json!({"name": name, "arguments": input.to_string()});
                messages.push(json!({"role": "assistant", "content": said, "tool_calls": [
                    {"id": id, "type": "function", "function": function}]}));
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
            }
        }
    }
    messages
}

/// Returns the script of the demo model's answers, in the form that `docs/dev/demo-model.md`
/// describes.
pub(crate) fn script() -> Value {
    Scenario::ALL.iter().map(|scenario| answer(*scenario)).collect()
}

fn answer(scenario: Scenario) -> Value {
    let kind = if scenario.streams() { "text/event-stream" } else { "application/json" };
    let pieces = if scenario.streams() { stream(scenario) } else { vec![whole()] };
    json!({"when": scenario.marker(), "times": 0, "headers": [["content-type", kind]], "pieces": pieces})
}

fn whole() -> Value {
    let text = format!("{FIRST}{} {LAST}", " and one more word".repeat(40));
    let body = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "demo",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 100, "total_tokens": 200}});
    json!({"data": body.to_string()})
}

/// Returns the pieces of a streamed answer: a chunk for every token, each after a pause. Without
/// pauses the chunks would cost less than in real use.
fn stream(scenario: Scenario) -> Vec<Value> {
    let (count, pause) = (scenario.chunks(), scenario.pause_ms());
    let chunk = |delta: Value, finish: Value, usage: Value| {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        let body = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1,
            "model": "demo", "choices": choices, "usage": usage});
        format!("data: {body}\n\n")
    };
    let word = |text: &str| chunk(json!({"content": text}), Value::Null, Value::Null);
    let first = chunk(json!({"role": "assistant", "content": FIRST}), Value::Null, Value::Null);
    let mut pieces = vec![json!({"data": first})];
    // LiteLLM gives up on a model that says the same again and again.
    for number in 2..count {
        pieces.push(json!({"data": word(&format!(" t{number}")), "delay_ms": pause}));
    }
    let usage = json!({"prompt_tokens": 100, "completion_tokens": count, "total_tokens": 100_usize.saturating_add(count)});
    let end = chunk(json!({}), json!("stop"), usage);
    let last = word(&format!(" {LAST}"));
    pieces.push(json!({"data": format!("{last}{end}data: [DONE]\n\n"), "delay_ms": pause}));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_request_has_a_hundred_kilobytes_in_both_dialects() {
        for dialect in [Dialect::Messages, Dialect::Chat] {
            let size = request(Scenario::Agent, dialect).len();
            assert!((90_000..115_000).contains(&size), "{size}");
        }
    }

    #[test]
    fn every_scenario_has_an_answer_of_its_own_with_as_many_pieces_as_chunks() {
        let script = script();
        let answers = script.as_array().unwrap();
        assert_eq!(answers.len(), Scenario::ALL.len());
        for (scenario, answer) in Scenario::ALL.iter().zip(answers) {
            assert_eq!(answer["pieces"].as_array().unwrap().len(), scenario.chunks().max(1));
            let text = answer.to_string();
            assert!(text.contains(FIRST) && text.contains(LAST));
            let asked = String::from_utf8(request(*scenario, Dialect::Messages).to_vec()).unwrap();
            let markers = Scenario::ALL.iter().filter(|other| asked.contains(other.marker()));
            assert_eq!(markers.count(), 1, "{asked}");
        }
    }
}
