//! Text of an answer that citations refer to, and the citations of web sources.

use crate::json::{self, Str};
use crate::model::search::{CITED_LETTERS, Citation};

/// Maximum number of citations in an answer.
const CITATIONS_MAX: u32 = 512;

/// Maximum number of bytes of a text that are kept for citations.
const TEXT_BYTES_MAX: usize = 256 << 10;

/// Latest text of an answer, and the number of citations so far.
#[derive(Debug, Default)]
pub(super) struct Cited {
    text: String,
    citations: u32,
}

/// Source of a text, as reported by the upstream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CitedSource<'a> {
    pub(crate) url: Str<'a>,
    pub(crate) title: Option<Str<'a>>,
    /// Excerpt of the source, if the upstream sends one.
    pub(crate) words: Option<Str<'a>>,
    /// Range of the answer's characters that the source supports: start and end (exclusive).
    pub(crate) letters: Option<(usize, usize)>,
}

impl<'a> CitedSource<'a> {
    /// Reads a `url_citation` of the upstream. Chat Completions puts its members into an object of
    /// that name.
    pub(crate) fn read(raw: &'a str) -> Option<Self> {
        let kind = json::member(raw, "type").and_then(json::string);
        let raw = json::member(raw, "url_citation").unwrap_or(raw);
        let text = |name| json::member(raw, name).and_then(json::string);
        let number = |name| json::member(raw, name).and_then(|it| it.parse::<usize>().ok());
        let url = text("url").filter(|_| kind.is_some_and(|kind| kind == "url_citation"))?;
        Some(Self {
            url,
            title: text("title").filter(|title| !title.is_blank()),
            words: text("content").filter(|words| !words.is_blank()),
            letters: number("start_index").zip(number("end_index")),
        })
    }
}

impl Cited {
    /// Adds text to the text that citations refer to; `raw` is escaped.
    pub(super) fn keep(&mut self, raw: &str) {
        if self.text.len().saturating_add(raw.len()) <= TEXT_BYTES_MAX {
            json::unescape(&mut self.text, raw);
        }
    }

    /// Clears the kept text, because another text begins.
    pub(super) fn begin(&mut self) {
        self.text.clear();
    }

    /// Returns the citation for a source; `None` if the answer already has too many citations.
    pub(super) fn cite(&mut self, source: &CitedSource<'_>) -> Option<Citation> {
        self.citations = self.citations.saturating_add(1);
        if self.citations > CITATIONS_MAX {
            return None;
        }
        let (start, end) = source.letters.unwrap_or_default();
        let letters = end.saturating_sub(start).min(CITED_LETTERS);
        let said: String = self.text.chars().skip(start).take(letters).collect();
        let words =
            || source.words.map(|words| words.decode().chars().take(CITED_LETTERS).collect());
        let cited_text = if said.is_empty() { words().unwrap_or_default() } else { said };
        let url = source.url.decode().into_owned();
        let title = source.title.map_or_else(|| url.clone(), |title| title.decode().into_owned());
        Some(Citation { url, title, cited_text, number: None })
    }
}
