//! Translation of answers: from the upstream's protocol to the client's.
//!
//! ```text
//!  pieces ─▶ AnswerReader ─────▶ Event ─────▶ AnswerWriter ─▶ bytes
//!            of the upstream's                of the client's
//!            protocol, one a round            protocol, one an answer
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `reader` | interface of the readers, one for each upstream protocol |
//! | `writer` | interface of the writers, one for each client protocol |
//! | `output` | destination of a reader: request context, writer, counts and warnings |
//! | `json` | reader for all protocols whose answers are JSON, whole or in server-sent events |
//! | `rules` | settings that concern answers |
//!
//! Readers handle streams and whole bodies alike, and writers make events or one message of both.
//! So a stream adds up to the message that the same answer gives without one, a server that ignores
//! `stream` does no harm, and each rule is written once. The output depends on the bytes that
//! arrive, never on how they are cut into pieces.

pub(crate) mod json;
pub(crate) mod output;
pub(crate) mod reader;
pub(crate) mod rules;
pub(crate) mod writer;

pub use output::ReaderOutput;
pub use reader::{AnswerReader, AnswerState, Ending};
pub use rules::Rules;
pub use writer::{AnswerWriter, WriterPhase};

use crate::StopReason;
use crate::error::Error;
use crate::ids::Ids;
use crate::model::request_context::RequestContext;
use crate::observe::report::AnswerReport;
use crate::observe::warning::Warnings;

/// Translator of one answer: reader of the upstream's response, and writer of the client's.
///
/// No more output is written after an error, or after the end of the answer.
#[derive(Debug)]
pub struct Answer {
    context: Box<RequestContext>,
    rules: Rules,
    ids: Ids,
    report: AnswerReport,
    warnings: Warnings,
    writer: Box<dyn AnswerWriter>,
    reader: Box<dyn AnswerReader>,
    /// True if the answer failed.
    has_failed: bool,
}

impl Answer {
    /// Creates the translator for one answer.
    #[must_use]
    pub fn new(
        context: Box<RequestContext>,
        rules: Rules,
        ids: Ids,
        reader: Box<dyn AnswerReader>,
        writer: Box<dyn AnswerWriter>,
    ) -> Self {
        Self {
            context,
            rules,
            ids,
            report: AnswerReport::default(),
            warnings: Warnings::new(false),
            writer,
            reader,
            has_failed: false,
        }
    }

    /// Lets the client's message begin with the first chunk of the answer, for hosts that cannot
    /// send `ping` events meanwhile.
    pub fn begin_early(&mut self) {
        self.rules.begins_early = true;
    }

    /// Returns true if the client gets a stream of events, and false if the client gets one
    /// message.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.context.stream
    }

    /// Returns the request context.
    #[must_use]
    pub(crate) fn context(&self) -> &RequestContext {
        &self.context
    }

    /// Returns true if the start of the message was written for the client.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.writer.phase() != WriterPhase::Start
    }

    /// Returns true if nothing more will be written for the client.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.has_failed || self.writer.phase() == WriterPhase::Ended
    }

    /// Records that the upstream's connection ended abnormally, or that no more data is worth
    /// waiting for.
    pub fn break_off(&mut self) {
        self.reader.state_mut().break_off();
    }

    /// Returns true if the answer may be complete, now that its connection has ended.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.reader.state().is_complete()
    }

    /// Returns the degree of certainty that the answer is complete.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.reader.state().ending()
    }

    /// Returns true if an answer in one JSON text is complete, however its connection ended.
    #[must_use]
    pub fn is_whole(&self, body: &[u8]) -> bool {
        self.reader.is_whole(body)
    }

    /// Begins the client's message, before anything of the answer is known.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let (reader, mut to) = self.parts(out);
        reader.state_mut().begin(&mut to);
    }

    /// Writes a `ping` event or the like, to keep the client's connection alive.
    pub fn ping(&self, out: &mut Vec<u8>) {
        self.writer.ping(out);
    }

    /// Returns the number of bytes of the answer that are kept in memory.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.reader.held_bytes().saturating_add(self.writer.held_bytes())
    }

    /// Returns the counts of the answer: tokens, chunks and tool calls.
    #[must_use]
    pub fn report(&self) -> &AnswerReport {
        &self.report
    }

    /// Returns the amount of output that shows progress of the model; white space alone does not
    /// count.
    #[must_use]
    pub fn spoken(&self) -> u64 {
        self.reader.state().spoken()
    }

    /// Returns the warnings of the answer.
    #[must_use]
    pub fn warnings(&self) -> &Warnings {
        &self.warnings
    }

    /// Handles a piece of an event stream, cut at any byte.
    ///
    /// # Errors
    /// The upstream reports an error, or sends an invalid response.
    pub fn handle_piece(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        self.take(out, |reader, to| reader.handle_piece(piece, to))
    }

    /// Handles the whole body of the upstream's answer.
    ///
    /// # Errors
    /// The upstream reports an error, or sends an invalid response.
    pub fn handle_whole(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let before = out.len();
        let result = self.take(out, |reader, to| reader.handle_whole(body, to));
        if result.is_err() {
            // The whole output of the failed answer was written by this call, so nothing of it was
            // sent.
            out.truncate(before);
            self.writer.take_back();
        }
        result
    }

    /// Handles the end of the upstream's body.
    ///
    /// # Errors
    /// The body ended before the answer was complete.
    pub fn handle_end(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        self.take(out, |reader, to| reader.handle_end(to))
    }

    /// Writes an answer of Creole's own: one text block (none if `text` is empty) and a stop
    /// reason.
    pub fn write_own(&mut self, text: &str, stop_reason: StopReason, out: &mut Vec<u8>) {
        if !self.has_failed && self.writer.phase() == WriterPhase::Start {
            self.parts(out).1.write_own(text, stop_reason);
        }
    }

    /// Returns the writer, which goes on to the next round of the answer.
    #[must_use]
    pub(crate) fn into_writer(self) -> Box<dyn AnswerWriter> {
        self.writer
    }

    /// Returns the writer of the client's message.
    pub(crate) fn writer_mut(&mut self) -> &mut dyn AnswerWriter {
        &mut *self.writer
    }

    /// Calls a function of the reader, unless the answer is over, and records an error.
    fn take(
        &mut self,
        out: &mut Vec<u8>,
        take: impl FnOnce(&mut dyn AnswerReader, &mut ReaderOutput<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.is_done() {
            return Ok(());
        }
        let (reader, mut to) = self.parts(out);
        let result = take(reader, &mut to);
        self.has_failed = result.is_err();
        result
    }

    fn parts<'a>(
        &'a mut self,
        out: &'a mut Vec<u8>,
    ) -> (&'a mut dyn AnswerReader, ReaderOutput<'a>) {
        let Self { context, rules, ids, report, warnings, writer, reader, .. } = self;
        let writer = &mut **writer;
        (&mut **reader, ReaderOutput { context, rules, ids: *ids, report, warnings, writer, out })
    }
}

#[cfg(test)]
mod tests;
