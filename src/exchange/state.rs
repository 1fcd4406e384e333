//! State machine of an exchange: its phases, and the moves between them.

use super::ask::Ask;
use super::retry::Refusal;
use super::round::Round;

/// Phase of an exchange. Only its methods move it on.
#[derive(Debug)]
pub(super) struct State(Phase);

#[derive(Debug)]
enum Phase {
    /// The request is not complete. The client has nothing.
    Requested,
    /// The upstream is to be called: for the first time, or without what it refused. The client has
    /// nothing but comments.
    Due(Option<Box<Refusal>>),
    /// The next question of a step is to be asked, or the first call of the upstream behind the
    /// last step is to be made. Behind the answer, the client has all of it but its end. `cut`: the
    /// answer before goes on with what nobody reads.
    AskDue { cut: bool },
    /// A question is open. The client has what it had when the question became due.
    Asked(Ask),
    /// The host reads a document. The client has nothing.
    Reading,
    /// The upstream is called. The client has what came of the answer so far.
    Called(Round),
    /// A method works on what it took out of the phase. No host sees this.
    Taken,
    /// The client has everything. `cut`: the upstream goes on with what nobody reads.
    Ended { cut: bool },
    /// The request is not for Creole, and passes.
    Passed,
}

/// Call that is to be made.
pub(super) enum Due {
    /// The first call of the upstream.
    First,
    /// A call without what the upstream refused.
    Again(Box<Refusal>),
    /// The call of a step's question.
    Ask,
}

impl State {
    pub(super) fn new() -> Self {
        Self(Phase::Requested)
    }

    pub(super) fn pass(&mut self) {
        self.0 = Phase::Passed;
    }

    /// Notes that the request is complete: its first call is due.
    pub(super) fn complete(&mut self) {
        if matches!(self.0, Phase::Requested) {
            self.0 = Phase::Due(None);
        }
    }

    /// Begins the round of a call that is made.
    pub(super) fn call(&mut self, round: Round) {
        self.0 = Phase::Called(round);
    }

    /// Opens a question.
    pub(super) fn ask(&mut self, ask: Ask) {
        self.0 = Phase::Asked(ask);
    }

    /// Leaves a document to the host.
    pub(super) fn read(&mut self) {
        self.0 = Phase::Reading;
    }

    pub(super) fn is_reading(&self) -> bool {
        matches!(self.0, Phase::Reading)
    }

    /// Makes another call of the upstream due, which refused the last one.
    pub(super) fn retry(&mut self, refusal: Refusal) {
        self.0 = Phase::Due(Some(Box::new(refusal)));
    }

    /// Makes the next question of a step due.
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

    /// Notes that an ended exchange came to its end in the middle of the upstream's answer, which
    /// goes on.
    pub(super) fn cut(&mut self) {
        if self.is_ended() {
            self.0 = Phase::Ended { cut: true };
        }
    }

    /// Takes the call that is due.
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

    /// Takes the round out, to be put back by [`State::call`].
    pub(super) fn take_round(&mut self) -> Option<Round> {
        match std::mem::replace(&mut self.0, Phase::Taken) {
            Phase::Called(round) => Some(round),
            other => {
                self.0 = other;
                None
            }
        }
    }

    /// Takes the open question out, for which an answer has come or failed.
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

    /// Returns true if the answer to the last call is over, and another call is to be made.
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
