//! Address of a page: its checks before a request, and its comparison with other addresses.

use crate::model::fetch::FetchFailure;
use crate::steps::address::{WebAddress, encoded};
use crate::text::{domains, words};

/// Maximum length of an address in a call, in characters.
const CALL_CHARS_MAX: usize = 250;

/// Maximum length of a host name, in bytes.
const HOST_BYTES_MAX: usize = 253;

/// Maximum length of one label of a host name, in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// Ends of host names that only local networks or hidden networks resolve.
const LOCAL_ENDS: [&str; 6] =
    [".localhost", ".local", ".internal", ".home.arpa", ".onion", ".localdomain"];

/// Address of a page that has passed the checks: a public host name and a usual port.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PageAddress(WebAddress);

impl PageAddress {
    /// Reads and checks the address in a call. `ports`: ports beside 80 and 443.
    ///
    /// # Errors
    /// The address is no URL, is too long, or may not be public.
    pub(crate) fn of_call(url: &str, ports: &[u32]) -> Result<Self, FetchFailure> {
        let url = url.trim();
        if url.chars().nth(CALL_CHARS_MAX).is_some() {
            return Err(FetchFailure::UrlTooLong);
        }
        let url = encoded(url);
        if has_credentials(&url) {
            return Err(FetchFailure::UrlNotAllowed);
        }
        let address = WebAddress::parse(&url).ok_or(FetchFailure::InvalidToolInput)?;
        Self::checked(address, ports).ok_or(FetchFailure::UrlNotAllowed)
    }

    /// Returns the checked target of a redirection; `None` if the target is forbidden, or if it
    /// would lead from `https` to `http`.
    pub(super) fn redirected(&self, location: &str, ports: &[u32]) -> Option<Self> {
        let there = Self::checked(self.0.joined(location)?, ports)?;
        (there.0.tls() || !self.0.tls()).then_some(there)
    }

    fn checked(address: WebAddress, ports: &[u32]) -> Option<Self> {
        let address = address.without_final_dot();
        let port = address.port();
        let is_usual = matches!(port, 80 | 443) || ports.contains(&u32::from(port));
        (is_usual && is_public_name(address.host())).then_some(Self(address))
    }

    /// Returns true if a list of allowed domains, which may be empty, and a list of blocked domains
    /// permit the address.
    pub(crate) fn is_permitted<E: AsRef<str>>(&self, allowed: &[E], blocked: &[E]) -> bool {
        let covers = |entry: &E| domains::covers(entry.as_ref(), self.0.host());
        (allowed.is_empty() || allowed.iter().any(covers)) && !blocked.iter().any(covers)
    }

    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    pub(super) fn web(&self) -> &WebAddress {
        &self.0
    }

    pub(super) fn tls(&self) -> bool {
        self.0.tls()
    }

    pub(super) fn host(&self) -> &str {
        self.0.host()
    }

    pub(super) fn port(&self) -> u16 {
        self.0.port()
    }

    /// Returns the path with the query, without a final slash.
    pub(super) fn bare_path(&self) -> &str {
        let path = self.0.path();
        path.strip_suffix('/').unwrap_or(path)
    }
}

// The path and the query may be secret.
impl std::fmt::Debug for PageAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PageAddress({} bytes)", self.0.path().len())
    }
}

/// Returns true if a URL has a user name before its host.
fn has_credentials(url: &str) -> bool {
    let rest = words::after_start(url, "https://").or_else(|| words::after_start(url, "http://"));
    rest.is_some_and(|rest| words::has_byte(words::before(rest, b"/?#"), b'@'))
}

