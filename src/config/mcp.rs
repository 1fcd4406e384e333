//! MCP servers whose tools Creole calls for models.

use super::address::{check_cluster, check_url, url_parts};
use super::credentials::{KeyDocument, SERVICE_KEY, Secrets, ServiceKey};
use super::document::ConfigError;
use super::{Address, Config, MILLISECONDS};
use crate::json::{Error, Reader, ValueKind, Writer};
use crate::setting::{Bounds, Named, Setting, ValueType, keys, word_enum};
use crate::text::names::is_tool_name;

keys! {
    /// MCP servers whose tools Creole calls for models.
    pub McpConnector {
        /// MCP servers of the operator, by name.
        servers: McpServerList = McpServerList::default();
        /// MCP servers that a request may name in `mcp_servers`, besides those of `servers` (by the
        /// same `url`, or as `mcp:NAME`): `configured` for none, a list of hosts, or `public` for
        /// all servers on the internet.
        from_requests: McpFromRequests = McpFromRequests::Configured;
        /// Handling of a request if a server does not list its tools.
        unavailable: McpUnavailable = McpUnavailable::Error;
        /// Most tools that the servers of a request list. Further tools are dropped.
        tools_max: u32 = 256, Bounds::Between(1, 10_000);
        /// Longest time for which a server's list of tools is kept, in milliseconds. 0: no list is
        /// kept.
        list_ttl_max_ms: u64 = 300_000;
        /// Envoy: the cluster through which MCP servers that only requests name are called. Needed
        /// there if `from_requests` permits any.
        cluster: String = String::new();
    }

    /// MCP server of the operator.
    pub McpServerSettings {
        /// Address of the MCP server, for the transport Streamable HTTP.
        url: String = String::new();
        /// Envoy: the cluster of the MCP server. Needed there.
        cluster: String = String::new();
        /// Credential for the MCP server: `client` for the `authorization_token` of the request, or
        /// an environment variable. Absent: none.
        key: McpKey = McpKey::None;
        /// Version of the protocol that the MCP server speaks.
        revision: McpRevision = McpRevision::Auto;
        /// Names of the only tools that models may call. Empty: all.
        allowed_tools: Vec<String> = Vec::new();
        /// Names of tools that no model may call.
        blocked_tools: Vec<String> = Vec::new();
        /// Longest wait for a result of the server's tools, in milliseconds.
        timeout_ms: u64 = 60_000, MILLISECONDS;
        /// True if all clients get the tools of this MCP server, also those that do not name it.
        offer: bool = false;
    }
}

word_enum! {
    /// Handling of a request if an MCP server does not list its tools.
    McpUnavailable {
        /// The request is refused.
        Error = "error",
        /// The model does without the tools of the server.
        Skip = "skip",
    }

    /// Version of the MCP protocol.
    McpRevision {
        /// The server is asked for its version.
        Auto = "auto",
        /// 2026-07-28, without sessions.
        Of20260728 = "2026-07-28",
        /// 2025-11-25
        Of20251125 = "2025-11-25",
        /// 2025-06-18
        Of20250618 = "2025-06-18",
        /// 2025-03-26
        Of20250326 = "2025-03-26",
        /// 2024-11-05, at a server with Streamable HTTP.
        Of20241105 = "2024-11-05",
    }
}

impl McpRevision {
    /// Returns the version; `None` if the server is asked for it.
    pub(crate) fn version(self) -> Option<&'static str> {
        (self != Self::Auto).then(|| self.word())
    }
}

/// MCP servers of the operator, by name, in their order in the document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpServerList(Vec<(String, McpServerSettings)>);

impl McpServerList {
    /// Returns the names and settings of the MCP servers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &McpServerSettings)> {
        self.0.iter().map(|(name, server)| (name.as_str(), server))
    }

    /// Offers the tools of no MCP server to clients that do not name it.
    pub fn offer_none(&mut self) {
        self.0.iter_mut().for_each(|(_, server)| server.offer = false);
    }

    /// Removes all MCP servers but the one of this name.
    pub fn keep_only(&mut self, name: &str) {
        self.0.retain(|(known, _)| known == name);
    }
}

impl Setting for McpServerList {
    const TYPE: ValueType = Named::<McpServerSettings>::TYPE;

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Named::read(reader).map(|Named(servers)| Self(servers))
    }

    fn write(&self, json: &mut Writer<'_>) {
        json.begin_object().end_object();
    }
}

/// Credential for an MCP server.
#[derive(Clone, Debug, PartialEq)]
pub enum McpKey {
    /// No credential.
    None,
    /// Credential that the request names for the server.
    Client,
    /// Credential of the operator.
    Own(ServiceKey),
}

impl Setting for McpKey {
    const TYPE: ValueType =
        ValueType::AnyOf(&[ValueType::Const("client"), ValueType::Const("none"), SERVICE_KEY]);

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(match KeyDocument::read(reader)? {
            KeyDocument::Client => Self::Client,
            KeyDocument::None => Self::None,
            KeyDocument::Secret(variable) => Self::Own(ServiceKey::of(variable)),
        })
    }
}

/// MCP servers that a request may name, besides those of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpFromRequests {
    /// Choice: no other MCP servers.
    Configured,
    /// Choice: MCP servers anywhere on the internet.
    Public,
    /// Choice: MCP servers at these hosts.
    Hosts(Vec<String>),
}

