//! Steps that begin only after the request was translated once, because the translation shows for
//! nothing that most requests need none of them.

use super::{Exchange, Prepared, Steps};
use crate::Millis;
use crate::error::Error;
use crate::protocols::Translated;

impl Steps {
    /// Returns true if steps wait for a translation of the request, and `translated` does not show
    /// that the request needs none of them.
    pub(in crate::exchange) fn waits_for(&self, translated: &Result<Translated, Error>) -> bool {
        !self.is_translated
            && self.begun < self.rows.len()
            && match translated {
                Ok(Translated::Send { context, .. }) => context.may_ask_services,
                // What was refused, or answered here, may be fine with a step.
                _ => true,
            }
    }
}

impl Exchange {
    /// Begins the steps that wait for a translation of the request. Returns `None` if the request
    /// needs none of them, so that the translation holds.
    pub(in crate::exchange) fn prepare_translated(
        &mut self,
        body: &mut Vec<u8>,
        now: Millis,
    ) -> Result<Option<Prepared>, Error> {
        self.steps.is_translated = true;
        while let Some(row) = self.next_row(now) {
            self.begin_step(row, body, now)?;
            if self.steps.current.is_some() {
                return self.prepare(body, now).map(Some);
            }
        }
        Ok(None)
    }
}
