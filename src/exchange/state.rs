//! State machine of an exchange: its phases, and the steps between them.

use super::retry::Refusal;
use super::round::Round;
use super::seam::Call;

/// Phase of an exchange. Only its methods move it on.
#[derive(Debug)]
pub(super) struct State(Phase);

#[derive(Debug)]
enum Phase {
    /// The request is not complete. The client has nothing.
    Requested,
    /// The upstream is to be called: for the first time, or without what it refused. The client has nothing but
    /// comments.
    Due(Option<Box<Refusal>>),
    /// The next call of a preparation, or the first of the upstream after them, is to be made.
    /// `cut`: the answer to the last call goes on with what nobody reads.
    PreparationDue { cut: bool },
    /// The judge is to be called. The client has all of the answer but its end. `cut`: the upstream goes on with what
    /// nobody reads.
    JudgeDue { cut: bool },
    /// A call is made. The client has what came of the answer so far.
    Called(Round),
    /// The client has everything. `cut`: the upstream goes on with what nobody reads.
    Ended { cut: bool },
    /// The request is not for Creole, and passes.
    Passed,
}

/// Next step of the preparations of a request.
pub(super) enum Next {
    /// A call is to be made.
    Call(Call),
    /// The host itself is to read a document.
    Host,
    /// The preparations are done: the body is as the upstream takes it.
    Ready,
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

    /// Makes another call of the upstream due, which refused the last one.
    pub(super) fn retry(&mut self, refusal: Refusal) {
        self.0 = Phase::Due(Some(Box::new(refusal)));
    }

    /// Makes the next step of the preparations due, after a call of theirs was answered or failed.
    pub(super) fn prepare(&mut self, cut: bool) {
        if matches!(self.0, Phase::Called(_)) {
            self.0 = Phase::PreparationDue { cut };
        }
    }

    /// Makes the next step of the preparations due, after the host itself has read a document.
    pub(super) fn prepare_on(&mut self) {
        if matches!(self.0, Phase::Requested) {
            self.0 = Phase::PreparationDue { cut: false };
        }
    }

    /// Makes the judge's call due, after the answer is complete.
    pub(super) fn judge(&mut self, cut: bool) {
        self.0 = Phase::JudgeDue { cut };
    }

    /// Returns true if the judge is to be called, and takes the call: it is no longer due.
    pub(super) fn take_judge_due(&mut self) -> bool {
        let is_due = self.is_judge_due();
        if is_due {
            self.0 = Phase::Requested;
        }
        is_due
    }

    pub(super) fn is_judge_due(&self) -> bool {
        matches!(self.0, Phase::JudgeDue { .. })
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

    /// Takes the call that is due, with the refusal that it follows: the call is no longer due.
    pub(super) fn take_due(&mut self) -> Option<Option<Box<Refusal>>> {
        match std::mem::replace(&mut self.0, Phase::Requested) {
            Phase::Due(refusal) => Some(refusal),
            Phase::PreparationDue { .. } => Some(None),
            other => {
                self.0 = other;
                None
            }
        }
    }

    /// Takes the round out, to be put back by [`State::call`].
    pub(super) fn take_round(&mut self) -> Option<Round> {
        match std::mem::replace(&mut self.0, Phase::Requested) {
            Phase::Called(round) => Some(round),
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

    pub(super) fn is_due(&self) -> bool {
        matches!(self.0, Phase::Due(_) | Phase::PreparationDue { .. } | Phase::JudgeDue { .. })
    }

    /// Returns true if the answer to the last call is over, and another call is to be made: the
    /// upstream refused, or a preparation goes on.
    pub(super) fn is_next_due(&self) -> bool {
        matches!(self.0, Phase::Due(Some(_)) | Phase::PreparationDue { .. })
    }

    pub(super) fn is_ended(&self) -> bool {
        matches!(self.0, Phase::Ended { .. })
    }

    pub(super) fn is_cut(&self) -> bool {
        matches!(
            self.0,
            Phase::Ended { cut: true }
                | Phase::JudgeDue { cut: true }
                | Phase::PreparationDue { cut: true }
        )
    }

    pub(super) fn is_passed(&self) -> bool {
        matches!(self.0, Phase::Passed)
    }
}
