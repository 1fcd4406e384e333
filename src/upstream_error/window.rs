//! Errors that say that a conversation is too long, in the words by which clients know them.
//!
//! Claude Code compacts a conversation when it reads `prompt is too long`, and asks for fewer tokens
//! when it reads ``input length and `max_tokens` exceed context limit``. Each server has its own
//! wording, and changes it; so the numbers are looked for beside the words that name them, not by
//! whole sentences.

mod phrases;

use phrases::{
    ANSWER_AFTER, ANSWER_BEFORE, ANSWER_BOUND_BEFORE, ANSWER_LIMITS, ANSWER_MOST_AFTER,
    ANSWER_MOST_ALONE, ANSWER_MOST_BESIDE, ANSWER_MOST_LEAST, ANSWER_UNITS, BESIDE_BYTES, COHERE,
    CONVERSATIONS, LIMITS, OTHERS, OTHERS_OF_A_WINDOW, PHRASES, PROMPT_AFTER, PROMPT_BEFORE,
    PROMPTS, QUOTING, SNOWFLAKE, SUM_AFTER, TOO_MUCH, TOO_MUCH_OF_A_WINDOW, TOTAL_AFTER,
    UNIT_BYTES, WINDOW_AFTER, WINDOW_BEFORE, WINDOWS,
};
pub(super) use phrases::{CODES, RATES};

use super::error_body::ErrorBody;
use crate::error::{ContextLimit, MAX_TOKENS, NO_SPACE, OF_OUTPUT, Reason};
use crate::model::request_context::RequestContext;
use crate::text::words::{self, phrases};

/// What is too long where an error with status 400 or 413 means that.
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

/// A message as it is searched: without what a model wrote, where a server could not parse it.
pub(super) fn lowered(message: &str) -> String {
    let quoted = words::each(QUOTING).filter_map(|word| words::find(message, word)).min();
    let own = quoted.and_then(|at| message.get(..at)).unwrap_or(message);
    numbers_without_commas(&own.to_ascii_lowercase())
}

fn is_window(error_body: &ErrorBody, text: &str) -> bool {
    let has = |any: &str| words::has_one_of(text, any);
    let of_window = (has(PHRASES) && (has(WINDOWS) || !words::has(text, COHERE))
        || has(WINDOWS) && (has(TOO_MUCH) || has(TOO_MUCH_OF_A_WINDOW)))
        && !has(OTHERS_OF_A_WINDOW)
        && !is_of_the_answer(text);
    error_body.has_code(CODES)
        || error_body.context_tokens.is_some() && error_body.prompt_tokens.is_some()
        || !has(RATES)
            && (of_window
                || text.starts_with(SNOWFLAKE) && has(TOO_MUCH)
                || is_negative(text)
                || text.starts_with("total tokens ") && words::has(text, "exceeds the maximum")
                || matches!(
                    words::trim_end(text, b"."),
                    "token limit exceeded" | "token limit reached"
                )
                || has(LIMITS) && has(TOO_MUCH) && has(CONVERSATIONS) && !has(OTHERS))
}

/// Whether it begins with the limit of an answer and speaks of no prompt: a shorter one would not help.
fn is_of_the_answer(text: &str) -> bool {
    let subject = words::trim_start(text, b"`'\"");
    let subject = words::after_start(subject, "invalid ").unwrap_or(subject);
    let subject = words::trim_start(subject, b"`'\"");
    words::each(ANSWER_LIMITS).any(|limit| subject.starts_with(limit))
        && !words::has_one_of(text, PROMPTS)
}

/// The number that follows `word` where the limit of an answer is named beside it, or the error is about nothing else.
fn number_of_the_answer(text: &str, word: &str) -> Option<u64> {
    words::places(text, word).find_map(|at| {
        let (before, after) = text.split_at_checked(at)?;
        let most = number_after(after, word).filter(|most| *most >= ANSWER_MOST_LEAST)?;
        let between = |limit: &str| {
            let end = words::places(before, limit).last()?.checked_add(limit.len())?;
            before.len().checked_sub(end)
        };
        let named =
            words::each(ANSWER_LIMITS).filter_map(between).any(|bytes| bytes <= BESIDE_BYTES);
        let has_unit = || words::has_one_of(words::beginning(after, UNIT_BYTES), ANSWER_UNITS);
        (named || is_of_the_answer(text) || has_unit()).then_some(most)
    })
}

