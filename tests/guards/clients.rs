//! Texts that clients write by themselves, and what a person says by way of them.

use super::*;

fn tools() -> [Value; 2] {
    [tool("Bash", &["command"]), tool("look", &[])]
}

fn sent(messages: &[Value]) -> Turn {
    let body = request(messages, &tools());
    ask(&config(json!({"tool_turns_max": 99})), &body, &|_| (200, says("ok")), false)
}

/// Returns one call with one result, `count` times; `beside` gives the text beside each result.
fn same(count: usize, said: &str, beside: &dyn Fn(usize) -> Option<String>) -> Vec<Value> {
    let mut messages = vec![user("Do it")];
    for at in 0..count {
        let id = format!("toolu_{at}");
        let mut content = vec![result(&id, said)];
        content.extend(beside(at).map(|text| json!({"type": "text", "text": text})));
        messages.extend([call(&id, "Bash", json!({"command": "ls"})), user(content)]);
    }
    messages
}

#[test]
fn what_claude_code_says_to_a_model_by_itself_is_no_person() {
    for text in [
        "[Your previous response had no visible output. Please continue and produce a user-visible response.]",
        "Your tool call was malformed and could not be parsed. Please retry.",
        "The previous response failed to produce a valid tool call. Retry.",
        "Output token limit hit. Resume directly \u{2014} no apology, no recap of what you were doing.",
        "Your response above was cut off mid-stream. Resume directly.",
        "[Image: original 2566x1400, displayed at 2000x1091. Multiply coordinates by 1.28 to map to original image.]",
        "[Image: source: /a.png]",
        "Base directory for this skill: /skills/review\n\n# Review\nUse the Skill tool",
    ] {
        for every in [1, 2, 4] {
            let beside = |at: usize| at.is_multiple_of(every).then(|| text.to_owned());
            let turn = sent(&same(6, "a.txt", &beside));
            assert_eq!(turn.tools(), ["look"], "{text}");
            assert_eq!(turn.header("x-creole-tool-turn"), "6/99", "{text}");
        }
    }
    let spoken = |at| Some(format!("[Your previous answer] was wrong {at}"));
    assert_eq!(sent(&same(6, "a.txt", &spoken)).tools(), ["Bash", "look"]);
}

#[test]
fn what_stands_beside_one_result_after_the_other_is_no_person() {
    // CrewAI, with the words that it has by default.
    let ask = "Analyze the tool result. If requirements are met, provide the Final Answer. Otherwise, call the next tool. Deliver only the answer without meta-commentary.";
    let crew = |_| Some(ask.to_owned());
    let turn = sent(&same(7, "a.txt", &crew));
    // The first one could be anybody's.
    assert_eq!((turn.tools(), turn.header("x-creole-tool-turn")), (vec!["look"], "6/99"));
    // As a message of its own.
    let mut messages = Vec::new();
    for message in same(7, "a.txt", &|_| None) {
        let is_result = message["content"][0]["type"] == "tool_result";
        messages.push(message);
        messages.extend(is_result.then(|| user(ask)));
    }
    let turn = sent(&messages);
    assert_eq!((turn.tools(), turn.header("x-creole-tool-turn")), (vec!["look"], "6/99"));
    // Whoever says something else in between, or says it again later, is a person.
    for spoken in [
        &|at: usize| Some(if at == 6 { "Go on" } else { ask }.to_owned()) as Option<String>,
        &|at: usize| at.is_multiple_of(2).then(|| "Go on".to_owned()),
    ] as [&dyn Fn(usize) -> Option<String>; 2]
    {
        let turn = sent(&same(7, "a.txt", spoken));
        assert_eq!(turn.header("x-creole-tool-turn"), "0/99");
    }
    // So is who says a few words twice.
    assert_eq!(
        sent(&same(7, "a.txt", &|_| Some("Try again".to_owned()))).header("x-creole-tool-turn"),
        "0/99"
    );
    // It need not stand first.
    let crew = |at| Some(format!("{at}")).filter(|_| at == 0).or_else(|| Some(ask.to_owned()));
    assert_eq!(sent(&same(7, "a.txt", &crew)).header("x-creole-tool-turn"), "5/99");
    // Without results it is what a person asks for each time.
    let mut messages = same(2, "a.txt", &|_| None);
    messages.extend([json!({"role": "assistant", "content": "Done."}), user("Do it")]);
    assert_eq!(sent(&messages).header("x-creole-tool-turn"), "0/99");
}

