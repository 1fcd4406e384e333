//! Input of one tool call, assembled from the fragments of its `arguments`.
//!
//! Servers send the input in four ways, and mix them:
//!
//! | way | fragments | the input |
//! |---|---|---|
//! | deltas | `{"a"`, `:1}` | their concatenation |
//! | whole | `{"a":1}`, perhaps repeated later, also as deltas | the first, without repetitions |
//! | placeholder | `{}`, `[]` or `null`, then any of the others | the others |
//! | cumulative | `{"a"`, `{"a":1}` | the last |
//!
//! Some servers send JSON objects in place of strings, which `objects` merges. `reading` is a text
//! with its JSON state, `compare` relates a new text to the input so far, and `input` is the final
//! input of a call.
//!
//! A full value and deltas are never concatenated: clients would parse `{"a":1}{"a":1}` and lose
//! the turn. Different values in one text are an invalid input. Two equal consecutive fragments are
//! both kept, because texts can repeat themselves. An input that is complete JSON may still
//! continue.
//!
//! Text that a client has received cannot be taken back, so nothing is sent while two
//! interpretations are possible. A fragment that begins with everything before it is either
//! cumulative or a delta inside of a nested value: both interpretations are kept until one of them
//! cannot be JSON any more. A first fragment that is a whole object is held until the call is over,
//! because deltas may still replace it.

mod compare;
mod input;
mod objects;
mod reading;

pub(crate) use compare::{Compared, is_half};
pub(crate) use input::FinalInput;
use objects::MergedObjects;
use reading::FragmentReading;

use crate::json;
use crate::text::{hash, words};

/// Input of one tool call, as far as it has arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolInput {
    /// Concatenation of the fragments, unescaped, with its JSON state.
    reading: FragmentReading,
    /// Number of bytes of `reading` that have been sent.
    sent: usize,
    /// True if the first fragment was a whole object, of which nothing has been sent.
    whole: bool,
    /// Input if each of the last fragments repeats everything before it (cumulative fragments),
    /// while that is possible.
    cumulative: Option<FragmentReading>,
    /// Text that came after the object of the input was complete: perhaps the same object again.
    again: Option<FragmentReading>,
    /// True if a whole input in a single fragment replaced an earlier input.
    replaced: bool,
    /// True if the input came as a JSON object, and no string came.
    is_json: bool,
    /// Merged JSON objects, if the input came as several objects. `reading` is then the last
    /// object.
    objects: Option<Box<MergedObjects>>,
    /// First half of a surrogate pair, whose second half must come in the next fragment.
    half: String,
    /// True if the input is plain text for a custom tool.
    custom: bool,
    /// True if the block of the call is closed; later fragments come too late to be sent.
    closed: bool,
    /// Number of contradictions: values that came after the first and could not replace it.
    conflicts: u32,
}

impl ToolInput {
    /// Handles a fragment of the input, escaped. `scratch` is only reused memory.
    pub(crate) fn receive(&mut self, raw: &str, scratch: &mut String) {
        scratch.clear();
        let held = json::hold_back(raw);
        let (now, later) = words::split_at(raw, raw.len().saturating_sub(held));
        if self.half.is_empty() {
            json::unescape(scratch, now);
        } else {
            self.half.push_str(now);
            json::unescape(scratch, &self.half);
            self.half.clear();
        }
        self.half.push_str(later);
        self.take_fragment(scratch);
    }

    /// Handles arguments that are a JSON value and not a string. `named`: the tool's name came with
    /// the arguments.
    pub(crate) fn receive_json(&mut self, raw: &str, named: bool) {
        let value = FragmentReading::of(&json::compacted(raw));
        if !value.scan.is_object() {
            return self.take_fragment(&value.text);
        }
        if self.is_json && self.sent == 0 && !self.closed {
            let before = &self.reading.text;
            let objects = self.objects.get_or_insert_with(|| Box::new(MergedObjects::of(before)));
            if objects.add(&value.text, named) {
                self.conflicts = self.conflicts.saturating_add(1);
            }
            if !value.is_placeholder() {
                self.reading = value;
            }
            return;
        }
        self.again = None;
        if self.closed || (self.reading.scan.is_object() && !self.can_be_replaced()) {
            return self.take_fragment(&value.text);
        }
        if self.sent == 0 {
            self.reading = value;
            self.cumulative = None;
            self.whole = true;
            self.is_json = true;
        } else if let Some(rest) = value.text.strip_prefix(self.reading.text.as_str()) {
            self.reading.push(rest);
            self.cumulative = None;
        } else {
            self.conflicts = self.conflicts.saturating_add(1);
        }
    }

