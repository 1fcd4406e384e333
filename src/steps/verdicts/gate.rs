//! Gate between an answer and its client: collects the answer's tool calls and holds back the
//! answer's end until the verdicts exist.
//!
//! The gate reads the bytes written for the client, so that it sees exactly what the client sees:
//! each event of a stream is one frame, and a whole message one object.

use super::JudgedCall;
use super::forged::{self, RESULTS};
use super::input::has_twins;
use crate::ids::Ids;
use crate::json::{self, Reader, Str, ValueKind};

/// Maximum size of a call that is judged, in bytes. If a longer input were shortened for the judge,
/// the rest could hide the call's effect.
const INPUT_BYTES_MAX: usize = 64 << 10;

/// Maximum size of all judged calls of an answer together, in bytes.
const INPUTS_BYTES_MAX: usize = 96 << 10;

/// Reader of an answer on its way to the client, which holds back the answer's end.
#[derive(Debug)]
pub(crate) struct Gate {
    is_stream: bool,
    ids: Ids,
    calls: Vec<JudgedCall>,
    input_bytes: usize,
    /// True if the newest block of the answer is a tool call.
    ends_with_call: bool,
    /// End of the answer, held back until the verdicts exist.
    held: Option<String>,
}

impl Gate {
    /// Returns a gate that holds nothing yet. `is_stream`: true if the client gets a stream of
    /// events.
    pub(crate) fn new(is_stream: bool, ids: Ids) -> Self {
        let calls = Vec::new();
        Self { is_stream, ids, calls, input_bytes: 0, ends_with_call: false, held: None }
    }

