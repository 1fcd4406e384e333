//! Reads the content of Chat Completions deltas: text, reasoning and tool calls.

use std::ops::{Deref, DerefMut};

use super::calls::Fragments;
use super::fragment::Fragment;
use super::reasoning;
use crate::answer::ReaderOutput;
use crate::carry::signature::SignatureField;
use crate::content::{self, CitedSource};
use crate::error::Error;
use crate::json::{self, Str};
use crate::model::request_context::RequestContext;
use crate::protocols::chat::wire::{Arguments, ContentPart, Delta, ToolCall};
use crate::text::names::NameSet;

/// Content of one answer so far, with the state that assigns fragments to tool calls and recognizes
/// marked reasoning.
#[derive(Debug)]
pub(super) struct ChoiceContent {
    common: content::Content,
    calls: Fragments,
    /// True if the last text was marked as reasoning ([`Field::Marked`]).
    in_marked: bool,
}

impl Deref for ChoiceContent {
    type Target = content::Content;

    fn deref(&self) -> &content::Content {
        &self.common
    }
}

impl DerefMut for ChoiceContent {
    fn deref_mut(&mut self) -> &mut content::Content {
        &mut self.common
    }
}

impl ChoiceContent {
    pub(super) fn new(context: &RequestContext, ids_used: NameSet<'static>) -> Self {
        Self {
            common: content::Content::new(context, ids_used),
            calls: Fragments::default(),
            in_marked: false,
        }
    }

    /// Adds the content parts of a delta to the answer. Consecutive parts of the same type are
    /// joined, because a part can be a single byte and would become an event of its own.
    pub(super) fn take_parts(
        &mut self,
        delta: &Delta<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        let mut parts = delta.content.iter().peekable();
        while let Some(part) = parts.next() {
            if self.text().is_cut() {
                return Ok(());
            }
            let mut joined = String::new();
            while let Some(next) = parts.next_if(|next| next.is_like(part)) {
                if joined.is_empty() {
                    joined.push_str(part.text().raw());
                }
                joined.push_str(next.text().raw());
            }
            match Str::inside(&joined) {
                Some(text) if !joined.is_empty() => {
                    self.take_part(part.saying(text), delta.is_thought, to)?;
                }
                _ => self.take_part(*part, delta.is_thought, to)?,
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn take_part(
        &mut self,
        part: ContentPart<'_>,
        is_thought: bool,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        match part {
            ContentPart::Text(text) if is_thought => {
                let (thought, text) = reasoning::marked(text.raw());
                self.in_marked = true;
                self.push_raw_reasoning(thought, SignatureField::Marked, to);
                self.take_raw_text(text, to)
            }
            ContentPart::Text(text) if std::mem::take(&mut self.in_marked) => {
                self.take_raw_text(reasoning::without_end(text.raw()), to)
            }
            ContentPart::Text(text) if !self.is_whole() && self.text_mut().repeats(text.raw()) => {
                Ok(())
            }
            ContentPart::Text(text) => self.take_text(text, to),
            ContentPart::Thinking(text) => {
                self.take_part_of_reasoning(text, SignatureField::Parts, to)
            }
            ContentPart::Reasoning(text) => {
                self.take_part_of_reasoning(text, SignatureField::Marked, to)
            }
            ContentPart::Refusal(text) => self.take_refusal(text, to),
        }
    }

    fn take_part_of_reasoning(
        &mut self,
        text: Str<'_>,
        field: SignatureField,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        if self.reasoning_mut().counts(field) {
            self.push_reasoning(text, field, to);
        }
        Ok(())
    }

    /// Adds citations for the sources in the `annotations` of a delta. The citations apply to the
    /// text of the delta and the text before the delta.
    fn take_annotations(&mut self, delta: &Delta<'_>) {
        for raw in delta.annotations.into_iter().flat_map(json::elements) {
            if let Some(source) = CitedSource::read(raw) {
                self.cite(&source);
            }
        }
    }

    /// Adds the reasoning of a delta to the answer.
    pub(super) fn take_reasoning(&mut self, delta: &Delta<'_>, to: &mut ReaderOutput<'_>) {
        let (field, said) = reasoning::choose(delta, self.reasoning_mut());
        if field == Some(SignatureField::ReasoningDetails) {
            for text in reasoning::detail_texts(delta) {
                self.push_reasoning(text, SignatureField::ReasoningDetails, to);
            }
        } else if let Some((field, text)) = said {
            self.push_reasoning(text, field, to);
        }
        let (reasoning, blocks) = self.reasoning_and_blocks();
        reasoning::keep_details(delta, field, reasoning, blocks, to);
    }

    /// Adds the sources of the text and then the tool calls of a delta to the answer.
    pub(super) fn take_calls(
        &mut self,
        choice: u64,
        delta: &Delta<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        self.take_annotations(delta);
        self.calls.begin_list(self.common.assembly());
        for call in delta.tool_calls.iter() {
            self.take_call(choice, call, false, to)?;
        }
        // If `tool_calls` and `function_call` both come, they are the same call.
        let structured = self.calls.has_structured();
        if let Some(call) = delta.function_call.as_ref().filter(|_| !structured) {
            self.take_call(choice, call, true, to)?;
        }
        Ok(())
    }

    /// Adds a tool call, or a fragment of a call, to the answer. Each entry of a whole answer is a
    /// separate call.
    fn take_call(
        &mut self,
        choice: u64,
        entry: &ToolCall<'_>,
        legacy: bool,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        if entry.is_empty() {
            return Ok(());
        }
        if !self.begin_call(to)? {
            return Ok(());
        }
        let fragment = Fragment::new(choice, entry, legacy);
        let is_whole = self.is_whole();
        let blocks = self.common.assembly_mut();
        let Some(index) = self.calls.take(&fragment, is_whole, blocks, to)? else {
            return Ok(());
        };
        match entry.arguments {
            Arguments::None => {}
            Arguments::Text(text) => self.note_progress(text.decoded_len(), text.is_blank(), to),
            Arguments::Json(raw) => self.note_progress(raw.len(), false, to),
        }
        let (reasoning, blocks) = self.reasoning_and_blocks();
        reasoning::keep_signature(index, entry, reasoning, blocks, to);
        Ok(())
    }
}
