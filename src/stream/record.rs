//! What the translation of an answer reads and notes, whichever protocol its upstream speaks.

use super::progress::Progress;
use super::rules::Rules;
use crate::config::Settings;
use crate::ids::Ids;
use crate::model::request_context::RequestContext;
use crate::observe::report::AnswerReport;
use crate::observe::warning::Warnings;

/// What a block or an id costs beside its texts, towards `waiting_bytes_max`.
pub(super) const BLOCK_BYTES: usize = 128;

/// What is said of bytes that make no sense.
pub(super) const INVALID_RESPONSE: &str = "Upstream sent an invalid response";

/// What was asked for and what may be done, and what is noted of the answer.
#[derive(Debug)]
pub(super) struct AnswerRecord {
    pub(super) context: Box<RequestContext>,
    pub(super) ids: Ids,
    pub(super) rules: Rules,
    pub(super) report: AnswerReport,
    pub(super) warnings: Warnings,
    pub(super) progress: Progress,
}

impl AnswerRecord {
    pub(super) fn new(context: Box<RequestContext>, settings: &Settings, ids: Ids) -> Self {
        Self {
            rules: Rules::of(settings, &context),
            context,
            ids,
            report: AnswerReport::default(),
            warnings: Warnings::new(false),
            progress: Progress::default(),
        }
    }
}
