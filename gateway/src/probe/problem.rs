//! Problems of an upstream, each described in one line with advice.

use creole::Unreachable;
use creole::config::{Key, Upstream};
use creole::profile::presets::KnownServer;

use crate::probe::private_network::is_in_private_network;

/// Usual ports of model servers, with the command that starts each server.
const USUAL_PORTS: [(&str, &str); 5] = [
    (":11434", "ollama serve"),
    (":1234", "lms server start"),
    (":8080", "llama-server"),
    (":8000", "vllm serve"),
    (":30000", "python -m sglang.launch_server"),
];

/// Problem of an upstream, with the advice to solve it. No field contains a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Code of the problem in one word, for machines.
    pub(crate) code: &'static str,
    /// Problem and advice in one line, for people.
    pub(crate) text: String,
    /// Another base path, at which the server has an API.
    pub(crate) base_path: Option<String>,
}

impl Problem {
    pub(crate) fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), base_path: None }
    }

    /// Returns true if there is a server that answers, even with an error.
    pub(crate) fn server_answers(&self) -> bool {
        const ANSWERS: [&str; 6] = ["no_key", "key", "path", "page", "redirect", "status"];
        ANSWERS.contains(&self.code)
    }

    /// Returns true if a key is missing, or was refused.
    pub(crate) fn is_of_key(&self) -> bool {
        matches!(self.code, "no_key" | "key")
    }

    /// Returns the problem of an upstream to which no connection could be made.
    pub(crate) fn unreachable(url: &str, reason: &Unreachable) -> Self {
        let words = reason.words();
        let host = url.split_once("://").map_or(url, |(_, host)| host);
        match reason {
            Unreachable::Refused => {
                let start = USUAL_PORTS.iter().find(|(port, _)| url.ends_with(port));
                let start = start.map_or_else(String::new, |(_, with)| format!(" (`{with}`)"));
                let text = format!(
                    "nothing listens at {url} ({words}): start the server{start}, or correct the port"
                );
                Self::new("refused", text)
            }
            Unreachable::NoName => Self::new(
                "name",
                format!(
                    "the name in {host} could not be resolved: correct it, or look at the network"
                ),
            ),
            Unreachable::TimedOut => Self::new(
                "timeout",
                format!("{url} does not answer in time: check the address, and what is between"),
            ),
            Unreachable::NoHost | Unreachable::NoNetwork => {
                Self::new("no_way", format!("{url}: {words}: check the address, and the network"))
            }
            Unreachable::NotTls => {
                // Outside of a private network, a key would go in clear text.
                let near = "write http:// in place of https://";
                let cure = if is_in_private_network(url) {
                    near
                } else {
                    "check the port, and what is between"
                };
                Self::new("not_tls", format!("{url} does not speak TLS: {cure}"))
            }
            Unreachable::UnknownIssuer => Self::new(
                "certificate",
                format!("{url}: {words}: name the file with its authority in SSL_CERT_FILE"),
            ),
            Unreachable::OtherName => Self::new(
                "certificate",
                format!("{url}: {words}: write the name that its certificate has"),
            ),
            Unreachable::AuthorityAsServer => Self::new(
                "certificate",
                format!(
                    "{url}: {words}: make another with `openssl req -x509 -addext \
                     basicConstraints=critical,CA:FALSE`, and name it in SSL_CERT_FILE"
                ),
            ),
            Unreachable::Expired | Unreachable::BadCertificate | Unreachable::Handshake => {
                Self::new("certificate", format!("{url}: {words}: mend it at the server"))
            }
            Unreachable::NotHttp => {
                Self::new("not_http", format!("{url} does not speak HTTP: check the port"))
            }
            Unreachable::Closed => Self::new(
                "closed",
                format!("{url} closes the connection without an answer: look at the server's log"),
            ),
            _ => Self::new("unreachable", format!("{url}: {words}")),
        }
    }

    /// Returns the problem of an upstream that requires a key, or refused the key it got.
    pub(crate) fn key(upstream: &Upstream, status: u16) -> Self {
        let url = &upstream.url;
        match upstream.key {
            Key::Client => {
                let cure = match KnownServer::of_vendor(url).map(|vendor| vendor.key) {
                    Some(variable) => format!("put it into the environment variable {variable}"),
                    None => "name the environment variable that has it, --key-env NAME".to_owned(),
                };
                Self::new("no_key", format!("{url} asks for a key ({status}): {cure}"))
            }
            Key::Secret(_) => Self::new(
                "key",
                format!(
                    "{url} refuses the key ({status}): it is wrong, has ended, or may not do this"
                ),
            ),
            Key::None => Self::new(
                "no_key",
                format!(
                    "{url} asks for a key ({status}), and the configuration says \"key\": \"none\": name the \
                     variable that has one there"
                ),
            ),
        }
    }

    /// Returns the problem of an upstream that has no API at the configured path. `found` is
    /// another path with an API, if any.
    pub(crate) fn path(upstream: &Upstream, answered: &str, found: Option<&str>) -> Self {
        let Upstream { url, base_path, .. } = upstream;
        let asked = format!("GET {base_path}/models is answered with {answered}");
        let text = match found {
            Some(base) => format!(
                "there is no API at {url}{base_path} ({asked}), but at {url}{base}: write that path"
            ),
            None => format!(
                "there is no API at {url}{base_path} ({asked}): write the path that stands before \
                 /chat/completions in the server's documents"
            ),
        };
        let code = if answered == PAGE { "page" } else { "path" };
        Self { base_path: found.map(str::to_owned), ..Self::new(code, text) }
    }
}

/// Words that describe a web page in the text of a problem.
pub(crate) const PAGE: &str = "a web page";

#[cfg(test)]
mod tests;
