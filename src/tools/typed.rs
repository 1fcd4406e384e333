//! The tools that the client runs and the model is trained on: a request names them by `type` alone,
//! so another model must be told what they take.
//!
//! The inputs are kept in a notation of one line for each property, `NAME SHAPE DESCRIPTION`, with
//! `?` after the names of optional ones. Written out as JSON Schema they would be most of the text in
//! a filter that every proxy worker holds in memory.

use std::fmt::Write as _;

use super::toolsets::{self, Toolset};
use crate::text::words;

/// What a definition is, by its `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolKind {
    /// The client brings the schema.
    Custom,
    /// The client runs it; name and schema are implied.
    Client(&'static Builtin),
    /// The client runs it; several functions.
    Toolset(&'static Toolset),
    /// The real API would run it; the name is implied.
    Server(&'static str),
    /// Tools of an MCP server that the real API would call.
    Mcp,
    /// A Chat Completions function.
    Function,
}

/// A function whose name and input are known here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Builtin {
    /// Its name.
    pub(super) name: &'static str,
    /// What the model is told.
    pub(super) description: &'static str,
    /// What it takes, in the notation of this module.
    pub(super) input: &'static str,
}

const BASH: Builtin = Builtin {
    name: "bash",
    description: "Run a command in a persistent bash session.",
    input: "command? string Shell command to run. Required unless restart is true.\n\
        restart? boolean true: restart the shell session.",
};

macro_rules! text_editor {
    ($commands:literal, $new_str:literal, $more:literal) => {
        concat!(
            "command ",
            $commands,
            " Operation to run.\n\
            path string Absolute path of the file or directory.\n\
            file_text? string create: the whole content of the new file.\n\
            old_str? string str_replace: the exact text to replace; it must occur once.\n\
            new_str? string ",
            $new_str,
            "\ninsert_line? integer insert: the line after which to insert; 0 is the start of the file.\n\
            view_range? pair view of a file: [first, last], 1-based; last -1 is the end of the file.",
            $more
        )
    };
}

const TEXT_EDITOR_TO_20250124: Builtin = Builtin {
    name: "str_replace_editor",
    description: "View, create and edit text files.",
    input: text_editor!(
        "view|create|str_replace|insert|undo_edit",
        "str_replace: the replacement text. insert: the text to insert.",
        ""
    ),
};

const TEXT_EDITOR: Builtin = Builtin {
    name: "str_replace_based_edit_tool",
    description: "View, create and edit text files.",
    input: text_editor!(
        "view|create|str_replace|insert",
        "str_replace: the replacement text.",
        "\ninsert_text? string insert: the text to insert."
    ),
};

const MEMORY: Builtin = Builtin {
    name: "memory",
    description: "Read and write persistent notes in files under /memories.",
    input: "command view|create|str_replace|insert|delete|rename Operation to run.\n\
        path? string Path under /memories. All commands but rename.\n\
        view_range? pair view of a file: [first, last], 1-based; last -1 is the end.\n\
        file_text? string create: content.\n\
        old_str? string str_replace: exact text to replace.\n\
        new_str? string str_replace: replacement; may be absent to delete.\n\
        insert_line? integer insert: line after which to insert; 0 is the start.\n\
        insert_text? string insert: text.\n\
        old_path? string rename: current path.\n\
        new_path? string rename: new path.",
};

macro_rules! computer {
    ($actions:literal, $text:literal, $more:literal) => {
        Builtin {
            name: "computer",
            description: "Control a desktop: take screenshots, use mouse and keyboard.",
            input: concat!(
                "action key|type|mouse_move|left_click|left_click_drag|right_click|middle_click|\
                double_click|screenshot|cursor_position",
                $actions,
                " Action to perform.\n\
                coordinate? pair [x, y] in screenshot pixels.\n\
                text? string ",
                $text,
                $more
            ),
        }
    };
}

const COMPUTER_20241022: Builtin = computer!(
    "",
    "type: text; key, hold_key: key or combination; clicks and scroll: modifier keys.",
    ""
);

const COMPUTER: Builtin = computer!(
    "|left_mouse_down|left_mouse_up|scroll|hold_key|wait|triple_click",
    "type: text; key, hold_key: key or combination; clicks and scroll: modifier keys.",
    "\nstart_coordinate? pair left_click_drag: start.\n\
    scroll_direction? up|down|left|right\n\
    scroll_amount? amount\n\
    duration? number hold_key, wait: seconds."
);

const COMPUTER_ZOOM: Builtin = computer!(
    "|left_mouse_down|left_mouse_up|scroll|hold_key|wait|triple_click|zoom",
    "type: text; key, hold_key: key or combination; clicks and scroll: modifier keys.",
    "\nstart_coordinate? pair left_click_drag: start.\n\
    scroll_direction? up|down|left|right\n\
    scroll_amount? amount\n\
    duration? number hold_key, wait: seconds.\n\
    region? rectangle zoom: [x0, y0, x1, y1]."
);

impl ToolKind {
    /// What `tool_type` says; `zoom` is the definition's `enable_zoom`. The flag tells whether this
    /// very version is known: a later one of a known family is taken for the newest known.
    #[must_use]
    pub(super) fn of(tool_type: &str, zoom: bool) -> Option<(Self, bool)> {
        let computer = if zoom { &COMPUTER_ZOOM } else { &COMPUTER };
        let (kind, versions): (Self, &[&str]) = match tool_type {
            "" | "custom" => return Some((Self::Custom, true)),
            "function" => return Some((Self::Function, true)),
            "mcp_toolset" => return Some((Self::Mcp, true)),
            "text_editor_20241022" | "text_editor_20250124" => {
                return Some((Self::Client(&TEXT_EDITOR_TO_20250124), true));
            }
            "computer_20241022" => return Some((Self::Client(&COMPUTER_20241022), true)),
            "computer_20250124" => return Some((Self::Client(&COMPUTER), true)),
            _ => match family(tool_type) {
                "bash" => (Self::Client(&BASH), &["bash_20241022", "bash_20250124"]),
                "text_editor" => {
                    (Self::Client(&TEXT_EDITOR), &["text_editor_20250429", "text_editor_20250728"])
                }
                "memory" => (Self::Client(&MEMORY), &["memory_20250818"]),
                "computer" => (Self::Client(computer), &["computer_20251124"]),
                "computer_toolset" => {
                    (Self::Toolset(&toolsets::COMPUTER), &["computer_toolset_20260801"])
                }
                "browser_toolset" => {
                    (Self::Toolset(&toolsets::BROWSER), &["browser_toolset_20260801"])
                }
                other => {
                    let known = SERVER_TOOLS.iter().find(|name| **name == other)?;
                    return Some((Self::Server(known), true));
                }
            },
        };
        Some((kind, versions.contains(&tool_type)))
    }
}

/// The names of server tools, which are their types without the version.
const SERVER_TOOLS: [&str; 6] = [
    "web_search",
    "web_fetch",
    "code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
    "advisor",
];

/// A type without its version: `bash` of `bash_20250124`.
fn family(tool_type: &str) -> &str {
    match words::rsplit_once(tool_type, b'_') {
        Some((family, version))
            if version.len() == 8 && version.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            family
        }
        _ => tool_type,
    }
}

