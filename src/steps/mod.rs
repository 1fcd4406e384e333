//! Steps of an exchange. A step asks a question of a model, a web server or the host, and uses the
//! result to change the request before the upstream call, or the end of the answer.
//!
//! | step | when | asks | changes |
//! |---|---|---|---|
//! | `documents` | before the call | the host, for the texts of PDFs | the body |
//! | `images` | before the call | servers on the web, for images | the body |
//! | `descriptions` | before the call | a model that sees, for descriptions of images | the body |
//! | `tools` | before the call, and between the rounds of an answer | search services | the next round |
//! | `verdicts` | behind the answer | a judge, for verdicts on the tool calls | the end of the answer |
//!
//! Steps perform no I/O: `exchange::steps` has the table of the steps and runs them, and
//! `exchange::ask` turns their questions into calls. Steps run one after another, each on the body
//! that the previous step has written, so that a fetched image can be described by the next step.
//! Several questions of one step may be open at once; the step takes their results in the order of
//! the questions (`exchange::window`). A new step needs a file in this folder and a row in the
//! table.
//!
//! Nothing is sent to the client until the steps before the call are done. A failed call of a step
//! does not end the exchange: the step decides how to handle the missing result. If the user has
//! just sent an image that cannot be fetched, the request is refused with the path of the block, as
//! Anthropic's API does. An older image, which the client repeats in each request, is replaced by a
//! text, because refusing the image would refuse all later requests. An image that cannot be
//! described stays in the body, and is handled as if no vision model were configured.
//!
//! | file | what it has |
//! |---|---|
//! | `blocks` | access to the blocks of a body, and their replacement |
//! | `address` | the URL of an image or a page, parsed so that all URL parsers agree |
//! | `unread` | reasons why a document has no text |

pub(crate) mod address;
pub(crate) mod blocks;
pub(crate) mod descriptions;
pub(crate) mod documents;
pub(crate) mod images;
pub(crate) mod tools;
mod unread;
pub(crate) mod verdicts;

pub use documents::DocumentText;
pub use unread::Unread;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

pub(crate) use tools::OpeningBlock;
use tools::mcp::{AnswerSessions, ToolMemory};

use crate::Millis;
use crate::StopReason;
use crate::config::{Config, Settings, Upstream};
use crate::error::Error;
use crate::headers::Header;
use crate::ids::Ids;
use crate::json;
use crate::model::event::{ServerCall, ServerResult};
use crate::model::member_places::MemberPlaces;
use crate::observe::report::Report;
use crate::protocols::client::ClientProtocol;
use crate::text::words;

/// Step of an exchange: questions, their results, and the change that follows from the results.
pub(crate) trait Step: Send + Sync {
    /// Returns the timeout of the step with all its questions, in milliseconds.
    fn timeout_ms(&self, settings: &Settings) -> u64;

    /// Returns the timeout of a question, counted as in `ask`, in milliseconds from the first time
    /// that it is asked. The step's own timeout applies, too.
    fn question_timeout_ms(&self, _ahead: usize, _settings: &Settings) -> u64 {
        u64::MAX
    }

    /// Returns the number of questions whose results the step still needs.
    fn questions_left(&self) -> usize;

    /// Returns one of the questions left, or `None` if the question cannot be asked yet. `ahead`:
    /// the number of questions before it, which are open. The question stays the same until `take`
    /// is called.
    fn ask<'s>(&self, see: &See<'s>, ahead: usize) -> Option<Question<'s>>;

    /// Returns the limits for reading an answer with this HTTP status to a question, counted as in
    /// `ask`.
    fn limits(&self, _ahead: usize, _status: u16, _settings: &Settings) -> ReadLimits {
        ReadLimits { bytes_max: MODEL_BYTES_MAX, is_half_enough: false }
    }

    /// Handles the result of the first of the questions left. The question is asked again if the
    /// number of questions left stays the same.
    fn take(&mut self, came: Came, report: &mut Report);

    /// Returns the next result of a server tool's call for the client, in the order of the calls,
    /// if the result is known. The client gets each result at once.
    fn next_result(&mut self) -> Option<ServerResult<'_>> {
        None
    }

    /// Gives the calls of server tools that were not run a result, before the step's end.
    fn settle(&mut self) {}

    /// Returns true if the host ends the step's questions in time. The exchange then sets no
    /// timeout.
    fn is_timed_by_host(&self) -> bool {
        false
    }

    /// Returns the change that the step makes, after the last question.
    ///
    /// # Errors
    /// A part that the user has just sent, such as an image, could not be fetched.
    fn done(self: Box<Self>, see: &See<'_>, report: &mut Report) -> Result<Change, Error>;

    /// Returns the number of bytes that the step keeps in memory.
    fn held_bytes(&self) -> usize;
}

