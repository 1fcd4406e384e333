//! Rows of the table of changes to refused requests, ordered by what the client loses.

mod ability;
mod nothing;
mod words;

use super::{ChangeRow, Has, Loss, WarningName};
use crate::upstream_error::refused::Refused;

/// Phrases for a feature that a model or server does not support or allow. `nt` is the end of
/// `doesn't` without its apostrophe.
const LACKS: &str = "not support | nt support | unsupported | not enabled | not be enabled | not available | \
    unavailable | not allowed | not accept | not permitted | not implemented | not recogni | not have | not capable | \
    unexpected | unrecogni | unable | disabled | incompatible | not compatible | missing | cannot | cant | must be auto | \
    must start | only | 不支持 | 未启用 | 不能 | 无法";

const ALWAYS: Has = |_, _| true;
const NEVER: Has = |_, _| false;
const WITH_CALLS: Has = |_, context| context.counts.has_calls();
const WITH_TOOLS: Has = |_, context| !context.tools.is_empty();
const WITH_THINKING: Has = |_, context| context.refusable.thinking;

/// Row without evidence, used as a base for other rows: any request can have the change, and the
/// profile stays the same.
pub(super) const ROW: ChangeRow = ChangeRow {
    change: Refused::JoinedTexts,
    loss: Loss::Nothing,
    warning: WarningName::Key(""),
    chat: ALWAYS,
    responses: ALWAYS,
    messages: false,
    drops: "",
    narrow: |_, _, _| {},
    places: "",
    names: "",
    lacks: "",
    makes_text: false,
    is_without_tools: false,
};

/// Base row for changes that apply only to Chat Completions requests.
const OF_CHAT: ChangeRow = ChangeRow { responses: NEVER, ..ROW };

/// Base row for changes that apply only to Responses requests.
const OF_RESPONSES: ChangeRow = ChangeRow { chat: NEVER, ..ROW };

/// Returns the rows of all changes, ordered from the smallest loss for the client.
pub(in crate::upstream_error) fn rows() -> impl Iterator<Item = &'static ChangeRow> {
    [nothing::ROWS, words::ROWS, ability::ROWS].into_iter().flatten()
}