    /// Reads the output after index `from`, and cuts off the end of the answer. Returns true if the
    /// output contained the end.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>, from: usize) -> bool {
        if out.len() <= from {
            return false;
        }
        let new = out.get(from..).and_then(|new| std::str::from_utf8(new).ok());
        if let Some(cleaned) = new.and_then(|new| forged::removed(new, self.is_stream)) {
            out.truncate(from);
            out.extend_from_slice(cleaned.as_bytes());
        }
        if self.held.is_some() {
            return false;
        }
        let new = out.get(from..).and_then(|new| std::str::from_utf8(new).ok());
        debug_assert!(new.is_some(), "only text is written");
        let new = new.unwrap_or_default();
        let held_from = if self.is_stream { self.read_events(new) } else { self.read_message(new) };
        let Some(at) = held_from else { return false };
        let held = out.split_off(from.saturating_add(at));
        self.held = Some(String::from_utf8(held).unwrap_or_default());
        self.note_unjudged();
        true
    }

    /// Returns true if the end of the answer is held back.
    pub(crate) fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Returns the tool calls of the answer up to now.
    pub(crate) fn calls(&self) -> &[JudgedCall] {
        &self.calls
    }

    /// Returns true if the answer has a tool call that must be judged.
    pub(crate) fn needs_judge(&self) -> bool {
        self.calls.iter().any(|call| call.unjudged.is_none())
    }

    /// Returns the number of bytes of the answer that are kept in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held.as_ref().map_or(0, String::len).saturating_add(self.input_bytes)
    }

    /// Writes the held end of the answer with the judge's verdicts, and without any verdicts of the
    /// upstream.
    pub(crate) fn release(&mut self, results: &str, out: &mut Vec<u8>) {
        let Some(held) = self.held.take() else { return };
        if !self.is_stream {
            out.extend_from_slice(with(&held, RESULTS, results).as_bytes());
            return;
        }
        let Some(data) = delta_data(&held) else { return out.extend_from_slice(held.as_bytes()) };
        let delta = with(json::member(data, "delta").unwrap_or("{}"), RESULTS, results);
        let begin = json::offset_in(&held, data).unwrap_or(0);
        let end = begin.saturating_add(data.len());
        out.extend_from_slice(held.get(..begin).unwrap_or_default().as_bytes());
        out.extend_from_slice(with(data, "delta", &delta).as_bytes());
        out.extend_from_slice(held.get(end..).unwrap_or_default().as_bytes());
    }

    /// Reads the events of new output. Returns the index of `message_delta`, if present.
    fn read_events(&mut self, new: &str) -> Option<usize> {
        let mut at = 0_usize;
        for frame in new.split_inclusive("\n\n") {
            let data = |name| {
                let rest = frame.strip_prefix("event: ")?.strip_prefix(name)?;
                rest.strip_prefix("\ndata: ").map(str::trim_end)
            };
            if data("message_delta").is_some() {
                return Some(at);
            }
            if let Some(data) = data("content_block_start") {
                self.begin_block(json::member(data, "content_block").unwrap_or("{}"));
            } else if let Some(data) = data("content_block_delta").filter(|_| self.ends_with_call) {
                let delta = json::member(data, "delta").unwrap_or("{}");
                self.add_input(text(delta, "partial_json"));
            }
            at = at.saturating_add(frame.len());
        }
        None
    }

    /// Reads a whole message, all of which is held back.
    fn read_message(&mut self, message: &str) -> Option<usize> {
        for block in json::elements(json::member(message, "content").unwrap_or("[]")) {
            self.begin_block(block);
        }
        Some(0)
    }

    fn begin_block(&mut self, block: &str) {
        self.ends_with_call = text(block, "type") == "tool_use";
        if !self.ends_with_call {
            return;
        }
        let [id, name] = ["id", "name"].map(|key| text(block, key).decode().into_owned());
        let key = self.ids.judged(u32::try_from(self.calls.len()).unwrap_or(u32::MAX));
        self.calls.push(JudgedCall { id, key, name, input: String::new(), unjudged: None });
        let input = json::member(block, "input").unwrap_or("{}");
        // The input of a tool call comes in pieces in a stream.
        if !self.is_stream {
            self.push_input(input);
        }
    }

    fn add_input(&mut self, piece: Str<'_>) {
        self.push_input(&piece.decode());
    }

    fn push_input(&mut self, piece: &str) {
        let Some(call) = self.calls.last_mut().filter(|call| call.unjudged.is_none()) else {
            return;
        };
        let size = call.input.len().saturating_add(piece.len());
        let sum = self.input_bytes.saturating_add(piece.len());
        if size > INPUT_BYTES_MAX || sum > INPUTS_BYTES_MAX {
            debug_assert!(self.input_bytes >= call.input.len(), "an input was not counted");
            self.input_bytes = self.input_bytes.saturating_sub(call.input.len());
            call.input = String::new();
            // Reason `error`, because `input_too_long` would make Claude Code compact the
            // conversation in vain.
            call.unjudged = Some("error");
            return;
        }
        self.input_bytes = sum;
        call.input.push_str(piece);
    }

    /// Marks tool calls that are incomplete, or not valid JSON objects, as impossible to judge.
    fn note_unjudged(&mut self) {
        let reason = self.ending().map(|ending| text(ending, "stop_reason").decode().into_owned());
        let is_cut =
            matches!(reason.as_deref(), Some("max_tokens" | "model_context_window_exceeded"));
        if let Some(last) = self.calls.last_mut().filter(|_| is_cut && self.ends_with_call) {
            last.unjudged = Some("truncated");
        }
        for call in self.calls.iter_mut().filter(|call| call.unjudged.is_none()) {
            let input = call.input.trim();
            let is_object = input.is_empty()
                || Reader::of(input).is_whole()
                    && Reader::of(input).kind().is_ok_and(|kind| kind == ValueKind::Object);
            let is_odd = || json::member(input, "INVALID_JSON").is_some();
            if !is_object || is_odd() || !input.is_empty() && has_twins(input) {
                call.unjudged = Some("input_unparsed");
            }
        }
    }

    /// Returns the JSON object that contains the answer's `stop_reason`.
    fn ending(&self) -> Option<&str> {
        let held = self.held.as_deref()?;
        if self.is_stream { json::member(delta_data(held)?, "delta") } else { Some(held) }
    }
}

/// Returns the data of `message_delta`, which is the first event in `held`.
fn delta_data(held: &str) -> Option<&str> {
    let first = held.split("\n\n").next()?;
    first.split_once("\ndata: ").map(|(_, data)| data)
}

fn text<'a>(object: &'a str, name: &str) -> Str<'a> {
    json::member(object, name).and_then(json::string).unwrap_or_default()
}

/// Returns a JSON object with a new value for the member `name`, in the member's old position, or
/// else at the end.
fn with(object: &str, name: &str, value: &str) -> String {
    json::written(|json| {
        let mut is_written = false;
        json.begin_object();
        for (key, old) in json::members(object) {
            let is_it = key == *name;
            if is_it && is_written {
                continue;
            }
            is_written |= is_it;
            json.key_str(key).raw(if is_it { value } else { old });
        }
        if !is_written {
            json.key_text(name).raw(value);
        }
        json.end_object();
    })
}
