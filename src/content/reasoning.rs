//! Reasoning of the upstream, in whichever field it comes, before it becomes thinking blocks.
//!
//! Some servers send the same text in two fields. So the first field that says something is the one
//! that counts, for the whole answer.
//!
//! Where the profile names a syntax of calls, reasoning is looked at for them, too: what it ends
//! with is a call if the answer says nothing else ([`Watch`]).

use super::echo::Echo;
use super::text_filter::Watch;
use crate::answer::Output;
use crate::assemble::Assembly;
use crate::carry::signature::Field;
use crate::dialect::text_calls::{AnswerEnd, Piece};
use crate::json::{self, Str, escaped};
use crate::model::request_context::{Display, RequestContext};
use crate::profile::ReasoningOnly;

/// Maximum bytes of reasoning that can become a text. An answer is not longer.
const TEXT_BYTES_MAX: usize = 256 << 10;

/// State of the reasoning in one answer.
#[derive(Debug, Default)]
pub(crate) struct Reasoning {
    /// The field that it came in first; the same text may come in others too.
    field: Option<Field>,
    /// True if reasoning has come, even if only white space: transformers' server sends the thought
    /// that a template leaves empty.
    has_come: bool,
    /// Reasoning so far, by which a delta is noticed that repeats all of it.
    echo: Echo,
    /// Bytes of records and of calls' signatures.
    carried_bytes: usize,
    /// Search for calls that the model wrote before it ended its reasoning, until it says
    /// something.
    watch: Option<Box<Watch>>,
    /// Whole reasoning, escaped, while it may become the answer's text.
    text: Option<String>,
}

impl Reasoning {
    pub(crate) fn new(context: &RequestContext) -> Self {
        let may_be_text = context.profile.reasoning_only == ReasoningOnly::Text;
        Self {
            watch: Watch::new(context).map(Box::new),
            text: may_be_text.then(String::new),
            ..Self::default()
        }
    }

    /// Keeps a piece of what may become the answer's text.
    fn keep(&mut self, raw: &str) {
        let Some(text) = &mut self.text else { return };
        if text.len().saturating_add(raw.len()) > TEXT_BYTES_MAX {
            self.text = None;
            return;
        }
        text.push_str(raw);
    }

    /// Returns the reasoning that may become the answer's text, escaped.
    pub(crate) fn as_text(&self) -> Option<&str> {
        let text = self.text.as_deref()?;
        (!json::trim_start_raw(text).is_empty()).then_some(text)
    }

    /// Takes what may become the answer's text.
    pub(crate) fn take_text(&mut self) -> String {
        self.text.take().unwrap_or_default()
    }

    /// Returns the bytes of reasoning that are kept to become the answer's text.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
    }

    /// The field that counts, once one has said something.
    pub(crate) fn field(&self) -> Option<Field> {
        self.field
    }

    /// Notes that reasoning has come, even if only white space.
    #[inline]
    pub(crate) fn note_come(&mut self) {
        self.has_come = true;
    }

    /// Notes the field that counts, unless one is known.
    pub(crate) fn note_field(&mut self, field: Option<Field>) {
        self.field = self.field.or(field);
    }

    /// Whether text of this field counts, which it does if it is the first.
    pub(crate) fn counts(&mut self, field: Field) -> bool {
        *self.field.get_or_insert(field) == field
    }

    /// Returns true if text behind the reasoning may begin with line breaks of a template.
    pub(crate) fn is_before_text(&self) -> bool {
        self.field.is_some() || self.has_come
    }

    /// Returns true if a piece brings all reasoning so far once more.
    pub(crate) fn repeats(&mut self, raw: &str) -> bool {
        self.echo.repeats(raw)
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Takes a piece that repeats nothing; where it is watched, what of it is certainly no call.
    #[inline]
    pub(crate) fn push(
        &mut self,
        text: Str<'_>,
        is_blank: bool,
        field: Field,
        assembly: &mut Assembly,
        to: &mut Output<'_>,
    ) {
        self.keep(text.raw());
        match &mut self.watch {
            Some(watch) => push_watched(&watch.push(text.raw()), field, assembly, to),
            None if is_kept(to) => assembly.push_thinking(text, is_blank, field, to),
            None => {}
        }
    }

    /// Watches no longer: what was held back is reasoning, but for the calls that this gives.
    pub(crate) fn end_watch(
        &mut self,
        end: AnswerEnd,
        assembly: &mut Assembly,
        to: &mut Output<'_>,
    ) -> Vec<Piece> {
        let Some(watch) = self.watch.take() else { return Vec::new() };
        // White space that came behind it parts no thought in two.
        let blank = assembly.take_blank();
        let mut calls = Vec::new();
        for piece in watch.finish(&to.context.tools, end) {
            match (piece, self.field) {
                (Piece::Text(text), Some(field)) => push_watched(&text, field, assembly, to),
                // There is no field where nothing but white space came.
                (Piece::Text(_), None) => {}
                (call, _) => calls.push(call),
            }
        }
        assembly.put_back(blank);
        calls
    }

    /// Notes bytes that a signature will carry.
    pub(crate) fn note_carried(&mut self, bytes: usize) {
        self.carried_bytes = self.carried_bytes.saturating_add(bytes);
    }

    /// Bytes that are held back, the texts of blocks aside: a call may begin with them, or
    /// signatures will carry them.
    pub(crate) fn held_bytes(&self) -> usize {
        let watched = self.watch.as_ref().map_or(0, |watch| watch.held_bytes());
        watched.saturating_add(self.carried_bytes)
    }
}

/// Takes reasoning that was looked at.
fn push_watched(text: &str, field: Field, assembly: &mut Assembly, to: &mut Output<'_>) {
    let raw = escaped(text);
    if let Some(text) = Str::inside(&raw).filter(|text| !text.is_empty())
        && is_kept(to)
    {
        assembly.push_thinking(text, text.is_blank(), field, to);
    }
}

/// Returns true if reasoning is shown, or must come back.
pub(crate) fn is_kept(to: &Output<'_>) -> bool {
    to.context.thinking.display != Display::Hidden || to.context.thinking.returns
}