/// The JSON Schema of an input in the notation of this module.
#[must_use]
pub(super) fn input_schema(input: &str) -> String {
    let mut properties = String::new();
    let mut required = String::new();
    for line in input.lines() {
        let mut words = line.splitn(3, ' ');
        let name = words.next().unwrap_or_default();
        let shape = words.next().unwrap_or_default();
        let comma = if properties.is_empty() { "" } else { "," };
        let optional = name.strip_suffix('?');
        // Writing to a string cannot fail.
        let _ = write!(properties, "{comma}\"{}\":{{", optional.unwrap_or(name));
        write_shape(&mut properties, shape);
        if let Some(description) = words.next() {
            let _ = write!(properties, ",\"description\":\"{description}\"");
        }
        properties.push('}');
        if optional.is_none() {
            let comma = if required.is_empty() { "" } else { "," };
            let _ = write!(required, "{comma}\"{name}\"");
        }
    }
    let required = match required.as_str() {
        "" => String::new(),
        names => format!(",\"required\":[{names}]"),
    };
    format!(
        "{{\"type\":\"object\",\"properties\":{{{properties}}}{required},\"additionalProperties\":false}}"
    )
}

/// An object that says by its `type` how a place on a page is given.
macro_rules! place {
    ($tag:literal, $properties:literal, $required:literal) => {
        concat!(
            r#""type":"object","properties":{"type":{"type":"string","enum":[""#,
            $tag,
            r#""]},"#,
            $properties,
            r#"},"required":["type","#,
            $required,
            r#"],"additionalProperties":false"#
        )
    };
}

const PLACE: &str =
    place!("coordinate", r#""x":{"type":"integer"},"y":{"type":"integer"}"#, r#""x","y""#);
const ELEMENT: &str = place!("ref", r#""ref":{"type":"string"}"#, r#""ref""#);

/// The members of a property's schema.
fn write_shape(out: &mut String, shape: &str) {
    let _ = match shape {
        "pair" => {
            write!(out, r#""type":"array","items":{{"type":"integer"}},"minItems":2,"maxItems":2"#)
        }
        "rectangle" => {
            write!(out, r#""type":"array","items":{{"type":"integer"}},"minItems":4,"maxItems":4"#)
        }
        "amount" => write!(out, r#""type":"integer","minimum":0"#),
        "scalar" => write!(out, r#""type":["string","number","boolean"]"#),
        "strings" => write!(out, r#""type":"array","items":{{"type":"string"}}"#),
        "place" => write!(out, "{PLACE}"),
        "element" => write!(out, "{ELEMENT}"),
        "target" => write!(out, r#""anyOf":[{{{PLACE}}},{{{ELEMENT}}}]"#),
        choices if words::has_byte(choices, b'|') => {
            write!(out, r#""type":"string","enum":["{}"]"#, choices.replace('|', "\",\""))
        }
        name => write!(out, r#""type":"{name}""#),
    };
}

#[cfg(test)]
mod tests;
