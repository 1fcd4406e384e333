//! The address of an upstream, which hosts connect to, and the path before its endpoints.

/// Checks the path before `/chat/completions`. Errors do not quote it, because a query may have a key.
pub(super) fn check_base_path(path: &str) -> Result<(), &'static str> {
    // Angle brackets are those of a placeholder: no host could send a request there.
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'<' | b'>');
    let whole = path.is_empty() || path.starts_with('/');
    if !whole || !path.bytes().all(plain) || path.ends_with("/chat/completions") {
        return Err("expected a path such as \"/v1\", without a query or /chat/completions");
    }
    Ok(())
}

/// The parts of an upstream's `url`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// `https`
    pub tls: bool,
    /// Host, and perhaps a port.
    pub authority: &'a str,
}

impl<'a> Address<'a> {
    /// Reads a URL that has a scheme, a host and perhaps a port.
    ///
    /// # Errors
    /// The form that was expected.
    pub fn parse(url: &'a str) -> Result<Self, &'static str> {
        let (tls, authority) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(authority), _) => (true, authority),
            (None, Some(authority)) => (false, authority),
            (None, None) => return Err("expected a URL such as https://api.example.com"),
        };
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        if authority.contains('@') {
            return Err("expected a URL without credentials (set a key instead)");
        }
        if authority.contains(['/', '?', '#']) {
            return Err("expected a URL without a path (set base_path instead)");
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((host, "")) => (host, None),
                // The port is checked below.
                Some((host, port)) => (host, Some(port.strip_prefix(':').unwrap_or(port))),
                None => return Err("expected a host in the URL"),
            },
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let in_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        if host.is_empty() || !host.bytes().all(in_host) {
            return Err("expected a host in the URL");
        }
        // `parse` takes a sign, too.
        if port.is_some_and(|port| {
            port.starts_with('+') || port.parse().map_or(true, |port: u64| port >= 1 << 16)
        }) {
            return Err("expected a port from 0 to 65535 in the URL");
        }
        Ok(Self { tls, authority })
    }
}
