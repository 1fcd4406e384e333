//! Tests of `person.rs`.

use super::*;
use crate::model::{Text, ToolUse};

fn text(text: &'static str) -> UserPart<'static> {
    let text = Str::plain(text);
    UserPart::Block(Block::Text(Text { text, cached: None, citations: None }))
}

/// Returns a text part from the inside of a JSON string.
fn escaped(raw: &'static str) -> UserPart<'static> {
    let quoted = Box::leak(format!("\"{raw}\"").into_boxed_str());
    let text = json::Reader::new(quoted, 1).string().unwrap();
    UserPart::Block(Block::Text(Text { text, cached: None, citations: None }))
}

fn result() -> ToolResult<'static> {
    ToolResult { id: Str::plain("t"), content: Vec::new(), is_error: false, cleared: false }
}

fn call() -> Turn<'static> {
    let (id, name) = (Str::plain("t"), Str::plain("w"));
    Turn::Assistant(vec![Block::ToolUse(Box::new(ToolUse::of(id, name, "{}")))])
}

fn user(results: usize, items: Vec<UserPart<'static>>) -> Turn<'static> {
    Turn::User(User { results: (0..results).map(|_| result()).collect(), items })
}

#[test]
fn what_clients_write_by_themselves_is_no_person() {
    let reminder = "<system-reminder>\nx\n</system-reminder>";
    let two = "<system-reminder>a</system-reminder> <system-reminder>b</system-reminder>";
    let spoken = "<system-reminder>a</system-reminder>\nNow fix it";
    for (results, said, person) in [
        (1, vec![], false),
        (1, vec![text(reminder)], false),
        (1, vec![text(two)], false),
        (1, vec![text(spoken)], true),
        (1, vec![text("Tool loaded.")], false),
        (1, vec![text("<environment_details mode=\"x\">y</environment_details>")], false),
        (1, vec![text("stop")], true),
        (1, vec![text(" ")], false),
        (0, vec![text(reminder)], false),
        (0, vec![text("<task>do it</task>")], true),
        (
            0,
            vec![text("<task-notification>\n<status>completed</status></task-notification>")],
            false,
        ),
        (0, vec![text("<task-notification>a</task-notification>"), text(reminder)], false),
        (0, vec![text("<task-notification>a</task-notification> Go on")], true),
        (0, vec![text("<system-reminder>never closed")], true),
        (0, vec![text("Tool loaded.")], true),
        (1, vec![escaped(r"\n<system-reminder>\na < b\n</system-reminder>\r\n\t")], false),
        (1, vec![escaped(r"\u003csystem-reminder>a<\/system-reminder>")], false),
        (1, vec![escaped(r"<system-reminder>a</system-reminder>\nand now")], true),
        (1, vec![escaped(r"<system-reminder>a</system-reminder>\\n")], true),
        (0, vec![text("Tell me")], true),
        (0, vec![text("Output token limit hit. Resume directly.")], false),
        (0, vec![escaped(r"\n[Your previous response had no visible output.]\n")], false),
        (0, vec![escaped(r"\u005bYour previous response had no visible output.]")], false),
        (0, vec![text("Stop hook feedback:\n- [lint.sh]: 2 errors")], false),
        (0, vec![text("Stop hooks from running")], true),
        (0, vec![text("[ERROR] You did not use a tool in your previous response! Retry")], false),
        (0, vec![text("[Image: original 1x1]")], true),
        (1, vec![text("[Image: original 1x1]")], false),
        (0, vec![text("[SYSTEM NOTIFICATION - NOT USER INPUT]\nDone")], false),
        (0, vec![UserPart::Orphan(result())], false),
        (0, vec![UserPart::System(vec![Str::plain("note")])], false),
        (0, vec![UserPart::Moved], false),
    ] {
        let expected = usize::from(person);
        assert_eq!(after_person(&[user(results, said)]), expected, "{results} {expected}");
    }
}

#[test]
fn turns_are_counted_since_the_last_person() {
    let turns = [
        user(0, vec![text("q")]),
        call(),
        user(1, vec![text("no, this")]),
        call(),
        user(1, vec![text("<system-reminder>a</system-reminder>")]),
        Turn::System(vec![Str::plain("note")]),
        call(),
        user(1, Vec::new()),
    ];
    assert_eq!(after_person(&turns), 3);
    assert_eq!(tool_turns(&turns, 3), 2);
    assert_eq!(tool_turns(&turns, 0), 3);
    assert_eq!(after_person(&turns[3..]), 0);
}
