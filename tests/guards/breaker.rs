//! Calls that fail or are made over and over.

use super::*;

const NOTE: &str = "Tool 'shell' has failed schema validation 3 times consecutively. The required fields are: command, why. Do NOT call this tool again without providing all required fields.";

fn shell() -> Vec<Value> {
    vec![tool("shell", &["command", "why"]), tool("look", &[])]
}

fn sent(messages: &[Value], tools: &[Value], guards: Value) -> Turn {
    ask(&config(guards), &request(messages, tools), &|_| (200, says("ok")), false)
}

fn shells(count: usize) -> Vec<Value> {
    rounds(count, |_, id| (call(id, "shell", json!({})), failed(id, "no command")))
}

#[test]
fn from_the_third_failure_on_the_result_says_what_is_required() {
    let two = sent(&shells(2), &shell(), json!({}));
    assert!(!two.sent.to_string().contains("consecutively"));
    assert_eq!((two.header("x-creole-guard"), two.header("x-creole-warnings")), ("", ""));

    let three = sent(&shells(3), &shell(), json!({}));
    let told = format!("Error: no command\n{NOTE}");
    assert_eq!(three.tool_texts(), ["Error: no command", "Error: no command", told.as_str()]);
    assert_eq!(three.tools(), ["shell", "look"]);
    assert_eq!(three.header("x-creole-guard"), "breaker");
    assert_eq!(three.header("x-creole-warnings"), "tool_failing:shell");

    // The results before stay as the model saw them.
    let four = sent(&shells(4), &shell(), json!({}));
    assert_eq!(four.tool_texts()[2], told);
    assert!(four.tool_texts()[3].contains("failed schema validation 4 times consecutively."));
    let off = sent(&shells(9), &shell(), json!({"breaker": {"failures_max": 0}}));
    assert!(!off.sent.to_string().contains("consecutively"));
    assert_eq!((off.tools().len(), off.header("x-creole-guard")), (2, ""));
}

#[test]
fn a_tool_that_had_what_it_requires_is_told_of_nothing_that_it_lacks() {
    let fails = |inputs: [&'static str; 3]| {
        let whole = json!({"command": "npm test", "why": "to know"});
        let input = move |at: usize| if inputs[at] == "whole" { whole.clone() } else { json!({}) };
        let round = |at, id: &str| (call(id, "shell", input(at)), failed(id, "Exit code 1"));
        sent(&rounds(3, round), &shell(), json!({})).tool_texts()[2].to_owned()
    };
    let told = "Error: Exit code 1\nTool 'shell' has failed 3 times in a row. Use what the errors say, or do something else. Do NOT make this call again.";
    assert_eq!(fails(["whole"; 3]), told);
    // It is about the call whose result it stands in.
    assert_eq!(fails(["", "", "whole"]), told);
    assert_eq!(fails(["whole", "whole", ""]), format!("Error: Exit code 1\n{NOTE}"));
}

#[test]
fn a_result_that_says_so_already_is_told_nothing_more() {
    // As another Creole on the way sends it.
    let mut history = shells(3);
    let told =
        json!([{"type": "text", "text": "Error: no command"}, {"type": "text", "text": NOTE}]);
    history.last_mut().unwrap()["content"][0]["content"] = told;
    let sent = sent(&history, &shell(), json!({}));
    assert_eq!(sent.tool_texts()[2], format!("Error: no command\n{NOTE}"));
    assert_eq!(sent.header("x-creole-guard"), "breaker");
}

