//! Places of the members of a request's body that the next round of an answer changes. They are
//! noted when the body is read, so that it need not be read once more to be changed.

use std::ops::Range;

/// Members that are changed.
const NAMES: [&str; 5] = ["messages", "tools", "tool_choice", "max_tokens", "thinking"];

/// Places of the values of the members, in bytes of the body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberPlaces {
    /// Place of each member of [`NAMES`].
    places: [Option<Range<usize>>; 5],
    /// True if a member occurs twice.
    is_ambiguous: bool,
    /// Length of the body.
    bytes: usize,
}

impl MemberPlaces {
    /// Notes the place of a member's value, if the member is changed by further rounds.
    pub(crate) fn note(&mut self, name: &str, place: Range<usize>) {
        let known = NAMES.iter().zip(&mut self.places).find(|(known, _)| **known == name);
        if let Some((_, known)) = known {
            self.is_ambiguous |= known.replace(place).is_some();
        }
    }

    /// Notes the length of the body.
    pub(crate) fn end(&mut self, bytes: usize) {
        self.bytes = bytes;
    }

    /// Returns the members with their places, in the order of the body; `None` if the places are
    /// not those of `body`, or a member occurs twice.
    pub(crate) fn in_order(&self, body: &str) -> Option<Vec<(&'static str, Range<usize>)>> {
        if self.is_ambiguous || self.bytes != body.len() {
            return None;
        }
        let places = NAMES.iter().zip(&self.places);
        let mut places: Vec<(&'static str, Range<usize>)> =
            places.filter_map(|(name, place)| Some((*name, place.clone()?))).collect();
        places.sort_unstable_by_key(|(_, place)| place.start);
        let is_value = |(name, place): &(&str, Range<usize>)| {
            let begins = if *name == "messages" { "[" } else { "" };
            body.get(place.clone()).is_some_and(|value| value.starts_with(begins))
        };
        let has_messages = places.iter().any(|(name, _)| *name == "messages");
        (has_messages && places.iter().all(is_value)).then_some(places)
    }
}