#[test]
fn the_text_of_a_skill_is_no_person_whatever_it_says() {
    let body = |at| Some(format!("Use the Skill tool to invoke `review`, then follow it {at}."));
    let turn = sent(&same(6, "Launching skill: review", &body));
    assert_eq!((turn.tools(), turn.header("x-creole-tool-turn")), (vec!["look"], "6/99"));
    assert_eq!(sent(&same(6, "Launched: review", &body)).tools(), ["Bash", "look"]);
}

#[test]
fn calls_that_differ_in_what_is_said_of_them_are_the_same() {
    let rounds = |input: &dyn Fn(usize) -> Value| {
        rounds(6, |at, id| (call(id, "Bash", input(at)), result(id, "a.txt")))
    };
    let described = |at| json!({"command": "ls", "description": format!("List files {at}")});
    assert_eq!(sent(&rounds(&described)).tools(), ["look"]);
    let progress = |at| json!({"path": "a", "task_progress": format!("- [x] step {at}")});
    assert_eq!(sent(&rounds(&progress)).tools(), ["look"]);
    let risky = |at| json!({"path": "a", "summary": format!("{at}"), "security_risk": "LOW"});
    let views = super::rounds(6, |at, id| (call(id, "look", risky(at)), result(id, "a.txt")));
    assert_eq!(sent(&views).tools(), ["Bash"]);
    // Of a tool that is no shell, it can be what the tool is for.
    let issue = |at| json!({"command": "create", "description": format!("{at}")});
    let issues = super::rounds(6, |at, id| (call(id, "look", issue(at)), result(id, "done")));
    assert_eq!(sent(&issues).tools(), ["Bash", "look"]);
    let nested = |at| json!({"command": {"command": "a", "description": format!("{at}")}});
    assert_eq!(sent(&rounds(&nested)).tools(), ["Bash", "look"]);
}

#[test]
fn a_call_that_was_not_made_is_none_that_failed() {
    let turn = |said: &str, is_error: bool| {
        let mut messages = vec![user("Do it")];
        for at in 0..6 {
            let (make, read) = (format!("toolu_a{at}"), format!("toolu_b{at}"));
            let calls = [
                use_of(&make, "Bash", json!({"command": format!("make {at}")})),
                use_of(&read, "look", json!({"path": "a.txt"})),
            ];
            let mut cancelled = result(&read, said);
            cancelled["is_error"] = json!(is_error);
            let results = [failed(&make, &format!("Exit code 2\n{at}")), cancelled];
            messages.push(json!({"role": "assistant", "content": calls}));
            messages.push(user(json!(results)));
        }
        sent(&messages)
    };
    for said in [
        "<tool_use_error>Sibling tool call errored</tool_use_error>",
        "<tool_use_error>Cancelled: parallel tool call Bash(make 1) errored</tool_use_error>",
        "Cancelled: parallel tool call Bash(make 1) errored",
    ] {
        // Nor is it one that resets what is known of the other.
        let stopped = turn(said, true);
        assert_eq!(stopped.header("x-creole-warnings"), "tool_failing:Bash", "{said}");
        assert_eq!(stopped.tools(), ["Bash", "look"], "{said}");
    }
    // It was made, and this is what it gave.
    let made = turn("Sibling tool call errored", false);
    assert!(made.header("x-creole-warnings").starts_with("tool_failing:Bash,tool_repeating:look"));
    assert_eq!(turn("<tool_use_error>Sibling is gone", true).tools(), ["Bash"]);
}

const SPOKE: &str = "The user sent a new message while you were working:\nThe server is up again, go on\n\nThis is how Claude Code surfaces messages";
const NOTIFIED: &str =
    "<task-notification>\n<task-id>b</task-id><status>completed</status>\n</task-notification>";