/// Returns true if a host in lower case is a name that may be public: no IP address in any
/// notation, and no name of a local network.
fn is_public_name(host: &str) -> bool {
    let is_label = |label: &str| {
        let in_label = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=LABEL_BYTES_MAX).contains(&label.len()) && label.bytes().all(in_label)
    };
    // A last label that begins with a digit belongs to an IP address: decimal, octal or
    // hexadecimal.
    let last = host.rsplit('.').next().unwrap_or_default();
    host.len() <= HOST_BYTES_MAX
        && words::has_byte(host, b'.')
        && host.split('.').all(is_label)
        && !last.starts_with(|first: char| first.is_ascii_digit())
        && host != "home.arpa"
        && !LOCAL_ENDS.iter().any(|end| host.ends_with(end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(url: &str) -> Result<String, FetchFailure> {
        PageAddress::of_call(url, &[8080]).map(|address| address.url())
    }

    #[test]
    fn a_public_address_is_written_in_one_form() {
        for (url, expected) in [
            ("https://A.Example/x?y#z", "https://a.example/x?y"),
            (" HTTP://a.example:80 ", "http://a.example/"),
            ("https://a.example.:443/", "https://a.example/"),
            ("http://a.example:443/", "http://a.example:443/"),
            ("https://a.example:8080/", "https://a.example:8080/"),
            ("https://a.example/b\u{e4}r x", "https://a.example/b%C3%A4r%20x"),
            ("https://a.example/http://127.0.0.1/", "https://a.example/http://127.0.0.1/"),
            ("https://1.a.example/", "https://1.a.example/"),
            ("https://localhost.example/", "https://localhost.example/"),
        ] {
            assert_eq!(read(url).as_deref(), Ok(expected), "{url}");
        }
    }

    #[test]
    fn what_is_no_url_is_an_invalid_input() {
        for url in [
            "",
            "a.example",
            "ftp://a.example/",
            "file:///etc/passwd",
            "data:text/plain,x",
            "javascript:alert(1)",
            "https://",
            "https:///x",
            "https://a.example:99999/",
            "https://a.example:x/",
            "https://a%2eexample/",
            "https://b\u{fc}cher.example/",
            "https://a.example\\@127.0.0.1/",
        ] {
            let failure = read(url).unwrap_err();
            let is_refused =
                matches!(failure, FetchFailure::InvalidToolInput | FetchFailure::UrlNotAllowed);
            assert!(is_refused, "{url}: {failure:?}");
            if !url.contains('@') {
                assert_eq!(failure, FetchFailure::InvalidToolInput, "{url}");
            }
        }
        let of_length = |length: usize| format!("https://a.example/{}", "\u{e4}".repeat(length));
        assert!(read(&of_length(232)).is_ok());
        assert_eq!(read(&of_length(233)), Err(FetchFailure::UrlTooLong));
    }

    #[test]
    fn addresses_of_local_networks_are_refused_in_each_notation() {
        for host in [
            "127.0.0.1",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "0",
            "1.1.1.1",
            "0x7f.0.0.0x1",
            "127.0.0.1.",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[fd00::1]",
            "localhost",
            "localhost.",
            "LOCALHOST",
            "a.localhost",
            "printer.local",
            "a.internal",
            "metadata.google.internal",
            "router.home.arpa",
            "home.arpa",
            "a.onion",
            "intranet",
            "a..example",
            ".example",
            "a.example..",
            "user@a.example",
            "user:password@a.example",
            "a.example:22",
            "a.example:8081",
            "a.example:0",
            "[::1]:8080",
        ] {
            for scheme in ["http", "https"] {
                let found = read(&format!("{scheme}://{host}/"));
                assert_eq!(found, Err(FetchFailure::UrlNotAllowed), "{scheme} {host}");
            }
        }
        let label = "a".repeat(LABEL_BYTES_MAX + 1);
        assert_eq!(read(&format!("https://{label}.example/")), Err(FetchFailure::UrlNotAllowed));
    }

    #[test]
    fn a_redirection_is_checked_as_the_first_address() {
        let from = PageAddress::of_call("https://a.example/b/c", &[]).unwrap();
        let led = |location: &str| from.redirected(location, &[]).map(|there| there.url());
        assert_eq!(led("d").as_deref(), Some("https://a.example/b/d"));
        assert_eq!(led("https://c.example/").as_deref(), Some("https://c.example/"));
        assert_eq!(led("//c.example./").as_deref(), Some("https://c.example/"));
        for location in [
            "http://a.example/b/c",
            "https://169.254.169.254/",
            "https://127.0.0.1/",
            "https://[::1]/",
            "//localhost/",
            "https://u@c.example/",
            "https://c.example:22/",
            "file:///etc/passwd",
        ] {
            assert_eq!(led(location), None, "{location}");
        }
        let plain = PageAddress::of_call("http://a.example/", &[]).unwrap();
        assert!(plain.redirected("https://a.example/", &[]).is_some());
        assert!(plain.redirected("http://c.example/", &[]).is_some());
    }

    #[test]
    fn lists_of_domains_permit_by_host() {
        let address = PageAddress::of_call("https://docs.a.example/x", &[]).unwrap();
        let list = |entries: &[&str]| entries.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        for (allowed, blocked, is_permitted) in [
            (&[][..], &[][..], true),
            (&["a.example"], &[], true),
            (&["b.example", "docs.a.example"], &[], true),
            (&["b.example"], &[], false),
            (&["docs.a.example/x"], &[], false),
            (&[], &["a.example"], false),
            (&[], &["docs.a.example/x"], true),
            (&["a.example"], &["docs.a.example"], false),
        ] {
            let found = address.is_permitted(&list(allowed), &list(blocked));
            assert_eq!(found, is_permitted, "{allowed:?} {blocked:?}");
        }
    }

    proptest! {
        #[test]
        fn each_checked_address_has_a_host_name_that_is_no_ip_address(
            url in "(https?://)?[a-z0-9.:\\[\\]x@%-]{0,24}(/[ -~]{0,8})?",
        ) {
            if let Ok(address) = PageAddress::of_call(&url, &[]) {
                prop_assert!(address.host().parse::<std::net::IpAddr>().is_err());
                prop_assert!(address.host().contains('.'));
                let again = PageAddress::of_call(&address.url(), &[]).unwrap();
                prop_assert_eq!(again, address);
            }
        }
    }
}
