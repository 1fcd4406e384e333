//! The demo model's Responses over real connections.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod client;

use client::send;
use creole_demo::{Answer, Demo, Options};
use serde_json::{Value, json};

fn start() -> Demo {
    Demo::start(Options::default()).unwrap()
}

fn post(demo: &Demo, body: &Value) -> (u16, Value) {
    let (status, _, body) = send(demo, "POST", "/v1/responses", &body.to_string());
    (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
}

/// A request of a client that stores nothing and wants to see what the model thinks.
fn ask(input: impl Into<Value>) -> Value {
    json!({
        "model": "demo", "store": false, "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"}, "tools": weather(), "input": input.into()
    })
}

fn weather() -> Value {
    json!([{"type": "function", "name": "get_weather", "strict": false, "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}])
}

/// The events of a streamed answer. Each has its name twice and its number.
fn events(demo: &Demo, body: &Value) -> Vec<Value> {
    let mut body = body.clone();
    body["stream"] = true.into();
    let (status, head, stream) = send(demo, "POST", "/v1/responses", &body.to_string());
    assert_eq!(status, 200, "{stream}");
    assert!(head.contains("text/event-stream"), "{head}");
    let events = stream.split_terminator("\n\n").enumerate().map(|(number, event)| {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name, format!("event: {}", data["type"].as_str().unwrap()));
        assert_eq!(data["sequence_number"], number);
        data
    });
    events.collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    types.dedup();
    types.iter().map(|name| name.strip_prefix("response.").unwrap_or(name)).collect()
}

/// What the events say of one type, joined.
fn joined(events: &[Value], kind: &str, index: usize) -> String {
    let of = events
        .iter()
        .filter(|event| event["type"] == kind && event["output_index"] == index)
        .filter_map(|event| event["delta"].as_str());
    of.collect()
}

/// A conversation after one call, with what came back put in by `change`.
fn second_turn(demo: &Demo, change: impl FnOnce(&mut Vec<Value>)) -> (u16, Value) {
    let prompt = json!({"role": "user", "content": "demo:tool get_weather"});
    let (status, answer) = post(demo, &ask(json!([prompt])));
    assert_eq!(status, 200, "{answer}");
    let mut input = vec![prompt];
    input.extend(answer["output"].as_array().unwrap().iter().cloned());
    let call = answer["output"].as_array().unwrap().last().unwrap()["call_id"].clone();
    input.push(json!({"type": "function_call_output", "call_id": call, "output": "21 degrees"}));
    change(&mut input);
    post(demo, &ask(input))
}

#[test]
fn a_text_is_streamed_in_the_order_of_the_original() {
    let demo = start();
    let mut body = ask("demo:say Hello there, you.");
    body["reasoning"] = Value::Null;
    let events = events(&demo, &body);
    let order = [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ];
    assert_eq!(types(&events), order);
    assert_eq!(joined(&events, "response.output_text.delta", 0), "Hello there, you.");
    let response = &events.last().unwrap()["response"];
    assert_eq!(response["output"][0]["content"][0]["text"], "Hello there, you.");
    assert_eq!(response["status"], "completed");
    assert!(response["usage"]["output_tokens"].as_u64().unwrap() >= 3);
    assert!(events[4]["obfuscation"].is_string());
}

#[test]
fn reasoning_and_parallel_calls_are_items_in_this_order() {
    let demo = start();
    let body = ask("demo:tool get_weather demo:parallel 2 demo:interleave");
    let events = events(&demo, &body);
    let order = types(&events);
    let of_reasoning = [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ];
    assert_eq!(order[2..8], of_reasoning);
    let output = events.last().unwrap()["response"]["output"].as_array().unwrap().clone();
    let kinds: Vec<&Value> = output.iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["reasoning", "function_call", "function_call"]);
    for index in [1, 2] {
        let arguments = joined(&events, "response.function_call_arguments.delta", index);
        assert_eq!(output[index]["arguments"], arguments);
        let done = |event: &&Value| {
            event["type"] == "response.output_item.done" && event["output_index"] == index
        };
        assert_eq!(events.iter().find(done).unwrap()["item"], output[index]);
    }
    let indexes: Vec<u64> = events
        .iter()
        .filter(|event| event["type"] == "response.function_call_arguments.delta")
        .map(|event| event["output_index"].as_u64().unwrap())
        .collect();
    assert!(indexes.windows(2).any(|pair| pair[0] > pair[1]), "they take turns: {indexes:?}");
}

#[test]
fn a_whole_answer_is_the_response_of_the_last_event() {
    let demo = start();
    for prompt in [
        "Hi",
        "demo:tool get_weather",
        "demo:refuse",
        "demo:length demo:say one two three four",
        "demo:filter",
        "demo:no-usage",
        "demo:length demo:tool get_weather",
    ] {
        let body = ask(prompt);
        let (status, whole) = post(&demo, &body);
        assert_eq!(status, 200, "{whole}");
        let events = events(&demo, &body);
        let mut last = events.last().unwrap()["response"].clone();
        // The ids follow from the bytes of the request.
        let mut whole = whole;
        for answer in [&mut last, &mut whole] {
            answer["id"] = Value::Null;
            answer["usage"]["input_tokens"] = Value::Null;
            answer["usage"]["total_tokens"] = Value::Null;
            for item in answer["output"].as_array_mut().unwrap() {
                for member in ["id", "call_id", "encrypted_content"] {
                    item[member] = Value::Null;
                }
            }
        }
        assert_eq!(whole, last, "{prompt}");
        let cut = whole["incomplete_details"]["reason"].as_str();
        let wanted = match prompt {
            text if text.contains("length") => Some("max_output_tokens"),
            "demo:filter" => Some("content_filter"),
            _ => None,
        };
        assert_eq!(cut, wanted, "{prompt}");
    }
}

#[test]
fn a_loop_of_tools_ends_with_a_text_that_quotes_the_result() {
    let demo = start();
    let mut input = vec![json!({"role": "user", "content": "demo:tool get_weather demo:3turns"})];
    for turn in 1..=3 {
        let (status, answer) = post(&demo, &ask(input.clone()));
        assert_eq!(status, 200, "{answer}");
        let output = answer["output"].as_array().unwrap();
        assert_eq!(output.len(), 2, "turn {turn}: {answer}");
        input.extend(output.iter().cloned());
        let call = output[1]["call_id"].clone();
        input
            .push(json!({"type": "function_call_output", "call_id": call, "output": "21 degrees"}));
    }
    let (_, answer) = post(&demo, &ask(input));
    assert_eq!(answer["output"][1]["content"][0]["text"], "get_weather answered: 21 degrees");
}

#[test]
fn reasoning_must_come_back_unchanged_before_what_it_led_to() {
    let demo = start();
    assert_eq!(second_turn(&demo, |_| {}).0, 200);
    let refused = |change: fn(&mut Vec<Value>)| {
        let (status, answer) = second_turn(&demo, change);
        assert_ne!(status, 200, "{answer}");
        let error = &answer["error"];
        (status, error["code"].clone(), error["message"].as_str().unwrap().to_owned())
    };
    let (_, code, _) = refused(|input| {
        let content = input[1]["encrypted_content"].as_str().unwrap().replacen('A', "B", 3);
        input[1]["encrypted_content"] = content.into();
    });
    assert_eq!(code, "invalid_encrypted_content");
    let (_, code, _) = refused(|input| input[1]["id"] = "rs_other".into());
    assert_eq!(code, "invalid_encrypted_content");
    let (status, _, message) = refused(|input| {
        input[1].as_object_mut().unwrap().remove("encrypted_content");
    });
    assert_eq!(status, 404);
    assert!(message.contains("not found. Items are not persisted"), "{message}");
    let following = "was provided without its required following item";
    // At the end, after its call, and before another call.
    for change in [
        |input: &mut Vec<Value>| {
            let item = input.remove(1);
            input.push(item);
        },
        |input: &mut Vec<Value>| input.swap(1, 2),
        |input: &mut Vec<Value>| {
            for item in &mut input[2..] {
                item["call_id"] = "call_other".into();
            }
        },
    ] {
        let (_, _, message) = refused(change);
        let required = message.contains("without its required 'reasoning' item");
        assert!(message.contains(following) || required, "{message}");
    }
    let (_, _, message) = refused(|input| drop(input.remove(1)));
    assert!(
        message.contains(
            "of type 'function_call' was provided without its required 'reasoning' item: 'rs_"
        ),
        "{message}"
    );
    // Without its id nobody asks for the reasoning.
    let (status, answer) = second_turn(&demo, |input| {
        input.remove(1);
        input[1].as_object_mut().unwrap().remove("id");
    });
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn calls_and_outputs_belong_together() {
    let demo = start();
    let (status, answer) = second_turn(&demo, |input| drop(input.pop()));
    assert_eq!(status, 400);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("No tool output found for function call call_"), "{message}");
    let (status, answer) = second_turn(&demo, |input| drop(input.drain(1..3)));
    assert_eq!(status, 400);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("No tool call found for function call output"), "{message}");
}