/// vLLM subtracts the prompt from the window and finds that less than nothing is left for the answer. No client asks
/// for that.
fn is_negative(text: &str) -> bool {
    words::has_one_of(text, ANSWER_LIMITS) && words::has(text, "at least 1, got -")
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
    let window = error_body
        .context_tokens
        .or_else(|| first(WINDOW_AFTER, text, number_after))
        .or_else(|| first(WINDOW_BEFORE, text, number_before));
    let sum = first(SUM_AFTER, text, number_after);
    let answer = first(ANSWER_BEFORE, text, number_before)
        .or_else(|| first(ANSWER_AFTER, text, number_after))
        .or_else(|| sum.map(|_| context.max_tokens));
    let total = sum
        .or_else(|| first(TOTAL_AFTER, text, number_after))
        .filter(|total| answer.is_none_or(|answer| *total > answer));
    // A total is exact where the prompt has several parts of which one was found.
    let complaint = error_body
        .prompt_tokens
        .or_else(|| total?.checked_sub(answer?))
        .or_else(|| number_after(text, "resulted in").filter(|_| answer.is_none()))
        .or_else(|| first(PROMPT_BEFORE, text, number_before))
        .or_else(|| first(PROMPT_AFTER, text, number_after));
    // Of a total without parts it is not told whether the answer is in it: Kimi's.
    let apart = total.filter(|_| complaint.is_none() && answer.is_none());
    let apart = apart.filter(|total| is_sum(text, *total, context));
    let answer = answer.or_else(|| apart.map(|_| context.max_tokens));
    let prompt = complaint.or_else(|| apart?.checked_sub(context.max_tokens));
    let prompt = prompt.map(|prompt| match (window, answer) {
        (Some(window), Some(answer)) => likely_prompt(prompt, answer, window, context.input_tokens),
        _ => prompt,
    });
    match (prompt.or(total), window, answer) {
        (Some(prompt), Some(window), _) if prompt > window => {
            ContextLimit::Prompt { prompt, window }
        }
        // Some count one token more: older SGLang.
        (Some(prompt), Some(window), Some(answer)) if prompt.saturating_add(answer) >= window => {
            ContextLimit::Sum { prompt, answer, window }
        }
        _ => ContextLimit::Unknown,
    }
}

/// In front of a total that has the answer in it, as Kimi's documentation says.
const SUM: &str = "exceeded model token limit";

/// Whether the answer is in a total of which no part is known: the rest without it looks like the prompt.
fn is_sum(text: &str, total: u64, context: &RequestContext) -> bool {
    let (estimate, answer) = (context.input_tokens, context.max_tokens);
    let Some(rest) = total.checked_sub(answer).filter(|_| answer > 0) else { return false };
    let is_like = (rest / 2..=rest.saturating_mul(2)).contains(&estimate);
    words::has(text, SUM) || is_like && estimate.abs_diff(rest) < estimate.abs_diff(total)
}

/// The tokens of a prompt. vLLM stops counting once there is no room for the answer, and then says one token more than
/// there is room for. Clients would ask for as much less than that as they keep in reserve, be refused again, and give
/// up long before it fits. So where the prompt looks as long to us, we say what it looks like, or else that half of
/// what may be left is taken.
fn likely_prompt(prompt: u64, answer: u64, window: u64, estimate: u64) -> u64 {
    let is_bound = window.checked_sub(answer).and_then(|room| room.checked_add(1)) == Some(prompt);
    if !is_bound || estimate < prompt / 2 {
        return prompt;
    }
    if estimate > prompt {
        // Not the whole of it: that would be said of a prompt that is certainly too long.
        return estimate.min(window.saturating_sub(1));
    }
    prompt.saturating_add(window.saturating_sub(prompt) / 2)
}

/// `max_tokens` alone is more than the model gives.
fn too_much_output(text: &str, context: &RequestContext) -> Option<Reason> {
    // A sum is not of the answer alone.
    if !words::has_one_of(text, ANSWER_LIMITS) || words::has(text, "sum of ") {
        return None;
    }
    let wanted = number_after(text, "is too large").unwrap_or(context.max_tokens);
    let bound = || number_before(text, ANSWER_BOUND_BEFORE)?.checked_sub(1);
    let alone = || first(ANSWER_MOST_ALONE, text, number_after);
    let most = first(ANSWER_MOST_AFTER, text, number_after)
        .or_else(|| first(ANSWER_MOST_BESIDE, text, number_of_the_answer))
        .or_else(|| words::has(text, "maxoutputtokens").then(bound).flatten())
        .or_else(|| is_of_the_answer(text).then(alone).flatten())?;
    let model = context.model.clone();
    (wanted > most).then_some(Reason::AnswerTooLong { wanted, most, model })
}

/// The numbers of the real API, unless something is quoted before them: a client may have written them.
fn in_own_words(message: &str) -> Option<ContextLimit> {
    let sum = text_behind(message, NO_SPACE)?;
    let (prompt, rest) = words::split_once(sum, "+")?;
    let (answer, window) = words::split_once(rest, ">")?;
    let number = |text: &str| leading_number(text.trim());
    let (prompt, answer, window) = (number(prompt)?, number(answer)?, number(window)?);
    Some(ContextLimit::Sum { prompt, answer, window })
}

