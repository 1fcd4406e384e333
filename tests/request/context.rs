//! `context_management`: old results and old thinking that the client asks to have cleared.

use super::thinking::signature;
use super::*;
use creole::carry::signature::SignatureField;
use creole::model::context_management::Cleared;

const CLEARED: &str = "[This old tool result was cleared to save space.]";

/// A result of about 100 tokens.
fn long(what: &str) -> String {
    format!("{what} {}", "word ".repeat(100).trim_end())
}

/// A conversation with so many tool uses, each in a turn of its own, and the edits.
fn uses(count: usize, edits: Value) -> Value {
    let mut messages = vec![user("q")];
    for at in 0..count {
        let id = format!("toolu_{at}");
        let input = json!({"path": format!("file {at}")});
        messages.push(assistant(json!([
            {"type": "tool_use", "id": id, "name": if at % 2 == 0 { "read" } else { "write" }, "input": input},
        ])));
        messages.push(user(json!([result(&id, long(&format!("r{at}")))])));
    }
    json!({"messages": messages, "context_management": {"edits": edits}})
}

fn clear(members: Value) -> Value {
    let mut edit = json!({"type": "clear_tool_uses_20250919"});
    edit.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    json!([edit])
}

fn of_uses(most: u64) -> Value {
    json!({"type": "tool_uses", "value": most})
}

fn of_tokens(most: u64) -> Value {
    json!({"type": "input_tokens", "value": most})
}

/// Returns the body that goes upstream, and what was cleared of it.
fn edited(profile: &str, request: &Value) -> (Value, Option<Cleared>) {
    let config = config(profile, json!({}), json!({}));
    let (sent, warnings) = try_with(&config, &whole(request.clone()));
    assert_eq!(warnings, "");
    let (body, context) = sent.unwrap();
    (body, context.cleared)
}

/// Returns the indices of the results that are cleared in a Chat request.
fn cleared_in(body: &Value) -> Vec<usize> {
    let results = body["messages"].as_array().unwrap().iter().filter(|it| it["role"] == "tool");
    let is_cleared = |(at, it): (usize, &Value)| (it["content"] == CLEARED).then_some(at);
    results.enumerate().filter_map(is_cleared).collect()
}

fn cleared(count: usize, edit: Value) -> Vec<usize> {
    let (body, told) = edited("default", &uses(count, clear(edit)));
    let found = cleared_in(&body);
    assert_eq!(told.unwrap().tool_uses, found.len() as u64);
    found
}

#[test]
fn the_oldest_results_are_cleared_when_there_are_more_than_the_trigger_says() {
    assert!(cleared(5, json!({"trigger": of_uses(5)})).is_empty());
    assert_eq!(cleared(6, json!({"trigger": of_uses(5)})), [0, 1, 2]);
    assert_eq!(cleared(6, json!({"trigger": of_uses(5), "keep": of_uses(4)})), [0, 1]);
    assert!(cleared(6, json!({"trigger": of_uses(5), "keep": of_uses(9)})).is_empty());
    assert!(cleared(6, json!({"trigger": of_tokens(9999)})).is_empty());
    assert_eq!(cleared(6, json!({"trigger": of_tokens(650)})), [0, 1, 2]);
    // 100,000 tokens, where the edit does not say.
    assert!(cleared(6, json!({})).is_empty());
    let all = cleared(1000, json!({})).len();
    assert!((800..900).contains(&all), "{all}");
}

