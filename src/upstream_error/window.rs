//! Detection of errors about conversations or answers that are too long, and translation to the
//! wordings that clients know.
//!
//! Claude Code compacts a conversation when it reads `prompt is too long`, and requests fewer
//! tokens when it reads ``input length and `max_tokens` exceed context limit``. Servers word this
//! differently and change their wording. So numbers are searched beside the words that name them,
//! instead of matching whole sentences.

use super::error_body::ErrorBody;
use super::number_beside::{leading_number, number_after};
use super::wordings::{
    AFFORDABLE, ANSWER, ANSWER_ABOVE, ANSWER_BOUND, ANSWER_LEAST, ANSWER_MOST, ANSWER_MOST_BESIDE,
    ANSWER_MOST_ELSE, ANSWER_TOKENS, ANSWER_UNITS, CONVERSATION, LIMIT_REACHED, NEGATIVE, NO_WORD,
    OTHERS_OF_A_WINDOW, PROMPT_TOKENS, PhraseRole, RATES, SUM_TOKENS, TOO_LONG,
    TOO_MUCH_OF_A_WINDOW, TOTAL_TOKENS, TOTAL_TOO_MUCH, WINDOW, WINDOW_CODES, WINDOW_SIZE,
    WRITTEN_BY_A_MODEL, Wordings,
};
use crate::error::{ContextLimit, MAX_TOKENS, NO_SPACE, OF_OUTPUT, Reason};
use crate::model::request_context::RequestContext;
use crate::text::words;
use crate::upstream_error::refused::ANSWER_MOST_LEAST;

/// Phrase of Snowflake's error for a full context window. Other servers use this phrase for the
/// limit of the answer, after other words.
const SNOWFLAKE: &str = "max tokens of ";
/// Phrase of Cohere's error for a limit of the answer. The phrase follows "too many tokens", which
/// Cohere also uses for prompts.
const COHERE: &str = "max tokens must be";
/// Maximum number of bytes between a number and its unit.
const UNIT_BYTES: usize = 48;
/// Maximum number of bytes between the name of a limit and its number.
const BESIDE_BYTES: usize = 96;

/// Returns the reason if an error with status 400 or 413 says that the conversation or the answer
/// is too long.
pub(super) fn too_long(error_body: &ErrorBody, context: &RequestContext) -> Option<Reason> {
    let of_window = |message: &str| {
        let text = lowered(message);
        is_window(error_body, &text)
            .then(|| Reason::ContextTooLong(context_limit(error_body, message, &text, context)))
    };
    of_window(&error_body.message)
        .or_else(|| too_much_output(&lowered(&error_body.message), context))
        .or_else(|| of_window(&error_body.rest))
}

/// Returns a message in the form that is searched: in lower case, and without the model output that
/// a server could not parse.
pub(super) fn lowered(message: &str) -> String {
    let own =
        WRITTEN_BY_A_MODEL.first_place(message).and_then(|at| message.get(..at)).unwrap_or(message);
    numbers_without_commas(&own.to_ascii_lowercase())
}

/// Returns true if a text says that a conversation is too long. A context window that is too small
/// for the server's memory does not count.
pub(super) fn names_a_long_conversation(text: &str) -> bool {
    let is_long = TOO_LONG.any(text) && !words::has(text, COHERE)
        || WINDOW.has(PhraseRole::Refusal, text) && CONVERSATION.says(text);
    is_long && !RATES.any(text) && !OTHERS_OF_A_WINDOW.any(text) && !is_of_the_answer(text)
}

fn is_window(error_body: &ErrorBody, text: &str) -> bool {
    let is_window = WINDOW.has(PhraseRole::Subject, text);
    let is_too_much = WINDOW.has(PhraseRole::Refusal, text);
    let of_window = (TOO_LONG.any(text) && (is_window || !words::has(text, COHERE))
        || is_window && (is_too_much || TOO_MUCH_OF_A_WINDOW.any(text)))
        && !OTHERS_OF_A_WINDOW.any(text)
        && !is_of_the_answer(text);
    error_body.has_code(&WINDOW_CODES)
        || error_body.context_tokens.is_some() && error_body.prompt_tokens.is_some()
        || !RATES.any(text)
            && (of_window
                || text.starts_with(SNOWFLAKE) && is_too_much
                || ANSWER.has(PhraseRole::Subject, text) && NEGATIVE.any(text)
                || text.starts_with("total tokens ") && TOTAL_TOO_MUCH.any(text)
                || LIMIT_REACHED.lists(words::trim_end(text, b"."))
                || is_too_much && CONVERSATION.says(text))
}

/// Returns true if the text begins with the limit of an answer and does not mention the prompt: a
/// shorter prompt would not help.
fn is_of_the_answer(text: &str) -> bool {
    let subject = words::trim_start(text, b"`'\"");
    let subject = words::after_start(subject, "invalid ").unwrap_or(subject);
    let subject = words::trim_start(subject, b"`'\"");
    ANSWER.phrases(PhraseRole::Subject).any(|limit| subject.starts_with(limit))
        && !ANSWER.has(PhraseRole::Other, text)
}