    /// Handles the whole input in a single string, escaped. The string completes the fragments so
    /// far, or replaces them if none was sent: fragments can be ciphertext.
    pub(crate) fn receive_full(&mut self, raw: &str) {
        self.half.clear();
        let mut text = String::with_capacity(raw.len());
        json::unescape(&mut text, raw);
        let is_known = hash::same(text.trim(), self.reading.text.trim());
        if text.trim().is_empty() || is_known {
            return;
        }
        if self.closed {
            self.conflicts = self.conflicts.saturating_add(1);
            return;
        }
        if self.custom {
            self.reading = FragmentReading::default();
            return self.reading.push_unread(&text);
        }
        let full = FragmentReading::of(text.trim_start());
        if let Some(rest) = full.text.strip_prefix(self.reading.text.as_str()) {
            self.reading.push(rest);
            (self.cumulative, self.again) = (None, None);
        } else if self.sent == 0 && !(full.is_placeholder() && self.reading.scan.is_object()) {
            self.whole = full.scan.is_object();
            self.reading = full;
            (self.cumulative, self.again) = (None, None);
        } else if self.sent > 0 {
            self.conflicts = self.conflicts.saturating_add(1);
        }
    }

    /// Marks the input as plain text for a custom tool.
    pub(crate) fn set_custom(&mut self) {
        self.custom = true;
    }

    fn take_fragment(&mut self, mut text: &str) {
        if self.is_json && !text.trim().is_empty() {
            self.join_objects();
        }
        // Text behind a complete object is read separately, however the upstream cuts its
        // fragments.
        let mut is_start = true;
        while !text.is_empty() {
            let is_over = self.closed || (self.reading.scan.is_object() && !self.custom);
            text =
                if is_over { self.take_repetition(text, is_start) } else { self.take_more(text) };
            is_start = false;
        }
    }

    /// Merges the objects that came into one input.
    fn join_objects(&mut self) {
        self.is_json = false;
        if let Some(objects) = self.objects.take() {
            self.reading = FragmentReading::of(&objects.text());
        }
    }

