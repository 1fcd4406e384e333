//! Proxies on the way to upstreams, as `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` name
//! them.
//!
//! This machine's own addresses are never asked through a proxy: a model server of this machine is
//! not the proxy's business. Of a plain `http://` request the proxy sees all, as is usual.

use std::env;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::Scheme;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use rustls::ClientConfig;
use tokio::time::timeout;
use tower_service::Service as _;

use crate::upstream::dns::Resolver;
use crate::upstream::wire::{ConnectError, Wire};

/// Maximum time until a proxy has connected to an upstream, with the TLS of both.
const TUNNEL_TIMEOUT: Duration = Duration::from_secs(30);

/// Environment variables with proxies, and a URL for which each is used.
const VARIABLES: [([&str; 2], &str); 3] = [
    (["HTTPS_PROXY", "https_proxy"], "https://upstream.invalid"),
    (["HTTP_PROXY", "http_proxy"], "http://upstream.invalid"),
    (["ALL_PROXY", "all_proxy"], "https://upstream.invalid"),
];

/// Environment variables with the servers that are reached without a proxy.
const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Connector of direct connections, also to proxies.
type Direct = HttpConnector<Resolver>;

/// Proxies of this process, by the URL of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies(Option<Arc<Matcher>>);

impl Proxies {
    /// Returns the proxies that the environment names.
    ///
    /// # Errors
    /// A variable has no URL of a proxy that can be used.
    pub(crate) fn from_env() -> Result<Self, String> {
        let value = |name: &&'static str| {
            env::var(name).ok().filter(|value| !value.is_empty()).map(|value| (*name, value))
        };
        let [https, http, all] = VARIABLES.map(|(names, _)| names.iter().find_map(value));
        let (https, http) = (https.or_else(|| all.clone()), http.or(all));
        if https.is_none() && http.is_none() {
            return Ok(Self::default());
        }
        let none = NO_PROXY.iter().find_map(value).map_or_else(String::new, |(_, none)| none);
        let mut matcher = Matcher::builder().no(none);
        if let Some((name, proxy)) = https {
            check(&proxy, "https://upstream.invalid").map_err(|it| format!("{name}: {it}"))?;
            matcher = matcher.https(proxy);
        }
        if let Some((name, proxy)) = http {
            check(&proxy, "http://upstream.invalid").map_err(|it| format!("{name}: {it}"))?;
            matcher = matcher.http(proxy);
        }
        Ok(Self(Some(Arc::new(matcher.build()))))
    }

    /// Returns one proxy for everything.
    #[cfg(test)]
    pub(crate) fn all(url: &str) -> Self {
        Self(Some(Arc::new(Matcher::builder().all(url.to_owned()).build())))
    }

    /// Returns true if a variable names a proxy.
    pub(crate) fn is_any(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the proxy for a URL.
    pub(super) fn of(&self, uri: &Uri) -> Option<Intercept> {
        let matcher = self.0.as_ref()?;
        if is_of_this_machine(uri.host()?) { None } else { matcher.intercept(uri) }
    }

    /// Returns the header with user and password for a request that is sent to a proxy itself,
    /// without a tunnel. `None` if the request goes another way.
    pub(super) fn login(&self, uri: &Uri) -> Option<Option<HeaderValue>> {
        let is_plain = uri.scheme() == Some(&Scheme::HTTP);
        let proxy = self.of(uri).filter(|_| is_plain)?;
        Some(proxy.basic_auth().cloned())
    }

    /// Returns the address of the proxy for a URL, without user and password.
    pub(crate) fn shown(&self, url: &str) -> Option<String> {
        let proxy = self.of(&url.parse().ok()?)?;
        Some(address(proxy.uri()))
    }

    /// Returns the addresses of all proxies, without user and password.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = String> {
        VARIABLES.iter().filter_map(|(_, url)| self.shown(url))
    }
}

fn address(proxy: &Uri) -> String {
    let scheme = proxy.scheme_str().unwrap_or("http");
    format!("{scheme}://{}", proxy.authority().map_or("", |authority| authority.as_str()))
}

