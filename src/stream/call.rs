//! Tool calls of the upstream, while they are put together.
//!
//! Which call a fragment belongs to is decided in `fragment`, and what their inputs say in
//! `tool_input`.

mod fragment;
mod send;

use self::fragment::Fragment;
use super::machine::Machine;
use super::queue::Block;
use super::tool_input::ToolInput;
use crate::asked::{Display, NAME_BYTES_MAX, Tools};
use crate::error::Error;
use crate::openai::{Arguments, ToolCall};
use crate::translate::signature::{self, Field};

/// Most calls in an answer. No upstream allows more in its requests, so they could not come back.
const CALLS_MAX: usize = 1024;

/// One tool call of the upstream.
#[derive(Debug, Default)]
pub(super) struct Call {
    /// Choice and index by which fragments name it, where they do.
    pub(super) key: Option<(u64, u64)>,
    /// It came as `function_call`.
    pub(super) legacy: bool,
    /// The upstream's id.
    pub(super) id: Option<String>,
    /// The id that was minted because the upstream had given none when one was needed.
    pub(super) minted: Option<String>,
    /// The upstream's name of the tool, perhaps only its start.
    pub(super) name: String,
    pub(super) input: ToolInput,
    pub(super) state: CallState,
    /// It is none, unless an input comes.
    pub(super) doubtful: bool,
    /// What the fragments after its first one say of it, while its input goes on.
    pub(super) habit: Habit,
    /// The client's id, once it was needed.
    pub(super) client_id: Option<String>,
}

