//! Reading the PDFs of a request, on hosts that can.

use std::fmt;

use super::{Exchange, Path};
use crate::Millis;
use crate::config::{CountTokens, Protocol};
use crate::prepare::documents::{Documents, bytes_of};
use crate::prepare::{DocumentText, Preparation, Question, Unread};
use crate::text::words;

/// PDF of the client's request, whose text takes its place. It comes from anywhere: whatever it
/// does to its reader must not reach the host.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    /// Bytes that the client says are a PDF.
    pub bytes: Vec<u8>,
    /// End of the time for all documents of the request. After it, only a text counts that the host
    /// has already.
    pub until: Millis,
}

// It is a part of a prompt.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Exchange {
    /// Returns a document that the host must read before there is a call. A host asks for it if
    /// [`poll_call`](Self::poll_call) gives none. Only for hosts that
    /// [can](super::HostCan::read_documents).
    pub fn poll_document(&mut self) -> Option<Document> {
        if self.state.is_due() {
            return None;
        }
        let (preparation, until) = self.preparing.current()?;
        let Question::Document { data } = preparation.question()? else { return None };
        let body = words::utf8(&self.client.body).unwrap_or_default();
        Some(Document { bytes: bytes_of(body, data).unwrap_or_default(), until })
    }

    /// Takes the text of the document that [`poll_document`](Self::poll_document) gave, or the
    /// reason why it cannot be read. Then [`poll_call`](Self::poll_call) goes on.
    pub fn handle_document(&mut self, came: Result<DocumentText, Unread>) {
        if let Some(documents) = self.preparing.documents() {
            documents.take(came);
            self.state.prepare_on();
        }
    }

    /// Collects the PDFs for an upstream that takes none.
    pub(super) fn documents_to_read(&mut self, body: &[u8]) -> Option<Preparation> {
        let settings = &self.config.settings;
        // What is not text gets lost.
        if !self.can.read_documents || settings.read_documents.pages_max == 0 || settings.strict {
            return None;
        }
        let is_count = self.client.path == Path::CountTokens;
        if is_count && settings.count_tokens == CountTokens::Off {
            return None;
        }
        let text = words::utf8(body)?;
        // Of nearly all requests this is all that is looked at.
        if !Documents::may_be_in(text) {
            return None;
        }
        let (upstream, _) = self.route_of(text)?;
        if upstream.profile.file_parts || upstream.protocol == Protocol::Anthropic {
            return None;
        }
        // A count is made without a credential, too, but nothing is read for it.
        if is_count && self.check_credential(body).is_err() {
            return None;
        }
        Documents::of(text, settings).map(Preparation::Documents)
    }
}
