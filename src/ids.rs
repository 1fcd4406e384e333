//! Ids that Creole generates from a seed of the host: the core has no source of randomness.

use sha2::{Digest, Sha256};

/// Number of digits of a judged call's id: short enough to be copied without a mistake, with 56
/// billion possible values.
const JUDGED_DIGITS: usize = 6;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Generator of the ids of one exchange. The same seed gives the same ids on every host.
#[derive(Clone, Copy, Debug)]
pub struct Ids {
    seed: u128,
}

impl Ids {
    /// Creates the generator for one exchange. `seed` must differ for each exchange, on all
    /// replicas together.
    #[must_use]
    pub fn new(seed: u128) -> Self {
        Self { seed }
    }

    /// Returns `req_…`, the id of the exchange.
    #[must_use]
    pub fn request(&self) -> String {
        format!("req_{}", self.digits(b'r', 0))
    }

    /// Returns `msg_…`, the id of the answer. The upstream's id is never used: some upstreams
    /// repeat an id, and clients merge messages with equal ids.
    #[must_use]
    pub fn message(&self) -> String {
        format!("msg_{}", self.digits(b'm', 0))
    }

    /// Returns `call_…`, an id for a tool call to which the upstream gave none. `position` is the
    /// number of the call in the answer.
    #[must_use]
    pub fn call(&self, position: u32) -> String {
        format!("call_{}", self.digits(b'c', position))
    }

    /// Returns `srvtoolu_…`, the id of a web search that the upstream ran. `position` is the number
    /// of the search in the answer.
    #[must_use]
    pub fn search(&self, position: u32) -> String {
        format!("srvtoolu_{}", self.digits(b's', position))
    }

    /// Returns the id by which a judge knows the call at this `position`. The model that makes the
    /// call cannot know that id, and so cannot forge a verdict in the call.
    #[must_use]
    pub fn judged(&self, position: u32) -> String {
        let mut id = self.digits(b'j', position);
        id.truncate(JUDGED_DIGITS);
        id
    }

    /// Returns `mcptoolu_…`, the id of an MCP tool call that the upstream ran. `position` is the
    /// number of the call in the answer.
    #[must_use]
    pub fn mcp_call(&self, position: u32) -> String {
        format!("mcptoolu_{}", self.digits(b'x', position))
    }

    /// Returns a secret number for hashing, which nobody outside can know.
    #[must_use]
    pub fn secret(&self) -> u64 {
        let hash = Sha256::new().chain_update(b"secret").chain_update(self.seed.to_be_bytes());
        hash.finalize().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn digits(&self, purpose: u8, position: u32) -> String {
        let about = u128::from(purpose) << 32 | u128::from(position);
        let high = scrambled(scrambled(self.seed) ^ about);
        base62([high, scrambled(high)].map(u128::to_be_bytes).as_flattened(), 24)
    }
}

/// Returns a pseudo-random permutation of `number`, by four rounds of a Feistel network. The
/// function is reversible, which does no harm here, and saves ten thousand instructions against
/// SHA-256.
fn scrambled(number: u128) -> u128 {
    let (mut left, mut right) = ((number >> 64) as u64, number as u64);
    for round in 1..=4u64 {
        // Finalizer of SplitMix64.
        let mut word = right.wrapping_add(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (left, right) = (right, left ^ word ^ (word >> 31));
    }
    u128::from(left) << 64 | u128::from(right)
}

/// Returns the lowest `digits` base-62 digits of the SHA-256 of `data`, least significant first.
#[must_use]
pub fn base62_of_hash(data: &[u8], digits: usize) -> String {
    let hash: [u8; 32] = Sha256::digest(data).into();
    base62(&hash, digits)
}

/// Value of 62 to the fifth power, which fits in 32 bits, to produce five digits per division. One
/// division per digit would slow down an answer of 1 kB by 4 %.
const FIVE_DIGITS: u64 = 916_132_832;

/// Returns the lowest base-62 digits of a 256-bit number, least significant first. `bytes` is in
/// big-endian order.
fn base62(bytes: &[u8], digits: usize) -> String {
    let (words, _) = bytes.as_chunks::<4>();
    let mut number = [0u32; 8];
    for (place, word) in number.iter_mut().zip(words) {
        *place = u32::from_be_bytes(*word);
    }
    let mut text = String::with_capacity(digits);
    let mut five = 0u32;
    for place in 0..digits {
        if place % 5 == 0 {
            // A step of long division, from the most significant word, gives five digits.
            let mut rest = 0u64;
            for word in &mut number {
                let value = (rest << 32) | u64::from(*word);
                *word = (value / FIVE_DIGITS) as u32;
                rest = value % FIVE_DIGITS;
            }
            five = rest as u32;
        }
        text.push(BASE62.get((five % 62) as usize).copied().map_or('0', char::from));
        five /= 62;
    }
    text
}

/// Returns the SHA-256 of `data` as 64 lower-case hexadecimal digits.
#[must_use]
pub fn hex_of_hash(data: &[u8]) -> String {
    let hash: [u8; 32] = Sha256::digest(data).into();
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    hash.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests;
