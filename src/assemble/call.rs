//! Tool call of the upstream, while its parts arrive.

use super::mend::InputMender;
use super::tool_input::ToolInput;
use crate::ids::Ids;
use crate::json_schema::input::ValidationBudget;
use crate::model::request_context::{NAME_BYTES_MAX, Tools};

/// Tool call of the upstream, while its parts arrive.
#[derive(Debug, Default)]
pub(crate) struct CallParts {
    /// Id of the call, as sent by the upstream.
    id: Option<String>,
    /// Id that Creole generated, because an id was needed before the upstream sent one.
    minted: Option<String>,
    /// Name of the tool, as sent by the upstream so far, perhaps only its start.
    name: String,
    input: ToolInput,
    /// Filter that removes members from the input while it is sent, if there may be any to remove.
    mender: Option<Box<InputMender>>,
    state: CallState,
    /// True if the call may be spurious: it becomes a real call only when an input arrives.
    doubtful: bool,
    /// Id of the call in the client's message, once an id was needed there.
    client_id: Option<String>,
}

/// Progress of sending a call to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallState {
    /// State: no part of the call was sent yet.
    #[default]
    Waiting,
    /// State: the start of the call's block was sent.
    Open,
    /// State: the whole block of the call was sent.
    Closed,
    /// State: the call was left out, and the client never sees it.
    LeftOut,
}

impl CallParts {
    /// Creates a tool call without an id, a name or an input. `doubtful`: the call may be spurious.
    pub(crate) fn new(doubtful: bool) -> Self {
        Self { doubtful, ..Self::default() }
    }

    /// Creates a call whose id and name are known, without an input.
    pub(crate) fn named(id: Option<String>, name: String) -> Self {
        Self { id, name, ..Self::default() }
    }

    /// Returns the id of the call that the upstream sent.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the name of the tool that the upstream sent, perhaps only its start.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn input(&self) -> &ToolInput {
        &self.input
    }

    pub(super) fn input_mut(&mut self) -> &mut ToolInput {
        &mut self.input
    }

    /// Returns the progress of sending the call to the client.
    pub(crate) fn state(&self) -> CallState {
        self.state
    }

    /// Returns true if the call may be spurious: it was created as doubtful, and no input has
    /// arrived.
    pub(super) fn may_be_none(&self) -> bool {
        self.doubtful && !self.input.has_text()
    }

    /// Records that the start of the call's block was sent.
    pub(super) fn open(&mut self) {
        debug_assert_eq!(self.state, CallState::Waiting);
        self.state = CallState::Open;
    }

    /// Sets the mender, which removes members from the input while it is sent.
    pub(super) fn set_mender(&mut self, mender: Option<InputMender>) {
        self.mender = mender.map(Box::new);
    }

    /// Returns the part of the input that can be sent now, mended, and counts this part as sent.
    #[inline]
    pub(super) fn send(&mut self, budget: &mut ValidationBudget) -> &str {
        let text = self.input.send();
        match &mut self.mender {
            Some(mender) => mender.push(text, budget),
            None => text,
        }
    }

    /// Returns the remainder of an input that was sent in part: the text that was not sent, and the
    /// text that the mender held.
    pub(super) fn send_rest(&mut self, budget: &mut ValidationBudget) -> (String, String) {
        let text = self.input.rest();
        match &mut self.mender {
            Some(mender) => (mender.push(text, budget).to_owned(), mender.rest().to_owned()),
            None => (text.to_owned(), String::new()),
        }
    }

    /// Returns the number of members that were removed from the input or unquoted since the last
    /// call of this function.
    #[inline]
    pub(super) fn take_mended(&mut self) -> u32 {
        self.mender.as_mut().map_or(0, |mender| mender.take_mended())
    }

    /// Records that the end of the call's block was sent.
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

    /// Sets the upstream's id of the call, unless it is known.
    pub(crate) fn receive_id(&mut self, id: Option<&str>) {
        if self.id.is_none() {
            self.id = id.map(str::to_owned);
        }
    }

    /// Adds the tool's name, or a fragment of the name. Returns true if the addition contradicts
    /// the name so far.
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
                // A client may have seen the call's complete name already.
                return true;
            }
            // A server that repeats a call's input from the start may repeat the name, too.
            self.name = if is_tool(name, tools) && !goes_on { name.to_owned() } else { joined };
        }
        false
    }

    /// Returns the call's tool name with `more` appended, or `None` if the joined name is longer
    /// than the name of any tool.
    fn name_with(&self, more: &str) -> Option<String> {
        let bytes = self.name.len().saturating_add(more.len());
        (bytes <= NAME_BYTES_MAX).then(|| format!("{}{more}", self.name))
    }

    /// Returns true if `name` belongs to another tool: it neither repeats nor continues this call's
    /// name.
    pub(crate) fn contradicts(&self, name: &str, tools: &Tools) -> bool {
        if self.name == name {
            return false;
        }
        let goes_on = self.name_with(name).is_some_and(|joined| begins_tool(&joined, tools));
        let meant = |name| tools.meant_by(name).map(|tool| &tool.outgoing);
        !goes_on && (meant(name).is_none() || meant(name) != meant(&self.name))
    }

    /// Adds a fragment of the input, escaped. `scratch` is only reused memory.
    pub(crate) fn receive_input(&mut self, raw: &str, scratch: &mut String) {
        self.input.receive(raw, scratch);
    }

    /// Sets an input that came as a JSON value and not as a string. `named`: the tool's name came
    /// with it.
    pub(crate) fn receive_json(&mut self, raw: &str, named: bool) {
        self.input.receive_json(raw, named);
    }

    /// Sets the whole input from a single string, escaped.
    pub(crate) fn receive_full_input(&mut self, raw: &str) {
        self.input.receive_full(raw);
    }

    /// Marks the input as plain text for a custom tool.
    pub(crate) fn set_custom(&mut self) {
        self.input.set_custom();
    }

    /// Returns the number of bytes of the call's id, name and input.
    pub(super) fn held_bytes(&self) -> usize {
        let id = self.id.as_ref().map_or(0, String::len);
        id.saturating_add(self.name.len()).saturating_add(self.input.held_bytes())
    }

    /// Returns the id of the call in the client's message, if an id was needed there already.
    pub(super) fn client_id(&self) -> Option<&str> {
        self.client_id.as_deref()
    }

    /// Sets the id of the call for the client.
    pub(super) fn set_client_id(&mut self, id: String) {
        self.client_id = Some(id);
    }

    /// Returns the id of the call for the upstream. If the upstream sent none, an id is generated
    /// once and kept. `index`: the call's position in the answer.
    pub(super) fn upstream_id(&mut self, index: usize, ids: &Ids) -> &str {
        match (&self.id, self.minted.is_some()) {
            (Some(id), false) => id,
            _ => {
                let position = u32::try_from(index).unwrap_or(u32::MAX);
                self.minted.get_or_insert_with(|| ids.call(position))
            }
        }
    }

    /// Returns true if the call's name belongs to a tool and cannot be the start of a longer tool
    /// name.
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
