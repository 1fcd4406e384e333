//! Maximum number of items kept in each list of one chunk, or of one whole answer
//!
//! An empty object takes three bytes of JSON and hundreds in memory. So items that say nothing are
//! not kept, and of the others no more than these maxima. No model makes as many; their servers
//! limit how many calls an answer may have.

/// Maximum number of choices that say something. Servers that split an answer make one for each
/// call.
pub(crate) const CHOICES_MAX: u16 = 128;

/// Maximum number of tool calls, or of fragments of calls.
pub(crate) const CALLS_MAX: u16 = 1024;

/// Maximum number of parts of content. Mistral parts its text at each citation.
pub(crate) const PARTS_MAX: u16 = 4096;

/// Maximum number of items of `reasoning_details` and `thinking_blocks`.
pub(crate) const DETAILS_MAX: u16 = 1024;

/// Number of items of each kind that can still be kept.
#[derive(Debug)]
pub(crate) struct Allowance {
    choices: u16,
    calls: u16,
    parts: u16,
    details: u16,
    /// Name of the list that had more items than are kept.
    pub(crate) exceeded: Option<&'static str>,
}

/// A kind of list.
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

    /// Returns true if one more item of this kind is kept, and counts it.
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
