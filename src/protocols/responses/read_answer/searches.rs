//! Searches of the web that the upstream ran, and where its text comes from.

use super::machine::Machine;
use super::place::Place;
use crate::answer::Output;
use crate::error::Error;
use crate::json::{self, Str};
use crate::model::search::{Citation, Search};
use crate::protocols::responses::wire::{Item, Of};

/// Most citations of an answer.
const CITATIONS_MAX: u32 = 512;

/// Most addresses of a search.
const FOUND_MAX: usize = 256;

/// So much of a text is kept to be cited.
const CITED_BYTES_MAX: usize = 256 << 10;

/// So many letters of a text are cited, as Anthropic's own search does.
const CITED_LETTERS: usize = 150;

impl Machine {
    /// Keeps a text, of which citations name parts.
    pub(super) fn keep_text(&mut self, place: Place, text: Str<'_>) {
        let (of, cited) = &mut self.cited;
        let own = Some((place.slot, place.part));
        if std::mem::replace(of, own) != own {
            cited.clear();
        }
        if cited.len().saturating_add(text.raw().len()) <= CITED_BYTES_MAX {
            json::unescape(cited, text.raw());
        }
    }

    /// Takes the sources of a text that is complete, as far as they have not come.
    pub(super) fn take_annotations(
        &mut self,
        place: Place,
        annotations: Option<&str>,
        to: &mut Output<'_>,
    ) {
        let Some(annotations) = annotations.filter(|_| to.context.searches) else { return };
        let known = self.slots.get(place.slot).map_or(0, |slot| slot.annotations);
        let before =
            self.slots.get(place.slot).map_or(0, |slot| slot.annotations_before(place.part));
        for raw in json::elements(annotations).skip(known.saturating_sub(before)) {
            self.take_annotation(place, raw, to);
        }
        if let Some(slot) = self.slots.get_mut(place.slot) {
            slot.end_annotations(place.part);
        }
    }

    /// Takes a source of a text.
    pub(super) fn take_annotation(&mut self, place: Place, raw: &str, to: &mut Output<'_>) {
        if !to.context.searches || place.of != Of::Text {
            return;
        }
        let Some(slot) = self.slots.get_mut(place.slot) else { return };
        slot.annotations = slot.annotations.saturating_add(1);
        let text = |name| json::member(raw, name).and_then(json::string).map(|it| it.decode());
        if text("type").as_deref() != Some("url_citation") {
            return;
        }
        self.citations = self.citations.saturating_add(1);
        let Some(url) = text("url").filter(|_| self.citations <= CITATIONS_MAX) else { return };
        let number = |name| json::member(raw, name).and_then(|it| it.parse::<usize>().ok());
        let (start, end) = (number("start_index"), number("end_index"));
        let letters = start.zip(end).map(|(start, end)| end.saturating_sub(start));
        let cited = letters.map_or(0, |letters| letters.min(CITED_LETTERS));
        let is_known = self.cited.0 == Some((place.slot, place.part));
        let text_of = if is_known { self.cited.1.as_str() } else { "" };
        let cited_text = text_of.chars().skip(start.unwrap_or(0)).take(cited).collect();
        let title = text("title").map_or_else(|| url.to_string(), |title| title.into_owned());
        let citation = Citation { url: url.into_owned(), title, cited_text };
        self.content.assembly_mut().cite(citation);
    }

    /// A search is over.
    pub(super) fn complete_search(
        &mut self,
        slot: usize,
        item: &Item<'_>,
        to: &mut Output<'_>,
    ) -> Result<(), Error> {
        let is_new = self.slots.get(slot).is_some_and(|slot| !slot.is_closed);
        let Some(action) = item.action.filter(|_| is_new) else { return Ok(()) };
        let text = |name| json::member(action, name).and_then(json::string).map(|it| it.decode());
        // A page that the model opens is no search of its own.
        if text("type").is_some_and(|kind| kind != "search") || !to.context.searches {
            return Ok(());
        }
        let list = |name| json::member(action, name).into_iter().flat_map(json::elements);
        let queries = || list("queries").filter_map(json::string).map(|it| it.decode());
        let query = text("query").filter(|query| !query.is_empty());
        let query =
            query.map_or_else(|| queries().collect::<Vec<_>>().join("; "), |it| it.into_owned());
        let url = |source| json::member(source, "url").and_then(json::string);
        let found = list("sources").filter_map(url).map(|it| it.decode().into_owned());
        let found = (!item.has_failed).then(|| found.take(FOUND_MAX).collect());
        self.close_thought(to);
        if !self.content.begin_call(to)? {
            return Ok(());
        }
        self.start(to);
        let id = to.ids.search(u32::try_from(self.searches).unwrap_or(u32::MAX));
        self.searches = self.searches.saturating_add(1);
        self.content.assembly_mut().push_search(Search { id, query, found });
        Ok(())
    }
}
