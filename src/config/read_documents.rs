//! Documents that a host reads for upstreams which take no files.

use super::{BYTES, MILLISECONDS};
use crate::setting::{Bounds, keys};

keys! {
    /// PDFs in requests for upstreams that take no files (`file_parts: false`): the gateway puts their text in their
    /// place.
    pub ReadDocuments {
        /// Most pages of one document; what follows is left out, and the model is told so. 0: no document is read.
        pages_max: usize = 100, Bounds::Between(0, 10_000);
        /// Most documents of one request; of more, the newest are read, and the model is told so.
        count_max: u32 = 100, Bounds::Between(1, 1000);
        /// Most text of one document, in bytes; what follows is left out, and the model is told so.
        text_bytes_max: usize = 512 << 10, BYTES;
        /// Longest wait for all documents of a request, in milliseconds; a quarter of it for each.
        timeout_ms: u64 = 20_000, MILLISECONDS;
    }
}
