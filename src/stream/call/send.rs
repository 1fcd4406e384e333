//! Calls to the client: their ids, starts, inputs and ends, and which of them it does not get.

use super::{Call, CallState, Calls};
use crate::config::InvalidToolCall;
use crate::json;
use crate::json_schema::input as tool_schema;
use crate::stream::machine::Machine;
use crate::stream::sink::ToolUse;
use crate::stream::tool_input::Input;
use crate::text::bare_json;

impl Machine {
    /// The client's id of a call.
    pub(crate) fn client_id(&mut self, index: usize) -> String {
        self.calls.client_id(index, &self.record.ids)
    }

    pub(crate) fn open_tool(&mut self, index: usize, out: &mut Vec<u8>) {
        let Some(call) = self.calls.get_mut(index) else { return };
        if call.state != CallState::Waiting {
            return;
        }
        call.state = CallState::Open;
        let id = self.client_id(index);
        let Some(call) = self.calls.get_mut(index) else { return };
        let (name, toolset) = match self.record.context.tools.meant_by(&call.name) {
            Some(tool) => {
                if tool.outgoing != call.name {
                    self.record.warnings.add("tool_name_repaired");
                }
                (&tool.name, tool.toolset)
            }
            None => {
                self.record.warnings.add("tool_unknown");
                (&call.name, None)
            }
        };
        self.record.progress.open_block(true);
        self.record.report.tool_calls = self.record.report.tool_calls.saturating_add(1);
        self.sink.open_tool(&ToolUse { id: &id, name, toolset }, out);
    }

    pub(crate) fn send_input(&mut self, index: usize, out: &mut Vec<u8>) {
        if let Some(call) = self.calls.get_mut(index)
            && call.state == CallState::Open
        {
            self.sink.input(call.input.send(), out);
        }
    }

    /// The call is complete, or as complete as it gets.
    pub(crate) fn finish_tool(&mut self, index: usize, out: &mut Vec<u8>) {
        // A call without arguments is complete if the model went on after it.
        let is_last = |call: &Call| call.input.has_text() || !self.goes_on(index);
        let cut_off = self.outcome.is_cut_off() && self.calls.get(index).is_some_and(is_last);
        let Some(call) = self.calls.get_mut(index) else { return };
        let mut input = call.input.finish(cut_off);
        for _ in 0..call.input.take_conflicts() {
            self.record.warnings.add("tool_input_conflict");
        }
        let repaired = match &input {
            Input::Object(object) => self.repaired(index, object),
            Input::Invalid => self.escaped(index),
            Input::CutOff => None,
        };
        if let Some(object) = repaired {
            input = Input::Object(object);
            self.record.warnings.add("tool_input_repaired");
        }
        if self.leaves_out(index, &input) {
            if let Some(call) = self.calls.get_mut(index) {
                call.state = CallState::LeftOut;
            }
            return;
        }
        self.open_tool(index, out);
        self.send_end(index, &input, out);
    }

    /// The input of a call as it is sent, where it is not as the model wrote it.
    pub(crate) fn repaired(&mut self, index: usize, object: &str) -> Option<String> {
        let call = self.calls.get(index).filter(|call| self.may_repair(call))?;
        let tool = self.record.context.tools.meant_by(&call.name);
        let schema = tool.and_then(|tool| tool.schema.as_deref());
        let without_id = without_id_echo(object, schema, &self.calls);
        let object = without_id.as_deref().unwrap_or(object);
        let budget = &mut self.calls.schema_budget;
        let unquoted = schema
            .filter(|schema| !tool_schema::fits(schema, object, budget))
            .and_then(|schema| tool_schema::unquoted(schema, object, budget));
        unquoted.or(without_id)
    }

    /// The input of a call that is an object but for bare control characters, repaired.
    fn escaped(&mut self, index: usize) -> Option<String> {
        let call = self.calls.get(index).filter(|call| self.may_repair(call))?;
        let object = bare_json::all_escaped(call.input.rest())?;
        Some(self.repaired(index, &object).unwrap_or(object))
    }

    fn may_repair(&self, call: &Call) -> bool {
        self.record.rules.invalid == InvalidToolCall::Repair && !call.input.is_sent()
    }

    /// Judges a call and notes what is wrong with it; says whether the client does not get it.
    fn leaves_out(&mut self, index: usize, input: &Input) -> bool {
        let Some(call) = self.calls.get(index) else { return false };
        let tool = self.record.context.tools.meant_by(&call.name);
        let waits = call.state == CallState::Waiting;
        let refused = self.outcome.is_refusal();
        let unseen = self.is_buffered() || refused && waits;
        // A refusal has no call that the model could mend.
        let cut_off = unseen && (*input == Input::CutOff || refused && *input == Input::Invalid);
        let invalid = !cut_off && *input == Input::Invalid;
        if invalid {
            self.record.warnings.add("tool_input_invalid");
        }
        let mut violates = false;
        if let (true, Input::Object(object)) = (self.record.rules.checks_inputs, input) {
            let schema = tool.and_then(|tool| tool.schema.as_deref());
            let budget = &mut self.calls.schema_budget;
            violates = schema.is_some_and(|schema| !tool_schema::fits(schema, object, budget));
            if violates {
                self.record.warnings.add("tool_input_violates_schema");
            }
        }
        let is_known = tool.is_some();
        let held = self.record.rules.invalid == InvalidToolCall::Hold
            && waits
            && (!is_known || violates || invalid);
        self.calls.left_out_invalid |= held;
        if cut_off {
            self.record.warnings.add("tool_call_cut_off");
        } else if held && is_known {
            self.record.warnings.add("tool_call_withheld");
        } else if held {
            self.record.warnings.add("tool_unknown");
        }
        cut_off || held
    }

    /// Sends what of the input was not sent, and the end of the block.
    fn send_end(&mut self, index: usize, input: &Input, out: &mut Vec<u8>) {
        let Some(call) = self.calls.get_mut(index) else { return };
        match input {
            _ if call.input.is_sent() => self.sink.input(call.input.rest(), out),
            Input::Object(object) => self.sink.input(object, out),
            // A text that does not begin as an object means nothing to a client.
            Input::CutOff if call.input.rest().starts_with('{') => {
                self.sink.input(call.input.rest(), out);
            }
            Input::CutOff => {}
            Input::Invalid => {
                let mut object = b"{\"INVALID_JSON\":".to_vec();
                json::quote(&mut object, call.input.rest());
                object.push(b'}');
                self.sink.input(std::str::from_utf8(&object).unwrap_or_default(), out);
            }
        }
        call.state = CallState::Closed;
        self.sink.close_tool(out);
    }
}

/// `object` without a member `id` that repeats a tool id. n8n adds one to each input in its history,
/// and models imitate it. So it is left out even if no schema is known: nothing else has such a value. `None`
/// where there is nothing to repair.
fn without_id_echo(object: &str, schema: Option<&str>, calls: &Calls) -> Option<String> {
    tool_schema::without_id(object, schema, &|value| {
        let id = value.decode();
        calls.is_id(&id) || id.starts_with("toolu_")
    })
}
