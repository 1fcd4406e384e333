//! The report of one exchange, as plain data: hosts make metrics and log lines of it.
//!
//! It holds names, counts and times. It never holds a prompt, a tool input or a credential.

use crate::Millis;
use crate::StopReason;
use crate::error::{ErrorKind, Fault};
use crate::json::Str;
use crate::observe::warning::Warnings;

/// The report of one exchange.
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
    /// The model that the upstream was asked for; empty where it was not asked for one.
    pub upstream_model: String,
    /// Whether the client wants a stream.
    pub stream: bool,
    /// The status that the client got, or would have got had the head not been sent.
    pub status: u16,
    /// End of the exchange.
    pub outcome: Outcome,
    /// Everything that was changed or left out, and what the guards did.
    pub warnings: Warnings,
    /// Counts of the answer.
    pub answer: AnswerReport,
    /// Report on the judge of the answer's tool calls, where the client asked for one and there is
    /// one.
    pub judge: Option<Box<JudgeReport>>,
    /// Report on the model that described the request's images, if it was to.
    pub vision: Option<Box<VisionReport>>,
    /// Report on the images that were fetched for the request, if that was tried.
    pub images: Option<Box<ImagesReport>>,
    /// Report on the documents of the request, if any were to be read.
    pub documents: Option<Box<DocumentsReport>>,
    /// The cause of a failure, where more is known than the kind of the error. See
    /// [`Report::cause`].
    pub failed_by: Option<Cause>,
    /// The name of the key that the client has, where clients have keys of Creole's.
    pub client_key: Option<String>,
    /// The trace that the client's `traceparent` names.
    pub trace_id: Option<String>,
    /// The status of the upstream's answer.
    pub upstream_status: Option<u16>,
    /// The upstream's message, without credentials, where the client gets another.
    pub upstream_message: Option<String>,
    /// Number of times the upstream was called again, without what it had refused.
    pub retries: u32,
    /// The upstream's `code` and `type` of an error.
    pub upstream_codes: Option<String>,
    /// Description of the failure in Creole's own words, without a value of the client's or the
    /// upstream's.
    pub reason: Option<String>,
    /// Counts of the request.
    pub counts: RequestCounts,
    /// Bytes of the client's body.
    pub request_bytes: usize,
    /// Bytes of the bodies for the upstream: of both, where a request was repeated.
    pub upstream_request_bytes: usize,
    /// Bytes of the upstream's body.
    pub upstream_response_bytes: usize,
    /// Bytes of the body for the client.
    pub response_bytes: usize,
    /// Time spent on translation, in microseconds, where the host measures it.
    pub translation_us: Option<u64>,
    /// Time when the request was complete, in Unix milliseconds.
    pub requested_at: Millis,
    /// Time when the upstream's head came.
    pub head_at: Option<Millis>,
    /// Time when the upstream's first content came, with or without anything for the client.
    pub content_at: Option<Millis>,
    /// Time when the exchange ended.
    pub ended_at: Option<Millis>,
}

impl Report {
    /// Returns the model that served: as the upstream calls it, or else as it was asked for; empty
    /// if none was asked for.
    #[must_use]
    pub fn served_model(&self) -> &str {
        served_model(&self.upstream_model, &self.answer)
    }

