//! Writer of an answer for the client: one for each answer, of the client's protocol.

use std::fmt::Debug;

use crate::model::event::Event;

/// Writes one answer in the client's protocol, as events or as one message.
pub trait AnswerWriter: Debug + Send + Sync {
    /// Writes an event of the upstream.
    fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>);

    /// Writes a sign of life.
    fn ping(&self, out: &mut Vec<u8>);

    /// Returns how much of the answer was written for the client.
    fn phase(&self) -> Phase;

    /// Notes that a relay has written the answer up to this phase by itself.
    fn relayed(&mut self, phase: Phase);

    /// Takes the answer back: it failed, and what was written of it will not reach the client.
    fn take_back(&mut self);

    /// Returns the number of bytes that are kept until the end.
    fn held_bytes(&self) -> usize;
}

/// Part of an answer that was written for the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// State: nothing of the answer was written.
    #[default]
    Start,
    /// State: the beginning of the message was written.
    Open,
    /// State: the whole message was written.
    Ended,
}