/// Step after an answer, which holds back the end of the answer.
pub(crate) trait Hold: Step {
    /// Reads the bytes written for the client after index `from`, and cuts the end of the answer
    /// off. Writes the end back at once if the step has no question.
    fn hold(&mut self, out: &mut Vec<u8>, from: usize, report: &mut Report);

    /// Returns true if the end of the answer is held back.
    fn is_holding(&self) -> bool;
}

/// Step between the rounds of an answer, for calls of tools that Creole runs. The step stays until
/// the end of the answer.
pub(crate) trait Between: Step {
    /// Takes the calls with which a round ended.
    fn take_round(&mut self, ended: EndedRound, see: &See<'_>);
}

/// Round that ended with calls of server tools.
#[derive(Debug)]
pub(crate) struct EndedRound {
    pub(crate) calls: Vec<ServerCall>,
    /// True if the client has to run calls of the round, too, so that the answer ends.
    pub(crate) is_mixed: bool,
    /// Number of output tokens of the round.
    pub(crate) output_tokens: u64,
    /// Time since the client's request was complete, in milliseconds.
    pub(crate) since_ms: u64,
    /// Places of the members of the round's request that the next round changes.
    pub(crate) places: MemberPlaces,
}

/// Maximum number of bytes to read of a model's answer to a question of Creole. The answer has few
/// words, but a stream adds many bytes to each word.
const MODEL_BYTES_MAX: usize = 4 << 20;

/// Read-only view of a client request, from which steps form their questions.
pub(crate) struct See<'s> {
    pub(crate) config: &'s Config,
    pub(crate) can: Can,
    pub(crate) ids: Ids,
    /// Protocol of the client.
    pub(crate) protocol: &'static dyn ClientProtocol,
    /// Headers of the client that may be sent to upstreams.
    pub(crate) headers: &'s [Header],
    /// Body of the request, as rewritten by the steps up to now. A step after the answer gets the
    /// body only at the step's start.
    pub(crate) body: &'s [u8],
    /// Blocks that the client got in the round before the step, as JSON between the brackets of a
    /// message's `content`; empty for a step that is not between rounds.
    pub(crate) said: &'s [u8],
    /// Time at which the step began to ask, or `None` before the first question.
    pub(crate) began: Option<Millis>,
    pub(crate) now: Millis,
    /// Memory of MCP servers, if the host keeps one. In strict mode there is none.
    pub(crate) memory: Option<&'s ToolMemory>,
    /// Sessions with MCP servers that the steps of the exchange share.
    pub(crate) sessions: Option<&'s AnswerSessions>,
}

impl<'s> See<'s> {
    /// Returns the request body as text, if the body is UTF-8. The check reads the whole body.
    pub(crate) fn text(&self) -> Option<&'s str> {
        words::utf8(self.body)
    }

    /// Returns the upstream to which a body is routed, and the upstream's name for the model. The
    /// function reads the whole body.
    pub(crate) fn route(&self, body: &str) -> Option<(&'s Upstream, String)> {
        let model = json::member(body, "model").and_then(json::string)?.decode();
        let (upstream, model) = self.config.route(&model)?;
        Some((upstream, model.to_owned()))
    }

    /// Returns the time since the step began to ask, in milliseconds.
    pub(crate) fn spent_ms(&self) -> Option<u64> {
        self.began.map(|began| self.now.saturating_sub(began))
    }
}

/// Kinds of questions of steps that the host supports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Can {
    /// True if the host can send a step's questions to models.
    pub(crate) ask_models: bool,
    /// True if the host can fetch addresses on the web.
    pub(crate) fetch: bool,
    /// True if the host can extract the texts of documents.
    pub(crate) read_documents: bool,
    /// True if the host can call the services that the configuration names.
    pub(crate) ask_services: bool,
}

/// Question of a step, for the host, a model or a web server.
pub(crate) enum Question<'s> {
    Model(Box<ModelQuestion<'s>>),
    Web(WebQuestion),
    Service(ServiceQuestion),
    /// Document that the host reads: the range of its base64 data in the body, with the quotes.
    Document(Range<usize>),
    /// Document that the host reads, as its bytes.
    Fetched(Vec<u8>),
}

/// Request to a model that the operator configured. `body` is in the format of the Messages API and
/// is translated to the upstream's protocol.
pub(crate) struct ModelQuestion<'s> {
    pub(crate) upstream: Cow<'s, Upstream>,
    pub(crate) model: &'s str,
    pub(crate) body: String,
}

