//! Reasoning of the upstream, in whichever field it comes: to thinking blocks.
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
use super::machine::Machine;
use super::text::escaped;
use super::text_filter::Watch;
use super::thinking::Thinking;
use crate::carry::signature::Field;
use crate::dialect::text_calls::AnswerEnd;
use crate::dialect::text_calls::Piece;
use crate::error::Error;
use crate::json::{self, Str};
use crate::model::request_context::{Display, RequestContext};
use crate::protocols::chat::wire::Delta;
use crate::text::words;

/// What is known of the reasoning in one answer.
#[derive(Debug, Default)]
pub(super) struct Reasoning {
    /// The field that it came in first; the same text may come in others too.
    pub(super) field: Option<Field>,
    /// Some has come, though it be white space: transformers' server sends the thought that a template leaves empty.
    pub(super) has_come: bool,
    /// Where it is not shown and must come back with the next call.
    pub(super) hidden: Option<Thinking>,
    /// White space before the first of it, escaped.
    lead: String,
    /// What came of it.
    echo: Echo,
    /// The last piece, where a profile says that pieces come twice.
    last: String,
    /// The last text was marked as reasoning ([`Field::Marked`]).
    pub(super) in_marked: bool,
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

    pub(super) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Bytes that are held back, the texts in the queue aside: a call may begin with them, they are for a block that
    /// is not there yet, or signatures will carry them.
    pub(super) fn held_bytes(&self) -> usize {
        let watched = self.watch.as_ref().map_or(0, |watch| watch.held_bytes());
        let hidden = self.hidden.as_ref().map_or(0, |hidden| hidden.pending.len());
        let texts = watched.saturating_add(hidden).saturating_add(self.lead.len());
        texts.saturating_add(self.carried_bytes)
    }

    /// Notes bytes that a signature will carry.
    pub(super) fn note_carried(&mut self, bytes: usize) {
        self.carried_bytes = self.carried_bytes.saturating_add(bytes);
    }

    /// Whether text of this field counts, which it does if it is the first.
    pub(super) fn counts(&mut self, field: Field) -> bool {
        *self.field.get_or_insert(field) == field
    }
}

impl Machine {
    pub(super) fn take_reasoning(&mut self, delta: &Delta<'_>, out: &mut Vec<u8>) {
        let details = delta.reasoning_details.iter();
        let told = details.clone().filter(|detail| !detail.block);
        let details_text = told.clone().any(|detail| detail.text.is_some());
        let said = said(delta, self.reasoning.field);
        self.reasoning.has_come |= said.is_some_and(|(_, text)| !text.is_empty());
        if self.reasoning.field.is_none() {
            let details = details_text.then_some(Field::ReasoningDetails);
            let spoken = said.filter(|(_, text)| !text.is_blank());
            self.reasoning.field = details.or_else(|| spoken.map(|(field, _)| field));
        }
        let field = self.reasoning.field.or_else(|| said.map(|(field, _)| field));
        if field == Some(Field::ReasoningDetails) {
            for text in told.filter_map(|detail| detail.text) {
                self.push_reasoning(text, Field::ReasoningDetails, out);
            }
        } else if let Some((field, text)) = said {
            self.push_reasoning(text, field, out);
        }
        for detail in details {
            let is_empty =
                detail.text.is_none() && detail.data.is_none() && detail.signature.is_none();
            if !is_empty && (self.shows_thinking() || self.record.context.reasoning_returns) {
                let field = field.unwrap_or(Field::ReasoningDetails);
                self.thinking(field).push_detail(detail);
                self.reasoning.note_carried(detail.raw.len());
            }
        }
    }

    pub(super) fn shows_thinking(&self) -> bool {
        self.record.context.thinking != Display::Hidden
    }

    /// The block that reasoning belongs to now.
    pub(super) fn thinking(&mut self, field: Field) -> &mut Thinking {
        if !self.shows_thinking() {
            return self.reasoning.hidden.get_or_insert_with(|| Thinking::new(field, false));
        }
        let shown = self.record.context.thinking == Display::Shown;
        match self.queue.thinking(field, shown) {
            Some(thinking) => thinking,
            // The queue always has one.
            None => self.reasoning.hidden.get_or_insert_with(|| Thinking::new(field, false)),
        }
    }

