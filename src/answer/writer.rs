//! What writes an answer for the client: one for each answer, of the client's protocol.

use std::fmt::Debug;

use crate::model::event::Event;

/// Writes one answer in the client's protocol, as events or as one message.
pub trait AnswerWriter: Debug + Send + Sync {
    /// Writes what the upstream says.
    fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>);

    /// Writes a sign of life.
    fn ping(&self, out: &mut Vec<u8>);

    /// How far the answer is, for the client.
    fn phase(&self) -> Phase;

    /// A relay has written so much of the answer by itself.
    fn relayed(&mut self, phase: Phase);

    /// The answer failed, and what was written of it will not reach the client.
    fn take_back(&mut self);

    /// Bytes that are kept until the end.
    fn held_bytes(&self) -> usize;
}

/// How far an answer is, for the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing was written.
    #[default]
    Start,
    /// The beginning of the message.
    Open,
    /// All of it.
    Ended,
}
