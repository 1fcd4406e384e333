//! Images on the web that a host downloads for upstreams that accept no image URLs.

use super::{Address, BYTES, MILLISECONDS};
use crate::json::{Error, Reader, Writer};
use crate::setting::{Setting, ValueType, keys};
use crate::text::words;

keys! {
    /// Images by URL, which are fetched and sent as data to upstreams that take no URLs
    /// (`image_parts: "data"`).
    pub FetchImages {
        /// Hosts from which images are fetched: a name (`images.example.com`) or all names below a
        /// name (`*.example.com`), both with `https` alone, or a scheme with a host
        /// (`http://10.0.0.5:8080`), which alone may be in a private network. Empty: no image is
        /// fetched.
        hosts: Vec<ImageHost> = Vec::new();
        /// Largest image, in bytes.
        bytes_max: usize = 5 << 20, BYTES;
        /// Longest wait for all images of a request, in milliseconds.
        timeout_ms: u64 = 20_000, MILLISECONDS;
        /// Envoy: the cluster through which images are fetched. Empty: Envoy fetches no image.
        cluster: String = String::new();
    }
}

/// Server, or group of servers, from which images may be downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageHost {
    /// Host with exactly this name, with `https` on the usual port.
    Named(String),
    /// Hosts whose names end with this text (`.example.com`), with `https` on the usual port.
    Below(String),
    /// Single server, by scheme, host and port, which may be in a private network.
    Server {
        /// True for `https`, false for `http`.
        tls: bool,
        /// Name or address of the host, in lower case.
        host: String,
        /// Port of the server.
        port: u16,
    },
}

/// Returns the usual port of a scheme: 443 for `https`, 80 for `http`.
pub(crate) fn usual_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

/// Splits a checked authority (`host:port`) into host and port.
pub(crate) fn split_authority(authority: &str, tls: bool) -> (&str, u16) {
    let end = authority.rfind(']').map_or(0, |at| at.saturating_add(1));
    let port = authority.get(end..).and_then(|rest| rest.rfind(':'));
    let parts = port.and_then(|at| authority.split_at_checked(end.saturating_add(at)));
    let (host, port) = parts.unwrap_or((authority, ""));
    let port = port.strip_prefix(':').and_then(|port| port.parse().ok());
    (host, port.unwrap_or_else(|| usual_port(tls)))
}

impl ImageHost {
    fn parse(text: &str) -> Result<Self, &'static str> {
        const EXPECTED: &str =
            "expected a host such as images.example.com, *.example.com or http://10.0.0.5:8080";
        let text = text.to_ascii_lowercase();
        if words::has(&text, "://") {
            let Address { tls, authority } = Address::parse(&text).map_err(|_| EXPECTED)?;
            let (host, port) = split_authority(authority, tls);
            return Ok(Self::Server { tls, host: host.to_owned(), port });
        }
        let name = text.strip_prefix("*.").unwrap_or(&text);
        let is_label = |label: &str| {
            let in_label = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            !label.is_empty() && label.bytes().all(in_label)
        };
        // A last label that begins with a digit belongs to an IP address, in one of its many
        // spellings.
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_address = last.starts_with(|first: char| first.is_ascii_digit());
        if !name.contains('.') || !name.split('.').all(is_label) || is_address {
            return Err(EXPECTED);
        }
        Ok(match text.strip_prefix('*') {
            Some(below) => Self::Below(below.to_owned()),
            None => Self::Named(text),
        })
    }

    fn permits(&self, with_tls: bool, at: &str, to: u16) -> bool {
        let is_usual = with_tls && to == usual_port(true);
        match self {
            Self::Named(name) => is_usual && at == name,
            Self::Below(ending) => is_usual && at.len() > ending.len() && at.ends_with(ending),
            Self::Server { tls, host, port } => (*tls, host.as_str(), *port) == (with_tls, at, to),
        }
    }
}

impl FetchImages {
    /// Returns the permission to download images from a host, whose name is in lower case. `None`
    /// means forbidden; true means that the host may be in a private network.
    pub(crate) fn permits(&self, tls: bool, host: &str, port: u16) -> Option<bool> {
        let mut permitting = self.hosts.iter().filter(|entry| entry.permits(tls, host, port));
        let first = permitting.next()?;
        let is_server = |entry: &ImageHost| matches!(entry, ImageHost::Server { .. });
        Some(is_server(first) || permitting.any(is_server))
    }
}

impl Setting for ImageHost {
    const TYPE: ValueType = ValueType::Text;

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Self::parse(&reader.string()?.decode()).map_err(Error::value)
    }

    fn write(&self, json: &mut Writer<'_>) {
        json.text(&match self {
            Self::Named(name) => name.clone(),
            Self::Below(ending) => format!("*{ending}"),
            Self::Server { tls, host, port } => {
                format!("http{}://{host}:{port}", if *tls { "s" } else { "" })
            }
        });
    }
}

#[cfg(test)]
mod tests;