impl McpFromRequests {
    /// Returns true if a request may name the MCP server at this URL, which must be https.
    pub(crate) fn permits(&self, url: &str) -> bool {
        let Some(host) = host_of(url) else { return false };
        match self {
            Self::Configured => false,
            Self::Public => is_public_name(host),
            Self::Hosts(hosts) => hosts.iter().any(|known| known.eq_ignore_ascii_case(host)),
        }
    }
}

impl Setting for McpFromRequests {
    const TYPE: ValueType = ValueType::AnyOf(&[
        ValueType::Const("configured"),
        ValueType::Const("public"),
        Vec::<String>::TYPE,
    ]);

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        if reader.kind()? == ValueKind::Array {
            return Vec::read(reader).map(Self::Hosts);
        }
        match &*reader.string()?.decode() {
            "configured" => Ok(Self::Configured),
            "public" => Ok(Self::Public),
            _ => Err(Error::value("expected \"configured\", \"public\" or a list of hosts")),
        }
    }

    fn write(&self, json: &mut Writer<'_>) {
        match self {
            Self::Configured => {
                json.text("configured");
            }
            Self::Public => {
                json.text("public");
            }
            Self::Hosts(hosts) => hosts.write(json),
        }
    }
}

/// Returns the host of an https URL that all URL parsers read in the same way, with its port if the
/// URL has one.
fn host_of(url: &str) -> Option<&str> {
    check_url(url).ok()?;
    let address = Address::parse(url_parts(url).0).ok()?;
    let host = address.authority.strip_suffix(":443").unwrap_or(address.authority);
    address.tls.then_some(host)
}

/// Returns true if a host is a name of the public DNS, as far as the name shows.
fn is_public_name(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let Some((_, top)) = host.rsplit_once('.') else { return false };
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let is_local =
        matches!(top, "local" | "localhost" | "internal" | "onion") || host.ends_with(".home.arpa");
    host.bytes().all(is_letter)
        && top.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !top.starts_with("0x")
        && !is_local
}

impl McpServerSettings {
    /// Returns true if the operator lets models call the tool `name`.
    pub(crate) fn permits(&self, name: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|known| known == name);
        (self.allowed_tools.is_empty() || is_in(&self.allowed_tools)) && !is_in(&self.blocked_tools)
    }

    /// # Errors
    /// The wrong key, and the reason.
    fn check(&self, name: &str) -> Result<(), (&'static str, &'static str)> {
        if !is_tool_name(name) {
            return Err(("", "expected a name of letters, digits, \"_\", \".\" and \"-\""));
        }
        check_url(&self.url).map_err(|reason| ("url", reason))?;
        check_cluster(&self.cluster).map_err(|reason| ("cluster", reason))?;
        if self.offer && self.key == McpKey::Client {
            let reason = "expected false, because a client that does not name the server has no \
                          token for it (key is \"client\")";
            return Err(("offer", reason));
        }
        Ok(())
    }
}

impl McpConnector {
    /// Returns true if Creole calls MCP servers.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.servers.0.is_empty() || self.from_requests != McpFromRequests::Configured
    }

    /// Returns the operator's server of this name.
    pub(crate) fn server(&self, name: &str) -> Option<&McpServerSettings> {
        self.servers.iter().find(|(known, _)| *known == name).map(|(_, server)| server)
    }

    /// Reads the credentials of the MCP servers from the host, and checks the servers.
    ///
    /// # Errors
    /// The host has no credential of the name, or a key has a wrong value.
    pub(super) fn resolve(&mut self, secrets: &Secrets<'_>) -> Result<(), ConfigError> {
        const PATH: &str = "server_tools.mcp";
        if let McpFromRequests::Hosts(hosts) = &self.from_requests {
            let is_host = |host: &String| host_of(&format!("https://{host}")) == Some(host);
            if let Some(at) = hosts.iter().position(|host| !is_host(host)) {
                let path = format!("{PATH}.from_requests[{at}]");
                let reason = "expected a host, with a port if it is not 443";
                return Err(ConfigError::new(path, reason));
            }
        }
        check_cluster(&self.cluster)
            .map_err(|reason| ConfigError::new(format!("{PATH}.cluster"), reason))?;
        for (name, server) in &mut self.servers.0 {
            let path = |key: &str| {
                let dot = if key.is_empty() { "" } else { "." };
                [PATH, ".servers.", name, dot, key].concat()
            };
            server.check(name).map_err(|(key, reason)| ConfigError::new(path(key), reason))?;
            if let McpKey::Own(key) = &mut server.key {
                key.resolve(secrets).map_err(|(member, reason)| {
                    ConfigError::new(path(&format!("key.{member}")), reason)
                })?;
            }
        }
        Ok(())
    }
}

impl Config {
    /// Adds an MCP server whose tools all clients get. `given` is `NAME=URL`, and `source` is the
    /// name of the flag.
    ///
    /// # Errors
    /// The name or the URL cannot be used, or the configuration has a server of this name. The
    /// error does not quote the URL, because its query may contain a key.
    pub fn offer_mcp_server(&mut self, given: &str, source: &str) -> Result<(), String> {
        let Some((name, url)) = given.split_once('=') else {
            return Err(format!(
                "{source}: expected NAME=URL, such as notes=http://127.0.0.1:3000/mcp"
            ));
        };
        let server =
            McpServerSettings { url: url.to_owned(), offer: true, ..McpServerSettings::default() };
        server.check(name).map_err(|(_, reason)| format!("{source}: {reason}"))?;
        let servers = &mut self.settings.server_tools.mcp.servers.0;
        if servers.iter().any(|(known, _)| known == name) {
            return Err(format!(
                "{source}: there already is an MCP server {name}; name it otherwise"
            ));
        }
        servers.push((name.to_owned(), server));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
