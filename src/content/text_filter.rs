//! Filter for the text of upstreams that put reasoning or tool calls into it, in four steps:
//!
//! | step | when | what |
//! |---|---|---|
//! | echo | `strip_prefill_echo`, in a stream also `stream_prefill_echo` | leaves out the start that repeats the prefill |
//! | think | `inline_think` | `<think>…</think>` at the start becomes reasoning |
//! | stop | the client has stop sequences | cuts the text, if the upstream did not stop there |
//! | markup | `text_tool_calls` | calls written as text become calls (Harmony: also reasoning) |
//!
//! Each step holds only text that it cannot classify yet. Most answers need none of these steps and
//! have no filter: their text is copied without being decoded.

use super::inline_think::InlineThink;
use crate::carry::signature::SignatureField;
use crate::dialect::text_calls::{AnswerEnd, Markup, Piece};
use crate::json;
use crate::model::request_context::{RequestContext, Tools};
use crate::profile::TextToolCalls;
use crate::text::words;

/// Steps of the filter that an answer needs, each with the text that it holds.
#[derive(Debug)]
pub(super) struct TextFilter {
    unescape: Unescape,
    echo: Option<Prefill>,
    think: Option<InlineThink>,
    stop: Option<StopSearch>,
    markup: Option<Markup>,
}

impl TextFilter {
    /// Returns the filter for the text of an answer, or `None` if no filter is needed.
    pub(super) fn new(context: &RequestContext) -> Option<Self> {
        let profile = &context.profile;
        // Each stop sequence keeps its index in the request's list, by which `Content::end` finds
        // the sequence.
        let stops = context.limits.stop_sequences.iter().cloned().enumerate();
        let stops: Vec<(usize, String)> = stops.filter(|(_, stop)| !stop.is_empty()).collect();
        let filter = Self {
            unescape: Unescape::default(),
            echo: (profile.strip_prefill_echo && !context.prefill.is_empty()).then(|| Prefill {
                prefill: context.prefill.clone(),
                matched: 0,
                in_streams: profile.stream_prefill_echo,
            }),
            think: profile.inline_think.then(InlineThink::new),
            stop: (!stops.is_empty()).then(|| StopSearch { sequences: stops, held: String::new() }),
            markup: Markup::new(profile.text_tool_calls).filter(|_| {
                profile.text_tool_calls == TextToolCalls::Harmony || !context.tools.is_empty()
            }),
        };
        let is_needed = filter.echo.is_some()
            || filter.think.is_some()
            || filter.stop.is_some()
            || filter.markup.is_some();
        is_needed.then_some(filter)
    }

    /// Filters more text, and returns the pieces that are decided; `raw` is escaped. `is_whole`:
    /// `raw` is the text of a whole answer, and not of a stream.
    pub(super) fn push(&mut self, raw: &str, is_whole: bool) -> Vec<Piece> {
        if self.echo.as_ref().is_some_and(|echo| !is_whole && !echo.in_streams) {
            self.echo = None;
        }
        let text = self.unescape.push(raw);
        let mut pieces = Vec::new();
        self.echo_step(&text, &mut pieces);
        pieces
    }

    /// Returns the held text as text, when a call comes.
    pub(super) fn release(&mut self) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.release_steps(&mut pieces);
        if let Some(markup) = &mut self.markup {
            markup.release(&mut pieces);
        }
        pieces
    }

    /// Decides about the held text, at the end of the text.
    pub(super) fn finish(&mut self, tools: &Tools, end: AnswerEnd) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.release_steps(&mut pieces);
        let stopped = matches!(pieces.last(), Some(Piece::Stop(_)));
        if let Some(markup) = self.markup.take().filter(|_| !stopped) {
            markup.finish(tools, end, &mut pieces);
        }
        pieces
    }

    /// Releases the text that is held by all steps of the filter except the last.
    fn release_steps(&mut self, pieces: &mut Vec<Piece>) {
        let text = self.unescape.rest();
        if !text.is_empty() {
            self.echo_step(&text, pieces);
        }
        if let Some(echo) = self.echo.take() {
            let start = words::split_at(&echo.prefill, echo.matched).0.to_owned();
            self.think_step(&start, pieces);
        }
        let mut texts = Vec::new();
        if let Some(think) = &mut self.think {
            think.release(|field, text| texts.push((field, text.to_owned())));
        }
        self.take_thought(texts, pieces);
        if let Some(stop) = &mut self.stop {
            let held = std::mem::take(&mut stop.held);
            self.markup_step(&held, pieces);
        }
    }

    fn echo_step(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        let Some(echo) = &mut self.echo else { return self.think_step(text, pieces) };
        let expected = words::split_at(&echo.prefill, echo.matched).1;
        if let Some(rest) = text.strip_prefix(expected) {
            self.echo = None;
            return self.think_step(rest, pieces);
        }
        if expected.starts_with(text) {
            echo.matched = echo.matched.saturating_add(text.len());
            return;
        }
        let mut start = words::split_at(&echo.prefill, echo.matched).0.to_owned();
        start.push_str(text);
        self.echo = None;
        self.think_step(&start, pieces);
    }

    fn think_step(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        let Some(think) = &mut self.think else { return self.stop_step(text, pieces) };
        let mut texts = Vec::new();
        think.push(text, |field, text| texts.push((field, text.to_owned())));
        self.take_thought(texts, pieces);
    }

    fn take_thought(
        &mut self,
        texts: Vec<(Option<SignatureField>, String)>,
        pieces: &mut Vec<Piece>,
    ) {
        for (field, text) in texts {
            match field {
                None => self.stop_step(&text, pieces),
                Some(_) if text.is_empty() => {}
                Some(field) => pieces.push(Piece::Thinking(field, text)),
            }
        }
    }

    fn stop_step(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        if matches!(pieces.last(), Some(Piece::Stop(_))) {
            return;
        }
        let Some(stop) = &mut self.stop else { return self.markup_step(text, pieces) };
        let (text, sequence) = stop.push(text);
        self.markup_step(&text, pieces);
        if let Some(sequence) = sequence {
            // Markup that a stop sequence cuts off is text.
            if let Some(markup) = &mut self.markup {
                markup.release(pieces);
            }
            pieces.push(Piece::Stop(sequence));
        }
    }

    fn markup_step(&mut self, text: &str, pieces: &mut Vec<Piece>) {
        match &mut self.markup {
            Some(markup) => push_text(markup.push(text), pieces),
            None => push_text(text.to_owned(), pieces),
        }
    }

    /// Returns the number of bytes that the filter holds.
    pub(super) fn held_bytes(&self) -> usize {
        let think = self.think.as_ref().map_or(0, InlineThink::held_bytes);
        think.saturating_add(self.markup.as_ref().map_or(0, Markup::held_bytes))
    }
}

