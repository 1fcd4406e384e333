//! Scanner that tells whether a text, which comes in fragments, is a complete JSON value.
//!
//! The scanner reads each byte once. It accepts exactly what RFC 8259 allows, so that it can reject
//! a wrong interpretation of a fragment as early as possible: `{"city"{"city":"Pa` cannot become
//! JSON any more.

/// Maximum nesting depth of a tool's input. The scanner stores one bit for each open bracket.
pub(crate) const DEPTH_MAX: u32 = 127;

/// State of the scanner for one text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scanner {
    state: Expected,
    /// First byte of the value, which tells its kind; 0 before the first byte.
    first: u8,
    depth: u32,
    /// Stack of open brackets, one bit each, 1 for an object; the innermost bracket is the lowest
    /// bit.
    objects: u128,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expected {
    /// State: a value must come.
    #[default]
    Value,
    /// State after `[`: an element or `]` must follow.
    ValueOrEnd,
    /// State after `{`: a key or `}` must follow.
    KeyOrEnd,
    /// State after a comma in an object: a key must come.
    Key,
    /// State after a key: a colon must come.
    Colon,
    /// State inside of a string.
    String {
        key: bool,
    },
    /// State after a backslash in a string.
    Escape {
        key: bool,
    },
    /// State inside of `\u`, with this number of digits missing.
    Unicode {
        key: bool,
        missing: u8,
    },
    /// State inside of `true`, `false` or `null`: the bytes that must still follow.
    Literal(&'static [u8]),
    Number(Number),
    /// State after a value in an object or array: a comma or the closing bracket must come.
    CommaOrEnd,
    /// State: the value is complete.
    Done,
    /// State: the text is not JSON.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

impl Scanner {
    /// Scans more text.
    pub(crate) fn feed(&mut self, text: &str) {
        if self.feed_value(text) < text.len() {
            self.state = Expected::Broken;
        }
    }

    /// Scans text until the value is complete, and returns the number of bytes that were scanned.
    pub(crate) fn feed_value(&mut self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let mut at = 0usize;
        while let Some(&byte) = bytes.get(at) {
            if self.state == Expected::Broken {
                return text.len();
            }
            if self.state == Expected::Done && !is_blank(byte) {
                return at;
            }
            at = at.saturating_add(1);
            if let Expected::String { .. } = self.state
                && !matches!(byte, b'"' | b'\\' | 0..0x20)
            {
                // Most bytes are plain ones inside of strings.
                let rest = bytes.get(at..).unwrap_or_default();
                let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
                at = at.saturating_add(plain.unwrap_or(rest.len()));
                continue;
            }
            self.state = self.next(byte);
        }
        text.len()
    }

    /// Returns true if the scanned text is one object and nothing else.
    pub(crate) fn is_object(&self) -> bool {
        self.state == Expected::Done && self.first == b'{'
    }

    /// Returns true if the scanned text is one value that is not an object.
    pub(crate) fn is_other_value(&self) -> bool {
        match self.state {
            Expected::Done => self.first != b'{',
            // A number alone ends with the text.
            Expected::Number(number) => self.depth == 0 && number.may_end(),
            _ => false,
        }
    }

    /// Returns true if the text is an object, or the start of an object.
    pub(crate) fn starts_object(&self) -> bool {
        self.first == b'{'
    }

    /// Returns true if the text cannot become JSON, whatever follows.
    pub(crate) fn is_broken(&self) -> bool {
        self.state == Expected::Broken
    }

    fn next(&mut self, byte: u8) -> Expected {
        if is_blank(byte) && self.is_between_tokens() {
            return self.state;
        }
        match self.state {
            Expected::Value => self.begin(byte),
            Expected::ValueOrEnd if byte == b']' => self.close(),
            Expected::ValueOrEnd => self.begin(byte),
            Expected::KeyOrEnd if byte == b'}' => self.close(),
            Expected::KeyOrEnd | Expected::Key if byte == b'"' => Expected::String { key: true },
            Expected::KeyOrEnd | Expected::Key => Expected::Broken,
            Expected::Colon if byte == b':' => Expected::Value,
            Expected::Colon => Expected::Broken,
            Expected::String { key } => match byte {
                b'"' if key => Expected::Colon,
                b'"' => self.after_value(),
                b'\\' => Expected::Escape { key },
                0..0x20 => Expected::Broken,
                _ => self.state,
            },
            Expected::Escape { key } => match byte {
                b'u' => Expected::Unicode { key, missing: 4 },
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Expected::String { key },
                _ => Expected::Broken,
            },
            Expected::Unicode { key, missing } => match missing {
                _ if !byte.is_ascii_hexdigit() => Expected::Broken,
                0 | 1 => Expected::String { key },
                _ => Expected::Unicode { key, missing: missing.saturating_sub(1) },
            },
            Expected::Literal(expected) => match expected.split_first() {
                Some((first, [])) if *first == byte => self.after_value(),
                Some((first, rest)) if *first == byte => Expected::Literal(rest),
                _ => Expected::Broken,
            },
            Expected::Number(number) => match number.next(byte) {
                Some(number) => Expected::Number(number),
                None if !number.may_end() => Expected::Broken,
                None => {
                    // The number is complete; this byte comes after the number.
                    self.state = self.after_value();
                    self.next(byte)
                }
            },
            Expected::CommaOrEnd => match byte {
                b',' if self.objects & 1 == 1 => Expected::Key,
                b',' => Expected::Value,
                b'}' if self.objects & 1 == 1 => self.close(),
                b']' if self.objects & 1 == 0 => self.close(),
                _ => Expected::Broken,
            },
            Expected::Done | Expected::Broken => Expected::Broken,
        }
    }

    /// Returns true if white space may follow at the current position.
    fn is_between_tokens(&self) -> bool {
        !matches!(
            self.state,
            Expected::String { .. }
                | Expected::Escape { .. }
                | Expected::Unicode { .. }
                | Expected::Literal(_)
                | Expected::Number(_)
        )
    }

    fn begin(&mut self, byte: u8) -> Expected {
        if self.first == 0 {
            self.first = byte;
        }
        match byte {
            b'{' | b'[' => {
                if self.depth >= DEPTH_MAX {
                    return Expected::Broken;
                }
                self.depth = self.depth.saturating_add(1);
                self.objects = (self.objects << 1) | u128::from(byte == b'{');
                if byte == b'{' { Expected::KeyOrEnd } else { Expected::ValueOrEnd }
            }
            b'"' => Expected::String { key: false },
            b't' => Expected::Literal(b"rue"),
            b'f' => Expected::Literal(b"alse"),
            b'n' => Expected::Literal(b"ull"),
            b'-' => Expected::Number(Number::Minus),
            b'0' => Expected::Number(Number::Zero),
            b'1'..=b'9' => Expected::Number(Number::Integer),
            _ => Expected::Broken,
        }
    }

    fn close(&mut self) -> Expected {
        debug_assert!(self.depth > 0, "no bracket is open");
        self.depth = self.depth.saturating_sub(1);
        self.objects >>= 1;
        self.after_value()
    }

    fn after_value(&self) -> Expected {
        if self.depth == 0 { Expected::Done } else { Expected::CommaOrEnd }
    }
}

impl Number {
    fn may_end(self) -> bool {
        matches!(self, Self::Zero | Self::Integer | Self::Fraction | Self::ExponentDigits)
    }

    fn next(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Minus, b'0') => Some(Self::Zero),
            (Self::Minus, b'1'..=b'9') | (Self::Integer, b'0'..=b'9') => Some(Self::Integer),
            (Self::Zero | Self::Integer, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Integer | Self::Fraction, b'e' | b'E') => Some(Self::Exponent),
            (Self::Exponent, b'+' | b'-') => Some(Self::ExponentSign),
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigits, b'0'..=b'9') => {
                Some(Self::ExponentDigits)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
