//! Chunks to events (being built).
mod scan;
mod sse;
mod tool_input;
pub mod watchdog;

use crate::asked::Asked;
use crate::config::Settings;
use crate::error::Error;
use crate::ids::Ids;
use crate::report::AnswerReport;
use crate::warning::Warnings;

/// One answer, while it is translated.
#[derive(Debug)]
pub struct Answer {
    asked: Box<Asked>,
    report: AnswerReport,
    warnings: Warnings,
}

impl Answer {
    /// Starts an answer.
    #[must_use]
    pub fn new(asked: Box<Asked>, _settings: &Settings, _ids: Ids) -> Self {
        Self { asked, report: AnswerReport::default(), warnings: Warnings::default() }
    }
    /// Whether the client gets events (or one message).
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.asked.stream
    }
    /// Whether `message_start` was written.
    #[must_use]
    pub fn has_started(&self) -> bool {
        false
    }
    /// Whether the end was written.
    #[must_use]
    pub fn is_done(&self) -> bool {
        false
    }
    /// Counts.
    #[must_use]
    pub fn report(&self) -> &AnswerReport {
        &self.report
    }
    /// Warnings.
    #[must_use]
    pub fn warnings(&self) -> &Warnings {
        &self.warnings
    }
    /// A piece of an event stream.
    pub fn handle_piece(&mut self, _piece: &[u8], _out: &mut Vec<u8>) -> Result<(), Error> {
        Err(Error::misbehaved("not built"))
    }
    /// A whole JSON body.
    pub fn handle_whole(
        &mut self,
        _body: &[u8],
        _edge_key: bool,
        _out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        Err(Error::misbehaved("not built"))
    }
    /// The body is over; `complete`: as HTTP says it should.
    pub fn handle_end(&mut self, _complete: bool, _out: &mut Vec<u8>) -> Result<(), Error> {
        Err(Error::misbehaved("not built"))
    }
    /// An answer of Creole's own: one text block (none if empty) and a stop reason.
    pub fn write_own(&mut self, _text: &str, _stop_reason: &'static str, _out: &mut Vec<u8>) {}
}
