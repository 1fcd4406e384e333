//! Reasoning of the upstream, in any of the fields that servers use, before it becomes thinking
//! blocks.
//!
//! Some servers send the same text in two fields. So only the first field with reasoning is used,
//! for the whole answer.
//!
//! If the profile names a syntax of calls written as text, reasoning is searched for calls, too.
//! Calls at the end of the reasoning count if the answer has no other content ([`ReasoningWatch`]).

use super::echo::Echo;
use super::text_filter::ReasoningWatch;
use crate::answer::ReaderOutput;
use crate::assemble::Assembly;
use crate::carry::signature::SignatureField;
use crate::dialect::text_calls::{AnswerEnd, Piece};
use crate::json::{self, Str, escaped};
use crate::model::request_context::{Display, RequestContext};
use crate::profile::ReasoningOnly;

/// Maximum number of bytes of reasoning that are kept to be sent as text, if the answer has no
/// other text.
const TEXT_BYTES_MAX: usize = 256 << 10;

/// State of the reasoning in one answer.
#[derive(Debug, Default)]
pub(crate) struct ReasoningState {
    /// Field in which the first reasoning came. Other fields are ignored, because servers may
    /// repeat the same text there.
    field: Option<SignatureField>,
    /// True if any reasoning was received, even white space: transformers' server sends the empty
    /// reasoning of a template.
    has_come: bool,
    /// Reasoning so far, to detect a delta that repeats all of it.
    echo: Echo,
    /// Number of bytes of reasoning items and call signatures that thinking blocks will carry.
    carried_bytes: usize,
    /// Search for calls that the model wrote inside of its reasoning, until the answer has other
    /// content.
    watch: Option<Box<ReasoningWatch>>,
    /// Whole reasoning, escaped, while it may still have to be sent as the answer's text.
    text: Option<String>,
}

impl ReasoningState {
    pub(crate) fn new(context: &RequestContext) -> Self {
        let may_be_text = context.profile.reasoning_only == ReasoningOnly::Text;
        Self {
            watch: ReasoningWatch::new(context).map(Box::new),
            text: may_be_text.then(String::new),
            ..Self::default()
        }
    }

    /// Keeps a piece of the reasoning that may have to be sent as text.
    fn keep(&mut self, raw: &str) {
        let Some(text) = &mut self.text else { return };
        if text.len().saturating_add(raw.len()) > TEXT_BYTES_MAX {
            self.text = None;
            return;
        }
        text.push_str(raw);
    }

    /// Returns the reasoning that may have to be sent as the answer's text, escaped.
    pub(crate) fn as_text(&self) -> Option<&str> {
        let text = self.text.as_deref()?;
        (!json::trim_start_raw(text).is_empty()).then_some(text)
    }

    /// Removes and returns the reasoning that is kept to be sent as text.
    pub(crate) fn take_text(&mut self) -> String {
        self.text.take().unwrap_or_default()
    }

    /// Returns the number of bytes of reasoning that are kept to be sent as text.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
    }

    /// Returns the field that the answer's reasoning comes in; `None` before the first reasoning.
    pub(crate) fn field(&self) -> Option<SignatureField> {
        self.field
    }

    /// Records that reasoning was received, even if only white space.
    #[inline]
    pub(crate) fn note_come(&mut self) {
        self.has_come = true;
    }

    /// Records the field of the answer's reasoning, unless it is known.
    pub(crate) fn note_field(&mut self, field: Option<SignatureField>) {
        self.field = self.field.or(field);
    }

    /// Returns true if reasoning in this field is used: the field is the first of the answer that
    /// had reasoning.
    pub(crate) fn counts(&mut self, field: SignatureField) -> bool {
        *self.field.get_or_insert(field) == field
    }

    /// Returns true if text that comes now may begin with line breaks that a template wrote behind
    /// the reasoning.
    pub(crate) fn is_before_text(&self) -> bool {
        self.field.is_some() || self.has_come
    }

    /// Returns true if a piece repeats all reasoning so far.
    pub(crate) fn repeats(&mut self, raw: &str) -> bool {
        self.echo.repeats(raw)
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Handles a piece of reasoning that is no repetition. During a search for calls, only the part
    /// that is certainly no call is passed on.
    #[inline]
    pub(crate) fn push(
        &mut self,
        text: Str<'_>,
        is_blank: bool,
        field: SignatureField,
        assembly: &mut Assembly,
        to: &mut ReaderOutput<'_>,
    ) {
        self.keep(text.raw());
        match &mut self.watch {
            Some(watch) => push_watched(&watch.push(text.raw()), field, assembly, to),
            None if is_kept(to) => assembly.push_thinking(text, is_blank, field, to),
            None => {}
        }
    }

    /// Ends the search for calls in the reasoning. Passes the held text on as reasoning, and
    /// returns the calls.
    pub(crate) fn end_watch(
        &mut self,
        end: AnswerEnd,
        assembly: &mut Assembly,
        to: &mut ReaderOutput<'_>,
    ) -> Vec<Piece> {
        let Some(watch) = self.watch.take() else { return Vec::new() };
        // White space behind the reasoning does not split the thinking block in two.
        let blank = assembly.take_blank();
        let mut calls = Vec::new();
        for piece in watch.finish(&to.context.tools, end) {
            match (piece, self.field) {
                (Piece::Text(text), Some(field)) => push_watched(&text, field, assembly, to),
                // The reasoning was only white space if no field is recorded.
                (Piece::Text(_), None) => {}
                (call, _) => calls.push(call),
            }
        }
        assembly.put_back(blank);
        calls
    }

    /// Counts bytes that the signature of a thinking block will carry.
    pub(crate) fn note_carried(&mut self, bytes: usize) {
        self.carried_bytes = self.carried_bytes.saturating_add(bytes);
    }

    /// Returns the number of bytes held outside of blocks: possible starts of calls, and reasoning
    /// items for signatures.
    pub(crate) fn held_bytes(&self) -> usize {
        let watched = self.watch.as_ref().map_or(0, |watch| watch.held_bytes());
        watched.saturating_add(self.carried_bytes)
    }
}

/// Passes on reasoning that was searched for calls.
fn push_watched(
    text: &str,
    field: SignatureField,
    assembly: &mut Assembly,
    to: &mut ReaderOutput<'_>,
) {
    let raw = escaped(text);
    if let Some(text) = Str::inside(&raw).filter(|text| !text.is_empty())
        && is_kept(to)
    {
        assembly.push_thinking(text, text.is_blank(), field, to);
    }
}

/// Returns true if reasoning is shown to the client, or must be sent back to the upstream later.
pub(crate) fn is_kept(to: &ReaderOutput<'_>) -> bool {
    to.context.thinking.display != Display::Hidden || to.context.thinking.returns
}
