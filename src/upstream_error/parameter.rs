//! Errors that say that a model or server does not take a parameter of the request, or this value of it. Clients
//! send their settings with each request, so it would refuse them all.

use super::{python, without_quotes};
use crate::error::{Parameter, Reason};
use crate::text::words::{self, phrases};

const EFFORT: Reason = Reason::Effort { taken: Vec::new(), names_value: false };

/// Parameters as servers name them, in lower case, and what is refused with each.
static NAMES: [(&[&str], Reason); 12] = [
    (&["max_tokens", "max_completion_tokens"], Reason::Parameter(Parameter::MaxTokensField)),
    (&["reasoning_effort", "reasoning.effort", "output_config.effort"], EFFORT),
    // xAI's; Ollama's
    (&["reasoningeffort", "invalid reasoning value", "think value"], EFFORT),
    (
        &["enable_thinking", "chat_template_kwargs", "chat_template"],
        Reason::Parameter(Parameter::ThinkingSwitch),
    ),
    (
        &["thinking_budget_tokens", "thinking_token_budget"],
        Reason::Parameter(Parameter::ThinkingBudget),
    ),
    (&["temperature", "top_p"], Reason::Parameter(Parameter::Sampling)),
    (&["top_k"], Reason::Parameter(Parameter::TopK)),
    (&["stopsequences", "stop_sequences"], Reason::Parameter(Parameter::Stop)),
    (&["parallel_tool_calls"], Reason::Parameter(Parameter::ParallelToolCalls)),
    (&["prompt_cache_key"], Reason::Parameter(Parameter::PromptCacheKey)),
    (&["service_tier"], Reason::Parameter(Parameter::ServiceTier)),
    (&["safety_identifier"], Reason::Parameter(Parameter::User)),
];

/// Those that are words, too: they count only where they stand as parameters do.
static WORDS: [(&[&str], Reason); 3] = [
    (&["stop"], Reason::Parameter(Parameter::Stop)),
    (&["thinking"], Reason::Parameter(Parameter::ThinkingSwitch)),
    (&["user", "metadata"], Reason::Parameter(Parameter::User)),
];

/// What stands before those, in place of a quote.
const BEFORE_WORDS: &str = phrases!["body.", "parameter ", "parameters ", "argument ", "field "];

/// What is said of one.
const REFUSALS: &str = phrases![
    "not support",
    "doesnt support",
    "not yet support",
    "no longer support",
    "unsupported",
    "unrecognized",
    "unknown",
    "not permitted",
    "not allowed",
    "extraneous",
    "unexpected keyword argument",
    "additional propert",
    "deprecated",
    // Kimi: `invalid temperature: only 1 is allowed for this model`
    "allowed for this model",
    // Claude's
    "cannot both",
    "may only be set",
    "must be unset",
    "or unset when",
    // Qwen's models that always think
    "restricted to",
    "invalid reasoning value",
];

/// What is said of an effort beside these: it has a few values, so one that is not among them is refused.
const EFFORT_REFUSALS: &str = phrases!["must be one of", "should be ", "validation error for"];

/// What stands before the names, or values, that would be taken, and what ends these.
const TAKEN: &str = phrases![
    "supported parameters",
    "supported values",
    "known properties",
    "expected one of",
    "must be one of",
    // pydantic, and Hy3's template
    "should be ",
    "did you mean",
    "(must be",
    ". use ",
];
const TAKEN_UNTIL: &str = phrases!["'input'", "received", "got:", "got "];

/// What such an error does not speak of.
const OTHERS: &str =
    phrases!["tool_choice", "schema for", "tool call", "in context=", "messages[", "tools["];

/// Beginnings of paths that go on with a name.
const OTHER_PATHS: &str = phrases!["messages.", "tools."];

/// What an upstream's error message refuses of a request's parameters. `parameter`: what the error names beside it.
pub(super) fn refused_parameter(message: &str, parameter: Option<&str>) -> Option<Reason> {
    let complaint = python::complaint(message);
    let message = complaint.as_deref().unwrap_or(message).to_ascii_lowercase();
    let named = refused_by(&message);
    named.or_else(|| refused_by(&format!("{}: {message}", parameter?.to_ascii_lowercase())))
}

