//! Requests that go up to an upstream that speaks Messages itself.

use creole::Header;
use creole::carry::signature::{Signature, SignatureField};
use serde_json::{Value, json};

use super::*;

fn header<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn body_of(messages: &Value) -> String {
    json!({"model": "claude", "max_tokens": 9, "messages": messages}).to_string()
}

/// The messages that go up for these.
#[track_caller]
fn repaired(messages: &Value) -> Value {
    let request = sent(&config(), &body_of(messages));
    serde_json::from_slice::<Value>(&request.body).unwrap()["messages"].clone()
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "w", "input": {"n": 1}})
}

fn result(id: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": "ok", "cache_control": {"type": "ephemeral"}})
}

#[test]
fn a_valid_request_goes_up_byte_for_byte() {
    let body = r#" { "messages" : [ {"role":"user","content":"caf\u00e9 \/ 1.10"} ,
        {"content":[{"type":"thinking","thinking":"hm","signature":"EqQBCgIYAhIk"},
          {"type":"text","text":"x","vendor":{"n":1E5}},
          {"id":"functions.w:0","type":"tool_use","name":"w","input":{"b":1,"a":12345678901234567890123}}],"role":"assistant","vendor":1},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"functions.w:0","content":[{"type":"newer"}]},{"type":"newer","x":[]}]}],
        "model":"claude", "max_tokens": 9, "newer_field":{"x":null}, "context_management":{"edits":[{"type":"y"}]},
        "container":{"id":"c"}, "mcp_servers":[{"url":"u"}], "system":[{"type":"newer"}] }
"#;
    assert_eq!(String::from_utf8(sent(&config(), body).body).unwrap(), body);
    let mapped = sent(&config_with(Some("kimi\"k2"), ""), body);
    let expected = body.replace(r#""model":"claude""#, r#""model":"kimi\"k2""#);
    assert_eq!(String::from_utf8(mapped.body).unwrap(), expected);
    assert_eq!(mapped.path, "/anthropic/v1/messages");
    // What is no history is for the upstream to refuse.
    for body in [
        r#"{"model":"m","messages":"x"}"#,
        r#"{"model":"m"}"#,
        r#"{"model":"m","messages":[{"role":"robot"}]}"#,
        r#"{"model":"m","messages":[{"role":"user","content":[7]}]}"#,
    ] {
        assert_eq!(String::from_utf8(sent(&config(), body).body).unwrap(), body);
    }
}

#[test]
fn headers_are_those_of_the_api() {
    let config = config();
    let body = body_of(&json!([{"role": "user", "content": "x"}]));
    let extra = [("anthropic-beta", "a-1,b-2"), ("cookie", "c"), ("x-stainless-os", "x")];
    let Ok((_, request)) = drive::request(&config, "/v1/messages", &extra, body.as_bytes()) else {
        panic!("it is refused")
    };
    assert_eq!(header(&request.headers, "x-api-key"), Some("sk-test"));
    assert_eq!(header(&request.headers, "authorization"), None);
    assert_eq!(header(&request.headers, "anthropic-version"), Some("2023-06-01"));
    assert_eq!(header(&request.headers, "anthropic-beta"), Some("a-1,b-2"));
    assert_eq!(header(&request.headers, "accept-encoding"), Some("identity"));
    assert_eq!(header(&request.headers, "cookie"), None);
    let own = r#"{"upstreams":{"u":{"url":"https://u.test","protocol":"anthropic","key":{"secret":"k"}}}}"#;
    for (secret, key, token) in [("k", Some("k"), None), ("Bearer t", None, Some("Bearer t"))] {
        let config = Config::from_json(own, |_| Some(secret.to_owned())).unwrap();
        let request = sent(&Arc::new(config), &body);
        assert_eq!(header(&request.headers, "x-api-key"), key);
        assert_eq!(header(&request.headers, "authorization"), token);
        assert_eq!(request.path, "/v1/messages");
    }
}

#[test]
fn the_workspace_and_the_profile_go_with_the_key_that_they_belong_to() {
    let body = body_of(&json!([{"role": "user", "content": "x"}]));
    let extra = [("anthropic-workspace-id", "wrkspc_1"), ("anthropic-user-profile-id", "uprof_1")];
    let own = r#"{"upstreams":{"u":{"url":"https://u.test","protocol":"anthropic","key":{"secret":"k"}}}}"#;
    for (config, goes) in [(config(), true), (drive::config(own), false)] {
        let Ok((_, request)) = drive::request(&config, "/v1/messages", &extra, body.as_bytes())
        else {
            panic!("it is refused")
        };
        for (name, value) in extra {
            assert_eq!(header(&request.headers, name), goes.then_some(value), "{name}");
        }
    }
}

