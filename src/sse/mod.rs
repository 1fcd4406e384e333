//! Server-sent events, from pieces of bytes.
//!
//! Bytes are collected into lines, lines into events. A piece may end anywhere, also inside of a
//! line end or of a character: only whole lines are looked at. Each byte is searched once and
//! copied at most twice, however small the pieces are; once, in an event of one line.
//!
//! More is accepted than the standard allows: field names in capitals and behind padding, a last
//! event without its blank line, events with no blank line between them, a line that is a bare JSON
//! object (which some proxies put into the middle of a stream), several that are one, or the bare
//! end mark, and a field called `error`.

pub(crate) mod framing;

use std::borrow::Cow;

use crate::error::Error;
use crate::text::words::{self, BYTE_ORDER_MARK};

/// The end mark.
pub(crate) const DONE: &str = "[DONE]";

/// Maximum number of bytes kept of a body that is no event stream, and of one line of it. Such a
/// body is mostly an error in plain text.
const JUNK_BYTES: usize = 1 << 10;

/// Splits a body into events.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// The start of a line whose end has not come.
    line: Vec<u8>,
    /// The data of the event so far, from `data_from` on; before it stands the field's name.
    data: Vec<u8>,
    data_from: usize,
    /// The start of the next event, where no blank line came between the two.
    next_data: Vec<u8>,
    has_data: bool,
    /// Name of the event, by the lines before its data.
    called: Called,
    /// Name by a line after the data, of this event or of the next: see [`Decoder::give`].
    called_late: Option<Called>,
    /// True if the last line ended in CR, so that an LF that comes next belongs to it.
    after_cr: bool,
    /// True if `data` was given out and can be reused.
    given: bool,
    /// First lines of a body that is no event stream, such as an error in plain text.
    junk: Vec<u8>,
    bytes_max: usize,
}

/// Event of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// Data of the event, never empty. What is not UTF-8 is replaced.
    pub(crate) data: Cow<'a, str>,
    pub(crate) called: Called,
}

/// Kind of event by its name, as far as the name is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Called {
    /// Event without a name, or with the name `message`.
    #[default]
    Nothing,
    /// Event with the name `error` or `exception`.
    Error,
    /// Name of an event of the Messages API.
    Messages(&'static str),
    /// Name of an event of the Responses API.
    Responses(&'static str),
    /// Event with any other name.
    Other,
}

impl Called {
    /// Reads the value of an `event` field.
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

    /// Returns the name, if it is that of an event of the Messages API.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Messages(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the name, if it is that of an event of the Responses API.
    pub(crate) fn name_in_responses(self) -> Option<&'static str> {
        match self {
            Self::Responses(name) => Some(name),
            _ => None,
        }
    }

    /// Returns true if the event's data alone says what the event is.
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Self::Nothing | Self::Other | Self::Responses(_))
    }
}

/// The events of the Messages API: the names that are looked at, beside `error`.
pub(crate) const EVENTS: [&str; 7] = [
    "content_block_delta",
    "content_block_start",
    "content_block_stop",
    "message_start",
    "message_delta",
    "message_stop",
    "ping",
];

/// The events of the Responses API that say something, those first that come most often.
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

/// Returns true if an event of this name begins an answer in the Messages API, or is all of it. A
/// ping does not: proxies put them into any stream.
pub(crate) fn begins_message(name: &str) -> bool {
    name == "message" || name != "ping" && EVENTS.contains(&name)
}

impl Decoder {
    /// Returns the bytes allocated for data that has not been given out, unused room included.
    pub(crate) fn held_bytes(&self) -> usize {
        let data = self.data.capacity().saturating_add(self.next_data.capacity());
        self.line.capacity().saturating_add(data)
    }

    /// Starts without any bytes. Lines and events of more than `bytes_max` bytes are an error.
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

