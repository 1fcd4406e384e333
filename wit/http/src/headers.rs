//! Conversion of headers between `wasi:http` and the exchange, which uses texts with names in lower
//! case.

use creole::{Header, PassedHead};
use wasip2::http::types::Fields;

/// Converts fields of `wasi:http` to the exchange's header list. Values that are not UTF-8 are left
/// out.
pub(crate) fn list(fields: &Fields) -> Vec<Header> {
    let text = |(name, value): (String, Vec<u8>)| {
        Some((name.to_ascii_lowercase(), String::from_utf8(value).ok()?))
    };
    fields.entries().into_iter().filter_map(text).collect()
}

/// Converts a header list to fields of `wasi:http`. Headers that the host rejects (such as `host`
/// and `transfer-encoding`, which the host sets) are left out, rather than failing the message.
pub(crate) fn fields(list: &[Header]) -> Fields {
    let fields = Fields::new();
    for (name, value) in list {
        let _ = fields.append(name, value.as_bytes());
    }
    fields
}

/// Returns the names and values of the headers in a list.
pub(crate) fn pairs(list: &[Header]) -> impl Iterator<Item = (&str, &str)> {
    list.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}

/// Returns the values of the header `connection`.
pub(crate) fn connection(list: &[Header]) -> impl Iterator<Item = &str> {
    list.iter().filter(|(name, _)| name == "connection").map(|(_, value)| value.as_str())
}

/// Removes and sets headers of a message that passes through untranslated.
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
