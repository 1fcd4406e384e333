//! Requests for paths that Creole does not handle, which are forwarded: their upstream, their path,
//! and the changes to their headers.

use crate::config::{Config, Upstream};
use crate::headers::{self, CREDENTIALS, HOP_BY_HOP, Header};
use crate::protocols;
use crate::text::words;

/// Returns the upstream and the path there for a forwarded request. The upstream is the first one
/// configured; the client's `/v1` is replaced by the upstream's base path, and the path after `/v1`
/// is kept, with its query.
///
/// Returns `None` if a server might be led out of its base path, because the operator's key must
/// not open neighbouring paths. Servers differ in the separators of segments and in how often they
/// decode, so each possible reading of the path is checked.
#[must_use]
pub fn passed<'c>(config: &'c Config, path: &str) -> Option<(&'c Upstream, String)> {
    let below = path.strip_prefix("/v1")?;
    if !below.starts_with('/') || has_dots(below) {
        return None;
    }
    let upstream = config.first_upstream()?;
    Some((upstream, [&upstream.base_path, below].concat()))
}

/// Client headers that are forwarded to an upstream that gets the operator's key or headers. The
/// list is an allowlist, because headers that choose another path, method, account or host have
/// many names (`x-original-url`, `x-http-method-override`, `openai-organization`,
/// `x-envoy-original-dst-host`). CORS headers are safe: the upstream only answers whether a web
/// page may read the response.
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

/// Headers that make a server use another path or method than the request's. These headers are
/// never forwarded, so that requests stay below the base path.
const OVERRIDES: [&str; 6] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
];

/// Changes to the headers of a forwarded request or answer, by name, because each host stores
/// headers differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedHead {
    /// Names of the headers to remove, in lower case.
    pub remove: Vec<String>,
    /// Headers to set after the headers in `remove` are removed.
    pub set: Vec<Header>,
}

impl PassedHead {
    /// Returns the header changes for a forwarded request to `upstream`. `head` yields all names
    /// and values. If the upstream gets the operator's key or headers, only an allowlist of client
    /// headers is forwarded, and with an operator's key no client credential. Else nearly all
    /// headers are forwarded.
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
            // The upstream's key decides whether the client's own credential is forwarded.
            let is_kept = chooses
                || upstream.session.names.contains(&name)
                || BESIDE_KEYS.contains(&name.as_str())
                || CREDENTIALS.contains(&name.as_str()) && !upstream.key.is_own();
            if !is_kept && !remove.contains(&name) {
                remove.push(name);
            }
        }
        remove.extend(Self::of_answer(connection).remove);
        // The `host` header is taken from the upstream's URL.
        remove.extend(["host", headers::HOPS].map(str::to_owned));
        remove.extend(OVERRIDES.map(str::to_owned));
        let mut set = vec![(headers::HOPS.to_owned(), headers::next_hop(&hops))];
        let own = protocols::of(upstream.protocol).own_credential(&upstream.key);
        set.extend(own.map(|(name, value)| (name.to_owned(), value)));
        headers::set_own(&upstream.headers, &mut set);
        remove.extend(set.iter().map(|(name, _)| name.clone()));
        Self { remove, set }
    }

    /// Returns the header changes for a forwarded answer. `connection`: the values of the
    /// `connection` header, if any.
    pub fn of_answer<'v>(connection: impl IntoIterator<Item = &'v str>) -> Self {
        let named = connection.into_iter().flat_map(|value| value.split(','));
        let named = named.map(|name| name.trim().to_ascii_lowercase());
        let remove = named.chain(HOP_BY_HOP.map(str::to_owned)).collect();
        Self { remove, set: Vec::new() }
    }
}

/// Returns true if a path segment is `.` or `..` in the reading of some server.
fn has_dots(path: &str) -> bool {
    let mut rest = path.as_bytes().iter();
    // Last four bytes of the current segment, none of which is zero.
    let mut segment = 0u32;
    while let Some(byte) = rest.next()
        && *byte != b'?'
    {
        let mut letter = *byte;
        // Decoding may yield another `%`, which is decoded again.
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
