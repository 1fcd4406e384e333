//! Neighbouring messages of one side.

use creole::carry::signature::{Signature, SignatureField};

use super::*;

fn signature(shown: &str) -> Signature {
    thinking::signature(SignatureField::Reasoning, shown)
}

fn signed(shown: &str, signature: &Signature) -> Value {
    json!({"type": "thinking", "thinking": shown, "signature": signature.encode().0})
}

fn thinking(shown: &str) -> Value {
    signed(shown, &signature(shown))
}

/// LangGraph's supervisor, when an agent hands back.
fn handed_back() -> Value {
    json!([
        user("q"),
        assistant("It is 55."),
        assistant(json!([text("Back."), call("toolu_1")])),
        user(json!([result("toolu_1", "r")])),
    ])
}

/// Returns an answer with these calls in n8n's form: each in a message of its own, all with the
/// same thinking.
fn one_by_one(thinking: &Value, ids: &[&str]) -> Vec<Value> {
    let mut history = vec![user("q")];
    for id in ids {
        history.push(assistant(json!([thinking, call(id)])));
        history.push(user(json!([result(id, "r")])));
    }
    history
}

#[test]
fn neighbours_of_one_side_are_one_message() {
    let history = json!([
        user("a"),
        user(json!([text("b"), text("")])),
        assistant("c"),
        assistant("d"),
        user("e")
    ]);
    assert_eq!(
        messages(history.clone()),
        json!([user(json!([text("a"), text("b")])), assistant("c\n\nd"), user("e")])
    );
    let alternating = messages_to(json!({"alternating_roles": true}), history);
    assert_eq!(alternating, json!([user("a\n\nb"), assistant("c\n\nd"), user("e")]));
}

#[test]
fn words_of_one_agent_do_not_go_into_the_message_with_another_ones_calls() {
    let history = handed_back();
    let calling =
        |said| json!({"role": "assistant", "content": said, "tool_calls": tool_calls(&["call_1"])});
    let result = tool("call_1", "r");
    assert_eq!(
        messages(history.clone()),
        json!([user("q"), assistant("It is 55."), calling("Back."), result])
    );
    let alternating = messages_to(json!({"alternating_roles": true}), history);
    assert_eq!(alternating, json!([user("q"), calling("It is 55.\n\nBack."), result]));
}

#[test]
fn what_follows_calls_without_their_results_is_one_message_with_them() {
    let both = json!([result("toolu_2", "two"), result("toolu_1", "one")]);
    let sent = messages(json!([
        user("q"),
        assistant("First."),
        assistant("Then."),
        assistant(json!([text("I look."), call("toolu_1")])),
        assistant(json!([text("And"), text(" there."), call("toolu_2")])),
        assistant("Wait."),
        user(both),
    ]));
    let calls = tool_calls(&["call_1", "call_2"]);
    let said = "I look.\n\nAnd there.\n\nWait.";
    assert_eq!(
        sent,
        json!([
            user("q"),
            assistant("First.\n\nThen."),
            {"role": "assistant", "content": said, "tool_calls": calls},
            tool("call_1", "one"),
            tool("call_2", "two"),
        ])
    );
    let silent = messages(json!([
        user("q"),
        assistant(json!([call("toolu_1")])),
        assistant(json!([call("toolu_2")])),
        user(json!([result("toolu_1", "one"), result("toolu_2", "two")])),
    ]));
    assert_eq!(silent[1], calling(&["call_1", "call_2"]));
}

#[test]
fn a_message_of_the_assistant_without_words_is_none_of_its_own() {
    let thinking = json!({"type": "thinking", "thinking": "t", "signature": "s"});
    for silent in
        [json!(""), json!("\n"), json!([]), json!([thinking]), json!([text(" "), thinking])]
    {
        let alone = |said: Value| {
            let sent = messages(said);
            assert_eq!(sent, json!([user("q"), assistant("a\n\nb"), user("r")]), "{silent}");
        };
        let [q, a, b, r] = [user("q"), assistant("a"), assistant("b"), user("r")];
        alone(json!([q, assistant(silent.clone()), a, b, r]));
        alone(json!([q, a, assistant(silent.clone()), b, r]));
        alone(json!([q, a, b, assistant(silent.clone()), r]));
        alone(json!([q, a, user(""), b, r]));
    }
}

