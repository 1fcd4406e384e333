//! Where a request goes that is not ours and passes untouched.

use crate::config::{Config, Upstream};

/// The upstream that it goes to, which is the first one, and its path there: `/v1` is the client's base
/// path as the upstream has its own; what is below it stays as it is, query included.
///
/// Nothing where a server might be led out of its base path: the key must not open what is beside it.
/// Servers differ in what separates segments and in how often they decode them, so each way to read
/// the path counts.
#[must_use]
pub fn passed<'c>(config: &'c Config, path: &str) -> Option<(&'c Upstream, String)> {
    let below = path.strip_prefix("/v1")?;
    if !below.starts_with('/') || has_dots(below) {
        return None;
    }
    let upstream = config.first_upstream()?;
    Some((upstream, [&upstream.base_path, below].concat()))
}

/// Whether a segment is `.` or `..`, for some server.
fn has_dots(path: &str) -> bool {
    let mut rest = path.as_bytes().iter();
    // Its last four bytes, none of which is zero.
    let mut segment = 0u32;
    while let Some(byte) = rest.next()
        && *byte != b'?'
    {
        let mut letter = char::from(*byte);
        // Another `%` may come of it, and is decoded again.
        while letter == '%'
            && let [high, low, after @ ..] = rest.as_slice()
            && let (Some(high), Some(low)) =
                (char::from(*high).to_digit(16), char::from(*low).to_digit(16))
        {
            letter = char::from_u32(high << 4 | low).unwrap_or_default();
            rest = after.iter();
        }
        if !matches!(letter, '\0'..=' ' | '/' | '\\' | ';' | '?' | '#') {
            segment = segment << 8 | u32::from(letter);
        } else if is_dots(segment) {
            return true;
        } else {
            segment = 0;
        }
    }
    is_dots(segment)
}

fn is_dots(segment: u32) -> bool {
    matches!(segment, 0x2e | 0x2e2e)
}
