//! Items of which no block is made: each is reported once, though up to three events bring it.

use crate::answer::Output;
use crate::protocols::responses::wire::Item;

/// Counts of the items that are left out.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// Number of items that have begun and are not complete.
    open: u64,
    /// Number of items that a warning has named.
    noted: u64,
}

impl Others {
    /// Counts an item that begins, and warns of it.
    pub(super) fn begin(&mut self, item: &Item<'_>, to: &mut Output<'_>) {
        self.open = self.open.saturating_add(1);
        self.note(item, to);
    }

    /// Takes a completed item; warns of it if its beginning did not come.
    pub(super) fn complete(&mut self, item: &Item<'_>, to: &mut Output<'_>) {
        match self.open.checked_sub(1) {
            Some(fewer) => self.open = fewer,
            None => self.note(item, to),
        }
    }

    /// Warns of an item of the complete answer, unless an event did. `number`: its place among
    /// those that are left out, from 1.
    pub(super) fn note_from(&mut self, number: u64, item: &Item<'_>, to: &mut Output<'_>) {
        if number > self.noted {
            self.note(item, to);
        }
    }

    fn note(&mut self, item: &Item<'_>, to: &mut Output<'_>) {
        self.noted = self.noted.saturating_add(1);
        let name = item.kind_name.map(|name| name.decode());
        to.warn_named("output_item_dropped", name.as_deref().unwrap_or_default());
    }
}
