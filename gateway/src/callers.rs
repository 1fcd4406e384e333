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
            // A page that came from here. Creole has no pages, so it is one of a proxy in front, or has a false name.
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
mod tests {
    use super::*;
    use hyper::Request;

    fn refused(callers: &Callers, headers: &[(&str, &str)]) -> Option<&'static str> {
        let mut request = Request::builder().uri("/v1/messages");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        callers.refuse(&request.body(()).unwrap().into_parts().0)
    }

    fn local(allowed: &[&str]) -> Callers {
        let allowed: Vec<String> = allowed.iter().map(|&name| name.to_owned()).collect();
        Callers::new(SocketAddr::from(([127, 0, 0, 1], 8787)), &allowed, false)
    }

    #[test]
    fn only_hosts_that_nobody_else_can_point_here_are_answered() {
        for host in [
            "localhost",
            "LOCALHOST:8787",
            "localhost.:8787",
            "127.0.0.1:8787",
            "192.168.1.5",
            "[::1]:8787",
            "[::1]",
            "model.localhost",
            "host.docker.internal:8787",
            "laptop:8787",
        ] {
            assert_eq!(refused(&local(&[]), &[("host", host)]), None, "{host}");
        }
        for host in
            ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "localhost.evil", "é.a"]
        {
            assert_eq!(refused(&local(&[]), &[("host", host)]), Some(FOREIGN_HOST), "{host}");
        }
        assert_eq!(refused(&local(&[]), &[]), None);
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(refused(&local(&[]), &two), Some(FOREIGN_HOST));
        assert_eq!(refused(&local(&["AI.example.com"]), &[("host", "ai.example.com:443")]), None);
    }

    #[test]
    fn only_pages_of_this_machine_are_answered() {
        for origin in [
            "http://localhost:3000",
            "https://127.0.0.1",
            "http://[::1]:1",
            "vscode-webview://1a2b",
            "chrome-extension://abc",
        ] {
            let sent = [("host", "localhost"), ("origin", origin)];
            assert_eq!(refused(&local(&[]), &sent), None, "{origin}");
        }
        for origin in [
            "null",
            "",
            "http://evil.example",
            "HTTP://evil.example",
            "http://6.6.6.6",
            "http://router",
            "http://localhost.evil.example",
        ] {
            let sent = [("host", "localhost"), ("origin", origin)];
            assert_eq!(refused(&local(&[]), &sent), Some(FOREIGN_ORIGIN), "{origin}");
        }
        let sent = [("host", "localhost"), ("origin", "https://chat.example.com")];
        assert_eq!(refused(&local(&["chat.example.com"]), &sent), None);
    }

    fn everywhere(allowed: &[&str]) -> Callers {
        let allowed: Vec<String> = allowed.iter().map(|&name| name.to_owned()).collect();
        Callers::new(SocketAddr::from(([0, 0, 0, 0], 8787)), &allowed, false)
    }

    #[test]
    fn an_address_that_others_reach_has_names_of_its_own() {
        let sent = [("host", "ai.example.com")];
        assert_eq!(refused(&everywhere(&[]), &sent), None);
        // As in a container that is published on a loopback address.
        assert_eq!(refused(&everywhere(&["localhost"]), &sent), Some(FOREIGN_HOST));
        assert_eq!(refused(&everywhere(&["ai.example.com"]), &sent), None);
    }

    /// As the container's command has it: `--allow-host localhost`.
    fn container(has_keys: bool) -> Callers {
        Callers::new(SocketAddr::from(([0, 0, 0, 0], 8787)), &["localhost".to_owned()], has_keys)
    }

    fn metrics(address: [u8; 4]) -> Callers {
        Callers::of_metrics(SocketAddr::from((address, 9787)), &["localhost".to_owned()])
    }

    #[test]
    fn where_clients_have_keys_proxies_and_clusters_use_any_name() {
        for host in ["ai.example.com", "creole.apps.svc.cluster.local:8787"] {
            let sent = [("host", host)];
            assert_eq!(refused(&container(true), &sent), None, "{host}");
            assert_eq!(refused(&container(false), &sent), Some(FOREIGN_HOST), "{host}");
        }
        let callers = Callers::new(SocketAddr::from(([127, 0, 0, 1], 8787)), &[], true);
        assert_eq!(refused(&callers, &[("host", "evil.example")]), Some(FOREIGN_HOST));
    }

    #[test]
    fn metrics_are_given_by_any_name_but_on_a_loopback_address() {
        let sent = [("host", "creole.apps.svc.cluster.local:9787")];
        assert_eq!(refused(&metrics([0, 0, 0, 0]), &sent), None);
        assert_eq!(refused(&metrics([127, 0, 0, 1]), &sent), Some(FOREIGN_HOST));
    }

    #[test]
    fn pages_of_other_hosts_are_refused_on_every_address() {
        let own = [local(&[]), everywhere(&[]), everywhere(&["localhost"])];
        for callers in own.into_iter().chain([container(true), metrics([0, 0, 0, 0])]) {
            for origin in ["http://evil.example", "null", "https://ai.example.com"] {
                let sent = [("host", "127.0.0.1:8787"), ("origin", origin)];
                assert_eq!(refused(&callers, &sent), Some(FOREIGN_ORIGIN), "{callers:?} {origin}");
            }
        }
        // Its name points here.
        let sent = [("host", "evil.example:8787"), ("origin", "http://evil.example:8787")];
        assert_eq!(refused(&everywhere(&[]), &sent), Some(FOREIGN_ORIGIN));
        let sent = [("host", "ai.example.com"), ("origin", "https://ai.example.com")];
        assert_eq!(refused(&everywhere(&["ai.example.com"]), &sent), None);
    }

    #[test]
    fn a_page_that_sends_no_origin_is_known_by_its_site() {
        for callers in [local(&[]), everywhere(&[])] {
            for site in ["cross-site", "same-site", "Cross-Site", "", "none, none"] {
                let sent = [("host", "127.0.0.1:8787"), ("sec-fetch-site", site)];
                assert_eq!(refused(&callers, &sent), Some(FOREIGN_SITE), "{site:?}");
            }
            for (host, refusal) in [
                ("127.0.0.1:8787", None),
                ("localhost", None),
                ("192.168.1.5:8787", None),
                ("wpad:8787", Some(FOREIGN_SITE)),
            ] {
                let sent = [("host", host), ("sec-fetch-site", "same-origin")];
                assert_eq!(refused(&callers, &sent), refusal, "{host}");
            }
            let sent = [("host", "127.0.0.1:8787"), ("sec-fetch-site", "none")];
            assert_eq!(refused(&callers, &sent), None);
            // A page of this machine says which one it is.
            let sent = [
                ("host", "127.0.0.1:8787"),
                ("origin", "http://localhost:3000"),
                ("sec-fetch-site", "cross-site"),
            ];
            assert_eq!(refused(&callers, &sent), None);
        }
        let two =
            [("host", "127.0.0.1"), ("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")];
        assert_eq!(refused(&local(&[]), &two), Some(FOREIGN_SITE));
        let sent = [("host", "evil.example"), ("sec-fetch-site", "same-origin")];
        assert_eq!(refused(&everywhere(&[]), &sent), Some(FOREIGN_SITE));
    }
}
