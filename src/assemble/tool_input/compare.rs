//! Compares a text with the input so far: more of it, the same once more, or another input.

use super::ToolInput;
use super::reading::Reading;
use crate::text::{hash, words};

/// Maximum number of bytes of an input that are searched for its first key.
const KEY_BYTES_MAX: usize = 256;

/// Relation of a text to an input that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// The text is empty or white space.
    Nothing,
    /// The text is this input once more.
    Same,
    /// The text is another whole input.
    Other,
    /// The text is anything else.
    More,
}

impl ToolInput {
    /// Returns true if `text` goes on with this input: it is the next fragment, or the whole input
    /// again and longer.
    pub(crate) fn goes_on_with(&self, text: &str) -> bool {
        self.has_text()
            && (!text.trim_start().starts_with('{')
                || text.strip_prefix(&self.reading().text).is_some_and(|more| !more.is_empty()))
    }

    /// Returns true if `text`, which begins with `{`, can stand inside this input and does not
    /// begin like it. Another input for the same tool would begin like it.
    pub(crate) fn can_hold(&self, text: &str) -> bool {
        let before = words::beginning(&self.reading().text, KEY_BYTES_MAX);
        let key = words::before(before, b":");
        let start = text.trim_start();
        let is_alike = start.starts_with(key) || key.starts_with(start);
        self.is_half() && !is_alike && !self.excludes(text)
    }

    /// Returns true if `text` cannot follow this input: both together cannot be JSON, and `text`
    /// does not repeat this input and go on.
    pub(crate) fn excludes(&self, text: &str) -> bool {
        let Reading { text: before, scan, .. } = self.reading();
        let is_cumulative =
            scan.starts_object() && !scan.is_broken() && text.starts_with(before.as_str());
        let mut scan = scan.clone();
        scan.feed(text);
        self.has_text() && scan.is_broken() && !is_cumulative
    }

    /// Compares `text` with this input, which is complete.
    pub(crate) fn compare(&self, text: &str) -> Compared {
        let text = text.trim();
        if text.is_empty() {
            Compared::Nothing
        } else if hash::same(text, self.reading().text.trim()) {
            Compared::Same
        } else if !self.reading().is_placeholder() && Reading::of(text).scan.is_object() {
            Compared::Other
        } else {
            Compared::More
        }
    }
}

/// Returns true if `text` is the first part of an object.
pub(crate) fn is_half(text: &str) -> bool {
    Reading::of(text.trim_start()).is_half()
}