/// Returns the number after `word`, if the error names the limit of an answer beside that number or
/// is about no other limit.
fn number_of_the_answer(text: &str, word: &str) -> Option<u64> {
    words::places(text, word).find_map(|at| {
        let (before, after) = text.split_at_checked(at)?;
        let most = number_after(after, word).filter(|most| *most >= ANSWER_MOST_LEAST)?;
        let between = |limit: &str| {
            let end = words::places(before, limit).last()?.checked_add(limit.len())?;
            before.len().checked_sub(end)
        };
        let mut named = ANSWER.phrases(PhraseRole::Subject).filter_map(between);
        let named = named.any(|bytes| bytes <= BESIDE_BYTES);
        let has_unit = || ANSWER_UNITS.any(words::beginning(after, UNIT_BYTES));
        (named || is_of_the_answer(text) || has_unit()).then_some(most)
    })
}

fn context_limit(
    error_body: &ErrorBody,
    message: &str,
    text: &str,
    context: &RequestContext,
) -> ContextLimit {
    if words::has(message, NO_SPACE) {
        return in_own_words(message).unwrap_or(ContextLimit::Unknown);
    }
    let window = error_body.context_tokens.or_else(|| WINDOW_SIZE.number(text));
    let sum = SUM_TOKENS.number(text);
    let answer = ANSWER_TOKENS.number(text).or_else(|| sum.map(|_| context.limits.max_tokens));
    let total = sum
        .or_else(|| TOTAL_TOKENS.number(text))
        .filter(|total| answer.is_none_or(|answer| *total > answer));
    // A total is exact, while a number of prompt tokens may count only one of several parts.
    let complaint = error_body
        .prompt_tokens
        .or_else(|| total?.checked_sub(answer?))
        .or_else(|| number_after(text, "resulted in").filter(|_| answer.is_none()))
        .or_else(|| PROMPT_TOKENS.number(text));
    // A total without parts may include the answer, as Kimi's total does.
    let apart = total.filter(|_| complaint.is_none() && answer.is_none());
    let apart = apart.filter(|total| is_sum(text, *total, context));
    let answer = answer.or_else(|| apart.map(|_| context.limits.max_tokens));
    let prompt = complaint.or_else(|| apart?.checked_sub(context.limits.max_tokens));
    let prompt = prompt.map(|prompt| match (window, answer) {
        (Some(window), Some(answer)) => likely_prompt(prompt, answer, window, context.input_tokens),
        _ => prompt,
    });
    match (prompt.or(total), window, answer) {
        (Some(prompt), Some(window), _) if prompt > window => {
            ContextLimit::Prompt { prompt, window }
        }
        // Older SGLang counts one token more, so a sum that equals the window is too large.
        (Some(prompt), Some(window), Some(answer)) if prompt.saturating_add(answer) >= window => {
            ContextLimit::Sum { prompt, answer, window }
        }
        _ => known_window(context),
    }
}

/// Returns a limit made of the configured context window, for a server that states no numbers. The
/// prompt is assumed to exceed this window.
fn known_window(context: &RequestContext) -> ContextLimit {
    match context.limits.window {
        0 => ContextLimit::Unknown,
        window => {
            let prompt = context.input_tokens.max(window.saturating_add(1));
            ContextLimit::Prompt { prompt, window }
        }
    }
}

/// Phrase before a total of tokens that includes the answer, according to Kimi's documentation.
const SUM: &str = "exceeded model token limit";

/// Returns true if a total of tokens includes the answer: the total minus the answer is close to
/// the estimated prompt.
fn is_sum(text: &str, total: u64, context: &RequestContext) -> bool {
    let (estimate, answer) = (context.input_tokens, context.limits.max_tokens);
    let Some(rest) = total.checked_sub(answer).filter(|_| answer > 0) else { return false };
    let is_like = (rest / 2..=rest.saturating_mul(2)).contains(&estimate);
    words::has(text, SUM) || is_like && estimate.abs_diff(rest) < estimate.abs_diff(total)
}

/// Returns the likely number of tokens of a prompt. vLLM stops counting when no space is left for
/// the answer, and reports one token more than the space. Clients would reduce the limit only a
/// little, be refused again, and give up. So the estimate is used if it is larger, or else the
/// middle between the reported count and the window.
fn likely_prompt(prompt: u64, answer: u64, window: u64, estimate: u64) -> u64 {
    let is_bound =
        window.checked_sub(answer).and_then(|space| space.checked_add(1)) == Some(prompt);
    if !is_bound || estimate < prompt / 2 {
        return prompt;
    }
    if estimate > prompt {
        // The likely number stays below the window, because a prompt that fills the window would
        // count as certainly too long.
        return estimate.min(window.saturating_sub(1));
    }
    prompt.saturating_add(window.saturating_sub(prompt) / 2)
}

