//! Server tool `web_fetch`: pages that Creole fetches for models.

use super::address::check_cluster;
use super::document::ConfigError;
use super::{BYTES, MILLISECONDS};
use crate::json::{Error, Reader, Writer};
use crate::setting::{Bounds, Setting, ValueType, keys, word_enum};
use crate::text::domains;

keys! {
    /// Pages that Creole fetches for models. `{}` switches the tool on.
    pub WebFetch {
        /// Hosts from which pages may be fetched, each with the names below it. Empty: all public
        /// hosts.
        allowed_domains: Vec<DomainName> = Vec::new();
        /// Hosts from which no page is fetched, each with the names below it.
        blocked_domains: Vec<DomainName> = Vec::new();
        /// Most tokens of a page's text, by estimate. The rest of the page is left out.
        content_tokens_max: u32 = 25_000, Bounds::Between(1, 1_000_000);
        /// Largest page, in bytes.
        bytes_max: usize = 4 << 20, BYTES;
        /// Longest wait for a page with its redirections, in milliseconds.
        timeout_ms: u64 = 20_000, MILLISECONDS;
        /// Most redirections of one page.
        redirects_max: u32 = 5, Bounds::Between(0, 20);
        /// Condition on the conversation for a fetch.
        prior_context: PriorContext = PriorContext::Required;
        /// Ports from which pages may be fetched, beside 80 and 443.
        ports: Vec<u32> = Vec::new();
        /// Value of the `user-agent` header. Empty: `Creole/VERSION`.
        user_agent: String = String::new();
        /// Envoy: the cluster through which pages are fetched. Needed there.
        cluster: String = String::new();
    }
}

word_enum! {
    /// Condition on the conversation for a fetch.
    PriorContext {
        /// The user, or the result of a tool, must have named the address.
        Required = "required",
        /// Any public address may be fetched. A page can then make the model send data out in an
        /// address.
        Off = "off",
    }
}

/// Host of a list of domains, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainName(String);

impl AsRef<str> for DomainName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Setting for DomainName {
    const TYPE: ValueType = ValueType::Text;

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let entry = reader.string()?.decode();
        let host = domains::checked(&entry).filter(|host| host.is_ascii() && !host.contains('/'));
        let reason = "expected a host in ASCII such as docs.example.com, without scheme and path";
        host.map(Self).ok_or_else(|| Error::value(reason))
    }

    fn write(&self, json: &mut Writer<'_>) {
        json.text(&self.0);
    }
}

impl WebFetch {
    /// # Errors
    /// A value cannot be used.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key: &str, reason: &str| {
            Err(ConfigError::new(format!("server_tools.web_fetch.{key}"), reason))
        };
        if let Some(at) = self.ports.iter().position(|port| !(1..1 << 16).contains(port)) {
            return refuse(&format!("ports[{at}]"), "expected a port from 1 to 65535");
        }
        let is_text = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        if !self.user_agent.bytes().all(is_text) || self.user_agent.trim() != self.user_agent {
            return refuse("user_agent", "expected visible ASCII characters");
        }
        check_cluster(&self.cluster).or_else(|reason| refuse("cluster", reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::config::ServerTools;

    fn read(server_tools: &str) -> Result<ServerTools, String> {
        let config = Config::from_json(&format!(r#"{{"server_tools":{server_tools}}}"#), |_| None);
        config.map(|config| config.settings.server_tools).map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_object_switches_fetches_on_with_their_defaults() {
        assert_eq!(read("{}").unwrap().web_fetch, None);
        assert!(!read("{}").unwrap().fetches());
        let tools = read(r#"{"web_fetch":{}}"#).unwrap();
        assert!(tools.fetches());
        let fetch = tools.web_fetch.unwrap();
        assert_eq!(fetch, WebFetch::default());
        assert_eq!((fetch.content_tokens_max, fetch.bytes_max), (25_000, 4_194_304));
        assert_eq!((fetch.timeout_ms, fetch.redirects_max), (20_000, 5));
        assert_eq!(fetch.prior_context, PriorContext::Required);
    }

    #[test]
    fn each_key_is_read() {
        let tools = read(
            r#"{"web_fetch":{"allowed_domains":["Docs.Example.com"],"blocked_domains":["a.example"],
               "content_tokens_max":9,"bytes_max":2048,"timeout_ms":7000,"redirects_max":0,
               "prior_context":"off","ports":[8080],"user_agent":"Bot 1","cluster":"egress"},
               "private_networks":["10.20.0.0/16","fd00::/8","127.0.0.1"]}"#,
        );
        let tools = tools.unwrap();
        let fetch = tools.web_fetch.unwrap();
        assert_eq!(fetch.allowed_domains, [DomainName("docs.example.com".to_owned())]);
        assert_eq!((fetch.prior_context, fetch.ports), (PriorContext::Off, vec![8080]));
        let has = |address: &str| {
            let address = address.parse().unwrap();
            tools.private_networks.iter().any(|network| network.has(address))
        };
        for address in ["10.20.0.0", "10.20.255.255", "::ffff:10.20.1.1", "fd12::1", "127.0.0.1"] {
            assert!(has(address), "{address}");
        }
        for address in ["10.21.0.0", "10.19.255.255", "fe80::1", "127.0.0.2", "::1"] {
            assert!(!has(address), "{address}");
        }
    }

    #[test]
    fn wrong_values_refuse_the_start() {
        for (tools, place) in [
            (r#"{"web_fetch":{"x":1}}"#, "server_tools.web_fetch"),
            (r#"{"web_fetch":{"allowed_domains":["https://a.example"]}}"#, "allowed_domains[0]"),
            (r#"{"web_fetch":{"blocked_domains":["a.example/x"]}}"#, "blocked_domains[0]"),
            (r#"{"web_fetch":{"ports":[443,0]}}"#, "server_tools.web_fetch.ports[1]"),
            (r#"{"web_fetch":{"ports":[65536]}}"#, "server_tools.web_fetch.ports[0]"),
            (r#"{"web_fetch":{"user_agent":"a\nb"}}"#, "server_tools.web_fetch.user_agent"),
            (r#"{"web_fetch":{"cluster":"a b"}}"#, "server_tools.web_fetch.cluster"),
            (r#"{"web_fetch":{"redirects_max":21}}"#, "redirects_max"),
            (r#"{"private_networks":["10.0.0.0/33"]}"#, "private_networks[0]"),
            (r#"{"private_networks":["10.0.0.0/+8"]}"#, "private_networks[0]"),
            (r#"{"private_networks":["localhost"]}"#, "private_networks[0]"),
        ] {
            let error = read(tools).unwrap_err();
            assert!(error.contains(place), "{tools}: {error}");
        }
    }
}
