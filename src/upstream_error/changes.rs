//! Changes of a request that an upstream may ask for by refusing it: one row a change.
//!
//! A row knows which requests have the refused part, where it stands in them, by which words people
//! name it, and what the change is. It does not know how a server words its refusal.

mod rows;

use super::refused::Refused;
use crate::error::Error;
use crate::model::request_context::RequestContext;
use crate::observe::warning::Warnings;
use crate::profile::Profile;
pub(super) use rows::rows;

/// Loss of a client by a change, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Loss {
    /// Loss of nothing that the client sees: only forms of texts and ids change, or what the
    /// upstream's operator sees.
    Nothing,
    /// Loss of words: reasoning, or a schema that the model reads in place of the server.
    Words,
    /// Loss of an ability: an image, a document, a call that was to be forced.
    Ability,
}

/// Function that returns true if a request with this context can have the refused part. If the
/// request lacks the part, an error that names it means something else.
type Has = fn(&Refused, &RequestContext) -> bool;

/// Change of a request, and the evidence that asks for it. Members of text are lists with ` | `
/// between the entries.
pub(super) struct Row {
    pub(super) change: Refused,
    pub(super) loss: Loss,
    /// Name of the change in warnings: its own code, or the profile's key that saves the first try.
    warning: Warning,
    /// Test whether a request of Chat Completions can have the refused part.
    chat: Has,
    /// Test whether a request of Responses can have the refused part.
    responses: Has,
    /// True if requests of Messages can have this change.
    messages: bool,
    /// Member of the client's request that is lost, which strict mode does not allow; empty where
    /// none is.
    drops: &'static str,
    /// Change of the profile to that of an upstream that does not take the refused part. The last
    /// argument estimates the tokens of the prompt.
    narrow: fn(&Refused, &mut Profile, &dyn Fn() -> u64),
    /// Paths of the refused part in requests of any protocol; `*` is any position.
    pub(super) places: &'static str,
    /// Words that name the refused part, in lower case, with spaces for signs but `_`. One of them
    /// is enough; words joined with ` & ` must all be there.
    pub(super) names: &'static str,
    /// Words for what is wrong with the refused part, one of which must stand beside its name.
    /// Empty if the name is enough.
    pub(super) lacks: &'static str,
    /// True if the change makes a text of a list, for servers that want a text.
    pub(super) makes_text: bool,
    /// True if only a request without tools can have this change.
    pub(super) is_without_tools: bool,
}

/// Name of a change in warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Warning {
    Code(&'static str),
    /// Key of the profile, in the warning `parameter_refused:KEY`.
    Key(&'static str),
}

impl Refused {
    /// Returns the row of the change. Each change has one, as a test holds.
    fn row(&self) -> &'static Row {
        rows().find(|row| row.change.is_like(self)).unwrap_or(&rows::ROW)
    }

    /// Returns the code of the warning, and the name that stands with it.
    #[must_use]
    pub fn code(&self) -> (&'static str, &'static str) {
        match self.row().warning {
            Warning::Code(code) => (code, ""),
            Warning::Key(key) => ("parameter_refused", key),
        }
    }

    /// Returns true if a Chat Completions request can have the refused part. If it cannot, an error
    /// that names the part means something else.
    #[must_use]
    pub(crate) fn may_be_in_chat(&self, context: &RequestContext) -> bool {
        (self.row().chat)(self, context)
    }

    /// Returns true if a Responses request can have the refused part.
    #[must_use]
    pub(crate) fn may_be_in_responses(&self, context: &RequestContext) -> bool {
        (self.row().responses)(self, context)
    }

    /// Returns true if a Messages request can have the refused part, too, when the upstream speaks
    /// Messages.
    #[must_use]
    pub fn is_of_messages(&self) -> bool {
        self.row().messages
    }

    /// Returns true if the client loses nothing by this change.
    #[cfg(any(test, feature = "fuzz"))]
    #[must_use]
    pub(crate) fn loses_nothing(&self) -> bool {
        self.row().loss == Loss::Nothing
    }

    /// Returns true if this refusal repeats an older one, or shows that it was wrong: a server
    /// whose window is named as its limit then refuses an answer as long as that.
    #[must_use]
    pub(crate) fn replaces(&self, older: &Self) -> bool {
        match (self, older) {
            (Self::Space(space), Self::MaxTokens(most)) => *most >= space.window(),
            (Self::MaxTokens(_), Self::Space(_)) => false,
            _ => self.code() == older.code(),
        }
    }

    /// Changes the profile to that of an upstream that does not take the refused part. `estimate`
    /// returns the tokens of the prompt.
    ///
    /// # Errors
    /// The configuration allows nothing to be left out.
    pub(crate) fn narrow(
        &self,
        profile: &mut Profile,
        estimate: impl Fn() -> u64,
        warnings: &mut Warnings,
    ) -> Result<(), Error> {
        let row = self.row();
        // Of efforts that the server names the nearest is sent.
        let is_kept = matches!(self, Self::Effort(values) if !values.is_empty());
        if !row.drops.is_empty() && !is_kept {
            warnings.dropped(row.drops)?;
        }
        (row.narrow)(self, profile, &estimate);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_has_one_row() {
        for (at, row) in rows().enumerate() {
            let first = rows().position(|other| other.change.is_like(&row.change));
            assert_eq!(first, Some(at), "{:?}", row.change);
            let key = match row.warning {
                Warning::Code(word) | Warning::Key(word) => word,
            };
            assert!(!key.is_empty(), "{:?}", row.change);
        }
    }

    #[test]
    fn each_change_is_in_the_table_of_protocols() {
        let table = include_str!("../../tests/exchange/every_change.rs").lines();
        let in_table =
            table.filter_map(|line| line.strip_prefix("        name: \"")?.strip_suffix("\","));
        let name = |row: &Row| match &row.change {
            Refused::Parameter(parameter) => format!("{parameter:?}"),
            change @ Refused::EmptyContent(_) => format!("{change:?}"),
            change => format!("{change:?}").split('(').next().unwrap_or_default().to_owned(),
        };
        assert_eq!(in_table.collect::<Vec<_>>(), rows().map(name).collect::<Vec<_>>());
    }
}
