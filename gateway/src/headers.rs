//! Conversion of headers between the HTTP library and the exchange, which expects texts with names
//! in lower case.

use creole::{Head, Header, PassedHead};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};

/// Maximum size, in bytes, of an HTTP/1.1 head, of one read from a body, and of one kept part of an
/// answer.
pub(crate) const HTTP1_BYTES_MAX: usize = 128 << 10;

/// Number of bytes of memory that a header needs besides its name and its value.
const HEADER_BYTES: usize = 128;

/// Returns the memory of a request head, in bytes: its path and headers, with overhead for each
/// header.
pub(crate) fn bytes(head: &Parts) -> usize {
    let path = head.uri.path_and_query().map_or(0, |path| path.as_str().len());
    let header = |(name, value): (&HeaderName, &HeaderValue)| {
        name.as_str().len().saturating_add(value.len()).saturating_add(HEADER_BYTES)
    };
    head.headers.iter().map(header).fold(path, usize::saturating_add)
}

/// Converts HTTP headers to the exchange's form. A value that is not UTF-8 is left out, because the
/// exchange cannot use it.
pub(crate) fn list(map: &HeaderMap) -> Vec<Header> {
    map.iter()
        .filter_map(|(name, value)| {
            let value = std::str::from_utf8(value.as_bytes()).ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        })
        .collect()
}

/// Converts headers of the exchange to HTTP headers. An invalid header, which the exchange should
/// never give, is left out, because an incomplete response is better than none.
pub(crate) fn map(list: Vec<Header>) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(list.len());
    for (name, value) in list {
        let name = HeaderName::from_bytes(name.as_bytes());
        let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) else { continue };
        map.append(name, value);
    }
    map
}

/// Returns a response with the head that the exchange gives.
pub(crate) fn response<B>(head: Head, body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(head.status).unwrap_or(StatusCode::BAD_GATEWAY);
    *response.headers_mut() = map(head.headers);
    response
}

/// Returns the names and values of headers. A value that is not text becomes empty, because no
/// decision depends on it.
pub(crate) fn pairs(map: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    map.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default()))
}

/// Returns the values of the header `connection`.
pub(crate) fn connection(map: &HeaderMap) -> impl Iterator<Item = &str> {
    map.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok())
}

/// Applies the changes for a passed-on request or response to its headers.
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
