//! Requests that are not Creole's and pass untouched: their upstream and path, and the changes in
//! their head.

use crate::config::{Config, Upstream};
use crate::headers::{self, CREDENTIALS, HOP_BY_HOP, Header};
use crate::protocols;
use crate::text::words;

/// Returns the upstream of a request that passes, which is the first one, and the path there: `/v1`
/// is the client's base path as the upstream has its own; what is below it stays as it is, query
/// included.
///
/// Returns nothing if a server might be led out of its base path: the key must not open what is
/// beside it. Servers differ in what separates segments and in how often they decode them, so each
/// way to read the path counts.
#[must_use]
pub fn passed<'c>(config: &'c Config, path: &str) -> Option<(&'c Upstream, String)> {
    let below = path.strip_prefix("/v1")?;
    if !below.starts_with('/') || has_dots(below) {
        return None;
    }
    let upstream = config.first_upstream()?;
    Some((upstream, [&upstream.base_path, below].concat()))
}

/// Headers of the client that pass where an upstream gets something of the operator's: its key, or
/// a header. This is a list of what passes, because headers that choose another path, method,
/// account or host have many names (`x-original-url`, `x-http-method-override`,
/// `openai-organization`, `x-envoy-original-dst-host`). The headers of CORS choose nothing: the
/// upstream answers by them whether a page may read.
const BESIDE_KEYS: [&str; 34] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "access-control-request-headers",
    "access-control-request-method",
    "anthropic-beta",
    "anthropic-version",
    "baggage",
    "cache-control",
    "content-digest",
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-range",
    "content-type",
    "idempotency-key",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "openai-beta",
    "origin",
    "pragma",
    "prefer",
    "range",
    "repr-digest",
    "traceparent",
    "tracestate",
    "user-agent",
    "x-client-request-id",
    "x-request-id",
];

/// Headers by which a server takes another path or method than the request has. They never pass, so
/// that the base path holds.
const OVERRIDES: [&str; 6] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
];

/// Changes in a head that passes, by name: each host keeps headers in a way of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedHead {
    /// Names of the headers that do not pass, in lower case.
    pub remove: Vec<String>,
    /// Headers to be set after those in `remove` are gone.
    pub set: Vec<Header>,
}

impl PassedHead {
    /// Returns the changes in a request for `upstream`; `head` has all names and values. Where the
    /// upstream gets a key or a header of the operator's, only a list of the client's headers
    /// passes, and none of its credentials if there is a key; else nearly all headers do.
    pub fn of_request<'v>(
        head: impl IntoIterator<Item = (&'v str, &'v str)>,
        upstream: &Upstream,
    ) -> Self {
        let chooses = !upstream.key.is_own() && upstream.headers.is_empty();
        let (mut connection, mut remove, mut hops) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in head {
            let name = name.to_ascii_lowercase();
            match name.as_str() {
                "connection" => connection.push(value),
                headers::HOPS => hops.push((name.clone(), value.to_owned())),
                _ => {}
            }
            // Whether the client's own credential passes is the upstream's key to say.
            let is_kept = chooses
                || upstream.session.names.contains(&name)
                || BESIDE_KEYS.contains(&name.as_str())
                || CREDENTIALS.contains(&name.as_str()) && !upstream.key.is_own();
            if !is_kept && !remove.contains(&name) {
                remove.push(name);
            }
        }
        remove.extend(Self::of_answer(connection).remove);
        // The host is that of the upstream's URL.
        remove.extend(["host", headers::HOPS].map(str::to_owned));
        remove.extend(OVERRIDES.map(str::to_owned));
        let mut set = vec![(headers::HOPS.to_owned(), headers::next_hop(&hops))];
        let own = protocols::of(upstream.protocol).own_credential(&upstream.key);
        set.extend(own.map(|(name, value)| (name.to_owned(), value)));
        headers::set_own(&upstream.headers, &mut set);
        remove.extend(set.iter().map(|(name, _)| name.clone()));
        Self { remove, set }
    }

    /// Returns the changes in an answer. `connection`: the values of this header, if there are any.
    pub fn of_answer<'v>(connection: impl IntoIterator<Item = &'v str>) -> Self {
        let named = connection.into_iter().flat_map(|value| value.split(','));
        let named = named.map(|name| name.trim().to_ascii_lowercase());
        let remove = named.chain(HOP_BY_HOP.map(str::to_owned)).collect();
        Self { remove, set: Vec::new() }
    }
}

/// Returns true if a segment is `.` or `..` for some server.
fn has_dots(path: &str) -> bool {
    let mut rest = path.as_bytes().iter();
    // Its last four bytes, none of which is zero.
    let mut segment = 0u32;
    while let Some(byte) = rest.next()
        && *byte != b'?'
    {
        let mut letter = *byte;
        // Another `%` may come of it, and is decoded again.
        while letter == b'%'
            && let Some((byte, after)) = words::hex_byte(rest.as_slice())
        {
            letter = byte;
            rest = after.iter();
        }
        if !matches!(letter, 0..=b' ' | b'/' | b'\\' | b';' | b'?' | b'#') {
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

#[cfg(test)]
mod tests;
