//! Rows of the table that `creole check` prints, one for each step.

use super::inside::ReceivedResponse;

/// Result level of a step of `creole check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The checked feature works.
    Works,
    /// The checked feature works only partly, but agents can work with the model.
    Limited,
    /// The checked feature fails, so agents cannot work with the model.
    Fails,
}

impl Level {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Limited => "limited",
            Self::Fails => "fails",
        }
    }
}

/// Step of `creole check`, with its result.
#[derive(Clone, Debug)]
pub(super) struct CheckRow {
    pub(super) step: &'static str,
    pub(super) level: Level,
    /// Description of the step's result in one line.
    pub(super) text: String,
    /// Code of the step's problem in one word; empty if there is no problem.
    pub(super) code: &'static str,
    pub(super) warnings: Vec<String>,
    pub(super) duration_ms: Option<u64>,
}

impl CheckRow {
    pub(super) fn new(step: &'static str, level: Level, text: impl Into<String>) -> Self {
        let text: String = text.into();
        let text = text.replace(['\n', '\r'], " ");
        Self { step, level, text, code: "", warnings: Vec::new(), duration_ms: None }
    }

    /// Adds the duration of a response to the row of the table.
    pub(super) fn timed(mut self, received: &ReceivedResponse) -> Self {
        self.duration_ms = u64::try_from(received.whole.as_millis()).ok();
        self
    }

    /// Adds the warnings and the duration of a response to the row of the table.
    pub(super) fn with(mut self, received: &ReceivedResponse) -> Self {
        self.warnings = received.warnings();
        self.timed(received)
    }
}