    /// A text that is marked as reasoning, escaped.
    pub(super) fn take_marked(&mut self, raw: &str, out: &mut Vec<u8>) -> Result<(), Error> {
        let (thought, text) = marked(raw);
        self.reasoning.in_marked = true;
        self.push_raw_reasoning(thought, Field::Marked, out);
        self.take_raw_text(text, out)
    }

    /// Reasoning that was cut out of a text, escaped, if its field counts.
    pub(super) fn push_raw_reasoning(&mut self, raw: &str, field: Field, out: &mut Vec<u8>) {
        if self.reasoning.counts(field)
            && let Some(text) = Str::inside(raw)
            && !raw.is_empty()
        {
            self.push_reasoning(text, field, out);
        }
    }

    pub(super) fn push_reasoning(&mut self, text: Str<'_>, field: Field, out: &mut Vec<u8>) {
        if self.record.context.profile.dedupe_reasoning {
            if self.reasoning.last == text.raw() {
                return;
            }
            text.raw().clone_into(&mut self.reasoning.last);
        }
        if self.reasoning.echo.repeats(text.raw()) {
            return;
        }
        let is_blank = text.is_blank();
        self.note_progress(text.decoded_len(), is_blank);
        match &mut self.reasoning.watch {
            Some(watch) => {
                let thought = watch.push(text.raw());
                self.push_watched(&thought, field, out);
            }
            None => self.push_thought(text, is_blank, field, out),
        }
    }

    /// Something else came: what was held back is reasoning.
    pub(super) fn release_reasoning(&mut self, out: &mut Vec<u8>) {
        self.end_reasoning(false, out);
    }

    /// The answer is over. If it says nothing else, it calls what its reasoning ends with: some models call a tool
    /// before they end their reasoning, and servers take the call for a part of it.
    pub(super) fn finish_reasoning(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let is_whole = !self.text.is_cut() && !self.outcome.is_cut_off();
        let calls = self.end_reasoning(is_whole, out);
        self.take_pieces(calls, out)
    }

    /// Gives the calls that were found; there are none unless the answer says nothing else (`alone`).
    fn end_reasoning(&mut self, alone: bool, out: &mut Vec<u8>) -> Vec<Piece> {
        let Some(watch) = self.reasoning.watch.take() else { return Vec::new() };
        let end = AnswerEnd { alone, is_cut_off: self.outcome.is_cut_off() };
        // White space that came behind it parts no thought in two.
        let blank = self.queue.take_blank();
        let mut calls = Vec::new();
        for piece in watch.finish(&self.record.context.tools, end) {
            match (piece, self.reasoning.field) {
                (Piece::Text(text), Some(field)) => self.push_watched(&text, field, out),
                // There is no field where nothing but white space came.
                (Piece::Text(_), None) => {}
                (call, _) => calls.push(call),
            }
        }
        if let Some(blank) = blank {
            self.queue.push(blank);
        }
        calls
    }

    /// Reasoning that was looked at.
    fn push_watched(&mut self, text: &str, field: Field, out: &mut Vec<u8>) {
        let raw = escaped(text);
        if let Some(text) = Str::inside(&raw).filter(|text| !text.is_empty()) {
            self.push_thought(text, text.is_blank(), field, out);
        }
    }

    fn push_thought(&mut self, text: Str<'_>, is_blank: bool, field: Field, out: &mut Vec<u8>) {
        if !self.shows_thinking() && !self.record.context.reasoning_returns {
            return;
        }
        let before = match self.shows_thinking() {
            true => self.queue.back_thinking(),
            false => self.reasoning.hidden.as_ref(),
        };
        let continues = before.is_some_and(Thinking::has_text);
        if continues
            && self.record.progress.is_in_block()
            && json::hold_back(text.raw()) == 0
            && let Some(thinking) = self.queue.only_thinking()
            && thinking.is_shown()
            && thinking.pending.is_empty()
        {
            thinking.show(text.raw(), &mut self.scratch);
            return self.sink.thinking(text.raw(), out);
        }
        if is_blank && !continues {
            // White space alone opens no block; servers send it beside ordinary text.
            self.reasoning.lead.push_str(text.raw());
            return;
        }
        let lead = std::mem::take(&mut self.reasoning.lead);
        let thinking = self.thinking(field);
        thinking.set_field(field);
        thinking.push(&lead, true);
        thinking.push(text.raw(), is_blank);
        if self.shows_thinking() {
            self.queue.hold(lead.len().saturating_add(text.raw().len()));
        }
    }
}
