//! The places that were looked at in vain, as the error tells them.

use super::models::{self, Model};
use crate::Failed;

#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Servers that answer, without the model that was asked for: what people most likely meant.
    lacking: Vec<String>,
    others: Vec<String>,
}

impl Places {
    /// Notes a place without a model, and why.
    pub(crate) fn note(&mut self, place: &str, reason: &str) {
        self.others.push(format!("{place}: {reason}"));
    }

    /// Notes a server that lists `models`, and not the model that was asked for.
    pub(crate) fn note_lacking(&mut self, place: &str, wanted: &str, models: &[Model]) {
        self.lacking.push(models::lacks(place, wanted, models));
    }

    /// `nothing`: what to do where no server answers at all.
    pub(crate) fn failed(self, nothing: &str) -> Failed {
        let others = self.others.join("\n  ");
        if self.lacking.is_empty() {
            return Failed::Run(format!("{nothing} Looked at:\n  {others}"));
        }
        let lacking = self.lacking.join("\n");
        Failed::Usage(format!("{lacking}\nLooked also at:\n  {others}"))
    }
}