/// What fragments of a call repeat, by which one that begins another call can be known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Habit {
    /// One had another id: ids change within this call, so another one begins no call.
    other_ids: bool,
    /// One had the name again.
    named: bool,
    /// One had neither, so a name says that a call begins.
    nameless: bool,
    /// One had another index, and nothing else that names a call.
    other_indices: bool,
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
            let Some(joined) = self.name_with(name) else { return true };
            let goes_on = begins_tool(&joined, tools);
            if is_tool(&self.name, tools) && !goes_on {
                // A client may have seen this name.
                return true;
            }
            // A server that repeats the input from its start may do so with the name.
            self.name = if is_tool(name, tools) && !goes_on { name.to_owned() } else { joined };
        }
        false
    }

    /// The name with more of it behind, unless that is longer than any tool's.
    fn name_with(&self, more: &str) -> Option<String> {
        let bytes = self.name.len().saturating_add(more.len());
        (bytes <= NAME_BYTES_MAX).then(|| format!("{}{more}", self.name))
    }

    /// Whether `name` is neither the name again nor more of it, so that it is another tool's.
    fn contradicts(&self, name: &str, tools: &Tools) -> bool {
        if self.name == name {
            return false;
        }
        let goes_on = self.name_with(name).is_some_and(|joined| begins_tool(&joined, tools));
        let meant = |name| tools.meant_by(name).map(|tool| &tool.outgoing);
        !goes_on && (meant(name).is_none() || meant(name) != meant(&self.name))
    }

    /// Takes the input of a fragment.
    fn receive_input(&mut self, fragment: &Fragment<'_>, scratch: &mut String) {
        if fragment.entry.custom {
            self.input.set_custom();
        }
        match fragment.entry.arguments {
            Arguments::None => {}
            Arguments::Text(text) => self.input.receive(text.raw(), scratch),
            Arguments::Json(raw) => self.input.receive_json(raw, fragment.is_named()),
        }
    }

    /// Notes what a fragment repeats, unless it is the first one or comes after the input.
    fn learn(&mut self, fragment: &Fragment<'_>) {
        let Fragment { id, name, key, .. } = fragment;
        if !self.name.is_empty() && !self.input.is_object() {
            self.habit.other_ids |=
                id.is_some() && self.id.is_some() && self.id.as_deref() != id.as_deref();
            self.habit.named |= name.is_some();
            self.habit.nameless |= name.is_none();
        }
        self.habit.other_indices |= key.is_some() && self.key.is_some() && self.key != *key;
    }

    /// Bytes of its id and name.
    fn kept_bytes(&self) -> usize {
        self.id.as_ref().map_or(0, String::len).saturating_add(self.name.len())
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

fn is_tool(name: &str, tools: &Tools) -> bool {
    tools.iter().any(|tool| tool.outgoing == name)
}

/// Whether a tool's name begins like this.
fn begins_tool(start: &str, tools: &Tools) -> bool {
    tools.iter().any(|tool| tool.outgoing.starts_with(start))
}

impl Machine {
    /// A call, or a fragment of one. Entries of a whole answer are calls of their own.
    pub(super) fn take_call(
        &mut self,
        choice: u64,
        entry: &ToolCall<'_>,
        legacy: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if entry.is_empty() {
            return Ok(());
        }
        self.release_reasoning(out);
        self.release_text(out)?;
        if self.text.is_cut() {
            return Ok(());
        }
        let fragment = Fragment::new(choice, entry, legacy);
        let found = match self.whole {
            true => None,
            false => fragment.find(&self.calls, &self.named_in_list, &self.ledger.asked.tools),
        };
        let index = match found {
            Some(index) => index,
            None => {
                let doubtful = self.calls.last().is_some_and(|last| fragment.may_only_repeat(last));
                self.add_call(Call { key: fragment.key, legacy, doubtful, ..Call::default() })?
            }
        };
        if fragment.name.is_some() {
            self.named_in_list.push(index);
        }
        self.extend_call(index, &fragment);
        Ok(())
    }

    /// Adds what a fragment says to the call at `index`.
    fn extend_call(&mut self, index: usize, fragment: &Fragment<'_>) {
        let Some(call) = self.calls.get_mut(index) else { return };
        if call.state == CallState::LeftOut {
            return;
        }
        let (kept, held) = (call.kept_bytes(), call.input.held_bytes());
        call.learn(fragment);
        call.key = call.key.or(fragment.key);
        if call.id.is_none() {
            call.id = fragment.id.as_deref().map(str::to_owned);
        }
        let mut is_input_of_another = false;
        if let Some(name) = &fragment.name {
            let tools = &self.ledger.asked.tools;
            if call.receive_name(name, tools) {
                self.ledger.warnings.add("tool_name_conflict");
                is_input_of_another =
                    tools.meant_by(name).is_some() && call.contradicts(name, tools);
            }
        }
        if !is_input_of_another {
            call.receive_input(fragment, &mut self.scratch);
        }
        let conflicts = call.input.take_conflicts();
        let is_late = call.state == CallState::Closed;
        self.held.kept = self.held.kept.saturating_sub(kept).saturating_add(call.kept_bytes());
        self.held.inputs =
            self.held.inputs.saturating_sub(held).saturating_add(call.input.held_bytes());
        for _ in 0..conflicts {
            match is_late {
                true => self.ledger.warnings.add("late_tool_fragment"),
                false => self.ledger.warnings.add("tool_input_conflict"),
            }
        }
        if is_input_of_another {
            return;
        }
        match fragment.entry.arguments {
            Arguments::None => {}
            Arguments::Text(text) => self.note_progress(text.decoded_len(), text.is_blank()),
            Arguments::Json(raw) => self.note_progress(raw.len(), false),
        }
        if let Some(signature) = fragment.entry.signature {
            let placed = signature::placed(signature.place, &signature.text.decode());
            self.carry_signature(index, placed);
        }
    }

    pub(super) fn add_call(&mut self, mut call: Call) -> Result<usize, Error> {
        let index = self.calls.len();
        if index >= CALLS_MAX {
            return Err(Error::misbehaved("Upstream sent too many tool calls"));
        }
        let others = self.calls.iter().any(|call| call.state != CallState::LeftOut);
        if self.ledger.asked.one_tool_call && others {
            call.state = CallState::LeftOut;
            self.ledger.warnings.add("parallel_cut");
        } else {
            if let Some(hidden) = self.reasoning.hidden.take() {
                self.queue.push(Block::Thinking(Box::new(hidden)));
            }
            self.queue.push(Block::Tool(index));
        }
        self.calls.push(call);
        Ok(index)
    }

    /// Gemini refuses the result of a call whose signature does not come back. Ids must stay short,
    /// so a thinking block carries it: the one before the call if it has not been sent, else a new
    /// one after it.
    fn carry_signature(&mut self, index: usize, signature: String) {
        if !self.shows_thinking() && !self.ledger.asked.reasoning_returns {
            return;
        }
        self.held.kept = self.held.kept.saturating_add(signature.len());
        let field = self.reasoning.field.unwrap_or(Field::ReasoningContent);
        let is_last = matches!(self.queue.back(), Some(Block::Tool(at)) if *at == index);
        let fresh = self.calls.get(index).is_some_and(|call| call.state == CallState::Waiting);
        let shown = self.ledger.asked.thinking == Display::Shown;
        let thinking = match is_last && fresh {
            true => self.queue.thinking_before_back(field, shown),
            false => Some(self.thinking(field)),
        };
        if let Some(thinking) = thinking {
            thinking.calls.push((index, signature));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked::Tool;

    #[test]
    fn a_name_may_come_in_fragments_or_again() {
        let mut tools = Tools::default();
        for name in ["get_weather", "Read", "mcp__fs__Read_file", "Read_all"] {
            tools.push(Tool { outgoing: name.to_owned(), ..Tool::default() });
        }
        for (names, expected) in [
            (&["get_", "weather"] as &[&str], "get_weather"),
            (&["get_weather", "get_weather"], "get_weather"),
            (&["get_", "get_weather"], "get_weather"),
            (&["un", "known"], "unknown"),
            // A piece that is the name of another tool.
            (&["mcp__fs__", "Read", "_file"], "mcp__fs__Read_file"),
            (&["Read", "_all"], "Read_all"),
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
        // What follows a whole name is no part of it, whether or not a client has seen it.
        let mut call = Call { name: "get_weather".to_owned(), ..Call::default() };
        assert!(call.receive_name("_v2", &tools));
        assert_eq!(call.name, "get_weather");
    }
}
