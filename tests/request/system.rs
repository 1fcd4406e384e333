//! The system prompt, and system messages in the middle.

use super::*;

#[test]
fn system_blocks_are_joined_with_a_blank_line() {
    let system = json!([
        text("x-anthropic-billing-header: cc_version=2; cch=1;"),
        {"type": "text", "text": "A", "cache_control": {"type": "ephemeral"}},
        text(""),
        text("B"),
    ]);
    let request = json!({"system": system});
    assert_eq!(sent(request.clone())["messages"][0]["content"], "A\n\nB");
    let kept = sent_to("default", json!({"strip_billing_header": false}), request.clone());
    assert!(kept["messages"][0]["content"].as_str().unwrap().starts_with("x-anthropic"));
    let parts = sent_to("default", json!({"cache_breakpoints": true}), request.clone());
    assert_eq!(
        parts["messages"][0]["content"],
        json!([
            {"type": "text", "text": "A", "prompt_cache_breakpoint": {"mode": "explicit"}},
            text("B"),
        ])
    );
    let developer = sent_to("default", json!({"system_role": "developer"}), request.clone());
    assert_eq!(developer["messages"][0]["role"], "developer");
    let as_user = sent_to("default", json!({"system_role": "user"}), request);
    assert_eq!(as_user["messages"], json!([user("A\n\nB\n\nq")]));
    assert_eq!(sent(json!({"system": [text("")]}))["messages"], json!([user("q")]));
}

#[test]
fn a_billing_line_goes_without_what_stands_below_it() {
    let line = "x-anthropic-billing-header: cc_version=2.1; cch=1;";
    let sent = |system: Value| sent(json!({"system": system}))["messages"].take();
    let system = |text: &str| json!({"role": "system", "content": text});
    let below = format!("{line}\nYou are \"Claude\" Code.\nLong rules.");
    let expected = json!([system("You are \"Claude\" Code.\nLong rules."), user("q")]);
    assert_eq!(sent(json!(below)), expected);
    assert_eq!(sent(json!([text(&below)])), expected);
    assert_eq!(sent(json!(line)), json!([user("q")]));
    assert_eq!(sent(json!([text(line), text("A")])), json!([system("A"), user("q")]));
}

#[test]
fn system_messages_in_the_middle_have_the_role_of_the_system_prompt() {
    let history = json!([user("x"), {"role": "system", "content": "B"}, assistant("y"), user("z")]);
    let roles = |role: &str| {
        let flags = json!({"mid_system": "in_place", "system_role": role});
        let sent = sent_to("default", flags, json!({"system": "A", "messages": history}));
        let roles = sent["messages"].as_array().unwrap().iter();
        roles.map(|message| message["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(roles("system"), ["system", "user", "system", "assistant", "user"]);
    assert_eq!(roles("developer"), ["developer", "user", "developer", "assistant", "user"]);
    assert_eq!(roles("user"), ["user", "assistant", "user"]);
}

#[test]
fn a_system_message_in_the_middle_goes_where_the_upstream_can_take_it() {
    let history = json!([user("x"), {"role": "system", "content": "B"}, user("y")]);
    let request = json!({"system": "A", "messages": history});
    let to =
        |mode| sent_to("default", json!({"mid_system": mode}), request.clone())["messages"].take();
    let system = |text: &str| json!({"role": "system", "content": text});
    assert_eq!(to("in_place"), json!([system("A"), user("x"), system("B"), user("y")]));
    assert_eq!(to("merge_to_top"), json!([system("A\n\nB"), user(json!([text("x"), text("y")]))]));
    assert_eq!(
        to("as_user"),
        json!([
            system("A"),
            user(json!([text("x"), text("<system-message>\nB\n</system-message>"), text("y")])),
        ])
    );
}

#[test]
fn a_system_message_never_stands_between_a_call_and_its_result() {
    let history = json!([
        user("x"),
        assistant(json!([call("toolu_1")])),
        {"role": "system", "content": [text("B"), text("C")]},
        user(json!([result("toolu_1", "r"), text("y")])),
    ]);
    let system = json!({"role": "system", "content": "B\n\nC"});
    assert_eq!(
        messages_to(json!({"mid_system": "in_place"}), history.clone()),
        json!([user("x"), calling(&["call_1"]), tool("call_1", "r"), user("y"), system])
    );
    assert_eq!(
        messages(history),
        json!([
            user("x"),
            calling(&["call_1"]),
            tool("call_1", "r"),
            user(json!([text("<system-message>\nB\n\nC\n</system-message>"), text("y")])),
        ])
    );
}

#[test]
fn a_system_message_for_one_turn_goes_when_the_user_speaks_again() {
    let note = json!({"role": "system", "content": "B", "clear_at": "next_user_message"});
    assert_eq!(
        messages(json!([user("x"), note, assistant("a"), user("y")])),
        json!([user("x"), assistant("a"), user("y")])
    );
    let shown = messages(json!([user("x"), note]));
    assert!(shown.to_string().contains("system-message"));
}

#[test]
fn the_last_system_message_decides_the_effort() {
    let request = json!({
        "output_config": {"effort": "low"},
        "messages": [user("x"), {"role": "system", "output_config": {"effort": "high"}}],
    });
    assert_eq!(sent_to("vllm", json!({}), request)["reasoning_effort"], "high");
}
