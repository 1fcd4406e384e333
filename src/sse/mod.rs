//! Decoder of server-sent events from chunks of bytes.
//!
//! Bytes are collected into lines, and lines into events. A piece may end anywhere, even within a
//! line end or a character, because only whole lines are parsed. Each byte is searched once and
//! copied at most twice, however small the pieces are, and once in an event of one line.
//!
//! The decoder accepts more than the standard allows: field names in capitals or after padding, a
//! last event without a blank line, events without a blank line between them, lines without a field
//! name that are a JSON object (which some proxies insert into a stream) or the end mark, and a
//! field named `error`.

pub(crate) mod framing;

use std::borrow::Cow;

use crate::error::Error;
use crate::text::words::{self, BYTE_ORDER_MARK};

/// Data of the last event of a stream.
pub(crate) const DONE: &str = "[DONE]";

/// Maximum size of the text kept from a body that is not an event stream, in bytes. Such a body is
/// mostly an error in plain text.
const JUNK_BYTES: usize = 1 << 10;

/// Decoder that splits a body into events.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// Beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// Data of the current event, from `data_from` on; the bytes before `data_from` are the field's
    /// name.
    data: Vec<u8>,
    data_from: usize,
    /// Beginning of the next event, if there was no blank line between the two events.
    next_data: Vec<u8>,
    has_data: bool,
    /// Name of the event, from lines before its data.
    called: Called,
    /// Name of an event from a line after the data, for the current event or the next: see
    /// [`Decoder::give`].
    called_late: Option<Called>,
    /// True if the last line ended in CR, so that an LF that comes next belongs to it.
    after_cr: bool,
    /// True if `data` was returned and can be reused.
    given: bool,
    /// First lines of a body that is not an event stream, such as an error in plain text.
    junk: Vec<u8>,
    bytes_max: usize,
}

/// Event of a stream of server-sent events.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SseEvent<'a> {
    /// Data of the event, never empty. Invalid UTF-8 is replaced.
    pub(crate) data: Cow<'a, str>,
    pub(crate) called: Called,
}

/// Kind of an event, from the name in its `event` field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Called {
    /// Event without a name, or with the name `message`.
    #[default]
    Nothing,
    /// Event with the name `error` or `exception`.
    Error,
    /// Event of the Messages API; holds the name.
    Messages(&'static str),
    /// Event of the Responses API; holds the name.
    Responses(&'static str),
    /// Event with any other name.
    Other,
}

impl Called {
    /// Parses the value of an `event` field.
    fn read(value: &[u8]) -> Self {
        let value = value.trim_ascii();
        if value.starts_with(b"response.") {
            let known = RESPONSES.into_iter().find(|name| name.as_bytes() == value);
            return known.map_or(Self::Other, Self::Responses);
        }
        if value.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"keep")) {
            return Self::Messages("ping");
        }
        match value {
            b"" | b"message" => Self::Nothing,
            b"error" | b"exception" => Self::Error,
            b"heartbeat" => Self::Messages("ping"),
            _ => {
                let known = EVENTS.into_iter().find(|name| name.as_bytes() == value);
                known.map_or(Self::Other, Self::Messages)
            }
        }
    }

    /// Returns the name of an event of the Messages API; `None` for any other event.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Messages(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the name of an event of the Responses API; `None` for any other event.
    pub(crate) fn name_in_responses(self) -> Option<&'static str> {
        match self {
            Self::Responses(name) => Some(name),
            _ => None,
        }
    }

    /// Returns true if the name does not show the kind of the event, which must then be read from
    /// the data.
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Self::Nothing | Self::Other | Self::Responses(_))
    }
}

/// Names of the Messages API's events that the decoder recognizes, besides `error`.
pub(crate) const EVENTS: [&str; 7] = [
    "content_block_delta",
    "content_block_start",
    "content_block_stop",
    "message_start",
    "message_delta",
    "message_stop",
    "ping",
];

/// Names of the Responses API's events that carry information, most frequent first.
const RESPONSES: [&str; 27] = [
    "response.output_text.delta",
    "response.reasoning_summary_text.delta",
    "response.function_call_arguments.delta",
    "response.reasoning_text.delta",
    "response.custom_tool_call_input.delta",
    "response.refusal.delta",
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.output_item.done",
    "response.content_part.added",
    "response.content_part.done",
    "response.output_text.done",
    "response.refusal.done",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_part.done",
    "response.reasoning_summary_text.done",
    "response.reasoning_text.done",
    "response.reasoning_part.added",
    "response.reasoning_part.done",
    "response.function_call_arguments.done",
    "response.custom_tool_call_input.done",
    "response.output_text.annotation.added",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.error",
];

/// Returns true if an event of this name begins an answer in the Messages API, or is the whole
/// answer. A ping does not: proxies insert pings into any stream.
pub(crate) fn begins_message(name: &str) -> bool {
    name == "message" || name != "ping" && EVENTS.contains(&name)
}

