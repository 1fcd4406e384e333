//! What reads an upstream's answer: one for each round, of the upstream's protocol.

use std::fmt::Debug;

use super::output::Output;
use crate::error::Error;

/// Reads one answer of an upstream and writes what it says to an [`Output`].
///
/// The body comes as a whole or in pieces, never both. After an error, and after the end of the message was written,
/// nothing is called any more.
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

    /// The stream is over.
    ///
    /// # Errors
    /// It ended before the answer did.
    fn handle_end(&mut self, to: &mut Output<'_>) -> Result<(), Error>;

    /// Whether nothing is missing of an answer in one text, however its connection ended.
    fn is_whole(&self, body: &[u8]) -> bool;

    /// Bytes of the answer that are kept in memory.
    fn held_bytes(&self) -> usize;

    /// What has been read.
    fn state(&self) -> &dyn AnswerState;

    /// What has been read, to be told what no body says.
    fn state_mut(&mut self) -> &mut dyn AnswerState;
}

/// What a reader has read of an answer.
pub trait AnswerState: Debug + Send + Sync {
    /// The connection did not end as it should, or there is nothing more to be waited for.
    fn break_off(&mut self) {}

    /// Begins the message, though nothing of the answer is known yet.
    fn begin(&mut self, _to: &mut Output<'_>) {}

    /// Whether the answer can be over, now that its connection is.
    fn is_complete(&self) -> bool;

    /// Whether nothing of the answer need follow.
    fn ending(&self) -> Ending;

    /// How much has come that shows that the model gets on.
    fn spoken(&self) -> u64;

    /// Bytes of the answer that are kept in memory.
    fn held_bytes(&self) -> usize;
}

/// Whether nothing of an answer need follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// More must come.
    Open,
    /// The upstream has said that it stopped.
    Likely,
    /// All is there.
    Sure,
    /// The text was cut here: whatever else the upstream generates, nobody sees.
    Cut,
}
