//! Maximum number of items kept in each list of one chunk, or of one whole answer.
//!
//! An empty object is three bytes of JSON and hundreds of bytes in memory. So empty items are not
//! kept, and of other items no more than these maxima. No model produces so many items; servers
//! limit the number of calls of an answer.

/// Maximum number of choices with content. Servers that split an answer send one choice for each
/// call.
pub(crate) const CHOICES_MAX: u16 = 128;

/// Maximum number of tool calls, or of fragments of tool calls.
pub(crate) const CALLS_MAX: u16 = 1024;

/// Maximum number of parts of content. Mistral begins a new part at each citation.
pub(crate) const PARTS_MAX: u16 = 4096;

/// Maximum number of items of `reasoning_details` and `thinking_blocks`.
pub(crate) const DETAILS_MAX: u16 = 1024;

/// Number of items of each list that can still be kept.
#[derive(Debug)]
pub(crate) struct Allowance {
    choices: u16,
    calls: u16,
    parts: u16,
    details: u16,
    /// Name of the list that had more items than the maximum.
    pub(crate) exceeded: Option<&'static str>,
}

/// List of an answer whose number of items is limited.
#[derive(Clone, Copy, Debug)]
pub(crate) enum List {
    Choices,
    Calls,
    Parts,
    Details,
}

impl Allowance {
    pub(crate) fn new() -> Self {
        Self {
            choices: CHOICES_MAX,
            calls: CALLS_MAX,
            parts: PARTS_MAX,
            details: DETAILS_MAX,
            exceeded: None,
        }
    }

    /// Returns true if one more item of `list` may be kept, and counts the item against the
    /// maximum.
    #[inline]
    pub(crate) fn take(&mut self, list: List) -> bool {
        let (left, name) = match list {
            List::Choices => (&mut self.choices, "choices"),
            List::Calls => (&mut self.calls, "tool calls"),
            List::Parts => (&mut self.parts, "parts of content"),
            List::Details => (&mut self.details, "parts of reasoning"),
        };
        match left.checked_sub(1) {
            Some(fewer) => *left = fewer,
            None => self.exceeded = Some(name),
        }
        self.exceeded.is_none()
    }
}
