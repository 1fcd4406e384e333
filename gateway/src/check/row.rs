//! What is shown of a check: a row for each step.

use super::inside::Received;

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// As it should.
    Works,
    /// Agents can work all the same.
    Limited,
    /// They cannot.
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

/// A step, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) step: &'static str,
    pub(super) level: Level,
    /// One line.
    pub(super) text: String,
    /// One word for a problem; empty where there is none.
    pub(super) code: &'static str,
    pub(super) warnings: Vec<String>,
    pub(super) duration_ms: Option<u64>,
}

impl Row {
    pub(super) fn new(step: &'static str, level: Level, text: impl Into<String>) -> Self {
        let text: String = text.into();
        let text = text.replace(['\n', '\r'], " ");
        Self { step, level, text, code: "", warnings: Vec::new(), duration_ms: None }
    }

    /// With the warnings and the time of an answer.
    pub(super) fn with(mut self, received: &Received) -> Self {
        self.warnings = received.warnings();
        self.duration_ms = u64::try_from(received.whole.as_millis()).ok();
        self
    }
}
