//! Tool calls of the upstream, while they are put together.
//!
//! Fragments name their call by index, by id, or not at all; see [`Machine::take_call`]. What their
//! inputs say is decided in `tool_input`.

use super::machine::{Block, Machine};
use super::thinking::Thinking;
use super::tool_input::{Compared, ToolInput};
use crate::asked::{self, Tools};
use crate::error::Error;
use crate::openai::{Arguments, ToolCall};
use crate::translate::signature::Field;

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
    /// What the fragments after its first one say of it, while its input goes on.
    pub(super) habit: Habit,
    /// The client's id, once it was needed.
    pub(super) client_id: Option<String>,
    /// The block, once it began: the client's name, and the toolset.
    pub(super) block: Option<(String, Option<&'static str>)>,
}

/// What fragments of a call repeat, by which one that begins another call can be known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Habit {
    /// One had another id, so another id says nothing.
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
            let joined = format!("{}{name}", self.name);
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

    /// Whether `name` is neither the name again nor more of it, so that it is another tool's.
    fn contradicts(&self, name: &str, tools: &Tools) -> bool {
        if self.name == name {
            return false;
        }
        let joined = format!("{}{name}", self.name);
        let meant = |name| tools.meant_by(name).map(|tool| &tool.outgoing);
        !begins_tool(&joined, tools) && (meant(name).is_none() || meant(name) != meant(&self.name))
    }

    /// Whether its input is not complete, and goes on with that of `entry`.
    fn takes_more(&self, entry: &ToolCall<'_>) -> bool {
        let input = &self.input;
        !input.is_object()
            && match entry.arguments {
                Arguments::None => true,
                // What begins as an object may be another call's first fragment, unless indices say nothing.
                Arguments::Text(text) if self.habit.other_indices => {
                    !input.excludes(&text.decode())
                }
                Arguments::Text(text) => !input.has_text() || input.goes_on_with(&text.decode()),
                Arguments::Json(_) => !input.has_text(),
            }
    }

    /// What `entry` has to say to an input that is complete; `None` while it is not.
    fn compare(&self, entry: &ToolCall<'_>) -> Option<Compared> {
        self.input.is_object().then(|| match entry.arguments {
            Arguments::None => Compared::Nothing,
            Arguments::Text(text) => self.input.compare(&text.decode()),
            Arguments::Json(raw) => self.input.compare(raw),
        })
    }

    /// Notes what a fragment repeats, unless it is the first one or comes after the input.
    fn learn(&mut self, id: Option<&str>, name: Option<&str>) {
        if self.name.is_empty() || self.input.is_object() {
            return;
        }
        self.habit.other_ids |= id.is_some() && self.id.is_some() && self.id.as_deref() != id;
        self.habit.named |= name.is_some();
        self.habit.nameless |= name.is_none();
    }

    /// Whether its input is complete, and `entry` has nothing but white space or the same once more.
    fn is_only_repeated(&self, entry: &ToolCall<'_>) -> bool {
        matches!(self.compare(entry), Some(Compared::Nothing | Compared::Same))
    }

    /// Whether an entry with the call's name begins another one, since no fragment had it again.
    fn is_named_anew(&self, entry: &ToolCall<'_>) -> bool {
        let Habit { named, nameless, .. } = self.habit;
        nameless && !named && self.compare(entry) != Some(Compared::Same)
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
    /// A call, or a fragment of one. `whole`: entries of a whole answer are calls of their own.
    pub(super) fn take_call(
        &mut self,
        choice: u64,
        entry: &ToolCall<'_>,
        whole: bool,
        legacy: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if entry.is_empty() {
            return Ok(());
        }
        if let Some(filter) = &mut self.filter {
            // What was held back as it could become a call is text after all.
            let pieces = filter.release();
            self.take_pieces(pieces, out)?;
            if self.cut_at.is_some() {
                return Ok(());
            }
        }
        let id = entry.id.map(|id| id.decode());
        let name = entry.name.map(|name| name.decode());
        let found = if legacy {
            self.calls.iter().rposition(|call| call.legacy)
        } else {
            self.find_call(choice, entry, id.as_deref(), name.as_deref())
        };
        let found = found.filter(|at| {
            let call = self.calls.get(*at);
            call.is_some_and(|it| !self.is_another(*at, it, entry, id.as_deref(), name.as_deref()))
        });
        // Some servers send both forms, one after the other.
        let is_twin = |call: &Call| {
            call.legacy && name.as_deref() == Some(&call.name) && call.is_only_repeated(entry)
        };
        let found = found.or_else(|| self.calls.iter().rposition(|it| !legacy && is_twin(it)));
        let index = match found {
            Some(index) if !whole => index,
            _ => {
                let key = entry.index.map(|index| (choice, index));
                self.add_call(Call { key, legacy, ..Call::default() })?
            }
        };
        if name.is_some() {
            self.named_in_list.push(index);
        }
        let Some(call) = self.calls.get_mut(index) else { return Ok(()) };
        if call.state == CallState::LeftOut {
            return Ok(());
        }
        call.learn(id.as_deref(), name.as_deref());
        let key = entry.index.map(|index| (choice, index)).filter(|_| !legacy);
        call.habit.other_indices |= key.is_some() && call.key.is_some() && call.key != key;
        call.key = call.key.or(key);
        if call.id.is_none() {
            call.id = id.map(std::borrow::Cow::into_owned);
            let bytes = call.id.as_ref().map_or(0, String::len);
            self.held.kept = self.held.kept.saturating_add(bytes);
        }
        let is_named = name.as_ref().is_some_and(|name| !name.is_empty());
        if let Some(name) = name {
            let before = call.name.len();
            let tools = &self.asked.tools;
            if call.receive_name(&name, tools) {
                self.warnings.add("tool_name_conflict");
                if tools.meant_by(&name).is_some() && call.contradicts(&name, tools) {
                    // The input is for that tool.
                    return Ok(());
                }
            }
            let more = call.name.len().saturating_sub(before);
            self.held.kept = self.held.kept.saturating_add(more);
        }
        let before = call.input.held_bytes();
        if entry.custom {
            call.input.set_custom();
        }
        match entry.arguments {
            Arguments::None => {}
            Arguments::Text(text) => call.input.receive(text.raw(), &mut self.scratch),
            Arguments::Json(raw) => call.input.receive_json(raw, is_named),
        }
        let conflicts = call.input.take_conflicts();
        let is_late = call.state == CallState::Closed;
        let after = call.input.held_bytes();
        self.held.inputs = self.held.inputs.saturating_sub(before).saturating_add(after);
        for _ in 0..conflicts {
            self.warnings.add(if is_late { "late_tool_fragment" } else { "tool_input_conflict" });
        }
        match entry.arguments {
            Arguments::None => {}
            Arguments::Text(text) => self.count(text.raw()),
            Arguments::Json(raw) => self.count(raw),
        }
        if let Some(signature) = entry.signature {
            let text = signature.text.decode();
            let signature = match signature.place.name() {
                "" => text.into_owned(),
                place => [place, "\0", &*text].concat(),
            };
            self.carry_signature(index, signature);
        }
        Ok(())
    }

    /// The call that a fragment belongs to, if it is one that is known.
    fn find_call(
        &self,
        choice: u64,
        entry: &ToolCall<'_>,
        id: Option<&str>,
        name: Option<&str>,
    ) -> Option<usize> {
        let by_index =
            |index| self.calls.iter().rposition(|call| call.key == Some((choice, index)));
        if let Some(at) = entry.index.and_then(by_index) {
            return Some(at);
        }
        let known =
            id.and_then(|id| self.calls.iter().rposition(|call| call.id.as_deref() == Some(id)));
        let last = self.calls.len().checked_sub(1)?;
        if entry.index.is_some() {
            // An index that is new names a new call, unless it came late or has changed.
            let at = known.unwrap_or(last);
            let call = self.calls.get(at)?;
            let joins = match known {
                // Some servers give every call the same id.
                Some(_) => name.is_none_or(|name| {
                    call.key.is_none()
                        || call.takes_more(entry) && !call.contradicts(name, &self.asked.tools)
                }),
                None => id.is_none() && name.is_none() && call.takes_more(entry),
            };
            return joins.then_some(at);
        }
        match (known, id, name) {
            (Some(at), ..) => Some(at),
            // Some servers leave out index 0: a fragment without an index belongs to the call without
            // one.
            (None, None, None) => {
                let bare = |call: &Call| call.key.is_none() && !call.legacy;
                Some(self.calls.iter().rposition(bare).unwrap_or(last))
            }
            // An id that changes with each fragment, or nothing but the name.
            _ if self.continues(self.calls.get(last)?, entry, id, name) => Some(last),
            _ => None,
        }
    }

    /// Whether a fragment without an index, and whose id is not known, continues the last call.
    fn continues(
        &self,
        last: &Call,
        entry: &ToolCall<'_>,
        id: Option<&str>,
        name: Option<&str>,
    ) -> bool {
        let Habit { other_ids, named, .. } = last.habit;
        let is_end = |habit: bool| habit && last.is_only_repeated(entry);
        let Some(name) = name else {
            let is_open = !last.input.is_object() || last.input.is_placeholder();
            return is_open || is_end(other_ids);
        };
        if last.name != name {
            return false;
        }
        match (id, &last.id) {
            (None, None) if is_end(named) => true,
            (Some(_), _) if is_end(other_ids) => true,
            // A name alone, twice, is two calls without arguments.
            (None, None) => {
                !last.input.is_object()
                    && (entry.arguments != Arguments::None || last.input.has_text())
            }
            // A server that gives ids gives each call its own.
            (None, Some(_)) => last.compare(entry) != Some(Compared::Other),
            (Some(_), _) => {
                let goes_on =
                    |text: &str| last.input.goes_on_with(text) && !last.input.excludes(text);
                !last.input.is_object()
                    && matches!(entry.arguments, Arguments::Text(text) if goes_on(&text.decode()))
            }
        }
    }

    /// Whether a fragment that names the call at `at`, or goes on with it, begins another one. Some
    /// servers number every call 0, and some give every call the same id, or none. Then a name
    /// tells calls apart, but only once the call before has all of its input, or none at all.
    fn is_another(
        &self,
        at: usize,
        call: &Call,
        entry: &ToolCall<'_>,
        id: Option<&str>,
        name: Option<&str>,
    ) -> bool {
        let Some(name) = name.filter(|_| !call.name.is_empty()) else { return false };
        let tools = &self.asked.tools;
        let are_tools = || tools.meant_by(name).is_some() && tools.meant_by(&call.name).is_some();
        let other_name = call.contradicts(name, tools);
        if self.named_in_list.contains(&at) && (call.input.has_text() || other_name || are_tools())
        {
            return true;
        }
        // An id that repeats the name says nothing.
        let id = id.filter(|id| *id != name);
        let known = call.id.as_deref().filter(|id| *id != call.name);
        let other_id = id.is_some() && known.is_some() && known != id;
        let goes_on = || matches!(entry.arguments, Arguments::Text(text) if call.input.goes_on_with(&text.decode()));
        if !call.input.is_object() && (!call.input.may_be_object() || goes_on()) {
            let excludes = || matches!(entry.arguments, Arguments::Text(text) if call.input.excludes(&text.decode()));
            return match other_name {
                true => are_tools() || other_id && !call.input.has_text(),
                false => other_id && excludes(),
            };
        }
        let no_ids = id.is_none() && known.is_none();
        other_name
            || other_id && !(call.habit.other_ids && call.is_only_repeated(entry))
            || no_ids && (call.compare(entry) == Some(Compared::Other) || call.is_named_anew(entry))
    }

    pub(super) fn add_call(&mut self, mut call: Call) -> Result<usize, Error> {
        let index = self.calls.len();
        if index >= CALLS_MAX {
            return Err(Error::misbehaved("Upstream sent too many tool calls"));
        }
        let others = self.calls.iter().any(|call| call.state != CallState::LeftOut);
        if self.asked.one_tool_call && others {
            call.state = CallState::LeftOut;
            self.warnings.add("parallel_cut");
        } else {
            if let Some(hidden) = self.reasoning.hidden.take() {
                self.queue.push_back(Block::Thinking(Box::new(hidden)));
            }
            self.queue.push_back(Block::Tool(index));
        }
        self.calls.push(call);
        Ok(index)
    }

    /// Gemini refuses the result of a call whose signature does not come back. Ids must stay short,
    /// so a thinking block carries it: the one before the call if it has not been sent, else a new
    /// one after it.
    fn carry_signature(&mut self, index: usize, signature: String) {
        if !self.shows_thinking() && !self.asked.reasoning_returns {
            return;
        }
        self.held.kept = self.held.kept.saturating_add(signature.len());
        let field = self.reasoning.field.unwrap_or(Field::ReasoningContent);
        let last = self.queue.len().checked_sub(1);
        let is_last = matches!(self.queue.back(), Some(Block::Tool(at)) if *at == index);
        let fresh = self.calls.get(index).is_some_and(|call| call.state == CallState::Waiting);
        if let Some(at) = last.filter(|_| is_last && fresh) {
            let before = at.checked_sub(1).and_then(|at| self.queue.get_mut(at));
            if let Some(Block::Thinking(thinking)) = before {
                return thinking.calls.push((index, signature));
            }
            let shown = self.asked.thinking == asked::Thinking::Shown;
            let mut thinking = Thinking::new(field, shown);
            thinking.calls.push((index, signature));
            return self.queue.insert(at, Block::Thinking(Box::new(thinking)));
        }
        self.thinking(field).calls.push((index, signature));
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
