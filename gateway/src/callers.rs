//! Who may speak to a gateway: programs, not the web pages that a browser near it shows.
//!
//! A page of another host can send requests here without asking for permission: a form, `fetch` with a
//! plain body, an image. Those that send something have its `Origin`; the others say by `Sec-Fetch-Site` that a page is
//! behind them. A page whose name was made to point here (DNS rebinding) reads the answers too; its requests have that
//! name as their `Host`. Only a loopback address, or one with names of its own, knows which names are right. Where
//! clients have keys, such a page gets nothing, because a browser does not know them.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::http::request::Parts;

const FOREIGN_HOST: &str = "Host: expected localhost or an IP address (or a name of --allow-host)";
const FOREIGN_ORIGIN: &str = "Origin: web pages of other hosts are not answered here";
const FOREIGN_SITE: &str = "Sec-Fetch-Site: web pages of other hosts are not answered here";

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

#[derive(Debug)]
pub(crate) struct Callers {
    /// The address is one that only this machine reaches, or is to be taken for one.
    local: bool,
    /// Other names that it is called by: a proxy in front keeps the client's `Host`.
    hosts: Vec<String>,
}

impl Callers {
    /// Of an address where clients ask; `has_keys`: they have keys. Proxies and clusters then call it by any name.
    pub(crate) fn new(address: SocketAddr, hosts: &[String], has_keys: bool) -> Self {
        let is_loopback = address.ip().to_canonical().is_loopback();
        let local = is_loopback || (!hosts.is_empty() && !has_keys);
        let hosts = hosts.iter().map(|host| name(host)).collect();
        Self { local, hosts }
    }

    /// Of an address that has only metrics. `hosts` are the names that clients use for the other address: who collects
    /// metrics uses names of its own.
    pub(crate) fn of_metrics(address: SocketAddr, hosts: &[String]) -> Self {
        Self {
            local: address.ip().to_canonical().is_loopback(),
            ..Self::new(address, hosts, false)
        }
    }

    /// Why this request is not answered.
    pub(crate) fn refuse(&self, head: &Parts) -> Option<&'static str> {
        let text = |value: &HeaderValue| value.to_str().map(str::to_owned).ok();
        let target = head.uri.authority().map(|authority| Some(authority.as_str().to_owned()));
        let hosts: Vec<Option<String>> =
            head.headers.get_all(HOST).iter().map(text).chain(target).collect();
        let is_any =
            |is: &dyn Fn(&str) -> bool| hosts.iter().any(|host| !host.as_deref().is_some_and(is));
        if self.local && is_any(&|host| self.is_host(host)) {
            return Some(FOREIGN_HOST);
        }
        let mut origins = head.headers.get_all(ORIGIN).iter().map(text).peekable();
        if origins.peek().is_some() {
            let is_foreign = origins.any(|origin| !origin.is_some_and(|it| self.is_origin(&it)));
            return is_foreign.then_some(FOREIGN_ORIGIN);
        }
        let mut sites = head.headers.get_all(SITE).iter();
        let is_foreign = sites.any(|site| match site.as_bytes() {
            // A person typed the address, or a program that looks like a browser asks.
            b"none" => false,
            // A page that came from here: Creole's own, one of a proxy in front, or one with a false name.
            b"same-origin" => is_any(&|host| self.is_known(host)),
            _ => true,
        });
        is_foreign.then_some(FOREIGN_SITE)
    }

    /// Whether a host is an address, or a name that is this machine's or was allowed.
    fn is_known(&self, authority: &str) -> bool {
        let name = name(authority);
        name == "localhost"
            || name.ends_with(".localhost")
            || name.parse::<IpAddr>().is_ok()
            || self.is_allowed(&name)
    }

    /// Not a name that a stranger can register, and point here.
    fn is_host(&self, authority: &str) -> bool {
        let name = name(authority);
        // As containers call the machine that they run on: host.docker.internal.
        let private =
            !name.contains('.') || name.ends_with(".localhost") || name.ends_with(".internal");
        private || name.parse::<IpAddr>().is_ok() || self.is_allowed(&name)
    }

    fn is_origin(&self, origin: &str) -> bool {
        // `null` is a page that hides where it comes from.
        let Some((scheme, authority)) = origin.split_once("://") else { return false };
        // Editors and extensions of browsers, which someone installed.
        if !["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web)) {
            return true;
        }
        let name = name(authority);
        let local = name == "localhost" || name.ends_with(".localhost");
        local
            || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            || self.is_allowed(&name)
    }

    fn is_allowed(&self, name: &str) -> bool {
        self.hosts.iter().any(|host| host == name)
    }
}

/// The host of `host:port`, in small letters.
fn name(authority: &str) -> String {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => authority.split(':').next(),
    };
    host.unwrap_or_default().trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
