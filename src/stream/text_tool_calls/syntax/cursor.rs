//! Reading markup from left to right, and the input of a call from what stands in it.

use std::borrow::Cow;

use crate::json::{self, Kind, Reader, Writer};
use crate::tool_schema::property;
use crate::words;

use super::super::schema::{allows, has_parameter};

/// An input is nested at most so deep.
const DEPTH_MAX: u32 = 127;

/// What is left to read. White space between tokens means nothing.
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a str,
    /// The model did not end the answer.
    pub(super) is_cut_off: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn skip_blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    pub(super) fn eat(&mut self, token: &str) -> bool {
        self.skip_blank();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                self.skip_blank();
                true
            }
            None => false,
        }
    }

    pub(super) fn eat_any(&mut self, tokens: &[&str]) -> bool {
        tokens.iter().any(|token| self.eat(token))
    }

    pub(super) fn expect(&mut self, token: &str) -> Option<()> {
        self.eat(token).then_some(())
    }

    /// The end of what stands around calls. Servers take it for a stop token, and models leave it out, so at the
    /// end of an answer it may be missing: the calls are complete without it. Anywhere, if its start is missing,
    /// too (`!is_open`).
    pub(super) fn close(&mut self, is_open: bool, ends: &[&str]) -> Option<()> {
        let may_miss = !self.is_cut_off;
        (self.eat_any(ends) || may_miss && (!is_open || self.rest.is_empty())).then_some(())
    }

    /// The text up to `end`, exactly as it is.
    pub(super) fn until(&mut self, end: &str) -> Option<&'a str> {
        let (text, rest) = words::split_once(self.rest, end)?;
        self.rest = rest;
        Some(text)
    }

    /// The text up to `end`, where `open` is not in it: then the end of a value is missing, and it would
    /// swallow the next one.
    pub(super) fn value(&mut self, open: &str, end: &str) -> Option<&'a str> {
        self.until(end).filter(|text| !words::has(text, open))
    }

    /// A value of Qwen's, which stands in lines of its own: a line break on each side is layout. Models
    /// leave its end out, and vLLM ends it at the next tag. A parameter that the tool does not have is no such tag.
    pub(super) fn own_lines(&mut self, schema: &str) -> Option<&'a str> {
        let text = self.rest;
        let (value, rest) = words::places(text, "<").find_map(|at| {
            let (value, rest) = text.split_at_checked(at)?;
            let next = || match rest.strip_prefix("<parameter=") {
                Some(key) => {
                    let end = key.bytes().position(|byte| matches!(byte, b'>' | b'\n'));
                    let key = key.get(..end.unwrap_or(key.len())).unwrap_or_default();
                    has_parameter(schema, key.trim())
                }
                None => rest.starts_with("</function>"),
            };
            match rest.strip_prefix("</parameter>") {
                Some(rest) => Some((value, rest)),
                None => (value.ends_with('\n') && next()).then_some((value, rest)),
            }
        })?;
        self.rest = rest;
        let value = value.strip_prefix('\r').unwrap_or(value);
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        Some(value.strip_suffix('\r').unwrap_or(value))
    }

    pub(super) fn take(&mut self, bytes: usize) -> &'a str {
        let (text, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        text
    }

    /// An object of JSON.
    pub(super) fn object(&mut self) -> Option<Cow<'a, str>> {
        self.skip_blank();
        let mut reader = Reader::new(self.rest, DEPTH_MAX);
        if reader.kind().ok()? != Kind::Object {
            return None;
        }
        let (object, length) = match reader.skip() {
            Ok(object) => (Cow::Borrowed(object), object.len()),
            Err(_) => escaped(self.rest).map(|(object, length)| (object.into(), length))?,
        };
        self.rest = self.rest.get(length..)?;
        self.skip_blank();
        Some(object)
    }

    /// Members, each between tags.
    pub(super) fn parameters(
        &mut self,
        open: &str,
        named: &str,
        schema: &str,
        value: fn(&mut Self, &str) -> Option<&'a str>,
    ) -> Option<String> {
        let mut input = Object::default();
        self.skip_blank();
        while let Some(rest) = self.rest.strip_prefix(open) {
            self.rest = rest;
            let key = self.until(named)?.trim();
            input.member(key, value(self, schema)?, schema);
            self.skip_blank();
        }
        Some(input.end())
    }
}

/// The object at the start of a text, and its length there. Models write line breaks and tabs in strings as they
/// are, which can mean nothing else: here they are escaped.
fn escaped(text: &str) -> Option<(String, usize)> {
    let (mut out, mut copied) = (Vec::new(), 0);
    let (mut depth, mut in_string, mut is_escape) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        let end = at.saturating_add(1);
        match byte {
            _ if is_escape => is_escape = false,
            b'\\' => is_escape = in_string,
            b'"' => in_string = !in_string,
            ..b' ' if in_string => {
                out.extend_from_slice(text.get(copied..at)?.as_bytes());
                json::escape(&mut out, text.get(at..end)?);
                copied = end;
            }
            b'{' | b'[' if !in_string => depth = depth.saturating_add(1),
            b'}' | b']' if !in_string => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    out.extend_from_slice(text.get(copied..end)?.as_bytes());
                    let object = String::from_utf8(out).ok()?;
                    let mut reader = Reader::new(&object, DEPTH_MAX);
                    reader.skip().and_then(|_| reader.end()).ok()?;
                    return Some((object, end));
                }
            }
            _ => {}
        }
    }
    None
}

/// An input that is put together member by member.
#[derive(Default)]
pub(super) struct Object(Vec<u8>);

impl Object {
    /// A member whose value was written as plain text. Whether `5` is a number or a text, only the schema
    /// knows; where it does not say, it is what it looks like.
    pub(super) fn member(&mut self, key: &str, value: &str, schema: &str) {
        let property = property(schema, key);
        let allows = |kind| property.is_some_and(|property| allows(schema, property, kind));
        let is_text = allows("string") && !(value.trim() == "null" && allows("null"));
        // Templates write what is no text as Python does.
        let value = match value.trim() {
            "True" if !is_text && allows("boolean") => "true",
            "False" if !is_text && allows("boolean") => "false",
            "None" if !is_text && allows("null") => "null",
            _ => value,
        };
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        let mut reader = Reader::new(value, 64);
        let is_json = reader.kind().is_ok_and(|kind| kind != Kind::String)
            && reader.skip().is_ok()
            && reader.end().is_ok();
        let mut json = Writer::new(&mut self.0);
        json.key_text(key);
        if is_json && !is_text {
            json.value();
            json::compact(json.out(), value);
        } else {
            json.text(value);
        }
    }

    /// A member that is a text, exactly as it stands there.
    pub(super) fn text(&mut self, key: &str, value: &str) {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        Writer::new(&mut self.0).key_text(key).text(value);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn end(mut self) -> String {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        String::from_utf8(self.0).unwrap_or_default()
    }
}