/// The text behind some words of the error, unless something is quoted before them.
fn text_behind<'m>(message: &'m str, own: &str) -> Option<&'m str> {
    let (before, behind) = words::split_once(message, own)?;
    (!before.contains(['"', '\'', '`', '{', '[', '\u{201c}'])).then_some(behind)
}

/// The most tokens that an answer may have, by the real API's words, or for which an account has credit (OpenRouter).
pub(super) fn most_output(message: &str) -> Option<u64> {
    let numbers = text_behind(message, MAX_TOKENS).and_then(|it| words::split_once(it, OF_OUTPUT));
    let Some((numbers, _)) = numbers else {
        let affordable = number_after(message, "can only afford")?;
        return (affordable >= AFFORDABLE_LEAST).then_some(affordable);
    };
    let (wanted, most) = words::split_once(numbers, " > ")?;
    wanted.parse::<u64>().ok()?;
    most.parse().ok()
}

/// With fewer tokens an account is empty.
const AFFORDABLE_LEAST: u64 = 1024;

/// A limit of tokens per minute that is less than this request alone: no waiting helps, only a shorter one.
/// Servers count the tokens that the answer may have.
pub(super) fn over_rate(error_body: &ErrorBody, context: &RequestContext) -> Option<ContextLimit> {
    let text = lowered(&error_body.message);
    if words::has(&text, "used ") {
        return None;
    }
    // Before that, the model's name may have a limit of its own: `gpt-4.1 (for limit gpt-4.1)`.
    let (_, text) = words::split_once(&text, "tokens per ")?;
    let window = number_after(text, "limit ")?;
    let requested = number_after(text, "requested ").filter(|requested| *requested > window)?;
    let prompt = requested.saturating_sub(context.max_tokens);
    Some(if prompt > window {
        ContextLimit::Prompt { prompt: requested, window }
    } else {
        ContextLimit::Sum { prompt, answer: requested.saturating_sub(prompt), window }
    })
}

/// Whether `max_tokens` is too low for a word. Claude Code and others ask for one token to see whether a model
/// is there; the models of OpenAI that think first, and the Responses API behind gateways, take so few for an error.
pub(super) fn is_answer_too_short(error_body: &ErrorBody, context: &RequestContext) -> bool {
    let text = error_body.message.to_ascii_lowercase();
    words::has(&text, "could not finish the message because max_tokens")
        || words::has_one_of(&text, ANSWER_LIMITS)
            && LEAST.iter().any(|(words, more)| {
                let least = number_behind(&text, words).map(|it| it.saturating_add(*more));
                // A limit beyond these is that of something else.
                least.is_some_and(|least| least <= 100 && (1..least).contains(&context.max_tokens))
            })
}

/// How servers say which limit is the least, and how much more than the number it is.
const LEAST: [(&str, u64); 5] = [
    ("a value >=", 0),
    ("must be at least", 0),
    ("must be greater than or equal to", 0),
    ("should be greater than or equal to", 0),
    ("must be greater than", 1),
];

/// The number directly behind `word`.
fn number_behind(text: &str, word: &str) -> Option<u64> {
    let at = words::find(text, word)?;
    leading_number(text.get(at..)?.strip_prefix(word)?.trim_start())
}

/// What `find` finds in `text` by the first of some phrases with which it does.
fn first(phrases: &str, text: &str, find: fn(&str, &str) -> Option<u64>) -> Option<u64> {
    words::each(phrases).find_map(|phrase| find(text, phrase))
}

/// The number that follows `word` in the same clause: `context length of only 8192`.
pub(super) fn number_after(text: &str, word: &str) -> Option<u64> {
    const BETWEEN_MAX: usize = 24;
    words::places(text, word).find_map(|at| {
        let rest = text.get(at..)?.strip_prefix(word)?;
        let digits = rest.find(|letter: char| letter.is_ascii_digit())?;
        let (between, rest) = rest.split_at_checked(digits)?;
        // "exceeded the context length by 12 tokens" names no length, and neither does that "of DeepSeek-V3".
        let other = between.contains([';', '>', '`', '\''])
            || words::has_one_of(between, phrases![". ", ", ", " by ", " and ", "[", "http"]);
        let of_name = between.bytes().last().is_some_and(words::is_name_byte);
        let is_beside = between.len() <= BETWEEN_MAX && !other && !of_name;
        is_beside.then(|| leading_number(rest)).flatten()
    })
}

/// The number that stands directly before `word`: `5000 in the messages`.
fn number_before(text: &str, word: &str) -> Option<u64> {
    words::places(text, word).find_map(|at| {
        let before = words::trim_end(text.get(..at)?, b" (`'");
        let start = words::trim_end(before, b"0123456789").len();
        before.get(start..)?.parse().ok()
    })
}

/// The number that a text begins with.
pub(super) fn leading_number(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

/// `128,000` becomes `128000`; `[1,8192]` has two numbers.
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
