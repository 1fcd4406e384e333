//! Counters of output items that are not translated. A warning is given once for each, although up
//! to three events contain the item.

use crate::answer::ReaderOutput;
use crate::protocols::responses::wire::Item;

/// Counters of the items that are not translated to content blocks.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// Number of untranslated output items that have begun and are not complete.
    open: u64,
    /// Number of untranslated output items for which a warning was given.
    noted: u64,
}

impl Others {
    /// Counts an untranslated output item that begins, and adds a warning.
    pub(super) fn begin(&mut self, item: &Item<'_>, to: &mut ReaderOutput<'_>) {
        self.open = self.open.saturating_add(1);
        self.note(item, to);
    }

    /// Counts an untranslated output item that is complete. Adds a warning if no event for the
    /// item's beginning was received.
    pub(super) fn complete(&mut self, item: &Item<'_>, to: &mut ReaderOutput<'_>) {
        match self.open.checked_sub(1) {
            Some(fewer) => self.open = fewer,
            None => self.note(item, to),
        }
    }

    /// Adds a warning for an untranslated output item of the final response, unless an earlier
    /// event caused the warning. `number`: position among the items that are not translated, from
    /// 1.
    pub(super) fn note_from(&mut self, number: u64, item: &Item<'_>, to: &mut ReaderOutput<'_>) {
        if number > self.noted {
            self.note(item, to);
        }
    }

    fn note(&mut self, item: &Item<'_>, to: &mut ReaderOutput<'_>) {
        self.noted = self.noted.saturating_add(1);
        let name = item.kind_name.map(|name| name.decode());
        to.warn_named("output_item_dropped", name.as_deref().unwrap_or_default());
    }
}
