//! Gemma 4: an input that is JSON but for its texts, which a token quotes, and its keys, which nothing does.

use crate::dialect::text_calls::Piece;
use crate::json;

use super::cursor::Cursor;
use super::literal::Literals;
use super::{Tools, call};

const QUOTE: &str = "<|\"|>";

const LITERALS: Literals = Literals {
    text: |cursor| cursor.quoted().map(json::quoted),
    key: |cursor| cursor.bare_key().map(str::to_owned),
};

/// `<|tool_call>call:NAME{KEY:<|"|>TEXT<|"|>,KEY:5}<tool_call|>`.
pub(super) fn gemma(
    cursor: &mut Cursor<'_>,
    tools: Tools<'_>,
    calls: &mut Vec<Piece>,
) -> Option<()> {
    while cursor.eat("<|tool_call>") {
        cursor.eat_any(&["call:", ":"]).then_some(())?;
        let tool = tools(cursor.take(cursor.rest.find('{')?).trim())?;
        let mut input = Vec::new();
        LITERALS.write(cursor, &mut input)?;
        cursor.close(&[("<|tool_call>", "<tool_call|>")], Some(0))?;
        calls.push(call(None, tool, String::from_utf8(input).ok()?));
    }
    Some(())
}

impl<'a> Cursor<'a> {
    /// The text between two quotes, exactly as it is.
    fn quoted(&mut self) -> Option<&'a str> {
        let rest = self.rest.trim_start().strip_prefix(QUOTE)?;
        let (text, rest) = crate::text::words::split_once(rest, QUOTE)?;
        self.rest = rest;
        Some(text)
    }

    fn bare_key(&mut self) -> Option<&'a str> {
        if let Some(key) = self.quoted() {
            return self.expect(":").map(|()| key);
        }
        let key = self.until(":")?.trim();
        let odd = |byte| matches!(byte, b'{' | b'}' | b'[' | b']' | b',' | b'"' | b'<' | b'\n');
        (!key.is_empty() && !key.bytes().any(odd)).then_some(key)
    }
}