fn push_text(text: String, pieces: &mut Vec<Piece>) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
}

/// Search for tool calls that the model wrote inside of its reasoning.
#[derive(Debug)]
pub(super) struct ReasoningWatch {
    unescape: Unescape,
    markup: Markup,
}

impl ReasoningWatch {
    /// Begins to search reasoning for calls; `None` if reasoning cannot contain calls. Harmony has
    /// a separate channel for calls.
    pub(super) fn new(context: &RequestContext) -> Option<Self> {
        let syntax = context.profile.text_tool_calls;
        let reads = syntax != TextToolCalls::Harmony && !context.tools.is_empty();
        let markup = Markup::new(syntax).filter(|_| reads)?;
        Some(Self { unescape: Unescape::default(), markup })
    }

    /// Reads more reasoning, escaped, and returns the part that is certainly no call.
    pub(super) fn push(&mut self, raw: &str) -> String {
        self.markup.push(&self.unescape.push(raw))
    }

    /// Returns the held reasoning as text or calls, at the end of the reasoning.
    pub(super) fn finish(mut self, tools: &Tools, end: AnswerEnd) -> Vec<Piece> {
        let mut pieces = Vec::new();
        push_text(self.markup.push(&self.unescape.rest()), &mut pieces);
        self.markup.finish(tools, end, &mut pieces);
        pieces
    }

    /// Returns the number of bytes that the search for calls holds.
    pub(super) fn held_bytes(&self) -> usize {
        self.markup.held_bytes()
    }
}

/// Decoder for a JSON string that comes in pieces.
#[derive(Debug, Default)]
struct Unescape {
    /// Escape that is not complete yet, such as the first half of a surrogate pair.
    half: String,
}

impl Unescape {
    fn push(&mut self, raw: &str) -> String {
        let held = json::hold_back(raw);
        let (now, later) = words::split_at(raw, raw.len().saturating_sub(held));
        self.half.push_str(now);
        let text = self.rest();
        self.half.push_str(later);
        text
    }

    /// Removes and returns the kept part of the JSON string, unescaped.
    fn rest(&mut self) -> String {
        let mut text = String::with_capacity(self.half.len());
        json::unescape(&mut text, &self.half);
        self.half.clear();
        text
    }
}

/// Prefill that an upstream may repeat at the start of the text, and the number of its bytes
/// repeated so far.
#[derive(Debug)]
struct Prefill {
    prefill: String,
    matched: usize,
    /// True if the upstream repeats the prefill in streams, and not only in whole answers.
    in_streams: bool,
}

/// Search for the client's stop sequences in the text.
#[derive(Debug)]
struct StopSearch {
    sequences: Vec<(usize, String)>,
    /// End of the text so far, which may be the start of a stop sequence.
    held: String,
}

impl StopSearch {
    /// Reads text. Returns the part of the text that certainly is no stop sequence, and the index
    /// of the stop sequence that ends this part.
    fn push(&mut self, text: &str) -> (String, Option<usize>) {
        self.held.push_str(text);
        let sequences = self.sequences.iter();
        // The stop sequence that is complete first counts, as it does for a model: another sequence
        // that has begun may never be complete. Of two sequences that end together, the longer one
        // counts.
        let found = sequences
            .clone()
            .filter_map(|(index, stop)| {
                let at = words::find(&self.held, stop)?;
                Some((at.saturating_add(stop.len()), at, *index))
            })
            .min();
        if let Some((_, at, index)) = found {
            words::truncate(&mut self.held, at);
            return (std::mem::take(&mut self.held), Some(index));
        }
        let open = sequences.map(|(_, stop)| words::overlap(&self.held, stop)).max().unwrap_or(0);
        let ready = self.held.len().saturating_sub(open);
        let tail = words::split_off(&mut self.held, ready);
        (std::mem::replace(&mut self.held, tail), None)
    }
}

#[cfg(test)]
mod tests;
