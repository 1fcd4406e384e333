//! JSON reader that goes through a text once, from left to right.

use crate::error::What;
use crate::{Error, Raw, Str, ValueKind};

mod token;

/// Reader of one JSON text, from left to right.
///
/// ```
/// use creole_json::Reader;
///
/// let mut reader = Reader::new(r#"{"model": "m", "n": [1, 2], "x": null}"#, 128);
/// reader.begin_object()?;
/// while let Some(key) = reader.next_key()? {
///     match key.raw() {
///         "model" => assert_eq!(reader.string()?.raw(), "m"),
///         "n" => {
///             reader.begin_array()?;
///             while reader.next_element()? {
///                 reader.number()?;
///             }
///         }
///         _ => assert_eq!(reader.skip()?, "null"),
///     }
/// }
/// reader.end()?;
/// # Ok::<(), creole_json::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    depth_max: u32,
    /// True if the innermost open object or array has had no member yet, so that no comma is
    /// expected.
    fresh: bool,
    /// Number of white-space bytes that have been read.
    blanks: usize,
    /// True if a string that has been read contains an unpaired surrogate.
    has_halves: bool,
}

/// Maximum nesting depth, whatever `depth_max` says. [`Reader::skip`] keeps one bit for each open
/// bracket.
pub const DEPTH_LIMIT: u32 = 128;

