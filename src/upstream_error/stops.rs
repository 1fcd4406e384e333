//! Detection of errors about stop sequences: too many, or too long.

use super::number_beside::number_after;
use super::python;
use super::quoted::own_words;
use super::wordings::{PhraseRole, STOP_SEQUENCES, STOP_SEQUENCES_MOST};
use crate::error::{Parameter, Reason};
use crate::text::words;

/// Maximum number of bytes before the word `stop` in an error about stop sequences.
const BEGINNING_BYTES: usize = 40;

/// Returns the reason if an error refuses the stop sequences. `sent`: the number of stop sequences
/// in the request.
pub(super) fn refused_stops(message: &str, parameter: Option<&str>, sent: usize) -> Option<Reason> {
    let complaint = python::complaint(message);
    let text = own_words(complaint.as_deref().unwrap_or(message));
    let begins = words::names(&text, "stop").any(|at| at <= BEGINNING_BYTES);
    let named = parameter.is_some_and(|name| name.to_ascii_lowercase().starts_with("stop"));
    if sent == 0 || !(named || begins || STOP_SEQUENCES.has(PhraseRole::Subject, &text)) {
        return None;
    }
    let number = |phrase: &str| usize::try_from(number_after(&text, phrase)?).ok();
    let most = STOP_SEQUENCES_MOST
        .phrases(PhraseRole::After)
        .find_map(number)
        .filter(|most| (1..sent).contains(most));
    match most {
        Some(most) => Some(Reason::StopCount(most)),
        None => STOP_SEQUENCES
            .has(PhraseRole::Refusal, &text)
            .then_some(Reason::Parameter(Parameter::Stop)),
    }
}

#[cfg(test)]
mod tests;
