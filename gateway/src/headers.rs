//! Headers between HTTP and the exchange, which wants texts with names in lower case.

use creole::Header;
use creole::headers::HOP_BY_HOP;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

/// As the exchange wants them. A value that is not UTF-8 is of no use to it.
pub(crate) fn list(map: &HeaderMap) -> Vec<Header> {
    map.iter()
        .filter_map(|(name, value)| {
            let value = std::str::from_utf8(value.as_bytes()).ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        })
        .collect()
}

/// As HTTP wants them. The exchange gives nothing that HTTP does not take; should it, that header is
/// left out, because an answer without it is worth more than none.
pub(crate) fn map(list: Vec<Header>) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(list.len());
    for (name, value) in list {
        let name = HeaderName::from_bytes(name.as_bytes());
        let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) else { continue };
        map.append(name, value);
    }
    map
}

/// Takes out what belongs to one connection only.
pub(crate) fn remove_hop_by_hop(map: &mut HeaderMap) {
    let named: Vec<HeaderName> = map
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect();
    for name in named {
        map.remove(name);
    }
    for name in HOP_BY_HOP {
        map.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_connection_stay_there() {
        let mut map = map(vec![
            ("connection".to_owned(), "close, X-Mine".to_owned()),
            ("x-mine".to_owned(), "1".to_owned()),
            ("transfer-encoding".to_owned(), "chunked".to_owned()),
            ("expect".to_owned(), "100-continue".to_owned()),
            ("openai-organization".to_owned(), "o".to_owned()),
            ("no good".to_owned(), "o".to_owned()),
        ]);
        remove_hop_by_hop(&mut map);
        assert_eq!(list(&map), [("openai-organization".to_owned(), "o".to_owned())]);
    }
}
