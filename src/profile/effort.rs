//! Effort of reasoning: the value that a client names, and the nearest value that an upstream
//! accepts.

use super::Effort;
use crate::json::Str;

/// Returns the value of `values` that is sent instead of the client's effort, if there is one.
pub(crate) fn nearest_of(word: Str<'_>, values: &[Effort]) -> Option<Effort> {
    nearest(of_word(word)?, values)
}

/// Returns the effort that a client names.
pub(crate) fn of_word(word: Str<'_>) -> Option<Effort> {
    let all = [Effort::Low, Effort::Medium, Effort::High, Effort::Xhigh, Effort::Max];
    all.into_iter().find(|effort| word == effort.word())
}

/// Returns the value that is sent to the upstream: the wanted one, else the next lower one, else
/// the lowest except `none`. Returns `none` only if there is no other value.
pub(crate) fn nearest(wanted: Effort, values: &[Effort]) -> Option<Effort> {
    let thinking = || values.iter().copied().filter(|value| *value != Effort::None);
    let lower = thinking().filter(|value| *value <= wanted).max();
    lower.or_else(|| thinking().min()).or_else(|| values.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effort_that_is_not_there_becomes_the_next_lower_one() {
        use Effort::{High, Low, Max, Medium, Minimal, None, Xhigh};
        for (wanted, values, expected) in [
            (Xhigh, &[None, Minimal, Low, Medium, High, Xhigh, Max][..], Some(Xhigh)),
            (Xhigh, &[Low, High, Max], Some(High)),
            (Max, &[Low, Medium, High], Some(High)),
            (Medium, &[Low, High, Max], Some(Low)),
            (Low, &[None, High], Some(High)),
            (Low, &[None], Some(None)),
            (High, &[], Option::None),
        ] {
            assert_eq!(nearest(wanted, values), expected, "{wanted:?} {values:?}");
        }
    }
}
