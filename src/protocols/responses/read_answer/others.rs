//! Items of which no block is made: each is noted once, though up to three events bring it.

use crate::answer::Output;
use crate::protocols::responses::wire::Item;

/// The items that are left out.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// So many have begun, and are not complete.
    open: u64,
    /// So many were noted.
    noted: u64,
}

impl Others {
    /// An item begins.
    pub(super) fn begin(&mut self, item: &Item<'_>, to: &mut Output<'_>) {
        self.open = self.open.saturating_add(1);
        self.note(item, to);
    }

    /// An item is complete.
    pub(super) fn complete(&mut self, item: &Item<'_>, to: &mut Output<'_>) {
        match self.open.checked_sub(1) {
            Some(fewer) => self.open = fewer,
            None => self.note(item, to),
        }
    }

    /// The complete answer has an item, of those that are left out the one with this number, from 1.
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
