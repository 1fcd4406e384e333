//! Tool call in a block: its input, and the deltas of the input that have not been sent.

use super::delta::RelayedDelta;
use super::events::Events;
use super::member::string;
use crate::assemble::mend::{InputMender, ValidationBudget};
use crate::assemble::tool_input::{FinalInput, ToolInput};
use crate::json::{self, Reader};

/// Number of bytes counted for a held delta in addition to its text.
pub(super) const DELTA_BYTES: usize = 32;

/// Input of a tool call, with the deltas that have not been sent.
#[derive(Debug, Default)]
pub(super) struct RelayedInput {
    /// Input in the start event of the call's block: JSON, or empty.
    start: String,
    input: ToolInput,
    /// Mender, which repairs the input while the input is sent; `None` if the input needs no
    /// repair.
    mender: Option<InputMender>,
    held: Vec<String>,
    held_bytes: usize,
    /// Joined text of all deltas in `held`, which are the deltas not sent yet.
    held_text: String,
    scratch: String,
}

impl RelayedInput {
    /// Makes a tool call from the `input` in the start event of its block.
    pub(super) fn new(input: &str) -> Self {
        Self { start: input_of(input), ..Self::default() }
    }

    /// Sets the mender, which repairs the input while the input is sent.
    pub(super) fn set_mender(&mut self, mender: Option<InputMender>) {
        self.mender = mender;
    }

    /// Returns the number of members of the input that were repaired since the last call of this
    /// function.
    pub(super) fn take_mended(&mut self) -> u32 {
        self.mender.as_mut().map_or(0, InputMender::take_mended)
    }

    /// Returns true if the start event of the call's block has an input.
    pub(super) fn has_start(&self) -> bool {
        !self.start.is_empty()
    }

    /// Returns true if the input received up to now is a complete object.
    pub(super) fn is_complete(&self) -> bool {
        self.input.is_object()
    }

    pub(super) fn held_bytes(&self) -> usize {
        let texts = self.held_text.len().saturating_add(self.start.len());
        self.held_bytes.saturating_add(texts).saturating_add(self.input.held_bytes())
    }

    /// Handles a delta of the input, and sends the part of the input that is ready.
    pub(super) fn receive(
        &mut self,
        data: &str,
        delta: &RelayedDelta<'_>,
        index: u64,
        out: &mut Events<'_>,
        budget: &mut ValidationBudget,
    ) {
        match delta.json {
            Some(json) => self.input.receive_json(json, false),
            None => self.input.receive(delta.text.raw(), &mut self.scratch),
        }
        if delta.whole && delta.json.is_none() {
            json::unescape(&mut self.held_text, delta.text.raw());
            self.held_bytes =
                self.held_bytes.saturating_add(data.len()).saturating_add(DELTA_BYTES);
            self.held.push(data.to_owned());
        }
        if !self.start.is_empty() && !self.input.says_something() {
            return;
        }
        let text = self.input.send();
        if text.is_empty() {
            return;
        }
        let held = std::mem::take(&mut self.held);
        self.held_bytes = 0;
        let held_text = std::mem::take(&mut self.held_text);
        let sent = match &mut self.mender {
            Some(mender) => mender.push(text, budget),
            None => text,
        };
        // The input may continue, so white space at the end counts.
        let is_same = sent == text && held_text.trim_start() == text.trim_start();
        out.input(&held, is_same, sent, index);
    }

    /// Sends the deltas of the input that were held back. Returns true if the deltas contradicted
    /// each other.
    pub(super) fn finish(
        &mut self,
        has_delta: bool,
        index: u64,
        out: &mut Events<'_>,
        budget: &mut ValidationBudget,
    ) -> bool {
        let outcome = self.input.finish(false);
        let text = match outcome {
            _ if self.input.is_sent() => self.input.rest().to_owned(),
            FinalInput::Object(_) if !self.start.is_empty() && !self.input.says_something() => {
                std::mem::take(&mut self.start)
            }
            // An input without any text is `{}` by default, so no delta is needed.
            FinalInput::Object(_) if !self.input.has_text() && has_delta => String::new(),
            FinalInput::Object(object) => object,
            FinalInput::Invalid | FinalInput::CutOff => self.input.rest().to_owned(),
        };
        let text = match &mut self.mender {
            Some(mender) => {
                [mender.push(&text, budget).to_owned(), mender.rest().to_owned()].concat()
            }
            None => text,
        };
        out.input(&self.held, self.held_text.trim() == text.trim(), &text, index);
        self.input.take_conflicts() > 0
    }
}

/// Returns the input in the start event of a call, or an empty text if the input is missing.
/// Servers exist that send the input as a string.
fn input_of(value: &str) -> String {
    let text = string(value).map(|text| text.decode());
    let text = text.as_deref().unwrap_or(value).trim();
    let is_json = Reader::of(text).is_whole();
    let text = if is_json { json::compacted(text) } else { text.to_owned() };
    if matches!(text.as_str(), "{}" | "null" | "\"\"") { String::new() } else { text }
}
