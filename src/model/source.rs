//! Cursor over a request's body, shared by the readers of all its parts. Unknown members are
//! counted, and errors get the JSON path of the wrong value.
//!
//! No path is kept while reading. An error has a byte offset only, and the path to that offset is
//! found by reading the body once more. The second reading happens only for errors.

use std::borrow::Cow;

use crate::error::Error;
use crate::json::{self, Raw, Reader, Str, ValueKind};
use crate::model::CacheMark;
use crate::model::limits::{self, Counted, Many};
use crate::observe::warning::Warnings;

/// Result of reading a value. For an error, the reader's position is that of the wrong value.
pub(crate) type Read<T> = Result<T, json::Error>;

/// Request body that is being read, with the state of its reading.
pub(crate) struct BodySource<'a, 'w> {
    pub(crate) body: &'a str,
    pub(crate) reader: Reader<'a>,
    pub(crate) warnings: &'w mut Warnings,
    /// Number of blocks so far that have a `cache_control`.
    pub(crate) breakpoints: usize,
    /// True if a value that cannot be read is skipped, in place of an error.
    pub(crate) is_lenient: bool,
    /// True if a value was skipped that could not be read.
    pub(crate) has_unread: bool,
    counted: Counted,
    /// Error with its JSON path already included. It replaces the error that stops the reading.
    refused: Option<Error>,
}

/// Reads the whole `body` with `read`, and adds JSON paths to errors. With `is_lenient`, values
/// that cannot be read are skipped.
pub(crate) fn read_body<'a, T>(
    body: &'a str,
    is_lenient: bool,
    warnings: &mut Warnings,
    read: impl FnOnce(&mut BodySource<'a, '_>) -> Read<T>,
) -> Result<T, Error> {
    let reader = Reader::of(body);
    let mut source = BodySource {
        body,
        reader,
        warnings,
        breakpoints: 0,
        is_lenient,
        has_unread: false,
        counted: Counted::default(),
        refused: None,
    };
    let result = read(&mut source).and_then(|value| {
        source.reader.end()?;
        Ok(value)
    });
    result.map_err(|error| source.located(error))
}

