//! Tool calls of one answer, with their ids and faults.

use super::call::{CallParts, CallState};
use super::mend::InputMender;
use super::progress::BlockProgress;
use super::tool_input::FinalInput;
use crate::answer::ReaderOutput;
use crate::carry::tool_id;
use crate::config::InvalidToolCall;
use crate::error::Error;
use crate::ids::Ids;
use crate::json;
use crate::json_schema::input::{self as tool_schema, ValidationBudget};
use crate::model::event::{CallKind, CallStart, Event};
use crate::model::own_tool::OwnTool;
use crate::model::stop_reason;
use crate::text::bare_json;
use crate::text::names::NameSet;

/// Maximum number of calls in an answer. No upstream accepts more in a request, so a longer history
/// could not be sent back.
const CALLS_MAX: usize = 1024;

/// Maximum number of bytes of a call's input that a thinking block carries. Clients keep the block,
/// and send it with every request.
const CARRIED_BYTES_MAX: usize = 8 << 10;

/// Facts about the end of an answer that decide how its incomplete calls are treated.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BrokenOff {
    /// True if a length limit or a filter ended the answer, and not the model.
    pub(crate) is_cut_off: bool,
    /// True if the answer is a refusal.
    pub(crate) is_refusal: bool,
}

impl BrokenOff {
    /// Reads from the upstream's finish reason if the answer was cut off, and if it is a refusal.
    pub(crate) fn of(word: Option<&str>) -> Self {
        let Some(word) = word else { return Self::default() };
        Self {
            is_cut_off: stop_reason::is_cut_off(word),
            is_refusal: stop_reason::is_refusal(word),
        }
    }
}

/// Tool calls of an answer, in order of arrival.
#[derive(Debug)]
pub(crate) struct Calls {
    list: Vec<CallParts>,
    /// Ids that the client uses for calls in the history and in this answer.
    ids_used: NameSet<'static>,
    /// Number of bytes of the calls' ids, names and inputs.
    held_bytes: usize,
    left_out: LeftOut,
    /// Budget for validating inputs against the schemas of their tools.
    schema_budget: ValidationBudget,
    mend_budget: ValidationBudget,
}

/// Reasons why calls of an answer were left out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut {
    /// True if a call was left out by the setting `invalid_tool_call: hold`, or because it never
    /// got a name.
    pub(crate) invalid: bool,
    /// True if a call was left out because a guard withheld its tool.
    pub(crate) by_guard: bool,
    /// True if a call of a tool that Creole runs was left out in the last round of the answer.
    pub(crate) own: bool,
}

impl Calls {
    /// Creates an empty list of calls. `ids_used`: the client's ids of calls in the history.
    pub(super) fn new(ids_used: NameSet<'static>) -> Self {
        Self {
            list: Vec::new(),
            ids_used,
            held_bytes: 0,
            left_out: LeftOut::default(),
            schema_budget: ValidationBudget::default(),
            mend_budget: ValidationBudget::default(),
        }
    }

    /// Returns all calls of the answer, including those that were left out.
    pub(crate) fn all(&self) -> &[CallParts] {
        &self.list
    }

