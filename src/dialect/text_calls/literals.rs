//! Parsers for call syntaxes whose inputs are JSON except for strings and keys: those of Gemma, and
//! of Python.

use std::str::Chars;

use super::Piece;
use super::cursor::{Cursor, FindTool, SectionTags};
use crate::json::{self, Reader, Writer};
use crate::text::json_scan::DEPTH_MAX;
use crate::text::names::NameSet;
use crate::text::words;

/// Notation of strings and keys in one syntax.
struct Literals {
    /// Function that reads the string at the cursor, if there is one, and returns a JSON string
    /// with quotes.
    text: fn(&mut Cursor<'_>) -> Option<String>,
    /// Function that reads a key of an object and the colon after it.
    key: fn(&mut Cursor<'_>) -> Option<String>,
}

const WORDS: [(&str, &str); 3] = [("True", "true"), ("False", "false"), ("None", "null")];

impl Literals {
    /// Writes the value at the cursor as JSON.
    fn write(&self, cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Option<()> {
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
            // Numbers and keywords. Any other word could be a text without quotes, whose end is
            // unknown.
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

/// Token that Gemma writes around strings.
const QUOTE: &str = "<|\"|>";

/// Notation of Gemma: a token quotes strings, and keys are not quoted.
const GEMMA: Literals = Literals {
    text: |cursor| cursor.quoted().map(json::quoted),
    key: |cursor| cursor.bare_key().map(str::to_owned),
};

/// Reads Gemma's form: `<|tool_call>call:NAME{KEY:<|"|>TEXT<|"|>,KEY:5}<tool_call|>`.
pub(super) fn gemma(cursor: &mut Cursor<'_>, tools: FindTool<'_>) -> Option<Piece> {
    cursor.eat_any(&["call:", ":"]).then_some(())?;
    let tool = tools(cursor.take(cursor.rest.find('{')?).trim())?;
    let mut input = Vec::new();
    GEMMA.write(cursor, &mut input)?;
    cursor.end("<|tool_call>", "<tool_call|>")?;
    Some(Piece::call(None, tool, String::from_utf8(input).ok()?))
}

impl<'a> Cursor<'a> {
    /// Reads the text between two of Gemma's quote tokens, unchanged.
    fn quoted(&mut self) -> Option<&'a str> {
        let rest = self.rest.trim_start().strip_prefix(QUOTE)?;
        let (text, rest) = words::split_once(rest, QUOTE)?;
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

/// Tokens around lists of calls in Python's syntax.
const AROUND: SectionTags =
    &[("<|tool_call_start|>", "<|tool_call_end|>"), ("<|python_start|>", "<|python_end|>")];

/// Index of the tokens of the model LFM2 in [`AROUND`].
const LFM2: usize = 0;

/// Reads calls in Python's syntax: `[NAME(KEY="…", KEY=5), NAME()]`, perhaps between two tokens, or
/// a call on each line of `<function_calls>`.
pub(super) fn pythonic(
    cursor: &mut Cursor<'_>,
    tools: FindTool<'_>,
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
        cursor.close(AROUND, section)?;
    }
    // LFM2 adds a remark behind its calls. If text precedes the calls, they are an example in a
    // sentence. Clients get all text before the calls.
    let is_remark = cursor.extent.is_all
        && only_lfm2
        && !AROUND.iter().any(|(start, _)| words::has(cursor.rest, start));
    if is_remark && !cursor.rest.is_empty() {
        calls.insert(0, Piece::Text(std::mem::take(&mut cursor.rest).to_owned()));
    }
    Some(())
}

/// Reads a single call in Python's syntax: `NAME(KEY=VALUE, …)`.
fn one(cursor: &mut Cursor<'_>, tools: FindTool<'_>) -> Option<Piece> {
    let tool = tools(cursor.take(cursor.rest.find('(')?).trim())?;
    cursor.expect("(")?;
    let mut input = Vec::new();
    Writer::new(&mut input).begin_object();
    let mut keys = NameSet::default();
    while !cursor.eat(")") {
        let key = cursor.take(cursor.rest.find('=')?).trim();
        let is_name = !key.is_empty() && key.bytes().all(is_letter);
        // A value without a name could be any argument of the tool.
        (cursor.eat("=") && is_name && keys.add(key)).then_some(())?;
        Writer::new(&mut input).key_text(key);
        PYTHON.write(cursor, &mut input)?;
        (cursor.eat(",") || cursor.rest.starts_with(')')).then_some(())?;
    }
    Writer::new(&mut input).end_object();
    Some(Piece::call(None, tool, String::from_utf8(input).ok()?))
}

/// Returns true if a name in Python's syntax may contain this byte.
fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Notation of Python, with four kinds of quotes.
const PYTHON: Literals = Literals {
    text: |cursor| cursor.python_text(),
    key: |cursor| {
        let key = cursor.python_text()?;
        cursor.expect(":")?;
        Some(json::string(&key)?.decode().into_owned())
    },
};

impl Cursor<'_> {
    /// Reads a string literal of Python, and returns a JSON string with quotes.
    fn python_text(&mut self) -> Option<String> {
        let quote =
            ["\"\"\"", "'''", "\"", "'"].into_iter().find(|it| self.rest.starts_with(it))?;
        let text = self.rest.get(quote.len()..)?;
        let mut out = b"\"".to_vec();
        let mut chars = text.chars();
        while !chars.as_str().starts_with(quote) {
            match chars.next()? {
                '\\' => unescape(&mut chars, &mut out)?,
                // Only triple-quoted strings may have line breaks in Python, but models write line
                // breaks in all strings.
                letter => json::escape(&mut out, letter.encode_utf8(&mut [0; 4])),
            }
        }
        out.push(b'"');
        self.rest = chars.as_str().get(quote.len()..)?;
        self.skip_blank();
        String::from_utf8(out).ok()
    }
}

/// Writes the escape behind a backslash in a Python string, as JSON.
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
        // Two `\u` escapes may be one character, as in JSON.
        'u' => {
            hex(chars, 4)?;
            out.push(b'\\');
            out.extend_from_slice(rest.get(..5)?.as_bytes());
            return Some(());
        }
        // Python leaves an unknown escape unchanged.
        _ => {
            json::escape(out, "\\");
            letter
        }
    };
    json::escape(out, known.encode_utf8(&mut [0; 4]));
    Some(())
}

/// Reads a hexadecimal number of `digits` digits.
fn hex(chars: &mut Chars<'_>, digits: usize) -> Option<u32> {
    let (text, rest) = chars.as_str().split_at_checked(digits)?;
    *chars = rest.chars();
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u32::from_str_radix(text, 16).ok())?
}
