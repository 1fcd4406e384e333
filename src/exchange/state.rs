//! State machine of an exchange: its phases and the transitions between them.

use super::ask::Ask;
use super::retry::Refusal;
use super::round::Round;
use super::seam::{CallId, Cancel};
use crate::Millis;

/// Phase of an exchange, and its open calls. Only the methods of this type change the phase.
#[derive(Debug)]
pub(super) struct State {
    phase: Phase,
    /// Calls that the host has not ended, and whose answers the exchange reads.
    open: Vec<CallId>,
    /// Cancelled calls: the exchange reads their answers no more, and the host was not told yet.
    cancelled: Vec<(CallId, Cancel)>,
    /// Number of calls that the exchange has opened.
    calls: u32,
}

#[derive(Debug)]
enum Phase {
    /// Phase: the request is incomplete. Nothing was sent to the client.
    Requested,
    /// Phase: an upstream call is due: the first, a retry after a refusal, or the repeat of a later
    /// round.
    Due(DueCall),
    /// Phase: a later round failed, and is repeated at this time. The client has the answer of the
    /// earlier rounds.
    Paused(Millis),
    /// Phase: a step, a count or a list of models has open questions, or (`is_due`) a step's next
    /// question may be due, or the first upstream call after the last step. The client receives
    /// nothing of the answer meanwhile, except results of server tools between two rounds; during a
    /// step after the answer, the client has everything but the answer's end.
    Asking { asks: Vec<Ask>, is_due: bool },
    /// Phase: the upstream was called. The client has received the answer as far as translated.
    Called(Round),
    /// Placeholder while a method owns the data of the phase. No host sees this phase.
    Taken,
    /// Phase: the response is complete.
    Ended,
    /// Phase: the request is not for Creole and is forwarded unchanged.
    Passed,
}

/// Kind of upstream call that the host has to make next.
#[derive(Debug)]
pub(super) enum DueCall {
    /// First call of the upstream for the client's request.
    First,
    /// Retry without the part that the upstream refused.
    Again(Box<Refusal>),
    /// Repeat of a later round.
    Repeat,
    /// Call for a question of a step, such as an image to fetch.
    Ask,
}

impl State {
    pub(super) fn new() -> Self {
        Self { phase: Phase::Requested, open: Vec::new(), cancelled: Vec::new(), calls: 0 }
    }

    pub(super) fn pass(&mut self) {
        self.phase = Phase::Passed;
    }

    /// Marks the request as complete, so that its first call is due.
    pub(super) fn complete(&mut self) {
        if matches!(self.phase, Phase::Requested) {
            self.phase = Phase::Due(DueCall::First);
        }
    }

    /// Opens a call, and returns its id.
    pub(super) fn open_call(&mut self) -> CallId {
        self.calls = self.calls.wrapping_add(1);
        self.open.push(CallId(self.calls));
        CallId(self.calls)
    }

    /// Notes that a call has ended, as the host says.
    pub(super) fn end_call(&mut self, id: CallId) {
        self.open.retain(|open| *open != id);
    }

    /// Cancels a call, unless it has ended.
    pub(super) fn cancel_call(&mut self, id: CallId, how: Cancel) {
        if self.open.contains(&id) {
            self.end_call(id);
            self.cancelled.push((id, how));
        }
    }

    /// Cancels all open calls.
    fn cancel_calls(&mut self, how: Cancel) {
        self.cancelled.extend(self.open.drain(..).map(|id| (id, how)));
    }

    /// Removes a cancelled call, which the host has not polled yet.
    pub(super) fn take_cancelled(&mut self) -> Option<(CallId, Cancel)> {
        self.cancelled.pop()
    }

    /// Changes the phase: an upstream call for the client's answer is open.
    pub(super) fn call(&mut self, round: Round) {
        self.phase = Phase::Called(round);
    }

    /// Changes the phase: an auxiliary call, such as a token count, is open.
    pub(super) fn ask(&mut self, ask: Ask) {
        match &mut self.phase {
            Phase::Asking { asks, .. } => asks.push(ask),
            _ => self.phase = Phase::Asking { asks: vec![ask], is_due: false },
        }
    }

