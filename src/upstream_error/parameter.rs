//! Detection of errors about a parameter of the request, or its value, that the upstream does not
//! support. Clients send their settings with each request, so every request would be refused.

use super::wordings::{
    ALWAYS_THINKS, BEFORE_PARAMETER, EFFORT, NEVER_THINKS, NO_ENCRYPTION, PARAMETER, PhraseRole,
    TAKEN, TAKEN_UNTIL,
};
use super::{python, without_quotes};
use crate::error::{Parameter, Reason};
use crate::text::words;

const NAMED_EFFORT: Reason = Reason::Effort { taken: Vec::new(), names_value: false };

/// Names of parameters in error messages, in lower case, with the reason for each.
static NAMES: [(&[&str], Reason); 14] = [
    (&["max_tokens", "max_completion_tokens"], Reason::Parameter(Parameter::MaxTokensField)),
    (&["reasoning_effort", "reasoning.effort", "output_config.effort"], NAMED_EFFORT),
    // Phrases of xAI and of Ollama.
    (&["reasoningeffort", "invalid reasoning value", "think value"], NAMED_EFFORT),
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
    (
        &["reasoning.summary", "reasoning summaries", "reasoning_summary"],
        Reason::Parameter(Parameter::ReasoningSummary),
    ),
    (&["max_output_tokens"], Reason::Parameter(Parameter::OutputLimit)),
];

/// Names of parameters that are ordinary words, too. These words count only at positions where a
/// parameter is named.
static WORDS: [(&[&str], Reason); 6] = [
    (&["stop"], Reason::Parameter(Parameter::Stop)),
    (&["thinking"], Reason::Parameter(Parameter::ThinkingSwitch)),
    (&["user", "metadata"], Reason::Parameter(Parameter::User)),
    (&["include"], Reason::Parameter(Parameter::Include)),
    (&["store"], Reason::Parameter(Parameter::Store)),
    (&["phase"], Reason::Parameter(Parameter::Phase)),
];

/// Beginnings of paths to members of messages or tools, whose last name may equal the name of a
/// parameter.
const OTHER_PATHS: [&str; 2] = ["messages.", "tools."];

/// Returns the parameter that an upstream's error message refuses. `parameter`: the name that the
/// error states in a separate member.
pub(super) fn refused_parameter(message: &str, parameter: Option<&str>) -> Option<Reason> {
    let complaint = python::complaint(message);
    let message = complaint.as_deref().unwrap_or(message).to_ascii_lowercase();
    let named = refused_by(&message);
    named.or_else(|| refused_by(&format!("{}: {message}", parameter?.to_ascii_lowercase())))
}

fn refused_by(whole: &str) -> Option<Reason> {
    // Pydantic quotes the request after `[type=`.
    let message = words::split_once(whole, "[type=").map_or(whole, |(error_body, _)| error_body);
    let text = without_quotes(message);
    let is_path = |path: &str| {
        words::places(&text, path)
            .any(|at| text.as_bytes().get(at.saturating_add(path.len())).is_some_and(is_name_byte))
    };
    if PARAMETER.has(PhraseRole::Other, &text) || OTHER_PATHS.into_iter().any(is_path) {
        return None;
    }
    if words::has(&text, "function tools with reasoning_effort") {
        // OpenAI's newer models take tools only with the effort `none`.
        return Some(Reason::Effort { taken: vec!["none"], names_value: true });
    }
    if NO_ENCRYPTION.any(&text) {
        return Some(Reason::Parameter(Parameter::Include));
    }
    if ALWAYS_THINKS.any(&text) {
        return Some(Reason::Parameter(Parameter::ThinkingSwitch));
    }
    let taken = TAKEN.first_place(message).unwrap_or(message.len());
    let (error_body, taken) = message.split_at_checked(taken)?;
    let first = |all: &'static [(&[&str], Reason)], place: fn(&str, &str) -> Option<usize>| {
        let places = all.iter().flat_map(move |(names, reason)| {
            names.iter().filter_map(move |name| Some((place(error_body, name)?, reason)))
        });
        places.min_by_key(|(at, _)| *at)
    };
    // The word `user` also names a role, which is no parameter.
    let as_word = if words::has(&text, "role") { None } else { first(&WORDS, place_of_word) };
    let named = first(&NAMES, place).into_iter().chain(as_word).min_by_key(|(at, _)| *at);
    let Some((at, refused)) = named else {
        return NEVER_THINKS.says(&text).then_some(Reason::Parameter(Parameter::Thinking));
    };
    let is_refused = PARAMETER.has(PhraseRole::Refusal, &text);
    match refused {
        Reason::Effort { .. } if is_refused || EFFORT.has(PhraseRole::Refusal, &text) => {
            let names_value = !efforts(whole).is_empty();
            Some(Reason::Effort { taken: efforts(taken), names_value })
        }
        // Errors about a limit that is too high name the same parameters.
        Reason::Parameter(Parameter::MaxTokensField | Parameter::OutputLimit)
            if is_beside_number(error_body, at) || words::has_any(&text, &["limit", "at most"]) =>
        {
            None
        }
        // An error that refuses only the parameter's value does not refuse the parameter.
        _ if EFFORT.has(PhraseRole::Refusal, taken) || !is_refused => None,
        refused => Some(refused.clone()),
    }
}

fn is_name_byte(byte: &u8) -> bool {
    words::is_name_byte(*byte)
}

/// Returns the position of a parameter's name: alone or after `body.`, and not within another name
/// or path.
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

/// Returns the position of `name`, an ordinary word, if the word is in quotes or at a position
/// where a parameter is named.
fn place_of_word(text: &str, name: &str) -> Option<usize> {
    places(text, name).find(|at| {
        let (before, behind) = text.split_at_checked(*at).unwrap_or_default();
        let behind = behind.get(name.len()..).unwrap_or_default();
        let next = behind.bytes().next();
        let is_quoted =
            before.ends_with(['\'', '"', '`']) && matches!(next, Some(b'\'' | b'"' | b'`'));
        let begins = before.is_empty() && next == Some(b':');
        let stands =
            BEFORE_PARAMETER.phrases(PhraseRole::Alone).any(|start| before.ends_with(start));
        let ends = before.ends_with(": ") && matches!(next, None | Some(b'.' | b',' | b':'));
        is_quoted || begins || stands || ends || behind.starts_with(" field")
    })
}

/// Returns true if the parameter's name is followed by a number: `max_tokens (64000)`.
fn is_beside_number(text: &str, at: usize) -> bool {
    let behind = text.get(at..).unwrap_or_default();
    let rest =
        behind.trim_start_matches(|letter: char| letter.is_ascii_lowercase() || letter == '_');
    rest.trim_start_matches([' ', '=', ':', '(', '\'', '"', '`'])
        .starts_with(|letter: char| letter.is_ascii_digit())
}

/// Returns the effort values in a list of allowed values, without those that disable thinking.
fn efforts(taken: &str) -> Vec<&'static str> {
    let until = TAKEN_UNTIL.first_place(taken).unwrap_or(taken.len());
    let listed = words::beginning(taken, until);
    let mut efforts = vec!["minimal", "low", "medium", "high", "xhigh", "max"];
    efforts.retain(|effort| place(listed, effort).is_some());
    efforts
}

#[cfg(test)]
mod tests;
