//! The client's lists of domains: what a search service is told of them, and which pages they
//! permit.
//!
//! An entry is a host, which covers its subdomains, with an optional path, which covers all paths
//! that begin with it. One `*` in the path stands for any characters.

use crate::model::search::SearchTool;
use crate::text::{domains, words};

/// Maximum number of domains in search terms, which services limit to some words.
const SITES_MAX: usize = 5;

/// Maximum number of domains in a list for a search service; services refuse longer lists.
const LISTED_MAX: usize = 150;

/// Maximum length of the URL of a result, in bytes.
const URL_BYTES_MAX: usize = 2048;

/// Returns the entries of a list for a search service, each up to its `*`.
pub(super) fn listed(domains: &[String]) -> impl Iterator<Item = &str> {
    domains.iter().take(LISTED_MAX).map(|domain| words::before(domain, b"*"))
}

/// Returns search terms with operators for the tool's domains.
pub(super) fn with_sites(query: &str, tool: &SearchTool) -> String {
    let mut terms = query.to_owned();
    let sites = listed(&tool.allowed_domains).take(SITES_MAX).map(|site| format!("site:{site}"));
    let sites: Vec<String> = sites.collect();
    if !sites.is_empty() {
        terms.push_str(&format!(" ({})", sites.join(" OR ")));
    }
    for site in listed(&tool.blocked_domains).take(SITES_MAX) {
        terms.push_str(&format!(" -site:{site}"));
    }
    terms
}

/// Place of a page on the web, as far as lists of domains know it.
pub(super) struct PagePlace<'u> {
    /// Host name in lower case, without a final dot.
    host: String,
    /// Path of the page, without the query.
    path: &'u str,
}

impl<'u> PagePlace<'u> {
    /// Returns the place of a page with an `http` or `https` URL; `None` for other URLs, and for
    /// URLs with white space, control characters or an encoded host.
    pub(super) fn of(url: &'u str) -> Option<Self> {
        let is_odd = |letter: char| letter.is_control() || letter.is_whitespace();
        if url.len() > URL_BYTES_MAX || url.contains(is_odd) {
            return None;
        }
        let rest = words::after_start(url, "https://");
        let rest = rest.or_else(|| words::after_start(url, "http://"))?;
        // Browsers read a backslash as a slash.
        let authority = words::before(rest, b"/?#\\");
        let host = words::rsplit_once(authority, b'@').map_or(authority, |(_, host)| host);
        let port = words::rsplit_once(host, b':');
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let host = port.filter(|(_, port)| is_port(port)).map_or(host, |(host, _)| host);
        let host = host.strip_suffix('.').unwrap_or(host).to_lowercase();
        if host.is_empty() || words::has_byte(&host, b'%') {
            return None;
        }
        let path = words::before(rest.get(authority.len()..).unwrap_or_default(), b"?#");
        Some(Self { host, path: if path.is_empty() { "/" } else { path } })
    }

    /// Returns true if the lists of the tool permit results from this place.
    pub(super) fn is_permitted(&self, tool: &SearchTool) -> bool {
        let covers = |entry: &String| self.is_covered(entry);
        (tool.allowed_domains.is_empty() || tool.allowed_domains.iter().any(covers))
            && !tool.blocked_domains.iter().any(covers)
    }

    fn is_covered(&self, entry: &str) -> bool {
        let host = words::before(entry, b"/");
        let path = entry.get(host.len()..).unwrap_or_default();
        if !domains::covers(host, &self.host) {
            return false;
        }
        let (start, later) = path.split_once('*').unwrap_or((path, ""));
        self.path.strip_prefix(start).is_some_and(|rest| words::has(rest, later))
    }
}
