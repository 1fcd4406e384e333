//! Failures that a finish reason stands for, before the client has seen anything.

use crate::answer::output::failure;
use crate::error::Error;
use crate::model::request_context::RequestContext;
use crate::model::stop_reason;
use crate::protocols::chat::wire::{Chunk, Part};
use crate::upstream_error as error;

/// Returns the failure that a chunk ends with, where the client has seen nothing yet or where the
/// chunk's text is the upstream's word for it.
pub(super) fn of(chunk: &Chunk<'_>, has_started: bool, context: &RequestContext) -> Option<Error> {
    chunk.choices.iter().find_map(|choice| {
        let word = choice.finish_reason?.decode();
        let failure = failure(&word, context)?;
        if stop_reason::is_told_in_text(&word)
            && let Some(Part::Text(text)) = choice.delta.as_ref()?.content.iter().next()
            && !text.is_blank()
        {
            return Some(error::from_object(&text.decode(), context));
        }
        (!has_started).then_some(failure)
    })
}
