//! Effort of reasoning: the value that a client names, and the nearest one that an upstream takes.

use super::Effort;
use crate::json::Str;

/// The value that an upstream with these takes in place of an effort, if it has one.
pub(crate) fn nearest_of(word: Str<'_>, values: &[Effort]) -> Option<Effort> {
    nearest(of_word(word)?, values)
}

/// The effort that a client names.
pub(crate) fn of_word(word: Str<'_>) -> Option<Effort> {
    let all = [Effort::Low, Effort::Medium, Effort::High, Effort::Xhigh, Effort::Max];
    all.into_iter().find(|effort| word == effort.word())
}

/// The value that the upstream takes: the wanted one, else the next lower one, else the lowest that
/// still thinks. `none` only where there is nothing else.
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
