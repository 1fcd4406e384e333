//! Marks in signatures that tell which upstream and which model thought.

use super::signature;
use crate::config::{Config, Upstream};
use crate::ids::hex_of_hash;

/// Number of digits that tell the upstreams of one configuration apart.
const MARK_DIGITS: usize = 8;

/// Marks by which a thinking block says which upstream and which model thought.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Digits of a hash of the upstream's `url` and `base_path`, or of its name; nothing where
    /// there is only one. Entries that agree in both share their reasoning.
    pub(crate) upstream: String,
    /// The upstream's mark and the model, for blocks that a model signed: a server of several
    /// models gives them to any of these, and others refuse them.
    pub(crate) model: String,
}

impl Marks {
    pub(crate) fn new(config: &Config, upstream: &Upstream, model: &str) -> Self {
        // Behind one host, each path of a gateway can be another vendor.
        let place = match upstream.url.is_empty() {
            true => upstream.name.clone(),
            false => [&*upstream.url, &upstream.base_path].concat(),
        };
        let digits = || hex_of_hash(place.as_bytes()).chars().take(MARK_DIGITS).collect();
        let upstream = if config.upstreams.len() < 2 { String::new() } else { digits() };
        let model = [signature::MODEL, &upstream, ":", model].concat();
        Self { upstream, model }
    }
}