impl<'a> BodySource<'a, '_> {
    /// Returns the error that stopped the reading of the body, in the form that the client gets.
    fn located(&mut self, error: json::Error) -> Error {
        if let Some(refused) = self.refused.take() {
            return refused;
        }
        if error.is_syntax() {
            return error.into();
        }
        let path = path_at(self.body, self.reader.offset());
        match (path.as_str(), error.path()) {
            ("", "") => {
                // Only the type of the body's JSON value was checked so far; read the whole body
                // for syntax errors.
                let mut reader = Reader::of(self.body);
                match reader.skip().and_then(|_| reader.end()) {
                    Ok(()) => Error::invalid(format!("The request body: {}", error.reason())),
                    Err(error) => Error::not_json(&error),
                }
            }
            ("", _) => error.into(),
            (path, _) => error.in_key(path).into(),
        }
    }

    /// Reads an object, and calls `member` with the name of each member that is not null. `member`
    /// reads the value and returns true, or returns false if the name is unknown.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &str) -> Read<bool>,
    ) -> Read<()> {
        self.members(false, &mut member)
    }

    /// Reads the members of an object whose `type` was already read by [`BodySource::tag`].
    pub(crate) fn tagged(
        &mut self,
        mut member: impl FnMut(&mut Self, &str) -> Read<bool>,
    ) -> Read<()> {
        self.members(true, &mut member)
    }

    /// Reads the members of an object. The function is not generic, because about forty kinds of
    /// objects would each get a copy of the code.
    fn members(
        &mut self,
        tagged: bool,
        member: &mut dyn FnMut(&mut Self, &str) -> Read<bool>,
    ) -> Read<()> {
        self.reader.kind()?;
        let start = self.reader.offset();
        self.reader.begin_object()?;
        while let Some(key) = self.reader.next_key()? {
            self.count(Many::Fields, start)?;
            if self.reader.null()? {
                continue;
            }
            let key = key.decode();
            let start_of_value = self.retry_from();
            let known = match key.as_ref() {
                "type" if tagged => {
                    self.expect(ValueKind::String)?;
                    self.reader.string()?;
                    true
                }
                key => match member(self, key) {
                    Err(error) => self.skip_unread(start_of_value, error)?,
                    Ok(known) => known,
                },
            };
            if !known {
                self.count(Many::UnknownFields, start)?;
                self.reader.skip()?;
                self.unknown_field(start, &key)?;
            }
        }
        Ok(())
    }

    /// Returns the position of the next value if reading is lenient, for [`Self::skip_unread`].
    pub(crate) fn retry_from(&self) -> Option<Reader<'a>> {
        self.is_lenient.then(|| self.reader.clone())
    }

    /// Skips the value at `start`, which could not be read, if reading is lenient. Limits hold in a
    /// lenient reading, too.
    #[cold]
    pub(crate) fn skip_unread(
        &mut self,
        start: Option<Reader<'a>>,
        error: json::Error,
    ) -> Read<bool> {
        match start {
            Some(start) if !error.is_syntax() && self.refused.is_none() => {
                self.reader = start;
                self.has_unread = true;
                self.skip()
            }
            _ => Err(error),
        }
    }

    /// Counts the unknown member `key` of the object that starts at byte `start`.
    fn unknown_field(&mut self, start: usize, key: &str) -> Read<()> {
        let path = if self.warnings.strict() { path_at(self.body, start) } else { String::new() };
        self.warnings.unknown_field(&path, key).map_err(|error| {
            self.refused = Some(error);
            json::Error::value("")
        })
    }

    /// Counts one more item of the kind `many`, in the value that starts at byte `start`.
    #[inline]
    pub(crate) fn count(&mut self, many: Many, start: usize) -> Read<()> {
        if self.counted.is_exceeded_by(many) {
            return Err(self.exceeded(many, start));
        }
        Ok(())
    }

    #[cold]
    fn exceeded(&mut self, many: Many, start: usize) -> json::Error {
        self.refused = Some(limits::exceeded(&path_at(self.body, start), many));
        json::Error::value("")
    }

    /// Reads an array whose elements are counted, and calls `element` for each element.
    pub(crate) fn array(
        &mut self,
        many: Many,
        mut element: impl FnMut(&mut Self) -> Read<()>,
    ) -> Read<()> {
        self.elements(many, &mut element)
    }

    fn elements(&mut self, many: Many, element: &mut dyn FnMut(&mut Self) -> Read<()>) -> Read<()> {
        self.reader.kind()?;
        let start = self.reader.offset();
        self.reader.begin_array()?;
        while self.reader.next_element()? {
            self.count(many, start)?;
            element(self)?;
        }
        Ok(())
    }

    /// Reads a string into `place`. Returns true, which tells the caller that the member is known.
    pub(crate) fn string(&mut self, place: &mut Option<Str<'a>>) -> Read<bool> {
        *place = Some(self.reader.string()?);
        Ok(true)
    }

    /// Reads a string into `place`, with its JSON escapes decoded.
    pub(crate) fn word(&mut self, place: &mut Option<Cow<'a, str>>) -> Read<bool> {
        *place = Some(self.reader.string()?.decode());
        Ok(true)
    }

    pub(crate) fn bool(&mut self, place: &mut bool) -> Read<bool> {
        *place = self.reader.bool()?;
        Ok(true)
    }

    /// Reads any value into `place`, as JSON text.
    pub(crate) fn raw(&mut self, place: &mut &'a str) -> Read<bool> {
        *place = self.reader.skip()?;
        Ok(true)
    }

    /// Skips a value, of any type, that Creole does not use.
    pub(crate) fn skip(&mut self) -> Read<bool> {
        self.reader.skip()?;
        Ok(true)
    }

    /// Records in `place` that a member is present, and skips its value.
    pub(crate) fn given(&mut self, place: &mut bool) -> Read<bool> {
        *place = true;
        self.skip()
    }

    /// Reads an object as JSON text that can be measured or copied without its white space.
    pub(crate) fn raw_object(&mut self, place: &mut Option<Raw<'a>>) -> Read<bool> {
        self.expect(ValueKind::Object)?;
        *place = Some(self.reader.raw()?);
        Ok(true)
    }

    /// Reads a value as JSON text, and checks that its type is `kind`.
    pub(crate) fn raw_of(&mut self, kind: ValueKind) -> Read<&'a str> {
        self.expect(kind)?;
        self.reader.skip()
    }

    pub(crate) fn expect(&mut self, kind: ValueKind) -> Read<()> {
        match self.reader.kind()? {
            found if found == kind => Ok(()),
            found => Err(expected(kind.name(), found)),
        }
    }

    /// Checks the type of a value, and skips the value.
    pub(crate) fn ignore(&mut self, kind: ValueKind) -> Read<bool> {
        self.raw_of(kind)?;
        Ok(true)
    }

    /// Reads a whole number that is not negative. Errors have the wording of the real API.
    pub(crate) fn whole_number(&mut self, place: &mut Option<u64>) -> Read<bool> {
        let is_number = self.reader.kind()? == ValueKind::Number;
        let text = if is_number { self.reader.clone().number()? } else { "" };
        // Clients written in languages without integers send `4096.0`.
        let whole =
            || json::Number::read(text).filter(|it| it.is_whole()).and_then(|it| it.whole_part());
        match text.parse().or_else(|error| whole().filter(|it| *it < 1 << 53).ok_or(error)) {
            Ok(number) => {
                self.reader.number()?;
                *place = Some(number);
                Ok(true)
            }
            Err(_) if text.starts_with('-') && text.bytes().skip(1).all(|b| b.is_ascii_digit()) => {
                Err(json::Error::value("Input should be greater than or equal to 0"))
            }
            Err(_) => Err(json::Error::value("Input should be a valid integer")),
        }
    }

    /// Returns true if the next value is a negative number, outside of strict mode. LangChain.js
    /// and n8n write -1 for an unset setting.
    pub(crate) fn is_unset(&self) -> bool {
        let number = self.reader.clone().number();
        !self.warnings.strict() && number.is_ok_and(|number| number.starts_with('-'))
    }

    /// Returns the member `type` of the next object, at any position in the object: some clients
    /// write it last. The reader's position does not change.
    pub(crate) fn tag(&mut self) -> Read<Str<'a>> {
        if self.reader.kind()? != ValueKind::Object {
            self.reader.begin_object()?;
        }
        let mut ahead = self.reader.clone();
        ahead.begin_object()?;
        while let Some(key) = ahead.next_key()? {
            if key == "type" {
                return ahead.string().map_err(|error| error.in_key("type"));
            }
            ahead.skip()?;
        }
        Err(missing("type"))
    }

    /// Reads the `cache_control` of a block; returns false for any other member.
    pub(crate) fn cacheable(&mut self, key: &str, cached: &mut Option<CacheMark>) -> Read<bool> {
        if key != "cache_control" {
            return Ok(false);
        }
        self.breakpoints = self.breakpoints.saturating_add(1);
        *cached = Some(self.cache_control()?);
        Ok(true)
    }

    /// Reads the value of a `cache_control`, to which Claude Code and its SDK add a `scope`:
    /// `{"type": "ephemeral", "ttl"?: "5m" | "1h", "scope"?: "global"}`.
    pub(crate) fn cache_control(&mut self) -> Read<CacheMark> {
        let mut mark = CacheMark::default();
        self.object(|source, key| match key {
            "ttl" => {
                source.expect(ValueKind::String)?;
                mark = CacheMark::of(&source.reader.string()?.decode());
                Ok(true)
            }
            "type" | "scope" => source.ignore(ValueKind::String),
            _ => Ok(false),
        })?;
        Ok(mark)
    }
}

