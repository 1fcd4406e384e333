//! Marks for the prompt cache that the client sets, in the two forms that upstreams read.

use super::*;
use creole::profile::presets::PRESETS;

/// Returns the flags of an upstream with OpenAI's form of the marks.
fn openai() -> Value {
    json!({"cache_breakpoints": "prompt_cache_breakpoint"})
}

/// Returns the flags of an upstream with the marks of the Messages API, as OpenRouter, LiteLLM and
/// others have them.
fn anthropic() -> Value {
    json!({"cache_breakpoints": "cache_control", "tool_content_parts": "text"})
}

fn plain() -> Value {
    json!({"type": "ephemeral"})
}

fn hour() -> Value {
    json!({"type": "ephemeral", "ttl": "1h"})
}

fn marked(mut value: Value, mark: Value) -> Value {
    value["cache_control"] = mark;
    value
}

/// Returns a request of Claude Code in a loop of tools, with its marks.
fn turn_of_claude_code() -> Value {
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    json!({
        "tools": [tool("w"), marked(tool("x"), plain()), tool("y")],
        "system": [text("A"), marked(text("B"), hour())],
        "messages": [
            user("q"),
            assistant(json!([call("toolu_1")])),
            user(json!([marked(result("toolu_1", "r"), plain())])),
            assistant("a"),
            user(json!([marked(text("b"), json!({"type": "ephemeral", "ttl": "5m", "scope": "global"}))])),
        ],
    })
}

#[test]
fn cache_control_goes_up_with_its_ttl_and_makes_parts_only_where_it_stands() {
    let body = sent_to("default", anthropic(), turn_of_claude_code());
    let part = |words: &str, mark: Value| json!([marked(text(words), mark)]);
    let messages = &body["messages"];
    assert_eq!(messages[0]["content"], json!([text("A"), marked(text("B"), hour())]));
    assert_eq!(messages[1], user("q"));
    assert_eq!(messages[3]["content"], part("r", plain()));
    assert_eq!(messages[4], assistant("a"));
    let five = json!({"type": "ephemeral", "ttl": "5m"});
    assert_eq!(messages[5]["content"], part("b", five));
    assert_eq!(body["tools"][1]["cache_control"], plain());
    assert_eq!(body.to_string().matches("cache_control").count(), 4);
}

#[test]
fn no_preset_but_openrouter_gets_cache_control_and_no_upstream_of_responses() {
    let request = whole(turn_of_claude_code());
    for protocol in ["openai", "responses"] {
        for preset in PRESETS {
            let up = json!({"url": "http://a", "protocol": protocol, "profile": preset});
            let text = json!({"upstreams": {"up": up}}).to_string();
            let config = Config::from_json(&text, |_| None).unwrap();
            let sent = try_with(&config, &request).0.unwrap().0.to_string();
            let count = sent.matches("cache_control").count();
            let expected = if (protocol, *preset) == ("openai", "openrouter") { 4 } else { 0 };
            assert_eq!(count, expected, "{protocol} {preset}");
        }
        let up = json!({"url": "http://a", "protocol": protocol, "profile_overrides": anthropic()});
        let text = json!({"upstreams": {"up": up}}).to_string();
        let config = Config::from_json(&text, |_| None).unwrap();
        let sent = try_with(&config, &request).0.unwrap().0.to_string();
        assert_eq!(sent.contains("cache_control"), protocol == "openai", "{sent}");
    }
    let openai = sent_to("openai-chat", openai(), turn_of_claude_code()).to_string();
    assert!(openai.contains("prompt_cache_breakpoint") && !openai.contains("cache_control"));
}

