//! Text form of a browser's state: tabs and changes.

use crate::json::{self, Reader, escape};

/// Appends one line for each tab and for each change.
pub(super) fn push_browser_state(out: &mut Vec<u8>, tabs: &str, changes: &str) {
    let start = out.len();
    for (array, is_tab) in [(tabs, true), (changes, false)] {
        for raw in json::elements(array) {
            if out.len() > start {
                escape(out, "\n");
            }
            push_state_line(out, raw, is_tab);
        }
    }
}

/// Appends `* id title url (active)` for a tab, or `tab_opened: id` for a change.
fn push_state_line(out: &mut Vec<u8>, raw: &str, is_tab: bool) {
    let mut reader = Reader::of(raw);
    let (mut active, mut kind, mut words) = (false, None, Vec::new());
    if reader.begin_object().is_err() {
        return;
    }
    const ORDER: [&str; 7] =
        ["tab_id", "download_id", "title", "url", "path", "size_bytes", "error"];
    while let Ok(Some(key)) = reader.next_key() {
        let key = key.decode();
        let Ok(value) = reader.skip() else { break };
        match key.as_ref() {
            "active" => active = value == "true",
            "type" => kind = json::string(value),
            key => {
                if let Some(position) = ORDER.iter().position(|known| *known == key) {
                    words.push((position, value));
                }
            }
        }
    }
    match kind {
        Some(kind) if !is_tab => {
            out.extend_from_slice(kind.raw().as_bytes());
            out.push(b':');
        }
        _ => out.push(b'*'),
    }
    let in_order = (0..ORDER.len()).flat_map(|at| words.iter().filter(move |word| word.0 == at));
    for (_, value) in in_order {
        // Only strings and numbers are written.
        let mut reader = Reader::new(value, 1);
        let Ok(word) = reader.string().map(|text| text.raw()).or_else(|_| reader.number()) else {
            continue;
        };
        out.push(b' ');
        out.extend_from_slice(word.as_bytes());
    }
    if active {
        escape(out, " (active)");
    }
}
