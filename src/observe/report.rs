//! Report of one exchange, as plain data from which hosts make metrics and log lines.
//!
//! The report holds names, counts and times. It never holds a prompt, a tool input or a credential.

use crate::Millis;
use crate::StopReason;
use crate::error::{ErrorKind, Fault};
use crate::json::Str;
use crate::observe::warning::Warnings;

/// Report of one exchange: a client's request, the calls to upstreams, and the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Value of the header `request-id` of the answer.
    pub request_id: String,
    /// Request id that the upstream gave.
    pub upstream_request_id: Option<String>,
    /// Name of the upstream in the configuration; empty if no upstream was chosen before the
    /// exchange ended.
    pub upstream: String,
    /// Model that the client named in the request.
    pub model: String,
    /// Model name that was sent to the upstream; empty if none was sent.
    pub upstream_model: String,
    /// True if the client wants a streamed answer.
    pub stream: bool,
    /// HTTP status for the client. If an error came after the head was sent, this is the status
    /// that the error would have had.
    pub status: u16,
    /// Outcome of the exchange: open, answered, failed or abandoned.
    pub outcome: Outcome,
    /// Warnings about everything that was changed or left out, and the guards that acted.
    pub warnings: Warnings,
    /// Token counts, model and other facts of the answer.
    pub answer: AnswerReport,
    /// Report on the judge, a model that gives verdicts on the answer's tool calls, if the client
    /// requested verdicts and a judge is configured.
    pub judge: Option<Box<JudgeReport>>,
    /// Report on the model that described the request's images, if images had to be described.
    pub vision: Option<Box<VisionReport>>,
    /// Report on the images that were fetched from the web for the request, if any fetch was tried.
    pub images: Option<Box<ImagesReport>>,
    /// Report on the documents of the request whose text was extracted, if there were any.
    pub documents: Option<Box<DocumentsReport>>,
    /// Report on the server tools that Creole ran for the answer, if the model called any.
    pub tools: Option<Box<ToolsReport>>,
    /// Cause of a failure, if more is known than the kind of the error. See [`Report::cause`].
    pub failed_by: Option<Cause>,
    /// Name of the client's key, if clients have keys of Creole's own.
    pub client_key: Option<String>,
    /// Trace id from the client's `traceparent` header.
    pub trace_id: Option<String>,
    /// HTTP status of the upstream's response.
    pub upstream_status: Option<u16>,
    /// Error message of the upstream, without credentials, if the client gets another message.
    pub upstream_message: Option<String>,
    /// Number of times the upstream was called again, without request fields that it had refused.
    pub retries: u32,
    /// Number of these calls for which the refused part was found in the request, because the text
    /// of the refusal is not known.
    pub retries_by_evidence: u32,
    /// Values of `code` and `type` in the upstream's error.
    pub upstream_codes: Option<String>,
    /// Description of the failure by Creole, without any value of the client or the upstream.
    pub reason: Option<String>,
    /// Counts of messages, tools and tool results of the request.
    pub counts: RequestCounts,
    /// Size of the client's request body, in bytes.
    pub request_bytes: usize,
    /// Size of the request bodies sent to the upstream, in bytes. The bodies of repeated calls are
    /// included.
    pub upstream_request_bytes: usize,
    /// Size of the upstream's response body, in bytes.
    pub upstream_response_bytes: usize,
    /// Size of the response body for the client, in bytes.
    pub response_bytes: usize,
    /// Time spent on translation, in microseconds, if the host measures it.
    pub translation_us: Option<u64>,
    /// Time at which the request was complete, in Unix milliseconds.
    pub requested_at: Millis,
    /// Time at which the head of the upstream's response arrived.
    pub head_at: Option<Millis>,
    /// Time at which the upstream's first content arrived, even if nothing of it goes to the
    /// client.
    pub content_at: Option<Millis>,
    /// Time at which the exchange ended.
    pub ended_at: Option<Millis>,
}

impl Report {
    /// Returns the model that served the request: the name in the upstream's answer, or else the
    /// name sent to the upstream. Empty if none was sent.
    #[must_use]
    pub fn served_model(&self) -> &str {
        served_model(&self.upstream_model, &self.answer)
    }

    /// Returns the end of the exchange as one word of a small set: a stop reason, or the cause of a
    /// failure.
    #[must_use]
    pub fn cause(&self) -> &'static str {
        match (self.outcome, self.failed_by) {
            (Outcome::Open, _) => "open",
            (Outcome::Abandoned, _) => "client_gone",
            // Lists, counts and refusals of probes have no stop reason.
            (Outcome::Answered, _) => self.answer.stop_reason.map_or("reply", StopReason::word),
            (Outcome::Failed(..), Some(cause)) => cause.word(),
            (Outcome::Failed(_, Fault::Client), None) => "request_refused",
            (Outcome::Failed(_, Fault::Upstream), None) => "upstream_error",
            (Outcome::Failed(_, Fault::Operator), None) => "gateway",
        }
    }
}