/// Six equal calls, and then this, in each of the places that Claude Code has for it.
fn then(said: &str) -> [(&'static str, Turn); 4] {
    let reminder = format!("<system-reminder>\n{said}\n</system-reminder>");
    let mut system = same(6, "a.txt", &|_| None);
    system.push(json!({"role": "system", "content": said}));
    let mut in_result = same(6, "a.txt", &|_| None);
    let text = &mut in_result[12]["content"][0]["content"];
    *text = json!(format!("a.txt\n\n{reminder}"));
    let beside = same(6, "a.txt", &|at| (at == 5).then(|| reminder.clone()));
    let several = format!("<system-reminder>\nTodo\n</system-reminder>\n{reminder}");
    let second = same(6, "a.txt", &|at| (at == 5).then(|| several.clone()));
    [
        ("system", sent(&system)),
        ("in the result", sent(&in_result)),
        ("beside it", sent(&beside)),
        ("in the second reminder", sent(&second)),
    ]
}

#[test]
fn a_person_who_speaks_while_the_agent_works_is_one() {
    for (place, turn) in then(SPOKE) {
        assert_eq!(turn.tools(), ["Bash", "look"], "{place}");
        assert_eq!(turn.header("x-creole-tool-turn"), "0/99", "{place}");
    }
    // The same words elsewhere are those of a tool or of the client.
    for (place, turn) in then(&format!("It said: {SPOKE}")) {
        assert_eq!(
            (turn.tools(), turn.header("x-creole-tool-turn")),
            (vec!["look"], "6/99"),
            "{place}"
        );
    }
    let found = sent(&same(6, SPOKE, &|_| None));
    assert_eq!((found.tools(), found.header("x-creole-tool-turn")), (vec!["look"], "6/99"));
}

#[test]
fn the_news_that_a_task_is_done_gives_the_tool_back() {
    let preamble = format!(
        "[SYSTEM NOTIFICATION - NOT USER INPUT]\nThis is an automated event.\n\n{NOTIFIED}"
    );
    for said in [NOTIFIED, preamble.as_str()] {
        for (place, turn) in then(said) {
            assert_eq!(turn.tools(), ["Bash", "look"], "{place}");
            // But nobody spoke.
            assert_eq!(turn.header("x-creole-tool-turn"), "6/99", "{place}");
        }
        let mut messages = same(6, "a.txt", &|_| None);
        messages.extend([json!({"role": "assistant", "content": "Still running."}), user(said)]);
        let turn = sent(&messages);
        assert_eq!(
            (turn.tools(), turn.header("x-creole-tool-turn")),
            (vec!["Bash", "look"], "6/99")
        );
    }
}

#[test]
fn a_call_that_waits_has_ten_times_the_patience() {
    let polls = |count, name: &'static str, input: Value| {
        let round = |_, id: &str| (call(id, name, input.clone()), result(id, "in_progress"));
        let tools = [tool(name, &[]), tool("look", &[])];
        let body = request(&rounds(count, round), &tools);
        ask(&config(json!({})), &body, &|_| (200, says("ok")), false)
    };
    for (name, input) in [
        ("Bash", json!({"command": "sleep 300; gh run view 1 --json status"})),
        ("TaskOutput", json!({"task_id": "b1"})),
        ("browser_wait_for", json!({"text": "Done"})),
    ] {
        let quiet = polls(29, name, input.clone());
        assert_eq!((quiet.header("x-creole-guard"), quiet.tools()), ("", vec![name, "look"]));
        let told = polls(30, name, input.clone());
        let note = told.tool_texts()[29].to_owned();
        assert!(note.contains("already called 30 times"), "{note}");
        assert!(note.ends_with("If you wait for something, wait longer between calls."), "{note}");
        assert_eq!(told.header("x-creole-warnings"), format!("tool_repeating:{name}"));
        assert_eq!(polls(59, name, input.clone()).tools(), [name, "look"]);
        assert_eq!(polls(60, name, input).tools(), ["look"]);
    }
    assert_eq!(polls(6, "Bash", json!({"command": "gh run view 1"})).tools(), ["look"]);
}

