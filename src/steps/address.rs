//! URL of an image or a page, parsed so strictly that all URL parsers agree on the server.

use std::borrow::Cow;

use crate::config::{Address as Authority, FetchImages, split_authority, usual_port};
use crate::text::words;

/// Maximum length of a URL, in bytes. Signed URLs have some kilobytes.
const BYTES_MAX: usize = 8 << 10;

/// Web address in a normalized form.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct WebAddress {
    tls: bool,
    /// Host name in lower case.
    host: String,
    port: u16,
    /// Path of the URL, with the query.
    path: String,
}

impl WebAddress {
    /// Parses a URL. Returns `None` for a URL with credentials, or with a character that only some
    /// parsers treat as the end of the host.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        let url = words::before(url.trim(), b"#");
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\\\"<>^`{|}".contains(&byte);
        if url.len() > BYTES_MAX || !url.bytes().all(is_plain) {
            return None;
        }
        let (tls, rest) = match words::after_start(url, "https://") {
            Some(rest) => (true, rest),
            None => (false, words::after_start(url, "http://")?),
        };
        let authority = words::before(rest, b"/?").to_ascii_lowercase();
        let path = rest.get(authority.len()..).unwrap_or_default();
        let scheme = if tls { "https://" } else { "http://" };
        Authority::parse(&format!("{scheme}{authority}")).ok()?;
        let (host, port) = split_authority(&authority, tls);
        let slash = if path.starts_with('/') { "" } else { "/" };
        Some(Self { tls, host: host.to_owned(), port, path: [slash, path].concat() })
    }

    /// Returns the target of a redirection from this web address.
    pub(crate) fn redirected(&self, location: &str) -> Option<Self> {
        let location = location.trim();
        if location.starts_with("//") {
            let scheme = if self.tls { "https:" } else { "http:" };
            return Self::parse(&[scheme, location].concat());
        }
        if location.starts_with('/') {
            return Self::parse(&[&self.origin(), location].concat());
        }
        Self::parse(location)
    }

    /// Returns true if the address may be in a private network, and `None` if no images may be
    /// fetched from the address.
    pub(crate) fn is_permitted(&self, settings: &FetchImages) -> Option<bool> {
        settings.permits(self.tls, &self.host, self.port)
    }

    /// Returns the address as a URL.
    pub(crate) fn url(&self) -> String {
        [&self.origin(), self.path.as_str()].concat()
    }

    /// Returns true for `https`, false for `http`.
    pub(crate) fn tls(&self) -> bool {
        self.tls
    }

    /// Returns the host name in lower case.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path with the query.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the address without a dot at the end of its host name.
    pub(crate) fn without_final_dot(mut self) -> Self {
        if self.host.ends_with('.') {
            self.host.pop();
        }
        self
    }

    /// Resolves a reference of a page at this address: a URL, or a part of one. Characters that no
    /// URL may have are percent-encoded, as browsers do.
    pub(crate) fn joined(&self, reference: &str) -> Option<Self> {
        let reference = encoded(words::before(reference.trim(), b"#"));
        let has_scheme = has_scheme(&reference);
        if has_scheme {
            return Self::parse(&reference);
        }
        if reference.starts_with("//") {
            return Self::parse(&[self.scheme(), ":", &reference].concat());
        }
        let (path, query) = words::split_at(&reference, words::before(&reference, b"?").len());
        let base = words::before(&self.path, b"?");
        let path = match path {
            "" => base.to_owned(),
            path if path.starts_with('/') => without_dots(path),
            path => {
                let folder = words::rsplit_once(base, b'/').map_or("", |(folder, _)| folder);
                without_dots(&[folder, "/", path].concat())
            }
        };
        let query = if reference.is_empty() {
            self.path.get(base.len()..).unwrap_or_default()
        } else {
            query
        };
        Self::parse(&[&self.origin(), path.as_str(), query].concat())
    }

    fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    fn origin(&self) -> String {
        let scheme = self.scheme();
        if self.port == usual_port(self.tls) {
            return format!("{scheme}://{}", self.host);
        }
        format!("{scheme}://{}:{}", self.host, self.port)
    }
}

/// Returns true if a reference begins with a scheme, such as `mailto:`.
fn has_scheme(reference: &str) -> bool {
    let scheme = words::before(reference, b":/?#");
    let in_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    reference.as_bytes().get(scheme.len()) == Some(&b':')
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(in_scheme)
}

