//! What the client has seen of an answer.

/// How far the message is, and what of it the client has.
#[derive(Debug, Default)]
pub(super) struct Progress {
    phase: Phase,
    /// The start of the block at the head was sent, and not its end.
    in_block: bool,
    /// A block was started.
    has_block: bool,
    /// One of them is a text or a call: the client has something to go on with.
    has_said: bool,
}

/// How far an answer is, for the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing was sent.
    #[default]
    Start,
    /// `message_start`.
    Open,
    /// `message_stop`, or an error after `message_start`. Nothing follows.
    Ended,
    /// Nothing, and nothing will come: the answer failed before `message_start`.
    Failed,
}

impl Progress {
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether nothing more may be written.
    pub(super) fn is_final(&self) -> bool {
        matches!(self.phase, Phase::Ended | Phase::Failed)
    }

    /// Whether the block at the head has begun.
    pub(super) fn is_in_block(&self) -> bool {
        self.in_block
    }

    pub(super) fn has_block(&self) -> bool {
        self.has_block
    }

    /// Whether the client has something to go on with.
    pub(super) fn has_said(&self) -> bool {
        self.has_said
    }

    /// The message begins.
    pub(super) fn start(&mut self) {
        self.phase = Phase::Open;
    }

    /// A block begins. `says`: it is a text or a call.
    pub(super) fn open_block(&mut self, says: bool) {
        self.in_block = true;
        self.has_block = true;
        self.has_said |= says;
    }

    /// The block at the head is over, whether or not it had begun.
    pub(super) fn close_block(&mut self) {
        self.in_block = false;
    }

    /// The message is over.
    pub(super) fn end(&mut self) {
        self.phase = Phase::Ended;
    }

    /// An error is the last thing that happens to an answer.
    pub(super) fn fail(&mut self) {
        self.phase = match self.phase {
            Phase::Start | Phase::Failed => Phase::Failed,
            Phase::Open | Phase::Ended => Phase::Ended,
        };
    }

    /// The answer failed, and what was written of it will not reach the client.
    pub(super) fn take_back(&mut self) {
        self.phase = Phase::Failed;
    }
}
