//! Owner of a request's memory: a connection, a client key or an address.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::net::IpAddr;

/// Owner of requests: a connection, a client key or an address, hashed to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner(pub u64);

impl Owner {
    /// Returns the owner for a client key, by the key's name in the configuration.
    #[must_use]
    pub fn of_client_key(name: &str) -> Self {
        Self::hashed(("key", name))
    }

    /// Returns the owner to whom the memory of a connection's requests is counted. `number`: the
    /// host's number of the connection.
    #[must_use]
    pub fn of_connection(number: u64) -> Self {
        Self::hashed(("connection", number))
    }

    /// Returns the owner for a client's address. IPv6 addresses of one /64 network are one owner,
    /// because a client can use all of them.
    #[must_use]
    pub fn of_address(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::hashed(("address", address.octets())),
            IpAddr::V6(address) => Self::hashed(("network", address.to_bits() >> 64)),
        }
    }

    /// Returns the owner for a credential that only the upstream can check.
    #[must_use]
    pub fn of_credential(credential: &str) -> Self {
        Self::hashed(("credential", credential))
    }

    fn hashed(owner: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        owner.hash(&mut hasher);
        Self(hasher.finish())
    }
}
