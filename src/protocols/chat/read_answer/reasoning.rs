//! Reasoning of the upstream, in whichever field it comes, before it becomes thinking blocks.
//!
//! Some servers send the same text in two fields. So the first field that says something is the one
//! that counts, for the whole answer.
//!
//! Where the profile names a syntax of calls, reasoning is looked at for them, too: what it ends with is a call if
//! the answer says nothing else ([`Watch`]).
//!
//! Google's marked text ([`Field::Marked`]) has tags in it beside the mark: `<thought>` before it, and
//! `</thought>` at its end or at the start of the text after it. Each comes in one piece.

use super::echo::Echo;
use super::text_filter::Watch;
use crate::carry::signature::Field;
use crate::dialect::text_calls::{AnswerEnd, Piece};
use crate::json::Str;
use crate::model::request_context::{RequestContext, Tools};
use crate::protocols::chat::wire::Delta;
use crate::text::words;

/// What is known of the reasoning in one answer.
#[derive(Debug, Default)]
pub(super) struct Reasoning {
    /// The field that it came in first; the same text may come in others too.
    field: Option<Field>,
    /// Some has come, though it be white space: transformers' server sends the thought that a template leaves empty.
    has_come: bool,
    /// What came of it.
    echo: Echo,
    /// The last piece, where a profile says that pieces come twice.
    last: String,
    /// The last text was marked as reasoning ([`Field::Marked`]).
    in_marked: bool,
    /// Bytes of records and of calls' signatures.
    carried_bytes: usize,
    /// Looks for calls that the model wrote before it ended its reasoning, until it says something.
    watch: Option<Box<Watch>>,
}

/// The reasoning in a delta or message, lists aside, and its field: the one that is `known`, else the first that says
/// something, else the first.
pub(super) fn said<'a>(delta: &Delta<'a>, known: Option<Field>) -> Option<(Field, Str<'a>)> {
    let fields = [
        (Field::ReasoningContent, delta.reasoning_content),
        (Field::Reasoning, delta.reasoning),
        (Field::ReasoningText, delta.reasoning_text),
        (Field::Thinking, delta.thinking),
    ];
    if let Some(known) = known {
        let (field, text) = fields.into_iter().find(|(field, _)| *field == known)?;
        return Some((field, text?));
    }
    let mut present = fields.into_iter().filter_map(|(field, text)| Some((field, text?)));
    // White space alone may come in a field that says no more than that.
    present.clone().find(|(_, text)| !text.is_blank()).or_else(|| present.next())
}

/// The tags of marked text, and as many servers escape them.
const MARKED: [(&str, &str); 2] =
    [("<thought>", "</thought>"), ("\\u003cthought\\u003e", "\\u003c/thought\\u003e")];

/// The reasoning and the text in a marked text, escaped.
pub(super) fn marked(raw: &str) -> (&str, &str) {
    let raw = MARKED.iter().find_map(|(start, _)| raw.strip_prefix(start)).unwrap_or(raw);
    MARKED.iter().find_map(|(_, end)| words::split_once(raw, end)).unwrap_or((raw, ""))
}

/// The text after a marked one, escaped.
pub(super) fn without_end(raw: &str) -> &str {
    MARKED.iter().find_map(|(_, end)| raw.strip_prefix(end)).unwrap_or(raw)
}

impl Reasoning {
    pub(super) fn new(context: &RequestContext) -> Self {
        Self { watch: Watch::new(context).map(Box::new), ..Self::default() }
    }

    /// The field that counts, once one has said something.
    pub(super) fn field(&self) -> Option<Field> {
        self.field
    }

    /// Notes the field that counts, unless one is known.
    pub(super) fn note_field(&mut self, field: Option<Field>) {
        self.field = self.field.or(field);
    }

    /// Whether text of this field counts, which it does if it is the first.
    pub(super) fn counts(&mut self, field: Field) -> bool {
        *self.field.get_or_insert(field) == field
    }

    /// Some has come, perhaps white space alone.
    pub(super) fn note(&mut self, has_come: bool) {
        self.has_come |= has_come;
    }

    /// Whether text behind it may begin with line breaks of a template.
    pub(super) fn is_before_text(&self) -> bool {
        self.field.is_some() || self.has_come
    }

    /// The text that comes is marked as reasoning.
    pub(super) fn enter_marked(&mut self) {
        self.in_marked = true;
    }

    /// Text comes that is not marked as reasoning. Says whether the text before it was.
    pub(super) fn leave_marked(&mut self) -> bool {
        std::mem::take(&mut self.in_marked)
    }

    /// Whether a piece brings what has come once more. `twice`: each piece comes twice.
    pub(super) fn repeats(&mut self, raw: &str, twice: bool) -> bool {
        if twice {
            if self.last == raw {
                return true;
            }
            raw.clone_into(&mut self.last);
        }
        self.echo.repeats(raw)
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// What of a piece is certainly no call, unescaped; nothing where nobody watches.
    pub(super) fn watched(&mut self, raw: &str) -> Option<String> {
        Some(self.watch.as_mut()?.push(raw))
    }

    /// Watches no longer. Gives what was held back: text, or calls.
    pub(super) fn end_watch(&mut self, tools: &Tools, end: AnswerEnd) -> Vec<Piece> {
        self.watch.take().map_or_else(Vec::new, |watch| watch.finish(tools, end))
    }

    /// Notes bytes that a signature will carry.
    pub(super) fn note_carried(&mut self, bytes: usize) {
        self.carried_bytes = self.carried_bytes.saturating_add(bytes);
    }

    /// Bytes that are held back, the texts of blocks aside: a call may begin with them, or signatures will carry them.
    pub(super) fn held_bytes(&self) -> usize {
        let watched = self.watch.as_ref().map_or(0, |watch| watch.held_bytes());
        watched.saturating_add(self.carried_bytes)
    }
}
