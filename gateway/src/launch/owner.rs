//! Who listens at an address of this machine: on Linux its files say so.

use std::net::SocketAddrV4;

/// The first user that is a person's.
#[cfg(target_os = "linux")]
const FIRST_PERSON: u32 = 1000;

/// The users that systemd gives to services (`DynamicUser`).
#[cfg(target_os = "linux")]
const DYNAMIC: std::ops::RangeInclusive<u32> = 61184..=65519;

/// Whether another person's program listens there, as far as that is known. Services of the machine have users of
/// their own.
#[cfg(target_os = "linux")]
pub(super) fn is_of_another_person(address: SocketAddrV4) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(own) = std::fs::metadata("/proc/self").map(|own| own.uid()) else { return false };
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    let tables = [read("/proc/net/tcp"), read("/proc/net/tcp6")];
    let mut listeners = tables.iter().flat_map(|table| listeners(table, address));
    listeners.any(|user| user != own && user >= FIRST_PERSON && !DYNAMIC.contains(&user))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_of_another_person(_address: SocketAddrV4) -> bool {
    false
}

/// The users of the sockets that listen at an IPv4 address, in a table of the kernel.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn listeners(table: &str, address: SocketAddrV4) -> impl Iterator<Item = u32> {
    const LISTENS: &str = "0A";
    let own = u32::from_ne_bytes(address.ip().octets());
    let is_it = move |local: &str| {
        let Some((host, port)) = local.split_once(':') else { return false };
        let is_host = host.bytes().all(|letter| letter == b'0')
            || u32::from_str_radix(host, 16) == Ok(own)
            || host == format!("0000000000000000FFFF0000{own:08X}");
        is_host && u16::from_str_radix(port, 16) == Ok(address.port())
    };
    table.lines().skip(1).filter_map(move |line| {
        let mut columns = line.split_whitespace().skip(1);
        let is_there = is_it(columns.next()?);
        let is_listening = columns.nth(1)? == LISTENS;
        columns.nth(3)?.parse().ok().filter(|_| is_there && is_listening)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_a_listening_socket_is_read_from_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 1 1\n\
            1: 0100007F:2253 0100007F:9999 01 00000000:00000000 00:00000000 00000000  1002        0 2 1\n\
            2: 0100007F:2254 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1003        0 3 1\n\
            3: 00000000:2253 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4 1\n\
            short\n";
        let found = listeners(table, "127.0.0.1:8787".parse().unwrap());
        assert_eq!(found.collect::<Vec<_>>(), [1001, 0]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_listener_of_this_user_is_no_other_persons() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let Ok(std::net::SocketAddr::V4(address)) = listener.local_addr() else { panic!() };
        assert!(!is_of_another_person(address));
        let tables = std::fs::read_to_string("/proc/net/tcp").unwrap();
        assert_eq!(listeners(&tables, address).count(), 1);
    }
}