impl Decoder {
    /// Returns the number of bytes allocated for data that has not been returned, including spare
    /// capacity.
    pub(crate) fn held_bytes(&self) -> usize {
        let data = self.data.capacity().saturating_add(self.next_data.capacity());
        self.line.capacity().saturating_add(data)
    }

    /// Creates an empty decoder. A line or event larger than `bytes_max` bytes is an error.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            data_from: 0,
            next_data: Vec::new(),
            has_data: false,
            called: Called::default(),
            called_late: None,
            after_cr: false,
            given: false,
            junk: Vec::new(),
            bytes_max,
        }
    }

    /// Consumes bytes from the front of `piece` until an event is complete; returns `None` when all
    /// bytes are consumed.
    pub(crate) fn next<'a>(&'a mut self, piece: &mut &[u8]) -> Result<Option<SseEvent<'a>>, Error> {
        self.reuse();
        while !piece.is_empty() {
            if std::mem::take(&mut self.after_cr)
                && let Some(rest) = piece.strip_prefix(b"\n")
            {
                *piece = rest;
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', piece);
            let (part, rest) =
                piece.split_at_checked(end.unwrap_or(piece.len())).unwrap_or((piece, b""));
            if self.line.len().saturating_add(self.data().len()).saturating_add(part.len())
                > self.bytes_max
            {
                return Err(Error::misbehaved("Upstream sent an event that is too large"));
            }
            if end.is_none() {
                self.line.extend_from_slice(part);
                *piece = rest;
                break;
            }
            debug_assert!(!rest.is_empty(), "a line ends with nothing");
            self.after_cr = rest.first() == Some(&b'\r');
            *piece = rest.get(1..).unwrap_or_default();
            let complete = if !self.line.is_empty() {
                self.line.extend_from_slice(part);
                self.take_own_line()
            } else if part.is_empty() {
                self.take_blank_line()
            } else {
                self.take_line(part)
            };
            if complete {
                return Ok(self.give());
            }
        }
        Ok(None)
    }

    /// Returns true if the body has lines that cannot be part of an event stream.
    pub(crate) fn has_junk(&self) -> bool {
        !self.junk.is_empty()
    }

    /// Returns the first lines that cannot be part of an event stream.
    pub(crate) fn junk(&self) -> Cow<'_, str> {
        words::lossy(self.junk.trim_ascii())
    }

    /// Returns the data of the current event so far.
    fn data(&self) -> &[u8] {
        debug_assert!(self.data_from <= self.data.len(), "the data begins behind its end");
        self.data.get(self.data_from..).unwrap_or_default()
    }

    /// Handles a line that came in several pieces. The first line of an event becomes the event's
    /// data without another copy.
    fn take_own_line(&mut self) -> bool {
        if !self.has_data
            && let Some(value) = self.line.strip_prefix(b"data:")
        {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            self.data_from = self.line.len().saturating_sub(value.len());
            std::mem::swap(&mut self.line, &mut self.data);
            self.line.clear();
            self.has_data = true;
            return false;
        }
        let mut line = std::mem::take(&mut self.line);
        let complete = self.take_line(&line);
        line.clear();
        self.line = line;
        complete
    }

    /// Ends the body, and returns the last event if it was not terminated by a blank line.
    pub(crate) fn finish(&mut self) -> Option<SseEvent<'_>> {
        self.reuse();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line);
        }
        if self.has_data { self.give() } else { None }
    }

    /// Handles a blank line; returns true if the line ends an event.
    fn take_blank_line(&mut self) -> bool {
        let complete = self.has_data && !is_blank(self.data());
        if !complete {
            self.given = true;
            self.reuse();
        }
        complete
    }

    /// Handles a line that is not empty; returns true if the line completes an event.
    // Long: a branch for each field, and for what servers write in place of one.
    fn take_line(&mut self, line: &[u8]) -> bool {
        // Fast path for nearly every line.
        if !self.has_data
            && let Some(value) = line.strip_prefix(b"data:")
        {
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            self.has_data = true;
            return false;
        }
        let line = without_padding(line);
        let bare = line;
        // Gemini ends a stream with an error object of several lines, which may begin in this line.
        let opens = matches!(bare.last(), Some(b'{' | b'['));
        let is_object = bare.first() == Some(&b'{') || opens && bare.starts_with(b"[{");
        if is_object || bare.trim_ascii_end() == DONE.as_bytes() {
            self.trim_data();
            if self.data().is_empty() {
                self.data.extend_from_slice(bare);
                self.has_data = true;
                return !opens;
            }
            if starts_anew(self.data(), bare) {
                bare.clone_into(&mut self.next_data);
                return true;
            }
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                let value = line.get(colon.saturating_add(1)..).unwrap_or_default();
                let name = line.get(..colon).unwrap_or_default().trim_ascii_end();
                (name, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, b"".as_slice()),
        };
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        // llama.cpp sent the field `error` until the end of 2025. A log line that begins with
        // `ERROR:` is no field.
        let is_error = name == b"error" && value.trim_ascii_start().first() == Some(&b'{');
        if is(b"data") || is_error {
            self.trim_data();
            let anew = self.has_data && starts_anew(self.data(), value);
            if is_error {
                if anew || self.called_late.is_some() {
                    self.called_late = Some(Called::Error);
                } else {
                    self.called = Called::Error;
                }
            }
            if anew {
                value.clone_into(&mut self.next_data);
                return true;
            }
            if self.has_data {
                self.data.push(b'\n');
            }
            self.has_data = true;
            self.data.extend_from_slice(value);
        } else if is(b"event") {
            let called = Called::read(value);
            if self.has_data {
                self.called_late = Some(called);
            } else {
                self.called = called;
            }
        } else if name.is_empty() || is(b"id") || is(b"retry") || begins_field(line) {
        } else if self.has_data && goes_on(self.data(), line) {
            self.data.push(b'\n');
            self.data.extend_from_slice(line.trim_ascii_end());
        } else if self.junk.len() < JUNK_BYTES {
            self.junk.extend_from_slice(whole_letters(line, JUNK_BYTES));
            self.junk.push(b'\n');
        }
        false
    }

    /// Removes white space from the end of the data: a megabyte of it would be scanned again for
    /// each further line.
    fn trim_data(&mut self) {
        let kept = self.data().trim_ascii_end().len();
        self.data.truncate(self.data_from.saturating_add(kept));
    }

    /// Returns the complete event. By the standard, the event's name may come after its data, and
    /// the last name before the blank line counts. Without a blank line before the next event, a
    /// late name belongs to the next event.
    fn give(&mut self) -> Option<SseEvent<'_>> {
        self.given = true;
        if self.next_data.is_empty()
            && let Some(called) = self.called_late.take()
        {
            self.called = called;
        }
        // White space has the same definition as in `take_blank_line`. Otherwise an event that is
        // complete by that function would not be returned here, and the remaining piece would be
        // lost.
        if is_blank(self.data()) {
            return None;
        }
        Some(SseEvent { data: words::lossy(self.data()), called: self.called })
    }

    fn reuse(&mut self) {
        if std::mem::take(&mut self.given) {
            self.data.clear();
            self.data_from = 0;
            self.has_data = false;
            self.called = self.called_late.take().unwrap_or_default();
            if !self.next_data.is_empty() {
                std::mem::swap(&mut self.data, &mut self.next_data);
                self.has_data = true;
            }
        }
    }
}