#[test]
fn the_reasoning_of_two_messages_has_an_empty_line_between() {
    let history = json!([
        user("q"),
        assistant(json!([thinking("I"), thinking(" do."), text("a")])),
        assistant(json!([thinking("We \"do\"."), text("b")])),
        user("r"),
    ]);
    let said =
        |text, reasoning| json!({"role": "assistant", "content": text, "reasoning": reasoning});
    assert_eq!(
        messages(history),
        json!([user("q"), said("a\n\nb", "I do.\n\nWe \"do\"."), user("r")])
    );
    // That of one message has none.
    let second = json!([
        user("q"),
        assistant("A"),
        assistant(json!([thinking("I"), thinking(" do."), text("B")])),
        user("r"),
    ]);
    assert_eq!(messages(second)[1], said("A\n\nB", "I do."));
    // Reasoning alone belongs to the words behind it.
    let alone = json!([
        user("q"),
        assistant(json!([thinking("I")])),
        assistant(json!([thinking(" do."), text("a")])),
        user("r"),
    ]);
    assert_eq!(messages(alone)[1], said("a", "I do."));
}

#[test]
fn neighbours_at_the_end_are_continued_together() {
    let request = json!({"messages": [user("q"), assistant("a"), assistant("b")]});
    let overrides = json!({"strip_prefill_echo": true});
    let (body, asked) = try_with(&config("vllm", overrides, json!({})), &whole(request)).0.unwrap();
    assert_eq!(body["messages"], json!([user("q"), assistant("a\n\nb")]));
    assert_eq!(asked.prefill, "a\n\nb");
}

#[test]
fn a_text_that_is_continued_has_no_reasoning_in_it() {
    let inline = signed("T", &Signature { field: SignatureField::Inline, ..signature("T") });
    let said = assistant(json!([inline, text("a")]));
    let last = [user("q"), said.clone(), user("r"), said];
    let earlier = &last[..3];
    let content = |prefill: &str, history: &[Value]| {
        let request = json!({"messages": history});
        let sent = sent_to("vllm", json!({"prefill": prefill}), request);
        let messages = sent["messages"].as_array().unwrap().iter();
        let of_assistant = messages.filter(|it| it["role"] == "assistant");
        of_assistant.map(|it| it["content"].clone()).collect::<Vec<_>>()
    };
    let thought = "<think>T</think>\n\na";
    assert_eq!(content("continue", earlier), [thought]);
    assert_eq!(content("continue", &last), [thought, "a"]);
    assert_eq!(content("send", &last), [thought, thought]);
}

#[test]
fn the_user_begins_where_roles_alternate() {
    // n8n's memory keeps so many messages, whichever they are.
    let history = json!([
        assistant(json!([text("a"), call("toolu_1")])),
        user(json!([result("toolu_1", "r")])),
        assistant("b"),
        user("c"),
    ]);
    let of = |overrides: Value| {
        let request = json!({"messages": history.clone(), "system": "S"});
        let (result, warnings) =
            try_with(&config("default", overrides, json!({})), &whole(request));
        (result.unwrap().0["messages"].clone(), warnings)
    };
    let beginning = user("[The beginning of this conversation is missing.]");
    let (sent, warnings) = of(json!({"alternating_roles": true}));
    assert_eq!(sent[0], json!({"role": "system", "content": "S"}));
    assert_eq!((&sent[1], &sent[2]["content"]), (&beginning, &json!("a")));
    assert_eq!(warnings, "beginning_missing");
    let (sent, warnings) = of(json!({}));
    assert_eq!((&sent[1]["content"], &*warnings), (&json!("a"), ""));
    // The system prompt is a user's message already.
    let (sent, warnings) = of(json!({"alternating_roles": true, "system_role": "user"}));
    assert_eq!((&sent[0], &sent[1]["content"], &*warnings), (&user("S"), &json!("a"), ""));
}

/// Returns the messages sent, with this profile, of a conversation in which only the assistant and
/// its tools speak.
fn beginning(profile: &str, overrides: Value, history: Value) -> (Value, String) {
    let request = json!({"messages": history, "system": "S"});
    let (result, warnings) = try_with(&config(profile, overrides, json!({})), &whole(request));
    (result.unwrap().0["messages"].clone(), warnings)
}

