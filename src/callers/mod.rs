//! Check of the caller for a host without client keys: programs are served, but web pages of other
//! hosts that a browser shows are refused.
//!
//! A page of another host can send requests to Creole without asking for permission: by a form, by
//! `fetch` with a plain body, or by an image. Requests with a body carry the page's `Origin`; other
//! requests have a `Sec-Fetch-Site` header that reveals the page. A page whose DNS name was pointed
//! at this host (DNS rebinding) could read the answers too; its requests have that name in `Host`.
//! Only a local host, or a host with configured names, knows which names are right. If clients have
//! keys, a foreign page gets no answer, because a browser does not know the keys.

use std::net::IpAddr;

/// Error message for a request whose `Host` may be a name that a stranger registered.
pub const FOREIGN_HOST: &str =
    "Host: expected localhost or an IP address (or a name of --allow-host or ALLOWED_HOSTS)";

/// Error message for a request that a page of another host sent.
pub const FOREIGN_ORIGIN: &str = "Origin: web pages of other hosts are not answered here";

/// Error message for a request without `Origin` that a page of another host caused.
pub const FOREIGN_SITE: &str = "Sec-Fetch-Site: web pages of other hosts are not answered here";

/// Names of a host, by which requests of foreign web pages are recognized.
#[derive(Clone, Debug)]
pub struct Callers {
    /// True if the host can be reached only from this machine, or is treated so.
    local: bool,
    /// Additional names by which clients call the host: a proxy in front of the host keeps the
    /// `Host` header of the client.
    hosts: Vec<String>,
}

impl Callers {
    /// Returns the check for a host with the names `hosts`, with or without ports, and the names of
    /// every machine. A host that is not `local` may be called by any name.
    #[must_use]
    pub fn new(local: bool, hosts: &[String]) -> Self {
        Self { local, hosts: hosts.iter().map(|host| name(host)).collect() }
    }

    /// Returns the check for a local host that is configured by variables. `allowed` is the value
    /// of `ALLOWED_HOSTS`: names, separated by commas.
    #[must_use]
    pub fn of_variable(allowed: Option<&str>) -> Self {
        let hosts = allowed.unwrap_or_default().split(',').map(|host| name(host.trim()));
        Self { local: true, hosts: hosts.filter(|host| !host.is_empty()).collect() }
    }

    /// Returns the reason for which a request is refused, or `None`. `target` is the authority of
    /// the request's URL, or `:authority`. `headers` has at least `host`, `origin` and
    /// `sec-fetch-site`, with names in lower case; a value is `None` if it is not text.
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

    /// Returns true if the authority is an address, a name of this machine, or an allowed name.
    fn is_known(&self, authority: &str) -> bool {
        let name = name(authority);
        name == "localhost"
            || name.ends_with(".localhost")
            || name.parse::<IpAddr>().is_ok()
            || self.is_allowed(&name)
    }

    /// Returns true unless a stranger can register the authority's name and point it at this host.
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

/// Returns the host of `host:port`, in lower case.
fn name(authority: &str) -> String {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => authority.split(':').next(),
    };
    host.unwrap_or_default().trim_end_matches('.').to_ascii_lowercase()
}

/// Returns true if an authority can only mean this machine: `localhost`, or a loopback address.
#[must_use]
pub fn is_loopback(authority: &str) -> bool {
    let name = name(authority);
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests;