    /// Handles a fragment of the input, and returns the text behind the complete input.
    fn take_more<'t>(&mut self, text: &'t str) -> &'t str {
        if self.custom {
            self.reading.push_unread(text);
            return "";
        }
        if let Some(cumulative) = &mut self.cumulative {
            match text.strip_prefix(cumulative.text.as_str()) {
                Some(rest) => cumulative.push(rest),
                None => cumulative.push(text),
            }
            self.reading.push(text);
            self.settle();
            return "";
        }
        if let Some(behind) = after_mark(&self.reading.text, text) {
            self.reading = FragmentReading::default();
            return behind;
        }
        if !self.reading.scan.starts_object()
            && self.reading.head.is_nothing()
            && begins_an_input(text)
        {
            self.reading = FragmentReading::default();
        }
        let first = self.reading.text.is_empty();
        if !first
            && self.reading.scan.starts_object()
            && !self.reading.scan.is_broken()
            && text.starts_with(self.reading.text.as_str())
        {
            self.cumulative = Some(FragmentReading::of(text));
            self.reading.push(text);
            self.settle();
            return "";
        }
        // White space before the object would only delay its first byte.
        let behind = self.reading.push_value(if first { text.trim_start() } else { text });
        self.whole = first && self.reading.scan.is_object();
        if behind.is_empty() || self.reading.scan.is_object() {
            return behind;
        }
        if self.reading.head.is_nothing() && begins_an_input(behind) {
            return behind;
        }
        self.reading.push(behind);
        ""
    }

    /// Handles text that comes after the object was complete. `is_start`: a fragment begins with
    /// this text. Returns the text behind the repeated object.
    fn take_repetition<'t>(&mut self, mut text: &'t str, is_start: bool) -> &'t str {
        let is_start = is_start && self.again.is_none() && text.trim_start().starts_with('{');
        if self.again.is_none() {
            text = text.trim_start_matches(is_between);
            if text.is_empty() {
                return "";
            }
        }
        if self.sent == 0 && !self.closed && begins_an_input(text) && self.reading.is_placeholder()
        {
            self.reading = FragmentReading::default();
            self.whole = false;
            return text;
        }
        let again = self.again.get_or_insert_default();
        if again.scan.is_broken() {
            return "";
        }
        let behind = again.push_value(text);
        if !behind.is_empty() && !again.scan.is_object() {
            again.push(behind);
        }
        if !again.scan.is_broken() && !again.scan.is_object() {
            return "";
        }
        let mut again = self.again.take().unwrap_or_default();
        if again.scan.is_broken() {
            self.conflicts = self.conflicts.saturating_add(1);
            if self.is_another(&again) {
                self.go_on_with(&again);
            } else {
                // Keeps the broken repetition without its text, so that later text of the
                // repetition is not counted as another conflict.
                again.text = String::new();
                self.again = Some(again);
            }
            return "";
        }
        if hash::same(&again.text, &self.reading.text) {
            return behind;
        }
        self.conflicts = self.conflicts.saturating_add(1);
        if !self.is_another(&again) || again.is_placeholder() {
            return behind;
        }
        if (is_start || self.replaced) && behind.is_empty() {
            // A server that sends whole inputs means the last input, even if this input comes in
            // pieces.
            self.reading = again;
            self.replaced = true;
        } else {
            self.go_on_with(&again);
        }
        behind
    }

    /// Returns true if the text behind the input is a different input, and no repetition. A text
    /// that was cut off may still be a repetition.
    fn is_another(&self, again: &FragmentReading) -> bool {
        let is_start = self.reading.text.starts_with(again.text.trim_end());
        self.sent == 0 && !self.closed && again.scan.starts_object() && !is_start
    }

    /// Appends a different input, which makes the whole invalid. A model that writes one input
    /// behind the other meant several calls (litellm#40582). Running only one would lose the
    /// others; so none is run, and the model gets an error.
    fn go_on_with(&mut self, again: &FragmentReading) {
        let end = self.reading.text.trim_end().len();
        words::truncate(&mut self.reading.text, end);
        self.reading.push(&again.text);
    }

    /// Drops an interpretation of the fragments that cannot be JSON. If no interpretation can, the
    /// concatenation stays.
    fn settle(&mut self) {
        let Some(cumulative) = &self.cumulative else { return };
        if cumulative.scan.is_broken() {
            self.cumulative = None;
        } else if self.reading.scan.is_broken() {
            self.reading = self.cumulative.take().unwrap_or_default();
        }
    }

    /// Returns true if the input so far is exactly one complete object.
    pub(crate) fn is_object(&self) -> bool {
        self.reading.scan.is_object()
    }

    /// Returns true if the input would be valid without further data: one object, no text at all,
    /// or an object in a string.
    pub(crate) fn may_be_whole(&self) -> bool {
        self.is_object()
            || self.has_text() && matches!(self.clone().finish(false), FinalInput::Object(_))
    }

    /// Returns true if the input is one object, provided that the last fragments are cumulative.
    pub(crate) fn may_be_object(&self) -> bool {
        self.cumulative.as_ref().is_some_and(|reading| reading.scan.is_object())
    }

    /// Returns true if the input is an incomplete object. Always false for a custom tool, whose
    /// text is not scanned.
    pub(crate) fn is_half(&self) -> bool {
        self.reading.is_half() && !self.may_be_object()
    }

    /// Returns the concatenation of the input's fragments so far.
    fn reading(&self) -> &FragmentReading {
        &self.reading
    }

    /// Returns true if any text of the input has arrived.
    pub(crate) fn has_text(&self) -> bool {
        !self.reading.text.is_empty()
    }

    /// Returns true if `text` begins another input, after this input arrived in parts and is
    /// complete.
    pub(crate) fn is_followed_by(&self, text: &str) -> bool {
        !self.whole && !self.reading.is_placeholder() && is_half(text)
    }

    /// Returns true if the input is `{}`, which another input can replace.
    pub(crate) fn can_be_replaced(&self) -> bool {
        self.sent == 0 && self.reading.is_placeholder()
    }

    /// Returns true if the input is more than `{}`, which some servers send before or beside the
    /// real input.
    pub(crate) fn says_something(&self) -> bool {
        self.is_sent() || !matches!(self.reading.head.bytes(), b"" | b"{" | b"{}")
    }

    /// Returns the number of bytes that the input holds in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        let len =
            |reading: &Option<FragmentReading>| reading.as_ref().map_or(0, |it| it.text.len());
        let objects = self.objects.as_ref().map_or(0, |objects| objects.held_bytes());
        let others = len(&self.cumulative).saturating_add(len(&self.again));
        self.reading.text.len().saturating_add(others).saturating_add(objects)
    }

    /// Returns the number of contradictions in the input since the last call of this function.
    pub(crate) fn take_conflicts(&mut self) -> u32 {
        std::mem::take(&mut self.conflicts)
    }

    /// Returns the text of the input that can be sent now, and counts this text as sent.
    pub(crate) fn send(&mut self) -> &str {
        let scan = &self.reading.scan;
        let held = self.whole
            || self.custom
            || self.cumulative.is_some()
            || !scan.starts_object()
            || (self.sent == 0 && (scan.is_broken() || self.reading.may_be_placeholder()));
        if held {
            return "";
        }
        let from = std::mem::replace(&mut self.sent, self.reading.text.len());
        words::split_at(&self.reading.text, from).1
    }

    /// Returns true if some of the input has been sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.sent > 0
    }

    /// Returns true if a late repetition of the input was cut off, and drops the repetition.
    pub(crate) fn has_leftover(&mut self) -> bool {
        self.again.take().is_some_and(|again| !again.scan.is_broken())
    }

    /// Returns the text of the input that has not been sent, unchanged.
    pub(crate) fn rest(&self) -> &str {
        words::split_at(&self.reading.text, self.sent).1
    }

    /// Ends the call, and returns its final input. `cut_off`: the answer reached its length limit.
    pub(crate) fn finish(&mut self, cut_off: bool) -> FinalInput {
        if !self.half.is_empty() {
            let half = std::mem::take(&mut self.half);
            let mut text = String::new();
            json::unescape(&mut text, &half);
            self.take_fragment(&text);
        }
        self.join_objects();
        if let Some(cumulative) = self.cumulative.take()
            && cumulative.scan.is_object()
            && !self.reading.scan.is_object()
        {
            self.reading = cumulative;
        }
        if let Some(again) = self.again.take().filter(|again| !again.scan.is_broken()) {
            self.conflicts = self.conflicts.saturating_add(1);
            if self.is_another(&again) {
                self.go_on_with(&again);
            }
        }
        self.closed = true;
        if self.custom {
            FinalInput::of_custom(&self.reading.text)
        } else {
            FinalInput::of(&self.reading, cut_off)
        }
    }
}

/// Returns the text behind the mark `[ARGS]`, which Mistral's models write before an input and some
/// servers leave in place. `before`: the part of the mark that has arrived.
fn after_mark<'t>(before: &str, text: &'t str) -> Option<&'t str> {
    let text = if before.is_empty() { text.trim_start() } else { text };
    text.strip_prefix("[ARGS]".strip_prefix(before)?)
}

/// Returns true if the character may stand between two inputs and has no meaning.
fn is_between(sign: char) -> bool {
    sign.is_whitespace() || matches!(sign, ',' | ';' | '-')
}

/// Returns true if this text replaces a placeholder: it begins an object, or an object in a string.
fn begins_an_input(text: &str) -> bool {
    text.trim_start().starts_with(['{', '"'])
}

#[cfg(test)]
mod tests;
