//! A tool call of the upstream, while it is put together.

use super::mend::Mender;
use super::tool_input::ToolInput;
use crate::ids::Ids;
use crate::json_schema::input::Budget;
use crate::model::request_context::{NAME_BYTES_MAX, Tools};

/// Tool call of the upstream, while it is put together.
#[derive(Debug, Default)]
pub(crate) struct Call {
    /// Upstream's id of the call.
    id: Option<String>,
    /// Id that was minted because the upstream had given none when one was needed.
    minted: Option<String>,
    /// Upstream's name of the tool, perhaps only its start.
    name: String,
    input: ToolInput,
    /// Mender of the input while it is sent, if there may be something to mend.
    mender: Option<Box<Mender>>,
    state: CallState,
    /// True if the call may be a false start; it becomes a call once an input comes.
    doubtful: bool,
    /// Client's id of the call, once it was needed.
    client_id: Option<String>,
}

/// Part of a call that the client has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallState {
    /// Call of which nothing was sent yet.
    #[default]
    Waiting,
    /// Call whose block was started.
    Open,
    /// Call whose block was sent to its end.
    Closed,
    /// Call that the client never sees.
    LeftOut,
}

impl Call {
    /// Creates a call without an id, a name or an input. `doubtful`: it may be a false start.
    pub(crate) fn new(doubtful: bool) -> Self {
        Self { doubtful, ..Self::default() }
    }

    /// Creates a call of which everything is known except its input.
    pub(crate) fn named(id: Option<String>, name: String) -> Self {
        Self { id, name, ..Self::default() }
    }

    /// Returns the upstream's id of the call.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the upstream's name of the tool, perhaps only its start.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn input(&self) -> &ToolInput {
        &self.input
    }

    pub(super) fn input_mut(&mut self) -> &mut ToolInput {
        &mut self.input
    }

    /// Returns the part of the call that the client has seen.
    pub(crate) fn state(&self) -> CallState {
        self.state
    }

    /// Returns true if the call may be a false start: it is doubtful, and no input has come.
    pub(super) fn may_be_none(&self) -> bool {
        self.doubtful && !self.input.has_text()
    }

    /// Notes that the start of the call's block is sent.
    pub(super) fn open(&mut self) {
        debug_assert_eq!(self.state, CallState::Waiting);
        self.state = CallState::Open;
    }

    /// Sets the mender, which mends the input while it is sent.
    pub(super) fn set_mender(&mut self, mender: Option<Mender>) {
        self.mender = mender.map(Box::new);
    }

    /// Returns the part of the input that can be sent now, mended, and counts it as sent.
    #[inline]
    pub(super) fn send(&mut self, budget: &mut Budget) -> &str {
        let text = self.input.send();
        match &mut self.mender {
            Some(mender) => mender.push(text, budget),
            None => text,
        }
    }

    /// Returns the rest of an input that was sent in part: the text that was not sent, and the text
    /// that the mender held.
    pub(super) fn send_rest(&mut self, budget: &mut Budget) -> (String, String) {
        let text = self.input.rest();
        match &mut self.mender {
            Some(mender) => (mender.push(text, budget).to_owned(), mender.rest().to_owned()),
            None => (text.to_owned(), String::new()),
        }
    }

    /// Returns the number of members of the input that were mended since the last call.
    #[inline]
    pub(super) fn take_mended(&mut self) -> u32 {
        self.mender.as_mut().map_or(0, |mender| mender.take_mended())
    }

    /// Notes that the end of the call's block is sent.
    pub(super) fn close(&mut self) {
        self.state = CallState::Closed;
    }

    /// Marks the call as one that the client never sees.
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

    /// Takes a name, which may be a fragment of one. Returns true if it contradicts the name so
    /// far.
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

    /// Returns the name with `more` behind it, or `None` if that is longer than any tool's name.
    fn name_with(&self, more: &str) -> Option<String> {
        let bytes = self.name.len().saturating_add(more.len());
        (bytes <= NAME_BYTES_MAX).then(|| format!("{}{more}", self.name))
    }

    /// Returns true if `name` is another tool's: neither the name again nor more of it.
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

    /// Marks the input as the text for a custom tool.
    pub(crate) fn set_custom(&mut self) {
        self.input.set_custom();
    }

    /// Returns the number of bytes of the call's id, name and input.
    pub(super) fn held_bytes(&self) -> usize {
        let id = self.id.as_ref().map_or(0, String::len);
        id.saturating_add(self.name.len()).saturating_add(self.input.held_bytes())
    }

    /// Returns the client's id of the call, once it was needed.
    pub(super) fn client_id(&self) -> Option<&str> {
        self.client_id.as_deref()
    }

    /// Sets the client's id of the call.
    pub(super) fn set_client_id(&mut self, id: String) {
        self.client_id = Some(id);
    }

    /// Returns the upstream's id of the call. If the upstream gave none, an id is minted once and
    /// stays. `index`: the call's position in the answer.
    pub(super) fn upstream_id(&mut self, index: usize, ids: &Ids) -> &str {
        match (&self.id, self.minted.is_some()) {
            (Some(id), false) => id,
            _ => {
                let position = u32::try_from(index).unwrap_or(u32::MAX);
                self.minted.get_or_insert_with(|| ids.call(position))
            }
        }
    }

    /// Returns true if the name is a tool's and cannot be the start of a longer one.
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

/// Returns true if a tool's name begins with `start`.
fn begins_tool(start: &str, tools: &Tools) -> bool {
    tools.iter().any(|tool| tool.outgoing.starts_with(start))
}

#[cfg(test)]
mod tests;
