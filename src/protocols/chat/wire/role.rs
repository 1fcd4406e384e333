//! Role (author) of the content of a delta.

/// Role (author) of the content of a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeltaRole {
    /// Role `assistant`: the content is from the model.
    Assistant,
    /// Role `tool`: a tool that the server ran itself (Mistral's connectors). The content is the
    /// tool's result.
    Tool,
    /// Any role except `assistant` and `tool`.
    Other,
}

impl DeltaRole {
    pub(crate) fn of(word: &str) -> Self {
        match word {
            "assistant" => Self::Assistant,
            "tool" => Self::Tool,
            _ => Self::Other,
        }
    }
}
