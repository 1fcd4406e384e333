//! Searches for deferred tools: what the model gets before and after a search.

use super::*;

/// A tool with `defer_loading`.
fn deferred(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "defer_loading": true,
        "input_schema": {"type": "object", "properties": {"place": {"type": "string"}}}})
}

/// A request with a tool that is always there, a tool that searches, and `deferred`.
fn session(kind: &str, deferred: &[Value], turns: &[Turn]) -> Session {
    let name = kind.rsplit_once('_').unwrap().0;
    let mut tools = vec![
        json!({"name": "run", "input_schema": {"type": "object"}}),
        json!({"type": kind, "name": name}),
    ];
    tools.extend_from_slice(deferred);
    let mut session = Session::new(turns, &[]).with("tools", tools.into());
    session.config = session::config(r#", "tool_search": "run""#);
    session
}

const BM25: &str = "tool_search_tool_bm25_20251119";
const REGEX: &str = "tool_search_tool_regex_20251119";

fn weather_and_mail() -> Vec<Value> {
    vec![deferred("get_weather", "Says how warm it is"), deferred("send_mail", "Sends a letter")]
}

/// The names of the functions in a request to the upstream.
fn functions(asked: &Value) -> Vec<&str> {
    let tools = asked["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

#[test]
fn a_tool_that_a_search_finds_is_offered_from_the_next_round_on() {
    let search = ("tool_search_tool_bm25", r#"{"query":"weather"}"#);
    let turns = [turn("", &[search]), turn("", &[("get_weather", r#"{"place":"Bonn"}"#)])];
    let got = session(BM25, &weather_and_mail(), &turns).run();
    assert_eq!(got.kinds(), ["server_tool_use", "tool_search_tool_result", "tool_use"]);
    let content = &got.message["content"];
    let found = json!({"type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": "get_weather"}]});
    assert_eq!(content[1]["content"], found);
    assert_eq!(content[1]["tool_use_id"], content[0]["id"]);
    assert_eq!(got.message["stop_reason"], "tool_use");
    assert_eq!(got.message["usage"]["server_tool_use"], Value::Null);
    let [first, second] = &got.asked[..] else { panic!("{:?}", got.asked) };
    assert_eq!(functions(first), ["run", "tool_search_tool_bm25"]);
    assert_eq!(functions(second), ["run", "tool_search_tool_bm25", "get_weather"]);
    assert_eq!(second["messages"][2]["content"], "Tool loaded: get_weather");
    assert!(got.searched.is_empty());
}

#[test]
fn the_next_request_of_the_client_offers_what_was_found_in_the_order_of_finding() {
    let turns = [
        turn("", &[("tool_search_tool_regex", r#"{"pattern":"mail"}"#)]),
        turn("", &[("tool_search_tool_regex", r#"{"pattern":"get_.*"}"#)]),
        turn("", &[("get_weather", "{}")]),
        turn("Warm.", &[]),
    ];
    let mut session = session(REGEX, &weather_and_mail(), &turns);
    let got = session.run();
    let id = got.message["content"][4]["id"].clone();
    let last = got.asked[2].clone();
    session.body["messages"] = json!([
        {"role": "user", "content": "Q"},
        {"role": "assistant", "content": got.message["content"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "20"}]},
    ]);
    session.turns = vec![turn("Warm.", &[])];
    let next = &session.run().asked[0];
    assert_eq!(next["tools"], last["tools"]);
    let functions = functions(next);
    assert_eq!(functions, ["run", "tool_search_tool_regex", "send_mail", "get_weather"]);
    let sent = last["messages"].as_array().unwrap();
    assert_eq!(&next["messages"].as_array().unwrap()[..sent.len()], &sent[..]);
}

#[test]
fn what_is_no_search_is_told_to_the_model_and_the_loop_goes_on() {
    let long = format!(r#"{{"pattern":"{}"}}"#, "a".repeat(201));
    let call = |input: &str| ("tool_search_tool_regex", input.to_owned());
    let calls = [call(r#"{"pattern":"("}"#), call(&long), call(r#"{"pattern":"nothing"}"#)];
    let calls: Vec<(&str, &str)> = calls.iter().map(|(name, input)| (*name, &**input)).collect();
    let got = session(REGEX, &weather_and_mail(), &[turn("", &calls), turn("No.", &[])]).run();
    let results: Vec<&Value> = got.message["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|block| block["type"] == "tool_search_tool_result")
        .map(|block| &block["content"])
        .collect();
    let wrong = |reason| {
        json!({"type": "tool_search_tool_result_error",
            "error_code": "invalid_tool_input", "error_message": reason})
    };
    assert_eq!(results[0], &wrong("pattern: this is no regular expression"));
    assert_eq!(results[1], &wrong("pattern: expected at most 200 characters"));
    assert_eq!(results[2]["tool_references"], json!([]));
    let told = |at: usize| got.asked[1]["messages"][at]["content"].as_str().unwrap().to_owned();
    assert_eq!(
        told(2),
        "Error: invalid_tool_input: pattern: this is no regular expression. Go on without it, and \
         say so if it matters."
    );
    assert_eq!(told(4), "No tool matches.");
}

#[test]
fn few_deferred_tools_are_sent_at_once_and_many_are_searched() {
    let many = |count: usize| -> Vec<Value> {
        (0..count).map(|at| deferred(&format!("tool_{at}"), "Does")).collect()
    };
    let asked = |tools: &[Value], more: &str| {
        let mut session = session(BM25, tools, &[turn("Hi", &[])]);
        session.config = session::config(more);
        let asked = session.run().asked.remove(0);
        functions(&asked).len()
    };
    assert_eq!(asked(&many(30), ""), 31, "the tool that searches is left out");
    assert_eq!(asked(&many(31), ""), 2);
    assert_eq!(asked(&[deferred("large", &"word ".repeat(10_000))], ""), 2);
    assert_eq!(asked(&many(200), r#", "tool_search": "send_all""#), 201);
    assert_eq!(asked(&many(1), r#", "tool_search": "run""#), 2);
}

#[test]
fn a_host_without_rounds_sends_all_tools_at_once() {
    let many: Vec<Value> = (0..50).map(|at| deferred(&format!("tool_{at}"), "Does")).collect();
    let session = session(BM25, &many, &[]);
    let mut warnings = creole::observe::warning::Warnings::new(false);
    let body = session.body.to_string();
    let sent = creole::protocols::request(&body, &session.config, &[], &mut warnings).unwrap();
    let creole::protocols::Translated::Send { body, .. } = sent else { panic!("{sent:?}") };
    assert_eq!(functions(&serde_json::from_slice(&body).unwrap()).len(), 51);
}
