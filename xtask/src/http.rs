//! Minimal HTTP client that checks if a server answers.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// Sends a GET request and returns the status of the response.
pub(crate) fn status(address: SocketAddr, path: &str) -> Result<u16> {
    let patience = Duration::from_secs(2);
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    let status = head.strip_prefix("HTTP/1.1 ").or_else(|| head.strip_prefix("HTTP/1.0 "));
    let status = status.with_context(|| format!("not HTTP: {head:?}"))?;
    Ok(status.parse()?)
}

/// Returns the address with a free port in place of port 0.
pub(crate) fn with_port(address: SocketAddr) -> Result<SocketAddr> {
    if address.port() == 0 {
        return free(address.ip());
    }
    match TcpListener::bind(address) {
        Ok(_) => Ok(address),
        Err(error) => {
            bail!("{address} cannot be listened on ({error}); choose another with --listen")
        }
    }
}

/// Returns an address on this machine with a free port.
pub(crate) fn free_port() -> Result<SocketAddr> {
    free(Ipv4Addr::LOCALHOST.into())
}

/// Returns an address with an unused port. The port is below the range for outgoing connections, so
/// that no connection occupies it before a server listens.
fn free(ip: IpAddr) -> Result<SocketAddr> {
    const FIRST: u64 = 10_000;
    const COUNT: u64 = 20_000;
    let random = RandomState::new();
    for attempt in 0..100 {
        let port = u16::try_from(FIRST.saturating_add(random.hash_one(attempt) % COUNT))?;
        if let Ok(listener) = TcpListener::bind((ip, port)) {
            return Ok(listener.local_addr()?);
        }
    }
    bail!("no free port on {ip}")
}

/// Parsed URL of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Path prefix of the upstream's URL without a slash at the end, such as `/v1`.
    pub(crate) path: String,
}

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let url = url::Url::parse(text).with_context(|| text.to_owned())?;
        let tls = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => bail!("{text}: expected http://… or https://…"),
        };
        let has_more =
            url.query().is_some() || url.fragment().is_some() || url.password().is_some();
        if has_more || !url.username().is_empty() {
            bail!("{text}: expected no credentials, query or fragment");
        }
        let host = url.host_str().with_context(|| format!("{text}: expected a host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = url.port_or_known_default().context("a port")?;
        Ok(Self { tls, host, port, path: url.path().trim_end_matches('/').to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, tls: bool, host: &str, port: u16, path: &str) {
        let wanted = Url { tls, host: host.to_owned(), port, path: path.to_owned() };
        assert_eq!(Url::parse(text).unwrap(), wanted);
    }

    #[test]
    fn urls_are_read_with_the_defaults_of_their_scheme() {
        check("https://api.example.com/v1/", true, "api.example.com", 443, "/v1");
        check("http://localhost:11434/v1", false, "localhost", 11434, "/v1");
        check("http://[::1]:8000", false, "::1", 8000, "");
        check("http://[::1]", false, "::1", 80, "");
    }

    #[test]
    fn what_is_not_a_base_url_is_refused() {
        for text in ["api.example.com", "http://", "http://a:b/", "http://u@a/", "http://a/?x=1"] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }
}
