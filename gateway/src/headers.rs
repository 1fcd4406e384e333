//! Headers between HTTP and the exchange, which wants texts with names in lower case.

use creole::{Head, Header, PassedHead};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};

/// The largest head of HTTP/1.1, and what is read of a body or kept of an answer at one time.
pub(crate) const HTTP1_BYTES_MAX: usize = 128 << 10;

/// Number of bytes that a header costs beside its name and its value.
const HEADER_BYTES: usize = 128;

/// Returns the memory that a head takes: its path and headers, with some bytes of bookkeeping for
/// each.
pub(crate) fn bytes(head: &Parts) -> usize {
    let path = head.uri.path_and_query().map_or(0, |path| path.as_str().len());
    let header = |(name, value): (&HeaderName, &HeaderValue)| {
        name.as_str().len().saturating_add(value.len()).saturating_add(HEADER_BYTES)
    };
    head.headers.iter().map(header).fold(path, usize::saturating_add)
}

/// Converts headers of HTTP to the exchange's. A value that is not UTF-8 is of no use to the
/// exchange, and is left out.
pub(crate) fn list(map: &HeaderMap) -> Vec<Header> {
    map.iter()
        .filter_map(|(name, value)| {
            let value = std::str::from_utf8(value.as_bytes()).ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        })
        .collect()
}

/// Converts headers of the exchange to HTTP's. The exchange gives nothing that HTTP does not take;
/// should it, that header is left out, because an answer without it is worth more than none.
pub(crate) fn map(list: Vec<Header>) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(list.len());
    for (name, value) in list {
        let name = HeaderName::from_bytes(name.as_bytes());
        let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) else { continue };
        map.append(name, value);
    }
    map
}

/// Makes a response with the head that the exchange gives.
pub(crate) fn response<B>(head: Head, body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(head.status).unwrap_or(StatusCode::BAD_GATEWAY);
    *response.headers_mut() = map(head.headers);
    response
}

/// Names and values. A value that is no text is nothing that decides what passes.
pub(crate) fn pairs(map: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    map.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default()))
}

/// The values of `connection`.
pub(crate) fn connection(map: &HeaderMap) -> impl Iterator<Item = &str> {
    map.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok())
}

/// Changes a head that passes.
pub(crate) fn change(map: &mut HeaderMap, PassedHead { remove, set }: PassedHead) {
    for name in remove {
        map.remove(name);
    }
    for (name, value) in set {
        let name = HeaderName::from_bytes(name.as_bytes());
        let (Ok(name), Ok(mut value)) = (name, HeaderValue::try_from(value)) else { continue };
        value.set_sensitive(true);
        map.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_passes_changes_by_name() {
        let mut map = map(vec![
            ("connection".to_owned(), "close, X-Mine".to_owned()),
            ("connection".to_owned(), "te".to_owned()),
            ("x-mine".to_owned(), "1".to_owned()),
            ("x-mine".to_owned(), "2".to_owned()),
            ("x-api-key".to_owned(), "mine".to_owned()),
            ("openai-organization".to_owned(), "o".to_owned()),
            ("no good".to_owned(), "o".to_owned()),
        ]);
        assert_eq!(connection(&map).collect::<Vec<_>>(), ["close, X-Mine", "te"]);
        let remove = ["connection", "x-mine", "not, a name"].map(str::to_owned).to_vec();
        change(
            &mut map,
            PassedHead { remove, set: vec![("x-api-key".to_owned(), "own".to_owned())] },
        );
        let mut left = list(&map);
        left.sort();
        let expected = [("openai-organization", "o"), ("x-api-key", "own")];
        assert_eq!(left, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
