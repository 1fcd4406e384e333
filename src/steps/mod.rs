//! Steps of an exchange. A step asks others something, and then changes the request before its
//! upstream is called, or the end of the answer.
//!
//! | step | when | asks | changes |
//! |---|---|---|---|
//! | `documents` | before the call | the host, for the texts of PDFs | the body |
//! | `images` | before the call | servers on the web, for images | the body |
//! | `descriptions` | before the call | a model that sees, for descriptions of images | the body |
//! | `verdicts` | behind the answer | a judge, for verdicts on the tool calls | the end of the answer |
//!
//! All of it is pure: `exchange::steps` has the table of the steps and drives them, `exchange::ask`
//! makes calls of their questions. Steps follow one another, each over the body that the one before
//! has written: an image that was fetched can be described by the next. Another step is a file here
//! and a row there.
//!
//! Nothing is sent to the client until the steps before the call are done. No call that fails ends
//! the exchange by itself: what does not come is missing, and the step decides what that means.
//! What cannot be fetched is refused with the path of its block, if the user has just given it: as
//! the real API does. Words stand in its place where the client sends it again with each request,
//! which would be refused for ever. An image that cannot be described stays: what comes then is
//! decided as if nobody could describe it.
//!
//! | file | what it has |
//! |---|---|
//! | `blocks` | the blocks of a body, and the body with others in their places |
//! | `address` | the address of an image, read so that every reader reads the same |
//! | `unread` | reasons why a document has no text |

pub(crate) mod address;
pub(crate) mod blocks;
pub(crate) mod descriptions;
pub(crate) mod documents;
pub(crate) mod images;
mod unread;
pub(crate) mod verdicts;

pub use documents::DocumentText;
pub use unread::Unread;

use crate::StopReason;
use std::borrow::Cow;
use std::ops::Range;

use crate::Millis;
use crate::config::{Config, Settings, Upstream};
use crate::error::Error;
use crate::headers::Header;
use crate::ids::Ids;
use crate::json;
use crate::observe::report::Report;
use crate::text::words;

/// Step of an exchange.
pub(crate) trait Step: Send + Sync {
    /// Returns the time that the step may take, in milliseconds.
    fn timeout_ms(&self, settings: &Settings) -> u64;

    /// Returns the next question, if there is one. It stays the same until what came is taken.
    fn ask<'s>(&self, see: &See<'s>) -> Option<Question<'s>>;

    /// Returns how much is read of an answer with this status.
    fn limits(&self, _status: u16, _settings: &Settings) -> ReadLimits {
        ReadLimits { bytes_max: MODEL_BYTES_MAX, is_half_enough: false }
    }

    /// Takes the result of the last question.
    fn take(&mut self, came: Came, report: &mut Report);

    /// Ends the questions, because the time of the step is over.
    fn give_up(&mut self);

    /// Returns the change, once there are no more questions.
    ///
    /// # Errors
    /// The user has just given what could not be had.
    fn done(self: Box<Self>, see: &See<'_>, report: &mut Report) -> Result<Change, Error>;

    /// Returns the number of bytes that the step keeps in memory.
    fn held_bytes(&self) -> usize;
}

/// Step behind an answer, which holds the end of the answer back.
pub(crate) trait Hold: Step {
    /// Reads what was written for the client behind `from`, and takes the end of the answer out of
    /// it. Writes the end at once if nobody needs to be asked for it.
    fn hold(&mut self, out: &mut Vec<u8>, from: usize, report: &mut Report);

    /// Returns true if the end of the answer is held.
    fn is_holding(&self) -> bool;
}

/// Maximum number of bytes that are read of a model's answer to a question of Creole's own. The
/// answer has few words, but a stream has much around each.
const MODEL_BYTES_MAX: usize = 4 << 20;

/// View of an exchange for its steps.
pub(crate) struct See<'s> {
    pub(crate) config: &'s Config,
    pub(crate) can: Can,
    pub(crate) ids: Ids,
    /// Headers of the client that upstreams may get.
    pub(crate) headers: &'s [Header],
    /// Body of the request, as the steps so far have written it. A step behind the answer has it
    /// only at its beginning.
    pub(crate) body: &'s [u8],
    /// Time at which the step began to ask, unless nothing was asked.
    pub(crate) began: Option<Millis>,
    pub(crate) now: Millis,
}

impl<'s> See<'s> {
    /// Returns the body as text, if it is one. This reads all of it.
    pub(crate) fn text(&self) -> Option<&'s str> {
        words::utf8(self.body)
    }

    /// Returns the upstream that gets a body, and its name for the model. This reads all of the
    /// body.
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

/// Kinds of questions that a host can ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Can {
    /// Questions for another model.
    pub(crate) ask_models: bool,
    /// Questions for servers on the web.
    pub(crate) fetch: bool,
    /// Questions for the texts of documents.
    pub(crate) read_documents: bool,
}

/// Question that a step asks somebody else.
pub(crate) enum Question<'s> {
    Model(Box<ModelQuestion<'s>>),
    Web(WebQuestion),
    /// Document that the host reads: the range of its base64 in the body, with the quotes.
    Document(Range<usize>),
}

/// Request to a model that the operator names. `body` is one of the Messages API; the upstream's
/// protocol writes it.
pub(crate) struct ModelQuestion<'s> {
    pub(crate) upstream: Cow<'s, Upstream>,
    pub(crate) model: &'s str,
    pub(crate) body: String,
}

/// Request to a server on the web.
pub(crate) struct WebQuestion {
    pub(crate) url: String,
    /// True if the server may be in a private network.
    pub(crate) may_be_private: bool,
    /// Media types that the step can read.
    pub(crate) accept: &'static str,
}

/// Limits for reading an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadLimits {
    pub(crate) bytes_max: usize,
    /// True if an answer is worth taking that has more bytes than the limit.
    pub(crate) is_half_enough: bool,
}

/// Result of a question.
pub(crate) enum Came {
    /// A model's answer.
    Message(ModelAnswer),
    /// The error of a model's upstream.
    Error(Error),
    /// The answer of a server on the web.
    Web(WebAnswer),
    /// The text of a document.
    Document(Result<DocumentText, Unread>),
    Nothing(Nothing),
}

/// Reason why nothing came of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// The question could not be written.
    Unwritten,
    Unreachable,
    BrokeOff,
    TimedOut,
}

/// Answer of a model to a question of Creole's own.
pub(crate) struct ModelAnswer {
    /// Text of all text blocks of the answer.
    pub(crate) text: String,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
}

/// Answer of a server on the web.
pub(crate) struct WebAnswer {
    pub(crate) status: u16,
    /// Address to which a redirection leads.
    pub(crate) location: Option<String>,
    pub(crate) body: Vec<u8>,
    /// True if the body ended as HTTP says it should, or at the limit.
    pub(crate) is_whole: bool,
}

/// Change that a step makes.
pub(crate) enum Change {
    /// Body of the request from now on.
    Body(Vec<u8>),
    /// End of the answer, with what was held of it.
    End(Vec<u8>),
}
