//! Tool calls of the upstream, while they are put together.
//!
//! `list` has all of an answer. Which call a fragment belongs to is decided in `fragment`, and what their inputs say
//! in `tool_input`.

mod fragment;
mod list;
mod send;

use super::machine::Machine;
use super::queue::Block;
use super::tool_input::ToolInput;
use crate::carry::signature::{self, Field};
use crate::error::Error;
use crate::ids::Ids;
use crate::model::request_context::{Display, NAME_BYTES_MAX, Tools};
use crate::protocols::chat::wire::{Arguments, ToolCall};
use fragment::Fragment;
pub(super) use list::Calls;

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
    /// It may be a false start; it becomes a call once an input comes.
    pub(super) doubtful: bool,
    /// What the fragments after its first one say of it, while its input goes on.
    pub(super) pattern: FragmentPattern,
    /// The client's id, once it was needed.
    pub(super) client_id: Option<String>,
}

/// What fragments of a call repeat, by which one that begins another call can be known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FragmentPattern {
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

/// What a fragment's name says against the call that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contradiction {
    None,
    /// It is not the call's.
    Name,
    /// It is that of another tool, so the fragment's input is, too.
    OtherTool,
}

impl Call {
    /// Takes what a fragment says of it, and says whether its name is another one.
    fn receive(
        &mut self,
        fragment: &Fragment<'_>,
        tools: &Tools,
        scratch: &mut String,
    ) -> Contradiction {
        self.learn(fragment);
        self.key = self.key.or(fragment.key);
        if self.id.is_none() {
            self.id = fragment.id.as_deref().map(str::to_owned);
        }
        let mut contradiction = Contradiction::None;
        if let Some(name) = &fragment.name
            && self.receive_name(name, tools)
        {
            let is_other = tools.meant_by(name).is_some() && self.contradicts(name, tools);
            contradiction = if is_other { Contradiction::OtherTool } else { Contradiction::Name };
        }
        if contradiction != Contradiction::OtherTool {
            self.receive_input(fragment, scratch);
        }
        contradiction
    }

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
            self.pattern.other_ids |=
                id.is_some() && self.id.is_some() && self.id.as_deref() != id.as_deref();
            self.pattern.named |= name.is_some();
            self.pattern.nameless |= name.is_none();
        }
        self.pattern.other_indices |= key.is_some() && self.key.is_some() && self.key != *key;
    }

    /// Bytes of its id, name and input.
    fn held_bytes(&self) -> usize {
        let id = self.id.as_ref().map_or(0, String::len);
        id.saturating_add(self.name.len()).saturating_add(self.input.held_bytes())
    }

    /// The upstream's id; it is minted where the upstream gave none, and stays then. `index` is the position among
    /// the calls.
    fn upstream_id(&mut self, index: usize, ids: &Ids) -> &str {
        match (&self.id, self.minted.is_some()) {
            (Some(id), false) => id,
            _ => {
                let position = u32::try_from(index).unwrap_or(u32::MAX);
                self.minted.get_or_insert_with(|| ids.call(position))
            }
        }
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
            false => self.calls.find(&fragment, &self.record.context.tools),
        };
        let index = match found {
            Some(index) => index,
            None => {
                let doubtful = self.calls.last().is_some_and(|last| fragment.may_only_repeat(last));
                self.add_call(Call { key: fragment.key, legacy, doubtful, ..Call::default() })?
            }
        };
        if fragment.name.is_some() {
            self.calls.note_named(index);
        }
        self.extend_call(index, &fragment);
        Ok(())
    }

    /// Adds what a fragment says to the call at `index`.
    fn extend_call(&mut self, index: usize, fragment: &Fragment<'_>) {
        let Some(call) = self.calls.get(index) else { return };
        let is_late = call.state == CallState::Closed;
        if call.state == CallState::LeftOut {
            return;
        }
        let tools = &self.record.context.tools;
        let scratch = &mut self.scratch;
        let Some(contradiction) =
            self.calls.extend(index, |call| call.receive(fragment, tools, scratch))
        else {
            return;
        };
        if contradiction != Contradiction::None {
            self.record.warnings.add("tool_name_conflict");
        }
        let conflicts = self.calls.get_mut(index).map_or(0, |call| call.input.take_conflicts());
        for _ in 0..conflicts {
            match is_late {
                true => self.record.warnings.add("late_tool_fragment"),
                false => self.record.warnings.add("tool_input_conflict"),
            }
        }
        if contradiction == Contradiction::OtherTool {
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
        let others = self.calls.iter().any(|call| call.state != CallState::LeftOut);
        if self.record.context.one_tool_call && others {
            call.state = CallState::LeftOut;
            self.record.warnings.add("parallel_cut");
            return self.calls.push(call);
        }
        let index = self.calls.push(call)?;
        if let Some(hidden) = self.reasoning.hidden.take() {
            self.queue.push(Block::Thinking(Box::new(hidden)));
        }
        self.queue.push(Block::Tool(index));
        Ok(index)
    }

    /// Gemini refuses the result of a call whose signature does not come back. Ids must stay short,
    /// so a thinking block carries it: the one before the call if it has not been sent, else a new
    /// one after it. Of a whole answer none has been sent, and the first carries all: clients that make one block of
    /// several keep only one signature (RubyLLM the first, any-llm the last).
    fn carry_signature(&mut self, index: usize, signature: String) {
        if !self.shows_thinking() && !self.record.context.reasoning_returns {
            return;
        }
        self.reasoning.note_carried(signature.len());
        if self.whole
            && let Some(thinking) = self.queue.first_thinking()
        {
            return thinking.calls.push((index, signature));
        }
        let field = self.reasoning.field.unwrap_or(Field::ReasoningContent);
        let is_last = matches!(self.queue.back(), Some(Block::Tool(at)) if *at == index);
        let fresh = self.calls.get(index).is_some_and(|call| call.state == CallState::Waiting);
        let shown = self.record.context.thinking == Display::Shown;
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
mod tests;
