//! The circuit breaker and the limit of tool turns act on requests that go up as they came.

use serde_json::{Value, json};

use super::*;

/// A task with so many calls of `shell` without its command; `result` makes each one's content.
fn failing(calls: usize, tools: &[&str], result: impl Fn(usize) -> Value) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "Do it"})];
    for at in 0..calls {
        let id = format!("toolu_{at}");
        messages.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": "shell", "input": {}}]}));
        let mut block = json!({"type": "tool_result", "tool_use_id": id, "is_error": true});
        let content = result(at);
        if !content.is_null() {
            block["content"] = content;
        }
        messages.push(json!({"role": "user", "content": [block]}));
    }
    let tool = |name: &&str| {
        json!({"name": name, "input_schema": {"type": "object",
            "properties": {"command": {"type": "string"}}, "required": ["command"]}})
    };
    let tools: Vec<Value> = tools.iter().map(tool).collect();
    json!({"model": "claude", "max_tokens": 9, "tools": tools, "messages": messages})
}

fn shell(calls: usize) -> Value {
    failing(calls, &["shell"], |_| json!("command is missing"))
}

fn guards(settings: &str) -> Arc<Config> {
    config_with(None, &format!(r#","guards":{settings}"#))
}

#[track_caller]
fn up(config: &Arc<Config>, body: &Value) -> Value {
    serde_json::from_slice(&sent(config, &body.to_string()).body).unwrap()
}

/// The content of the last result.
fn last_content(body: &Value) -> Value {
    let messages = body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"][0]["content"].clone()
}

#[test]
fn the_result_of_a_call_that_fails_again_says_what_is_required() {
    let told = "Tool 'shell' has failed schema validation 3 times consecutively. The required fields are: command. Do NOT call this tool again without providing all required fields.";
    let told = json!({"type": "text", "text": told});
    let text = |text: &str| json!({"type": "text", "text": text});
    for (content, expected) in [
        (json!("no \"command\""), json!([text("no \"command\""), told])),
        (json!([text("a"), text("b")]), json!([text("a"), text("b"), told])),
        (json!([]), json!([told])),
        (json!(""), json!([told])),
        (Value::Null, json!([told])),
    ] {
        let body = failing(3, &["shell"], |_| content.clone());
        let mut wanted = body.clone();
        let last = wanted["messages"].as_array_mut().unwrap().last_mut().unwrap();
        last["content"][0]["content"] = expected;
        assert_eq!(up(&config(), &body), wanted, "{content}");
    }
    // Two calls are no pattern, and what is switched off does not act.
    let two = shell(2).to_string();
    assert_eq!(sent(&config(), &two).body, two.as_bytes());
    let off = guards(r#"{"breaker":{"failures_max":0,"withhold_after":0}}"#);
    let many = shell(9).to_string();
    assert_eq!(sent(&off, &many).body, many.as_bytes());
}

#[test]
fn what_claude_thought_is_bound_to_stays_as_it_was() {
    let thinking = |mut body: Value, kind: &str| {
        let block = match kind {
            "thinking" => json!({"type": kind, "thinking": "", "signature": "Eo"}),
            _ => json!({"type": kind, "data": "Eo"}),
        };
        body["messages"][1]["content"].as_array_mut().unwrap().insert(0, block);
        body
    };
    for kind in ["thinking", "redacted_thinking"] {
        // A word of warning would be gone after the next success, and be an edit then.
        let three = thinking(shell(3), kind).to_string();
        let request = drive::request(&config(), "/v1/messages", &[], three.as_bytes());
        let (exchange, sent) = request.unwrap_or_else(|_| panic!("it is refused"));
        assert_eq!(sent.body, three.as_bytes());
        assert_eq!(exchange.report().warnings.guards(), [""; 0]);
        // Nor do tools change. No choice is a part of what is bound.
        let six = thinking(failing(6, &["shell", "look"], |_| json!("no command")), kind);
        let mut expected = six.clone();
        expected["tool_choice"] = json!({"type": "none"});
        assert_eq!(up(&config(), &six), expected);
        // Other servers of Messages check nothing of the kind.
        let kimi = config_with(Some("kimi-k3"), "");
        assert_eq!(up(&kimi, &six)["tools"], json!([six["tools"][1]]));
    }
}

#[test]
fn what_is_not_about_the_guard_keeps_its_bytes() {
    let body = shell(3).to_string().replacen('{', "{ \"newer\" : 1.10 , ", 1);
    let sent = String::from_utf8(sent(&config(), &body).body).unwrap();
    let (before, after) = body.rsplit_once("\"command is missing\"").unwrap();
    assert!(sent.starts_with(before), "{sent}");
    assert!(sent.ends_with(after), "{sent}");
}

#[test]
fn a_tool_that_goes_on_failing_is_withheld() {
    let mut body = failing(6, &["shell", "look"], |_| json!("command is missing"));
    body["tool_choice"] = json!({"type": "tool", "name": "shell"});
    let found = up(&config(), &body);
    assert_eq!(found["tools"], json!([body["tools"][1]]));
    assert_eq!(found["tool_choice"], json!({"type": "auto"}));
    // The API wants the tools of the calls in the history, so the last one stays and is not chosen.
    let alone = shell(6);
    let found = up(&config(), &alone);
    assert_eq!(found["tools"], alone["tools"]);
    assert_eq!(found["tool_choice"], json!({"type": "none"}));
    let answer = guards(r#"{"breaker":{"action":"answer"}}"#);
    let found = up(&answer, &body);
    assert_eq!(
        (&found["tools"], &found["tool_choice"]),
        (&body["tools"], &json!({"type": "none"}))
    );
    body["tool_choice"]["disable_parallel_tool_use"] = json!(true);
    let one = json!({"type": "auto", "disable_parallel_tool_use": true});
    assert_eq!(up(&config(), &body)["tool_choice"], one);
    let refuse = guards(r#"{"breaker":{"action":"error"}}"#);
    let answer = drive::request(&refuse, "/v1/messages", &[], body.to_string().as_bytes());
    let Err(answer) = answer else { panic!("it is sent") };
    assert_eq!(answer.head.status, 400);
    assert!(String::from_utf8_lossy(&answer.body).contains("failure_class=deterministic"));
}

#[test]
fn a_repaired_history_is_judged_as_it_goes_up() {
    let mut body = shell(2);
    let messages = body["messages"].as_array_mut().unwrap();
    let call = json!({"type": "tool_use", "id": "toolu_lost", "name": "shell", "input": {}});
    messages.push(json!({"role": "assistant", "content": [call]}));
    messages.push(json!({"role": "user", "content": "And now?"}));
    let found = up(&config(), &body);
    let last = found["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    assert_eq!(last[0]["tool_use_id"], "toolu_lost", "{last}");
    // A person wrote: all counts are 0.
    assert_eq!(last[0]["content"], "Tool result is missing.");
    body["messages"].as_array_mut().unwrap().pop();
    let found = up(&config(), &body);
    assert!(last_content(&found).to_string().contains("3 times"), "{found}");
}

#[test]
fn tool_turns_are_limited() {
    let body = shell(2);
    let down = guards(r#"{"tool_turns_max":2}"#);
    let found = up(&down, &body);
    assert_eq!(found["tool_choice"], json!({"type": "none"}));
    assert_eq!(found["messages"], body["messages"]);
    let end = guards(r#"{"tool_turns_max":2,"tool_turns_action":"end"}"#);
    let answer = drive::request(&end, "/v1/messages", &[], body.to_string().as_bytes());
    let Err(answer) = answer else { panic!("it is sent") };
    let said: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((answer.head.status, &said["stop_reason"]), (200, &json!("end_turn")));
    assert!(said["content"][0]["text"].as_str().unwrap().contains("2 turns"), "{said}");
    let turn = answer.head.headers.iter().find(|(name, _)| name == "x-creole-tool-turn").unwrap();
    assert_eq!(turn.1, "2/2");
    let below = guards(r#"{"tool_turns_max":3}"#);
    assert_eq!(up(&below, &body), body);
}

#[test]
fn ids_that_repeat_give_one_note_and_a_body_that_is_json() {
    for content in [json!("command is missing"), json!([]), Value::Null] {
        let mut body = failing(5, &["shell"], |_| content.clone());
        for message in body["messages"].as_array_mut().unwrap() {
            for block in message["content"].as_array_mut().into_iter().flatten() {
                for key in ["id", "tool_use_id"] {
                    if block[key].is_string() {
                        block[key] = "call_0".into();
                    }
                }
            }
        }
        let found = up(&guards("{}"), &body);
        let told = found.to_string().matches("times consecutively").count();
        assert_eq!(told, 1, "{found}");
        assert!(last_content(&found).to_string().contains("5 times"), "{found}");
    }
}

#[test]
fn a_note_names_no_more_required_fields_than_a_model_can_use() {
    let mut body = shell(4);
    let names: Vec<String> = (0..1000).map(|number| format!("field_{number}")).collect();
    body["tools"][0]["input_schema"]["required"] = json!(names);
    let note = last_content(&up(&guards("{}"), &body)).to_string();
    assert!(note.contains("field_0, field_1") && note.contains('…'), "{note}");
    assert!(note.len() < 2000, "{} bytes", note.len());
}

/// Bodies with what only this API has, or with what is newer than Creole.
fn of_this_api(body: &Value) -> Vec<Value> {
    let with_tool = |tool: Value| {
        let mut body = body.clone();
        body["tools"].as_array_mut().unwrap().push(tool);
        body
    };
    let with_block = |block: Value| {
        let mut body = body.clone();
        let said = json!([block, {"type": "text", "text": "Do it"}]);
        body["messages"][0]["content"] = said;
        body
    };
    let mut server = body.clone();
    server["tools"] = json!([{"type": "web_search_20250305", "name": "web_search"}]);
    let mut toolset = body.clone();
    toolset["tools"] = json!([{"type": "browser_toolset_20260801"}]);
    vec![
        with_tool(json!({"type": "mcp_toolset", "mcp_server_name": "m"})),
        with_tool(json!({"type": "newer_20270101"})),
        with_tool(json!({"type": "newer_20270101", "name": "newer"})),
        with_block(json!({"type": "container_upload", "file_id": "file_1"})),
        with_block(json!({"type": "newer"})),
        server,
        toolset,
    ]
}

#[test]
fn guards_act_whatever_else_is_in_the_request() {
    let limited = guards(r#"{"tool_turns_max":2,"tool_turns_action":"error"}"#);
    for body in of_this_api(&shell(3)) {
        let told = last_content(&up(&config(), &body)).to_string();
        assert!(told.contains(" 3 times "), "{body}");
        let sent = drive::request(&limited, "/v1/messages", &[], body.to_string().as_bytes());
        let Err(answer) = sent else { panic!("it is sent: {body}") };
        assert_eq!(answer.report.warnings.guards(), ["tool_turns"], "{body}");
    }
}

#[test]
fn no_guard_counts_in_a_thread_whose_start_is_elsewhere() {
    let mut body = shell(7);
    body["thread"] = json!({"type": "continue", "previous_message_id": "msg_1"});
    let sent = sent(&guards(r#"{"tool_turns_max":2}"#), &body.to_string());
    assert_eq!(String::from_utf8(sent.body).unwrap(), body.to_string());
}

#[test]
fn a_tool_that_gives_the_answer_is_not_chosen_either() {
    let mut body = shell(2);
    body["tools"].as_array_mut().unwrap().push(json!({"name": "final_result",
        "input_schema": {"type": "object"}}));
    let sent = up(&guards(r#"{"tool_turns_max":2}"#), &body);
    assert_eq!((&sent["tool_choice"], &sent["tools"]), (&json!({"type": "none"}), &body["tools"]));
}

#[test]
fn a_tool_whose_schema_is_the_apis_own_is_told_with_what_it_requires() {
    let mut body = shell(3);
    body["tools"] = json!([{"type": "memory_20250818", "name": "shell"},
        {"type": "mcp_toolset", "mcp_server_name": "m"}]);
    let body = body.to_string().replace("\"shell\"", "\"memory\"");
    let told = last_content(&up(&config(), &serde_json::from_str(&body).unwrap())).to_string();
    assert!(told.contains("The required fields are: command."), "{told}");
}

#[test]
fn a_request_that_guards_cannot_read_says_so() {
    let mut body = shell(3);
    let image = json!({"type": "image", "source": {"type": "newer"}});
    body["messages"][0]["content"] = json!([image]);
    let warns = |config: &Arc<Config>| {
        let sent = drive::request(config, "/v1/messages", &[], body.to_string().as_bytes());
        let Ok((exchange, request)) = sent else { panic!("it is refused") };
        assert_eq!(request.body, body.to_string().as_bytes());
        exchange.report().warnings.iter().any(|it| it.code == "guards_skipped")
    };
    assert!(warns(&config()));
    assert!(!warns(&guards(r#"{"breaker":{"failures_max":0,"withhold_after":0}}"#)));
}

#[test]
fn a_withheld_tool_that_the_conversation_refers_to_stays_and_nothing_is_chosen() {
    let base = failing(6, &["shell", "look"], |_| json!("command is missing"));
    let reference = json!({"type": "tool_reference", "name": "shell"});
    let with_system = |change: Value| {
        let mut body = base.clone();
        let system = json!({"role": "system", "content": [change]});
        body["messages"].as_array_mut().unwrap().insert(1, system);
        body
    };
    let mut found = base.clone();
    let call = json!({"type": "tool_use", "id": "toolu_s", "name": "look", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_s",
        "content": [{"type": "tool_reference", "tool_name": "shell"}]});
    let messages = found["messages"].as_array_mut().unwrap();
    messages.insert(1, json!({"role": "assistant", "content": [call]}));
    messages.insert(2, json!({"role": "user", "content": [result]}));
    let mut inline = with_system(json!({"type": "tool_addition", "tool":
        {"type": "tool_definition", "definition": base["tools"][0]}}));
    inline["tools"].as_array_mut().unwrap().remove(0);
    // A name that the model made up.
    let mut unknown = base.clone();
    unknown["tools"].as_array_mut().unwrap().remove(0);
    // A member of a toolset, and another tool of the same name.
    let mut member = base.clone();
    member["tools"].as_array_mut().unwrap().push(json!({"type": "browser_toolset_20260801"}));
    for message in member["messages"].as_array_mut().unwrap() {
        for block in message["content"].as_array_mut().into_iter().flatten() {
            if block["type"] == "tool_use" {
                block["toolset_name"] = json!("browser");
            }
        }
    }
    for body in [
        found,
        with_system(json!({"type": "tool_addition", "tool": reference})),
        with_system(json!({"type": "tool_removal", "tool": reference})),
        inline,
        unknown,
        member,
    ] {
        let up = up(&config(), &body);
        assert_eq!(up["tools"], body["tools"], "{body}");
        assert_eq!(up["tool_choice"], json!({"type": "none"}), "{body}");
    }
    let mut without = base;
    without.as_object_mut().unwrap().remove("tools");
    assert!(up(&config(), &without).get("tool_choice").is_none());
}
