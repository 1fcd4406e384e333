//! Comparison of a text with the input so far: a continuation, a repetition, or another input.

use super::ToolInput;
use super::reading::FragmentReading;
use crate::text::{hash, words};

/// Maximum number of bytes of a tool call's input that are searched for the first key.
const KEY_BYTES_MAX: usize = 256;

/// Relation of a text to a complete input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// Text that is empty or white space.
    Nothing,
    /// Text that repeats the whole input.
    Same,
    /// Text that is a different whole input.
    Other,
    /// Text of any other kind.
    More,
}

impl ToolInput {
    /// Returns true if `text` continues this input: as the next fragment, or by repeating the whole
    /// input and more.
    pub(crate) fn goes_on_with(&self, text: &str) -> bool {
        self.has_text()
            && (!text.trim_start().starts_with('{')
                || text.strip_prefix(&self.reading().text).is_some_and(|more| !more.is_empty()))
    }

    /// Returns true if `text`, which begins with `{`, can be a value inside this input. Text that
    /// begins like this input is rather another input for the same tool.
    pub(crate) fn can_hold(&self, text: &str) -> bool {
        let before = words::beginning(&self.reading().text, KEY_BYTES_MAX);
        let key = words::before(before, b":");
        let start = text.trim_start();
        let is_alike = start.starts_with(key) || key.starts_with(start);
        self.is_half() && !is_alike && !self.excludes(text)
    }

    /// Returns true if `text` cannot follow this input: their concatenation cannot be JSON, and
    /// `text` does not repeat this input and continue.
    pub(crate) fn excludes(&self, text: &str) -> bool {
        let FragmentReading { text: before, scan, .. } = self.reading();
        let is_cumulative =
            scan.starts_object() && !scan.is_broken() && text.starts_with(before.as_str());
        let mut scan = scan.clone();
        scan.feed(text);
        self.has_text() && scan.is_broken() && !is_cumulative
    }

    /// Compares `text` with this input, which is complete, and returns their relation.
    pub(crate) fn compare(&self, text: &str) -> Compared {
        let text = text.trim();
        if text.is_empty() {
            Compared::Nothing
        } else if hash::same(text, self.reading().text.trim()) {
            Compared::Same
        } else if !self.reading().is_placeholder() && FragmentReading::of(text).scan.is_object() {
            Compared::Other
        } else {
            Compared::More
        }
    }
}

/// Returns true if `text` is the first part of an object.
pub(crate) fn is_half(text: &str) -> bool {
    FragmentReading::of(text.trim_start()).is_half()
}