#[test]
fn somebody_asks_where_only_the_assistant_speaks() {
    let loops = [
        json!([assistant(json!([call("toolu_1")])), user(json!([result("toolu_1", "r")]))]),
        json!([
            user(""),
            assistant(json!([call("toolu_1")])),
            user(json!([result("toolu_1", "r")]))
        ]),
    ];
    let asks = user("[The beginning of this conversation is missing.]");
    for profile in
        ["default", "openai-chat", "deepseek", "mistral", "vllm", "sglang", "llama.cpp", "ollama"]
    {
        for history in &loops {
            let (sent, warnings) = beginning(profile, json!({}), history.clone());
            let sent = sent.as_array().unwrap();
            let of = |role: &str| sent.iter().position(|it| it["role"] == role);
            assert!(of("user") < of("assistant"), "{profile}: {sent:?}");
            assert_eq!(sent[of("user").unwrap()], asks, "{profile}");
            assert!(warnings.contains("beginning_missing"), "{profile}: {warnings}");
        }
    }
    // Words of the client are no question: they stand with the result.
    let reminder = text("<system-reminder>\nx\n</system-reminder>");
    let told = user(json!([result("toolu_1", "r"), reminder]));
    let history = json!([assistant(json!([call("toolu_1")])), told]);
    let (sent, warnings) = beginning("vllm", json!({}), history);
    assert_eq!((&sent[1], &*warnings), (&asks, "beginning_missing"));
}

