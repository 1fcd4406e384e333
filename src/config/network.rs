//! Networks of IP addresses, and the check for public addresses.
//!
//! A server that a client or a page names may be called only at a public address. Other addresses
//! are in networks of the host's own machine or site, to which clients must not get access. Hosts
//! that resolve names call this check for images, pages and MCP servers alike.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::json::{Error, Reader, Writer};
use crate::setting::{Setting, ValueType};

/// IPv4 networks that are not public: the special-purpose registry of IANA, multicast, and reserved
/// networks.
const SPECIAL: [IpNetwork; 16] = [
    IpNetwork::v4([0, 0, 0, 0], 8),
    IpNetwork::v4([10, 0, 0, 0], 8),
    IpNetwork::v4([100, 64, 0, 0], 10),
    IpNetwork::v4([127, 0, 0, 0], 8),
    // Metadata of Azure's machines.
    IpNetwork::v4([168, 63, 129, 16], 32),
    IpNetwork::v4([169, 254, 0, 0], 16),
    IpNetwork::v4([172, 16, 0, 0], 12),
    IpNetwork::v4([192, 0, 0, 0], 24),
    IpNetwork::v4([192, 0, 2, 0], 24),
    IpNetwork::v4([192, 88, 99, 0], 24),
    IpNetwork::v4([192, 168, 0, 0], 16),
    IpNetwork::v4([198, 18, 0, 0], 15),
    IpNetwork::v4([198, 51, 100, 0], 24),
    IpNetwork::v4([203, 0, 113, 0], 24),
    IpNetwork::v4([224, 0, 0, 0], 4),
    IpNetwork::v4([240, 0, 0, 0], 4),
];

/// Range of the IPv6 addresses that can be public.
const PUBLIC: IpNetwork = IpNetwork::v6([0x2000, 0, 0], 3);

/// IPv6 networks that are not public, although they are within the public range.
const SPECIAL_OF_PUBLIC: [IpNetwork; 4] = [
    IpNetwork::v6([0x2001, 0, 0], 23),
    IpNetwork::v6([0x2001, 0xdb8, 0], 32),
    // An address of 6to4 contains an IPv4 address, which may be any address.
    IpNetwork::v6([0x2002, 0, 0], 16),
    IpNetwork::v6([0x3fff, 0, 0], 20),
];

/// Prefix of NAT64: such an IPv6 address contains an IPv4 address, to which an IPv6-only network
/// translates it.
const TRANSLATED: IpNetwork = IpNetwork::v6([0x64, 0xff9b, 0], 96);

/// Returns true if an address is public, which means the same server for everybody on the internet,
/// or is in one of the `private` networks.
#[must_use]
pub fn is_public(address: IpAddr, private: &[IpNetwork]) -> bool {
    let is_in = |networks: &[IpNetwork], address| networks.iter().any(|it| it.has(address));
    if is_in(private, address) {
        return true;
    }
    match address.to_canonical() {
        IpAddr::V6(translated) if TRANSLATED.has(translated.into()) => {
            let [.., a, b, c, d] = translated.octets();
            !is_in(&SPECIAL, Ipv4Addr::new(a, b, c, d).into())
        }
        IpAddr::V6(address) => {
            PUBLIC.has(address.into()) && !is_in(&SPECIAL_OF_PUBLIC, address.into())
        }
        address @ IpAddr::V4(_) => !is_in(&SPECIAL, address),
    }
}

/// Network of IP addresses (`10.20.0.0/16`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpNetwork {
    address: IpAddr,
    /// Number of leading bits that all addresses of the network have in common.
    prefix: u32,
}

impl IpNetwork {
    const fn v4(address: [u8; 4], prefix: u32) -> Self {
        let [a, b, c, d] = address;
        Self { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
    }

    /// Returns the IPv6 network whose addresses begin with these 16-bit numbers.
    const fn v6(first: [u16; 3], prefix: u32) -> Self {
        let [a, b, c] = first;
        Self { address: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), prefix }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, prefix) =
            text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().ok()?;
        if address != address.to_canonical() {
            return None;
        }
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = match prefix {
            Some(prefix) => Some(prefix).filter(is_number)?.parse().ok()?,
            None => bits,
        };
        (prefix <= bits).then_some(Self { address, prefix })
    }

    /// Returns true if the network has an address.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        let differing = match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros()
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros()
            }
            _ => return false,
        };
        differing >= self.prefix
    }
}

impl Setting for IpNetwork {
    const TYPE: ValueType = ValueType::Text;

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let text = reader.string()?.decode();
        let reason = "expected a network of IP addresses such as 10.20.0.0/16";
        Self::parse(&text).ok_or_else(|| Error::value(reason))
    }

    fn write(&self, json: &mut Writer<'_>) {
        json.text(&format!("{}/{}", self.address, self.prefix));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_the_operator_is_reached_like_a_public_one() {
        let networks = ["10.20.0.0/16", "fd00::/8"].map(|text| IpNetwork::parse(text).unwrap());
        for (address, is_reached) in [
            ("10.20.1.1", true),
            ("::ffff:10.20.1.1", true),
            ("fd12::1", true),
            ("10.21.0.0", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap(), &networks), is_reached, "{address}");
        }
        assert!(IpNetwork::parse("0.0.0.0/0").unwrap().has("9.9.9.9".parse().unwrap()));
    }

    #[test]
    fn only_addresses_that_everybody_reaches_are_public() {
        for address in
            ["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1"]
        {
            assert!(is_public(address.parse().unwrap(), &[]), "{address}");
            let address: Ipv4Addr = address.parse().unwrap();
            assert!(is_public(address.to_ipv6_mapped().into(), &[]), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            assert!(!is_public(address.parse().unwrap(), &[]), "{address}");
            let address: Ipv4Addr = address.parse().unwrap();
            assert!(!is_public(address.to_ipv6_mapped().into(), &[]), "{address}");
        }
        for address in
            ["2606:4700:4700::1111", "2a00:1450::1", "2001:4860:4860::8888", "64:ff9b::8.8.8.8"]
        {
            assert!(is_public(address.parse().unwrap(), &[]), "{address}");
        }
        for address in [
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap(), &[]), "{address}");
        }
    }
}