#[test]
fn where_a_late_result_came_the_user_still_has_the_last_word() {
    let mut history = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [call("a.1")]},
        {"role": "user", "content": "stop"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": [result("a.1")]},
    ]);
    let up = repaired(&history);
    assert_eq!(up[2]["content"][0], result("a.1"));
    let up = up.as_array().unwrap();
    let text = "[The result of an earlier tool call has come. It stands with its call.]";
    let moved = json!({"role": "user", "content": [{"type": "text", "text": text}]});
    assert_eq!(up.last(), Some(&moved));
    // And has it there for good: else the upstream's cache were lost, and two answers one.
    let more =
        [json!({"role": "assistant", "content": "so"}), json!({"role": "user", "content": "x"})];
    history.as_array_mut().unwrap().extend(more.clone());
    let later = repaired(&history);
    let (before, after) = later.as_array().unwrap().split_at(up.len());
    assert_eq!((before, after), (&up[..], &more[..]));
}

#[test]
fn a_users_turn_without_a_word_still_stands_between_two_of_the_assistant() {
    for empty in [json!(""), json!([]), json!([{"type": "text", "text": ""}])] {
        let history = [
            json!({"role": "user", "content": "go"}),
            json!({"role": "assistant", "content": [call("a.1")]}),
            json!({"role": "user", "content": empty}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "again"}, call("b.2")]}),
            json!({"role": "user", "content": [result("b.2")]}),
        ];
        let before = repaired(&json!(history[..3]));
        let after = repaired(&json!(history));
        assert_eq!(after.as_array().unwrap()[..3], before.as_array().unwrap()[..]);
        assert_eq!(after[2]["content"][0]["tool_use_id"], "a.1");
        assert_eq!(after.as_array().unwrap()[3..], history[3..]);
    }
}

