//! Settings for documents (PDF) whose text a host extracts, for upstreams that accept no files.

use super::MILLISECONDS;
use crate::setting::{Bounds, keys};

keys! {
    /// PDFs in requests for upstreams that take no files (`file_parts: false`): the gateway puts
    /// their text in their place.
    pub ReadDocuments {
        /// Most pages of one document; later pages are left out, with a note for the model. 0: no
        /// document is read.
        pages_max: usize = 100, Bounds::Between(0, 10_000);
        /// Longest wait for all documents of a request, in milliseconds; one document may take a
        /// quarter of the time.
        timeout_ms: u64 = 20_000, MILLISECONDS;
    }
}

impl ReadDocuments {
    /// Maximum size, in bytes, of the text of one document. Further text is left out, with a note
    /// for the model.
    pub const TEXT_BYTES_MAX: usize = 512 << 10;
}