    /// Takes bytes from the front of `piece` until an event is complete; `None` when all are taken.
    pub(crate) fn next<'a>(&'a mut self, piece: &mut &[u8]) -> Result<Option<Event<'a>>, Error> {
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

    /// Returns true if there were lines that are none of an event stream.
    pub(crate) fn has_junk(&self) -> bool {
        !self.junk.is_empty()
    }

    /// Returns the first lines that are none of an event stream.
    pub(crate) fn junk(&self) -> Cow<'_, str> {
        words::lossy(self.junk.trim_ascii())
    }

    /// Returns the data of the event so far.
    fn data(&self) -> &[u8] {
        debug_assert!(self.data_from <= self.data.len(), "the data begins behind its end");
        self.data.get(self.data_from..).unwrap_or_default()
    }

    /// Reads the line that was put together of several pieces. The first line of an event becomes
    /// its data without being copied again.
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

    /// Ends the body; gives the last event if it was not terminated.
    pub(crate) fn finish(&mut self) -> Option<Event<'_>> {
        self.reuse();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line);
        }
        if self.has_data { self.give() } else { None }
    }

    /// Reads a blank line; returns true if it ends an event.
    fn take_blank_line(&mut self) -> bool {
        let complete = self.has_data && !is_blank(self.data());
        if !complete {
            self.given = true;
            self.reuse();
        }
        complete
    }

    /// Reads one line that is not empty; returns true if it completes an event.
    // Long: a branch for each field, and for what servers write in place of one.
    fn take_line(&mut self, line: &[u8]) -> bool {
        // Nearly every line, read in a short way.
        if !self.has_data
            && let Some(value) = line.strip_prefix(b"data:")
        {
            self.data.extend_from_slice(value.strip_prefix(b" ").unwrap_or(value));
            self.has_data = true;
            return false;
        }
        let line = without_padding(line);
        let bare = line;
        // The first line of several: Gemini ends a stream with an error so.
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
        // llama.cpp, until the end of 2025. A line of a log that begins with `ERROR:` is none.
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

    /// Takes away the white space at the end of the data: there can be a megabyte of it, which
    /// would be looked through for each line that follows.
    fn trim_data(&mut self) {
        let kept = self.data().trim_ascii_end().len();
        self.data.truncate(self.data_from.saturating_add(kept));
    }

    /// Gives the event. Its name may stand after its data, as the standard has it: the last one
    /// before the blank line counts. Where no blank line came, but another event, that line belongs
    /// to the other.
    fn give(&mut self) -> Option<Event<'_>> {
        self.given = true;
        if self.next_data.is_empty()
            && let Some(called) = self.called_late.take()
        {
            self.called = called;
        }
        // The same white space as in `take_blank_line`: an event that is complete there is given
        // out here, or what follows it in the piece would be lost.
        if is_blank(self.data()) {
            return None;
        }
        Some(Event { data: words::lossy(self.data()), called: self.called })
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

/// Returns true if all of `data` is white space; the first byte tells for nearly all data.
fn is_blank(data: &[u8]) -> bool {
    data.iter().all(u8::is_ascii_whitespace)
}

/// Returns true if a line, perhaps the last one, breaks off within the name of a field.
fn begins_field(line: &[u8]) -> bool {
    [b"data".as_slice(), b"event", b"retry"].iter().any(|field| field.starts_with(line))
}

/// Returns at most `most` bytes of a line, without a piece of a letter at their end.
fn whole_letters(line: &[u8], most: usize) -> &[u8] {
    let Some(start) = line.get(..most) else { return line };
    match std::str::from_utf8(start) {
        Err(error) if error.error_len().is_none() => {
            start.get(..error.valid_up_to()).unwrap_or(start)
        }
        _ => start,
    }
}

/// Returns `line` from its field name on. A byte order mark stands at the start of a body, and
/// where a gateway joined two; some proxies pad a stream with NUL bytes, and some templates indent.
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

/// Returns true if `value` is another event, and no other line of the JSON text in `data`: nothing
/// in JSON ends a line with `}` and begins the next with `{`.
fn starts_anew(data: &[u8], value: &[u8]) -> bool {
    // `value` first: it is one line, and `data` is all lines so far.
    (value.trim_ascii_start().first() == Some(&b'{') || value.trim_ascii() == DONE.as_bytes())
        && data.trim_ascii_end().last() == Some(&b'}')
}

/// Returns true if `line` is the next line of the JSON text in `data`, which is printed for people.
fn goes_on(data: &[u8], line: &[u8]) -> bool {
    matches!(line.first(), Some(b'}' | b']')) || matches!(data.last(), Some(b'{' | b'[' | b','))
}

#[cfg(test)]
mod tests;
