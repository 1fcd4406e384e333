//! Address of an upstream, to which hosts connect, and the base path before its endpoints.

/// Paths of endpoints, which users often copy together with the base URL.
const ENDPOINTS: [&str; 3] = ["/chat/completions", "/messages", "/responses"];

/// Returns a base path without an endpoint and a final slash. Errors do not quote the path, because
/// a query may contain a key.
pub(super) fn base_path_of(path: &str) -> Result<&str, &'static str> {
    let path = path.trim_end_matches('/');
    let endpoint = ENDPOINTS.iter().find_map(|endpoint| path.strip_suffix(endpoint));
    let path = endpoint.unwrap_or(path).trim_end_matches('/');
    // Angle brackets are left from a placeholder: no host could send a request to such a path.
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'<' | b'>');
    let whole = path.is_empty() || path.starts_with('/');
    if !whole || !path.bytes().all(plain) {
        return Err("expected a path such as \"/v1\", without a query");
    }
    Ok(path)
}

/// Splits a base URL of an upstream into the address and the base path. The path is `None` if the
/// URL has none; the path of an endpoint is removed.
pub(super) fn split(url: &str) -> Result<(&str, Option<&str>), &'static str> {
    let (address, path) = url_parts(url.trim_end_matches('/'));
    Address::parse(address)?;
    Ok((address, (!path.is_empty()).then(|| base_path_of(path)).transpose()?))
}

/// Returns the scheme, host and port of a URL as one text, and the path, query and fragment as
/// another.
#[must_use]
pub fn url_parts(url: &str) -> (&str, &str) {
    let host = url.find("://").map_or(0, |at| at.saturating_add(3));
    let end = url.get(host..).and_then(|rest| rest.find(['/', '?', '#']));
    let parts = end.and_then(|at| url.split_at_checked(host.saturating_add(at)));
    parts.unwrap_or((url, ""))
}

/// Returns the path of a request, with its query, from the part of a URL behind its host.
#[must_use]
pub fn request_path(rest: &str) -> String {
    let path = rest.split('#').next().unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    [slash, path].concat()
}

/// Parts of an upstream's URL in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'a> {
    /// True for `https`, false for `http`.
    pub tls: bool,
    /// Host, and the port if the URL has one.
    pub authority: &'a str,
}

impl<'a> Address<'a> {
    /// Reads a URL that has a scheme, a host, and optionally a port.
    ///
    /// # Errors
    /// The expected form of the URL.
    pub fn parse(url: &'a str) -> Result<Self, &'static str> {
        let (tls, authority) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(authority), _) => (true, authority),
            (None, Some(authority)) => (false, authority),
            (None, None) => {
                return Err(
                    "expected a URL that begins with http:// or https://, such as http://localhost:11434/v1",
                );
            }
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
        // The function `parse` accepts a sign, which a port must not have.
        if port.is_some_and(|port| {
            port.starts_with('+') || port.parse().map_or(true, |port: u64| port >= 1 << 16)
        }) {
            return Err("expected a port from 0 to 65535 in the URL");
        }
        Ok(Self { tls, authority })
    }
}

/// Checks the name of a cluster of Envoy.
pub(super) fn check_cluster(name: &str) -> Result<(), &'static str> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { Ok(()) } else { Err("expected visible ASCII characters") }
}

/// Checks the base URL of a service, which may have a path and a query. Errors do not quote the
/// URL, because its query may contain a key.
pub(super) fn check_url(url: &str) -> Result<(), &'static str> {
    let (address, path) = url_parts(url);
    Address::parse(address)?;
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"#<>\"\\".contains(&byte);
    if !path.bytes().all(is_plain) {
        return Err("expected a URL of visible ASCII characters, without a fragment");
    }
    Ok(())
}
