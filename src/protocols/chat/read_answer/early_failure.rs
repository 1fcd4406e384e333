//! Failures that are reported only by a finish reason, before any content was sent to the client.

use crate::answer::output::failure;
use crate::error::Error;
use crate::model::request_context::RequestContext;
use crate::model::stop_reason;
use crate::protocols::chat::wire::{Chunk, ContentPart};
use crate::upstream_error as error;

/// Returns the failure that a finish reason of the chunk stands for. The failure counts if nothing
/// was sent to the client yet, or if the chunk's text is the error message.
pub(super) fn of(chunk: &Chunk<'_>, has_started: bool, context: &RequestContext) -> Option<Error> {
    chunk.choices.iter().find_map(|choice| {
        let word = choice.finish_reason?.decode();
        let failure = failure(&word, context)?;
        if stop_reason::is_told_in_text(&word)
            && let Some(ContentPart::Text(text)) = choice.delta.as_ref()?.content.iter().next()
            && !text.is_blank()
        {
            return Some(error::from_object(&text.decode(), context));
        }
        (!has_started).then_some(failure)
    })
}
