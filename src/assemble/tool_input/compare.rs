//! What a text is to the input that has come: more of it, the same once more, or another one.

use super::ToolInput;
use super::reading::Reading;
use crate::text::{hash, words};

/// So much of an input is looked at for its first key.
const KEY_BYTES_MAX: usize = 256;

/// What a text is to an input that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// None, or white space.
    Nothing,
    /// This input once more.
    Same,
    /// Another whole one.
    Other,
    /// Anything else.
    More,
}

impl ToolInput {
    /// Whether `text` goes on with this input: its next fragment, or all of it once more and longer.
    pub(crate) fn goes_on_with(&self, text: &str) -> bool {
        self.has_text()
            && (!text.trim_start().starts_with('{')
                || text.strip_prefix(&self.reading().text).is_some_and(|more| !more.is_empty()))
    }

    /// Whether `text`, which begins with a `{`, can stand within this input and does not begin like it, as another
    /// input for the same tool would.
    pub(crate) fn can_hold(&self, text: &str) -> bool {
        let before = words::beginning(&self.reading().text, KEY_BYTES_MAX);
        let key = words::before(before, b":");
        let start = text.trim_start();
        let is_alike = start.starts_with(key) || key.starts_with(start);
        self.is_half() && !is_alike && !self.excludes(text)
    }

    /// Whether this and `text` together cannot be JSON, nor is `text` all of this and more.
    pub(crate) fn excludes(&self, text: &str) -> bool {
        let Reading { text: before, scan, .. } = self.reading();
        let is_cumulative =
            scan.starts_object() && !scan.is_broken() && text.starts_with(before.as_str());
        let mut scan = scan.clone();
        scan.feed(text);
        self.has_text() && scan.is_broken() && !is_cumulative
    }

    /// What `text` is to this input, which is complete.
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

/// Whether a text is the first part of an object.
pub(crate) fn is_half(text: &str) -> bool {
    Reading::of(text.trim_start()).is_half()
}
