//! Assembles the tool calls of an answer from the fragments that an upstream sends.

use super::fragment::{Contradiction, Fragment};
use super::known::{CallFacts, Candidates};
use crate::answer::ReaderOutput;
use crate::assemble::Assembly;
use crate::assemble::call::{CallParts, CallState};
use crate::error::Error;

/// Facts about the tool calls of one answer, learned from their fragments. The facts show which
/// call a later fragment belongs to.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    /// Facts about each call, by its position in the answer.
    known: Vec<CallFacts>,
    /// Positions of the calls that have been named by earlier entries of the same `tool_calls`
    /// list.
    named_in_list: Vec<usize>,
}

impl Fragments {
    /// Returns true if a call was sent in another form than `function_call`.
    pub(super) fn has_structured(&self) -> bool {
        self.known.iter().any(|call| !call.is_legacy())
    }

    /// Begins another `tool_calls` list, in which no call has been named yet.
    pub(super) fn begin_list(&mut self, assembly: &Assembly) {
        self.named_in_list.clear();
        self.note_others(assembly);
    }

    /// Adds empty facts for calls that were found in a text and have no fragments.
    fn note_others(&mut self, assembly: &Assembly) {
        self.known.resize(assembly.calls().all().len(), CallFacts::default());
    }

    /// Adds a tool call, or a fragment of a call, to the answer. Returns the position of the call,
    /// or `None` if the client does not receive the call. Each entry of a whole answer (`is_whole`)
    /// is a separate call.
    pub(super) fn take(
        &mut self,
        fragment: &Fragment<'_>,
        is_whole: bool,
        assembly: &mut Assembly,
        to: &mut ReaderOutput<'_>,
    ) -> Result<Option<usize>, Error> {
        self.note_others(assembly);
        let calls = Candidates::new(assembly.calls().all(), &self.known);
        let found = match is_whole {
            true => None,
            false => fragment.find(calls, &self.named_in_list, &to.context.tools),
        };
        let index = match found {
            Some(index) => index,
            None => {
                let doubtful = calls.last().is_some_and(|last| fragment.may_only_repeat(last));
                self.known.push(fragment.begun());
                assembly.add_call(CallParts::new(doubtful), to)?
            }
        };
        if fragment.has_name() {
            self.named_in_list.push(index);
        }
        Ok(self.extend(index, fragment, assembly, to))
    }

    /// Adds the id, name and input of a fragment to the call at `index`. Returns `index`, or `None`
    /// if the client does not receive the fragment.
    #[inline]
    fn extend(
        &mut self,
        index: usize,
        fragment: &Fragment<'_>,
        assembly: &mut Assembly,
        to: &mut ReaderOutput<'_>,
    ) -> Option<usize> {
        let state = assembly.calls().all().get(index)?.state();
        if state == CallState::LeftOut {
            return None;
        }
        let (tools, known) = (&to.context.tools, self.known.get_mut(index)?);
        let contradiction = assembly
            .extend_call(index, |call, scratch| fragment.give(call, known, tools, scratch))?;
        if contradiction != Contradiction::None {
            to.warn("tool_name_conflict");
        }
        let is_late = state == CallState::Closed;
        for _ in 0..assembly.take_conflicts(index) {
            match is_late {
                true => to.warn("late_tool_fragment"),
                false => to.warn("tool_input_conflict"),
            }
        }
        (contradiction != Contradiction::OtherTool).then_some(index)
    }
}
