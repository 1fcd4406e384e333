//! The callers that a host without client keys answers: programs, not the web pages that a browser
//! near it shows.
//!
//! A page of another host can send requests here without asking for permission: a form, `fetch`
//! with a plain body, an image. Requests that send something have its `Origin`; the others say by
//! `Sec-Fetch-Site` that a page is behind them. A page whose name was made to point here (DNS
//! rebinding) reads the answers too; its requests have that name as their `Host`. Only a local
//! host, or one with names of its own, knows which names are right. Where clients have keys, such a
//! page gets nothing, because a browser does not know them.

use std::net::IpAddr;

/// Refusal of a request to a name that may be a stranger's.
pub const FOREIGN_HOST: &str =
    "Host: expected localhost or an IP address (or a name of --allow-host or ALLOWED_HOSTS)";

/// Refusal of a request that a page of another host sent.
pub const FOREIGN_ORIGIN: &str = "Origin: web pages of other hosts are not answered here";

/// Refusal of a request that a page of another host caused without an `Origin`.
pub const FOREIGN_SITE: &str = "Sec-Fetch-Site: web pages of other hosts are not answered here";

/// Names of a host, by which it knows the requests of foreign web pages.
#[derive(Clone, Debug)]
pub struct Callers {
    /// The host is reached from this machine alone, or is to be taken for one.
    local: bool,
    /// Other names that clients call the host by: a proxy in front keeps the client's `Host`.
    hosts: Vec<String>,
}

impl Callers {
    /// Names `hosts`, with or without ports, as the host's own beside those of every machine. A
    /// host that is not `local` may be called by any name.
    #[must_use]
    pub fn new(local: bool, hosts: &[String]) -> Self {
        Self { local, hosts: hosts.iter().map(|host| name(host)).collect() }
    }

    /// Makes the callers of a local host that has variables. `allowed` is the value of
    /// `ALLOWED_HOSTS`: names between commas.
    #[must_use]
    pub fn of_variable(allowed: Option<&str>) -> Self {
        let hosts = allowed.unwrap_or_default().split(',').map(|host| name(host.trim()));
        Self { local: true, hosts: hosts.filter(|host| !host.is_empty()).collect() }
    }

    /// Returns why a request is not answered. `target` is the authority of its URL, or
    /// `:authority`. `headers` are the names in lower case and values of at least `host`, `origin`
    /// and `sec-fetch-site`; `None` is a value that is no text.
    #[must_use]
    pub fn refuse<'h>(
        &self,
        target: Option<&'h str>,
        headers: impl IntoIterator<Item = (&'h str, Option<&'h str>)>,
    ) -> Option<&'static str> {
        let mut hosts: Vec<Option<&str>> = target.map(Some).into_iter().collect();
        let (mut origins, mut sites) = (Vec::new(), Vec::new());
        for (name, value) in headers {
            match name {
                "host" => hosts.push(value),
                "origin" => origins.push(value),
                "sec-fetch-site" => sites.push(value),
                _ => {}
            }
        }
        let is_any = |is: &dyn Fn(&str) -> bool| hosts.iter().any(|host| !host.is_some_and(is));
        if self.local && is_any(&|host| self.is_host(host)) {
            return Some(FOREIGN_HOST);
        }
        if !origins.is_empty() {
            let is_own = |origin: &Option<&str>| origin.is_some_and(|it| self.is_origin(it));
            return (!origins.iter().all(is_own)).then_some(FOREIGN_ORIGIN);
        }
        let is_foreign = sites.iter().any(|site| match site {
            // A person typed the address, or a program that looks like a browser asks.
            Some("none") => false,
            // A page that came from here: Creole's own, one of a proxy in front, or one with a
            // false name.
            Some("same-origin") => is_any(&|host| self.is_known(host)),
            _ => true,
        });
        is_foreign.then_some(FOREIGN_SITE)
    }

    /// Returns true for an address, and for a name that is this machine's or was allowed.
    fn is_known(&self, authority: &str) -> bool {
        let name = name(authority);
        name == "localhost"
            || name.ends_with(".localhost")
            || name.parse::<IpAddr>().is_ok()
            || self.is_allowed(&name)
    }

    /// Returns true unless a stranger can register the name, and point it here.
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
        is_loopback(authority) || self.is_allowed(&name(authority))
    }

    fn is_allowed(&self, name: &str) -> bool {
        self.hosts.iter().any(|host| host == name)
    }
}

/// Returns the host of `host:port`, in small letters.
fn name(authority: &str) -> String {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => authority.split(':').next(),
    };
    host.unwrap_or_default().trim_end_matches('.').to_ascii_lowercase()
}

/// Returns true for an authority of this machine alone: `localhost`, or a loopback address.
#[must_use]
pub fn is_loopback(authority: &str) -> bool {
    let name = name(authority);
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests;