#[test]
fn calls_and_results_are_paired_and_keep_their_text() {
    let user = json!({"role": "user", "content": "go"});
    let calls = json!({"role": "assistant", "content": [call("a.1"), call("b.2")]});
    // A result that is missing, and a text before the other.
    let late = json!({"role": "user", "content": [{"type": "text", "text": "t"}, result("b.2")]});
    let up = repaired(&json!([user, calls, late]));
    assert_eq!(up[0], user);
    assert_eq!(up[1], calls);
    let content = &up[2]["content"];
    assert_eq!(content[0]["tool_use_id"], "a.1");
    assert_eq!(content[0]["is_error"], true);
    assert_eq!(content[1], result("b.2"));
    assert_eq!(content[2], json!({"type": "text", "text": "t"}));
    // That is told like every other repair.
    let one = json!({"role": "assistant", "content": [call("b.2")]});
    let body = body_of(&json!([user, one, late]));
    let config = config();
    let (exchange, _) = drive::request(&config, "/v1/messages", &[], body.as_bytes()).unwrap();
    let done = sse(&[start(), ending("end_turn"), end()]);
    let pieces = [done.as_bytes()];
    let headers = drive::headers(&[("content-type", "text/event-stream")]);
    let answer = drive::respond(exchange, 200, &headers, pieces, End::Complete);
    assert_eq!(header(&answer.head.headers, "x-creole-warnings"), Some("tool_result_moved"));
    // An orphan becomes words; what is not text stays.
    let image = json!({"type": "image", "source": {"type": "url", "url": "https://x.test/i.png"}});
    let orphan = json!({"type": "tool_result", "tool_use_id": "zz",
                        "content": [{"type": "text", "text": "A \"q\""}, image]});
    let up =
        repaired(&json!([{"role": "user", "content": [orphan, {"type": "text", "text": "go"}]}]));
    let content = &up[0]["content"];
    assert_eq!(content[0]["text"], "[Tool result without a call: A \"q\"]");
    assert_eq!(content[1], image);
    assert_eq!(content[2]["text"], "go");
    // No result at all, and the person goes on in a string.
    let up = repaired(&json!([user, calls, {"role": "user", "content": "more", "vendor": 1}]));
    assert_eq!(up[2]["content"].as_array().unwrap().len(), 3);
    assert_eq!(up[2]["content"][2], json!({"type": "text", "text": "more"}));
    assert_eq!(up[2]["vendor"], 1);
    // The same result twice, and a call at the end.
    let twice = json!({"role": "user", "content": [result("a.1"), result("b.2"), result("a.1")]});
    let up = repaired(&json!([user, calls, twice]));
    assert_eq!(up[2]["content"].as_array().unwrap().len(), 2);
    let up = repaired(&json!([user, calls]));
    assert_eq!(up[2]["content"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_right_beside_what_is_repaired_keeps_its_text() {
    let right = r#"{"role" : "user","content" : "1.10 \u00e9","vendor":{"x" : 1}}"#;
    let system = r#"{"role":"system","content":"now  this"}"#;
    let body = format!(
        r#"{{"model":"m","messages":[{right},{{"role":"assistant","content":[{}]}},{right},{system}]}}"#,
        call("a")
    );
    let up = String::from_utf8(sent(&config(), &body).body).unwrap();
    assert!(up.contains(&format!("[{right},")), "{up}");
    assert!(up.contains(system), "{up}");
    assert!(up.contains("Tool result is missing."), "{up}");
    // Ids that come again in a later turn are the upstream's own way.
    let again = format!(
        r#"{{"model":"m","messages":[{right},{0} , {1} ,{0},{1}]}}"#,
        format_args!(r#"{{"role":"assistant","content":[{}]}}"#, call("w:0")),
        format_args!(r#"{{"role":"user","content":[{}]}}"#, result("w:0")),
    );
    assert_eq!(String::from_utf8(sent(&config(), &again).body).unwrap(), again);
}

#[test]
fn a_history_is_repaired_beside_what_creole_cannot_read() {
    let image = json!({"type": "image", "source": {"type": "newer"}});
    let nameless = json!({"type": "tool_use", "id": "a", "input": 7});
    let odd = json!({"type": "tool_result", "tool_use_id": "a", "is_error": "no", "content": [7]});
    let history = json!([
        {"role": "user", "content": [image], "clear_at": 7},
        {"role": "assistant", "content": [nameless]},
        {"role": "user", "content": [odd]},
        {"role": "assistant", "content": [call("b")]},
    ]);
    let body = json!({"model": "m", "max_tokens": "many", "tools": {"a": 1}, "stream": "so",
        "messages": history});
    let request = sent(&config(), &body.to_string());
    let up = serde_json::from_slice::<Value>(&request.body).unwrap();
    let (messages, given) = (up["messages"].as_array().unwrap(), history.as_array().unwrap());
    assert_eq!(messages[..4], given[..]);
    assert_eq!(messages[4]["content"][0]["tool_use_id"], "b");
    assert_eq!((&up["tools"], messages.len()), (&body["tools"], 5));
}

#[test]
fn thinking_that_creole_signed_and_empty_texts_stay_here() {
    let own = Signature::of(SignatureField::Reasoning, 7).encode().0;
    let thinking =
        |signature: &str| json!({"type": "thinking", "thinking": "hm", "signature": signature});
    let say = |text: &str| json!({"type": "text", "text": text});
    let history = json!([
        {"role": "user", "content": [say(""), say("a")]},
        {"role": "assistant", "content": [thinking(&own), thinking("EqQB"), say("b")], "vendor": 1},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": [thinking(&own)]},
        {"role": "user", "content": "c"},
    ]);
    let body = body_of(&history);
    let Ok((exchange, _)) = drive::request(&config(), "/v1/messages", &[], body.as_bytes()) else {
        panic!("it is refused")
    };
    let codes = exchange.report().warnings.header();
    assert_eq!(codes.as_deref(), Some("empty_text,own_thinking"));
    assert_eq!(
        repaired(&history),
        json!([
            {"role": "user", "content": [say("a")]},
            {"role": "assistant", "content": [thinking("EqQB"), say("b")], "vendor": 1},
            {"role": "user", "content": "c"},
        ])
    );
    let prefill = json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": ""}]);
    assert_eq!(repaired(&prefill), prefill);
}

#[test]
fn guards_say_what_becomes_of_a_history_that_does_not_fit() {
    let broken =
        json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": [call("a")]}]);
    let body = body_of(&broken);
    let off = config_with(None, r#","guards":{"pairing":"off"}"#);
    assert_eq!(String::from_utf8(sent(&off, &body).body).unwrap(), body);
    let reject = config_with(None, r#","guards":{"pairing":"reject"}"#);
    let Err(answer) = drive::request(&reject, "/v1/messages", &[], body.as_bytes()) else {
        panic!("it is sent")
    };
    assert_eq!(answer.head.status, 400);
    let text = String::from_utf8(answer.body).unwrap();
    assert!(text.contains("`tool_use` ids were found without `tool_result` blocks"), "{text}");
    let Ok((exchange, _)) = drive::request(&config(), "/v1/messages", &[], body.as_bytes()) else {
        panic!("it is refused")
    };
    assert_eq!(exchange.report().warnings.guards(), ["pairing"]);
}

#[test]
fn a_result_in_a_thread_is_the_answer_to_a_call_that_the_server_keeps() {
    let thread = json!({"type": "continue", "previous_message_id": "msg_1"});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "42"});
    let mut body = json!({"model": "m", "max_tokens": 9, "thread": thread,
        "messages": [{"role": "user", "content": [result]}]});
    let settings = ["", r#","strict":true"#, r#","guards":{"pairing":"reject"}"#];
    for config in settings.map(|settings| config_with(None, settings)) {
        let text = body.to_string();
        assert_eq!(sent(&config, &text).body, text.as_bytes());
    }
    // Without a thread, the call is lost.
    body["thread"] = Value::Null;
    let found = String::from_utf8(sent(&config(), &body.to_string()).body).unwrap();
    assert!(found.contains("[Tool result without a call: 42]"), "{found}");
}
