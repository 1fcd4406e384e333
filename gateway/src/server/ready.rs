//! Address of the running server, as it is printed for people and scripts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Address of a gateway to which clients can connect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) address: SocketAddr,
    /// True if the page for browsers can be read at this address.
    pub(crate) has_page: bool,
    /// True if clients connect with TLS.
    pub(crate) is_tls: bool,
}

impl Ready {
    /// Returns the base URL at which this machine can reach the gateway.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme(), reachable(self.address))
    }

    /// Returns a paragraph with the address of the page; empty if the page is off.
    pub(crate) fn page(&self) -> String {
        match self.has_page {
            true => format!("Open {}/ in a browser to see what happens.\n\n", self.url()),
            false => String::new(),
        }
    }

    /// Returns the line for which scripts wait.
    pub(crate) fn listening(&self) -> String {
        format!("listening on {}://{}\n", self.scheme(), self.address)
    }

    fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }
}

/// Returns the address at which this machine can reach a gateway, even if the gateway listens on
/// all addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip().is_unspecified() {
        true => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port()),
        false => address,
    }
}

/// Returns true if only this machine can reach an address.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_means_all_is_shown_as_this_machine() {
        let shown = |address: &str| reachable(address.parse().unwrap()).to_string();
        assert_eq!(shown("0.0.0.0:1"), "127.0.0.1:1");
        assert_eq!(shown("[::]:1"), "127.0.0.1:1");
        assert_eq!(shown("192.168.1.5:1"), "192.168.1.5:1");
    }

    #[test]
    fn the_page_is_named_where_there_is_one() {
        let ready = |has_page, is_tls| {
            let address = "0.0.0.0:1".parse().unwrap();
            Ready { address, has_page, is_tls }
        };
        let page = "://127.0.0.1:1/ in a browser to see what happens.\n\n";
        assert_eq!(ready(true, false).page(), format!("Open http{page}"));
        assert_eq!(ready(true, true).page(), format!("Open https{page}"));
        assert_eq!(ready(false, false).page(), "");
        assert_eq!(ready(false, true).listening(), "listening on https://0.0.0.0:1\n");
    }
}
