//! Interface for writers of an answer in the client's protocol; each answer has its own writer.

use std::fmt::Debug;

use crate::model::event::{Event, ServerCall};

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

    /// Begins a round: another call of an upstream continues the client's message. Everything
    /// written up to now stays written.
    fn begin_round(&mut self);

    /// Resets the writer to the beginning of the round, because the round failed and nothing that
    /// the round wrote will reach the client.
    fn take_back(&mut self);

    /// Removes the calls of server tools with which the round ended. If there are any, the client's
    /// message is not complete: it continues with their results.
    fn take_calls(&mut self) -> Vec<ServerCall> {
        Vec::new()
    }

    /// Returns true if the round also ended with calls that the client has to run. The client's
    /// message then ends with the results of the server tools.
    fn is_mixed(&self) -> bool {
        false
    }

    /// Removes the blocks that were written since the last call of this method, as JSON between the
    /// brackets of a message's `content`. Empty for a writer that does not keep its blocks.
    fn take_blocks(&mut self) -> Vec<u8> {
        Vec::new()
    }

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
