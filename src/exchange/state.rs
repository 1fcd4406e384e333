//! State machine of an exchange: its phases and the transitions between them.

use super::ask::Ask;
use super::retry::Refusal;
use super::round::Round;

/// Phase of an exchange. Only the methods of this type change the phase.
#[derive(Debug)]
pub(super) struct State(Phase);

#[derive(Debug)]
enum Phase {
    /// Phase: the request is incomplete. Nothing was sent to the client.
    Requested,
    /// Phase: an upstream call is due, either the first or a retry after a refusal. The client has
    /// received at most comments.
    Due(Option<Box<Refusal>>),
    /// Phase: a step's next question is due, or the first upstream call after the last step. After
    /// the answer, the client has received everything but the answer's end. `cut`: the upstream
    /// goes on sending bytes that are not read.
    AskDue { cut: bool },
    /// Phase: a step's question, a count or a list of models is open. The client receives nothing
    /// of the answer meanwhile.
    Asked(Ask),
    /// Phase: the host reads a document. Nothing was sent to the client.
    Reading,
    /// Phase: the upstream was called. The client has received the answer as far as translated.
    Called(Round),
    /// Placeholder while a method owns the data of the phase. No host sees this phase.
    Taken,
    /// Phase: the response is complete. `cut`: the upstream goes on sending bytes that are not
    /// read.
    Ended { cut: bool },
    /// Phase: the request is not for Creole and is forwarded unchanged.
    Passed,
}

/// Kind of upstream call that the host has to make next.
pub(super) enum Due {
    /// First call of the upstream for the client's request.
    First,
    /// Retry without the part that the upstream refused.
    Again(Box<Refusal>),
    /// Call for a question of a step, such as an image to fetch.
    Ask,
}

impl State {
    pub(super) fn new() -> Self {
        Self(Phase::Requested)
    }

    pub(super) fn pass(&mut self) {
        self.0 = Phase::Passed;
    }

    /// Marks the request as complete, so that its first call is due.
    pub(super) fn complete(&mut self) {
        if matches!(self.0, Phase::Requested) {
            self.0 = Phase::Due(None);
        }
    }

    /// Changes the phase: an upstream call for the client's answer is open.
    pub(super) fn call(&mut self, round: Round) {
        self.0 = Phase::Called(round);
    }

    /// Changes the phase: an auxiliary call, such as a token count, is open.
    pub(super) fn ask(&mut self, ask: Ask) {
        self.0 = Phase::Asked(ask);
    }

    /// Changes the phase: the host reads a document.
    pub(super) fn read(&mut self) {
        self.0 = Phase::Reading;
    }

    pub(super) fn is_reading(&self) -> bool {
        matches!(self.0, Phase::Reading)
    }

    /// Makes another call due after the upstream refused the last call.
    pub(super) fn retry(&mut self, refusal: Refusal) {
        self.0 = Phase::Due(Some(Box::new(refusal)));
    }

    /// Changes the phase: the next question of a step is due.
    pub(super) fn make_ask_due(&mut self, cut: bool) {
        if !self.is_ended() {
            self.0 = Phase::AskDue { cut };
        }
    }

    pub(super) fn end(&mut self) {
        if !self.is_ended() {
            self.0 = Phase::Ended { cut: false };
        }
    }

    /// Marks an ended exchange as cut: the upstream goes on sending an answer that is not read.
    pub(super) fn cut(&mut self) {
        if self.is_ended() {
            self.0 = Phase::Ended { cut: true };
        }
    }

    /// Takes the call that is due out of the phase.
    pub(super) fn take_due(&mut self) -> Option<Due> {
        match std::mem::replace(&mut self.0, Phase::Taken) {
            Phase::Due(None) => Some(Due::First),
            Phase::Due(Some(refusal)) => Some(Due::Again(refusal)),
            Phase::AskDue { .. } => Some(Due::Ask),
            other => {
                self.0 = other;
                None
            }
        }
    }

    /// Takes the round out of the phase; the caller puts it back with [`State::call`].
    pub(super) fn take_round(&mut self) -> Option<Round> {
        match std::mem::replace(&mut self.0, Phase::Taken) {
            Phase::Called(round) => Some(round),
            other => {
                self.0 = other;
                None
            }
        }
    }

    /// Takes the open auxiliary call out of the phase, once its answer has arrived or failed.
    pub(super) fn take_ask(&mut self) -> Option<Ask> {
        match std::mem::replace(&mut self.0, Phase::Taken) {
            Phase::Asked(ask) => Some(ask),
            other => {
                self.0 = other;
                None
            }
        }
    }

    pub(super) fn round(&self) -> Option<&Round> {
        match &self.0 {
            Phase::Called(round) => Some(round),
            _ => None,
        }
    }

    pub(super) fn round_mut(&mut self) -> Option<&mut Round> {
        match &mut self.0 {
            Phase::Called(round) => Some(round),
            _ => None,
        }
    }

    pub(super) fn ask_open(&self) -> Option<&Ask> {
        match &self.0 {
            Phase::Asked(ask) => Some(ask),
            _ => None,
        }
    }

    pub(super) fn ask_mut(&mut self) -> Option<&mut Ask> {
        match &mut self.0 {
            Phase::Asked(ask) => Some(ask),
            _ => None,
        }
    }

    pub(super) fn is_due(&self) -> bool {
        matches!(self.0, Phase::Due(_) | Phase::AskDue { .. })
    }

    pub(super) fn is_ask_due(&self) -> bool {
        matches!(self.0, Phase::AskDue { .. })
    }

    /// Returns true if the answer to the last call is over and another call is due.
    pub(super) fn is_next_due(&self) -> bool {
        matches!(self.0, Phase::Due(Some(_)) | Phase::AskDue { .. })
    }

    pub(super) fn is_ended(&self) -> bool {
        matches!(self.0, Phase::Ended { .. })
    }

    pub(super) fn is_cut(&self) -> bool {
        matches!(self.0, Phase::Ended { cut: true } | Phase::AskDue { cut: true })
    }

    pub(super) fn is_passed(&self) -> bool {
        matches!(self.0, Phase::Passed)
    }
}