/// Returns the reason if `max_tokens` alone exceeds the model's maximum.
fn too_much_output(text: &str, context: &RequestContext) -> Option<Reason> {
    // An error about a sum is not about the answer alone.
    if !ANSWER.has(PhraseRole::Subject, text) || words::has(text, "sum of ") {
        return None;
    }
    let wanted = number_after(text, "is too large").unwrap_or(context.limits.max_tokens);
    let beside = |phrase| number_of_the_answer(text, phrase);
    let most = ANSWER_MOST
        .number(text)
        .or_else(|| ANSWER_MOST_BESIDE.phrases(PhraseRole::After).find_map(beside))
        .or_else(|| {
            ANSWER_BOUND
                .number(text)?
                .checked_sub(1)
                .filter(|_| words::has(text, "maxoutputtokens"))
        })
        .or_else(|| ANSWER_MOST_ELSE.number(text).filter(|_| is_of_the_answer(text)))?;
    let model = context.model.clone();
    (wanted > most).then_some(Reason::AnswerTooLong { wanted, most, model })
}

/// Returns the numbers of tokens in a message of Anthropic's API, unless a quotation precedes the
/// numbers: a client may have written them.
fn in_own_words(message: &str) -> Option<ContextLimit> {
    let sum = text_behind(message, NO_SPACE)?;
    let (prompt, rest) = words::split_once(sum, "+")?;
    let (answer, window) = words::split_once(rest, ">")?;
    let number = |text: &str| leading_number(text.trim());
    let (prompt, answer, window) = (number(prompt)?, number(answer)?, number(window)?);
    Some(ContextLimit::Sum { prompt, answer, window })
}

/// Returns the text of an error message behind the words `own`, unless a quotation precedes these
/// words.
fn text_behind<'m>(message: &'m str, own: &str) -> Option<&'m str> {
    let (before, behind) = words::split_once(message, own)?;
    (!before.contains(['"', '\'', '`', '{', '[', '\u{201c}'])).then_some(behind)
}

/// Returns the maximum number of output tokens stated in a message of Anthropic's API, or the
/// number that an account can afford (OpenRouter).
pub(super) fn most_output(message: &str) -> Option<u64> {
    let numbers = text_behind(message, MAX_TOKENS).and_then(|it| words::split_once(it, OF_OUTPUT));
    let Some((numbers, _)) = numbers else {
        let affordable = AFFORDABLE.number(message)?;
        return (affordable >= AFFORDABLE_LEAST).then_some(affordable);
    };
    let (wanted, most) = words::split_once(numbers, " > ")?;
    wanted.parse::<u64>().ok()?;
    most.parse().ok()
}

/// Minimum number of tokens that an account must be able to afford; otherwise it counts as empty.
const AFFORDABLE_LEAST: u64 = 1024;

/// Returns the rate limit of tokens per minute, if this single request exceeds it. Waiting does not
/// help, only a shorter request. Servers count the maximum tokens of the answer, too.
pub(super) fn over_rate(error_body: &ErrorBody, context: &RequestContext) -> Option<ContextLimit> {
    let text = lowered(&error_body.message);
    if words::has(&text, "used ") {
        return None;
    }
    // The model's name before `tokens per` may contain the word `limit`: `gpt-4.1 (for limit
    // gpt-4.1)`.
    let (_, text) = words::split_once(&text, "tokens per ")?;
    let window = number_after(text, "limit ")?;
    let requested = number_after(text, "requested ").filter(|requested| *requested > window)?;
    let prompt = requested.saturating_sub(context.limits.max_tokens);
    Some(if prompt > window {
        ContextLimit::Prompt { prompt: requested, window }
    } else {
        ContextLimit::Sum { prompt, answer: requested.saturating_sub(prompt), window }
    })
}

/// Returns true if the upstream refuses `max_tokens` as too low for even one word. Claude Code and
/// others ask for one token to test whether a model exists. OpenAI's reasoning models, and the
/// Responses API behind gateways, answer this with an error.
pub(super) fn is_answer_too_short(error_body: &ErrorBody, context: &RequestContext) -> bool {
    let text = error_body.message.to_ascii_lowercase();
    let least = |wordings: &Wordings, more: u64| {
        let mut numbers =
            wordings.phrases(PhraseRole::After).filter_map(|word| number_behind(&text, word));
        // A minimum above 100 tokens, or up to `max_tokens`, is the limit of another number.
        numbers.any(|least| {
            let least = least.saturating_add(more);
            least <= 100 && (1..least).contains(&context.limits.max_tokens)
        })
    };
    NO_WORD.any(&text)
        || ANSWER.has(PhraseRole::Subject, &text)
            && (least(&ANSWER_LEAST, 0) || least(&ANSWER_ABOVE, 1))
}

/// Returns the number directly after `word`.
fn number_behind(text: &str, word: &str) -> Option<u64> {
    let at = words::find(text, word)?;
    leading_number(text.get(at..)?.strip_prefix(word)?.trim_start())
}

/// Removes the commas within numbers: `128,000` becomes `128000`; `[1,8192]` has two numbers.
fn numbers_without_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        let behind = text.get(at..).unwrap_or_default().bytes().skip(1);
        let digits = || behind.take_while(u8::is_ascii_digit).take(4).count();
        let is_between =
            letter == ',' && out.ends_with(|last: char| last.is_ascii_digit()) && digits() == 3;
        if !is_between {
            out.push(letter);
        }
    }
    out
}

#[cfg(test)]
mod tests;
