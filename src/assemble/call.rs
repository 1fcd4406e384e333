//! A tool call of the upstream, while it is put together.

use super::mend::Mender;
use super::tool_input::ToolInput;
use crate::ids::Ids;
use crate::json_schema::input::Budget;
use crate::model::request_context::{NAME_BYTES_MAX, Tools};

/// One tool call of the upstream.
#[derive(Debug, Default)]
pub(crate) struct Call {
    /// The upstream's id.
    id: Option<String>,
    /// The id that was minted because the upstream had given none when one was needed.
    minted: Option<String>,
    /// The upstream's name of the tool, perhaps only its start.
    name: String,
    input: ToolInput,
    /// Mends the input while it is sent, if there may be something to mend.
    mender: Option<Box<Mender>>,
    state: CallState,
    /// It may be a false start; it becomes a call once an input comes.
    doubtful: bool,
    /// The client's id, once it was needed.
    client_id: Option<String>,
}

/// What the client has seen of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallState {
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
    /// A call of which nothing is known yet. `doubtful`: it may be a false start.
    pub(crate) fn new(doubtful: bool) -> Self {
        Self { doubtful, ..Self::default() }
    }

    /// A call of which all is known but its input.
    pub(crate) fn named(id: Option<String>, name: String) -> Self {
        Self { id, name, ..Self::default() }
    }

    /// The upstream's id.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The upstream's name of the tool, perhaps only its start.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn input(&self) -> &ToolInput {
        &self.input
    }

    pub(super) fn input_mut(&mut self) -> &mut ToolInput {
        &mut self.input
    }

    /// What the client has seen of it.
    pub(crate) fn state(&self) -> CallState {
        self.state
    }

    /// Whether nothing but a start has come that may be a false one.
    pub(super) fn may_be_none(&self) -> bool {
        self.doubtful && !self.input.has_text()
    }

    /// The start of its block is sent.
    pub(super) fn open(&mut self) {
        debug_assert_eq!(self.state, CallState::Waiting);
        self.state = CallState::Open;
    }

    /// Its input is mended while it is sent.
    pub(super) fn set_mender(&mut self, mender: Option<Mender>) {
        self.mender = mender.map(Box::new);
    }

    /// What can be sent of the input at once.
    #[inline]
    pub(super) fn send(&mut self, budget: &mut Budget) -> &str {
        let text = self.input.send();
        match &mut self.mender {
            Some(mender) => mender.push(text, budget),
            None => text,
        }
    }

    /// What has not been sent of an input of which some was, in two parts.
    pub(super) fn send_rest(&mut self, budget: &mut Budget) -> (String, String) {
        let text = self.input.rest();
        match &mut self.mender {
            Some(mender) => (mender.push(text, budget).to_owned(), mender.rest().to_owned()),
            None => (text.to_owned(), String::new()),
        }
    }

    /// How many members of the input were mended since the last call.
    #[inline]
    pub(super) fn take_mended(&mut self) -> u32 {
        self.mender.as_mut().map_or(0, |mender| mender.take_mended())
    }

    /// All of its block is sent.
    pub(super) fn close(&mut self) {
        self.state = CallState::Closed;
    }

    /// The client never sees it.
    pub(super) fn leave_out(&mut self) {
        self.state = CallState::LeftOut;
    }

    /// Swaps the inputs of two calls.
    pub(super) fn swap_inputs(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.input, &mut other.input);
    }

    /// Takes the upstream's id, unless one is known.
    pub(crate) fn receive_id(&mut self, id: Option<&str>) {
        if self.id.is_none() {
            self.id = id.map(str::to_owned);
        }
    }

    /// Takes a name, which may be a fragment of one. Says whether it contradicts what is known.
    pub(crate) fn receive_name(&mut self, name: &str, tools: &Tools) -> bool {
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
    pub(crate) fn contradicts(&self, name: &str, tools: &Tools) -> bool {
        if self.name == name {
            return false;
        }
        let goes_on = self.name_with(name).is_some_and(|joined| begins_tool(&joined, tools));
        let meant = |name| tools.meant_by(name).map(|tool| &tool.outgoing);
        !goes_on && (meant(name).is_none() || meant(name) != meant(&self.name))
    }

    /// Takes more of the input, escaped. `scratch` is only reused memory.
    pub(crate) fn receive_input(&mut self, raw: &str, scratch: &mut String) {
        self.input.receive(raw, scratch);
    }

    /// Takes an input that is a JSON value and not a text; `named`: the tool's name came with it.
    pub(crate) fn receive_json(&mut self, raw: &str, named: bool) {
        self.input.receive_json(raw, named);
    }

    /// Takes all of the input in one text, escaped.
    pub(crate) fn receive_full_input(&mut self, raw: &str) {
        self.input.receive_full(raw);
    }

    /// The input is text for a custom tool.
    pub(crate) fn set_custom(&mut self) {
        self.input.set_custom();
    }

    /// Bytes of its id, name and input.
    pub(super) fn held_bytes(&self) -> usize {
        let id = self.id.as_ref().map_or(0, String::len);
        id.saturating_add(self.name.len()).saturating_add(self.input.held_bytes())
    }

    /// The client's id, once it was needed.
    pub(super) fn client_id(&self) -> Option<&str> {
        self.client_id.as_deref()
    }

    /// The client knows it by this id from now on.
    pub(super) fn set_client_id(&mut self, id: String) {
        self.client_id = Some(id);
    }

    /// The upstream's id; it is minted where the upstream gave none, and stays then. `index` is the position among
    /// the calls.
    pub(super) fn upstream_id(&mut self, index: usize, ids: &Ids) -> &str {
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

#[cfg(test)]
mod tests;