/// Returns a URL with the characters percent-encoded that no URL may have. Line breaks and tabs are
/// left out.
pub(crate) fn encoded(url: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>^`{|}".contains(&byte);
    if url.bytes().all(is_plain) {
        return url.into();
    }
    let mut out = String::with_capacity(url.len());
    for byte in url.bytes() {
        match byte {
            b'\t' | b'\r' | b'\n' => {}
            byte if is_plain(byte) => out.push(char::from(byte)),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out.into()
}

/// Returns an absolute path without `.` and `..` segments.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        match segment {
            "." => {}
            ".." => drop(kept.pop()),
            segment => {
                kept.push(segment);
                continue;
            }
        }
        if segments.peek().is_none() {
            kept.push("");
        }
    }
    ["/", &kept.join("/")].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Option<String> {
        WebAddress::parse(url).map(|address| address.url())
    }

    #[test]
    fn an_address_is_written_in_one_form() {
        for (url, expected) in [
            ("https://a.example/b.png?c=d%20e#f", "https://a.example/b.png?c=d%20e"),
            ("HTTPS://A.Example:443", "https://a.example/"),
            (" http://a.example:080?q ", "http://a.example/?q"),
            ("https://a.example:8443/B", "https://a.example:8443/B"),
            ("http://[::1]/x", "http://[::1]/x"),
            ("http://[::1]:8080/x", "http://[::1]:8080/x"),
            ("https://a.example//evil.test/x@y:z", "https://a.example//evil.test/x@y:z"),
        ] {
            assert_eq!(read(url).as_deref(), Some(expected), "{url}");
        }
    }

    #[test]
    fn what_two_readers_could_read_differently_is_no_address() {
        for url in [
            "",
            "https://",
            "https:///a",
            "https:a.example/b",
            "ftp://a.example/",
            "file:///etc/passwd",
            "data:image/png;base64,AA==",
            "//a.example/",
            "https://u@a.example/",
            "https://u:p@a.example/",
            "https://a.example\\@evil.test/",
            "https://evil.test\\.a.example/",
            "https://a.exa\tmple/",
            "https://a.example/a b",
            "https://a.example\n/",
            "https://a%2eexample/",
            "https://é.example/",
            "https://a.example/é",
            "https://a.example:x/",
            "https://a.example:99999/",
            "https://a.example:+1/",
            "https://[::1/",
            "https://a.example:1:2/",
            "https://a.example;b/",
            "https://a.example&b/",
            "https://a.example,b/",
        ] {
            assert_eq!(read(url), None, "{url}");
        }
        let long = format!("https://a.example/{}", "a".repeat(BYTES_MAX));
        assert_eq!(read(&long), None);
    }

    #[test]
    fn a_redirection_is_an_address_or_a_path() {
        let from = WebAddress::parse("https://a.example:8443/b/c").unwrap();
        for (location, expected) in [
            ("/d?e", Some("https://a.example:8443/d?e")),
            ("//b.example/d", Some("https://b.example/d")),
            ("http://b.example/d", Some("http://b.example/d")),
            ("https://169.254.169.254/", Some("https://169.254.169.254/")),
            ("/\\b.example", None),
            ("d", None),
            ("", None),
            ("javascript:alert(1)", None),
        ] {
            let led = from.redirected(location).map(|address| address.url());
            assert_eq!(led.as_deref(), expected, "{location}");
        }
    }

    #[test]
    fn a_reference_of_a_page_is_resolved_as_browsers_do() {
        let from = WebAddress::parse("https://a.example:8443/b/c?q").unwrap();
        for (reference, expected) in [
            ("/d?e#f", Some("https://a.example:8443/d?e")),
            ("//b.example/d", Some("https://b.example/d")),
            ("HTTP://b.example", Some("http://b.example/")),
            ("d", Some("https://a.example:8443/b/d")),
            ("./d/./e/..", Some("https://a.example:8443/b/d/")),
            ("../../../d", Some("https://a.example:8443/d")),
            ("..", Some("https://a.example:8443/")),
            ("?x", Some("https://a.example:8443/b/c?x")),
            ("", Some("https://a.example:8443/b/c?q")),
            ("#f", Some("https://a.example:8443/b/c?q")),
            ("d:e", None),
            ("./d:e", Some("https://a.example:8443/b/d:e")),
            ("/d e\n\u{e4}", Some("https://a.example:8443/d%20e%C3%A4")),
            ("mailto:x@y.example", None),
            ("javascript:alert(1)", None),
            ("https://u@b.example/", None),
            ("/\\b.example", None),
        ] {
            let joined = from.joined(reference).map(|address| address.url());
            assert_eq!(joined.as_deref(), expected, "{reference}");
        }
    }
}