#[test]
fn nobody_is_put_before_a_conversation_in_which_the_user_speaks() {
    let image = json!({"type": "image", "source":
        {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
    let asked = assistant(json!([call("toolu_1")]));
    for (overrides, history) in [
        // In words, with an image of a result, as the system prompt, and with a result that nobody
        // asked for.
        (json!({}), json!([asked, user(json!([result("toolu_1", "r"), text("and?")]))])),
        (
            json!({}),
            json!([
                asked,
                user(json!([{"type": "tool_result", "tool_use_id": "toolu_1",
            "content": [image]}]))
            ]),
        ),
        (json!({"system_role": "user"}), json!([asked, user(json!([result("toolu_1", "r")]))])),
        (json!({}), json!([user(json!([result("toolu_0", "r")]))])),
        (json!({}), json!([user("q"), asked, user(json!([result("toolu_1", "r")]))])),
    ] {
        let (sent, warnings) = beginning("default", overrides, history);
        assert!(!warnings.contains("beginning_missing"), "{warnings}: {sent}");
        assert!(!sent.to_string().contains("The beginning"), "{sent}");
        assert!(sent.as_array().unwrap().iter().any(|it| it["role"] == "user"), "{sent}");
    }
    // What is merged into the result is no message of the user's, and neither is an image within
    // it.
    for (overrides, block) in [
        (json!({"text_after_tool_results": "merge_into_last_tool"}), text("and?")),
        (json!({"tool_content_parts": "images"}), json!(null)),
    ] {
        let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": [image]});
        let content = match &block {
            Value::Null => json!([result]),
            block => json!([super::result("toolu_1", "r"), block]),
        };
        let (sent, warnings) = beginning("default", overrides, json!([asked, user(content)]));
        assert!(warnings.contains("beginning_missing"), "{warnings}: {sent}");
        assert_eq!(sent[1]["role"], "user", "{sent}");
    }
}

#[test]
fn the_calls_of_one_answer_are_one_message_again() {
    let ids = ["toolu_1", "toolu_2", "toolu_3"];
    let full_text = Some("T".to_owned());
    let inputs = ids.map(|id| (id.to_owned(), format!("{{\"q\":\"{id}\"}}")));
    let own = Signature { full_text, call_inputs: inputs.to_vec(), ..signature("") };
    let mut history = one_by_one(&signed("", &own), &ids);
    history.push(assistant(json!([thinking("I"), call("toolu_4")])));
    history.push(user(json!([result("toolu_4", "s")])));
    for message in &mut history {
        // Of these n8n loses the inputs.
        if let Some(call) = message["content"].get_mut(1).filter(|it| it["id"] != "toolu_4") {
            call["input"] = json!({});
        }
    }
    let messages = messages(json!(history));
    let counts = |message: &Value| {
        let count = |key: &str| message[key].as_array().map_or(0, Vec::len);
        (message["role"].as_str().unwrap().to_owned(), count("tool_calls"))
    };
    let shapes: Vec<_> = messages.as_array().unwrap().iter().map(counts).collect();
    let of = |role: &str, calls| (role.to_owned(), calls);
    assert_eq!(
        shapes,
        [
            of("user", 0),
            of("assistant", 3),
            of("tool", 0),
            of("tool", 0),
            of("tool", 0),
            of("assistant", 1),
            of("tool", 0),
        ]
    );
    assert_eq!(messages[1]["reasoning"], "T");
    let input = |at: usize| messages[1]["tool_calls"][at]["function"]["arguments"].clone();
    assert_eq!((input(0), input(2)), (json!(inputs[0].1), json!(inputs[2].1)));
    assert_eq!(messages[4], tool("call_3", "r"));
    assert_eq!(messages[5]["reasoning"], "I");
}

#[test]
fn what_stands_between_the_calls_of_one_answer_keeps_its_place() {
    let ids = ["toolu_1", "toolu_2"];
    let named = |ids: &[&str]| {
        let call_inputs = ids.iter().map(|id| ((*id).to_owned(), "{}".to_owned())).collect();
        signed("T", &Signature { call_inputs, ..signature("T") })
    };
    let block = named(&ids);
    let of = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut history = one_by_one(&block, &ids);
        change(&mut history);
        let sent = messages(json!(history));
        let called = |it: &&Value| it.get("tool_calls").is_some();
        sent.as_array().unwrap().iter().filter(called).count()
    };
    assert_eq!(of(&|_| ()), 1);
    // The results come after both.
    assert_eq!(of(&|history| history.swap(2, 3)), 1);
    // Its last result is missing.
    assert_eq!(of(&|history| drop(history.pop())), 1);
    assert_eq!(of(&|history| history[2] = user(json!([result("toolu_1", "r"), text("b")]))), 2);
    assert_eq!(
        of(&|history| history[3] = assistant(json!([block, text("b"), call("toolu_2")]))),
        2
    );
    assert_eq!(of(&|history| history.insert(3, json!({"role": "system", "content": "b"}))), 2);
    let other = thinking("T");
    assert_eq!(of(&|history| history[3] = assistant(json!([other, call("toolu_2")]))), 2);
    // Of another answer, whose signature a client sends again.
    let first = named(&ids[..1]);
    let again = messages(json!(one_by_one(&first, &ids)));
    assert_eq!(again[3]["tool_calls"], tool_calls(&["call_2"]));
}

#[test]
fn thinking_stays_with_its_call_where_a_client_sends_it_before() {
    let signed_call = |calls: &[&str]| {
        let call_signatures = calls.iter().map(|id| ((*id).to_owned(), "S".to_owned())).collect();
        signed("T", &Signature { call_signatures, ..signature("T") })
    };
    let sent = |thinking: Value| {
        messages(json!([
            user("q"),
            assistant(json!([thinking, text("a")])),
            assistant(json!([call("toolu_1")])),
            user(json!([result("toolu_1", "r")])),
        ]))
    };
    let one = sent(signed_call(&["toolu_1"]));
    assert_eq!((one[1]["content"].clone(), one[1]["reasoning"].clone()), (json!("a"), json!("T")));
    assert_eq!(one[1]["tool_calls"][0]["id"], "call_1");
    assert_eq!(sent(signed_call(&["toolu_2"])).as_array().unwrap().len(), 4);
}

#[test]
fn gemini_gets_a_call_directly_after_the_users_words() {
    let sent = messages_to(json!({"tool_schema": "gemini"}), handed_back());
    assert_eq!(sent[1]["content"], "It is 55.\n\nBack.");
}

#[test]
fn different_thoughts_with_one_foreign_signature_are_all_told() {
    let foreign = |said| json!({"type": "thinking", "thinking": said, "signature": "sig"});
    let mut history = vec![user("q")];
    for (id, said) in [("toolu_1", "one"), ("toolu_2", "two")] {
        history.push(assistant(json!([foreign(said), call(id)])));
        history.push(user(json!([result(id, "r")])));
    }
    let sent = messages_to(json!({"foreign_thinking": "forward"}), json!(history));
    let told = |at: usize| sent[at]["reasoning_content"].clone();
    assert_eq!((told(1), told(3)), (json!("one"), json!("two")));
}

#[test]
fn a_thought_that_comes_again_with_another_call_is_told_once() {
    // It names no call: a model in a loop could have thought it twice.
    let block = thinking("T");
    let history = one_by_one(&block, &["toolu_1", "toolu_2", "toolu_3"]);
    let reasoning = |overrides: Value, history: &[Value]| {
        let sent = messages_to(overrides, json!(history));
        let said = sent.as_array().unwrap().iter().filter(|it| it["role"] == "assistant");
        said.map(|it| it.get("reasoning").or_else(|| it.get("reasoning_content")).cloned())
            .collect::<Vec<_>>()
    };
    let told = || Some(json!("T"));
    assert_eq!(reasoning(json!({}), &history), [told(), None, None]);
    let required = json!({"reasoning_history": "required"});
    let space = || Some(json!(" "));
    assert_eq!(reasoning(required, &history), [told(), space(), space()]);
    // After words of a person it is told again.
    let mut later = history.clone();
    later.insert(3, user("And?"));
    assert_eq!(reasoning(json!({}), &later), [told(), told(), None]);
    // Twice in one message, as it was streamed.
    let twice = [user("q"), assistant(json!([block, text("a"), block, call("toolu_1")]))];
    assert_eq!(reasoning(json!({}), &twice)[0], Some(json!("TT")));
}
