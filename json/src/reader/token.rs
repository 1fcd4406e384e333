//! Reading of tokens: strings, numbers and the keywords `true`, `false` and `null`.

use super::Reader;
use crate::scan::{Specials, code_point_escape, is_short_escape, short_string};
use crate::{Error, Str};

impl<'a> Reader<'a> {
    /// Reads the string at the current position. The fast path is for short strings without
    /// escapes, as most names and values are.
    #[inline]
    pub(super) fn string_token(&mut self) -> Result<Str<'a>, Error> {
        let start = self.at.saturating_add(1);
        if let Some(length) = short_string(self.text.as_bytes(), start) {
            let end = start.saturating_add(length);
            self.at = end.saturating_add(1);
            self.fresh = false;
            return Ok(Str::new(self.text.get(start..end).unwrap_or_default(), 0));
        }
        self.long_string_token(start)
    }

    #[inline(never)]
    fn long_string_token(&mut self, start: usize) -> Result<Str<'a>, Error> {
        let bytes = self.text.as_bytes();
        let mut saved = 0u32;
        let mut specials = Specials::new(start);
        loop {
            let (at, special) = specials.next(bytes);
            match special {
                Some(b'"') => {
                    self.at = at;
                    break;
                }
                Some(b'\\') => {
                    let more = match bytes.get(at.wrapping_add(1)) {
                        Some(&code) if is_short_escape(code) => Some((2, 1)),
                        Some(b'u') => self.code_point(at),
                        _ => None,
                    };
                    let Some((read, spared)) = more else {
                        self.at = at;
                        return Err(self.syntax("an escape"));
                    };
                    specials.go_on(at.wrapping_add(read));
                    saved = saved.wrapping_add(spared);
                }
                special => {
                    let expected = match special {
                        Some(_) => "an escaped control character",
                        None => "the end of a string",
                    };
                    self.at = at;
                    return Err(self.syntax(expected));
                }
            }
        }
        let raw = self.slice(start);
        self.advance(1);
        self.fresh = false;
        Ok(Str::new(raw, saved))
    }

    #[cold]
    fn code_point(&mut self, at: usize) -> Option<(usize, u32)> {
        let (read, spared, is_half) = self.text.get(at..).and_then(code_point_escape)?;
        self.has_halves |= is_half;
        Some((read, spared))
    }

    pub(super) fn number_token(&mut self) -> Result<(), Error> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) == Some(&b'-') {
            self.advance(1);
        }
        match bytes.get(self.at) {
            Some(b'0') => self.advance(1),
            Some(b'1'..=b'9') => self.digits(bytes),
            _ => return Err(self.syntax("a digit")),
        }
        if bytes.get(self.at) == Some(&b'.') {
            self.advance(1);
            self.some_digits(bytes)?;
        }
        if matches!(bytes.get(self.at), Some(b'e' | b'E')) {
            self.advance(1);
            if matches!(bytes.get(self.at), Some(b'+' | b'-')) {
                self.advance(1);
            }
            self.some_digits(bytes)?;
        }
        self.fresh = false;
        Ok(())
    }

    fn digits(&mut self, bytes: &[u8]) {
        while matches!(bytes.get(self.at), Some(b'0'..=b'9')) {
            self.advance(1);
        }
    }

    fn some_digits(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if !matches!(bytes.get(self.at), Some(b'0'..=b'9')) {
            return Err(self.syntax("a digit"));
        }
        self.digits(bytes);
        Ok(())
    }

    pub(super) fn literal_token(&mut self) -> Result<(), Error> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        for literal in ["true", "false", "null"] {
            if rest.starts_with(literal) {
                self.advance(literal.len());
                self.fresh = false;
                return Ok(());
            }
        }
        Err(self.syntax("a value"))
    }
}
