//! Interface for writers of an answer in the client's protocol; each answer has its own writer.

use std::fmt::Debug;

use crate::model::event::Event;

/// Writer of one answer in the client's protocol, as events or as one message.
pub trait AnswerWriter: Debug + Send + Sync {
    /// Writes a part of the answer for the client.
    fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>);

    /// Writes a `ping` event or the like, to keep the client's connection alive.
    fn ping(&self, out: &mut Vec<u8>);

    /// Returns how much of the answer was written for the client.
    fn phase(&self) -> WriterPhase;

    /// Records that a relay has written the answer itself, up to this phase.
    fn relayed(&mut self, phase: WriterPhase);

    /// Resets the writer, because the answer failed and nothing that was written will reach the
    /// client.
    fn take_back(&mut self);

    /// Returns the number of bytes that the writer keeps until the end of the answer.
    fn held_bytes(&self) -> usize;
}

/// Progress of writing the client's message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriterPhase {
    /// State: nothing of the client's message was written.
    #[default]
    Start,
    /// State: the start of the client's message was written.
    Open,
    /// State: the whole client's message was written.
    Ended,
}
