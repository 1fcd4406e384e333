//! Check for public IP addresses: URLs that clients name may be fetched only from these.
//!
//! Addresses that are not public are in networks of the gateway's own machine or site, to which
//! clients must not get access.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 networks that are not public, with the length of their prefixes: the special-purpose
/// registry of IANA, multicast, and reserved networks.
const SPECIAL: [(Ipv4Addr, u32); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Metadata of Azure's machines.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// IPv6 networks that are not public, although they are within the public range `2000::/3`.
const SPECIAL_OF_PUBLIC: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // An address of 6to4 contains an IPv4 address, which may be any address.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

const PUBLIC: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Prefix of NAT64: such an IPv6 address contains an IPv4 address, to which an IPv6-only network
/// translates it.
const TRANSLATED: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Returns true if an address is public: the same server for everybody on the internet.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) if is_in(address, TRANSLATED) => {
            let [.., a, b, c, d] = address.octets();
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        IpAddr::V6(address) => {
            is_in(address, PUBLIC)
                && !SPECIAL_OF_PUBLIC.iter().any(|network| is_in(address, *network))
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL.iter().any(|(network, prefix)| {
        let differs = address.to_bits() ^ network.to_bits();
        differs.leading_zeros() >= *prefix
    })
}

fn is_in(address: Ipv6Addr, (network, prefix): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ network.to_bits()).leading_zeros() >= prefix
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_everybody_reaches_are_public() {
        for address in
            ["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
            let address: Ipv4Addr = address.parse().unwrap();
            assert!(is_public(address.to_ipv6_mapped().into()), "{address}");
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
            assert!(!is_public(address.parse().unwrap()), "{address}");
            let address: Ipv4Addr = address.parse().unwrap();
            assert!(!is_public(address.to_ipv6_mapped().into()), "{address}");
        }
        for address in
            ["2606:4700:4700::1111", "2a00:1450::1", "2001:4860:4860::8888", "64:ff9b::8.8.8.8"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
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
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
