//! Documents that a host reads for upstreams which take no files.

use super::MILLISECONDS;
use crate::setting::{Bounds, keys};

keys! {
    /// PDFs in requests for upstreams that take no files (`file_parts: false`): the gateway puts
    /// their text in their place.
    pub ReadDocuments {
        /// Most pages of one document; what follows is left out, and the model is told so. 0: no
        /// document is read.
        pages_max: usize = 100, Bounds::Between(0, 10_000);
        /// Longest wait for all documents of a request, in milliseconds; a quarter of it for each.
        timeout_ms: u64 = 20_000, MILLISECONDS;
    }
}

impl ReadDocuments {
    /// Maximum text of one document, in bytes. What follows is left out, and the model is told so.
    pub const TEXT_BYTES_MAX: usize = 512 << 10;
}
