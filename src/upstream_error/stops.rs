//! Errors that say that a server takes fewer stop sequences than it got, or shorter ones.

use super::python;
use super::quoted::own_words;
use super::window::number_after;
use crate::error::{Parameter, Reason};
use crate::text::words::{self, phrases};

/// How stop sequences are called, in lower case and without quotes. `stop` alone counts at the beginning only.
const SUBJECTS: &str = phrases![
    "stop sequence",
    "stop_sequence",
    "stopsequence",
    "stop string",
    "stop word",
    "stop token",
    "stop parameter",
    "parameter stop",
    "invalid stop",
    "- stop",
    "$.stop",
];

/// In front of the most that it takes.
const MOST: &str = phrases![
    "at most",
    "maximum length",
    "maximum number of items is",
    "maximum number of stop sequences is",
    "maximum of",
    "maximum is",
    "max of",
    "(max",
    "up to",
    "more than",
    "less than or equal to",
    "not exceed",
    "cannot exceed",
    "exceeds the limit of",
    "limited to",
    "limit of",
    "limit is",
    "maxitems",
    "must be <=",
];

/// What is said where no number is.
const TOO_MANY: &str = phrases!["too many", "too long", "exceeds"];

/// Most bytes in front of `stop` where the error is about that.
const BEGINNING_BYTES: usize = 40;

/// What is refused of so many stop sequences.
pub(super) fn refused_stops(message: &str, parameter: Option<&str>, sent: usize) -> Option<Reason> {
    let complaint = python::complaint(message);
    let text = own_words(complaint.as_deref().unwrap_or(message));
    let begins = words::names(&text, "stop").any(|at| at <= BEGINNING_BYTES);
    let named = parameter.is_some_and(|name| name.to_ascii_lowercase().starts_with("stop"));
    if sent == 0 || !(named || begins || words::has_one_of(&text, SUBJECTS)) {
        return None;
    }
    let number = |phrase: &str| usize::try_from(number_after(&text, phrase)?).ok();
    let most = words::each(MOST).find_map(number).filter(|most| (1..sent).contains(most));
    match most {
        Some(most) => Some(Reason::StopCount(most)),
        None => words::has_one_of(&text, TOO_MANY).then_some(Reason::Parameter(Parameter::Stop)),
    }
}

#[cfg(test)]
mod tests;