/// Returns true if `data` is only white space, which the first byte rules out for nearly all data.
fn is_blank(data: &[u8]) -> bool {
    data.iter().all(u8::is_ascii_whitespace)
}

/// Returns true if a line is a truncated field name, as at the end of a body.
fn begins_field(line: &[u8]) -> bool {
    [b"data".as_slice(), b"event", b"retry"].iter().any(|field| field.starts_with(line))
}

/// Returns at most `most` bytes of a line, without a partial character at the end.
fn whole_letters(line: &[u8], most: usize) -> &[u8] {
    let Some(start) = line.get(..most) else { return line };
    match std::str::from_utf8(start) {
        Err(error) if error.error_len().is_none() => {
            start.get(..error.valid_up_to()).unwrap_or(start)
        }
        _ => start,
    }
}

/// Returns `line` from its field name on, without padding. A byte order mark comes at the start of
/// a body, and between two bodies that a gateway joined. Some proxies pad a stream with NUL bytes,
/// and some templates indent lines.
fn without_padding(mut line: &[u8]) -> &[u8] {
    loop {
        line = match line {
            [b' ' | b'\t' | 0, rest @ ..] => rest,
            _ => match line.strip_prefix(BYTE_ORDER_MARK) {
                Some(rest) => rest,
                None => return line,
            },
        };
    }
}

/// Returns true if `value` begins another event, and is not the next line of the JSON text in
/// `data`. JSON never has a line end between `}` and `{`.
fn starts_anew(data: &[u8], value: &[u8]) -> bool {
    // `value` is tested first: it is one line, and `data` is all lines so far.
    (value.trim_ascii_start().first() == Some(&b'{') || value.trim_ascii() == DONE.as_bytes())
        && data.trim_ascii_end().last() == Some(&b'}')
}

/// Returns true if `line` is the next line of the pretty-printed JSON text in `data`.
fn goes_on(data: &[u8], line: &[u8]) -> bool {
    matches!(line.first(), Some(b'}' | b']')) || matches!(data.last(), Some(b'{' | b'[' | b','))
}

#[cfg(test)]
mod tests;
