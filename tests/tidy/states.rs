//! State that only the file that declares it can change.

use std::path::Path;

use crate::{none, read};

/// Structs that hold the state of an answer, or of the exchange around it, with their files. Other
/// files change the state by its methods alone.
const STATES: [(&str, &str); 15] = [
    ("src/answer/mod.rs", "Answer"),
    ("src/assemble/call.rs", "CallParts"),
    ("src/assemble/calls.rs", "Calls"),
    ("src/assemble/mod.rs", "Assembly"),
    ("src/assemble/queue.rs", "Queue"),
    ("src/assemble/tool_input.rs", "ToolInput"),
    ("src/content/mod.rs", "Content"),
    ("src/content/summary.rs", "Summary"),
    ("src/exchange/round.rs", "Round"),
    ("src/exchange/state.rs", "State"),
    ("src/protocols/chat/read_answer/machine.rs", "ChatMachine"),
    ("src/protocols/messages/relay_answer/stream.rs", "MessagesStream"),
    ("src/protocols/messages/write_answer.rs", "MessagesWriter"),
    ("src/protocols/responses/read_answer/machine.rs", "ResponsesMachine"),
    ("src/protocols/responses/read_answer/slots.rs", "Slot"),
];

/// The fields of a struct that other files can see.
fn visible_fields(text: &str, name: &str) -> Option<Vec<String>> {
    let start = [format!("struct {name} {{"), format!("struct {name}(")];
    let at = start.iter().find_map(|start| Some(text.find(start)? + start.len()))?;
    let end = text[at..].find(['}', ';'])?;
    let fields = text[at..at + end].lines().map(|line| line.trim().trim_end_matches(')'));
    Some(fields.filter(|line| line.starts_with("pub")).map(str::to_owned).collect())
}

#[test]
fn the_state_of_an_answer_is_changed_in_its_own_file_alone() {
    let mut wrong = Vec::new();
    for (file, name) in STATES {
        match visible_fields(&read(Path::new(file)), name) {
            Some(fields) => wrong.extend(fields.iter().map(|it| format!("{file}: {name}: {it}"))),
            None => wrong.push(format!("{file}: {name} is not there")),
        }
    }
    none("fields of states that other files can change", &wrong);
}

#[test]
fn a_field_that_others_can_see_is_found() {
    let text =
        "struct A {\n    /// One.\n    a: u8,\n    pub(super) b: u8,\n}\nstruct B(pub u8);\n";
    assert_eq!(visible_fields(text, "A").unwrap(), ["pub(super) b: u8,"]);
    assert_eq!(visible_fields(text, "B").unwrap(), ["pub u8"]);
    assert_eq!(visible_fields(text, "C"), None);
}
