//! Handling of keys, commas and brackets in objects and arrays whose schema is known.

use super::{At, Current, HELD_BYTES_MAX, Inner, InputMender, is_blank};
use crate::json;
use crate::json_schema::input::ValidationBudget;
use crate::text::words;

impl InputMender {
    /// Handles white space between tokens, and returns its length.
    pub(super) fn take_blanks(&mut self, rest: &str) -> usize {
        let end = rest.bytes().position(|byte| !is_blank(byte)).unwrap_or(rest.len());
        let blanks = words::split_at(rest, end).0;
        match self.at {
            At::Start | At::FirstElement | At::Element | At::NextElement => self.pass(blanks),
            At::Colon | At::Value if self.is_released() => self.pass(blanks),
            _ => self.hold(blanks),
        }
    }

    /// Handles a byte between tokens that is not white space. Returns the number of bytes handled.
    pub(super) fn take_structure(&mut self, byte: u8, budget: &mut ValidationBudget) -> usize {
        match (self.at, byte) {
            (At::Start, b'{') => self.enter(Inner::Object(0), byte),
            (At::First | At::Next, b'}') => self.close(byte),
            (At::FirstElement | At::NextElement, b']') => self.close(byte),
            (At::First | At::Key, b'"') => {
                self.key = Some(self.held.len());
                self.at = At::InKey { escaped: false };
                self.hold("\"")
            }
            (At::Next, b',') => {
                self.comma = Some(self.held.len());
                self.at = At::Key;
                self.hold(",")
            }
            (At::Colon, b':') => {
                self.at = At::Value;
                if self.is_released() { self.pass(":") } else { self.hold(":") }
            }
            (At::Value, _) => self.begin_value(byte, budget),
            (At::NextElement, b',') => {
                self.at = At::Element;
                self.pass_byte(byte)
            }
            (At::FirstElement | At::Element, _) => {
                let schema = match self.frames.last().map(|frame| frame.inner) {
                    Some(Inner::Array(part)) => Some(part),
                    _ => None,
                };
                self.begin_passed(byte, schema, budget)
            }
            _ => self.give_up(),
        }
    }

    pub(super) fn take_key(&mut self, rest: &str, escaped: bool) -> usize {
        if escaped {
            self.at = At::InKey { escaped: false };
            let first = rest.chars().next().map_or(1, char::len_utf8);
            return self.hold(words::split_at(rest, first).0);
        }
        let Some(at) = memchr::memchr2(b'"', b'\\', rest.as_bytes()) else {
            return self.hold(rest);
        };
        let text = words::split_at(rest, at.saturating_add(1)).0;
        if rest.as_bytes().get(at) == Some(&b'\\') {
            self.at = At::InKey { escaped: true };
            return self.hold(text);
        }
        self.at = At::Colon;
        let taken = self.hold(text);
        self.member = self.current();
        if !(self.member.may_lack || self.member.is_extra) {
            self.release();
        }
        taken
    }

    /// Returns the facts about the member whose key has arrived.
    fn current(&mut self) -> Current {
        let depth = self.frames.len();
        let (Some(frame), Some(key)) = (self.frames.last_mut(), self.key) else {
            return Current::default();
        };
        let Inner::Object(shape) = frame.inner else { return Current::default() };
        let key = self.held.get(key..).and_then(json::string);
        let (Some(shape), Some(key)) = (self.shapes.get(shape), key) else {
            return Current::default();
        };
        let name = key.decode();
        let Some(member) = shape.member(&name) else {
            return Current { is_extra: shape.is_closed(), ..Current::default() };
        };
        let bit = u32::try_from(member.place).ok().and_then(|place| 1_u128.checked_shl(place));
        let bit = bit.unwrap_or_default();
        // The last of two members with the same name counts, so only the first may be removed.
        let is_first = frame.seen & bit == 0;
        frame.seen |= bit;
        Current {
            schema: Some(member.schema),
            may_lack: member.may_lack && is_first,
            bounded: member.has_value || self.by_name.is_known(),
            is_extra: false,
            by_name: if depth == 1 { self.by_name.rule(&name) } else { None },
        }
    }

    /// Handles the closing bracket of an object or an array.
    fn close(&mut self, byte: u8) -> usize {
        self.out.push_str(&self.held);
        self.held.clear();
        self.frames.pop();
        self.end_value();
        self.pass_byte(byte)
    }

    /// Adds text to the held text, and returns its length.
    pub(super) fn hold(&mut self, text: &str) -> usize {
        self.held.push_str(text);
        if self.held.len() > HELD_BYTES_MAX {
            self.give_way();
        }
        text.len()
    }

    /// Returns true if the key of the member whose value comes next was already sent.
    fn is_released(&self) -> bool {
        self.key.is_none()
    }

    /// Sends the held bytes of the input.
    pub(super) fn release(&mut self) {
        let has_begun = self.comma.is_some() || self.key.is_some();
        let mut text = self.held.as_str();
        if let (Some(frame), true) = (self.frames.last_mut(), has_begun) {
            // All members before the held member were removed, so its comma is removed, too.
            if let (false, Some(comma)) = (frame.has_sent, self.comma) {
                text = words::split_at(text, comma.saturating_add(1)).1;
            }
            frame.has_sent = true;
        }
        self.out.push_str(text);
        self.forget();
    }

    /// Drops the held bytes of the input.
    pub(super) fn forget(&mut self) {
        self.held.clear();
        (self.comma, self.key) = (None, None);
    }
}
