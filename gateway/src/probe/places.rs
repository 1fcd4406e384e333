//! Addresses where no server with the wanted model was found, for the error message.

use super::models::{self, Model};
use crate::CommandFailed;

#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Servers that answer but do not list the wanted model; the user most likely meant one of
    /// them.
    lacking: Vec<String>,
    others: Vec<String>,
}

impl Places {
    /// Notes an address where no model was found, with the reason.
    pub(crate) fn note(&mut self, place: &str, reason: &str) {
        self.others.push(format!("{place}: {reason}"));
    }

    /// Notes a server that lists `models`, but not the model `wanted`.
    pub(crate) fn note_lacking(&mut self, place: &str, wanted: &str, models: &[Model]) {
        self.lacking.push(models::lacks(place, wanted, models));
    }

    /// Returns the error that lists the noted addresses. `nothing` is the advice to the user if no
    /// server answers at all.
    pub(crate) fn failed(self, nothing: &str) -> CommandFailed {
        let others = self.others.join("\n  ");
        if self.lacking.is_empty() {
            return CommandFailed::Run(format!("{nothing} Looked at:\n  {others}"));
        }
        let lacking = self.lacking.join("\n");
        CommandFailed::Usage(format!("{lacking}\nLooked also at:\n  {others}"))
    }
}
