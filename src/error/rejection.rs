//! Refusal of a request by an upstream, as data, and the words that a client reads of it.
//!
//! `upstream_error` reads it once. A second request leaves out what its [`Reason`]s name, a later
//! one what is remembered of them, and the client reads what [`Rejection::to_client`] makes of
//! them.

use super::{Details, ErrorKind, Fault};
use crate::StopReason;
use crate::text::words;

/// Refusal of a request by an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// HTTP status of the upstream, or the status that its words and codes stand for.
    pub(crate) status: u16,
    /// `details.error_code`, on which clients act.
    pub(crate) code: Option<String>,
    /// The upstream's `code` and `type`, for the log.
    pub(crate) codes: Vec<String>,
    /// The upstream's words, without credentials; empty if it has no words.
    pub(crate) message: String,
    /// Name of the parameter that the error gives beside its words.
    pub(crate) parameter: Option<String>,
    /// Number of seconds until the upstream takes a request again.
    pub(crate) retry_after: Option<u64>,
    /// Meanings of the words and codes, the surest first. A server may mean several: "content must
    /// be a string" is about an image, or about `null`.
    pub(crate) reasons: Vec<Reason>,
    /// True if the upstream got the gateway's own credential.
    pub(crate) of_gateway: bool,
    /// True if the cause is more than model and parameter: another parameter, credit, one block.
    pub(crate) is_passing: bool,
}

/// Meaning of an upstream's error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The gateway's own credential is wrong.
    GatewayKey,
    /// The account is empty; `hidden`: it is the gateway's, and the words are not for clients.
    Unpaid { hidden: bool },
    /// The request alone has more tokens than the account may send in a minute or a day.
    RateTooLow(ContextLimit),
    /// The operator's address of the upstream leads elsewhere.
    WrongAddress(WrongAddress),
    /// Prompt, or prompt and answer together, are too long.
    ContextTooLong(ContextLimit),
    /// The limit of the answer is higher than the model's.
    AnswerTooLong { wanted: u64, most: u64, model: String },
    /// The answer may have at most this number of tokens.
    AnswerLimit(u64),
    /// The limit of the answer is too low for a word.
    AnswerTooShort,
    /// The provider's filter refused the prompt.
    Filter,
    /// The upstream's words are those of the real API, which clients know.
    ClientsWords,
    /// The upstream's words name the effort, whatever they say of it.
    EffortNamed,
    /// A message of the system may not stand where it does.
    SystemRole,
    /// `adaptive` is refused as `thinking.type`.
    AdaptiveThinking,
    /// The schema of the tool at this position among the client's is refused.
    ToolSchema(usize),
    /// Calls and results are not paired as the upstream wants.
    Pairing,
    /// `null` as the content of a message with calls.
    NullContent,
    /// An empty text as the content of a message with calls.
    EmptyContent,
    /// Documents, of which the model takes none.
    Documents,
    /// Images, of which the model takes none.
    Images,
    /// Image that is refused, one of several, or the number of images.
    OneImage,
    /// `response_format`
    ResponseFormat,
    /// Reasoning in the history.
    Reasoning,
    /// Reasoning in the history of this conversation, which the upstream can no longer read, or
    /// misses the item behind it: its first block in the client's request.
    ReasoningUnread { block: String },
    /// `stream_options`
    StreamOptions,
    /// Neighbouring messages of one role, or a beginning that is not the user's.
    Neighbours,
    /// There are more than this number of stop sequences.
    StopCount(usize),
    /// The effort: the values that would be taken, and whether the words name some value.
    Effort { taken: Vec<&'static str>, names_value: bool },
    /// Another parameter is refused.
    Parameter(Parameter),
    /// Complaint of pydantic that a server writes as Python does, here as `PATH: MESSAGE`.
    Complaint(String),
}