/// Checks the value of a variable, which the matcher would ignore silently.
fn check(value: &str, url: &str) -> Result<(), &'static str> {
    let matcher = Matcher::builder().all(value.to_owned()).build();
    let proxy = url.parse().ok().and_then(|uri| matcher.intercept(&uri));
    match proxy.as_ref().and_then(|proxy| proxy.uri().scheme_str()) {
        Some("http" | "https") => Ok(()),
        Some(_) => Err("SOCKS is not supported: name a proxy that speaks HTTP, or unset it"),
        None => Err("expected the URL of a proxy, such as http://proxy.example:3128"),
    }
}

/// Returns true if a host name or address means this machine, for whoever resolves it.
fn is_of_this_machine(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let ip = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name == "localhost"
        || name.ends_with(".localhost")
        || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Connects to the server of a URL by a proxy: with a tunnel for `https://`, else to the proxy
/// itself. `tls` is for the upstream, `to_proxy` connects to the proxy.
pub(super) async fn connect(
    proxy: Intercept,
    mut to_proxy: HttpsConnector<Direct>,
    tls: Arc<ClientConfig>,
    uri: Uri,
) -> Result<Box<dyn Wire>, ConnectError> {
    if uri.scheme() != Some(&Scheme::HTTPS) {
        let connected = timeout(TUNNEL_TIMEOUT, to_proxy.call(proxy.uri().clone())).await;
        return match connected {
            Ok(Ok(stream)) => Ok(Box::new(stream)),
            Ok(Err(error)) => Err(ProxyFailed(Some(error)).into()),
            Err(_) => Err(ProxyFailed(None).into()),
        };
    }
    let mut tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
    if let Some(login) = proxy.basic_auth() {
        tunnel = tunnel.with_auth(login.clone());
    }
    let connecting = HttpsConnector::from((tunnel, tls)).call(uri);
    let connected = timeout(TUNNEL_TIMEOUT, connecting).await;
    Ok(Box::new(connected.map_err(|_| ProxyFailed(None))??))
}

/// Failure to reach a proxy; `None` if the proxy did not answer in time.
#[derive(Debug)]
pub(super) struct ProxyFailed(Option<ConnectError>);

impl fmt::Display for ProxyFailed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.0 {
            Some(_) => "cannot connect to the proxy",
            None => "the proxy did not answer in time",
        })
    }
}

impl Error for ProxyFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.as_deref().map(|error| error as &(dyn Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_without_a_proxy_that_can_be_used_is_refused_without_its_value() {
        let url = "https://upstream.invalid";
        for good in ["http://p:1", "p:1", "https://user:secret@p", "http://[::1]:1"] {
            assert_eq!(check(good, url), Ok(()), "{good}");
        }
        for (bad, reason) in [
            ("socks5://user:secret@p:1", "SOCKS is not supported"),
            ("ftp://user:secret@p:1", "expected the URL of a proxy"),
            ("http://", "expected the URL of a proxy"),
            ("user:secret@p q", "expected the URL of a proxy"),
        ] {
            let told = check(bad, url).unwrap_err();
            assert!(told.starts_with(reason) && !told.contains("secret"), "{bad}: {told}");
        }
    }

    #[test]
    fn this_machine_and_what_no_proxy_names_are_reached_directly() {
        let matcher = Matcher::builder()
            .all("http://user:secret@proxy:3128")
            .no("inside.example,10.0.0.0/8".to_owned())
            .build();
        let proxies = Proxies(Some(Arc::new(matcher)));
        for url in [
            "http://localhost:1",
            "https://a.localhost.",
            "http://127.0.0.2:1",
            "http://[::1]:1",
            "http://[::ffff:127.0.0.1]",
            "https://a.inside.example",
            "http://10.1.2.3",
        ] {
            assert_eq!(proxies.shown(url), None, "{url}");
        }
        for url in ["https://localhost.example", "http://192.168.1.1", "https://api.example/v1"] {
            assert_eq!(proxies.shown(url).as_deref(), Some("http://proxy:3128"), "{url}");
        }
        assert!(!format!("{proxies:?}").contains("secret"), "{proxies:?}");
        let of = |url: &str| proxies.login(&url.parse().unwrap());
        assert!(of("http://api.example").flatten().is_some_and(|login| login.is_sensitive()));
        assert_eq!(of("https://api.example"), None);
    }
}