fn refused_by(message: &str) -> Option<Reason> {
    // What pydantic quotes of the request
    let message =
        words::split_once(message, "[type=").map_or(message, |(error_body, _)| error_body);
    let text = without_quotes(message);
    let has = |any: &str| words::has_one_of(&text, any);
    let is_path = |path: &str| {
        words::places(&text, path)
            .any(|at| text.as_bytes().get(at.saturating_add(path.len())).is_some_and(is_name_byte))
    };
    if has(OTHERS) || words::each(OTHER_PATHS).any(is_path) {
        return None;
    }
    if has("function tools with reasoning_effort") {
        // OpenAI's newer models take tools only so.
        return Some(Reason::Effort { taken: vec!["none"], names_value: true });
    }
    // The model thinks always, or never.
    if has(phrases!["thinking", "reasoning"]) && has("cannot be disabled") {
        return Some(Reason::Parameter(Parameter::ThinkingSwitch));
    }
    let taken = words::each(TAKEN).filter_map(|start| words::find(message, start)).min();
    let (error_body, taken) = message.split_at_checked(taken.unwrap_or(message.len()))?;
    let first = |all: &'static [(&[&str], Reason)], place: fn(&str, &str) -> Option<usize>| {
        let places = all.iter().flat_map(move |(names, reason)| {
            names.iter().filter_map(move |name| Some((place(error_body, name)?, reason)))
        });
        places.min_by_key(|(at, _)| *at)
    };
    // `user` is a role, too.
    let as_word = if has("role") { None } else { first(&WORDS, place_of_word) };
    let named = first(&NAMES, place).into_iter().chain(as_word).min_by_key(|(at, _)| *at);
    let Some((at, refused)) = named else {
        let never = has(phrases!["not support thinking", "doesnt support thinking"]);
        return (never && !has("thinking budget"))
            .then_some(Reason::Parameter(Parameter::Thinking));
    };
    match refused {
        Reason::Effort { .. } if has(REFUSALS) || has(EFFORT_REFUSALS) => {
            let names_value = !efforts(message).is_empty();
            Some(Reason::Effort { taken: efforts(taken), names_value })
        }
        // A limit that is too high has the same words.
        Reason::Parameter(Parameter::MaxTokensField)
            if is_beside_number(error_body, at) || has(phrases!["limit", "at most"]) =>
        {
            None
        }
        // What else it may be is a matter of its value.
        _ if words::has_one_of(taken, EFFORT_REFUSALS) || !has(REFUSALS) => None,
        refused => Some(refused.clone()),
    }
}

fn is_name_byte(byte: &u8) -> bool {
    words::is_name_byte(*byte)
}

/// Where a parameter is named: alone or behind `body.`, and not within another name or path.
fn place(text: &str, name: &str) -> Option<usize> {
    places(text, name).next()
}

fn places(text: &str, name: &str) -> impl Iterator<Item = usize> {
    words::names(text, name).filter(|at| {
        let before = text.get(..*at).unwrap_or_default();
        let before = before.strip_suffix("body.").unwrap_or(before).as_bytes().last();
        !before.is_some_and(|byte| is_name_byte(byte) || *byte == b'.')
    })
}

/// Where `name`, a plain word, stands in quotes or in the place of a parameter.
fn place_of_word(text: &str, name: &str) -> Option<usize> {
    places(text, name).find(|at| {
        let (before, behind) = text.split_at_checked(*at).unwrap_or_default();
        let behind = behind.get(name.len()..).unwrap_or_default();
        let next = behind.bytes().next();
        let is_quoted =
            before.ends_with(['\'', '"', '`']) && matches!(next, Some(b'\'' | b'"' | b'`'));
        let begins = before.is_empty() && next == Some(b':');
        let stands = words::each(BEFORE_WORDS).any(|start| before.ends_with(start));
        let ends = before.ends_with(": ") && matches!(next, None | Some(b'.' | b',' | b':'));
        is_quoted || begins || stands || ends || behind.starts_with(" field")
    })
}

/// Whether a parameter is named with a value: `max_tokens (64000)`.
fn is_beside_number(text: &str, at: usize) -> bool {
    let behind = text.get(at..).unwrap_or_default();
    let rest =
        behind.trim_start_matches(|letter: char| letter.is_ascii_lowercase() || letter == '_');
    rest.trim_start_matches([' ', '=', ':', '(', '\'', '"', '`'])
        .starts_with(|letter: char| letter.is_ascii_digit())
}

/// The values at which a model thinks, among those that are listed.
fn efforts(taken: &str) -> Vec<&'static str> {
    let until = words::each(TAKEN_UNTIL).filter_map(|end| words::find(taken, end)).min();
    let listed = words::beginning(taken, until.unwrap_or(taken.len()));
    let mut efforts = vec!["minimal", "low", "medium", "high", "xhigh", "max"];
    efforts.retain(|effort| place(listed, effort).is_some());
    efforts
}

#[cfg(test)]
mod tests;
