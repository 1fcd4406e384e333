//! Reader of an upstream's answer: one for each round, of the upstream's protocol.

use std::fmt::Debug;

use super::output::Output;
use crate::error::Error;

/// Reads one answer of an upstream and writes what it says to an [`Output`].
///
/// The body comes as a whole or in pieces, never both. After an error, and after the end of the
/// message was written, nothing is called any more.
pub trait AnswerReader: Debug + Send + Sync {
    /// Takes a piece of a stream, cut anywhere.
    ///
    /// # Errors
    /// The upstream reports an error, or sends what cannot be understood.
    fn handle_piece(&mut self, piece: &[u8], to: &mut Output<'_>) -> Result<(), Error>;

    /// Takes a whole body.
    ///
    /// # Errors
    /// The upstream reports an error, or sends what cannot be understood.
    fn handle_whole(&mut self, body: &[u8], to: &mut Output<'_>) -> Result<(), Error>;

    /// Handles the end of the stream.
    ///
    /// # Errors
    /// It ended before the answer did.
    fn handle_end(&mut self, to: &mut Output<'_>) -> Result<(), Error>;

    /// Returns true if nothing is missing of an answer in one text, however its connection ended.
    fn is_whole(&self, body: &[u8]) -> bool;

    /// Returns the number of bytes of the answer that are kept in memory.
    fn held_bytes(&self) -> usize;

    /// Returns the state of the answer.
    fn state(&self) -> &dyn AnswerState;

    /// Returns the state of the answer, to note events from outside of the body, such as a lost
    /// connection.
    fn state_mut(&mut self) -> &mut dyn AnswerState;
}

/// State of an answer that is being read.
pub trait AnswerState: Debug + Send + Sync {
    /// Notes that the connection broke, or that nothing more of the answer is worth waiting for.
    fn break_off(&mut self) {}

    /// Begins the message, though nothing of the answer is known yet.
    fn begin(&mut self, _to: &mut Output<'_>) {}

    /// Returns true if the answer can be over, now that its connection is.
    fn is_complete(&self) -> bool;

    /// Tells if anything of the answer must still follow.
    fn ending(&self) -> Ending;

    /// Returns the amount of output that shows progress of the model.
    fn spoken(&self) -> u64;

    /// Returns the number of bytes of the answer that are kept in memory.
    fn held_bytes(&self) -> usize;
}

/// Certainty that nothing of an answer must still follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// More of the answer must come.
    Open,
    /// The upstream has said that it stopped.
    Likely,
    /// Everything of the answer has come.
    Sure,
    /// The text was cut here: whatever else the upstream generates, nobody sees.
    Cut,
}
