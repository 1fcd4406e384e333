//! Streaming filter for the input of a call. It removes optional members whose values the client
//! would refuse.
//!
//! | value of an optional member | removed |
//! |---|---|
//! | `null` | if the schema does not allow `null` |
//! | `""` or blanks | if the schema allows only other values (`enum`, `minLength`, `format`, …) |
//! | a number | beyond the bounds, for a tool of Claude Code or a member with a default |
//! | `null`, `""`, `[]`, `{}` | if the schema neither lists nor allows the member |
//!
//! `"3"` and `"true"` are unquoted if the schema allows no strings. All other values stay as the
//! model wrote them, and so does text that is no JSON.
//!
//! A member is held from the preceding comma until its first bytes show that it stays. At most one
//! member is held at a time, and few of its bytes. Nested objects and arrays are handled alike.
//! Values that the schema does not describe are sent without being examined.

mod by_name;
mod held;
mod structure;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use crate::json_schema::input::ValidationBudget;
use crate::json_schema::input::mend::{self as schema, SchemaPart, Shape};
use crate::model::request_context::Tool;
use crate::text::json_scan::{DEPTH_MAX, Scanner};
use crate::text::words;
use by_name::ByName;
use memchr::memchr2;

/// Maximum number of bytes of a key and value that are held; a longer member is sent unchanged.
const HELD_BYTES_MAX: usize = 4 << 10;

/// Maximum number of bytes kept about a tool's schema. Objects and arrays beyond this limit are
/// sent unchanged.
const KNOWN_BYTES_MAX: usize = 256 << 10;

/// Number of bytes that one kept subschema counts toward the memory limit, in addition to its
/// members.
const PLACE_BYTES: usize = 128;

/// Filter for the input of one call, while the input is streamed.
#[derive(Debug)]
pub(crate) struct InputMender {
    /// Schema of the tool, as the client wrote it.
    root: Arc<str>,
    by_name: ByName,
    shapes: Vec<Shape>,
    /// Subschemas of objects and arrays that were looked up, by position in the schema and by kind
    /// (true: object).
    known: BTreeMap<(SchemaPart, bool), Option<Inner>>,
    known_bytes: usize,
    /// Open objects and arrays whose schema is known, innermost last.
    frames: Vec<Frame>,
    at: At,
    member: Current,
    /// Bytes of the input that may still be removed: everything after the previous member's value.
    held: String,
    /// Offsets in `held` of the comma, the key and the value of the held member.
    comma: Option<usize>,
    key: Option<usize>,
    value: usize,
    /// Scanner for a value that is sent without being examined.
    scan: Scanner,
    out: String,
    mended: u32,
}

/// Token that is expected next in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// State: the root object has not begun.
    Start,
    /// State: in an object that has just begun, a key or `}` must come.
    First,
    /// State: after a value in an object, a comma or `}` must come.
    Next,
    /// State: after a comma in an object, a key must come.
    Key,
    /// State: inside a key.
    InKey {
        escaped: bool,
    },
    Colon,
    /// State: a value must come; the member that the value belongs to is held.
    Value,
    /// State: inside a held value that is a string. The next three states are alike, for a number,
    /// `null`, and an array or object that is empty so far.
    HeldText {
        escaped: bool,
    },
    HeldNumber,
    HeldNull,
    HeldEmpty {
        open: u8,
    },
    /// State: inside a string that is sent unchanged. The next two states are alike, for a number
    /// and for any other value.
    Text {
        escaped: bool,
    },
    Number,
    Other,
    /// State: in an array that has just begun, an element or `]` must come.
    FirstElement,
    Element,
    /// State: after an element of an array, a comma or `]` must come.
    NextElement,
    /// State: everything is sent unchanged, because the object is complete or the text is no JSON.
    Off,
}

/// Known schema of an object (as an index in `shapes`) or of the elements of an array.
#[derive(Clone, Copy, Debug)]
enum Inner {
    Object(usize),
    Array(SchemaPart),
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    inner: Inner,
    /// True if a member of this object was already sent.
    has_sent: bool,
    /// Bit set of the object's known members that have arrived.
    seen: u128,
}