#[test]
fn failures_are_known_without_is_error() {
    // n8n: a JSON text, and the id of the call in its input.
    let n8n = |results: &'static str| {
        rounds(3, move |at, id| {
            let input = json!({"query": format!("q{at}"), "id": id});
            (call(id, "look", input), result(id, results))
        })
    };
    let schema = json!({"type": "object", "properties": {"query": {"type": "string"}},
        "additionalProperties": false, "required": ["query"]});
    let tools = [json!({"name": "look", "input_schema": schema})];
    let failing = |messages: &[Value]| {
        sent(messages, &tools, json!({})).header("x-creole-warnings").contains("tool_failing")
    };
    assert!(failing(&n8n(r#"[{"error":"No prompt specified"}]"#)));
    assert!(!failing(&n8n(r#"[{"output":"an error in the text"}]"#)));
    // The echo of the id does not make an input invalid.
    assert!(!failing(&n8n("not found")));
    let complaint = |input: Value| {
        rounds(3, move |_, id| {
            (call(id, "look", input.clone()), result(id, "You must specify a query"))
        })
    };
    assert!(failing(&complaint(json!({}))));
    assert!(!failing(&complaint(json!({"query": "x"}))));
    // The tool did its work with an input that does not fit.
    let worked = rounds(3, |at, id| (call(id, "look", json!({})), result(id, format!("row {at}"))));
    assert!(!failing(&worked));
    let used = rounds(3, |_, id| {
        let error = "<tool_use_error>InputValidationError: look</tool_use_error>";
        (call(id, "look", json!({"query": 1})), result(id, error))
    });
    assert!(failing(&used));
}

#[test]
fn a_tool_whose_failures_say_something_new_is_withheld_later() {
    let fails = |count, input: Value, says: fn(usize) -> String| {
        let messages =
            rounds(count, |at, id| (call(id, "shell", input.clone()), failed(id, &says(at))));
        sent(&messages, &shell(), json!({}))
    };
    let whole = json!({"command": "gh pr checks", "why": "to know"});
    let waits = |at: usize| format!("Exit code 8: pending {at}/20");
    // It is told as early.
    assert_eq!(fails(3, whole.clone(), waits).header("x-creole-guard"), "breaker");
    assert_eq!(fails(11, whole.clone(), waits).tools(), ["shell", "look"]);
    assert_eq!(fails(12, whole.clone(), waits).tools(), ["look"]);
    // What is new must not only be in the words about an input that lacks something.
    assert_eq!(fails(6, json!({}), waits).tools(), ["look"]);
    // Each new one gives one more try.
    let some = |at: usize| format!("Exit code {}", at.min(2));
    assert_eq!(fails(7, whole.clone(), some).tools(), ["shell", "look"]);
    assert_eq!(fails(8, whole, some).tools(), ["look"]);
}

#[test]
fn a_tool_that_fails_for_one_input_after_the_other_is_withheld_later() {
    let tries = |count, input: &dyn Fn(usize) -> Value, said: &'static str| {
        let round = |at, id: &str| (call(id, "shell", input(at)), failed(id, said));
        sent(&rounds(count, round), &shell(), json!({}))
    };
    let gone = "File does not exist.";
    let read = |at| json!({"command": format!("cat {at}.txt"), "why": "to know"});
    assert_eq!(tries(3, &read, gone).header("x-creole-warnings"), "tool_failing:shell");
    assert_eq!(tries(11, &read, gone).tools(), ["shell", "look"]);
    assert_eq!(tries(12, &read, gone).tools(), ["look"]);
    // Each new one gives one more try.
    let two = |at: usize| json!({"command": format!("cat {}.txt", at.min(1)), "why": ""});
    assert_eq!(tries(6, &two, gone).tools(), ["shell", "look"]);
    assert_eq!(tries(7, &two, gone).tools(), ["look"]);
    // Whatever else is in it, an input that lacks something is no step of a search.
    let lacking = |at| json!({"command": format!("cat {at}.txt")});
    assert_eq!(tries(6, &lacking, "why is missing").tools(), ["look"]);
}

#[test]
fn a_tool_that_works_is_not_taken_for_one_that_fails() {
    let expert = json!({"name": "ask_expert", "input_schema": {"type": "object",
        "properties": {"input": {"type": "string"}, "session": {"type": "string"}},
        "required": ["input"]}});
    let found = |input: Value, said: fn(usize) -> String| {
        let history =
            rounds(7, move |at, id| (call(id, "ask_expert", input.clone()), result(id, said(at))));
        sent(&history, std::slice::from_ref(&expert), json!({}))
    };
    // An optional parameter that is `null`, a number as a string, one too many.
    for input in [json!({"input": "q", "session": null}), json!({"input": 1, "more": 2})] {
        for said in [
            (|at| format!(r#"[{{"response":"Project {at}: on time, no risks"}}]"#))
                as fn(usize) -> _,
            |at| format!("Project {at} needs what is missing"),
        ] {
            let turn = found(input.clone(), said);
            assert_eq!((turn.header("x-creole-guard"), turn.tools().len()), ("", 1), "{input}");
        }
    }
    let runs = found(json!({"input": "q"}), |at| {
        format!(r#"{{"id":{at},"status":"failed","log":"test {at} timed out"}}"#)
    });
    assert_eq!((runs.header("x-creole-guard"), runs.tools().len()), ("", 1));
}

#[test]
fn any_other_success_and_any_word_of_a_person_resets() {
    let other = |name: &str, input: Value, content: &str| {
        let mut messages = shells(7);
        let id = "toolu_other";
        messages.extend([call(id, name, input), answered(result(id, content))]);
        messages.extend(shells(2).split_off(1));
        sent(&messages, &shell(), json!({}))
    };
    let reset = other("look", json!({}), "a.txt");
    assert_eq!((reset.header("x-creole-guard"), reset.tools().len()), ("", 2));
    // The words against it go with the counts.
    assert!(!reset.sent.to_string().contains("consecutively"), "{}", reset.sent);
    let same_tool = other("shell", json!({"command": "ls", "why": "x"}), "a.txt");
    assert_eq!(same_tool.header("x-creole-guard"), "");
    let failing = other("look", json!({}), "Error: no such place");
    assert_eq!(failing.header("x-creole-guard"), "breaker");

    let mut messages = shells(8);
    messages.push(user("I have fixed the shell. Again."));
    let person = sent(&messages, &shell(), json!({}));
    assert_eq!(person.header("x-creole-guard"), "");
    assert!(!person.sent.to_string().contains("consecutively"), "{}", person.sent);
    // Claude Code's reminders are no person.
    let mut messages = shells(3);
    let reminder = json!({"type": "text", "text": "<system-reminder>\nTodo\n</system-reminder>"});
    messages.last_mut().unwrap()["content"].as_array_mut().unwrap().push(reminder);
    assert_eq!(sent(&messages, &shell(), json!({})).header("x-creole-guard"), "breaker");
}

#[test]
fn a_person_who_says_no_is_no_tool_that_fails() {
    for says in [
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\nno, the other one",
        "The user doesn't want to take this action right now. STOP what you are doing and wait for the user to tell you how to proceed.",
        "The user wants to clarify these questions.\n    This means they may have additional information",
        "Permission for this tool use was denied. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). Try a different approach or report the limitation to complete your task.",
    ] {
        let round = |_, id: &str| (call(id, "shell", json!({})), failed(id, says));
        let turn = sent(&rounds(7, round), &shell(), json!({"tool_turns_max": 3}));
        assert_eq!((turn.header("x-creole-guard"), turn.tools().len()), ("", 2), "{says}");
        assert_eq!(turn.header("x-creole-tool-turn"), "0/3", "{says}");
        assert!(!turn.sent.to_string().contains("consecutively"), "{}", turn.sent);
        // What a tool found is no word of a person.
        let round = |_, id: &str| (call(id, "shell", json!({})), result(id, says));
        let turn = sent(&rounds(3, round), &shell(), json!({"tool_turns_max": 9}));
        assert_eq!(turn.header("x-creole-tool-turn"), "3/9", "{says}");
    }
    // Nobody was asked: these go on without a person.
    let denied = "Permission for this tool use was denied. It requires approval, and this session has no approval surface";
    let round = |_, id: &str| (call(id, "shell", json!({})), failed(id, denied));
    let turn = sent(&rounds(7, round), &shell(), json!({}));
    assert_eq!(turn.tools(), ["look"]);
}

#[test]
fn calls_that_are_made_at_once_count_once() {
    let mut messages = vec![user("Do it")];
    let ids: Vec<String> = (0..8).map(|at| format!("toolu_{at}")).collect();
    let blocks: Vec<Value> = ids.iter().map(|id| use_of(id, "shell", json!({}))).collect();
    let results: Vec<Value> = ids.iter().map(|id| failed(id, "no")).collect();
    messages.push(json!({"role": "assistant", "content": blocks}));
    messages.push(json!({"role": "user", "content": results}));
    let turn = sent(&messages, &shell(), json!({}));
    assert_eq!((turn.header("x-creole-guard"), turn.tools().len()), ("", 2));
}

#[test]
fn from_the_sixth_failure_on_the_tool_is_withheld() {
    let five = sent(&shells(5), &shell(), json!({}));
    assert_eq!(five.tools(), ["shell", "look"]);
    let six = sent(&shells(6), &shell(), json!({}));
    assert_eq!(six.tools(), ["look"]);
    assert_eq!(six.header("x-creole-warnings"), "tool_failing:shell,tool_withheld:shell");
    // Its calls in the history stay.
    assert_eq!(six.tool_texts().len(), 6);

    for choice in [json!({"type": "tool", "name": "shell"}), json!({"type": "any"})] {
        let mut body = request(&shells(6), &shell());
        body["tool_choice"] = choice.clone();
        let turn = ask(&config(json!({})), &body, &|_| (200, says("ok")), false);
        assert_eq!(turn.tools(), ["look"]);
        let expected = if choice["type"] == "any" { json!("required") } else { Value::Null };
        assert_eq!(turn.sent["tool_choice"], expected);
        // Without any tool there is nothing to choose.
        body["tools"] = json!([tool("shell", &["command"])]);
        let turn = ask(&config(json!({})), &body, &|_| (200, says("ok")), false);
        assert!(turn.sent.get("tools").is_none() && turn.sent.get("tool_choice").is_none());
    }
}

#[test]
fn the_breaker_can_also_ask_for_an_answer_or_refuse() {
    let answer = sent(&shells(6), &shell(), json!({"breaker": {"action": "answer"}}));
    assert!(answer.tools().is_empty() && answer.sent.get("tool_choice").is_none());
    let refuse = sent(&shells(6), &shell(), json!({"breaker": {"action": "error"}}));
    assert_eq!((refuse.head.status, refuse.asked), (400, 0));
    assert_eq!(refuse.body["error"]["type"], "invalid_request_error");
    assert_eq!(refuse.header("x-should-retry"), "false");
    assert_eq!(refuse.header("x-creole-guard"), "breaker");
    assert_eq!(
        refuse.message(),
        "Tool 'shell' failed 6 times in a row, and the circuit breaker of this gateway is open (guards.breaker). failure_class=deterministic"
    );
    let sooner = json!({"breaker": {"failures_max": 1, "withhold_after": 2}});
    assert_eq!(sent(&shells(2), &shell(), sooner).tools(), ["look"]);
}

#[test]
fn the_same_call_with_the_same_result_is_told_and_then_withheld() {
    let same = |count| {
        rounds(count, |at, id| {
            // Key order, white space and n8n's echo of the id make no difference.
            let input = if at % 2 == 0 {
                json!({"query": "x", "id": id, "n": [1]})
            } else {
                json!({"n": [1], "query": "x"})
            };
            (call(id, "look", input), result(id, "a.txt"))
        })
    };
    let three = sent(&same(3), &shell(), json!({}));
    assert_eq!(
        three.tool_texts()[2],
        "a.txt\nTool 'look' was already called 3 times with this input, and gave this result each time. Use the result, or do something else. Do NOT make this call again."
    );
    assert_eq!(three.header("x-creole-warnings"), "tool_repeating:look");
    assert_eq!(sent(&same(6), &shell(), json!({})).tools(), ["shell"]);

    let polling = rounds(9, |at, id| (call(id, "look", json!({})), result(id, format!("{at} %"))));
    assert_eq!(sent(&polling, &shell(), json!({})).header("x-creole-guard"), "");
    let other_input = rounds(9, |at, id| (call(id, "look", json!({"a": at})), result(id, "ok")));
    assert_eq!(sent(&other_input, &shell(), json!({})).header("x-creole-guard"), "");
}

#[test]
fn a_pair_of_calls_that_goes_round_in_one_turn_is_seen() {
    let mut messages = vec![user("Do it")];
    for at in 0..6 {
        let (a, b) = (format!("toolu_a{at}"), format!("toolu_b{at}"));
        messages.push(json!({"role": "assistant", "content":
            [use_of(&a, "look", json!({"q": 1})), use_of(&b, "look", json!({"q": 2}))]}));
        messages.push(json!({"role": "user", "content": [result(&b, "2"), result(&a, "1")]}));
    }
    let turn = sent(&messages, &shell(), json!({}));
    assert_eq!(turn.tools(), ["shell"]);
    assert!(turn.tool_texts()[11].starts_with("2\nTool 'look' was already called 6 times"));
}

#[test]
fn two_calls_that_go_round_in_turns_are_seen() {
    let turns = rounds(12, |at, id| match at % 2 {
        0 => (call(id, "look", json!({})), result(id, "a.txt")),
        _ => (call(id, "shell", json!({"command": "ls"})), result(id, "b.txt")),
    });
    let turn = sent(&turns, &shell(), json!({}));
    assert_eq!(turn.header("x-creole-guard"), "breaker");
    // The first result of the second call was new, so the first call counts from there.
    assert_eq!(turn.tools(), ["look"]);
}

#[test]
fn a_tool_that_does_not_exist_is_stopped_as_others_are() {
    let ghosts = |count| {
        let ghost = json!({"a": 1});
        rounds(count, |_, id| (call(id, "ghost", ghost.clone()), failed(id, "No such tool")))
    };
    let refuse = sent(&ghosts(6), &shell(), json!({"breaker": {"action": "error"}}));
    assert_eq!((refuse.head.status, refuse.header("x-should-retry")), (400, "false"));
    let answer = sent(&ghosts(6), &shell(), json!({"breaker": {"action": "answer"}}));
    assert!(answer.tools().is_empty());
    // A call of it does not reach the client, which would only say again that there is none.
    let imitates = |_: &Value| (200, calls("ghost", &json!({})));
    let turn = ask(&config(json!({})), &request(&ghosts(6), &shell()), &imitates, false);
    assert_eq!((turn.tools().len(), &turn.body["stop_reason"]), (2, &json!("end_turn")));
    let warnings = turn.header("x-creole-warnings");
    assert!(warnings.contains("tool_withheld:ghost,withheld_tool_called"), "{warnings}");
    let turn = ask(&config(json!({})), &request(&ghosts(5), &shell()), &imitates, false);
    assert_eq!(turn.body["stop_reason"], "tool_use");
}

#[test]
fn a_model_that_goes_on_about_a_tool_that_does_not_exist_must_answer() {
    // As opencode writes it: the model called `shell`, with an input that is no JSON.
    let invalid = |count| {
        rounds(count, |_, id| {
            let input = json!({"tool": "shell", "error": "Invalid input for tool shell"});
            (
                call(id, "invalid", input),
                result(id, "The arguments provided to the tool are invalid"),
            )
        })
    };
    assert_eq!(sent(&invalid(11), &shell(), json!({})).tools(), ["shell", "look"]);
    let turn = sent(&invalid(12), &shell(), json!({}));
    assert!(turn.tools().is_empty());
    assert_eq!(turn.header("x-creole-guard"), "breaker");
}

#[test]
fn a_tool_that_does_not_exist_is_stopped_whatever_its_name_is() {
    for name in ["my.tool", "Bash tool", "shell()", "\u{e9}", &"x".repeat(70)] {
        let ghosts = rounds(6, |_, id| (call(id, name, json!({})), failed(id, "No such tool")));
        let imitates = |_: &Value| (200, calls(name, &json!({})));
        let turn = ask(&config(json!({})), &request(&ghosts, &shell()), &imitates, false);
        assert_eq!(turn.body["stop_reason"], "end_turn", "{name}");
        // And by the name that it has in the history, where the upstream takes no such names.
        let sent_as = sent(&ghosts, &shell(), json!({}));
        let sent_as = sent_as.sent["messages"][1]["tool_calls"][0]["function"]["name"].clone();
        let again = |_: &Value| (200, calls(sent_as.as_str().unwrap(), &json!({})));
        let turn = ask(&config(json!({})), &request(&ghosts, &shell()), &again, false);
        assert_eq!(turn.body["stop_reason"], "end_turn", "{name}");
    }
}

#[test]
fn a_withheld_tool_that_the_model_calls_all_the_same_does_not_reach_the_client() {
    let imitates = |_: &Value| (200, calls("shell", &json!({})));
    let turn = ask(&config(json!({})), &request(&shells(6), &shell()), &imitates, false);
    assert_eq!(turn.body["stop_reason"], "end_turn");
    assert_eq!(turn.body["content"].as_array().unwrap().len(), 1);
    assert_eq!(turn.body["content"][0]["type"], "text");
    assert!(turn.header("x-creole-warnings").contains("withheld_tool_called"));
    // What it thought is not all that the client gets.
    let thinks = |_: &Value| {
        let mut answer = calls("shell", &json!({}));
        answer["choices"][0]["message"]["reasoning_content"] = json!("I think");
        (200, answer)
    };
    let turn = ask(&config(json!({})), &request(&shells(6), &shell()), &thinks, false);
    let last = turn.body["content"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (last["type"].as_str(), &turn.body["stop_reason"]),
        (Some("text"), &json!("end_turn"))
    );
    let other = |_: &Value| (200, calls("look", &json!({})));
    let turn = ask(&config(json!({})), &request(&shells(6), &shell()), &other, false);
    assert_eq!(turn.body["stop_reason"], "tool_use");
}

#[test]
fn names_and_fields_of_any_kind_are_told_as_they_are() {
    let name = "werk\"zeug\u{e9}";
    let messages = rounds(3, |_, id| (call(id, name, json!({})), failed(id, "no")));
    let schema = json!({"type": "object", "properties": {}, "required": ["a\"b", "c\\d"]});
    let turn = sent(&messages, &[json!({"name": name, "input_schema": schema})], json!({}));
    let told = turn.tool_texts()[2];
    assert!(
        told.contains("Tool 'werk\"zeug\u{e9}' has failed schema validation 3 times"),
        "{told}"
    );
    assert!(told.contains("The required fields are: a\"b, c\\d."), "{told}");
    // A tool that is not in the request any more.
    let gone = sent(&messages, &[], json!({}));
    assert!(gone.tool_texts()[2].contains("' has failed 3 times in a row"));
}

#[test]
fn an_agent_that_repeats_an_invalid_call_comes_to_an_end() {
    let run = |_: &Value| ("Error: missing required field command".to_owned(), true);
    let model = strict(stubborn("shell", json!({})));
    let turns = agent(&off(), &shell(), &model, &run, 40);
    assert_eq!(turns.len(), 40);
    let turns = agent(&config(json!({})), &shell(), &model, &run, 40);
    assert_eq!(turns.len(), 7);
    assert_eq!(turns[6].body["stop_reason"], "end_turn");
}
