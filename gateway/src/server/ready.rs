//! Address of the running server, as it is printed for people and scripts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Address of a gateway to which clients can connect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) address: SocketAddr,
    /// True if the page for browsers can be read at this address.
    pub(crate) has_page: bool,
}

impl Ready {
    /// Returns a paragraph with the address of the page; empty if the page is off.
    pub(crate) fn page(&self) -> String {
        let address = reachable(self.address);
        match self.has_page {
            true => format!("Open http://{address}/ in a browser to see what happens.\n\n"),
            false => String::new(),
        }
    }
}

pub(crate) fn listening(address: SocketAddr) -> String {
    format!("listening on http://{address}\n")
}

/// Returns the address at which this machine can reach a gateway, even if the gateway listens on
/// all addresses.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
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
        let page = |has_page| Ready { address: "0.0.0.0:1".parse().unwrap(), has_page }.page();
        assert_eq!(page(true), "Open http://127.0.0.1:1/ in a browser to see what happens.\n\n");
        assert_eq!(page(false), "");
    }
}
