//! Verdicts on tool calls, for clients that ask for them (`safeguards`), as Claude Code does in auto mode.
//!
//! ```text
//! request ─▶ Brief ───────────┐
//! answer ──▶ Gate: its calls ─┴▶ question ─▶ the judge ─▶ verdicts ─▶ Gate: the end of the answer
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `brief` | what the judge is shown of a request |
//! | `forged` | verdicts that an upstream wrote itself, which are removed |
//! | `gate` | the calls of an answer, and its end, which waits for the verdicts |
//! | `input` | the input of a call, as the judge reads it |
//! | `question` | the request for the judge |
//! | `verdicts` | what the judge said, and how the client reads it |
//!
//! All of it is pure: `exchange::judging` makes the call, and holds the end of the answer.
//!
//! Nothing becomes `not_flagged` but by the judge's word for that very call: whatever fails is `unavailable`. The judge
//! sees neither results of tools nor words of the assistant, because both can carry orders of somebody else.

pub(crate) mod brief;
mod forged;
pub(crate) mod gate;
mod input;
pub(crate) mod question;
pub(crate) mod verdicts;

/// A tool call of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Id of the call for the client.
    pub(crate) id: String,
    /// Id of the call for the judge. The client's id is long, and known to whoever reads the
    /// conversation.
    pub(crate) key: String,
    pub(crate) name: String,
    /// Input of the call, as JSON.
    pub(crate) input: String,
    /// Reason why the call cannot be judged, if there is one.
    pub(crate) unjudged: Option<&'static str>,
}
