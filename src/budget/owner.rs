//! Owners of requests.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::net::IpAddr;

/// A connection, a client key or an address, as a number that the host chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner(pub u64);

impl Owner {
    /// Returns the owner for a client key, by its name in the configuration.
    #[must_use]
    pub fn of_client_key(name: &str) -> Self {
        Self::hashed(("key", name))
    }

    /// Returns the owner for a connection, by a number that the host gave it.
    #[must_use]
    pub fn of_connection(number: u64) -> Self {
        Self::hashed(("connection", number))
    }

    /// Returns the owner for a client's address: of IPv6 for its network (/64), of which a client
    /// has all addresses.
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
