//! Where a request goes that is not ours and passes untouched, with the upstream's key.

/// The path at an upstream with this `base_path`, query included, for what a client asks below `/v1/`.
///
/// Nothing where it would lead elsewhere: the key must not open what is beside the base path. Servers
/// differ in what separates segments and in how often they decode them, so each way to read the path
/// counts.
#[must_use]
pub fn passed_path(path: &str, base_path: &str) -> Option<String> {
    // `/v1` is the client's base path; the upstream has its own.
    let rest = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/'))?;
    (!has_dots(rest)).then(|| [base_path, rest].concat())
}

/// Whether a segment is `.` or `..`, for some server.
fn has_dots(path: &str) -> bool {
    let mut decoded = Vec::new();
    for byte in path.bytes().take_while(|byte| *byte != b'?') {
        decoded.push(byte);
        while let [before @ .., b'%', high, low] = &decoded[..]
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            let start = before.len();
            decoded.truncate(start);
            decoded.push(high << 4 | low);
        }
    }
    decoded
        .split(|byte| matches!(byte, 0..=b' ' | b'/' | b'\\' | b';' | b'?' | b'#'))
        .any(|segment| matches!(segment, b"." | b".."))
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit & 15),
        b'a'..=b'f' | b'A'..=b'F' => Some((digit & 15).wrapping_add(9)),
        _ => None,
    }
}
