//! Refusal of a request by an upstream, as data, and the error message that the client gets.
//!
//! The module `upstream_error` fills a [`Rejection`] once. Its [`Reason`]s decide what a retry
//! leaves out, and what later requests leave out. [`Rejection::to_client`] makes the client's error
//! from it.

use super::{ErrorDetails, ErrorKind, Fault};
use crate::StopReason;
use crate::text::words;

/// Refusal of a request by an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// HTTP status of the upstream, or the status that its error codes and message stand for.
    pub(crate) status: u16,
    /// Value of `details.error_code`, which some clients act on.
    pub(crate) code: Option<String>,
    /// Values of the upstream's `code` and `type`, for the log.
    pub(crate) codes: Vec<String>,
    /// Error message of the upstream, without credentials; empty if there is none.
    pub(crate) message: String,
    /// Name of the parameter that the error states in addition to its message.
    pub(crate) parameter: Option<String>,
    /// Number of seconds after which the upstream accepts a request again.
    pub(crate) retry_after: Option<u64>,
    /// Meanings of the error's message and codes, most certain first. An error may have several
    /// meanings: "content must be a string" is about an image, or about `null`.
    pub(crate) reasons: Vec<Reason>,
    /// True if the upstream got the gateway's own credential, not the client's.
    pub(crate) of_gateway: bool,
    /// True if the cause depends on more than model and parameter, such as another parameter,
    /// credit or a single block.
    pub(crate) is_passing: bool,
}

/// Meaning of an upstream's error, as far as Creole recognizes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Wrong credential, which is the gateway's own.
    GatewayKey,
    /// Account without credit. `hidden`: the account is the gateway's, so the upstream's message is
    /// not for clients.
    Unpaid { hidden: bool },
    /// Rate limit that is smaller than this single request: fewer tokens per minute or day than the
    /// request has.
    RateTooLow(ContextLimit),
    /// Wrong address of the upstream in the configuration: it leads to another server or path.
    WrongAddress(WrongAddress),
    /// Prompt, or prompt and answer together, that exceed the context window.
    ContextTooLong(ContextLimit),
    /// Requested limit of the answer that is higher than the model's maximum.
    AnswerTooLong { wanted: u64, most: u64, model: String },
    /// Maximum number of tokens that the answer may have.
    AnswerLimit(u64),
    /// Requested limit of the answer that is too low for even one word.
    AnswerTooShort,
    /// Prompt that the provider's content filter refused.
    Filter,
    /// Error message in the words of Anthropic's API, which clients know.
    ClientsWords,
    /// Error message that names the effort of reasoning, whatever the complaint.
    EffortNamed,
    /// System message at a position where the upstream allows none.
    SystemRole,
    /// Value `adaptive` of `thinking.type`, which is refused.
    AdaptiveThinking,
    /// Schema of a tool, which is refused; the number is the tool's position in the client's
    /// request.
    ToolSchema(usize),
    /// Pairing of calls and results, which the upstream refuses.
    Pairing,
    /// Content `null` of a message with calls, which is refused.
    NullContent,
    /// Empty text as the content of a message with calls, which is refused.
    EmptyContent,
    /// Documents, which the model does not support.
    Documents,
    /// Images, which the model does not support.
    Images,
    /// Single image that is refused, or the number of images.
    OneImage,
    /// Parameter `response_format`, which is refused.
    ResponseFormat,
    /// Reasoning in the history, which is refused.
    Reasoning,
    /// Reasoning in the history of this conversation that the upstream can no longer read, or whose
    /// following item is missing. `block` is the path of the first thinking block in the client's
    /// request.
    ReasoningUnread { block: String },
    /// Parameter `stream_options`, which is refused.
    StreamOptions,
    /// Adjacent messages with the same role, or a first message that is not the user's.
    Neighbours,
    /// Number of stop sequences, of which the upstream allows only this many.
    StopCount(usize),
    /// Effort of reasoning, which is refused: the values that are allowed, and whether the message
    /// names any value.
    Effort { taken: Vec<&'static str>, names_value: bool },
    /// Request parameter that has no variant of its own in this enum, and is refused.
    Parameter(Parameter),
    /// Validation error of pydantic that a server formats like Python, here as `PATH: MESSAGE`.
    Complaint(String),
}