#[test]
fn of_too_many_marks_that_of_the_tools_goes_first() {
    let mut request = turn_of_claude_code();
    let sent = |request: &Value| sent_to("default", anthropic(), request.clone());
    assert_eq!(sent(&request)["tools"][1]["cache_control"], plain());
    // Of several tools the last one ends what is cached.
    request["tools"][0]["cache_control"] = hour();
    let body = sent(&request);
    assert_eq!(body["tools"][0].get("cache_control"), None);
    assert_eq!(body["tools"][1]["cache_control"], plain());
    request["messages"][0] = user(json!([marked(text("q"), plain())]));
    let body = sent(&request);
    assert!(!body["tools"].to_string().contains("cache_control"));
    assert_eq!(body["messages"].to_string().matches("cache_control").count(), 4);
    request["system"][0]["cache_control"] = plain();
    let body = sent(&request);
    assert_eq!(body["messages"][0]["content"], json!([text("A"), marked(text("B"), hour())]));
    assert_eq!(body.to_string().matches("cache_control").count(), 4);
}

#[test]
fn an_image_has_no_place_for_cache_control_and_takes_none_from_a_text() {
    let history = json!([user(json!([marked(text("t"), plain()), marked(image(), plain())]))]);
    let content = |flags: Value| messages_to(flags, history.clone())[0]["content"].take();
    assert_eq!(content(anthropic()), json!([marked(text("t"), plain()), image_part()]));
    let breakpoint = &content(openai())[1]["prompt_cache_breakpoint"];
    assert_eq!(*breakpoint, json!({"mode": "explicit"}));
    // Where the model sees none, a text stands there.
    let mut blind = anthropic();
    blind["image_parts"] = "none".into();
    assert_eq!(content(blind)[1]["cache_control"], plain());
}

#[test]
fn a_mark_on_a_result_whose_image_follows_later_is_kept() {
    let content = json!([marked(text("r"), hour()), image()]);
    let history = json!([
        user("q"),
        assistant(json!([call("toolu_1")])),
        user(json!([result("toolu_1", content)])),
    ]);
    let sent = messages_to(anthropic(), history);
    assert_eq!(sent[2]["content"], json!([marked(text("r"), hour())]));
    assert_eq!(sent[3]["content"][1], image_part());
}

#[test]
fn breakpoints_are_the_last_four() {
    let cached =
        |name: &str| json!({"type": "text", "text": name, "cache_control": {"type": "ephemeral"}});
    let request = json!({
        "system": [cached("s")],
        "messages": [user(json!([cached("a"), text("b")])), assistant("x"), user(json!([cached("c"), cached("d"), cached("e")]))],
    });
    let body = sent_to("default", openai(), request.clone());
    assert_eq!(body.to_string().matches("prompt_cache_breakpoint").count(), 4);
    assert_eq!(body["messages"][0]["content"], json!([text("s")]));
    assert!(!sent(request).to_string().contains("cache"));
}

/// A request that wants all of its prompt cached.
fn all_cached(history: Value, mark: Value) -> Value {
    json!({"cache_control": mark, "messages": history})
}

#[test]
fn a_mark_of_the_whole_request_goes_on_the_last_place_there_is() {
    let history = json!([user("q"), assistant("a"), user(json!([text("b"), text("c")]))]);
    let body = sent_to("default", anthropic(), all_cached(history.clone(), hour()));
    let parts = json!([text("b"), marked(text("c"), hour())]);
    assert_eq!(body["messages"][2]["content"], parts);
    assert_eq!(body.to_string().matches("cache_control").count(), 1);
    let body = sent_to("default", openai(), all_cached(history.clone(), plain()));
    assert_eq!(body["messages"][2]["content"][1]["prompt_cache_breakpoint"]["mode"], "explicit");
    let body = sent_to("openrouter", json!({}), all_cached(json!([user("q")]), plain()));
    assert_eq!(body["messages"][0]["content"], json!([marked(text("q"), plain())]));
    // Where no block gets a mark, the request is what it is without one.
    assert_eq!(sent(all_cached(history.clone(), plain())), sent(json!({"messages": history})));
    assert_eq!(
        sent_to("openrouter", json!({}), all_cached(history.clone(), Value::Null)),
        sent_to("openrouter", json!({}), json!({"messages": history}))
    );
}

