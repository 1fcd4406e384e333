//! Kinds of the events of a Responses stream, and the `type` values of each kind.

/// Kind of an event in a Responses stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// Event during the answer that adds no content: a response that is not over, or the progress
    /// of a tool that the server runs.
    Progress,
    /// Beginning of an output item, such as a message or a call.
    ItemAdded,
    /// End of an output item; the event has the complete item.
    ItemDone,
    /// Beginning of a part of an item, sometimes with a text.
    PartAdded,
    /// End of a part of an item.
    PartDone,
    /// Delta event with the next piece of a text.
    Delta(Of),
    /// End of a text; the event has the whole text.
    Done(Of),
    /// Annotation event with a source of a text.
    Annotation,
    /// End of an answer that is complete.
    Completed,
    /// End of an answer that was cut off.
    Incomplete,
    /// End of an answer that failed or was cancelled.
    Failed,
    /// Error event. An event with a failed response may follow.
    Error,
    /// Event of a type that this version does not know.
    Unknown,
}

/// Kind of a streamed text, which also shows the kind of item the text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// Text of the answer for the user.
    Text,
    /// Text with which the model refuses to answer.
    Refusal,
    /// Reasoning of the model.
    Thought(ThoughtKind),
    /// Arguments of a function call.
    Arguments,
    /// Input of a custom tool call.
    Input,
}

/// Form in which a server sends reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThoughtKind {
    /// Summary of the model's reasoning.
    Summary,
    /// Reasoning of the model in full, not summarized.
    Raw,
}

/// Known event types and their kinds, ordered by frequency.
const KINDS: [(&str, EventKind); 35] = [
    ("response.output_text.delta", EventKind::Delta(Of::Text)),
    ("response.reasoning_summary_text.delta", EventKind::Delta(Of::Thought(ThoughtKind::Summary))),
    ("response.function_call_arguments.delta", EventKind::Delta(Of::Arguments)),
    ("response.reasoning_text.delta", EventKind::Delta(Of::Thought(ThoughtKind::Raw))),
    ("response.custom_tool_call_input.delta", EventKind::Delta(Of::Input)),
    ("response.refusal.delta", EventKind::Delta(Of::Refusal)),
    ("response.created", EventKind::Progress),
    ("response.queued", EventKind::Progress),
    ("response.in_progress", EventKind::Progress),
    ("response.output_item.added", EventKind::ItemAdded),
    ("response.output_item.done", EventKind::ItemDone),
    ("response.content_part.added", EventKind::PartAdded),
    ("response.content_part.done", EventKind::PartDone),
    ("response.output_text.done", EventKind::Done(Of::Text)),
    ("response.refusal.done", EventKind::Done(Of::Refusal)),
    ("response.reasoning_summary_part.added", EventKind::PartAdded),
    ("response.reasoning_summary_part.done", EventKind::PartDone),
    ("response.reasoning_summary_text.done", EventKind::Done(Of::Thought(ThoughtKind::Summary))),
    ("response.reasoning_text.done", EventKind::Done(Of::Thought(ThoughtKind::Raw))),
    // Event types of vLLM.
    ("response.reasoning_part.added", EventKind::PartAdded),
    ("response.reasoning_part.done", EventKind::PartDone),
    ("response.function_call_arguments.done", EventKind::Done(Of::Arguments)),
    ("response.custom_tool_call_input.done", EventKind::Done(Of::Input)),
    ("response.output_text.annotation.added", EventKind::Annotation),
    ("response.completed", EventKind::Completed),
    ("response.done", EventKind::Completed),
    ("response.incomplete", EventKind::Incomplete),
    ("response.failed", EventKind::Failed),
    ("response.cancelled", EventKind::Failed),
    ("response.error", EventKind::Error),
    ("error", EventKind::Error),
    ("keepalive", EventKind::Progress),
    ("ping", EventKind::Progress),
    // Event types of older servers.
    ("response.reasoning.delta", EventKind::Delta(Of::Thought(ThoughtKind::Raw))),
    ("response.reasoning_summary.delta", EventKind::Delta(Of::Thought(ThoughtKind::Summary))),
];

/// Prefixes of event types that report the progress of tools which the server runs.
const OF_SERVER_TOOLS: [&str; 9] = [
    "response.web_search_call.",
    "response.file_search_call.",
    "response.code_interpreter_call",
    "response.image_generation_call.",
    "response.mcp_",
    "response.shell_call",
    "response.apply_patch_call",
    "response.computer_call",
    "response.compaction.",
];

impl EventKind {
    /// Returns the kind of an event whose `type` is `name`.
    pub(crate) fn of(name: &str) -> Self {
        if let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == name) {
            return *kind;
        }
        match OF_SERVER_TOOLS.iter().any(|start| name.starts_with(start)) {
            true => Self::Progress,
            false => Self::Unknown,
        }
    }
}
