//! Handling of web searches that the upstream ran itself, and of the sources that a text cites.

use super::machine::ResponsesMachine;
use super::place::TextPlace;
use super::slots::Slot;
use crate::answer::ReaderOutput;
use crate::content::CitedSource;
use crate::error::Error;
use crate::json;
use crate::model::hosted::HostedCall;
use crate::model::search::{FoundPage, HostedSearch};
use crate::protocols::responses::wire::{Item, Of};

/// Maximum number of result URLs kept for each search.
const FOUND_MAX: usize = 256;

impl ResponsesMachine {
    /// Adds the sources of a completed text, without the sources that earlier events have added.
    pub(super) fn take_annotations(
        &mut self,
        place: TextPlace,
        annotations: Option<&str>,
        to: &mut ReaderOutput<'_>,
    ) {
        let Some(annotations) = annotations.filter(|_| to.context.searches) else { return };
        let known = self.slots().get(place.slot).map_or(0, Slot::annotations);
        let before =
            self.slots().get(place.slot).map_or(0, |slot| slot.annotations_before(place.part));
        for raw in json::elements(annotations).skip(known.saturating_sub(before)) {
            self.take_annotation(place, raw, to);
        }
        if let Some(slot) = self.slots_mut().get_mut(place.slot) {
            slot.end_annotations(place.part);
        }
    }

    /// Counts a source of a text. Adds a citation if the text is the last text of the answer.
    pub(super) fn take_annotation(
        &mut self,
        place: TextPlace,
        raw: &str,
        to: &mut ReaderOutput<'_>,
    ) {
        if !to.context.searches || place.of != Of::Text {
            return;
        }
        let Some(slot) = self.slots_mut().get_mut(place.slot) else { return };
        slot.count_annotation();
        if self.may_cite(place)
            && let Some(source) = CitedSource::read(raw)
        {
            self.content_mut().cite(&source);
        }
    }

    /// Adds a completed web search to the answer.
    pub(super) fn complete_search(
        &mut self,
        slot: usize,
        item: &Item<'_>,
        to: &mut ReaderOutput<'_>,
    ) -> Result<(), Error> {
        let is_new = self.slots().get(slot).is_some_and(|slot| !slot.is_closed());
        let Some(action) = item.action.filter(|_| is_new) else { return Ok(()) };
        let text = |name| json::member(action, name).and_then(json::string).map(|it| it.decode());
        // A page that the model opens is not a separate search.
        if text("type").is_some_and(|kind| kind != "search") || !to.context.searches {
            return Ok(());
        }
        let list = |name| json::member(action, name).into_iter().flat_map(json::elements);
        let queries = || list("queries").filter_map(json::string).map(|it| it.decode());
        let query = text("query").filter(|query| !query.is_empty());
        let query =
            query.map_or_else(|| queries().collect::<Vec<_>>().join("; "), |it| it.into_owned());
        let url = |source| json::member(source, "url").and_then(json::string);
        let found = list("sources").filter_map(url);
        let found = found.map(|url| FoundPage::at(url.decode().into_owned()));
        let found = (!item.has_failed).then(|| found.take(FOUND_MAX).collect());
        self.close_thought(to);
        if !self.content_mut().begin_call(to)? {
            return Ok(());
        }
        self.content_mut().start(to);
        let summary = self.content_mut().summary_mut();
        let id = to.ids.search(u32::try_from(summary.searches()).unwrap_or(u32::MAX));
        summary.count_search();
        self.content_mut().assembly_mut().push_hosted(HostedCall::Search(HostedSearch {
            id,
            query,
            found,
        }));
        Ok(())
    }
}
