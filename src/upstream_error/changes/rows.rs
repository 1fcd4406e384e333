//! Rows of all changes, by what the client loses.

mod ability;
mod nothing;
mod words;

use super::{Has, Loss, Row, Warning};
use crate::upstream_error::refused::Refused;

/// Words for what a model or a server cannot do, or may not; `nt` is the end of `doesn't` without
/// its quote.
const LACKS: &str = "not support | nt support | unsupported | not enabled | not be enabled | not available | \
    unavailable | not allowed | not accept | not permitted | not implemented | not recogni | not have | not capable | \
    unexpected | unrecogni | unable | disabled | incompatible | not compatible | missing | cannot | cant | must be auto | \
    must start | only | 不支持 | 未启用 | 不能 | 无法";

const ALWAYS: Has = |_, _| true;
const NEVER: Has = |_, _| false;
const WITH_CALLS: Has = |_, context| context.counts.has_calls();
const WITH_TOOLS: Has = |_, context| !context.tools.is_empty();
const WITH_THINKING: Has = |_, context| context.refusable.thinking;

/// Row without evidence, as a base of others: any request may need the change, and it changes
/// nothing.
pub(super) const ROW: Row = Row {
    change: Refused::JoinedTexts,
    loss: Loss::Nothing,
    warning: Warning::Key(""),
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

/// Change of what Chat Completions alone have.
const OF_CHAT: Row = Row { responses: NEVER, ..ROW };

/// Change of what Responses alone have.
const OF_RESPONSES: Row = Row { chat: NEVER, ..ROW };

/// Rows of all changes, those first that lose least.
pub(in crate::upstream_error) fn rows() -> impl Iterator<Item = &'static Row> {
    [nothing::ROWS, words::ROWS, ability::ROWS].into_iter().flatten()
}
