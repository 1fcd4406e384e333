//! Citations: marks with which the model cites pages of web searches (`[[1]]`) become citations for
//! the client.
//!
//! | file | contents |
//! |---|---|
//! | `finder` | search for marks in a text that comes in pieces |
//! | `code` | places in a text that are code, where brackets are no marks |

mod code;
mod finder;

use crate::json;
use crate::model::event::{Event, ServerCall, ServerOutput};
use crate::model::search::{CITED_LETTERS, FoundPage, NumberedPages};
use crate::protocols::{AnswerWriter, WriterPhase};
use finder::{MarkFinder, TextPart};

/// Maximum number of citations in an answer. Further marks stay text.
const CITATIONS_MAX: usize = 512;

/// Writer around the writer of a client's message, which makes citations of marks.
#[derive(Debug)]
pub(super) struct CitingWriter {
    inner: Box<dyn AnswerWriter>,
    /// Pages that the conversation has up to now.
    pages: NumberedPages,
    /// Text in which marks are looked for.
    text: Option<CitingText>,
    /// Number of further citations that the answer may have.
    citations_left: usize,
}

/// Text block of the model while marks are looked for. The client gets several blocks for it.
#[derive(Debug)]
struct CitingText {
    finder: MarkFinder,
    /// True if a text block of the client is open.
    is_open: bool,
    /// True if the client has a block of the text.
    is_begun: bool,
    /// White space that belongs to the next block, if that is plain text.
    blank: String,
}

impl CitingWriter {
    /// Creates the writer around `inner`. `pages`: pages in the history of the request.
    pub(super) fn new(inner: Box<dyn AnswerWriter>, pages: NumberedPages) -> Self {
        Self { inner, pages, text: None, citations_left: CITATIONS_MAX }
    }

    fn push(&mut self, raw: &str, out: &mut Vec<u8>) {
        let Some(text) = &mut self.text else {
            return self.inner.write(Event::Text(raw), out);
        };
        let mut piece = String::with_capacity(raw.len());
        json::unescape(&mut piece, raw);
        let parts = text.finder.push(&piece, &self.pages);
        parts.iter().for_each(|part| self.write_part(part, out));
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let Some(text) = &mut self.text else { return self.inner.write(Event::BlockEnds, out) };
        let parts = text.finder.end(&self.pages);
        self.citations_left = text.finder.citations_left();
        parts.iter().for_each(|part| self.write_part(part, out));
        let Some(text) = self.text.take() else { return };
        if !text.is_begun {
            self.inner.write(Event::TextBegins, out);
        }
        if text.is_open || !text.is_begun {
            self.inner.write(Event::BlockEnds, out);
        }
    }

    fn write_part(&mut self, part: &TextPart, out: &mut Vec<u8>) {
        let Some(text) = &mut self.text else { return };
        let is_cited = !part.cites.is_empty();
        // Clients may not send back a block without words.
        if !is_cited && !text.is_open && part.text.trim_start().is_empty() {
            return text.blank.push_str(&part.text);
        }
        let mut blank = std::mem::take(&mut text.blank);
        if is_cited {
            blank.clear();
        }
        if is_cited && text.is_open {
            self.inner.write(Event::BlockEnds, out);
        }
        if is_cited || !text.is_open {
            self.inner.write(Event::TextBegins, out);
        }
        (text.is_open, text.is_begun) = (!is_cited, true);
        blank.push_str(&part.text);
        self.inner.write(Event::Text(&json::escaped(&blank)), out);
        for citation in part.cites.iter().filter_map(|number| self.pages.citation(*number)) {
            self.inner.write(Event::Citation(&citation), out);
        }
        if is_cited {
            self.inner.write(Event::BlockEnds, out);
        }
    }

    /// Numbers the pages of a web search.
    fn add(&mut self, pages: &[FoundPage]) {
        for FoundPage { url, title, text, .. } in pages {
            let beginning = text.chars().take(CITED_LETTERS).collect();
            self.pages.add(url.clone(), title.clone(), beginning);
        }
    }
}

impl AnswerWriter for CitingWriter {
    fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>) {
        match event {
            Event::TextBegins if !self.pages.is_empty() => {
                let finder = MarkFinder::new(self.citations_left);
                self.text = Some(CitingText {
                    finder,
                    is_open: false,
                    is_begun: false,
                    blank: String::new(),
                });
            }
            Event::Text(raw) => self.push(raw, out),
            Event::BlockEnds => self.end(out),
            Event::ServerResult(result) => {
                if let ServerOutput::Pages(pages) = result.output {
                    self.add(pages);
                }
                self.inner.write(event, out);
            }
            event => self.inner.write(event, out),
        }
    }

    fn ping(&self, out: &mut Vec<u8>) {
        self.inner.ping(out);
    }

    fn phase(&self) -> WriterPhase {
        self.inner.phase()
    }

    fn relayed(&mut self, phase: WriterPhase) {
        self.inner.relayed(phase);
    }

    fn begin_round(&mut self) {
        self.inner.begin_round();
    }

    fn take_back(&mut self) {
        self.text = None;
        self.inner.take_back();
    }

    fn take_calls(&mut self) -> Vec<ServerCall> {
        self.inner.take_calls()
    }

    fn is_mixed(&self) -> bool {
        self.inner.is_mixed()
    }

    fn take_blocks(&mut self) -> Vec<u8> {
        self.inner.take_blocks()
    }

    fn held_bytes(&self) -> usize {
        let held = |text: &CitingText| text.finder.held_bytes().saturating_add(text.blank.len());
        let held = self.text.as_ref().map_or(0, held);
        let pages = self.pages.held_bytes();
        self.inner.held_bytes().saturating_add(pages).saturating_add(held)
    }
}

#[cfg(test)]
mod tests;
