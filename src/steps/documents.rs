//! Step for PDFs in a request to an upstream that accepts no files: the host extracts the text of
//! the PDFs.
//!
//! The newest PDF is read first, because the number per request is limited.

use std::fmt;
use std::ops::Range;

use super::{Came, Change, Question, See, Step, Unread, blocks};
use crate::config::{Protocol, Settings};
use crate::error::Error;
use crate::json;
use crate::model::{Block, DocumentSource};
use crate::observe::report::{DocumentsReport, Report};
use crate::observe::warning::Warnings;

/// Maximum number of documents read for one request. If a request has more documents, the newest
/// are read.
const DOCUMENTS_MAX: usize = 100;

/// PDFs of one request whose texts are collected.
pub(crate) struct Documents {
    /// Documents in the order of the request body.
    found: Vec<FoundDocument>,
    /// Documents not read yet, as indices of `found`; the last one is requested next.
    unknown: Range<usize>,
    /// Number of bytes by which the request body may still grow.
    room: usize,
    held: usize,
}

/// Document in the request body.
struct FoundDocument {
    block: Range<usize>,
    /// Range of the document's base64 data in the request body, as a JSON string with its quotes.
    data: Range<usize>,
    /// Text source that replaces the document's base64 source, as JSON, or the reason for the lack
    /// of a text.
    source: Result<String, Unread>,
    is_cut: bool,
}

/// Text of a document, as extracted by a host.
#[derive(Clone, PartialEq, Eq)]
pub struct DocumentText {
    /// Text for the model, with notes about omitted parts.
    pub text: String,
    /// True if the reader was stopped before the document's end, by a timeout or a limit of the
    /// host.
    pub is_cut: bool,
}

// Debug output leaves out the text of the document, which is a part of a prompt.
impl fmt::Debug for DocumentText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("DocumentText");
        debug.field("bytes", &self.text.len()).field("is_cut", &self.is_cut).finish()
    }
}

impl DocumentText {
    /// Returns the text of a document that was read to its end.
    #[must_use]
    pub fn whole(text: String) -> Self {
        Self { text, is_cut: false }
    }
}

/// Collects the PDFs of a request, if the upstream accepts no PDFs.
pub(crate) fn begin(see: &See<'_>, _: &mut Report) -> Option<Box<dyn Step>> {
    let settings = &see.config.settings;
    // Everything in a PDF apart from its text is lost, which strict mode does not permit.
    if !see.can.read_documents || settings.read_documents.pages_max == 0 || settings.strict {
        return None;
    }
    let text = see.text()?;
    // Fast text search, which is the only check for nearly all requests.
    if !blocks::may_have(text, "\"document\"") {
        return None;
    }
    let (upstream, _) = see.route(text)?;
    if upstream.profile.file_parts || upstream.protocol == Protocol::Anthropic {
        return None;
    }
    Some(Box::new(Documents::of(text, settings)?))
}

impl Step for Documents {
    fn timeout_ms(&self, settings: &Settings) -> u64 {
        settings.read_documents.timeout_ms
    }

    fn questions_left(&self) -> usize {
        self.unknown.len()
    }

    fn ask<'s>(&self, _: &See<'s>, ahead: usize) -> Option<Question<'s>> {
        let found = self.found.get(self.unknown.clone().next_back()?)?;
        // Documents share the time of the host's reader, and each is held in memory until it is
        // read.
        (ahead == 0).then(|| Question::Document(found.data.clone()))
    }

    fn take(&mut self, came: Came, _: &mut Report) {
        self.take_text(if let Came::Document(came) = came { came } else { Err(Unread::Failed) });
    }

    fn is_timed_by_host(&self) -> bool {
        // The host may have extracted texts of documents already, which then arrive at once.
        true
    }

    fn done(self: Box<Self>, see: &See<'_>, report: &mut Report) -> Result<Change, Error> {
        let (read, unread) = self.counts();
        let duration_ms = see.spent_ms().unwrap_or_default();
        report.documents = Some(Box::new(DocumentsReport { read, unread, duration_ms }));
        Ok(Change::Body(self.written(see.text().unwrap_or_default(), &mut report.warnings)))
    }

    fn held_bytes(&self) -> usize {
        self.held
    }
}

impl Documents {
    /// Finds the PDFs of a body. Returns `None` if the body has no PDF.
    fn of(body: &str, settings: &Settings) -> Option<Self> {
        let mut found = Vec::new();
        blocks::visit(body, &mut |block, _| {
            let Block::Document(document) = block else { return };
            let DocumentSource::Base64 { media_type, data } = &document.source else { return };
            if *media_type != "application/pdf" {
                return;
            }
            let Some(begin) = json::offset_in(body, data.raw()) else { return };
            let end = begin.saturating_add(data.raw().len());
            // Include the quotes of the JSON string.
            let data = begin.saturating_sub(1)..end.saturating_add(1);
            let block = blocks::span(body, document.at);
            found.push(FoundDocument { block, data, source: Err(Unread::NoTime), is_cut: false });
        });
        let room = settings.request_bytes_max.saturating_sub(body.len());
        if found.is_empty() {
            return None;
        }
        let unknown = found.len().saturating_sub(DOCUMENTS_MAX)..found.len();
        for one in found.iter_mut().take(unknown.start) {
            one.source = Err(Unread::TooMany);
        }
        Some(Self { found, unknown, room, held: 0 })
    }

    /// Returns the numbers of documents with and without a text.
    fn counts(&self) -> (usize, usize) {
        let read = self.found.iter().filter(|found| found.source.is_ok()).count();
        (read, self.found.len().saturating_sub(read))
    }

    /// Stores the text of the current document, or the reason why the document has no text.
    fn take_text(&mut self, came: Result<DocumentText, Unread>) {
        let Some(found) = self.unknown.next_back().and_then(|at| self.found.get_mut(at)) else {
            return;
        };
        found.is_cut = came.as_ref().is_ok_and(|came| came.is_cut);
        let room = self.room.saturating_add(found.data.len());
        found.source = came.map(|came| source_of(&came.text)).and_then(|source| {
            // The text of an ordinary PDF is smaller than the PDF; a crafted PDF may have a larger
            // text.
            if source.len() <= room { Ok(source) } else { Err(Unread::Failed) }
        });
        let length = found.source.as_ref().map_or(0, String::len);
        self.held = self.held.saturating_add(length);
        self.room = room.saturating_sub(length);
    }

    fn written(self, body: &str, warnings: &mut Warnings) -> Vec<u8> {
        let mut edits = Vec::with_capacity(self.found.len());
        for found in self.found {
            let block = body.get(found.block.clone()).unwrap_or_default();
            let source = match found.source {
                Ok(source) => {
                    match found.is_cut {
                        true => warnings.add("document_cut"),
                        false => warnings.add("document_read"),
                    }
                    source
                }
                Err(why) => {
                    warnings.add_named("document_not_read", why.name());
                    source_of(why.words())
                }
            };
            if let Some(text) = blocks::with_source(block, &source) {
                edits.push((found.block, text));
            }
        }
        blocks::replaced(body, &edits)
    }
}

fn source_of(text: &str) -> String {
    json::written(|json| {
        json.begin_object().kind("text").key("media_type").text("text/plain");
        json.key("data").text(text).end_object();
    })
}