/// Returns the error `PATH.key: Field required`. The reader must be at the object that lacks the
/// member.
pub(crate) fn missing(key: &str) -> json::Error {
    json::Error::value("Field required").in_key(key)
}

/// Returns the value of the member `key`, or the error that the member is missing.
pub(crate) fn required<T>(value: Option<T>, key: &str) -> Read<T> {
    value.ok_or_else(|| missing(key))
}

pub(crate) fn expected(what: &str, found: ValueKind) -> json::Error {
    json::Error::value(format!("expected {what}, but found {}", found.name()))
}

/// Returns the real API's error message for an unknown `type`. The unknown type is truncated in the
/// message, because a client can send any text.
#[must_use]
pub(crate) fn unknown_tag(tag: &str) -> String {
    let tag: String = tag.chars().take(64).collect();
    format!("Input tag '{tag}' found using 'type' does not match any of the expected tags")
}

/// Returns the error for a `type` that is not among the `known` ones.
pub(crate) fn bad_tag(tag: Str<'_>, known: &str) -> json::Error {
    json::Error::value(format!("{}: {known}", unknown_tag(&tag.decode())))
}

/// Returns the JSON path of the innermost value that contains byte `offset`, such as
/// `messages[3].content[0]`. The path of the whole body is empty.
#[must_use]
pub(crate) fn path_at(body: &str, offset: usize) -> String {
    let mut path = String::new();
    let mut reader = Reader::new(body, u32::MAX);
    while let Some((step, inner)) = step_towards(&mut reader, offset) {
        if !(path.is_empty() || step.starts_with('[')) {
            path.push('.');
        }
        path.push_str(&step);
        reader = inner;
    }
    path
}

/// Returns the name or index of the child of the next value that contains byte `offset`, and a
/// reader positioned at that child.
fn step_towards<'a>(reader: &mut Reader<'a>, offset: usize) -> Option<(String, Reader<'a>)> {
    let object = match reader.kind().ok()? {
        ValueKind::Object => {
            reader.begin_object().ok()?;
            true
        }
        ValueKind::Array => {
            reader.begin_array().ok()?;
            false
        }
        _ => return None,
    };
    let mut index = 0usize;
    loop {
        let step = if object {
            reader.next_key().ok()??.decode().into_owned()
        } else if reader.next_element().ok()? {
            format!("[{index}]")
        } else {
            return None;
        };
        reader.kind().ok()?;
        if reader.offset() > offset {
            return None;
        }
        let inner = reader.clone();
        // If the body is malformed after byte `offset`, the error at `offset` still comes first.
        if reader.skip().is_err() || offset <= reader.offset() {
            return Some((step, inner));
        }
        index = index.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_has_the_path_of_its_innermost_value() {
        let body = r#" {"a": [1, {"b c": "x", "d": [ ]}], "e": {} } "#;
        let at = |needle: &str| path_at(body, body.find(needle).unwrap());
        assert_eq!(at("{\"a\""), "");
        assert_eq!(at("[1"), "a");
        assert_eq!(at("1,"), "a[0]");
        assert_eq!(at("{\"b c\""), "a[1]");
        assert_eq!(at("\"x\""), "a[1].b c");
        assert_eq!(at("[ ]"), "a[1].d");
        assert_eq!(at("{} }"), "e");
        assert_eq!(path_at(body, 9999), "");
        assert_eq!(path_at("{\"a\": [1, {\"b\": tru", 16), "a[1].b");
    }
}
