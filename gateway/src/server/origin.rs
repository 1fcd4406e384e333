//! Rules for who may speak to a gateway: the core's [`creole::callers`], by the address that the
//! gateway listens at.

use std::net::SocketAddr;

use hyper::http::request::Parts;

#[derive(Debug)]
pub(crate) struct Callers(creole::callers::Callers);

impl Callers {
    /// Makes the rules of an address where clients ask. `has_keys`: clients have keys; proxies and
    /// clusters then call the address by any name.
    pub(crate) fn new(address: SocketAddr, hosts: &[String], has_keys: bool) -> Self {
        let is_loopback = address.ip().to_canonical().is_loopback();
        let local = is_loopback || (!hosts.is_empty() && !has_keys);
        Self(creole::callers::Callers::new(local, hosts))
    }

    /// Makes the rules of an address that has only metrics. `hosts` are the names that clients use
    /// for the other address: who collects metrics uses names of its own.
    pub(crate) fn of_metrics(address: SocketAddr, hosts: &[String]) -> Self {
        let local = address.ip().to_canonical().is_loopback();
        Self(creole::callers::Callers::new(local, hosts))
    }

    /// Returns why a request is not answered, or `None` if it is answered.
    pub(crate) fn refuse(&self, head: &Parts) -> Option<&'static str> {
        let headers = head.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().ok()));
        self.0.refuse(head.uri.authority().map(|authority| authority.as_str()), headers)
    }
}

#[cfg(test)]
mod tests;
