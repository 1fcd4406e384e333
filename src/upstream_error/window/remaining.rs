//! Errors that say that prompt and answer together are longer than the context window: what the client is told, and
//! what is left for the answer.

use super::leading_number;
use crate::model::request_context::RequestContext;
use crate::text::words;
use crate::upstream_error::refused::Room;

/// The real API's words, behind which Claude Code reads `PROMPT + ANSWER > WINDOW`.
pub(super) const NO_ROOM: &str = "input length and `max_tokens` exceed context limit:";

pub(super) fn none_for(prompt: u64, answer: u64, window: u64) -> String {
    format!(
        "{NO_ROOM} {prompt} + {answer} > {window}, decrease input length or `max_tokens` and try again"
    )
}

/// In front of a total that has the answer in it, as Kimi's documentation says.
const SUM: &str = "exceeded model token limit";

/// Whether the answer is in a total of which no part is told: what is left without it looks like the prompt.
pub(super) fn is_sum(text: &str, total: u64, context: &RequestContext) -> bool {
    let (estimate, answer) = (context.input_tokens, context.max_tokens);
    let Some(rest) = total.checked_sub(answer).filter(|_| answer > 0) else { return false };
    let is_like = (rest / 2..=rest.saturating_mul(2)).contains(&estimate);
    words::has(text, SUM) || is_like && estimate.abs_diff(rest) < estimate.abs_diff(total)
}

/// What stands behind some words of the error, unless something is quoted before them: a client may have written them.
pub(super) fn text_behind<'m>(message: &'m str, own: &str) -> Option<&'m str> {
    let (before, behind) = words::split_once(message, own)?;
    (!before.contains(['"', '\'', '`', '{', '[', '\u{201c}'])).then_some(behind)
}

/// What the window leaves for the answer, if the client would be told that both together are too long.
#[must_use]
pub(crate) fn room(message: &str, context: &RequestContext) -> Option<Room> {
    let sum = text_behind(message, NO_ROOM)?;
    let (prompt, rest) = words::split_once(sum, "+")?;
    let (answer, window) = words::split_once(rest, ">")?;
    let number = |text: &str| leading_number(text.trim());
    let (prompt, answer, window) = (number(prompt)?, number(answer)?, number(window)?);
    // What was refused is too much, even where it would fit by these numbers.
    let refused = if context.max_tokens == 0 { answer } else { answer.min(context.max_tokens) };
    let answer = window.checked_sub(prompt)?.min(refused.checked_sub(1)?);
    let room = Room { answer, prompt, estimate: context.input_estimate };
    (answer >= Room::LEAST).then_some(room)
}
