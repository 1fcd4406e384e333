//! Reasons why an answer ends, in the words of the Messages API.

/// Reason why an answer ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// The model ended its answer by itself.
    #[default]
    EndTurn,
    /// The answer reached the request's `max_tokens`.
    MaxTokens,
    /// The answer reached one of the client's stop sequences.
    StopSequence,
    /// The model calls tools.
    ToolUse,
    /// A server interrupted a long turn, which the client may continue.
    PauseTurn,
    /// The model, or a filter, refuses to answer.
    Refusal,
    /// The context window is full.
    ModelContextWindowExceeded,
}

impl StopReason {
    const ALL: [Self; 7] = [
        Self::EndTurn,
        Self::MaxTokens,
        Self::StopSequence,
        Self::ToolUse,
        Self::PauseTurn,
        Self::Refusal,
        Self::ModelContextWindowExceeded,
    ];

    /// Returns the word of the Messages API.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::MaxTokens => "max_tokens",
            Self::StopSequence => "stop_sequence",
            Self::ToolUse => "tool_use",
            Self::PauseTurn => "pause_turn",
            Self::Refusal => "refusal",
            Self::ModelContextWindowExceeded => "model_context_window_exceeded",
        }
    }

    /// Finds the reason with this word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.word() == word)
    }

    /// Returns true if a limit of tokens cut the answer off.
    #[must_use]
    pub fn is_cut(self) -> bool {
        matches!(self, Self::MaxTokens | Self::ModelContextWindowExceeded)
    }
}
