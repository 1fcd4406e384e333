//! PDFs of a request, which are read by hosts that can extract text.

use std::fmt;

use super::Exchange;
use super::steps::see;
use crate::Millis;
use crate::json;
use crate::steps::{Came, DocumentText, Question, Unread};
use crate::text::base64;

/// PDF of the client's request, which is replaced by its text. The PDF comes from an untrusted
/// source: the host must isolate the reader.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    /// Bytes that the client declares to be a PDF.
    pub bytes: Vec<u8>,
    /// Deadline for all documents of the request. Afterwards, only texts that the host has already
    /// extracted are used.
    pub until: Millis,
}

// The bytes are a part of a prompt.
impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Document").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Exchange {
    /// Returns a document that the host must read before the upstream is called. A host polls for a
    /// document if [`poll_call`](Self::poll_call) returns `None`. Only for hosts that [can read
    /// documents](super::HostCan::read_documents).
    pub fn poll_document(&mut self) -> Option<Document> {
        if !self.state.is_reading() {
            return None;
        }
        let (step, until) = (self.steps.step()?, self.steps.until()?);
        let body = &self.client.body;
        let see = see(&self.config, self.can, self.ids, &self.client, body, None, until);
        let Question::Document(data) = step.ask(&see)? else { return None };
        let data = see.text()?.get(data).and_then(json::string);
        let bytes = data.and_then(|data| base64::decode(&data.decode()));
        Some(Document { bytes: bytes.unwrap_or_default(), until })
    }

    /// Handles the text of the document from [`poll_document`](Self::poll_document), or the reason
    /// why the document cannot be read. The host then polls [`poll_call`](Self::poll_call) again.
    pub fn handle_document(&mut self, came: Result<DocumentText, Unread>) {
        if self.state.is_reading() {
            self.handle_came(Came::Document(came), false, 0);
        }
    }
}
