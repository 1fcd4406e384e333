//! Code fences of Markdown. Text inside of a fence is never a call, because models also write about
//! calls.

/// Code fence that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fence {
    mark: u8,
    length: usize,
}

/// Minimum number of marks (backticks or tildes) that make a code fence.
const LENGTH_MIN: usize = 3;

/// Maximum number of fence marks (backticks or tildes) that are examined each time a line grows.
const MARKS_MAX: usize = 64;

/// Maximum number of list and quote marks before a fence, and of spaces behind each of them.
const LISTS_MAX: usize = 8;
const GAP_MAX: usize = 4;

impl Fence {
    /// Returns the text behind the marks that end this fence, if `line` begins with them.
    pub(super) fn behind_end(self, line: &str) -> Option<&str> {
        let length = line.bytes().take(MARKS_MAX).take_while(|byte| *byte == self.mark).count();
        let rest = line.get(length..).filter(|_| length >= self.length)?;
        let gap = rest.bytes().take(GAP_MAX).take_while(|byte| *byte == b' ').count();
        rest.get(gap..)
    }
}

/// Returns the code fence that is open after a line (given without its indent), if `open` was open
/// before.
pub(super) fn after(line: &str, open: Option<Fence>) -> Option<Fence> {
    let (rest, _) = behind_lists(line);
    let Some(mark) = rest.bytes().next().filter(|byte| matches!(byte, b'`' | b'~')) else {
        return open;
    };
    let length = rest.bytes().take_while(|byte| *byte == mark).count();
    let info = rest.get(length..).unwrap_or_default().trim();
    match open {
        _ if length < LENGTH_MIN => open,
        // Three backticks before and after a text in one line are a code span and no fence.
        None if mark == b'`' && info.as_bytes().contains(&mark) => None,
        None => Some(Fence { mark, length }),
        Some(fence) if fence.mark == mark && length >= fence.length && info.is_empty() => None,
        open => open,
    }
}

/// Returns true if a line that begins with `start` can still open or close a code fence.
pub(super) fn may_begin(start: &str) -> bool {
    let (rest, is_whole) = behind_lists(start);
    let marks = |mark: u8| rest.bytes().take(LENGTH_MIN).all(|byte| byte == mark);
    !is_whole || marks(b'`') || marks(b'~')
}

/// Returns the text behind the marks of lists and quotes in a line. The flag is true if no more of
/// these marks can follow.
fn behind_lists(line: &str) -> (&str, bool) {
    let mut rest = line;
    for _ in 0..LISTS_MAX {
        let digits = rest.bytes().take(9).take_while(u8::is_ascii_digit).count();
        let mut after = rest.get(digits..).unwrap_or_default();
        if after.is_empty() {
            return (rest, false);
        }
        let marks: &[char] = if digits > 0 { &['.', ')'] } else { &['-', '*', '+', '>'] };
        let Some(behind) = after.strip_prefix(marks) else { return (rest, true) };
        after = behind;
        let mut gap = 0usize;
        while gap < GAP_MAX && after.starts_with([' ', '\t']) {
            after = after.get(1..).unwrap_or_default();
            gap = gap.saturating_add(1);
        }
        if gap == 0 && !after.is_empty() {
            return (rest, true);
        }
        rest = after;
    }
    (rest, true)
}

#[cfg(test)]
mod tests;
