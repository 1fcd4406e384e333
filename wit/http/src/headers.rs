//! Headers between `wasi:http` and the exchange, which wants texts with names in lower case.

use creole::{Header, PassedHead};
use wasip2::http::types::Fields;

/// Reads fields of `wasi:http` as the exchange wants them. A value that is not UTF-8 is of no use
/// to it.
pub(crate) fn list(fields: &Fields) -> Vec<Header> {
    let text = |(name, value): (String, Vec<u8>)| {
        Some((name.to_ascii_lowercase(), String::from_utf8(value).ok()?))
    };
    fields.entries().into_iter().filter_map(text).collect()
}

/// Makes fields as `wasi:http` wants them. What the host does not take (it owns `host` and
/// `transfer-encoding`) is left out, because a message without that header is worth more than none.
pub(crate) fn fields(list: &[Header]) -> Fields {
    let fields = Fields::new();
    for (name, value) in list {
        let _ = fields.append(name, value.as_bytes());
    }
    fields
}

/// Returns the names and values of headers.
pub(crate) fn pairs(list: &[Header]) -> impl Iterator<Item = (&str, &str)> {
    list.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}

/// Returns the values of `connection`.
pub(crate) fn connection(list: &[Header]) -> impl Iterator<Item = &str> {
    list.iter().filter(|(name, _)| name == "connection").map(|(_, value)| value.as_str())
}

/// Changes a head that passes.
pub(crate) fn change(list: &mut Vec<Header>, PassedHead { remove, set }: PassedHead) {
    list.retain(|(name, _)| !remove.contains(name));
    list.extend(set);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_passes_changes_by_name() {
        let made = |list: &[(&str, &str)]| -> Vec<Header> {
            list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let mut list = made(&[
            ("connection", "close"),
            ("x-api-key", "mine"),
            ("openai-organization", "o"),
            ("connection", "te"),
        ]);
        assert_eq!(connection(&list).collect::<Vec<_>>(), ["close", "te"]);
        let remove = ["connection", "x-api-key"].map(str::to_owned).to_vec();
        change(
            &mut list,
            PassedHead { remove, set: vec![("authorization".to_owned(), "own".to_owned())] },
        );
        assert_eq!(list, made(&[("openai-organization", "o"), ("authorization", "own")]));
    }
}