/// Parameter that a server does not know, or whose value it refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// Name of the parameter that limits the answer: `max_tokens` or `max_completion_tokens`.
    MaxTokensField,
    /// Setting that enables thinking, for a model that cannot think.
    Thinking,
    /// Setting that switches thinking on or off.
    ThinkingSwitch,
    /// Limit on the number of thinking tokens.
    ThinkingBudget,
    /// Parameter `temperature` or `top_p`.
    Sampling,
    /// Parameter `top_k`.
    TopK,
    /// Parameter `stop` (stop sequences).
    Stop,
    /// Parameter `parallel_tool_calls`.
    ParallelToolCalls,
    /// Parameter `prompt_cache_key`.
    PromptCacheKey,
    /// Parameter `service_tier`.
    ServiceTier,
    /// Parameter `user` or `safety_identifier`.
    User,
    /// Parameter `reasoning.summary` of the Responses API.
    ReasoningSummary,
    /// Parameter `include` of the Responses API, or encrypted reasoning in its value.
    Include,
    /// Parameter `max_output_tokens` of the Responses API.
    OutputLimit,
    /// Parameter `store` of the Responses API.
    Store,
    /// Member `phase` of a message in the Responses API.
    Phase,
}

/// Kind of server at an address that is not the API's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrongAddress {
    /// Server that does not have this path, or redirects it.
    NoPath,
    /// Server that sends a web page instead of an answer.
    OfPages,
    /// Server that expects TLS.
    WantsTls,
}

/// Token counts of a request that is too long, as far as the upstream states numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContextLimit {
    /// Counts are unknown: the numbers are missing or inconsistent.
    Unknown,
    /// Prompt that alone exceeds the context window.
    Prompt { prompt: u64, window: u64 },
    /// Prompt that fits into the context window, but not together with the answer.
    Sum { prompt: u64, answer: u64, window: u64 },
}

/// Message of Anthropic's API for a prompt that is too long, if no numbers are known.
const TOO_LONG: &str = "prompt is too long";

/// Message of Anthropic's API after which Claude Code reads `PROMPT + ANSWER > WINDOW`.
pub(crate) const NO_SPACE: &str = "input length and `max_tokens` exceed context limit:";

/// Part of a message of Anthropic's API before the number of requested tokens.
pub(crate) const MAX_TOKENS: &str = "max_tokens: ";

/// Part of a message of Anthropic's API between the maximum number of output tokens and the model's
/// name.
pub(crate) const OF_OUTPUT: &str = ", which is the maximum allowed number of output tokens for ";

/// Error message for an upstream that refuses the gateway's own key because its account is empty.
/// Claude Code searches for these words.
pub(crate) const UNPAID: &str = "The gateway's credit balance is too low at the upstream.";

impl ContextLimit {
    /// Returns the message of Anthropic's API for a prompt or a sum of tokens that exceeds the
    /// window.
    fn words(self) -> String {
        match self {
            Self::Unknown => TOO_LONG.to_owned(),
            Self::Prompt { prompt, window } => {
                format!("prompt is too long: {prompt} tokens > {window} maximum")
            }
            Self::Sum { prompt, answer, window } => format!(
                "{NO_SPACE} {prompt} + {answer} > {window}, decrease input length or `max_tokens` and try again"
            ),
        }
    }
}

impl WrongAddress {
    /// Returns the client's error message. The text of a web page alone, such as `Please log in`,
    /// would seem to be Creole's.
    fn words(self, upstreams: &str) -> String {
        match self {
            Self::NoPath => upstreams.to_owned(),
            Self::OfPages => format!("Upstream sent a web page instead of an answer: {upstreams}"),
            Self::WantsTls => format!("Upstream expects TLS: {upstreams}"),
        }
    }

