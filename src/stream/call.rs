//! One tool call of the upstream, while it is put together.

use super::tool_input::ToolInput;
use crate::asked::Tools;

/// One tool call of the upstream.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// Choice and index by which fragments name it, where they do.
    pub(super) key: Option<(u64, u64)>,
    /// It came as `function_call`.
    pub(super) legacy: bool,
    /// The upstream's id, or the one that was minted for it.
    pub(super) id: Option<String>,
    /// The upstream's name of the tool, perhaps only its start.
    pub(super) name: String,
    pub(super) input: ToolInput,
    pub(super) state: CallState,
    /// The block, once it began: the client's id and name, and the toolset.
    pub(super) block: Option<(String, String, Option<&'static str>)>,
}

/// What the client has seen of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CallState {
    /// Nothing.
    #[default]
    Waiting,
    /// The start of its block.
    Open,
    /// All of its block.
    Closed,
    /// Nothing, and it never will.
    LeftOut,
}

impl Call {
    /// Takes a name, which may be a fragment of one. Says whether it contradicts what is known.
    pub(super) fn receive_name(&mut self, name: &str, tools: &Tools) -> bool {
        if self.name.is_empty() {
            name.clone_into(&mut self.name);
        } else if self.name != name {
            if self.state != CallState::Waiting || self.input.has_text() {
                return true;
            }
            let is_tool = |name: &str| tools.iter().any(|tool| tool.outgoing == name);
            let joined = format!("{}{name}", self.name);
            // A server that repeats the input from its start may do so with the name.
            self.name = if is_tool(name) && !is_tool(&joined) { name.to_owned() } else { joined };
        }
        false
    }

    /// Whether the name cannot be the start of a longer one.
    pub(super) fn name_is_whole(&self, tools: &Tools) -> bool {
        let mut known = false;
        for tool in tools.iter() {
            if tool.outgoing == self.name {
                known = true;
            } else if tool.outgoing.starts_with(&self.name) {
                return false;
            }
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked::Tool;

    #[test]
    fn a_name_may_come_in_fragments_or_again() {
        let mut tools = Tools::default();
        tools.push(Tool { outgoing: "get_weather".to_owned(), ..Tool::default() });
        for (names, expected) in [
            (&["get_", "weather"] as &[&str], "get_weather"),
            (&["get_weather", "get_weather"], "get_weather"),
            (&["get_", "get_weather"], "get_weather"),
            (&["un", "known"], "unknown"),
        ] {
            let mut call = Call::default();
            for name in names {
                assert!(!call.receive_name(name, &tools));
            }
            assert_eq!(call.name, expected);
        }
        let mut call = Call { name: "a".to_owned(), ..Call::default() };
        call.input.receive("{", &mut String::new());
        assert!(call.receive_name("b", &tools));
        assert_eq!(call.name, "a");
    }
}