impl<'a> Reader<'a> {
    /// Creates a reader at the beginning of `text`. Values nested deeper than `depth_max` (at most
    /// 128) are an error.
    #[must_use]
    pub fn new(text: &'a str, depth_max: u32) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            depth_max: depth_max.min(DEPTH_LIMIT),
            fresh: true,
            blanks: 0,
            has_halves: false,
        }
    }

    /// Creates a reader at the beginning of `text`. Values nested deeper than 128 levels are an
    /// error.
    #[must_use]
    pub fn of(text: &'a str) -> Self {
        Self::new(text, DEPTH_LIMIT)
    }

    /// Returns the number of bytes that have been read.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Returns true if a string or key that has been read contains an unpaired surrogate.
    #[must_use]
    pub fn has_halves(&self) -> bool {
        self.has_halves
    }

    /// Returns the kind of the next value without reading the value.
    pub fn kind(&mut self) -> Result<ValueKind, Error> {
        match self.peek() {
            Some(b'{') => Ok(ValueKind::Object),
            Some(b'[') => Ok(ValueKind::Array),
            Some(b'"') => Ok(ValueKind::String),
            Some(b'-' | b'0'..=b'9') => Ok(ValueKind::Number),
            Some(b't' | b'f') => Ok(ValueKind::Bool),
            Some(b'n') => Ok(ValueKind::Null),
            _ => Err(self.syntax("a value")),
        }
    }

    /// Enters an object; follow with [`Reader::next_key`] until it gives `None`.
    pub fn begin_object(&mut self) -> Result<(), Error> {
        self.begin(b'{', ValueKind::Object)
    }

    /// Enters an array; follow with [`Reader::next_element`] until it gives `false`.
    pub fn begin_array(&mut self) -> Result<(), Error> {
        self.begin(b'[', ValueKind::Array)
    }

    #[inline(always)]
    fn begin(&mut self, open: u8, kind: ValueKind) -> Result<(), Error> {
        if self.peek() != Some(open) {
            self.expect_kind(kind)?;
        }
        self.enter()
    }

    /// Reads an opening bracket, and checks the nesting depth.
    fn enter(&mut self) -> Result<(), Error> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > self.depth_max {
            return Err(Error::new(self.at, What::TooDeep));
        }
        self.advance(1);
        self.fresh = true;
        Ok(())
    }

    /// Reads the name of the next member of the object that was entered last, or `None` at the
    /// object's end. The member's value must be read (or skipped) before the next call.
    pub fn next_key(&mut self) -> Result<Option<Str<'a>>, Error> {
        if !self.next_member(b'}', "a comma or the end of an object")? {
            return Ok(None);
        }
        if self.peek() != Some(b'"') {
            return Err(self.syntax("a key"));
        }
        let key = self.string_token()?;
        if self.peek() != Some(b':') {
            return Err(self.syntax("a colon"));
        }
        self.advance(1);
        Ok(Some(key))
    }

    /// Returns true if the array that was entered last has one more element, which must then be
    /// read.
    pub fn next_element(&mut self) -> Result<bool, Error> {
        self.next_member(b']', "a comma or the end of an array")
    }

    #[inline(always)]
    fn next_member(&mut self, close: u8, expected: &'static str) -> Result<bool, Error> {
        let next = self.peek();
        if next == Some(close) {
            self.advance(1);
            debug_assert!(self.depth > 0, "no object or array is open");
            self.depth = self.depth.saturating_sub(1);
            self.fresh = false;
            return Ok(false);
        }
        if !std::mem::take(&mut self.fresh) {
            if next != Some(b',') {
                return Err(self.syntax(expected));
            }
            // The reader of the next key or value refuses anything unexpected after the comma.
            self.advance(1);
        }
        Ok(true)
    }

    /// Reads a string.
    pub fn string(&mut self) -> Result<Str<'a>, Error> {
        if self.peek() != Some(b'"') {
            self.expect_kind(ValueKind::String)?;
        }
        self.string_token()
    }

    /// Reads a string. Skips a value of another kind, and returns `None`.
    pub fn string_or_skip(&mut self) -> Result<Option<Str<'a>>, Error> {
        if self.peek() == Some(b'"') {
            return self.string_token().map(Some);
        }
        self.kind()?;
        self.skip()?;
        Ok(None)
    }

    /// Enters an object, or skips a value of another kind. Returns true if an object was entered.
    pub fn object_or_skip(&mut self) -> Result<bool, Error> {
        self.enter_or_skip(b'{')
    }

    /// Enters an array, or skips a value of another kind. Returns true if an array was entered.
    pub fn array_or_skip(&mut self) -> Result<bool, Error> {
        self.enter_or_skip(b'[')
    }

    #[inline(always)]
    fn enter_or_skip(&mut self, open: u8) -> Result<bool, Error> {
        if self.peek() == Some(open) {
            self.enter()?;
            return Ok(true);
        }
        self.kind()?;
        self.skip()?;
        Ok(false)
    }

    /// Reads a number and returns its text.
    pub fn number(&mut self) -> Result<&'a str, Error> {
        self.expect_kind(ValueKind::Number)?;
        let start = self.at;
        self.number_token()?;
        Ok(self.slice(start))
    }

    /// Reads a non-negative integer. `3.0` and `3e2` do not count as integers here.
    pub fn u64(&mut self) -> Result<u64, Error> {
        let start = self.at;
        let text = self.number()?;
        text.parse().map_err(|_| {
            Error::new(start, What::Type { expected: "a whole number", found: "a number" })
        })
    }

    /// Reads a boolean.
    pub fn bool(&mut self) -> Result<bool, Error> {
        self.expect_kind(ValueKind::Bool)?;
        let start = self.at;
        self.literal_token()?;
        Ok(self.slice(start) == "true")
    }

    /// Reads a `null` if the next value is `null`. Returns true if a `null` was read.
    pub fn null(&mut self) -> Result<bool, Error> {
        if self.kind()? == ValueKind::Null {
            self.literal_token()?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Reads any value and returns its JSON text as the sender wrote it.
    pub fn skip(&mut self) -> Result<&'a str, Error> {
        Ok(self.raw()?.text())
    }

    /// Skips a value and returns its JSON text, with a count of its white space for a writer that
    /// removes white space.
    pub fn raw(&mut self) -> Result<Raw<'a>, Error> {
        self.peek();
        let (start, blanks) = (self.at, self.blanks);
        let outside = self.depth;
        // Stack of open brackets, one bit for each bracket, 1 for an object.
        let mut objects = 0u128;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string_token()?;
                }
                Some(b'{') => {
                    self.enter()?;
                    objects = (objects << 1) | 1;
                }
                Some(b'[') => {
                    self.enter()?;
                    objects <<= 1;
                }
                Some(b'-' | b'0'..=b'9') => self.number_token()?,
                _ => self.literal_token()?,
            }
            // Moves to the next value, and closes the objects and arrays that end before it.
            loop {
                if self.depth == outside {
                    let blanks = self.blanks.saturating_sub(blanks);
                    return Ok(Raw::new(self.slice(start), blanks));
                }
                let more = if objects & 1 == 1 {
                    self.next_key()?.is_some()
                } else {
                    self.next_element()?
                };
                if more {
                    break;
                }
                objects >>= 1;
            }
        }
    }

    /// Returns the JSON text of a value that the function `read` reads.
    pub fn raw_by<E: From<Error>>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<Raw<'a>, E> {
        self.peek();
        let (start, blanks) = (self.at, self.blanks);
        read(self)?;
        let blanks = self.blanks.saturating_sub(blanks);
        Ok(Raw::new(self.slice(start), blanks))
    }

    /// Checks that nothing but white space follows in the text.
    pub fn end(&mut self) -> Result<(), Error> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.syntax("the end of the text")),
        }
    }

    /// Returns true if the remaining text is exactly one object, apart from white space.
    #[must_use]
    #[inline]
    pub fn is_object(mut self) -> bool {
        self.kind() == Ok(ValueKind::Object) && self.is_whole()
    }

    /// Returns true if the remaining text is exactly one value, apart from white space.
    #[must_use]
    #[inline]
    pub fn is_whole(mut self) -> bool {
        self.skip().is_ok() && self.end().is_ok()
    }

    fn expect_kind(&mut self, expected: ValueKind) -> Result<(), Error> {
        let found = self.kind()?;
        if found == expected {
            self.fresh = false;
            return Ok(());
        }
        Err(Error::new(self.at, What::Type { expected: expected.name(), found: found.name() }))
    }

    /// Skips white space, and returns the next byte without reading it.
    #[inline(always)]
    fn peek(&mut self) -> Option<u8> {
        match self.text.as_bytes().get(self.at) {
            Some(byte) if *byte > b' ' => Some(*byte),
            _ => self.peek_past_blanks(),
        }
    }

    #[cold]
    fn peek_past_blanks(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => {
                    self.advance(1);
                    self.blanks = self.blanks.saturating_add(1);
                }
                other => return other.copied(),
            }
        }
    }

    #[inline]
    fn advance(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    fn slice(&self, start: usize) -> &'a str {
        let slice = self.text.get(start..self.at);
        debug_assert!(slice.is_some(), "{start} to {} is no part of the text", self.at);
        slice.unwrap_or_default()
    }

    #[cold]
    #[inline(never)]
    fn syntax(&self, expected: &'static str) -> Error {
        Error::new(self.at, What::Syntax { expected })
    }
}

#[cfg(test)]
mod tests;