/// Facts about the member of the input whose value comes next.
#[derive(Clone, Copy, Debug, Default)]
struct Current {
    schema: Option<SchemaPart>,
    /// True if the member is optional, or has a default.
    may_lack: bool,
    /// True if the member is removed when its number exceeds the schema's bounds.
    bounded: bool,
    /// True if the schema does not list the member, and allows no members that it does not list.
    is_extra: bool,
    by_name: Option<by_name::Rule>,
}

impl InputMender {
    /// Creates the filter for a call of this tool; `None` if the tool's schema leaves nothing to
    /// mend.
    pub(crate) fn of(tool: &Tool, budget: &mut ValidationBudget) -> Option<Self> {
        let root = tool.schema.clone()?;
        let shape = Shape::of(&root, SchemaPart::whole(&root), budget)?;
        if !shape.mends() || shape.bytes() > KNOWN_BYTES_MAX {
            return None;
        }
        let by_name = ByName::of(&tool.name, &shape);
        Some(Self {
            root,
            by_name,
            known_bytes: shape.bytes(),
            shapes: vec![shape],
            known: BTreeMap::new(),
            frames: Vec::new(),
            at: At::Start,
            member: Current::default(),
            held: String::new(),
            comma: None,
            key: None,
            value: 0,
            scan: Scanner::default(),
            out: String::new(),
            mended: 0,
        })
    }

    /// Filters the whole input of a tool call, and returns the input with the number of removed or
    /// unquoted members. `None` if nothing was changed.
    pub(crate) fn whole(
        tool: &Tool,
        object: &str,
        budget: &mut ValidationBudget,
    ) -> Option<(String, u32)> {
        let mut mender = Self::of(tool, budget)?;
        mender.out.reserve(object.len());
        mender.read(object, budget);
        (mender.mended > 0 && mender.held.is_empty()).then_some((mender.out, mender.mended))
    }

    /// Filters the next piece of a tool call's input, and returns the text to send.
    #[inline]
    pub(crate) fn push<'t>(&'t mut self, text: &'t str, budget: &mut ValidationBudget) -> &'t str {
        let passes = match self.at {
            At::Off => true,
            At::Text { escaped: false } => memchr2(b'"', b'\\', text.as_bytes()).is_none(),
            _ => false,
        };
        if passes {
            return text;
        }
        self.read(text, budget);
        &self.out
    }

    /// Returns the held text at the end of the input.
    pub(crate) fn rest(&mut self) -> &str {
        self.out.clear();
        self.give_up();
        &self.out
    }

    /// Returns the number of members that were removed or unquoted since the last call of this
    /// function.
    pub(crate) fn take_mended(&mut self) -> u32 {
        std::mem::take(&mut self.mended)
    }

    fn read(&mut self, text: &str, budget: &mut ValidationBudget) {
        self.out.clear();
        let mut rest = text;
        while let Some(byte) = rest.bytes().next() {
            let taken = self.take(rest, byte, budget);
            rest = words::split_at(rest, taken).1;
        }
    }

    /// Handles the first bytes of `rest` (the unread input, which begins with `byte`), and returns
    /// their number.
    fn take(&mut self, rest: &str, byte: u8, budget: &mut ValidationBudget) -> usize {
        match self.at {
            At::Off => self.pass(rest),
            At::Text { escaped } => self.take_text(rest, escaped),
            At::Number => self.take_number(rest),
            At::Other => self.take_other(rest),
            At::InKey { escaped } => self.take_key(rest, escaped),
            At::HeldText { escaped } => self.take_held_text(rest, escaped, budget),
            At::HeldNumber => self.take_held_number(rest, budget),
            At::HeldNull => self.take_held_null(byte, budget),
            _ if is_blank(byte) => self.take_blanks(rest),
            At::HeldEmpty { open } => self.take_held_empty(open, byte),
            _ => self.take_structure(byte, budget),
        }
    }

    /// Sends a part of the input unchanged, and returns the length of this part.
    fn pass(&mut self, text: &str) -> usize {
        self.out.push_str(text);
        text.len()
    }

    /// Sends one ASCII byte, and returns 1.
    fn pass_byte(&mut self, byte: u8) -> usize {
        self.out.push(char::from(byte));
        1
    }

    /// Stops mending, because the input is no JSON or has an unexpected form. All later text of the
    /// input is sent unchanged.
    fn give_up(&mut self) -> usize {
        self.release();
        self.at = At::Off;
        0
    }