    /// Returns the client's error message with the path and the name of the upstream.
    pub(crate) fn words_with(self, path: &str, status: u16, upstream: &str, words: &str) -> String {
        let own = match self {
            Self::NoPath => format!(
                "Upstream does not serve {path} (HTTP {status}); check --upstream, or url and base_path of upstream {upstream}"
            ),
            Self::OfPages => format!(
                "Upstream sent a web page instead of an answer to {path} (HTTP {status}); check --upstream, or url and base_path of upstream {upstream}"
            ),
            Self::WantsTls => {
                format!("Upstream expects TLS; write https:// in the url of upstream {upstream}")
            }
        };
        if words.is_empty() { own } else { format!("{own}: {words}") }
    }
}

impl Rejection {
    /// Returns the party at fault and the client's error details. This is the only mapping from
    /// reasons and upstream status to the client's status, type and message.
    pub(super) fn to_client(&self) -> (Fault, ErrorDetails) {
        let decided = self.reasons.iter().find_map(|reason| self.by_reason(reason));
        let (fault, mut details) = decided.unwrap_or_else(|| {
            let (kind, status) = of_status(self.status);
            // The header `x-should-retry: false` keeps Claude Code from trying the same key for
            // minutes.
            let should_retry = (kind == ErrorKind::Authentication).then_some(false);
            let waits = matches!(kind, ErrorKind::RateLimit | ErrorKind::Overloaded);
            let (code, retry_after) =
                (self.code.clone().map(Into::into), self.retry_after.filter(|_| waits));
            let details = ErrorDetails::new(kind, self.words());
            (self.fault(kind), ErrorDetails { status, code, should_retry, retry_after, ..details })
        });
        cut(&mut details.message);
        (fault, details)
    }

    /// Returns the party at fault and the error details, if `reason` decides them regardless of the
    /// status.
    fn by_reason(&self, reason: &Reason) -> Option<(Fault, ErrorDetails)> {
        let final_error = |fault, kind: ErrorKind, message| {
            (fault, ErrorDetails { should_retry: Some(false), ..ErrorDetails::new(kind, message) })
        };
        let bad_request =
            |message| (Fault::Client, ErrorDetails::new(ErrorKind::InvalidRequest, message));
        Some(match reason {
            // A bad key of the gateway is not the client's fault, and the upstream's message may
            // show the key.
            Reason::GatewayKey => {
                let message = "Upstream rejected the gateway's credentials.".to_owned();
                final_error(Fault::Operator, ErrorKind::Api, message)
            }
            // SDKs would retry a 429, and a 400 would look like the client's fault.
            Reason::Unpaid { hidden } => {
                let message = if *hidden { UNPAID.to_owned() } else { self.words() };
                final_error(self.fault(ErrorKind::Billing), ErrorKind::Billing, message)
            }
            // The upstream's message is only for the log: with `rate limit` or `per minute` in a
            // message, Cline would wait and not compact the conversation.
            Reason::RateTooLow(limit) => bad_request(format!(
                "{} (the upstream's limit for a minute or a day)",
                limit.words()
            )),
            // A client reads a 404 as the statement that there is no such model.
            Reason::WrongAddress(wrong) => {
                let message = wrong.words(&self.words());
                let (fault, details) = final_error(Fault::Operator, ErrorKind::Api, message);
                (fault, ErrorDetails { status: 502, ..details })
            }
            Reason::ContextTooLong(limit) => bad_request(self.behind(&limit.words())),
            Reason::AnswerTooLong { wanted, most, model } => bad_request(
                self.behind(&format!("{MAX_TOKENS}{wanted} > {most}{OF_OUTPUT}{model}")),
            ),
            _ => return None,
        })
    }

