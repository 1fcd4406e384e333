//! Where a request goes that is not ours and passes untouched, and what changes in its head.

use crate::config::{Config, Upstream};
use crate::translate::headers::{CREDENTIALS, HOP_BY_HOP, own_credential};
use crate::words;

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

/// Where clients have credentials beside those of the Messages API: Azure's, Google's, those of a session.
const OTHER_CREDENTIALS: [&str; 3] = ["api-key", "x-goog-api-key", "cookie"];

/// What changes in a head that passes, by name: each host keeps headers in a way of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedHead {
    /// The names of headers that stay behind, in lower case.
    pub remove: Vec<String>,
    /// The header with the upstream's own key, to be set after that.
    pub set: Option<(&'static str, String)>,
}

impl PassedHead {
    /// Of a request for `upstream`. Its own key replaces whatever the client sent; if it has none, the client's is left
    /// as it is. `connection`: the values of this header, if there are any.
    pub fn of_request<'v>(
        connection: impl IntoIterator<Item = &'v str>,
        upstream: &Upstream,
    ) -> Self {
        let Self { mut remove, .. } = Self::of_answer(connection);
        // That of the upstream's URL.
        remove.push("host".to_owned());
        let set = own_credential(&upstream.key, upstream.protocol);
        if set.is_some() {
            remove.extend(CREDENTIALS.map(str::to_owned));
            remove.extend(OTHER_CREDENTIALS.map(str::to_owned));
        }
        Self { remove, set }
    }

    /// Of an answer.
    pub fn of_answer<'v>(connection: impl IntoIterator<Item = &'v str>) -> Self {
        let named = connection.into_iter().flat_map(|value| value.split(','));
        let named = named.map(|name| name.trim().to_ascii_lowercase());
        let remove = named.chain(HOP_BY_HOP.map(str::to_owned)).collect();
        Self { remove, set: None }
    }
}

/// Whether a segment is `.` or `..`, for some server.
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
mod tests {
    use super::*;
    use crate::config::{Key, Protocol};

    #[test]
    fn headers_of_one_connection_stay_there() {
        let change = PassedHead::of_answer(["close, X-Mine", "te"]);
        for name in ["connection", "x-mine", "te", "transfer-encoding", "proxy-authorization"] {
            assert!(change.remove.iter().any(|it| it == name), "{name}");
        }
        for name in ["authorization", "openai-organization", "host"] {
            assert!(change.remove.iter().all(|it| it != name), "{name}");
        }
        assert_eq!(change.set, None);
    }

    #[test]
    fn the_upstreams_own_key_replaces_the_clients() {
        let mut upstream = Upstream::named("u");
        let change = |upstream: &Upstream| {
            let change = PassedHead::of_request([], upstream);
            assert!(change.remove.iter().any(|it| it == "host"));
            let removes = |name: &str| change.remove.iter().any(|it| it == name);
            let credentials = ["authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"];
            let removed = credentials.into_iter().filter(|name| removes(name)).count();
            assert!(removed == 0 || removed == credentials.len());
            (removed > 0, change.set)
        };
        assert_eq!(change(&upstream), (false, None));
        upstream.key = Key::Secret("sk ".to_owned());
        assert_eq!(change(&upstream), (true, Some(("authorization", "Bearer sk".to_owned()))));
        upstream.protocol = Protocol::Anthropic;
        assert_eq!(change(&upstream), (true, Some(("x-api-key", "sk".to_owned()))));
        upstream.key = Key::Secret(" Bearer oat ".to_owned());
        assert_eq!(change(&upstream), (true, Some(("authorization", "Bearer oat".to_owned()))));
    }
}
