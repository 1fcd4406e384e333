//! Check that an upstream is on this machine, or in a private network.

use std::net::IpAddr;

use creole::config::Address;

/// Endings of host names that no public server has.
const PRIVATE_ENDS: [&str; 6] =
    [".localhost", ".local", ".internal", ".lan", ".home.arpa", ".localdomain"];

/// Returns true if a URL leads to this machine or a private network. Only then a URL without TLS
/// may be suggested, because a key would go to a public server in clear text.
pub(crate) fn is_in_private_network(url: &str) -> bool {
    let Ok(Address { authority, .. }) = Address::parse(url) else { return false };
    let host = match authority.strip_prefix('[') {
        Some(inside) => inside.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    if let Ok(address) = host.parse::<IpAddr>() {
        return is_private(address.to_canonical());
    }
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    // A host name without a dot belongs to this machine, or to one of its containers.
    !host.is_empty() && (!host.contains('.') || PRIVATE_ENDS.iter().any(|end| host.ends_with(end)))
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let shared = matches!(address.octets(), [100, 64..=127, _, _]);
            address.is_loopback() || address.is_private() || address.is_link_local() || shared
        }
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_in_private_network;

    #[test]
    fn loopback_and_private_hosts_are_near_and_public_ones_are_not() {
        for host in [
            "localhost:1",
            "ollama:11434",
            "127.0.0.1:8",
            "192.168.1.9",
            "10.0.0.1",
            "100.64.0.1",
            "[::1]:8000",
            "[fd00::1]",
            "box.local",
            "host.docker.internal:1",
        ] {
            assert!(is_in_private_network(&format!("https://{host}")), "{host}");
        }
        for host in
            ["api.openai.com", "8.8.8.8:443", "[2606:4700::1]", "local.example", "100.1.1.1"]
        {
            assert!(!is_in_private_network(&format!("https://{host}")), "{host}");
        }
    }
}