/// Question of a step for a web server: an address to fetch.
pub(crate) struct WebQuestion {
    pub(crate) url: String,
    /// True if the web server may be in a private network.
    pub(crate) may_be_private: bool,
    /// Media types that the step can read, for the `accept` header.
    pub(crate) accept: &'static str,
    /// Value of the `user-agent` header; `None` for the default.
    pub(crate) user_agent: Option<String>,
    /// Cluster of Envoy through which the address is fetched; may be empty on other hosts.
    pub(crate) cluster: String,
}

/// Question for a service that the configuration names, as an HTTP request. The method is `POST` if
/// the request has a body.
pub(crate) struct ServiceQuestion {
    /// Name of the service for logs.
    pub(crate) name: &'static str,
    pub(crate) url: String,
    pub(crate) headers: Vec<Header>,
    pub(crate) body: Vec<u8>,
    /// Number of the JSON-RPC request in the body, if the answer may be an event stream that goes
    /// on after the response to the request.
    pub(crate) message_id: Option<u64>,
    /// True if a client named the service, which must then not be in a private network.
    pub(crate) is_public: bool,
    /// Cluster of the service in Envoy; may be empty on other hosts.
    pub(crate) cluster: String,
}

// The URL, the headers and the body may hold a key, and what a user looks for.
impl fmt::Debug for ServiceQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceQuestion({} bytes)", self.body.len())
    }
}

/// Limits for reading the answer to a step's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadLimits {
    pub(crate) bytes_max: usize,
    /// True if a model's or web server's answer that exceeds the limit is used as far as read;
    /// false if the answer counts as broken off.
    pub(crate) is_half_enough: bool,
}

/// Result of a step's question.
pub(crate) enum Came {
    /// Answer of a model to the step's question.
    Message(ModelAnswer),
    /// Error of the upstream whose model was asked.
    Error(Error),
    /// Answer of a web server or a service to the step's question.
    Web(WebAnswer),
    /// Text of a document that the host has read, or the reason for its lack.
    Document(Result<DocumentText, Unread>),
    Nothing(Nothing),
}

impl Came {
    /// Returns the number of bytes of the result that are kept in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            Self::Message(answer) => answer.text.len(),
            Self::Web(answer) => answer.body.len(),
            Self::Document(Ok(document)) => document.text.len(),
            Self::Error(_) | Self::Document(Err(_)) | Self::Nothing(_) => 0,
        }
    }
}

/// Reason why a step's question got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// Reason: the request for the question could not be written.
    Unwritten,
    Unreachable,
    /// Reason: the host does not connect to the server's address, such as a private one.
    NotAllowed,
    BrokeOff,
    TimedOut,
}

/// Answer of a model to a question that Creole asked.
pub(crate) struct ModelAnswer {
    /// Text of all text blocks of the answer, concatenated.
    pub(crate) text: String,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
}

/// Answer of a web server to a step's question.
pub(crate) struct WebAnswer {
    pub(crate) status: u16,
    /// Target of a redirection, from the `location` header.
    pub(crate) location: Option<String>,
    /// Media type of the body, from the `content-type` header.
    pub(crate) content_type: Option<String>,
    /// Id of a session with an MCP server, from the `mcp-session-id` header.
    pub(crate) session_id: Option<String>,
    pub(crate) body: Vec<u8>,
    /// True if the body of the web server's answer ended by the rules of HTTP, or was cut at the
    /// limit.
    pub(crate) is_whole: bool,
}

/// Change that a step makes to the request or the answer.
pub(crate) enum Change {
    /// New body of the client's request, as rewritten by the step.
    Body(Vec<u8>),
    /// New body, and blocks with which the answer begins.
    Opening(Opening),
    /// New body for another round of the answer.
    Round(NextRound),
    /// End of the answer, without another round.
    Stop(StopReason),
    /// New end of the answer, which includes the part that was held back.
    End(Vec<u8>),
}

/// Request of another round of an answer.
pub(crate) struct NextRound {
    /// New body of the client's request, with the answer up to now.
    pub(crate) body: Vec<u8>,
    /// Step that runs again after the round.
    pub(crate) step: Box<dyn Between>,
    /// Limit because of which the model must do without the tools that Creole runs, if any.
    pub(crate) limit: Option<Limit>,
}

/// Limit of the rounds of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Limit: no further round may follow. The client can go on with the conversation.
    Rounds,
    /// Limit: the model repeats its calls, and gets nowhere.
    Repeats,
}

/// Beginning of an answer that a step has made.
pub(crate) struct Opening {
    /// New body of the client's request, with the blocks.
    pub(crate) body: Vec<u8>,
    /// Blocks with which the client's message begins.
    pub(crate) blocks: Vec<OpeningBlock>,
    /// Step that runs after the first round, if the step before the call has made it.
    pub(crate) step: Option<Box<dyn Between>>,
    /// True if the blocks are the whole answer, and no model is asked.
    pub(crate) is_whole: bool,
}
