//! Interface for readers of an upstream's answer; each request to an upstream has a reader for its
//! protocol.

use std::fmt::Debug;

use super::output::ReaderOutput;
use crate::error::Error;

/// Reader of one answer of an upstream, which writes the content to an [`ReaderOutput`].
///
/// The body comes as a whole or in pieces, never both. After an error, or after the end of the
/// message was written, no method is called any more.
pub trait AnswerReader: Debug + Send + Sync {
    /// Handles a piece of a stream, cut at any byte.
    ///
    /// # Errors
    /// The upstream reports an error, or sends an invalid response.
    fn handle_piece(&mut self, piece: &[u8], to: &mut ReaderOutput<'_>) -> Result<(), Error>;

    /// Handles the whole body of an answer.
    ///
    /// # Errors
    /// The upstream reports an error, or sends an invalid response.
    fn handle_whole(&mut self, body: &[u8], to: &mut ReaderOutput<'_>) -> Result<(), Error>;

    /// Handles the end of the stream.
    ///
    /// # Errors
    /// The stream ended before the answer was complete.
    fn handle_end(&mut self, to: &mut ReaderOutput<'_>) -> Result<(), Error>;

    /// Returns true if an answer in one JSON text is complete, however its connection ended.
    fn is_whole(&self, body: &[u8]) -> bool;

    /// Returns the number of bytes of the answer that are kept in memory.
    fn held_bytes(&self) -> usize;

    /// Returns the state of the answer.
    fn state(&self) -> &dyn AnswerState;

    /// Returns the state of the answer, to record events outside of the body, such as a lost
    /// connection.
    fn state_mut(&mut self) -> &mut dyn AnswerState;
}

/// State of an answer that is being read, independent of the protocol.
pub trait AnswerState: Debug + Send + Sync {
    /// Records that the connection broke, or that no more data is worth waiting for.
    fn break_off(&mut self) {}

    /// Begins the client's message, before anything of the answer is known.
    fn begin(&mut self, _to: &mut ReaderOutput<'_>) {}

    /// Returns true if the answer may be complete, now that its connection has ended.
    fn is_complete(&self) -> bool;

    /// Returns the degree of certainty that the answer is complete.
    fn ending(&self) -> Ending;

    /// Returns the amount of output that shows progress of the model.
    fn spoken(&self) -> u64;

    /// Returns the number of bytes of the answer that are kept in memory.
    fn held_bytes(&self) -> usize;
}

/// Degree of certainty that an answer is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// State: more of the answer must come.
    Open,
    /// State: the upstream sent its finish reason, so the answer is probably complete.
    Likely,
    /// State: everything of the answer has come.
    Sure,
    /// State: Creole ended the answer's text here, so nobody sees further output of the upstream.
    Cut,
}
