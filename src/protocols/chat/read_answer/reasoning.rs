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
use crate::answer::Output;
use crate::assemble::Assembly;
use crate::carry::signature::{self, Field};
use crate::dialect::text_calls::{AnswerEnd, Piece};
use crate::json::{Str, escaped};
use crate::model::request_context::{Display, RequestContext};
use crate::protocols::chat::wire::{Delta, ToolCall};
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

/// The texts of the items in a delta.
pub(super) fn detail_texts<'a>(delta: &Delta<'a>) -> impl Iterator<Item = Str<'a>> {
    let details = delta.reasoning_details.iter().filter(|detail| !detail.block);
    details.filter_map(|detail| detail.text)
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

    /// The field of the reasoning in a delta, and the reasoning, lists aside.
    #[inline]
    pub(super) fn choose<'a>(
        &mut self,
        delta: &Delta<'a>,
    ) -> (Option<Field>, Option<(Field, Str<'a>)>) {
        let said = said(delta, self.field);
        self.has_come |= said.is_some_and(|(_, text)| !text.is_empty());
        if self.field.is_none() {
            let has_details = detail_texts(delta).next().is_some();
            let details = has_details.then_some(Field::ReasoningDetails);
            let spoken = said.filter(|(_, text)| !text.is_blank());
            self.field = details.or_else(|| spoken.map(|(field, _)| field));
        }
        (self.field.or_else(|| said.map(|(field, _)| field)), said)
    }

    /// Notes the field that counts, unless one is known.
    pub(super) fn note_field(&mut self, field: Option<Field>) {
        self.field = self.field.or(field);
    }

    /// Whether text of this field counts, which it does if it is the first.
    pub(super) fn counts(&mut self, field: Field) -> bool {
        *self.field.get_or_insert(field) == field
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

    /// Takes a piece that repeats nothing; where it is watched, what of it is certainly no call.
    #[inline]
    pub(super) fn push(
        &mut self,
        text: Str<'_>,
        is_blank: bool,
        field: Field,
        assembly: &mut Assembly,
        to: &mut Output<'_>,
    ) {
        match &mut self.watch {
            Some(watch) => push_watched(&watch.push(text.raw()), field, assembly, to),
            None if is_kept(to) => assembly.push_thinking(text, is_blank, field, to),
            None => {}
        }
    }

    /// Watches no longer: what was held back is reasoning, but for the calls that this gives.
    pub(super) fn end_watch(
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

    /// Keeps the items of a delta that the upstream wants back.
    pub(super) fn keep_details(
        &mut self,
        delta: &Delta<'_>,
        field: Option<Field>,
        assembly: &mut Assembly,
        to: &Output<'_>,
    ) {
        for detail in delta.reasoning_details.iter() {
            let is_empty =
                detail.text.is_none() && detail.data.is_none() && detail.signature.is_none();
            if !is_empty && is_kept(to) {
                assembly.push_detail(detail, field.unwrap_or(Field::ReasoningDetails), to);
                self.note_carried(detail.raw.len());
            }
        }
    }

    /// Keeps the signature of the call at `index`, if it has one.
    pub(super) fn keep_signature(
        &mut self,
        index: usize,
        call: &ToolCall<'_>,
        assembly: &mut Assembly,
        to: &Output<'_>,
    ) {
        if let Some(signature) = call.signature
            && is_kept(to)
        {
            let placed = signature::placed(signature.place, &signature.text.decode());
            self.note_carried(placed.len());
            let field = self.field.unwrap_or(Field::ReasoningContent);
            assembly.carry_signature(index, placed, field, to);
        }
    }

    /// Notes bytes that a signature will carry.
    fn note_carried(&mut self, bytes: usize) {
        self.carried_bytes = self.carried_bytes.saturating_add(bytes);
    }

    /// Bytes that are held back, the texts of blocks aside: a call may begin with them, or signatures will carry them.
    pub(super) fn held_bytes(&self) -> usize {
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

/// Whether reasoning is shown, or must come back.
fn is_kept(to: &Output<'_>) -> bool {
    to.context.thinking != Display::Hidden || to.context.reasoning_returns
}