/// Sends `count` rounds of two calls, each call in a turn of its own or both in one.
fn pairs(count: usize, both: [(&str, Value, &str); 2], at_once: bool) -> Turn {
    let mut messages = vec![user("Do it")];
    for at in 0..count {
        let [mut calls, mut results] = [Vec::new(), Vec::new()];
        for (number, (name, input, said)) in both.iter().enumerate() {
            let id = format!("toolu_{at}_{number}");
            calls.push(use_of(&id, name, input.clone()));
            results.push(result(&id, *said));
            if number == 1 || !at_once {
                let content = Value::from(std::mem::take(&mut calls));
                messages.push(json!({"role": "assistant", "content": content}));
                messages.push(user(std::mem::take(&mut results)));
            }
        }
    }
    let tools = both.map(|(name, ..)| tool(name, &[]));
    let body = request(&messages, &tools);
    ask(&config(json!({})), &body, &|_| (200, says("ok")), false)
}

#[test]
fn a_call_after_one_that_waited_has_ten_times_the_patience() {
    let status = ("get_status", json!({"id": "7"}), r#"{"status":"running"}"#);
    for wait in [
        ("Bash", json!({"command": "sleep 60"}), ""),
        ("browser_wait_for", json!({"time": 10}), "Waited for 10"),
        ("computer", json!({"action": "wait", "duration": 5}), "Waited for 5 seconds"),
    ] {
        for at_once in [true, false] {
            let both = || [wait.clone(), status.clone()];
            assert_eq!(pairs(20, both(), at_once).header("x-creole-guard"), "", "{wait:?}");
            let names = [wait.0, "get_status"];
            assert_eq!(pairs(45, both(), at_once).tools(), names, "{wait:?}");
            assert!(pairs(62, both(), at_once).tools().is_empty(), "{wait:?}");
        }
    }
    let look = ("look", json!({}), "a.txt");
    assert!(pairs(7, [look, status.clone()], false).tools().is_empty());
    // One that waited long ago says nothing of those since.
    let once = |at: usize, id: &str| match at {
        0 | 2 => (call(id, "Bash", json!({"command": "sleep 60"})), result(id, "")),
        _ => (call(id, "look", json!({})), result(id, "running")),
    };
    assert_eq!(sent(&rounds(8, once)).tools(), ["Bash", "look"]);
    assert_eq!(sent(&rounds(9, once)).tools(), ["Bash"]);
}

#[test]
fn a_command_that_sleeps_may_fail_ten_times_as_often() {
    let fails = |count, name: &'static str, input: Value, said: &'static str| {
        let round = |_, id: &str| (call(id, name, input.clone()), failed(id, said));
        let body = request(&rounds(count, round), &[tool(name, &[]), tool("look", &[])]);
        ask(&config(json!({})), &body, &|_| (200, says("ok")), false)
    };
    let pending = "Exit code 8\nbuild\tpending\t0";
    let checks = json!({"command": "sleep 60 && gh pr checks 12"});
    assert_eq!(fails(29, "Bash", checks.clone(), pending).header("x-creole-guard"), "");
    let told = fails(30, "Bash", checks.clone(), pending);
    assert_eq!(told.header("x-creole-warnings"), "tool_failing:Bash");
    let note =
        "has failed 30 times in a row. If you wait for something, wait longer between calls.";
    assert!(told.tool_texts()[29].ends_with(note), "{:?}", told.tool_texts()[29]);
    assert_eq!(fails(59, "Bash", checks.clone(), pending).tools(), ["Bash", "look"]);
    assert_eq!(fails(60, "Bash", checks, pending).tools(), ["look"]);
    // What did not wait before it failed has no more patience than others.
    assert_eq!(fails(6, "TaskOutput", json!({"task_id": "b"}), "No task found").tools(), ["look"]);
    // Beside those that waited, each of the others counts as ever.
    let mixed = |at: usize, id: &str| {
        let command = if at < 10 { "sleep 5; curl -f :80" } else { "curl -f :80" };
        (call(id, "Bash", json!({"command": command})), failed(id, "Exit code 7"))
    };
    assert_eq!(sent(&rounds(15, mixed)).tools(), ["Bash", "look"]);
    assert_eq!(sent(&rounds(16, mixed)).tools(), ["look"]);
}
