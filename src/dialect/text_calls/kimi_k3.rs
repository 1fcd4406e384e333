//! Parser for the output of Kimi K3: text and calls in elements of control tokens. Each argument
//! states its type.

use super::Piece;
use super::cursor::{Cursor, FindTool};
use super::in_tags::InputObject;
use crate::text::words;

const SEP: &str = "<|sep|>";

/// Reads calls such as `<|open|>tools<|sep|><|open|>call tool="NAME" index="1"<|sep|>…`, with or
/// without a text `<|open|>response<|sep|>…` before them.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    tools: FindTool<'_>,
    pieces: &mut Vec<Piece>,
) -> Option<()> {
    if let Some(rest) = cursor.rest.strip_prefix("<|open|>response<|sep|>") {
        cursor.rest = rest;
        let text = match cursor.element("<|close|>response<|sep|>") {
            // The end tag of the text is missing, or the length limit cut it off.
            None if !words::has(cursor.rest, "<|open|>") => std::mem::take(&mut cursor.rest),
            text => text?,
        };
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
    }
    let around = &[("<|open|>tools<|sep|>", "<|close|>tools<|sep|>")];
    cursor.sections(around, "<|open|>call tool=\"", tools, pieces, |cursor, tools| {
        let tool = tools(cursor.until("\"")?)?;
        let index = cursor.until(SEP)?.trim();
        if !index.is_empty() && !index.starts_with("index=") {
            return None;
        }
        let input = if cursor.eat("<|open|>json type=\"object\"<|sep|>") {
            let input = cursor.object()?.into_owned();
            cursor.expect("<|close|>json<|sep|>")?;
            input
        } else {
            cursor.arguments()?.end()
        };
        cursor.expect("<|close|>call<|sep|>")?;
        Some(Piece::call(None, tool, input))
    })
}

impl<'a> Cursor<'a> {
    /// Reads arguments such as
    /// `<|open|>argument key="KEY" type="TYPE"<|sep|>VALUE<|close|>argument<|sep|>`. A string is
    /// raw text; any other type is JSON.
    fn arguments(&mut self) -> Option<InputObject> {
        let mut input = InputObject::default();
        while self.eat("<|open|>argument key=\"") {
            // A key with `&` has escapes, which are not supported.
            let key = self.until("\"").filter(|key| !key.as_bytes().contains(&b'&'))?;
            let kind = self.until(SEP)?.trim();
            let value = self.element("<|close|>argument<|sep|>")?;
            match kind {
                "type=\"string\"" => input.text(key, value)?,
                _ if kind.starts_with("type=\"") => input.json(key, value.trim())?,
                _ => return None,
            }
        }
        Some(input)
    }

    /// Reads the text of an element up to the end tag `end`. Fails if the text contains another
    /// element.
    fn element(&mut self, end: &str) -> Option<&'a str> {
        let (text, rest) = words::split_once(self.rest, end)?;
        if words::has(text, "<|open|>") {
            return None;
        }
        self.rest = rest;
        Some(text)
    }
}
