//! Error about a JSON text that could not be read, with the path of the bad value.

use std::fmt;

/// Error about a JSON text that could not be read, with the path of the bad value.
///
/// The path is built while the error is returned: each function that reads a member adds the
/// member's name with [`Error::in_key`] or [`Error::at_index`]. Reading without errors therefore
/// costs nothing for paths.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    path: String,
    offset: usize,
    what: What,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// Syntax error: the text is not JSON.
    Syntax { expected: &'static str },
    /// Nesting error: the text is JSON, but nested deeper than the limit.
    TooDeep,
    /// Type error: the value has another JSON type than the format requires.
    Type { expected: &'static str, found: &'static str },
    /// Value error: the value has the right type, but the format does not allow it.
    Value { message: String },
}

impl Error {
    // Not inlined: every read can fail, but errors are rare.
    #[cold]
    #[inline(never)]
    pub(crate) fn new(offset: usize, what: What) -> Self {
        Self(Box::new(Inner { path: String::new(), offset, what }))
    }

    /// Returns an error for a value of the right type that the format does not allow. `message` is
    /// the text that the client reads after the path.
    #[must_use]
    pub fn value(message: impl Into<String>) -> Self {
        Self::new(0, What::Value { message: message.into() })
    }

    /// Adds an object member to the front of the path. Called for each enclosing object of the bad
    /// value.
    #[must_use]
    pub fn in_key(mut self, key: &str) -> Self {
        let inner = &mut *self.0;
        let dot = if inner.path.is_empty() || inner.path.starts_with('[') { "" } else { "." };
        inner.path = format!("{key}{dot}{}", inner.path);
        self
    }

    /// Adds an array index to the front of the path. Called for each enclosing array of the bad
    /// value.
    #[must_use]
    pub fn at_index(mut self, index: usize) -> Self {
        let inner = &mut *self.0;
        let dot = if inner.path.is_empty() || inner.path.starts_with('[') { "" } else { "." };
        inner.path = format!("[{index}]{dot}{}", inner.path);
        self
    }

    /// Returns the path of the bad value in the notation of clients, such as
    /// `messages[3].content[0].input`. The path is empty if the whole text is bad.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// Returns true if the text is not JSON at all (or nested too deeply), as opposed to JSON of a
    /// wrong shape.
    #[must_use]
    pub fn is_syntax(&self) -> bool {
        matches!(self.0.what, What::Syntax { .. } | What::TooDeep)
    }

    /// Returns the description of the error, without the path of the bad value.
    #[must_use]
    pub fn reason(&self) -> String {
        match &self.0.what {
            What::Syntax { expected } => {
                format!("expected {expected} at byte {}", self.0.offset)
            }
            What::TooDeep => format!("nested too deeply at byte {}", self.0.offset),
            What::Type { expected, found } => format!("expected {expected}, but found {found}"),
            What::Value { message } => message.clone(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.path.is_empty() {
            write!(f, "{}: ", self.0.path)?;
        }
        f.write_str(&self.reason())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "json::Error({self})")
    }
}

impl std::error::Error for Error {}
