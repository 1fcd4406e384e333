//! Entries of lists of domains, as clients and operators write them.

use super::words;

/// Maximum size of an entry, in bytes.
const ENTRY_BYTES_MAX: usize = 512;

/// Returns an entry of a list with its host in lower case; `None` if the entry is not a host with
/// an optional path, in which one `*` may be, or is too long.
pub(crate) fn checked(entry: &str) -> Option<String> {
    if entry.len() > ENTRY_BYTES_MAX {
        return None;
    }
    let host = words::before(entry, b"/");
    let path = entry.get(host.len()..).unwrap_or_default();
    let is_label = |label: &str| {
        let in_label = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
        !label.is_empty() && label.chars().all(in_label)
    };
    let in_path = |letter: char| {
        !(letter.is_control() || letter.is_whitespace() || matches!(letter, '?' | '#' | '\\'))
    };
    let is_plain = host.split('.').all(is_label)
        && path.chars().all(in_path)
        && path.bytes().filter(|byte| *byte == b'*').count() <= 1;
    is_plain.then(|| host.to_lowercase() + path)
}

/// Returns true if an entry without a path covers a host: the host itself, or a name below it.
pub(crate) fn covers(entry: &str, host: &str) -> bool {
    let below = host.strip_suffix(entry.strip_suffix('/').unwrap_or(entry));
    below.is_some_and(|below| below.is_empty() || below.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_covers_a_host_and_the_names_below_it() {
        for (entry, host, is_covered) in [
            ("a.example", "a.example", true),
            ("a.example/", "a.example", true),
            ("a.example", "b.a.example", true),
            ("a.example", "nota.example", false),
            ("b.a.example", "a.example", false),
            ("a.example/x", "a.example", false),
        ] {
            assert_eq!(covers(entry, host), is_covered, "{entry} {host}");
        }
        assert_eq!(checked("A.Example/X*").as_deref(), Some("a.example/X*"));
        assert_eq!(checked("https://a.example"), None);
    }
}
