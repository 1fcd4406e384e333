//! Check of callers against foreign web pages: the core's [`creole::callers`], applied to the
//! address at which the gateway listens.

use std::net::SocketAddr;

use hyper::http::request::Parts;

#[derive(Debug)]
pub(crate) struct Callers(creole::callers::Callers);

impl Callers {
    /// Returns the check of callers for the address at which clients connect. If `has_keys` is
    /// true, clients have keys, and proxies and clusters may call the address by any name.
    pub(crate) fn new(address: SocketAddr, hosts: &[String], has_keys: bool) -> Self {
        let is_loopback = address.ip().to_canonical().is_loopback();
        let local = is_loopback || (!hosts.is_empty() && !has_keys);
        Self(creole::callers::Callers::new(local, hosts))
    }

    /// Returns the check of callers for the address of the metrics. `hosts` are the names of the
    /// address of clients; programs that collect metrics may use other names.
    pub(crate) fn of_metrics(address: SocketAddr, hosts: &[String]) -> Self {
        let local = address.ip().to_canonical().is_loopback();
        Self(creole::callers::Callers::new(local, hosts))
    }

    /// Returns the reason for which a request is refused, or `None` if it is served.
    pub(crate) fn refuse(&self, head: &Parts) -> Option<&'static str> {
        let headers = head.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().ok()));
        self.0.refuse(head.uri.authority().map(|authority| authority.as_str()), headers)
    }
}

#[cfg(test)]
mod tests;