/// Returns the model that served a request for the model `asked`: the name in the answer, or else
/// `asked`.
pub(crate) fn served_model<'r>(asked: &'r str, answer: &'r AnswerReport) -> &'r str {
    let named = answer.named_model.as_deref().filter(|named| !named.is_empty());
    if asked.is_empty() { "" } else { named.unwrap_or(asked) }
}

/// Defines the causes of failures and their names in logs and metrics.
macro_rules! causes {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal,)+) => {
        /// Cause of a failed exchange.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Cause {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Cause {
            /// Names of all causes, for logs and metrics.
            pub const WORDS: &[&str] = &[$($word),+];

            /// Returns the name of the cause in logs and metrics.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

causes! {
    /// Cause: the host does not serve this client, for example a foreign web page.
    Forbidden = "forbidden",
    /// Cause: a guard refused the request.
    Guard = "guard",
    /// Cause: the request went from one Creole host to another in a loop.
    Loop = "loop",
    /// Cause: the host's configuration of the route cannot be read.
    Misconfigured = "misconfigured",
    /// Cause: no server of the upstream is healthy.
    NoHealthyUpstream = "no_healthy_upstream",
    /// Cause: the host has no route for the request.
    NoRoute = "no_route",
    /// Cause: all exchanges together hold the maximum number of bytes, or the request was evicted
    /// for others.
    Overloaded = "overloaded",
    /// Cause: the client's request body ended before it was complete.
    RequestIncomplete = "request_incomplete",
    /// Cause: the client's request body is too large.
    RequestTooLarge = "request_too_large",
    /// Cause: the client's request body arrived too slowly.
    RequestTooSlow = "request_too_slow",
    /// Cause: the rest of the answer is larger than the host can send at once.
    RestTooLarge = "rest_too_large",
    /// Cause: the upstream sent nothing for too long.
    Stall = "stall",
    /// Cause: the host's own timeout ended the call before the head of the upstream's response.
    Timeout = "timeout",
    /// Cause: the client has no valid client key.
    Unauthorized = "unauthorized",
    /// Cause: the connection to the upstream failed before the head of its response.
    Unreachable = "unreachable",
    /// Cause: the upstream's stream ended before the answer was complete.
    UpstreamBrokeOff = "upstream_broke_off",
    /// Cause: the upstream answered with an error status.
    UpstreamRefused = "upstream_refused",
}

/// Outcome of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// The exchange has not ended, or the request was passed through untranslated.
    #[default]
    Open,
    /// The client got a message, or an answer that Creole made itself.
    Answered,
    /// The client got an error of this kind, by the fault of the client, the upstream or the
    /// operator.
    Failed(ErrorKind, Fault),
    /// The client closed the connection before the end of the answer.
    Abandoned,
}

/// Counts and names that were read from an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerReport {
    /// Id that the upstream gave its answer.
    pub upstream_id: Option<String>,
    /// Model that the upstream names in its answer.
    pub named_model: Option<String>,
    /// True if `message_start` was sent to the client before the upstream named the model.
    pub began_unnamed: bool,
    /// Value of `stop_reason`, once it is known.
    pub stop_reason: Option<StopReason>,
    /// Number of input tokens (`input_tokens`).
    pub input_tokens: u64,
    /// Number of input tokens read from the cache (`cache_read_input_tokens`).
    pub cache_read_tokens: u64,
    /// Number of input tokens written to the cache (`cache_creation_input_tokens`).
    pub cache_creation_tokens: u64,
    /// Number of output tokens (`output_tokens`).
    pub output_tokens: u64,
    /// Number of thinking tokens (`thinking_tokens`).
    pub thinking_tokens: u64,
    /// Number of stream chunks that were read from the upstream.
    pub chunks: u64,
    /// Number of tool calls that the client got.
    pub tool_calls: u32,
    /// Number of calls of server tools that Creole runs.
    pub server_calls: u32,
    /// Number of pieces of content that were read. The number does not grow while an upstream sends
    /// only keep-alives.
    pub progress: u64,
}

impl AnswerReport {
    /// Adds the counts of the earlier rounds of the answer.
    pub(crate) fn add_earlier(&mut self, earlier: &Self) {
        for (count, before) in [
            (&mut self.input_tokens, earlier.input_tokens),
            (&mut self.cache_read_tokens, earlier.cache_read_tokens),
            (&mut self.cache_creation_tokens, earlier.cache_creation_tokens),
            (&mut self.output_tokens, earlier.output_tokens),
            (&mut self.thinking_tokens, earlier.thinking_tokens),
            (&mut self.chunks, earlier.chunks),
            (&mut self.progress, earlier.progress),
        ] {
            *count = count.saturating_add(before);
        }
        self.tool_calls = self.tool_calls.saturating_add(earlier.tool_calls);
        self.server_calls = self.server_calls.saturating_add(earlier.server_calls);
        self.began_unnamed = earlier.began_unnamed;
    }

    /// Notes the upstream's id of the answer and the model's name, the first time each is read.
    #[inline]
    pub(crate) fn name(&mut self, id: Option<Str<'_>>, model: Option<Str<'_>>) {
        if let (None, Some(id)) = (&self.upstream_id, id) {
            self.upstream_id = Some(id.decode().into_owned());
        }
        if let (None, Some(model)) = (&self.named_model, model) {
            self.named_model = Some(model.decode().into_owned());
        }
    }
}