    /// Returns the end of the exchange, in one word of a small set: a stop reason, or the cause of
    /// a failure.
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

/// Returns the model that served a request for `asked`, as its answer names it if it does.
pub(crate) fn served_model<'r>(asked: &'r str, answer: &'r AnswerReport) -> &'r str {
    let named = answer.named_model.as_deref().filter(|named| !named.is_empty());
    if asked.is_empty() { "" } else { named.unwrap_or(asked) }
}

/// Defines the causes and their names in logs and metrics.
macro_rules! causes {
    ($($(#[doc = $doc:literal])+ $name:ident = $word:literal,)+) => {
        /// The cause of a failed exchange.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Cause {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Cause {
            /// Names of all causes.
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
    /// The host does not answer this client.
    Forbidden = "forbidden",
    /// A guard refused the request.
    Guard = "guard",
    /// Hosts of Creole lead to each other.
    Loop = "loop",
    /// The host's configuration of the route cannot be read.
    Misconfigured = "misconfigured",
    /// No server of the upstream is healthy.
    NoHealthyUpstream = "no_healthy_upstream",
    /// The host has no route for the request.
    NoRoute = "no_route",
    /// The exchanges together hold as many bytes as they may, or others got the request's place.
    Overloaded = "overloaded",
    /// The client's body broke off.
    RequestIncomplete = "request_incomplete",
    /// The client's body is too large.
    RequestTooLarge = "request_too_large",
    /// The client's body came too slowly.
    RequestTooSlow = "request_too_slow",
    /// The upstream fell silent.
    Stall = "stall",
    /// The host's own timeout came, before the upstream's head.
    Timeout = "timeout",
    /// The client has no key that clients may have.
    Unauthorized = "unauthorized",
    /// The connection to the upstream failed, before its head.
    Unreachable = "unreachable",
    /// The upstream's stream ended before the answer did.
    UpstreamBrokeOff = "upstream_broke_off",
    /// The upstream answered with an error status.
    UpstreamRefused = "upstream_refused",
}

/// End of an exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// The exchange has not ended.
    #[default]
    Open,
    /// The client got a message, or an answer of Creole's own.
    Answered,
    /// The client got an error, by somebody's fault.
    Failed(ErrorKind, Fault),
    /// The client went away.
    Abandoned,
}

/// Counts of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerReport {
    /// The upstream's id of the answer.
    pub upstream_id: Option<String>,
    /// The model that the upstream names in its answer.
    pub named_model: Option<String>,
    /// True if the message began for the client before the upstream named the model.
    pub began_unnamed: bool,
    /// `stop_reason`, once it is known.
    pub stop_reason: Option<StopReason>,
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
    /// Number of chunks that were read.
    pub chunks: u64,
    /// Tool calls that the client got.
    pub tool_calls: u32,
    /// Number of pieces of content that were read; it stands still while an upstream sends only
    /// signs of life.
    pub progress: u64,
}

impl AnswerReport {
    /// Notes what an upstream calls its answer and the model, the first time it does.
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

/// Report on the judge of an answer's tool calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgeReport {
    /// Name of the judge's model at its upstream.
    pub model: String,
    /// The upstream's name in the configuration.
    pub upstream: String,
    /// Result of asking the judge, in one word of a small set; empty while the end of the answer
    /// has not come.
    pub result: &'static str,
    /// Number of calls that the judge flagged.
    pub flagged: u32,
    /// Number of calls that the judge did not flag.
    pub not_flagged: u32,
    /// Number of calls without a verdict.
    pub unjudged: u32,
    /// Tokens that the judge read.
    pub input_tokens: u64,
    /// Tokens that the judge wrote.
    pub output_tokens: u64,
    /// Time that the client waited for the judge, if the judge was asked.
    pub duration_ms: Option<u64>,
}

/// Report on the model that describes images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VisionReport {
    /// Name of the describing model at its upstream.
    pub model: String,
    /// The upstream's name in the configuration.
    pub upstream: String,
    /// Number of images that the model described; equal ones count once.
    pub described: usize,
    /// Number of images that the model was to describe and did not.
    pub failed: usize,
    /// Tokens that the describing model read.
    pub input_tokens: u64,
    /// Tokens that the describing model wrote.
    pub output_tokens: u64,
    /// Time that the client waited for the descriptions.
    pub duration_ms: Millis,
}

/// The images on the web that were fetched for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImagesReport {
    /// Number of images that were fetched; equal URLs count once.
    pub fetched: usize,
    /// Number of images that could not be fetched.
    pub missing: usize,
    /// Bytes of the bodies that the images' servers sent.
    pub bytes: usize,
    /// Time that the client waited for the images.
    pub duration_ms: Millis,
}

/// The documents that were read for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentsReport {
    /// Number of documents that have a text.
    pub read: usize,
    /// Number of documents without a text.
    pub unread: usize,
    /// Time that the client waited for the documents.
    pub duration_ms: Millis,
}

/// Counts of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Number of messages.
    pub messages: u32,
    /// Number of tools that the client offered.
    pub tools: u32,
    /// Number of tool results.
    pub tool_results: u32,
    /// Tool results that no earlier request had: they come after the assistant's last message.
    pub new_results: u32,
    /// Ids of tool calls that carry an upstream's id as it is.
    pub ids_decoded: u32,
    /// Ids of tool calls that carry an upstream's id behind a tag.
    pub ids_tagged: u32,
    /// Ids of tool calls of another endpoint.
    pub ids_foreign: u32,
}

impl RequestCounts {
    /// Returns true if the request has tool calls or tool results.
    #[must_use]
    pub(crate) fn has_calls(&self) -> bool {
        self.ids_decoded > 0 || self.ids_tagged > 0 || self.ids_foreign > 0
    }
}