#[test]
fn a_mark_of_the_whole_request_passes_by_what_has_no_place() {
    let last = |flags: Value, history: Value| {
        let body = sent_to("default", flags, all_cached(history, plain()));
        let marks = body.to_string().matches("cache_control").count();
        assert_eq!(marks, 1, "{body}");
        let has_mark = |message: &Value| message.to_string().contains("cache_control");
        body["messages"].as_array().unwrap().iter().position(has_mark).unwrap()
    };
    let results = anthropic();
    let none = json!({"cache_breakpoints": "cache_control"});
    let loop_of_tools = json!([
        user("q"),
        assistant(json!([call("toolu_1")])),
        user(json!([result("toolu_1", json!([text("r"), image()]))])),
    ]);
    assert_eq!(last(results.clone(), loop_of_tools.clone()), 2);
    assert_eq!(last(none.clone(), loop_of_tools.clone()), 0);
    let reminded = json!([
        user("q"),
        assistant(json!([call("toolu_1")])),
        user(json!([result("toolu_1", "r"), text("<system-reminder>go on</system-reminder>")])),
    ]);
    assert_eq!(last(results.clone(), reminded.clone()), 2);
    assert_eq!(last(none, reminded), 0);
    assert_eq!(
        last(results.clone(), json!([user(json!([text("q"), image()])), assistant("a")])),
        0
    );
    assert_eq!(last(results, json!([user("q"), assistant("a"), user(json!([image()]))])), 0);
    let flags = json!({"tool_output_parts": "all", "cache_breakpoints": "prompt_cache_breakpoint"});
    let up = json!({"url": "http://a", "protocol": "responses", "profile_overrides": flags});
    let text = json!({"upstreams": {"up": up}}).to_string();
    let config = Config::from_json(&text, |_| None).unwrap();
    let body = try_with(&config, &whole(all_cached(loop_of_tools, plain()))).0.unwrap().0;
    let output = body["input"].as_array().unwrap().last().unwrap();
    assert_eq!(output["output"][0]["prompt_cache_breakpoint"]["mode"], "explicit", "{body}");
}

#[test]
fn a_mark_of_the_whole_request_changes_no_mark_of_a_block_and_is_not_a_fifth() {
    let cached = |name: &str, mark: Value| marked(text(name), mark);
    let own = json!([user(json!([cached("a", hour())]))]);
    let body = sent_to("default", anthropic(), all_cached(own, plain()));
    assert_eq!(body["messages"][0]["content"], json!([cached("a", hour())]));
    let names = ["a", "b", "c", "d"];
    let mut parts: Vec<Value> = names.iter().map(|name| cached(name, hour())).collect();
    parts.push(text("e"));
    let body = sent_to("default", anthropic(), all_cached(json!([user(json!(parts))]), plain()));
    let content = &body["messages"][0]["content"];
    assert_eq!((&content[0], &content[4]), (&text("a"), &cached("e", plain())));
    assert_eq!(content.to_string().matches("cache_control").count(), 4);
}

#[test]
fn what_nobody_wants_cached_gets_no_breakpoint() {
    let history = json!([user(json!([result("toolu_9", "r"), text("b")]))]);
    assert_eq!(messages_to(openai(), history.clone()), messages(history));
}

#[test]
fn a_mark_on_a_result_goes_up_where_results_can_be_parts() {
    let mark = json!({"type": "ephemeral"});
    let marked = |content: Value| {
        let mut result = result("toolu_1", content);
        result["cache_control"] = mark.clone();
        json!([user("q"), assistant(json!([call("toolu_1")])), user(json!([result]))])
    };
    let with = |parts: &str| {
        let mut flags = openai();
        flags["tool_content_parts"] = parts.into();
        flags
    };
    let part =
        json!([{"type": "text", "text": "r", "prompt_cache_breakpoint": {"mode": "explicit"}}]);
    let in_text = json!([{"type": "text", "text": "r", "cache_control": mark}]);
    for content in [json!("r"), json!([text("r")]), in_text] {
        for parts in ["text", "images"] {
            let sent = messages_to(with(parts), marked(content.clone()));
            assert_eq!(sent[2]["content"], part, "{content}");
        }
        assert_eq!(messages_to(with("no"), marked(content))[2]["content"], "r");
    }
    // Nothing to mark.
    assert_eq!(messages_to(with("text"), marked(json!("")))[2]["content"], "");
}