#[test]
fn a_result_that_the_model_has_not_seen_is_never_cleared() {
    let mut request = uses(6, clear(json!({"trigger": of_uses(1), "keep": of_uses(0)})));
    assert_eq!(cleared_in(&edited("default", &request).0), [0, 1, 2, 3, 4]);
    // Two results of one answer.
    let messages = request["messages"].as_array_mut().unwrap();
    messages.push(assistant(json!([call("toolu_a"), call("toolu_b")])));
    messages.push(user(json!([result("toolu_a", "a"), result("toolu_b", "b")])));
    assert_eq!(cleared_in(&edited("default", &request).0), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn excluded_tools_and_inputs_stay_as_the_edit_says() {
    let trigger = || of_uses(2);
    let excluded = json!({"trigger": trigger(), "keep": of_uses(1), "exclude_tools": ["read"]});
    assert_eq!(cleared(8, excluded), [1, 3]);
    let inputs = |which: Value| {
        let edit = json!({"trigger": of_uses(5), "clear_tool_inputs": which});
        let (body, told) = edited("default", &uses(6, clear(edit)));
        let is_call = |it: &&Value| it["tool_calls"].is_array();
        let calls = body["messages"].as_array().unwrap().iter().filter(is_call);
        let input = |it: &Value| it["tool_calls"][0]["function"]["arguments"] == "{}";
        (calls.map(input).collect::<Vec<_>>(), told.unwrap().tool_tokens)
    };
    let (none, less) = inputs(json!(false));
    assert_eq!(none, [false; 6]);
    let (all, more) = inputs(json!(true));
    assert_eq!(all, [true, true, true, false, false, false]);
    assert!(more > less, "{more} {less}");
    assert_eq!(inputs(json!(["read"])).0, [true, false, true, false, false, false]);
}

#[test]
fn what_is_cleared_grows_by_steps_and_else_a_request_goes_on_from_the_one_before() {
    let by_threes = vec![6, 9, 12, 15, 18, 21, 24];
    for (edit, steps) in [
        (json!({"trigger": of_uses(5)}), by_threes.clone()),
        // What stays of the uses that are cleared grows, too.
        (json!({"trigger": of_tokens(900)}), vec![8, 12, 15, 17, 19, 20, 21, 22, 23, 24]),
        // At least five results.
        (json!({"trigger": of_tokens(900), "clear_at_least": of_tokens(450)}), vec![8, 13, 18, 23]),
        (json!({"trigger": of_uses(5), "clear_tool_inputs": true}), by_threes),
    ] {
        for profile in ["default", "openrouter"] {
            let (mut before, mut found) = (Vec::new(), Vec::new());
            let mut cleared_at = Vec::new();
            for count in 0..=24 {
                let (body, _) = edited(profile, &uses(count, clear(edit.clone())));
                let now = cleared_in(&body);
                assert!(now.starts_with(&found), "{edit} {count}: {now:?} after {found:?}");
                let messages = body["messages"].as_array().unwrap().clone();
                if now == found {
                    assert!(messages.starts_with(&before), "{edit} {count}");
                } else {
                    cleared_at.push(count);
                }
                (before, found) = (messages, now);
            }
            assert_eq!(cleared_at, steps, "{edit}");
        }
    }
}

#[test]
fn nothing_is_cleared_that_is_not_worth_it() {
    let edit = |least: u64| json!({"trigger": of_uses(5), "clear_at_least": of_tokens(least)});
    assert_eq!(cleared(6, edit(200)), [0, 1, 2]);
    assert!(cleared(6, edit(400)).is_empty());
    // It waits until there is enough.
    assert!(cleared(7, edit(400)).is_empty());
    assert_eq!(cleared(8, edit(400)), [0, 1, 2, 3, 4]);
}

#[test]
fn guards_count_what_the_model_no_longer_sees() {
    let mut messages = vec![user("q")];
    for at in 0..6 {
        let id = format!("toolu_{at}");
        messages.push(assistant(json!([call(&id)])));
        let mut failed = result(&id, "no such file");
        failed["is_error"] = json!(true);
        messages.push(user(json!([failed])));
    }
    let edits = clear(json!({"trigger": of_uses(1), "keep": of_uses(1)}));
    let tools = json!([{"name": "w", "input_schema": {"type": "object"}}]);
    let plain = json!({"messages": messages, "tools": tools});
    let mut edited = plain.clone();
    edited["context_management"] = json!({"edits": edits});
    let config = config("default", json!({}), json!({}));
    let withheld =
        |request: &Value| try_with(&config, &whole(request.clone())).0.unwrap().1.withheld;
    assert_ne!(withheld(&plain), Withheld::Nothing);
    assert_eq!(withheld(&edited), withheld(&plain));
    let body = try_with(&config, &whole(edited)).0.unwrap().0;
    assert!(body.to_string().matches(CLEARED).count() > 3, "{body}");
}

#[test]
fn thinking_of_old_turns_is_cleared_and_that_of_a_loop_of_calls_is_one_turn() {
    let thought = |text: &str| {
        let signature = signature(SignatureField::ReasoningContent, text).encode().0;
        json!({"type": "thinking", "thinking": text, "signature": signature})
    };
    let messages = json!([
        user("q"),
        assistant(json!([thought("one"), text("a")])),
        user("r"),
        assistant(json!([thought("two"), call("toolu_1")])),
        user(json!([result("toolu_1", "ok")])),
        assistant(json!([thought("three"), text("b")])),
        user("s"),
        assistant(json!([text("c")])),
        user("t"),
    ]);
    let sent = |keep: Value| {
        let edits = json!([{"type": "clear_thinking_20251015", "keep": keep}]);
        let request = json!({"messages": messages, "context_management": {"edits": edits}});
        let (body, told) = edited("deepseek", &request);
        let body = body["messages"].to_string();
        (["one", "two", "three"].map(|it| body.contains(it)), told)
    };
    let turns = |count: u64| json!({"type": "thinking_turns", "value": count});
    let (kept, told) = sent(turns(1));
    assert_eq!(kept, [false, true, true]);
    let told = told.unwrap();
    assert_eq!((told.thinking_turns, told.thinking_tokens, told.tool_uses), (1, 1, 0));
    assert_eq!(sent(turns(2)).0, [true; 3]);
    assert_eq!(sent(turns(2)).1, Some(Cleared::default()));
    for all in [json!("all"), json!({"type": "all"}), json!(null)] {
        assert_eq!(sent(all), ([true; 3], None));
    }
    // Where none is sent, none is cleared.
    let edits = json!([{"type": "clear_thinking_20251015", "keep": turns(1)}]);
    let request = json!({"messages": messages, "context_management": {"edits": edits}});
    let never = config("deepseek", json!({"reasoning_history": "never"}), json!({}));
    let context = try_with(&never, &whole(request)).0.unwrap().1;
    assert_eq!(context.cleared, Some(Cleared::default()));
}

#[test]
fn results_of_tools_that_ran_at_a_server_are_cleared_but_what_a_search_of_tools_found() {
    let found =
        |kind: &str, content: Value| json!({"type": kind, "tool_use_id": "s", "content": content});
    let ran = |name: &str| json!({"type": "server_tool_use", "id": "s", "name": name, "input": {}});
    let page = json!([{"type": "web_search_result", "title": "Rain", "url": "https://u"}]);
    let tools = json!({"type": "tool_search_tool_search_result", "tool_references": [
        {"type": "tool_reference", "tool_name": "w"}]});
    let messages = json!([
        user("q"),
        assistant(json!([ran("web_search"), found("web_search_tool_result", page), text("a")])),
        user("r"),
        assistant(json!([
            ran("tool_search_tool_bm25"),
            found("tool_search_tool_result", tools),
            text("b")
        ])),
        user("s"),
        assistant("c"),
        user("t"),
    ]);
    let edits = clear(json!({"trigger": of_uses(1), "keep": of_uses(0)}));
    let offered = json!([{"name": "w", "defer_loading": true, "input_schema": {"type": "object"}}]);
    let management = json!({"edits": edits});
    let request = json!({"messages": messages, "tools": offered, "context_management": management});
    let (body, told) = edited("default", &request);
    assert_eq!(body["tools"][0]["function"]["name"], "w");
    let sent = body["messages"].to_string();
    assert!(
        sent.contains(CLEARED) && !sent.contains("Rain") && sent.contains("Tool loaded: w"),
        "{sent}"
    );
    assert_eq!(told.unwrap().tool_uses, 1);
}

#[test]
fn edits_that_cannot_be_read_or_made_are_refused_with_their_place() {
    let compaction = json!([{"type": "clear_thinking_20251015"}, {"type": "compact_20260112"}]);
    for (edits, message) in [
        (
            compaction,
            "context_management.edits[1]: compact_20260112 is not supported by this gateway",
        ),
        (
            clear(json!({"trigger": {"type": "messages", "value": 1}})),
            "context_management.edits[0].trigger: Input tag 'messages' found using 'type' does not \
             match any of the expected tags: 'input_tokens', 'tool_uses'",
        ),
        (
            clear(json!({"trigger": of_tokens(0)})),
            "context_management.edits[0].trigger.value: Input should be greater than or equal to 1",
        ),
        (
            clear(json!({"keep": {"type": "tool_uses"}})),
            "context_management.edits[0].keep.value: Field required",
        ),
        (
            json!([{"type": "clear_thinking_20251015", "keep": "some"}]),
            "context_management.edits[0].keep: Input should be 'all'",
        ),
    ] {
        assert_eq!(refused(json!({"context_management": {"edits": edits}})), message);
    }
    let late = json!([{"type": "clear_tool_uses_20250919"}, {"type": "clear_thinking_20251015"}]);
    let late = json!({"context_management": {"edits": late}});
    assert_eq!(warned(late.clone()), "");
    assert!(
        refused_strictly(late)
            .ends_with("must be the first strategy in `context_management.edits` when provided")
    );
    let unknown = json!({"context_management": {"edits": [{"type": "clear_all_20991231"}]}});
    assert_eq!(
        refused_strictly(unknown),
        "context_management: this is not supported by this gateway"
    );
}

#[test]
fn what_is_cleared_is_not_counted_and_a_count_tells_both_numbers() {
    let edits = clear(json!({"trigger": of_uses(5)}));
    let edited = whole(uses(6, edits));
    let plain = whole(uses(6, json!([])));
    let config = config("default", json!({}), json!({}));
    let counted = translate::count_tokens(&edited, &config).unwrap();
    let before = translate::count_tokens(&plain, &config).unwrap();
    // Each part is rounded by itself.
    let is_near = |one: u64, other: u64| one.abs_diff(other) <= 3;
    assert!(is_near(counted.original.unwrap(), before.input), "{counted:?} {before:?}");
    assert_eq!(before.original, None);
    let saved = counted.original.unwrap() - counted.input;
    assert!((270..330).contains(&saved), "{saved}");
    let started = |body: &str| try_with(&config, body).0.unwrap().1;
    let (with, without) = (started(&edited), started(&plain));
    assert_eq!(without.input_tokens - with.input_tokens, saved);
    assert_eq!(with.cleared.unwrap().tool_tokens, saved);
}
