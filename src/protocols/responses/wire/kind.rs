//! The types of events.

/// What an event says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    /// The answer goes on: a response that is not over, or the state of a tool that the server runs.
    Progress,
    /// An item begins.
    ItemAdded,
    /// An item is complete.
    ItemDone,
    /// A part of an item begins, perhaps with a text.
    PartAdded,
    /// A part of an item is complete.
    PartDone,
    /// More of a text.
    Delta(Of),
    /// All of a text.
    Done(Of),
    /// A source of a text.
    Annotation,
    /// The answer is complete.
    Completed,
    /// The answer was cut off.
    Incomplete,
    /// There is no answer.
    Failed,
    /// Something failed; a failed response may follow.
    Error,
    /// Of a type that this version does not know.
    Unknown,
}

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// What the model says.
    Text,
    /// What the model says as it refuses.
    Refusal,
    /// What the model thinks.
    Thought(ThoughtKind),
    /// The arguments of a function.
    Arguments,
    /// The input of a custom tool.
    Input,
}

/// In which of the two ways a thought is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThoughtKind {
    /// Its summary.
    Summary,
    /// Word for word.
    Raw,
}

/// The types that say something, those first that come most often.
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
    // vLLM's.
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
    // Older servers' names.
    ("response.reasoning.delta", EventKind::Delta(Of::Thought(ThoughtKind::Raw))),
    ("response.reasoning_summary.delta", EventKind::Delta(Of::Thought(ThoughtKind::Summary))),
];

/// How the types begin of events that tell of tools which the server runs.
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
    /// By the event's type.
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
