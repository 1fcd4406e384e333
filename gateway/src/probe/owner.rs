//! Owner of a model server on this machine that was found by a search. A server of another user
//! would read every prompt, so it must not be used.
//!
//! Linux lists its listening sockets with their users in `/proc/net`. Other systems have no such
//! file.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use creole::config::Address;

/// Lowest user id of a person; lower ids belong to services.
const FIRST_PERSON: u32 = 1000;

/// Range of user ids that systemd gives to services (`DynamicUser`).
const DYNAMIC: std::ops::RangeInclusive<u32> = 61184..=65519;

/// Message for a server that was found but is not used, because another user runs it.
pub(crate) const ANOTHER_PERSONS: &str =
    "another user of this machine runs it; its URL in a flag takes it all the same";

/// Owner of a model server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerOwner {
    /// Owner whose server may be used: this user, a service of the machine, or another machine.
    Usable,
    /// Owner whose server must not be used: another person with an account on this machine.
    AnotherPersons,
    /// Unknown owner, because no listening socket is known at the address.
    Unknown,
}

/// Returns the owner of the server at a URL without a path that was found by a search.
pub(crate) fn owner_of(url: &str) -> ServerOwner {
    let Ok(Address { authority, .. }) = Address::parse(url) else { return ServerOwner::Unknown };
    match authority.parse() {
        Ok(address) if is_of_this_machine(address) => of_listeners(address),
        _ => ServerOwner::Usable,
    }
}

/// Returns a line for the user about a server whose owner is unknown.
pub(crate) fn unknown(url: &str) -> String {
    format!("{url}: this system does not tell which user runs it; --upstream names another server")
}

fn is_of_this_machine(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

#[cfg(target_os = "linux")]
fn of_listeners(address: SocketAddr) -> ServerOwner {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(own) = std::fs::metadata("/proc/self").map(|own| own.uid()) else {
        return ServerOwner::Unknown;
    };
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    let tables = [read("/proc/net/tcp"), read("/proc/net/tcp6")];
    of_users(tables.iter().flat_map(|table| listeners(table, address)), own)
}

#[cfg(not(target_os = "linux"))]
fn of_listeners(_address: SocketAddr) -> ServerOwner {
    ServerOwner::Unknown
}

/// Returns the owner from the users of all sockets that listen at an address. `own` is the id of
/// this user.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn of_users(users: impl Iterator<Item = u32>, own: u32) -> ServerOwner {
    let mut whose = ServerOwner::Unknown;
    for user in users {
        if user != own && user >= FIRST_PERSON && !DYNAMIC.contains(&user) {
            return ServerOwner::AnotherPersons;
        }
        whose = ServerOwner::Usable;
    }
    whose
}

/// Returns the users of the sockets that listen at an address, read from a table of the kernel.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn listeners(table: &str, address: SocketAddr) -> impl Iterator<Item = u32> {
    const LISTENS: &str = "0A";
    let wanted = address.ip().to_canonical();
    let is_it = move |local: &str| {
        let Some((host, port)) = local.split_once(':') else { return false };
        let is_host = ip(host).is_some_and(|host| host == wanted || host.is_unspecified());
        is_host && u16::from_str_radix(port, 16) == Ok(address.port())
    };
    table.lines().skip(1).filter_map(move |line| {
        let mut columns = line.split_whitespace().skip(1);
        let is_there = is_it(columns.next()?);
        let is_listening = columns.nth(1)? == LISTENS;
        columns.nth(3)?.parse().ok().filter(|_| is_there && is_listening)
    })
}

/// Reads an IP address from a table of the kernel: hexadecimal words of 32 bits, in the machine's
/// byte order.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn ip(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = text.get(at.checked_mul(8)?..at.checked_add(1)?.checked_mul(8)?)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    match text.len() {
        8 => Some(IpAddr::from(word(0)?)),
        32 => {
            let bytes = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes: [u8; 16] = bytes.as_flattened().try_into().ok()?;
            Some(IpAddr::from(Ipv6Addr::from(bytes)).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    fn users(lines: &str, address: &str) -> Vec<u32> {
        listeners(&[HEAD, lines].concat(), address.parse().unwrap()).collect()
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_user_of_a_listening_socket_is_read_from_the_kernels_table() {
        let table = "0: 0100007F:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 1 1\n\
            1: 0100007F:2253 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1002        0 2 1\n\
            2: 0100007F:2254 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1003        0 3 1\n\
            3: 00000000:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4 1\n\
            short\n";
        assert_eq!(users(table, "127.0.0.1:8787"), [1001, 0]);
        assert_eq!(users(table, "[::1]:8787"), [0]);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn sockets_of_ipv6_count_where_they_take_the_address() {
        let rest =
            "00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000";
        let line = |host: &str, user: u32| format!("0: {host}:1F40 {rest} {user} 0 1 1\n");
        let table = [
            line("00000000000000000000000001000000", 1001),
            line("00000000000000000000000000000000", 1002),
            line("0000000000000000FFFF00000100007F", 1003),
            line("000080FE000000000000000001000000", 1004),
        ]
        .concat();
        assert_eq!(users(&table, "[::1]:8000"), [1001, 1002]);
        assert_eq!(users(&table, "127.0.0.1:8000"), [1002, 1003]);
    }

    #[test]
    fn another_person_is_neither_this_user_nor_a_service() {
        let of = |users: &[u32]| of_users(users.iter().copied(), 1000);
        assert_eq!(of(&[]), ServerOwner::Unknown);
        for own in [0, 999, 1000, 61184, 65519] {
            assert_eq!(of(&[own]), ServerOwner::Usable, "{own}");
        }
        for other in [1001, 61183, 65520, 65534] {
            assert_eq!(of(&[1000, other]), ServerOwner::AnotherPersons, "{other}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_listener_of_this_user_is_no_other_persons() {
        for own in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            // A machine without IPv6 cannot listen at an IPv6 address.
            let Ok(listener) = std::net::TcpListener::bind(own) else { continue };
            let port = listener.local_addr().unwrap().port();
            let host = if own.contains("::1") { "[::1]" } else { "127.0.0.1" };
            assert_eq!(owner_of(&format!("http://{host}:{port}")), ServerOwner::Usable, "{own}");
        }
        assert_eq!(owner_of("https://api.openai.com"), ServerOwner::Usable);
        assert_eq!(owner_of("http://127.0.0.1:8000/v1"), ServerOwner::Unknown, "a path");
    }
}
