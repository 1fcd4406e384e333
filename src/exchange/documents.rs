//! Reading the PDFs of a request, on hosts that can.

use std::fmt;

use super::Exchange;
use super::steps::see;
use crate::Millis;
use crate::json;
use crate::steps::{Came, DocumentText, Question, Unread};
use crate::text::base64;

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

    /// Takes the text of the document that [`poll_document`](Self::poll_document) gave, or the
    /// reason why it cannot be read. Then [`poll_call`](Self::poll_call) goes on.
    pub fn handle_document(&mut self, came: Result<DocumentText, Unread>) {
        if self.state.is_reading() {
            self.handle_came(Came::Document(came), false, 0);
        }
    }
}