/// Report on the judge, a model that gives verdicts on an answer's tool calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgeReport {
    /// Name of the judge's model at its upstream.
    pub model: String,
    /// Name of the judge's upstream in the configuration.
    pub upstream: String,
    /// Result of calling the judge, as one word of a small set; empty until the end of the answer.
    pub result: &'static str,
    /// Number of tool calls that the judge flagged.
    pub flagged: u32,
    /// Number of tool calls that the judge did not flag.
    pub not_flagged: u32,
    /// Number of tool calls without a verdict.
    pub unjudged: u32,
    /// Number of input tokens of the judge.
    pub input_tokens: u64,
    /// Number of output tokens of the judge.
    pub output_tokens: u64,
    /// Time that the client waited for the judge, in milliseconds, if the judge was called.
    pub duration_ms: Option<u64>,
}

/// Report on the model that describes images, for upstream models that cannot see images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VisionReport {
    /// Name of the describing model at its upstream.
    pub model: String,
    /// Name of the describing model's upstream in the configuration.
    pub upstream: String,
    /// Number of images that the model described; equal images count once.
    pub described: usize,
    /// Number of images that should have been described but were not.
    pub failed: usize,
    /// Number of input tokens of the describing model.
    pub input_tokens: u64,
    /// Number of output tokens of the describing model.
    pub output_tokens: u64,
    /// Time that the client waited for the descriptions, in milliseconds.
    pub duration_ms: Millis,
}

/// Report on images that were fetched from the web for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImagesReport {
    /// Number of images that were fetched; equal URLs count once.
    pub fetched: usize,
    /// Number of images that could not be fetched.
    pub missing: usize,
    /// Number of bytes of response bodies that the images' servers sent.
    pub bytes: usize,
    /// Time that the client waited for the images, in milliseconds.
    pub duration_ms: Millis,
}

/// Report on documents whose text was extracted for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentsReport {
    /// Number of documents whose text was extracted.
    pub read: usize,
    /// Number of documents of which no text could be extracted.
    pub unread: usize,
    /// Time that the client waited for the documents, in milliseconds.
    pub duration_ms: Millis,
}

/// Report on server tools that Creole ran for an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolsReport {
    /// Number of requests to the model's upstream for the answer.
    pub turns: u32,
    /// Numbers of calls of server tools, by kind of tool.
    pub calls: ToolCounts,
    /// Time that the client waited for results of server tools, in milliseconds.
    pub duration_ms: Millis,
}

/// Numbers of calls by kind of server tool. Names that requests choose, such as those of tools of
/// MCP servers, are not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolCounts([CallCount; TOOL_KINDS.len()]);

/// Names of the kinds of server tools in logs and metrics. All tools of MCP servers are one kind.
pub const TOOL_KINDS: [&str; 4] = ["web_search", "web_fetch", "tool_search", "mcp"];

/// Number of calls of one kind of server tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCount {
    /// Number of calls.
    pub calls: u32,
    /// Number of calls with an error as their result.
    pub failed: u32,
}

impl ToolCounts {
    /// Returns the kinds of tools that were called, by name, with the numbers of their calls.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, CallCount)> {
        TOOL_KINDS.into_iter().zip(self.0).filter(|(_, count)| count.calls > 0)
    }

    /// Adds the calls of another exchange.
    pub fn add_all(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            count.calls = count.calls.saturating_add(more.calls);
            count.failed = count.failed.saturating_add(more.failed);
        }
    }

    /// Adds a call of a tool whose kind is in [`TOOL_KINDS`].
    pub fn add(&mut self, kind: &str, is_failure: bool) {
        let mut counts = TOOL_KINDS.iter().zip(&mut self.0);
        if let Some((_, count)) = counts.find(|(known, _)| **known == kind) {
            count.calls = count.calls.saturating_add(1);
            count.failed = count.failed.saturating_add(u32::from(is_failure));
        }
    }

    /// Returns the number of all calls.
    #[must_use]
    pub fn total(&self) -> CallCount {
        self.0.iter().fold(CallCount::default(), |sum, count| CallCount {
            calls: sum.calls.saturating_add(count.calls),
            failed: sum.failed.saturating_add(count.failed),
        })
    }
}

/// Counts of the contents of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Number of messages in the request.
    pub messages: u32,
    /// Number of tools that the client offers in the request.
    pub tools: u32,
    /// Number of tool results in the request.
    pub tool_results: u32,
    /// Number of tool results after the last assistant message, which no earlier request had.
    pub new_results: u32,
    /// Number of tool call ids that are an upstream's id, unchanged.
    pub ids_decoded: u32,
    /// Number of tool call ids that contain an upstream's id after a tag.
    pub ids_tagged: u32,
    /// Number of tool call ids that another endpoint gave.
    pub ids_foreign: u32,
}

impl RequestCounts {
    /// Returns true if the request has tool calls or tool results.
    #[must_use]
    pub(crate) fn has_calls(&self) -> bool {
        self.ids_decoded > 0 || self.ids_tagged > 0 || self.ids_foreign > 0
    }
}
