//! The inverse of the id encoding, written a second time and without the first.

/// The upstream's id that a client's `tool_use` id stands for, or nothing where it is not one of
/// ours.
pub fn decode(id: &str) -> Option<String> {
    let body = id.strip_prefix("toolu_")?;
    let body = match body.strip_prefix('u').and_then(|rest| rest.split_once('_')) {
        Some((number, rest))
            if !number.starts_with('0')
                && number.parse::<u64>().is_ok_and(|number| number >= 2)
                && !rest.is_empty() =>
        {
            rest
        }
        _ => body,
    };
    let upstream = match body.split_at_checked(2) {
        Some(("c_", rest)) => format!("call_{rest}"),
        Some(("r_", rest)) => rest.to_owned(),
        Some(("x_", rest)) => unescape(rest)?,
        _ => format!("call_{body}"),
    };
    (!upstream.is_empty()).then_some(upstream)
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'-' => match rest.next()? {
                b'-' => b'-',
                b'd' => b'.',
                b'c' => b':',
                b's' => b'/',
                b'x' => {
                    let digits = [rest.next()?, rest.next()?];
                    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
                }
                _ => return None,
            },
            plain => plain,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Whether an upstream id looks like one that Creole made up for a call without an id.
pub fn is_minted(upstream: &str) -> bool {
    upstream.strip_prefix("call_").is_some_and(|digits| {
        digits.len() == 24 && digits.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}