#[test]
fn what_the_original_refuses_is_refused_with_its_place() {
    let demo = start();
    let with = |pointer: &str, value: Value| {
        let mut body =
            ask(json!([{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]));
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        body.pointer_mut(parent).unwrap()[name] = value;
        body
    };
    for (pointer, value, param, code) in [
        ("/messages", json!([]), "messages", "unknown_parameter"),
        ("/max_tokens", json!(16), "max_tokens", "unknown_parameter"),
        ("/max_output_tokens", json!(15), "max_output_tokens", "integer_below_min_value"),
        ("/store", json!(true), "store", "unsupported_parameter"),
        ("/previous_response_id", json!("resp_1"), "previous_response_id", "unsupported_parameter"),
        ("/include", json!(["reasoning"]), "include[0]", "invalid_value"),
        ("/reasoning/effort", json!("great"), "reasoning.effort", "invalid_value"),
        ("/reasoning/depth", json!(1), "reasoning.depth", "unknown_parameter"),
        (
            "/text",
            json!({"format": {"type": "json_schema", "json_schema": {}}}),
            "text.format.json_schema",
            "unknown_parameter",
        ),
        (
            "/tool_choice",
            json!({"type": "function", "function": {"name": "get_weather"}}),
            "tool_choice.name",
            "missing_required_parameter",
        ),
        ("/temperature", json!(3), "temperature", "decimal_above_max_value"),
        ("/stream", json!("yes"), "stream", "invalid_type"),
    ] {
        let (status, answer) = post(&demo, &with(pointer, value));
        let error = &answer["error"];
        assert_eq!((status, &error["type"]), (400, &json!("invalid_request_error")), "{pointer}");
        assert_eq!(
            (&error["param"], &error["code"]),
            (&json!(param), &json!(code)),
            "{pointer}: {error}"
        );
    }
    for (input, param) in [
        (json!([]), "input"),
        (json!({}), "input"),
        (json!([{"role": "tool", "content": "x"}]), "input[0].role"),
        (
            json!([{"role": "user", "content": [{"type": "text", "text": "x"}]}]),
            "input[0].content[0].type",
        ),
        (
            json!([{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]),
            "input[0].content[0].type",
        ),
        (json!([{"role": "user", "content": "x", "tool_calls": []}]), "input[0].tool_calls"),
        (json!([{"role": "user", "content": "x", "phase": "commentary"}]), "input[0].phase"),
        (
            json!([{"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}]),
            "input[0].arguments",
        ),
        (
            json!([{"type": "function_call", "id": "call_1", "call_id": "c", "name": "f", "arguments": ""}]),
            "input[0].id",
        ),
        (
            json!([{"type": "function_call", "call_id": "c".repeat(65), "name": "f", "arguments": ""}]),
            "input[0].call_id",
        ),
        (json!([{"type": "reasoning", "encrypted_content": "x"}]), "input[0].summary"),
        (
            json!([{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]),
            "input[0].content[0].image_url",
        ),
    ] {
        let (status, answer) = post(&demo, &ask(input));
        assert_eq!((status, &answer["error"]["param"]), (400, &json!(param)), "{answer}");
    }
}

#[test]
fn a_function_is_strict_unless_it_says_otherwise() {
    let demo = start();
    let mut body = ask("Hi");
    body["tools"][0].as_object_mut().unwrap().remove("strict");
    let (status, answer) = post(&demo, &body);
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("invalid_function_parameters")));
    body["tools"][0]["parameters"]["additionalProperties"] = false.into();
    assert_eq!(post(&demo, &body).0, 200);
    body["tools"][0]["parameters"]["required"] = json!([]);
    assert_eq!(post(&demo, &body).0, 400);
    // The shape of Chat Completions.
    body["tools"] = json!([{"type": "function", "function": {"name": "get_weather"}}]);
    assert_eq!(post(&demo, &body).1["error"]["param"], "tools[0].name");
}

#[test]
fn failures_have_the_form_of_responses() {
    let demo = start();
    for prompt in ["demo:error-mid demo:big 99", "demo:error-in-200"] {
        let events = events(&demo, &ask(prompt));
        let [.., error, failed] = &events[..] else { panic!("{events:?}") };
        assert_eq!((&error["type"], &error["code"]), (&json!("error"), &json!("server_error")));
        assert_eq!(failed["type"], "response.failed");
        assert_eq!(failed["response"]["error"]["code"], "server_error");
    }
    let (status, whole) = post(&demo, &ask("demo:error-in-200"));
    assert_eq!((status, &whole["status"]), (200, &json!("failed")));
    assert_eq!(post(&demo, &ask("demo:error 429")).0, 429);
    demo.script([Answer::words("demo:error context")]);
    assert_eq!(post(&demo, &ask("Hi")).1["error"]["code"], "context_length_exceeded");
}

#[test]
fn formats_limits_images_and_counts_are_obeyed() {
    let demo = start();
    let mut body = ask("Hi");
    body["text"] = json!({"format": {"type": "json_schema", "name": "output", "strict": false,
        "schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}});
    let (_, answer) = post(&demo, &body);
    assert_eq!(answer["output"][1]["content"][0]["text"], r#"{"city":"Paris"}"#);
    let mut body = ask("demo:say 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18");
    body["max_output_tokens"] = 16.into();
    let (_, answer) = post(&demo, &body);
    assert_eq!(answer["status"], "incomplete");
    assert!(answer["output"][1]["content"][0]["text"].as_str().unwrap().ends_with(" 16"));
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,aaaa"});
    let body = ask(json!([{"role": "user", "content": [image]}]));
    let (_, answer) = post(&demo, &body);
    let text = answer["output"][1]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("You sent: image_url data:image/png;base64"), "{text}");
    let body = json!({"model": "demo", "input": "Hi", "tools": weather()}).to_string();
    let (status, _, counted) = send(&demo, "POST", "/v1/responses/input_tokens", &body);
    let counted: Value = serde_json::from_str(&counted).unwrap();
    assert_eq!(status, 200);
    assert_eq!(counted["object"], "response.input_tokens");
    assert_eq!(counted["input_tokens"], body.len().div_ceil(4));
}
