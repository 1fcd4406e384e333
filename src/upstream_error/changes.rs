//! Table of the changes to a request that an upstream may demand by refusing the request, one row
//! per change.
//!
//! A row states which requests have the refused part, the path of that part in the request, the
//! words by which servers name it, and the change itself. The wordings of whole error messages are
//! in `wordings`.

mod rows;

use super::refused::Refused;
use crate::error::Error;
use crate::model::request_context::RequestContext;
use crate::observe::warning::Warnings;
use crate::profile::Profile;
pub(super) use rows::rows;

/// Loss that a change to a request causes for the client, ordered from the smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Loss {
    /// Loss of nothing visible to the client: only the form of texts and ids changes, or data that
    /// only the upstream's operator sees.
    Nothing,
    /// Loss of reasoning, or of the server's enforcement of a schema, which is sent to the model as
    /// text instead.
    Words,
    /// Loss of an ability: an image, a document, or a forced tool call.
    Ability,
}

/// Function that returns true if a request with this context can have the refused part. If the
/// request lacks the part, an error that names the part means something else.
type Has = fn(&Refused, &RequestContext) -> bool;

/// Row of the table: a change to the request, and the evidence that an upstream demands it. Text
/// fields are lists separated by ` | `.
pub(super) struct ChangeRow {
    pub(super) change: Refused,
    pub(super) loss: Loss,
    /// Name of the change in warnings: a code, or the profile key that avoids the first failed
    /// request.
    warning: WarningName,
    /// Test that returns true if a Chat Completions request can have the refused part.
    chat: Has,
    /// Test that returns true if a Responses request can have the refused part.
    responses: Has,
    /// True if requests in the Messages protocol can have the refused part.
    messages: bool,
    /// Member of the client's request that the change drops, which strict mode forbids; empty if no
    /// member is dropped.
    drops: &'static str,
    /// Function that changes the profile to that of an upstream without support for the refused
    /// part. The last argument estimates the tokens of the prompt.
    narrow: fn(&Refused, &mut Profile, &dyn Fn() -> u64),
    /// Paths of the refused part in requests of any protocol; `*` stands for any array index.
    pub(super) places: &'static str,
    /// Names of the refused part in error messages, in lower case, with spaces for punctuation
    /// except `_`. One name is enough; parts joined by ` & ` must all occur.
    pub(super) names: &'static str,
    /// Phrases for the complaint about the refused part, one of which must occur beside a name.
    /// Empty if a name is enough.
    pub(super) lacks: &'static str,
    /// True if the change replaces a list by a text, for servers that want a text.
    pub(super) makes_text: bool,
    /// True if the change applies only to requests without tools.
    pub(super) is_without_tools: bool,
}

/// Name of a change in warnings: a code, or a profile key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WarningName {
    Code(&'static str),
    /// Key of the profile, which follows in the warning `parameter_refused:KEY`.
    Key(&'static str),
}

impl Refused {
    /// Returns the table's row for the change. A change without a row would leave the request as it
    /// is.
    fn row(&self) -> &'static ChangeRow {
        rows().find(|row| row.change.is_like(self)).unwrap_or(&rows::ROW)
    }

    /// Returns the code of the warning about the change, and the profile key that belongs to the
    /// change, if any.
    #[must_use]
    pub fn code(&self) -> (&'static str, &'static str) {
        match self.row().warning {
            WarningName::Code(code) => (code, ""),
            WarningName::Key(key) => ("parameter_refused", key),
        }
    }

    /// Returns true if a Chat Completions request can have the refused part. If not, an error that
    /// names the part has another meaning.
    #[must_use]
    pub(crate) fn may_be_in_chat(&self, context: &RequestContext) -> bool {
        (self.row().chat)(self, context)
    }

    /// Returns true if a Responses request can have the refused part.
    #[must_use]
    pub(crate) fn may_be_in_responses(&self, context: &RequestContext) -> bool {
        (self.row().responses)(self, context)
    }

    /// Returns true if a Messages request can have the refused part, for an upstream that speaks
    /// Messages.
    #[must_use]
    pub fn is_of_messages(&self) -> bool {
        self.row().messages
    }

    /// Returns the members at the ends of the row's paths, as pairs: `cache_control` if the member
    /// is inside of a cache mark, otherwise an empty name; and the name of the member.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.row().places.split(" | ").map(|path| {
            let (before, member) = path.rsplit_once('.').unwrap_or(("", path));
            let mark = "cache_control";
            (if before.ends_with(mark) { mark } else { "" }, member)
        })
    }

    /// Returns true if the client loses nothing by this change.
    #[cfg(any(test, feature = "fuzz"))]
    #[must_use]
    pub(crate) fn loses_nothing(&self) -> bool {
        self.row().loss == Loss::Nothing
    }

    /// Returns true if this refusal repeats an older refusal, or corrects it. For example, a server
    /// first states its context window as the limit, and then refuses an answer of that length.
    #[must_use]
    pub(crate) fn replaces(&self, older: &Self) -> bool {
        match (self, older) {
            (Self::Space(space), Self::MaxTokens(most)) => *most >= space.window(),
            (Self::MaxTokens(_), Self::Space(_)) => false,
            _ => self.code() == older.code(),
        }
    }

    /// Changes the profile to that of an upstream without support for the refused part. `estimate`
    /// returns the tokens of the prompt.
    ///
    /// # Errors
    /// The configuration forbids dropping anything from the request.
    pub(crate) fn narrow(
        &self,
        profile: &mut Profile,
        estimate: impl Fn() -> u64,
        warnings: &mut Warnings,
    ) -> Result<(), Error> {
        let row = self.row();
        // If the server names efforts of reasoning, the nearest effort is sent, so nothing is
        // dropped.
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
                WarningName::Code(word) | WarningName::Key(word) => word,
            };
            assert!(!key.is_empty(), "{:?}", row.change);
        }
    }

    #[test]
    fn each_change_is_in_the_table_of_protocols() {
        let table = include_str!("../../tests/exchange/every_change.rs").lines();
        let in_table =
            table.filter_map(|line| line.strip_prefix("        name: \"")?.strip_suffix("\","));
        let name = |row: &ChangeRow| match &row.change {
            Refused::Parameter(parameter) => format!("{parameter:?}"),
            change @ Refused::EmptyContent(_) => format!("{change:?}"),
            change => format!("{change:?}").split('(').next().unwrap_or_default().to_owned(),
        };
        assert_eq!(in_table.collect::<Vec<_>>(), rows().map(name).collect::<Vec<_>>());
    }
}
