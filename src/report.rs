//! What happened in one exchange, as plain data: hosts make metrics and log lines of it.
//!
//! It holds names, counts and times. It never holds a prompt, a tool input or a credential.

use crate::Millis;
use crate::error::{Fault, Kind};
use crate::warning::Warnings;

/// What happened in one exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `request-id` of the answer.
    pub request_id: String,
    /// The upstream's own request id.
    pub upstream_request_id: Option<String>,
    /// The upstream's name in the configuration; empty when the request did not get that far.
    pub upstream: String,
    /// The model that the client named.
    pub model: String,
    /// Whether the client asked for a stream.
    pub stream: bool,
    /// The status that the client got, or would have got had the head not been sent.
    pub status: u16,
    /// How it ended.
    pub outcome: Outcome,
    /// Everything that was changed or left out.
    pub warnings: Warnings,
    /// The guards that acted, by name.
    pub guards: Vec<&'static str>,
    /// Turns with tool calls since a person last wrote, and how many are allowed, where there is a
    /// limit.
    pub tool_turn: Option<(u32, u32)>,
    /// What was counted in the answer.
    pub answer: AnswerReport,
    /// Bytes of the client's body.
    pub request_bytes: usize,
    /// Bytes of the upstream's body.
    pub response_bytes: usize,
    /// When the request was complete, in Unix milliseconds.
    pub requested_at: Millis,
    /// When the upstream's head came.
    pub head_at: Option<Millis>,
    /// When the first byte for the client was ready.
    pub first_byte_at: Option<Millis>,
    /// When the exchange ended.
    pub ended_at: Option<Millis>,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It has not.
    #[default]
    Open,
    /// With a message, or with an answer of Creole's own.
    Answered,
    /// With an error, by somebody's fault.
    Failed(Kind, Fault),
    /// The client went away.
    Abandoned,
}

/// What was counted in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerReport {
    /// The upstream's id of the answer.
    pub upstream_id: Option<String>,
    /// `stop_reason`, once it is known.
    pub stop_reason: Option<&'static str>,
    /// `input_tokens`
    pub input_tokens: u64,
    /// `cache_read_input_tokens`
    pub cache_read_tokens: u64,
    /// `cache_creation_input_tokens`
    pub cache_creation_tokens: u64,
    /// `output_tokens`
    pub output_tokens: u64,
    /// `thinking_tokens`
    pub thinking_tokens: u64,
    /// Chunks read.
    pub chunks: u64,
    /// Tool calls that the client got.
    pub tool_calls: u32,
    /// Pieces of content read; it stands still while an upstream sends only signs of life.
    pub progress: u64,
}
