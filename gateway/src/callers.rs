//! Who may speak to a gateway that listens on a loopback address: programs of this machine, not the web
//! pages that its browser shows.
//!
//! A page of another host can send requests here without asking for permission (a form, `fetch` with a
//! plain body); they have its `Origin`. One whose name was made to point here (DNS rebinding) reads the
//! answers too; its requests have that name as their `Host`.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{HOST, HeaderValue, ORIGIN};
use hyper::http::request::Parts;

const FOREIGN_HOST: &str = "Host: expected localhost or an IP address (or a name of --allow-host)";
const FOREIGN_ORIGIN: &str = "Origin: web pages of other hosts are not answered here";

#[derive(Debug)]
pub(crate) struct Callers {
    /// The address is one that only this machine reaches, or is to be taken for one.
    local: bool,
    /// Other names that it is called by: a proxy in front keeps the client's `Host`.
    hosts: Vec<String>,
}

impl Callers {
    pub(crate) fn new(address: SocketAddr, hosts: &[String]) -> Self {
        let local = address.ip().is_loopback() || !hosts.is_empty();
        let hosts = hosts.iter().map(|host| name(host)).collect();
        Self { local, hosts }
    }

    /// Why this request is not answered.
    pub(crate) fn refuse(&self, head: &Parts) -> Option<&'static str> {
        if !self.local {
            return None;
        }
        let text = |value: &HeaderValue| value.to_str().map(str::to_owned).ok();
        let target = head.uri.authority().map(|authority| Some(authority.as_str().to_owned()));
        let mut hosts = head.headers.get_all(HOST).iter().map(text).chain(target);
        if hosts.any(|host| !host.is_some_and(|host| self.is_host(&host))) {
            return Some(FOREIGN_HOST);
        }
        let mut origins = head.headers.get_all(ORIGIN).iter().map(text);
        if origins.any(|origin| !origin.is_some_and(|origin| self.is_origin(&origin))) {
            return Some(FOREIGN_ORIGIN);
        }
        None
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
        Callers::new(SocketAddr::from(([127, 0, 0, 1], 8787)), &allowed)
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

    #[test]
    fn an_address_that_others_reach_has_names_of_its_own() {
        let callers = Callers::new(SocketAddr::from(([0, 0, 0, 0], 8787)), &[]);
        let sent = [("host", "ai.example.com"), ("origin", "https://chat.example.com")];
        assert_eq!(refused(&callers, &sent), None);
        // As in a container that is published on a loopback address.
        let named = Callers::new(SocketAddr::from(([0, 0, 0, 0], 8787)), &["localhost".to_owned()]);
        assert_eq!(refused(&named, &sent), Some(FOREIGN_HOST));
    }
}
