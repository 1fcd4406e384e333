//! Destination of an answer that is being read: the client's writer, the counts and the warnings.

use super::rules::Rules;
use super::writer::{AnswerWriter, WriterPhase};
use crate::StopReason;
use crate::error::{Error, Rejection};
use crate::ids::Ids;
use crate::json;
use crate::model::counts::Counts;
use crate::model::event::{Event, Stop};
use crate::model::request_context::RequestContext;
use crate::model::stop_reason;
use crate::observe::report::AnswerReport;
use crate::observe::warning::Warnings;
use crate::tokens::tokens_of;
use crate::upstream_error as error;

/// Number of bytes counted for a block or an id, in addition to its texts, towards
/// `waiting_bytes_max`.
pub(crate) const BLOCK_BYTES: usize = 128;

/// Error message for an invalid response of the upstream.
pub(crate) const INVALID_RESPONSE: &str = "Upstream sent an invalid response";

/// Destination for a reader's results: request context, rules, the client's writer, counts and
/// warnings.
#[derive(Debug)]
pub struct ReaderOutput<'a> {
    /// Context of the request.
    pub context: &'a RequestContext,
    /// Settings that concern answers.
    pub rules: &'a Rules,
    /// Generator of ids for this exchange.
    pub ids: Ids,
    /// Counts of the answer: tokens, chunks and tool calls.
    pub report: &'a mut AnswerReport,
    /// Warnings about the answer.
    pub warnings: &'a mut Warnings,
    /// Writer of the client's protocol.
    pub writer: &'a mut dyn AnswerWriter,
    /// Buffer of bytes for the client.
    pub out: &'a mut Vec<u8>,
}

impl ReaderOutput<'_> {
    /// Writes a part of the answer for the client.
    #[inline]
    pub fn write(&mut self, event: Event<'_>) {
        self.writer.write(event, self.out);
    }

    /// Begins the client's message.
    pub fn start(&mut self, model: &str, input_tokens: u64) {
        self.report.began_unnamed = self.report.named_model.is_none();
        self.write(Event::Started { model, input_tokens });
    }

    /// Returns how much of the answer was written for the client.
    #[must_use]
    pub fn phase(&self) -> WriterPhase {
        self.writer.phase()
    }

    /// Counts a warning about the answer.
    pub fn warn(&mut self, code: &'static str) {
        self.warnings.add(code);
    }

    /// Counts a warning about a part of the answer that the upstream calls `name`.
    pub fn warn_named(&mut self, code: &'static str, name: &str) {
        self.warnings.add_named(code, name);
    }

    /// Ends the client's message.
    pub fn stop(&mut self, stop: &Stop<'_>) {
        let Stop { reason, counts, .. } = stop;
        self.report.stop_reason = Some(*reason);
        self.report.input_tokens = counts.input;
        self.report.cache_read_tokens = counts.cache_read;
        self.report.cache_creation_tokens = counts.cache_creation;
        self.report.output_tokens = counts.output;
        self.report.thinking_tokens = counts.thinking.unwrap_or(0);
        self.write(Event::Stopped(stop));
    }

    /// Writes an answer of Creole's own: one text block (none if `text` is empty) and a stop
    /// reason.
    pub(crate) fn write_own(&mut self, text: &str, reason: StopReason) {
        let input = self.context.input_tokens;
        if self.phase() == WriterPhase::Start {
            self.start(&self.context.model, input);
        }
        if !text.is_empty() {
            self.write(Event::TextBegins);
            self.write(Event::Text(&json::escaped(text)));
            self.write(Event::BlockEnds);
        }
        let counts = Counts { input, output: tokens_of(text.len() as u64), ..Counts::default() };
        let Self { context: RequestContext { model, cleared, .. }, .. } = self;
        let stop = Stop { reason, counts, model, cleared: *cleared, ..Stop::default() };
        self.stop(&stop);
    }

    /// Returns the error in `raw`, which the upstream reports, or sent in place of a piece of the
    /// answer.
    pub(crate) fn error_of(&self, raw: &str) -> Error {
        match self.phase() {
            WriterPhase::Start => error::from_object(raw, self.context),
            _ => error::after_content(raw, self.context),
        }
    }

    /// Handles an error that an upstream reports before any content. Errors of content filters, and
    /// those that leave no tokens for an answer, end the answer with a `stop_reason`.
    ///
    /// # Errors
    /// Any other error of the upstream.
    pub(crate) fn fail(&mut self, raw: &str) -> Result<(), Error> {
        let error = self.error_of(raw);
        let Some(reason) = error.rejection().and_then(Rejection::stop_reason) else {
            return Err(error);
        };
        self.warn("usage_estimated");
        self.write_own("", reason);
        Ok(())
    }
}

/// Returns the error that the upstream's finish reason stands for; `None` if the reason is no
/// failure.
pub(crate) fn failure(word: &str, context: &RequestContext) -> Option<Error> {
    stop_reason::is_failure(word).then(|| {
        let code = stop_reason::bare(word);
        error::of_code(&code, stop_reason::message(word), context)
    })
}
