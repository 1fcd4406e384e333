//! Role of the one who speaks in a delta

/// Speaker of the content of a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The model.
    Assistant,
    /// A tool that the server ran itself (Mistral's connectors): the content is its result.
    Tool,
    /// Somebody else.
    Other,
}

impl Role {
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "assistant" => Self::Assistant,
            "tool" => Self::Tool,
            _ => Self::Other,
        }
    }
}
