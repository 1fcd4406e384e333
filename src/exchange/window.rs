//! Questions of a running step that are open at the same time. Their answers arrive in any order,
//! and the step takes them in the order of its questions: the order of arrival changes no byte.
//! Each question has a time of its own, so that a server that never answers takes no time of
//! others.

use std::collections::VecDeque;

use super::seam::CallId;
use crate::Millis;
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

/// Question of a step that was asked.
struct Asked {
    /// Time until which the question is answered, also if it is asked several times; `None` before
    /// the question is asked for the first time.
    until: Option<Millis>,
    state: AskedState,
}

/// State of one question of a step.
enum AskedState {
    /// State: the question must be asked, because it could not be asked before, or because it or
    /// its request has changed.
    Due,
    /// State: the call for the question is open.
    Open(CallId),
    /// State: the answer has arrived, but an earlier question has none yet.
    Answered(Came),
}

impl Window {
    /// Returns the place of the question to ask next, from the place `from` on, counted from the
    /// first one whose answer the step has not taken. Returns `None` if no further call may be open
    /// at the same time.
    pub(super) fn next(&self, from: usize, calls_at_once: u8) -> Option<usize> {
        let mut max = usize::from(calls_at_once.clamp(1, AT_ONCE_MAX));
        if self.is_narrow {
            max = 1;
            if self.has_open() {
                return None;
            }
        }
        let is_due = |asked: &Asked| matches!(asked.state, AskedState::Due);
        let due = self.asked.iter().skip(from).position(is_due);
        let due = due.map(|at| at.saturating_add(from));
        let new = self.asked.len().max(from);
        due.or_else(|| (new < max).then_some(new))
    }

    /// Keeps a place for a question that cannot be asked yet, while later ones are asked.
    pub(super) fn wait_at(&mut self, place: usize) {
        if place == self.asked.len() {
            self.asked.push_back(Asked { until: None, state: AskedState::Due });
        }
    }

    /// Lets the step ask one question at a time from now on, if the question of the call `id` was
    /// asked beside others. Returns false if the question was asked alone.
    pub(super) fn narrow(&mut self, id: CallId) -> bool {
        let was_beside = self.beside.is_some_and(|last| id.0 <= last.0);
        self.is_narrow |= was_beside;
        was_beside
    }

    fn has_open(&self) -> bool {
        self.open_calls().next().is_some()
    }

    /// Returns the open calls with the times until which they are answered.
    fn open_calls(&self) -> impl Iterator<Item = (CallId, Millis)> {
        self.asked.iter().filter_map(|asked| match asked.state {
            AskedState::Open(id) => Some((id, asked.until?)),
            AskedState::Due | AskedState::Answered(_) => None,
        })
    }

    /// Returns the time at which the first open call must be answered.
    pub(super) fn until(&self) -> Option<Millis> {
        self.open_calls().map(|(_, until)| until).min()
    }

    /// Returns the time until which an open call must be answered.
    pub(super) fn until_of(&self, id: CallId) -> Option<Millis> {
        self.open_calls().find(|(open, _)| *open == id).map(|(_, until)| until)
    }

    /// Returns an open call whose time is over.
    pub(super) fn overdue(&self, now: Millis) -> Option<CallId> {
        self.open_calls().find(|(_, until)| now >= *until).map(|(id, _)| id)
    }

    /// Returns the place of the question of an open call, counted from the first question.
    pub(super) fn place(&self, id: CallId) -> Option<usize> {
        let is_of = |asked: &Asked| matches!(asked.state, AskedState::Open(open) if open == id);
        self.asked.iter().position(is_of)
    }

    /// Notes the open call for the question at a place returned by [`Window::next`]. The question
    /// is answered until `until`, unless an earlier call for it has set a time. Returns the time.
    pub(super) fn open(&mut self, place: usize, id: CallId, until: Millis) -> Millis {
        if self.has_open() {
            self.beside = Some(id);
        }
        let state = AskedState::Open(id);
        match self.asked.get_mut(place) {
            Some(asked) => {
                asked.state = state;
                *asked.until.get_or_insert(until)
            }
            None => {
                self.asked.push_back(Asked { until: Some(until), state });
                until
            }
        }
    }

    /// Notes that the question of a call must be asked again.
    pub(super) fn ask_again(&mut self, id: CallId) {
        self.set(id, AskedState::Due);
    }

    /// Notes the answer to the question of a call.
    pub(super) fn answer(&mut self, id: CallId, came: Came) {
        self.set(id, AskedState::Answered(came));
    }

    fn set(&mut self, id: CallId, state: AskedState) {
        if let Some(asked) = self.place(id).and_then(|place| self.asked.get_mut(place)) {
            asked.state = state;
        }
    }

    /// Removes the first question, if its answer has arrived. Returns the answer, and the time
    /// until which the question had to be answered.
    pub(super) fn take_answer(&mut self) -> Option<(Came, Option<Millis>)> {
        let &Asked { until, state: AskedState::Answered(_) } = self.asked.front()? else {
            return None;
        };
        self.take_first()?.map(|came| (came, until))
    }

    /// Removes the first question, and returns its answer, or `None` in place of a missing answer.
    pub(super) fn take_first(&mut self) -> Option<Option<Came>> {
        match self.asked.pop_front()?.state {
            AskedState::Answered(came) => Some(Some(came)),
            AskedState::Due | AskedState::Open(_) => Some(None),
        }
    }

    /// Puts a question whose answer was taken back in the first place, to be asked again, and to
    /// be answered until the same time.
    pub(super) fn put_back(&mut self, until: Option<Millis>) {
        self.asked.push_front(Asked { until, state: AskedState::Due });
    }

    /// Returns the number of bytes of the answers that wait for an earlier one.
    pub(super) fn held_bytes(&self) -> usize {
        let bytes = |asked: &Asked| match &asked.state {
            AskedState::Answered(came) => came.held_bytes(),
            AskedState::Due | AskedState::Open(_) => 0,
        };
        self.asked.iter().map(bytes).fold(0, usize::saturating_add)
    }
}

#[cfg(test)]
mod tests;
