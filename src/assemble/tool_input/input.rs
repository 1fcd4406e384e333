//! Final input of a tool call.

use super::reading::{Beginning, FragmentReading};
use crate::json;
use crate::text::json_scan::Scanner;

/// Final input of a tool call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FinalInput {
    /// Valid input: a JSON object.
    Object(String),
    /// Input that was cut off by the answer's length limit.
    CutOff,
    /// Invalid input: text that is not one JSON object.
    Invalid,
}

impl FinalInput {
    /// Wraps the text of a custom tool into a JSON object.
    pub(super) fn of_custom(text: &str) -> Self {
        Self::Object(json::written(|json| {
            json.begin_object().key("input").text(text).end_object();
        }))
    }

    /// Determines the final input from the text that arrived. `cut_off`: the answer reached its
    /// length limit.
    pub(super) fn of(reading: &FragmentReading, cut_off: bool) -> Self {
        let text = reading.text.trim();
        if reading.scan.is_object() {
            return Self::Object(text.to_owned());
        }
        if text.is_empty() && cut_off {
            return Self::CutOff;
        }
        if text.is_empty() || Beginning::of(text).is_nothing() {
            return Self::Object("{}".to_owned());
        }
        match unwrapped(text) {
            Some(object) => Self::Object(object),
            None if cut_off && !reading.scan.is_other_value() && !has_more_behind(text) => {
                Self::CutOff
            }
            None => Self::Invalid,
        }
    }
}

/// Returns the object inside of a JSON string, since some models quote their input once too often.
fn unwrapped(text: &str) -> Option<String> {
    let inside = json::string(text)?.decode();
    let inside = inside.trim();
    if inside.is_empty() || Beginning::of(inside).is_nothing() {
        return Some("{}".to_owned());
    }
    FragmentReading::of(inside).scan.is_object().then(|| inside.to_owned())
}

/// Returns true if other text follows a complete value, so that more text could not make the input
/// valid.
fn has_more_behind(text: &str) -> bool {
    Scanner::default().feed_value(text) < text.len()
}