    /// Makes another call due after the upstream refused the last call.
    pub(super) fn retry(&mut self, refusal: Refusal) {
        self.phase = Phase::Due(DueCall::Again(Box::new(refusal)));
        self.cancel_calls(Cancel::ReadOut);
    }

    /// Changes the phase: a later round is repeated at the time `until`.
    pub(super) fn pause(&mut self, until: Millis) {
        self.phase = Phase::Paused(until);
        self.cancel_calls(Cancel::Cut);
    }

    /// Returns the time at which a later round is repeated.
    pub(super) fn paused_until(&self) -> Option<Millis> {
        match self.phase {
            Phase::Paused(until) => Some(until),
            _ => None,
        }
    }

    /// Makes the repeat of a later round due after the pause.
    pub(super) fn end_pause(&mut self) {
        if self.paused_until().is_some() {
            self.phase = Phase::Due(DueCall::Repeat);
        }
    }

    /// Changes the phase: the next question of a step may be due.
    pub(super) fn make_ask_due(&mut self) {
        match &mut self.phase {
            Phase::Asking { is_due, .. } => *is_due = true,
            Phase::Ended => {}
            _ => {
                self.phase = Phase::Asking { asks: Vec::new(), is_due: true };
                self.cancel_calls(Cancel::ReadOut);
            }
        }
    }

    /// Ends the exchange and cancels its calls.
    pub(super) fn end(&mut self) {
        self.phase = Phase::Ended;
        self.cancel_calls(Cancel::ReadOut);
    }

    /// Removes the call that is due from the phase, and returns the call.
    pub(super) fn take_due(&mut self) -> Option<DueCall> {
        if let Phase::Asking { is_due, .. } = &mut self.phase {
            return std::mem::take(is_due).then_some(DueCall::Ask);
        }
        match std::mem::replace(&mut self.phase, Phase::Taken) {
            Phase::Due(due) => Some(due),
            other => {
                self.phase = other;
                None
            }
        }
    }

    /// Takes the round out of the phase; the caller puts it back with [`State::call`].
    pub(super) fn take_round(&mut self) -> Option<Round> {
        match std::mem::replace(&mut self.phase, Phase::Taken) {
            Phase::Called(round) => Some(round),
            other => {
                self.phase = other;
                None
            }
        }
    }

    /// Removes all open auxiliary calls, and cancels them.
    pub(super) fn end_asks(&mut self, how: Cancel) {
        if let Phase::Asking { asks, .. } = &mut self.phase {
            asks.clear();
            self.cancel_calls(how);
        }
    }

    /// Removes an open auxiliary call, once its answer has arrived or failed.
    pub(super) fn take_ask(&mut self, id: CallId) -> Option<Ask> {
        let Phase::Asking { asks, .. } = &mut self.phase else { return None };
        let at = asks.iter().position(|ask| ask.id() == id)?;
        Some(asks.remove(at))
    }

    pub(super) fn round(&self) -> Option<&Round> {
        match &self.phase {
            Phase::Called(round) => Some(round),
            _ => None,
        }
    }

    /// Returns the round whose upstream call has this id.
    pub(super) fn round_of(&mut self, id: CallId) -> Option<&mut Round> {
        self.round_mut().filter(|round| round.id() == id)
    }

    pub(super) fn round_mut(&mut self) -> Option<&mut Round> {
        match &mut self.phase {
            Phase::Called(round) => Some(round),
            _ => None,
        }
    }

    /// Returns the open auxiliary calls.
    pub(super) fn asks(&self) -> &[Ask] {
        match &self.phase {
            Phase::Asking { asks, .. } => asks,
            _ => &[],
        }
    }

    pub(super) fn ask_mut(&mut self, id: CallId) -> Option<&mut Ask> {
        let Phase::Asking { asks, .. } = &mut self.phase else { return None };
        asks.iter_mut().find(|ask| ask.id() == id)
    }

    pub(super) fn is_due(&self) -> bool {
        matches!(self.phase, Phase::Due(_) | Phase::Asking { is_due: true, .. })
    }

    pub(super) fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    pub(super) fn is_passed(&self) -> bool {
        matches!(self.phase, Phase::Passed)
    }
}
