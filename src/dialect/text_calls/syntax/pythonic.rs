//! Calls of Python, with literals for their arguments: Llama 4, LFM2, OLMo 3.

use std::str::Chars;

use crate::dialect::text_calls::Piece;
use crate::json::{self, Writer};
use crate::text::names::NameSet;
use crate::text::words;

use super::cursor::Cursor;
use super::literal::Literals;
use super::{Tools, call};

const AROUND: [(&str, &str); 2] =
    [("<|tool_call_start|>", "<|tool_call_end|>"), ("<|python_start|>", "<|python_end|>")];

/// Its place in [`AROUND`].
const LFM2: usize = 0;

/// `[NAME(KEY="…", KEY=5), NAME()]`, perhaps between two tokens, or a call on each line of `<function_calls>`.
pub(super) fn pythonic(
    cursor: &mut Cursor<'_>,
    tools: Tools<'_>,
    calls: &mut Vec<Piece>,
) -> Option<()> {
    if cursor.eat("<function_calls>") {
        while !cursor.eat("</function_calls>") {
            calls.push(one(cursor, tools)?);
        }
        return Some(());
    }
    let mut only_lfm2 = true;
    loop {
        let section = AROUND.iter().position(|(start, _)| cursor.eat(start));
        if section.is_none() && !calls.is_empty() {
            break;
        }
        cursor.expect("[")?;
        loop {
            calls.push(one(cursor, tools)?);
            if !cursor.eat(",") {
                break;
            }
        }
        cursor.expect("]")?;
        if section.is_none() {
            return Some(());
        }
        only_lfm2 &= section == Some(LFM2);
        cursor.close(&AROUND, section)?;
    }
    // Behind its calls LFM2 says what it does. In an answer that began with words, they stand in a sentence about
    // the form. Clients have all text before the calls.
    let is_remark = cursor.extent.is_all
        && only_lfm2
        && !AROUND.iter().any(|(start, _)| words::has(cursor.rest, start));
    if is_remark && !cursor.rest.is_empty() {
        calls.insert(0, Piece::Text(std::mem::take(&mut cursor.rest).to_owned()));
    }
    Some(())
}

/// `NAME(KEY=VALUE, …)`.
fn one(cursor: &mut Cursor<'_>, tools: Tools<'_>) -> Option<Piece> {
    let tool = tools(cursor.take(cursor.rest.find('(')?).trim())?;
    cursor.expect("(")?;
    let mut input = Vec::new();
    Writer::new(&mut input).begin_object();
    let mut keys = NameSet::default();
    while !cursor.eat(")") {
        let key = cursor.take(cursor.rest.find('=')?).trim();
        let is_name = !key.is_empty() && key.bytes().all(is_letter);
        // Without its name, nobody knows which argument a value is.
        (cursor.eat("=") && is_name && keys.add(key)).then_some(())?;
        Writer::new(&mut input).key_text(key);
        LITERALS.write(cursor, &mut input)?;
        (cursor.eat(",") || cursor.rest.starts_with(')')).then_some(())?;
    }
    Writer::new(&mut input).end_object();
    Some(call(None, tool, String::from_utf8(input).ok()?))
}

/// Whether it may stand in a name.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

const LITERALS: Literals = Literals {
    text: |cursor| cursor.python_text(),
    key: |cursor| {
        let key = cursor.python_text()?;
        cursor.expect(":")?;
        Some(json::string(&key)?.decode().into_owned())
    },
};

impl Cursor<'_> {
    /// A text of Python as one of JSON, with its quotes.
    fn python_text(&mut self) -> Option<String> {
        let quote =
            ["\"\"\"", "'''", "\"", "'"].into_iter().find(|it| self.rest.starts_with(it))?;
        let text = self.rest.get(quote.len()..)?;
        let mut out = b"\"".to_vec();
        let mut chars = text.chars();
        while !chars.as_str().starts_with(quote) {
            match chars.next()? {
                '\\' => unescape(&mut chars, &mut out)?,
                // Only three quotes go over the line's end, but models write what they mean.
                letter => json::escape(&mut out, letter.encode_utf8(&mut [0; 4])),
            }
        }
        out.push(b'"');
        self.rest = chars.as_str().get(quote.len()..)?;
        self.skip_blank();
        String::from_utf8(out).ok()
    }
}

/// Writes what stands behind a backslash in Python as JSON.
fn unescape(chars: &mut Chars<'_>, out: &mut Vec<u8>) -> Option<()> {
    let rest = chars.as_str();
    let letter = chars.next()?;
    let known = match letter {
        '\n' => return Some(()),
        '\r' => {
            *chars = words::trim_start(rest.get(1..)?, b"\n").chars();
            return Some(());
        }
        '\'' | '"' => letter,
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        '\\' => '\\',
        'a' => '\u{7}',
        'v' => '\u{b}',
        '0'..='7' => {
            let is_octal = |byte: &u8| matches!(byte, b'0'..=b'7');
            let digits = rest.bytes().take(3).take_while(is_octal).count();
            let (digits, after) = rest.split_at_checked(digits)?;
            *chars = after.chars();
            char::from_u32(u32::from_str_radix(digits, 8).ok()?)?
        }
        'x' => char::from_u32(hex(chars, 2)?)?,
        'U' => char::from_u32(hex(chars, 8)?)?,
        // Two may be one letter, as in JSON.
        'u' => {
            hex(chars, 4)?;
            out.push(b'\\');
            out.extend_from_slice(rest.get(..5)?.as_bytes());
            return Some(());
        }
        // Python leaves what it does not know as it is.
        _ => {
            json::escape(out, "\\");
            letter
        }
    };
    json::escape(out, known.encode_utf8(&mut [0; 4]));
    Some(())
}

/// A number of so many digits.
fn hex(chars: &mut Chars<'_>, digits: usize) -> Option<u32> {
    let (text, rest) = chars.as_str().split_at_checked(digits)?;
    *chars = rest.chars();
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(text, 16).ok())?
}
