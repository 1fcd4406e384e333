//! Headers between `wasi:http` and the exchange, which wants texts with names in lower case.

use creole::Header;
use creole::config::Upstream;
use creole::headers::{CREDENTIALS, HOP_BY_HOP, own_credential};
use wasip2::http::types::Fields;

/// As the exchange wants them. A value that is not UTF-8 is of no use to it.
pub(crate) fn list(fields: &Fields) -> Vec<Header> {
    let text = |(name, value): (String, Vec<u8>)| {
        Some((name.to_ascii_lowercase(), String::from_utf8(value).ok()?))
    };
    fields.entries().into_iter().filter_map(text).collect()
}

/// As `wasi:http` wants them. What the host does not take (it owns `host` and `transfer-encoding`) is
/// left out, because a message without that header is worth more than none.
pub(crate) fn fields(list: &[Header]) -> Fields {
    let fields = Fields::new();
    for (name, value) in list {
        let _ = fields.append(name, value.as_bytes());
    }
    fields
}

/// Without what belongs to one connection only.
pub(crate) fn end_to_end(mut list: Vec<Header>) -> Vec<Header> {
    let named: Vec<String> = list
        .iter()
        .filter(|(name, _)| name == "connection")
        .flat_map(|(_, value)| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    list.retain(|(name, _)| !HOP_BY_HOP.contains(&name.as_str()) && !named.contains(name));
    list
}

/// The gateway's own key replaces whatever the client sent; the client's is left as it is.
pub(crate) fn set_key(list: &mut Vec<Header>, upstream: &Upstream) {
    let Some((name, value)) = own_credential(&upstream.key, upstream.protocol) else { return };
    list.retain(|(name, _)| !CREDENTIALS.contains(&name.as_str()));
    list.push((name.to_owned(), value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use creole::config::{Key, Protocol};

    fn made(list: &[(&str, &str)]) -> Vec<Header> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn headers_of_one_connection_stay_there() {
        let list = made(&[
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("transfer-encoding", "chunked"),
            ("expect", "100-continue"),
            ("openai-organization", "o"),
        ]);
        assert_eq!(end_to_end(list), made(&[("openai-organization", "o")]));
    }

    #[test]
    fn the_gateways_key_replaces_the_clients() {
        let mut upstream = Upstream::named("u");
        let mut list = made(&[("x-api-key", "mine")]);
        set_key(&mut list, &upstream);
        assert_eq!(list, made(&[("x-api-key", "mine")]));
        upstream.key = Key::Secret("sk ".to_owned());
        set_key(&mut list, &upstream);
        assert_eq!(list, made(&[("authorization", "Bearer sk")]));
        upstream.protocol = Protocol::Anthropic;
        set_key(&mut list, &upstream);
        assert_eq!(list, made(&[("x-api-key", "sk")]));
    }
}