/// A parameter that a server does not know, or of which it refuses this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The name of the answer's limit: `max_tokens` or `max_completion_tokens`.
    MaxTokensField,
    /// Any setting that tells the model to think, although it cannot.
    Thinking,
    /// Switch of thinking.
    ThinkingSwitch,
    /// Limit on the amount of thinking.
    ThinkingBudget,
    /// `temperature` or `top_p`
    Sampling,
    /// `top_k`
    TopK,
    /// `stop`
    Stop,
    /// `parallel_tool_calls`
    ParallelToolCalls,
    /// `prompt_cache_key`
    PromptCacheKey,
    /// `service_tier`
    ServiceTier,
    /// `user` or `safety_identifier`
    User,
    /// Responses: `reasoning.summary`
    ReasoningSummary,
    /// Responses: `include`, or encrypted reasoning in it
    Include,
    /// Responses: `max_output_tokens`
    OutputLimit,
    /// Responses: `store`
    Store,
    /// Responses: `phase` of a message
    Phase,
}

/// Kind of server that answers at an address that is not the API's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrongAddress {
    /// A server without this path, or one that redirects it.
    NoPath,
    /// Server that sends a web page instead of an answer.
    OfPages,
    /// A server that waits for TLS.
    WantsTls,
}

/// Tokens of a request that has too many, as far as the upstream gives numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContextLimit {
    /// No numbers that fit together.
    Unknown,
    /// The prompt alone is longer than the window.
    Prompt { prompt: u64, window: u64 },
    /// The prompt fits, and not with the answer.
    Sum { prompt: u64, answer: u64, window: u64 },
}

/// Words of the real API for a prompt that is too long, where no numbers are known.
const TOO_LONG: &str = "prompt is too long";

/// Words of the real API behind which Claude Code reads `PROMPT + ANSWER > WINDOW`.
pub(crate) const NO_SPACE: &str = "input length and `max_tokens` exceed context limit:";

/// Words of the real API before the number of tokens that were wanted.
pub(crate) const MAX_TOKENS: &str = "max_tokens: ";

/// Words of the real API between the maximum number of output tokens and the model's name.
pub(crate) const OF_OUTPUT: &str = ", which is the maximum allowed number of output tokens for ";

/// Message where an upstream refuses the gateway's own key because its account is empty. Claude
/// Code looks for these words.
pub(crate) const UNPAID: &str = "The gateway's credit balance is too low at the upstream.";

impl ContextLimit {
    /// Returns the real API's words.
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
    /// Returns the client's message. A page's words alone, `Please log in`, would read as Creole's.
    fn words(self, upstreams: &str) -> String {
        match self {
            Self::NoPath => upstreams.to_owned(),
            Self::OfPages => format!("Upstream sent a web page instead of an answer: {upstreams}"),
            Self::WantsTls => format!("Upstream expects TLS: {upstreams}"),
        }
    }

    /// Returns the client's message once it is known where the request went.
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
    /// Returns fault and details: the one map from reasons and status to status, type and words.
    pub(super) fn to_client(&self) -> (Fault, Details) {
        let decided = self.reasons.iter().find_map(|reason| self.by_reason(reason));
        let (fault, mut details) = decided.unwrap_or_else(|| {
            let (kind, status) = of_status(self.status);
            // Claude Code would try the same key for minutes.
            let should_retry = (kind == ErrorKind::Authentication).then_some(false);
            let waits = matches!(kind, ErrorKind::RateLimit | ErrorKind::Overloaded);
            let (code, retry_after) =
                (self.code.clone().map(Into::into), self.retry_after.filter(|_| waits));
            let details = Details::new(kind, self.words());
            (self.fault(kind), Details { status, code, should_retry, retry_after, ..details })
        });
        cut(&mut details.message);
        (fault, details)
    }