    fn fault(&self, kind: ErrorKind) -> Fault {
        match kind {
            ErrorKind::Billing if self.of_gateway => Fault::Operator,
            ErrorKind::RateLimit | ErrorKind::Api | ErrorKind::Timeout | ErrorKind::Overloaded => {
                Fault::Upstream
            }
            _ => Fault::Client,
        }
    }

    /// Returns the upstream's error message, or its status if there is no message.
    pub(crate) fn words(&self) -> String {
        match self.message.as_str() {
            // The status is formatted as `u64`, because no other 16-bit number is formatted.
            "" => format!("HTTP {} from upstream", u64::from(self.status)),
            message => message.to_owned(),
        }
    }

    /// Returns `words`, a message of Anthropic's API, followed by the upstream's message. If the
    /// upstream's message already contains `words`, the upstream's message is returned alone.
    fn behind(&self, words: &str) -> String {
        match self.message.as_str() {
            "" => words.to_owned(),
            message if words::has(message, words) || words::has(message, NO_SPACE) => {
                message.to_owned()
            }
            // Clients (strands-agents, Zed) know the real API's message with its colon.
            message if words == TOO_LONG => format!("{words}: {message}"),
            message => format!("{words} ({message})"),
        }
    }

    /// Returns the upstream's error message for the log, if the client gets a less specific
    /// message.
    pub(crate) fn hidden(&self) -> Option<&str> {
        let hides = |reason: &Reason| {
            matches!(
                reason,
                Reason::GatewayKey | Reason::Unpaid { hidden: true } | Reason::RateTooLow(_)
            )
        };
        self.reasons.iter().any(hides).then_some(&*self.message)
    }

    /// Returns the error's reason for the log in Creole's own words, without the upstream's
    /// message.
    pub(super) fn reason_for_log(&self, message: &str) -> String {
        let known = self.reasons.iter().find_map(|reason| match reason {
            Reason::WrongAddress(_) => {
                let own = message.strip_suffix(&*self.message).unwrap_or_default();
                Some(own.trim_end_matches(": ").to_owned())
            }
            Reason::ContextTooLong(limit) | Reason::RateTooLow(limit) => Some(limit.words()),
            Reason::GatewayKey => Some("the upstream does not take the gateway's key".to_owned()),
            Reason::Unpaid { .. } => Some("the account at the upstream is empty".to_owned()),
            Reason::Filter => Some("a filter of the upstream refused the prompt".to_owned()),
            _ => None,
        });
        known.unwrap_or_else(|| self.status_for_log())
    }

    /// Returns the meaning of the upstream's status for the log, in Creole's own words.
    fn status_for_log(&self) -> String {
        let status = u64::from(self.status);
        match of_status(self.status).0 {
            ErrorKind::Authentication | ErrorKind::Permission => {
                let whose = if self.of_gateway { "gateway" } else { "client" };
                format!("the upstream does not take the {whose}'s key (HTTP {status})")
            }
            ErrorKind::NotFound => format!("the upstream knows no such model (HTTP {status})"),
            ErrorKind::Billing => "the account at the upstream is empty".to_owned(),
            ErrorKind::RateLimit => format!("the upstream takes no more for now (HTTP {status})"),
            ErrorKind::Overloaded => format!("the upstream is overloaded (HTTP {status})"),
            ErrorKind::Api | ErrorKind::Timeout => format!("the upstream failed (HTTP {status})"),
            _ => format!("the upstream refused the request (HTTP {status})"),
        }
    }

    /// Returns the kind of server at the configured address, if it is not the API.
    pub(crate) fn wrong_address(&self) -> Option<WrongAddress> {
        self.reasons.iter().find_map(|reason| match reason {
            Reason::WrongAddress(wrong) => Some(*wrong),
            _ => None,
        })
    }

