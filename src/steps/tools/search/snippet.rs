//! Texts of found pages, as they are shown to models and clients.

use std::borrow::Cow;

use crate::json::{self, Reader, ValueKind};
use crate::text::words;

/// Returns the text in a JSON value: a string, or the strings of a list as lines. Other values have
/// no text.
pub(super) fn text_of(value: &str) -> Cow<'_, str> {
    match Reader::of(value).kind() {
        Ok(ValueKind::String) => json::string(value).map(|text| text.decode()).unwrap_or_default(),
        Ok(ValueKind::Array) => {
            let lines = json::elements(value).filter_map(json::string);
            lines.map(|line| line.decode()).collect::<Vec<_>>().join("\n").into()
        }
        _ => Cow::default(),
    }
}

/// Returns a text as one line of at most `bytes_max` bytes. Runs of white space and control
/// characters become single spaces.
pub(super) fn one_line(text: &str, bytes_max: usize) -> String {
    let is_blank = |letter: char| letter.is_whitespace() || letter.is_control();
    let mut line = String::new();
    for word in text.split(is_blank).filter(|word| !word.is_empty()) {
        if line.len() > bytes_max {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    words::beginning(&line, bytes_max).trim_end().to_owned()
}

/// Returns a text of at most `bytes_max` bytes, without control characters except line ends and
/// tabs.
pub(super) fn lines(text: &str, bytes_max: usize) -> String {
    let is_kept = |letter: &char| !letter.is_control() || matches!(letter, '\n' | '\t');
    let mut kept = String::new();
    for letter in text.trim().chars().filter(is_kept) {
        if kept.len().saturating_add(letter.len_utf8()) > bytes_max {
            break;
        }
        kept.push(letter);
    }
    kept
}