    fn take_text(&mut self, rest: &str, escaped: bool) -> usize {
        let at = if escaped { Some(0) } else { memchr2(b'"', b'\\', rest.as_bytes()) };
        let Some(at) = at else { return self.pass(rest) };
        if escaped {
            self.at = At::Text { escaped: false };
            let first = rest.chars().next().map_or(1, char::len_utf8);
            return self.pass(words::split_at(rest, first).0);
        }
        match rest.as_bytes().get(at) {
            Some(b'\\') => self.at = At::Text { escaped: true },
            _ => self.end_value(),
        }
        self.pass(words::split_at(rest, at.saturating_add(1)).0)
    }

    fn take_number(&mut self, rest: &str) -> usize {
        let end = number_end(rest);
        if end < rest.len() {
            self.end_value();
        }
        self.pass(words::split_at(rest, end).0)
    }

    fn take_other(&mut self, rest: &str) -> usize {
        let end = self.scan.feed_value(rest);
        if self.scan.is_broken() {
            self.at = At::Off;
        } else if end < rest.len() {
            self.end_value();
        }
        self.pass(words::split_at(rest, end).0)
    }

    /// Ends a value of the input that is sent unchanged.
    fn end_value(&mut self) {
        self.at = match self.frames.last().map(|frame| frame.inner) {
            Some(Inner::Object(_)) => At::Next,
            Some(Inner::Array(_)) => At::NextElement,
            None => At::Off,
        };
    }

    /// Begins a value of the input that is sent unchanged. Returns 1 if the value's first byte was
    /// handled, or else 0.
    fn begin_passed(
        &mut self,
        byte: u8,
        schema: Option<SchemaPart>,
        budget: &mut ValidationBudget,
    ) -> usize {
        match byte {
            b'"' => {
                self.at = At::Text { escaped: false };
                return self.pass_byte(byte);
            }
            b'-' | b'0'..=b'9' => {
                self.at = At::Number;
                return 0;
            }
            b'{' | b'[' => {
                if let Some(inner) = schema.and_then(|part| self.inner(part, byte, budget)) {
                    return self.enter(inner, byte);
                }
            }
            _ => {}
        }
        self.scan = Scanner::default();
        self.at = At::Other;
        0
    }

    /// Enters an object or an array whose schema is known, and returns the number of bytes handled.
    fn enter(&mut self, inner: Inner, byte: u8) -> usize {
        self.frames.push(Frame { inner, has_sent: false, seen: 0 });
        self.at = match inner {
            Inner::Object(_) => At::First,
            Inner::Array(_) => At::FirstElement,
        };
        self.pass_byte(byte)
    }

    /// Returns the schema at `part` for an object or an array; `None` if that schema leaves nothing
    /// to mend.
    fn inner(
        &mut self,
        part: SchemaPart,
        byte: u8,
        budget: &mut ValidationBudget,
    ) -> Option<Inner> {
        if u32::try_from(self.frames.len()).is_ok_and(|depth| depth >= DEPTH_MAX) {
            return None;
        }
        let is_object = byte == b'{';
        if let Some(known) = self.known.get(&(part, is_object)) {
            return *known;
        }
        if !self.has_room(PLACE_BYTES) {
            return None;
        }
        self.known_bytes = self.known_bytes.saturating_add(PLACE_BYTES);
        let inner = if is_object {
            let shape = Shape::of(&self.root, part, budget).filter(Shape::mends);
            shape.filter(|shape| self.has_room(shape.bytes())).map(|shape| {
                self.known_bytes = self.known_bytes.saturating_add(shape.bytes());
                let index = self.shapes.len();
                self.shapes.push(shape);
                Inner::Object(index)
            })
        } else {
            schema::elements_of(&self.root, part, budget).map(Inner::Array)
        };
        self.known.insert((part, is_object), inner);
        inner
    }

    /// Returns true if the memory limit allows keeping `bytes` more bytes about the tool's schema.
    fn has_room(&self, bytes: usize) -> bool {
        self.known_bytes.saturating_add(bytes) <= KNOWN_BYTES_MAX
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Returns the length of the number at the start of a text; 0 if there is none.
fn number_end(text: &str) -> usize {
    let is_inside =
        |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
    text.bytes().position(|byte| !is_inside(byte)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