    pub(super) fn get(&self, index: usize) -> Option<&CallParts> {
        self.list.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut CallParts> {
        self.list.get_mut(index)
    }

    /// Returns the reasons why calls of the answer were left out.
    pub(crate) fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Returns the number of bytes of all calls that are kept in memory.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Adds a call and returns its position.
    pub(super) fn push(&mut self, call: CallParts) -> Result<usize, Error> {
        let index = self.list.len();
        if index >= CALLS_MAX {
            return Err(Error::misbehaved("Upstream sent too many tool calls"));
        }
        self.held_bytes = self.held_bytes.saturating_add(call.held_bytes());
        self.list.push(call);
        Ok(index)
    }

    /// Lets the function `change` add data to the call at `index`.
    pub(super) fn extend<T>(
        &mut self,
        index: usize,
        change: impl FnOnce(&mut CallParts) -> T,
    ) -> Option<T> {
        let call = self.list.get_mut(index)?;
        let before = call.held_bytes();
        let result = change(call);
        debug_assert!(self.held_bytes >= before, "bytes of a call were not counted");
        self.held_bytes = self.held_bytes.saturating_sub(before).saturating_add(call.held_bytes());
        Some(result)
    }

    fn leave_out(&mut self, index: usize) {
        if let Some(call) = self.list.get_mut(index) {
            call.leave_out();
        }
    }

    /// Leaves out the call at `index`, which never got a name: a client cannot run a call without a
    /// name.
    pub(super) fn leave_out_nameless(&mut self, index: usize) {
        self.left_out.invalid = true;
        self.leave_out(index);
    }

    /// Leaves out the call at `index`, whose tool Creole would run if this were not the last round
    /// of the answer.
    pub(super) fn leave_out_own(&mut self, index: usize) {
        self.left_out.own = true;
        self.leave_out(index);
    }

    /// Leaves out the call at `index`, whose tool a guard withheld.
    pub(super) fn leave_out_withheld(&mut self, index: usize) {
        self.left_out.by_guard = true;
        self.leave_out(index);
    }

    /// Returns true if a call that the client gets is incomplete.
    pub(super) fn has_half(&self) -> bool {
        self.list.iter().any(|call| call.state() != CallState::LeftOut && call.input().is_half())
    }

    /// Counts late repetitions of calls' inputs that were cut off, and drops these repetitions.
    pub(super) fn take_leftovers(&mut self) -> usize {
        let closed = self.list.iter_mut().filter(|call| call.state() == CallState::Closed);
        closed.filter_map(|call| call.input_mut().has_leftover().then_some(())).count()
    }

    /// Returns the client's id of the call at `index`, and creates it if needed.
    pub(super) fn client_id(&mut self, index: usize, ids: &Ids) -> String {
        let Some(call) = self.list.get_mut(index) else { return String::new() };
        if let Some(id) = call.client_id() {
            return id.to_owned();
        }
        let id = tool_id::encode(call.upstream_id(index, ids), &self.ids_used);
        self.ids_used.add(id.clone());
        call.set_client_id(id.clone());
        id
    }

    /// Moves an input that arrived without a tool's name to the preceding call, if that call has no
    /// input.
    pub(super) fn give_nameless_inputs(&mut self) {
        for at in 1..self.list.len() {
            if let Some([named, nameless]) = self.list.get_mut(at.saturating_sub(1)..=at)
                && nameless.name().is_empty()
                && nameless.input().is_object()
                && !named.name().is_empty()
                && !named.input().has_text()
            {
                named.swap_inputs(nameless);
            }
        }
    }

    /// Returns the repaired input of a call, or `None` if the input needs no repair.
    fn repaired(&mut self, index: usize, object: &str, to: &ReaderOutput<'_>) -> Option<String> {
        let call = self.list.get(index).filter(|call| may_repair(call, to))?;
        let tool = to.context.tools.meant_by(call.name());
        let schema = tool.and_then(|tool| tool.schema.as_deref());
        let without_id = self.without_id_echo(object, schema);
        let object = without_id.as_deref().unwrap_or(object);
        let budget = &mut self.schema_budget;
        let unquoted = schema
            .filter(|schema| !tool_schema::fits(schema, object, budget))
            .and_then(|schema| tool_schema::unquoted(schema, object, budget));
        unquoted.or(without_id)
    }

    /// Returns the input of a call without members that its client would refuse, and the number of
    /// these members. `None` if nothing was mended.
    fn mended(
        &mut self,
        index: usize,
        object: &str,
        to: &ReaderOutput<'_>,
    ) -> Option<(String, u32)> {
        let call = self.list.get(index).filter(|_| to.rules.mends_inputs)?;
        let tool = to.context.tools.meant_by(call.name())?;
        InputMender::whole(tool, object, &mut self.mend_budget)
    }

    /// Returns `object` without a member `id` that repeats the id of a call; `None` if the object
    /// has no such member. n8n adds an `id` to each input in its history, and models imitate this.
    /// The member is left out even without a schema, since no other member has a value like this.
    fn without_id_echo(&self, object: &str, schema: Option<&str>) -> Option<String> {
        tool_schema::without_id(object, schema, &|value| {
            let id = value.decode();
            self.ids_used.contains(&id) || id.starts_with("toolu_")
        })
    }

    /// Returns the repaired input of a call whose strings contain unescaped control characters, if
    /// the input is an object apart from these characters.
    fn escaped(&mut self, index: usize, to: &ReaderOutput<'_>) -> Option<String> {
        let call = self.list.get(index).filter(|call| may_repair(call, to))?;
        let object = bare_json::all_escaped(call.input().rest())?;
        Some(self.repaired(index, &object, to).unwrap_or(object))
    }

    /// Checks a call and adds warnings about its faults. Returns true if the client does not get
    /// the call. `unseen`: nothing of the call was sent; `refused`: the answer is a refusal.
    fn leaves_out(
        &mut self,
        index: usize,
        input: &FinalInput,
        unseen: bool,
        refused: bool,
        to: &mut ReaderOutput<'_>,
    ) -> bool {
        let Some(call) = self.list.get(index) else { return false };
        let tool = to.context.tools.meant_by(call.name());
        let waits = call.state() == CallState::Waiting;
        // An invalid input in a refusal counts as cut off: the model cannot mend the call.
        let cut_off =
            unseen && (*input == FinalInput::CutOff || refused && *input == FinalInput::Invalid);
        let invalid = !cut_off && *input == FinalInput::Invalid;
        if invalid {
            to.warn("tool_input_invalid");
        }
        let mut violates = false;
        if let (true, FinalInput::Object(object)) = (to.rules.checks_inputs, input) {
            let schema = tool.and_then(|tool| tool.schema.as_deref());
            let budget = &mut self.schema_budget;
            violates = schema.is_some_and(|schema| !tool_schema::fits(schema, object, budget));
            if violates {
                to.warn("tool_input_violates_schema");
            }
        }
        let is_known = tool.is_some();
        // A call of a tool that Creole runs is answered with an error.
        let held = to.rules.invalid == InvalidToolCall::Hold
            && tool.is_none_or(|tool| tool.own.is_none())
            && waits
            && (!is_known || violates || invalid);
        self.left_out.invalid |= held;
        if cut_off {
            to.warn("tool_call_cut_off");
        } else if held && is_known {
            to.warn("tool_call_withheld");
        } else if held {
            to.warn("tool_unknown");
        }
        cut_off || held
    }

    /// Returns the inputs of all calls, by the client's ids, in the form in which they are sent.
    pub(super) fn inputs(&mut self, to: &ReaderOutput<'_>) -> Vec<(String, String)> {
        let mut inputs = Vec::new();
        for index in 0..self.list.len() {
            let Some(call) = self.list.get(index) else { break };
            if call.state() == CallState::LeftOut || call.input().held_bytes() > CARRIED_BYTES_MAX {
                continue;
            }
            if let FinalInput::Object(input) = call.input().clone().finish(false)
                && input != "{}"
            {
                let input = self.repaired(index, &input, to).unwrap_or(input);
                let input = self.mended(index, &input, to).map_or(input, |(input, _)| input);
                inputs.push((self.client_id(index, &to.ids), input));
            }
        }
        inputs
    }

    /// Sends the start of the tool call at `index`, before the input of the tool call is complete.
    pub(super) fn open(
        &mut self,
        index: usize,
        progress: &mut BlockProgress,
        to: &mut ReaderOutput<'_>,
    ) {
        self.begin(index, progress, to);
        if to.rules.mends_inputs
            && let Some(call) = self.list.get_mut(index)
            && let Some(tool) = to.context.tools.meant_by(call.name())
        {
            call.set_mender(InputMender::of(tool, &mut self.mend_budget));
        }
    }

    /// Sends the start of the call at `index`, unless it was sent before.
    fn begin(&mut self, index: usize, progress: &mut BlockProgress, to: &mut ReaderOutput<'_>) {
        let Some(call) = self.list.get_mut(index) else { return };
        if call.state() != CallState::Waiting {
            return;
        }
        call.open();
        let id = self.client_id(index, &to.ids);
        let Some(call) = self.list.get(index) else { return };
        progress.open_block(true);
        let (name, toolset) = match to.context.tools.meant_by(call.name()) {
            Some(tool) => {
                if tool.outgoing != call.name() {
                    to.warn("tool_name_repaired");
                }
                if let Some(own) = &tool.own {
                    to.report.server_calls = to.report.server_calls.saturating_add(1);
                    let (prefix, name, kind) = match &**own {
                        OwnTool::Mcp(it) => ("mcp", &it.tool, CallKind::Mcp { server: &it.server }),
                        _ => ("srv", &tool.name, CallKind::Server),
                    };
                    let id = [prefix, &id].concat();
                    return to.write(Event::CallBegins(CallStart { id: &id, name, kind }));
                }
                (tool.name.as_str(), tool.toolset)
            }
            None => {
                to.warn("tool_unknown");
                (call.name(), None)
            }
        };
        to.report.tool_calls = to.report.tool_calls.saturating_add(1);
        let kind = CallKind::Client { toolset };
        to.write(Event::CallBegins(CallStart { id: &id, name, kind }));
    }

    /// Sends the part of a call's input that can be sent now, if the call's block is open.
    pub(super) fn send_input(&mut self, index: usize, to: &mut ReaderOutput<'_>) {
        if let Some(call) = self.list.get_mut(index)
            && call.state() == CallState::Open
        {
            to.write(Event::Input(call.send(&mut self.mend_budget)));
            let mended = call.take_mended();
            if mended > 0 {
                warn_mended(call.name(), mended, to);
            }
        }
    }

    /// Sends the end of a call whose input is complete, or will not get more complete. `is_unseen`:
    /// the client gets the call as a whole.
    pub(super) fn finish(
        &mut self,
        index: usize,
        is_unseen: bool,
        end: BrokenOff,
        progress: &mut BlockProgress,
        to: &mut ReaderOutput<'_>,
    ) {
        let Some(call) = self.list.get_mut(index) else { return };
        let mut input = call.input_mut().finish(end.is_cut_off);
        for _ in 0..call.input_mut().take_conflicts() {
            to.warn("tool_input_conflict");
        }
        let is_unseen = is_unseen || end.is_refusal && call.state() == CallState::Waiting;
        let repaired = match &input {
            FinalInput::Object(object) => self.repaired(index, object, to),
            FinalInput::Invalid => self.escaped(index, to),
            FinalInput::CutOff => None,
        };
        if let Some(object) = repaired {
            input = FinalInput::Object(object);
            to.warn("tool_input_repaired");
        }
        let is_sent = self.list.get(index).is_some_and(|call| call.input().is_sent());
        if let FinalInput::Object(object) = &input
            && (!is_sent || to.rules.checks_inputs)
            && let Some((object, mended)) = self.mended(index, object, to)
        {
            input = FinalInput::Object(object);
            if let Some(call) = self.list.get(index).filter(|_| !is_sent) {
                warn_mended(call.name(), mended, to);
            }
        }
        if self.leaves_out(index, &input, is_unseen, end.is_refusal, to) {
            if let Some(call) = self.list.get_mut(index) {
                call.leave_out();
            }
            return;
        }
        self.begin(index, progress, to);
        self.send_end(index, &input, to);
    }

    /// Sends the remaining input of the call at `index`, and the end of its block.
    fn send_end(&mut self, index: usize, input: &FinalInput, to: &mut ReaderOutput<'_>) {
        let Some(call) = self.list.get_mut(index) else { return };
        if call.input().is_sent() {
            let (rest, held) = call.send_rest(&mut self.mend_budget);
            to.write(Event::Input(&rest));
            to.write(Event::Input(&held));
            let mended = call.take_mended();
            if mended > 0 {
                warn_mended(call.name(), mended, to);
            }
            call.close();
            return to.write(Event::BlockEnds);
        }
        let rest = call.input().rest();
        match input {
            FinalInput::Object(object) => to.write(Event::Input(object)),
            // An input that was cut off, and does not begin as an object, is useless to a client.
            FinalInput::CutOff if rest.starts_with('{') => to.write(Event::Input(rest)),
            FinalInput::CutOff => {}
            FinalInput::Invalid => {
                to.write(Event::Input(&json::written(|json| {
                    json.begin_object().key("INVALID_JSON").text(rest).end_object();
                })));
            }
        }
        call.close();
        to.write(Event::BlockEnds);
    }
}

/// Adds a warning about members of an input that were mended. The log gets the tool's name, but no
/// values.
fn warn_mended(tool: &str, members: u32, to: &mut ReaderOutput<'_>) {
    let tool = to.context.tools.meant_by(tool).map_or("", |tool| &tool.name);
    for _ in 0..members {
        to.warnings.add_named("tool_argument_mended", tool);
    }
}

fn may_repair(call: &CallParts, to: &ReaderOutput<'_>) -> bool {
    to.rules.invalid == InvalidToolCall::Repair && !call.input().is_sent()
}
