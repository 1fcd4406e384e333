//! Predefined tools that the client runs and Anthropic's models know. A request names them only by
//! `type`, so another model needs their descriptions and schemas, which are JSON files in `typed/`.

use crate::json::{self, Str};
use crate::text::words;

/// Kind of a tool definition, decided by its `type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolKind {
    /// Custom tool: the client sends the schema.
    Custom,
    /// Predefined tool that the client runs; the type implies name and schema.
    Client(Builtin),
    /// Toolset that the client runs, with several functions.
    Toolset(Toolset),
    /// Server tool, which the real API would run; holds the name that the type implies.
    Server(&'static str),
    /// Toolset of an MCP server, whose tools the real API would call.
    Mcp,
    /// Function in Chat Completions form.
    Function,
}

/// Predefined function with a known name and input, as the JSON text of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Builtin(&'static str);

impl Builtin {
    pub(super) fn name(self) -> &'static str {
        self.text("name").raw()
    }

    /// Returns the predefined function's description for the model.
    pub(super) fn description(self) -> Str<'static> {
        self.text("description")
    }

    /// Returns the JSON Schema of the predefined function's input, without white space.
    pub(super) fn input_schema(self) -> String {
        json::compacted(json::member(self.0, "input_schema").unwrap_or("{}"))
    }

    fn text(self, key: &str) -> Str<'static> {
        let text = json::member(self.0, key).and_then(json::string);
        debug_assert!(text.is_some(), "{key} of {}", self.0);
        text.unwrap_or_default()
    }
}

/// Toolset that the client runs. Each of its members is a separate function for the upstream, such
/// as `computer__zoom` or `browser__navigate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Toolset {
    /// Name of the toolset, the `toolset_name` in calls and results.
    pub(super) name: &'static str,
    /// Functions of the toolset, as the JSON text of an array.
    members: &'static str,
    /// Names of the toolset's functions that are offered only if the client enables them.
    pub(super) disabled: &'static [&'static str],
}

impl Toolset {
    pub(super) fn members(self) -> impl Iterator<Item = Builtin> {
        json::elements(self.members).map(Builtin)
    }
}

const BASH: Builtin = Builtin(include_str!("typed/bash.json"));
const TEXT_EDITOR_TO_20250124: Builtin =
    Builtin(include_str!("typed/text_editor_to_20250124.json"));
const TEXT_EDITOR: Builtin = Builtin(include_str!("typed/text_editor.json"));
const MEMORY: Builtin = Builtin(include_str!("typed/memory.json"));
const COMPUTER_20241022: Builtin = Builtin(include_str!("typed/computer_20241022.json"));
const COMPUTER: Builtin = Builtin(include_str!("typed/computer.json"));
const COMPUTER_ZOOM: Builtin = Builtin(include_str!("typed/computer_zoom.json"));

const COMPUTER_TOOLSET: Toolset = Toolset {
    name: "computer",
    members: include_str!("typed/computer_toolset.json"),
    disabled: &[],
};
const BROWSER_TOOLSET: Toolset = Toolset {
    name: "browser",
    members: include_str!("typed/browser_toolset.json"),
    disabled: &["javascript_exec", "file_upload", "read_console", "read_network"],
};

impl ToolKind {
    /// Returns the kind that `tool_type` names, and true if this exact version is known. A later
    /// version of a known tool counts as the newest known version. `zoom` is the definition's
    /// `enable_zoom`.
    #[must_use]
    pub(super) fn of(tool_type: &str, zoom: bool) -> Option<(Self, bool)> {
        let computer = if zoom { COMPUTER_ZOOM } else { COMPUTER };
        let (kind, versions): (Self, &[&str]) = match tool_type {
            "" | "custom" => return Some((Self::Custom, true)),
            "function" => return Some((Self::Function, true)),
            "mcp_toolset" => return Some((Self::Mcp, true)),
            "text_editor_20241022" | "text_editor_20250124" => {
                return Some((Self::Client(TEXT_EDITOR_TO_20250124), true));
            }
            "computer_20241022" => return Some((Self::Client(COMPUTER_20241022), true)),
            "computer_20250124" => return Some((Self::Client(COMPUTER), true)),
            _ => match family(tool_type) {
                "bash" => (Self::Client(BASH), &["bash_20241022", "bash_20250124"]),
                "text_editor" => {
                    (Self::Client(TEXT_EDITOR), &["text_editor_20250429", "text_editor_20250728"])
                }
                "memory" => (Self::Client(MEMORY), &["memory_20250818"]),
                "computer" => (Self::Client(computer), &["computer_20251124"]),
                "computer_toolset" => {
                    (Self::Toolset(COMPUTER_TOOLSET), &["computer_toolset_20260801"])
                }
                "browser_toolset" => {
                    (Self::Toolset(BROWSER_TOOLSET), &["browser_toolset_20260801"])
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

/// Names of server tools, which are their types without the version.
const SERVER_TOOLS: [&str; 6] = [
    "web_search",
    "web_fetch",
    "code_execution",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
    "advisor",
];

/// Returns a tool type without its version, such as `bash` for `bash_20250124`.
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

#[cfg(test)]
mod tests;
