//! Questions of a running step that are open at the same time. Their answers arrive in any order,
//! and the step takes them in the order of its questions: the order of arrival changes no byte.

use std::collections::VecDeque;

use super::seam::CallId;
use crate::steps::Came;

/// Maximum number of a step's questions that are open, or answered before an earlier one.
const AT_ONCE_MAX: u8 = 4;

/// Questions of a step that were asked and whose answers the step has not taken, in their order.
#[derive(Default)]
pub(super) struct Window {
    asked: VecDeque<Asked>,
    /// Newest call that was opened while another was open.
    beside: Option<CallId>,
    /// True if questions are asked one at a time, because the upstream refused several at once.
    is_narrow: bool,
}

/// State of one question of a step.
enum Asked {
    /// State: the question must be asked again, because it or its request has changed.
    Again,
    /// State: the call for the question is open.
    Open(CallId),
    /// State: the answer has arrived, but an earlier question has none yet.
    Answered(Came),
}

impl Window {
    /// Returns the place of the question to ask next, counted from the first one whose answer the
    /// step has not taken. Returns `None` if no further call may be open at the same time.
    pub(super) fn next(&self, calls_at_once: u8) -> Option<usize> {
        let mut max = usize::from(calls_at_once.clamp(1, AT_ONCE_MAX));
        if self.is_narrow {
            max = 1;
            if self.has_open() {
                return None;
            }
        }
        let is_again = |asked: &Asked| matches!(asked, Asked::Again);
        let again = self.asked.iter().position(is_again);
        again.or_else(|| (self.asked.len() < max).then_some(self.asked.len()))
    }

    /// Lets the step ask one question at a time from now on, if the question of the call `id` was
    /// asked beside others. Returns false if the question was asked alone.
    pub(super) fn narrow(&mut self, id: CallId) -> bool {
        let was_beside = self.beside.is_some_and(|last| id.0 <= last.0);
        self.is_narrow |= was_beside;
        was_beside
    }

    fn has_open(&self) -> bool {
        self.asked.iter().any(|asked| matches!(asked, Asked::Open(_)))
    }

    /// Notes the open call for the question at a place returned by [`Window::next`].
    pub(super) fn open(&mut self, place: usize, id: CallId) {
        if self.has_open() {
            self.beside = Some(id);
        }
        match self.asked.get_mut(place) {
            Some(asked) => *asked = Asked::Open(id),
            None => self.asked.push_back(Asked::Open(id)),
        }
    }

    /// Notes that the question of a call must be asked again.
    pub(super) fn ask_again(&mut self, id: CallId) {
        self.set(id, Asked::Again);
    }

    /// Notes the answer to the question of a call.
    pub(super) fn answer(&mut self, id: CallId, came: Came) {
        self.set(id, Asked::Answered(came));
    }

    fn set(&mut self, id: CallId, now: Asked) {
        let is_of = |asked: &&mut Asked| matches!(asked, Asked::Open(open) if *open == id);
        if let Some(asked) = self.asked.iter_mut().find(is_of) {
            *asked = now;
        }
    }

    /// Removes the first question, if its answer has arrived, and returns the answer.
    pub(super) fn take_answer(&mut self) -> Option<Came> {
        if matches!(self.asked.front()?, Asked::Answered(_)) { self.take_first()? } else { None }
    }

    /// Removes the first question, and returns its answer, or `None` in place of a missing answer.
    pub(super) fn take_first(&mut self) -> Option<Option<Came>> {
        match self.asked.pop_front()? {
            Asked::Answered(came) => Some(Some(came)),
            Asked::Again | Asked::Open(_) => Some(None),
        }
    }

    /// Puts the question whose answer was taken last back in the first place, to be asked again.
    pub(super) fn put_back(&mut self) {
        self.asked.push_front(Asked::Again);
    }

    /// Returns the number of bytes of the answers that wait for an earlier one.
    pub(super) fn held_bytes(&self) -> usize {
        let bytes = |asked: &Asked| match asked {
            Asked::Answered(came) => came.held_bytes(),
            Asked::Again | Asked::Open(_) => 0,
        };
        self.asked.iter().map(bytes).fold(0, usize::saturating_add)
    }
}
