//! Mends the input of a call while it passes: members that the client would refuse, though it can do without them, are
//! left out.
//!
//! | the value of a member that may lack | is left out |
//! |---|---|
//! | `null` | where the schema takes none |
//! | `""` or blanks | where no text is wanted, or another one: `enum`, `minLength`, `format`, `pattern` |
//! | a number | beyond the bounds, of a tool of Claude Code or of a member with a default |
//! | `null`, `""`, `[]`, `{}` | of a member that the schema does not know and does not allow |
//!
//! `"3"` and `"true"` become what they say where the schema takes no text. All else stays as the model wrote it, and so
//! does what is no JSON.
//!
//! A member is held from the comma before it until its first bytes show that it stays: no more than one, and few of
//! its bytes. Of objects in objects and in arrays the same is true. What the schema knows nothing of passes unread.

mod by_name;
mod held;
mod structure;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use crate::json_schema::input::Budget;
use crate::json_schema::input::mend::{self as schema, Part, Shape};
use crate::model::request_context::Tool;
use crate::text::json_scan::{DEPTH_MAX, Scanner};
use crate::text::words;
use by_name::ByName;
use memchr::memchr2;

/// No key and no value that is left out is longer than this; what is longer passes.
const HELD_BYTES_MAX: usize = 4 << 10;

/// What is known of a tool's schema takes no more; objects of which nothing is known then pass unread.
const KNOWN_BYTES_MAX: usize = 256 << 10;

/// What it takes to know one place of a schema, without its members.
const PLACE_BYTES: usize = 128;

/// The state of one input.
#[derive(Debug)]
pub(crate) struct Mender {
    /// The schema of the tool, as the client wrote it.
    root: Arc<str>,
    by_name: ByName,
    shapes: Vec<Shape>,
    /// What is known of the objects and arrays of a schema, by its place.
    known: BTreeMap<(Part, bool), Option<Inner>>,
    known_bytes: usize,
    /// The objects and arrays that are open and known.
    frames: Vec<Frame>,
    at: At,
    member: Current,
    /// Bytes that may be left out: from behind the value before.
    held: String,
    /// Where in them the comma stands, the key, and the value.
    comma: Option<usize>,
    key: Option<usize>,
    value: usize,
    /// The value that passes unread.
    scan: Scanner,
    out: String,
    mended: u32,
}

/// What is expected next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The object.
    Start,
    /// A key, or the end of the object that has just begun.
    First,
    /// A comma, or the end of an object.
    Next,
    /// A key.
    Key,
    /// The rest of a key.
    InKey {
        escaped: bool,
    },
    Colon,
    /// A value; the member is held.
    Value,
    /// The rest of a value that is held: a text, a number, `null`, or the end of what is empty.
    HeldText {
        escaped: bool,
    },
    HeldNumber,
    HeldNull,
    HeldEmpty {
        open: u8,
    },
    /// The rest of a value that passes.
    Text {
        escaped: bool,
    },
    Number,
    Other,
    /// An element, or the end of the array that has just begun.
    FirstElement,
    Element,
    /// A comma, or the end of an array.
    NextElement,
    /// Nothing: the object is complete, or it is no JSON.
    Off,
}

/// An object by its shape, or an array by the schema of its elements.
#[derive(Clone, Copy, Debug)]
enum Inner {
    Object(usize),
    Array(Part),
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    inner: Inner,
    /// One of its members was sent.
    has_sent: bool,
    /// A bit for each known member that has come.
    seen: u128,
}

/// What is known of the member whose value comes.
#[derive(Clone, Copy, Debug, Default)]
struct Current {
    schema: Option<Part>,
    /// It may be left out.
    may_lack: bool,
    /// So may a number beyond its bounds.
    bounded: bool,
    /// The schema does not allow it.
    is_extra: bool,
    by_name: Option<by_name::Rule>,
}

impl Mender {
    /// For a call of this tool; nothing where its schema leaves nothing to mend.
    pub(crate) fn of(tool: &Tool, budget: &mut Budget) -> Option<Self> {
        let root = tool.schema.clone()?;
        let shape = Shape::of(&root, Part::whole(&root), budget)?;
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

    /// A whole input, mended; nothing where nothing is wrong with it. Says how many members were.
    pub(crate) fn whole(tool: &Tool, object: &str, budget: &mut Budget) -> Option<(String, u32)> {
        let mut mender = Self::of(tool, budget)?;
        mender.out.reserve(object.len());
        mender.read(object, budget);
        (mender.mended > 0 && mender.held.is_empty()).then_some((mender.out, mender.mended))
    }

    /// Takes more of the input, and gives what of it can be sent.
    #[inline]
    pub(crate) fn push<'t>(&'t mut self, text: &'t str, budget: &mut Budget) -> &'t str {
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

    /// What is still held, when nothing more comes.
    pub(crate) fn rest(&mut self) -> &str {
        self.out.clear();
        self.give_up();
        &self.out
    }

    /// How many members were mended since the last call.
    pub(crate) fn take_mended(&mut self) -> u32 {
        std::mem::take(&mut self.mended)
    }

    fn read(&mut self, text: &str, budget: &mut Budget) {
        self.out.clear();
        let mut rest = text;
        while let Some(byte) = rest.bytes().next() {
            let taken = self.take(rest, byte, budget);
            rest = words::split_at(rest, taken).1;
        }
    }

    /// Takes some of a text, which begins with `byte`. Says how many bytes.
    fn take(&mut self, rest: &str, byte: u8, budget: &mut Budget) -> usize {
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

    /// Sends a text. Says how long it is.
    fn pass(&mut self, text: &str) -> usize {
        self.out.push_str(text);
        text.len()
    }

    /// Sends one byte of ASCII.
    fn pass_byte(&mut self, byte: u8) -> usize {
        self.out.push(char::from(byte));
        1
    }

    /// It is no JSON, or not what was understood: all of it passes.
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

    /// A value that passes is over.
    fn end_value(&mut self) {
        self.at = match self.frames.last().map(|frame| frame.inner) {
            Some(Inner::Object(_)) => At::Next,
            Some(Inner::Array(_)) => At::NextElement,
            None => At::Off,
        };
    }

    /// A value passes, whose first byte this is. Says whether that was taken.
    fn begin_passed(&mut self, byte: u8, schema: Option<Part>, budget: &mut Budget) -> usize {
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

    /// Goes into an object or an array that is known.
    fn enter(&mut self, inner: Inner, byte: u8) -> usize {
        self.frames.push(Frame { inner, has_sent: false, seen: 0 });
        self.at = match inner {
            Inner::Object(_) => At::First,
            Inner::Array(_) => At::FirstElement,
        };
        self.pass_byte(byte)
    }

    /// What is known of an object or an array with this schema; nothing where it leaves nothing to mend.
    fn inner(&mut self, part: Part, byte: u8, budget: &mut Budget) -> Option<Inner> {
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

    /// Whether so much more may be known.
    fn has_room(&self, bytes: usize) -> bool {
        self.known_bytes.saturating_add(bytes) <= KNOWN_BYTES_MAX
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Where the number ends with which a text begins, if it is one.
fn number_end(text: &str) -> usize {
    let is_inside =
        |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
    text.bytes().position(|byte| !is_inside(byte)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
