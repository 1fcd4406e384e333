//! Values that are JSON but for their texts and keys: of Gemma, and of Python.

use crate::json::{Reader, Writer};
use crate::text::names::NameSet;

use super::cursor::Cursor;
use crate::text::json_scan::DEPTH_MAX;

/// How texts and keys are written.
pub(super) struct Literals {
    /// Reads the text that stands here, if one does: as JSON, with its quotes.
    pub(super) text: fn(&mut Cursor<'_>) -> Option<String>,
    /// Reads a key of an object, and the colon behind it.
    pub(super) key: fn(&mut Cursor<'_>) -> Option<String>,
}

const WORDS: [(&str, &str); 3] = [("True", "true"), ("False", "false"), ("None", "null")];

impl Literals {
    /// Writes the value that stands at the cursor, as JSON.
    pub(super) fn write(&self, cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Option<()> {
        self.write_within(cursor, out, DEPTH_MAX)
    }

    fn write_within(&self, cursor: &mut Cursor<'_>, out: &mut Vec<u8>, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        cursor.skip_blank();
        if let Some(text) = (self.text)(cursor) {
            Writer::new(out).raw(&text);
        } else if cursor.eat("{") {
            Writer::new(out).begin_object();
            let mut keys = NameSet::default();
            while !cursor.eat("}") {
                let key = (self.key)(cursor)?;
                Writer::new(out).key_text(&key);
                keys.add(key).then_some(())?;
                self.write_within(cursor, out, depth)?;
                (cursor.eat(",") || cursor.rest.starts_with('}')).then_some(())?;
            }
            Writer::new(out).end_object();
        } else if cursor.rest.starts_with(['[', '(']) {
            let end = if cursor.take(1) == "[" { "]" } else { ")" };
            Writer::new(out).begin_array();
            let bracket = out.len().saturating_sub(1);
            // A parenthesis around one value, without a comma, is no tuple.
            let mut is_group = end == ")" && !cursor.rest.starts_with(end);
            while !cursor.eat(end) {
                self.write_within(cursor, out, depth)?;
                let goes_on = cursor.eat(",");
                is_group &= !goes_on;
                (goes_on || cursor.rest.starts_with(end)).then_some(())?;
            }
            if is_group {
                out.remove(bracket);
            } else {
                Writer::new(out).end_array();
            }
        } else {
            // Numbers and the like. Other words could be a text without its quotes, of which nobody knows the end.
            let word = match WORDS.iter().find(|(python, _)| cursor.eat(python)) {
                Some((_, word)) => word,
                None => {
                    let length = Reader::new(cursor.rest, 1).skip().ok()?.len();
                    cursor.take(length)
                }
            };
            Writer::new(out).raw(word);
        }
        cursor.skip_blank();
        Some(())
    }
}
