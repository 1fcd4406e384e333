//! Addresses of the links in a page.

use crate::steps::address::WebAddress;
use crate::text::words;

/// Maximum length of a reference that is joined without being parsed, in bytes.
const SIMPLE_BYTES_MAX: usize = 2048;

/// Address to which the links of a page are relative.
#[derive(Clone)]
pub(super) struct LinkBase {
    address: WebAddress,
    /// Scheme, host and port of the address.
    origin: String,
}

impl LinkBase {
    pub(super) fn new(address: WebAddress) -> Self {
        let mut origin = address.url();
        let end = origin.len().saturating_sub(address.path().len());
        words::truncate(&mut origin, end);
        Self { address, origin }
    }

    /// Returns the length of the base's path, in bytes.
    pub(super) fn path_bytes(&self) -> usize {
        self.address.path().len()
    }

    /// Returns the base that a `base` element of the page sets.
    pub(super) fn joined(&self, href: &str) -> Option<Self> {
        self.address.joined(href).map(Self::new)
    }

    /// Returns the absolute URL of a reference; `None` if it has none that can be fetched. Most
    /// references are already absolute, as URLs or as paths, and are not parsed.
    pub(super) fn url_of(&self, href: &str) -> Option<String> {
        let reference = words::before(href.trim(), b"#");
        let is_short = reference.len() <= SIMPLE_BYTES_MAX;
        if is_short && is_simple_path(reference) {
            return Some([&self.origin, reference].concat());
        }
        if is_short && is_simple_url(reference) {
            return Some(reference.to_owned());
        }
        self.address.joined(href).map(|address| address.url())
    }
}

/// Returns true for the bytes that no parser of URLs changes in a path or a query.
const fn is_kept(byte: u8) -> bool {
    byte.is_ascii_graphic()
        && !matches!(byte, b'"' | b'#' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}')
}

/// Returns true for an absolute path, perhaps with a query, that has no segments to resolve.
fn is_simple_path(reference: &str) -> bool {
    reference.starts_with('/')
        && !reference.starts_with("//")
        && !words::has(reference, "/.")
        && reference.bytes().all(is_kept)
}

/// Returns true for a URL that is in its only form: with a scheme and a host in lower case, without
/// a port, and with a path.
fn is_simple_url(reference: &str) -> bool {
    let rest = reference.strip_prefix("https://").or_else(|| reference.strip_prefix("http://"));
    let Some(rest) = rest else { return false };
    let host = words::before(rest, b"/");
    let in_host = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'.' || byte == b'-'
    };
    !host.is_empty()
        && host.len() < rest.len()
        && host.bytes().all(in_host)
        && rest.bytes().all(is_kept)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn simple_references_are_not_parsed() {
        assert!(is_simple_path("/wiki/Alpha?a=b/c") && is_simple_url("https://a.example/b?c=../d"));
        for other in ["//a.example/", "/a/../b", "b", "", "/a b", "/\\a", "/a\"", "/é"] {
            assert!(!is_simple_path(other), "{other}");
        }
        for other in
            ["https://A.example/", "https://a.example", "https://a.example:80/", "https://u@a/"]
        {
            assert!(!is_simple_url(other), "{other}");
        }
    }

    proptest! {
        #[test]
        fn every_reference_has_the_url_that_parsing_gives(
            base in "https?://a\\.example(:8080|:443)?/(b/|x\\?y)?",
            href in "(https?://|HTTPS://|//|/|)?[a-zA-Z.:@_-]{0,5}[/?#]?[a-z./?#\\\\ \"é%{|-]{0,12}",
        ) {
            let address = WebAddress::parse(&base).unwrap();
            let parsed = address.joined(&href).map(|address| address.url());
            prop_assert_eq!(LinkBase::new(address).url_of(&href), parsed);
        }
    }
}
