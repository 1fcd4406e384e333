//! Identifiers of an upstream and its model, stored in the signatures of thinking blocks.

use super::signature;
use crate::config::{Config, Upstream};
use crate::ids::hex_of_hash;

/// Number of hash digits that distinguish the upstreams of a configuration.
const MARK_DIGITS: usize = 8;

/// Identifiers of an upstream and its model, by which a thinking block names its origin.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Digits of a hash of the upstream's `url` and `base_path`, or of its name; empty if only one
    /// upstream is configured. Upstreams with the same URL and path share their reasoning.
    pub(crate) upstream: String,
    /// Identifier of the upstream together with the model, for blocks that a model has signed. A
    /// server with several models passes such blocks to any model, and the other models refuse
    /// them.
    pub(crate) model: String,
}

impl Marks {
    pub(crate) fn new(config: &Config, upstream: &Upstream, model: &str) -> Self {
        // Paths of one gateway can lead to different vendors.
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