    /// Returns the `stop_reason`, if the refusal counts as an answer without content: a content
    /// filter refused the prompt, or `max_tokens` is too low for a word.
    #[must_use]
    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        self.reasons.iter().find_map(|reason| match reason {
            Reason::Filter => Some(StopReason::Refusal),
            Reason::AnswerTooShort => Some(StopReason::MaxTokens),
            _ => None,
        })
    }

    /// Returns an error message by which Claude Code repairs its request and retries. The message
    /// names the parts of the client's request, while the upstream's message names parts of
    /// Creole's request.
    pub(crate) fn in_clients_words(&self) -> Option<String> {
        let is_known = |reason: &Reason| {
            matches!(
                reason,
                Reason::ClientsWords
                    | Reason::ContextTooLong(_)
                    | Reason::AnswerTooLong { .. }
                    | Reason::RateTooLow(_)
            )
        };
        if of_status(self.status).1 != 400 || self.reasons.iter().any(is_known) {
            return None;
        }
        let message = &self.message;
        self.reasons.iter().find_map(|reason| {
            Some(match reason {
                Reason::EffortNamed => {
                    format!("This model does not support the effort parameter. ({message})")
                }
                Reason::SystemRole => format!("role 'system' is not supported here ({message})"),
                Reason::AdaptiveThinking => {
                    format!("thinking.type: 'adaptive' is not supported ({message})")
                }
                Reason::ToolSchema(place) => {
                    format!("tools.{place}.custom.input_schema: {message}")
                }
                // Message after which Claude Code sends the conversation again without thinking.
                Reason::ReasoningUnread { block } => {
                    format!("{block}: Invalid `signature` in `thinking` block ({message})")
                }
                // Content of the history comes again with each request, unless the client leaves
                // the content out.
                Reason::Documents => format!("This model does not support PDF input ({message})"),
                Reason::Images | Reason::OneImage if self.reasons.contains(&Reason::Documents) => {
                    return None;
                }
                Reason::Images | Reason::OneImage => format!("Could not process image ({message})"),
                Reason::Complaint(complaint) => format!("{complaint} ({message})"),
                _ => return None,
            })
        })
    }
}

/// Maximum length of an error message for the client, in characters.
pub(crate) const MESSAGE_CHARS_MAX: usize = 2_000;

/// Cuts an error message to the maximum length.
pub(crate) fn cut(message: &mut String) {
    if let Some((at, _)) = message.char_indices().nth(MESSAGE_CHARS_MAX) {
        words::truncate(message, at);
        message.push('…');
    }
}

/// Returns the error type and status for the client, by the upstream's status alone.
#[must_use]
pub(crate) fn of_status(status: u16) -> (ErrorKind, u16) {
    match status {
        400 | 422 => (ErrorKind::InvalidRequest, 400),
        401 => (ErrorKind::Authentication, 401),
        402 => (ErrorKind::Billing, 402),
        403 => (ErrorKind::Permission, 403),
        404 => (ErrorKind::NotFound, 404),
        408 | 504 => (ErrorKind::Timeout, 504),
        409 => (ErrorKind::Conflict, 409),
        // TGI: the model failed while it answered.
        424 => (ErrorKind::Api, 502),
        413 => (ErrorKind::RequestTooLarge, 413),
        // Status 449 is iFlow's own.
        429 | 449 => (ErrorKind::RateLimit, 429),
        // Groq: the flexible tier is full.
        498 => (ErrorKind::Overloaded, 529),
        // A proxy before the upstream believes that Creole closed the connection, which is wrong.
        499 => (ErrorKind::Api, 502),
        400..500 => (ErrorKind::InvalidRequest, status),
        503 | 529 => (ErrorKind::Overloaded, 529),
        502 => (ErrorKind::Api, 502),
        // Gateways that lead to each other in a loop.
        508 => (ErrorKind::Api, 508),
        500..600 => (ErrorKind::Api, 500),
        // Status that is neither an error nor an answer.
        _ => (ErrorKind::Api, 502),
    }
}