    /// Returns fault and details where a reason decides them, and not the status.
    fn by_reason(&self, reason: &Reason) -> Option<(Fault, Details)> {
        let final_error = |fault, kind: ErrorKind, message| {
            (fault, Details { should_retry: Some(false), ..Details::new(kind, message) })
        };
        let bad_request =
            |message| (Fault::Client, Details::new(ErrorKind::InvalidRequest, message));
        Some(match reason {
            // Neither the client's fault nor its business; the upstream's words may name the key.
            Reason::GatewayKey => {
                let message = "Upstream rejected the gateway's credentials.".to_owned();
                final_error(Fault::Operator, ErrorKind::Api, message)
            }
            // SDKs would retry a 429, and a 400 would look like the client's fault.
            Reason::Unpaid { hidden } => {
                let message = if *hidden { UNPAID.to_owned() } else { self.words() };
                final_error(self.fault(ErrorKind::Billing), ErrorKind::Billing, message)
            }
            // The upstream's own words are for the log: Cline takes `rate limit` and `per minute`
            // for a reason to wait, whatever stands beside it, and would not compact.
            Reason::RateTooLow(limit) => bad_request(format!(
                "{} (the upstream's limit for a minute or a day)",
                limit.words()
            )),
            // To a client a 404 means that there is no such model.
            Reason::WrongAddress(wrong) => {
                let message = wrong.words(&self.words());
                let (fault, details) = final_error(Fault::Operator, ErrorKind::Api, message);
                (fault, Details { status: 502, ..details })
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

    /// Returns the upstream's words, or its status.
    pub(crate) fn words(&self) -> String {
        match self.message.as_str() {
            // As `u64`, because no other number of 16 bits is written.
            "" => format!("HTTP {} from upstream", u64::from(self.status)),
            message => message.to_owned(),
        }
    }

    /// Returns the real API's words with the upstream's behind, unless these are the real API's.
    fn behind(&self, words: &str) -> String {
        match self.message.as_str() {
            "" => words.to_owned(),
            message if words::has(message, words) || words::has(message, NO_SPACE) => {
                message.to_owned()
            }
            // Clients know the real API's words with their colon: strands-agents, Zed.
            message if words == TOO_LONG => format!("{words}: {message}"),
            message => format!("{words} ({message})"),
        }
    }

    /// Returns the upstream's words, for the log, where the client gets others that say less.
    pub(crate) fn hidden(&self) -> Option<&str> {
        let hides = |reason: &Reason| {
            matches!(
                reason,
                Reason::GatewayKey | Reason::Unpaid { hidden: true } | Reason::RateTooLow(_)
            )
        };
        self.reasons.iter().any(hides).then_some(&*self.message)
    }

    /// Returns Creole's own words for the log, out of the client's message, without the upstream's.
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

    /// Returns Creole's words for the upstream's status, for the log.
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

    /// Returns the kind of server at the operator's address, where it is not the API.
    pub(crate) fn wrong_address(&self) -> Option<WrongAddress> {
        self.reasons.iter().find_map(|reason| match reason {
            Reason::WrongAddress(wrong) => Some(*wrong),
            _ => None,
        })
    }

    /// Returns the `stop_reason` where the refusal is an answer without content: a content filter
    /// refused the prompt, or `max_tokens` is too low for a word.
    #[must_use]
    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        self.reasons.iter().find_map(|reason| match reason {
            Reason::Filter => Some(StopReason::Refusal),
            Reason::AnswerTooShort => Some(StopReason::MaxTokens),
            _ => None,
        })
    }

    /// Returns words by which Claude Code mends a request and sends it again. To all clients they
    /// name what they have sent: the upstream names what Creole made of it.
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
                // On these words it sends the conversation again without thinking.
                Reason::ReasoningUnread { block } => {
                    format!("{block}: Invalid `signature` in `thinking` block ({message})")
                }
                // What is in the history comes again with each request, unless the client leaves it
                // out.
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

/// Longest message for the client, in characters.
pub(crate) const MESSAGE_CHARS_MAX: usize = 2_000;

/// Cuts a message to the length that a person reads.
pub(crate) fn cut(message: &mut String) {
    if let Some((at, _)) = message.char_indices().nth(MESSAGE_CHARS_MAX) {
        words::truncate(message, at);
        message.push('…');
    }
}

/// Returns kind and status for the client, by the upstream's status alone.
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
        // TGI's, where a model failed while it answered.
        424 => (ErrorKind::Api, 502),
        413 => (ErrorKind::RequestTooLarge, 413),
        // The second is iFlow's own.
        429 | 449 => (ErrorKind::RateLimit, 429),
        // Groq's flexible tier is full.
        498 => (ErrorKind::Overloaded, 529),
        // A proxy between us thinks that we hung up. We did not.
        499 => (ErrorKind::Api, 502),
        400..500 => (ErrorKind::InvalidRequest, status),
        503 | 529 => (ErrorKind::Overloaded, 529),
        502 => (ErrorKind::Api, 502),
        // That of gateways that lead to each other.
        508 => (ErrorKind::Api, 508),
        500..600 => (ErrorKind::Api, 500),
        // No error, and no answer either.
        _ => (ErrorKind::Api, 502),
    }
}
