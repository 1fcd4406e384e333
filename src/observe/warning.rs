//! Warnings: named and counted changes and omissions in the translation of an exchange.
//!
//! A warning never changes a body. Each warning is a code in the response header
//! `x-creole-warnings`, a counter, and a part of the log line. The guards that acted are recorded
//! here too, for the header `x-creole-guard`.

use crate::error::Error;

/// Maximum number of warning codes in the header `x-creole-warnings`.
const HEADER_CODES_MAX: usize = 16;

/// Maximum number of kinds of warnings that are counted separately.
const KINDS_MAX: usize = 64;

/// Maximum number of unknown field names that are looked up in the list of warnings. Further names
/// are counted without a name.
const UNKNOWN_MAX: u32 = 1_000;

/// Maximum length of a dropped field's name in the header, in bytes; clients can choose names.
const NAME_BYTES_MAX: usize = 64;

/// Warnings and guards of one exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    /// True if a request is rejected where Creole would otherwise drop a part of it.
    strict: bool,
    found: Vec<Warning>,
    guards: Vec<&'static str>,
    tool_turn: Option<(u32, u32)>,
    /// Index of the warning that was counted last.
    last: usize,
    /// Number of unknown field names that were looked up without success.
    unknown: u32,
}

/// Kind of warning, with the number of times that it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Code of the warning, such as `tool_result_missing`.
    pub code: &'static str,
    /// Name of the field or other thing that the warning is about, cleaned for a header. Empty if
    /// the code is enough.
    pub name: String,
    /// Number of times that the warning was given.
    pub count: u32,
}

impl Warning {
    /// Returns the warning as it is written in the header: `code` or `code:name`.
    #[must_use]
    pub fn text(&self) -> String {
        let colon = if self.name.is_empty() { "" } else { ":" };
        [self.code, colon, &self.name].concat()
    }
}

impl Warnings {
    /// Returns an empty list of warnings. If `strict` is true, [`Warnings::dropped`] returns an
    /// error.
    #[must_use]
    pub fn new(strict: bool) -> Self {
        Self { strict, ..Self::default() }
    }

    /// Returns true if the operator wants requests to be rejected instead of repaired.
    #[must_use]
    pub fn strict(&self) -> bool {
        self.strict
    }

    /// Counts a warning with the code `code`.
    pub fn add(&mut self, code: &'static str) {
        self.add_named(code, "");
    }

    /// Counts a warning with the code `code` about the field or other subject named `name`.
    pub fn add_named(&mut self, code: &'static str, name: &str) {
        self.add_times(code, name, 1);
    }

    fn add_times(&mut self, code: &'static str, name: &str, times: u32) {
        let is_it = |known: &Warning| known.code == code && known.name == name;
        // Most warnings repeat the last one.
        if let Some(last) = self.found.get_mut(self.last).filter(|known| is_it(known)) {
            last.count = last.count.saturating_add(times);
            return;
        }
        // A single name does not help among so many unknown names.
        if self.unknown > UNKNOWN_MAX && !name.is_empty() {
            return self.add_times(code, "", times);
        }
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
        let name: String =
            name.bytes().filter(allowed).take(NAME_BYTES_MAX).map(char::from).collect();
        let full = self.found.len() >= KINDS_MAX;
        match self.found.iter().position(|known| known.code == code && known.name == name) {
            Some(at) => {
                self.last = at;
                if let Some(known) = self.found.get_mut(at) {
                    known.count = known.count.saturating_add(times);
                }
            }
            // Further names are counted under the code alone, so that a hostile request with a
            // million unknown fields costs no memory.
            None if full && !name.is_empty() => {
                self.unknown = self.unknown.saturating_add(1);
                self.add_times(code, "", times);
            }
            None => self.found.push(Warning { code, name, count: times }),
        }
    }

    /// Notes that the guard named `guard` changed or refused a part of the exchange.
    pub fn acted(&mut self, guard: &'static str) {
        if !self.guards.contains(&guard) {
            self.guards.push(guard);
        }
    }

    /// Returns the names of the guards that acted.
    #[must_use]
    pub fn guards(&self) -> &[&'static str] {
        &self.guards
    }

    /// Notes the number of the current tool turn, and the maximum number of tool turns.
    pub fn set_tool_turn(&mut self, turn: u32, most: u32) {
        self.tool_turn = Some((turn, most));
    }

    /// Returns the number of turns with tool calls since the last user text, and the maximum
    /// number.
    #[must_use]
    pub fn tool_turn(&self) -> Option<(u32, u32)> {
        self.tool_turn
    }

    /// Returns the total number of warnings.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.found.iter().map(|warning| u64::from(warning.count)).sum()
    }

    /// Warns that a part of the client's request, named `name`, is left out: `dropped:NAME`.
    ///
    /// # Errors
    /// Returns an error in strict mode: nothing is left out, and the request is rejected.
    pub fn dropped(&mut self, name: &str) -> Result<(), Error> {
        if self.strict {
            return Err(Error::unsupported(name));
        }
        self.add_named("dropped", name);
        Ok(())
    }

    /// Warns that a field unknown to Creole is left out: `unknown_field:NAME`. `path` is the path
    /// of the object that has the field, such as `messages[0]`, or empty.
    ///
    /// # Errors
    /// Returns an error in strict mode, with the message of the real API.
    pub fn unknown_field(&mut self, path: &str, name: &str) -> Result<(), Error> {
        if self.strict {
            let path = if path.is_empty() { name.to_owned() } else { [path, ".", name].concat() };
            return Err(Error::invalid(format!("{path}: Extra inputs are not permitted")));
        }
        self.add_named("unknown_field", name);
        Ok(())
    }

    /// Adds the warnings of another part of the same exchange.
    pub fn merge(&mut self, other: &Self) {
        self.tool_turn = self.tool_turn.or(other.tool_turn);
        other.guards.iter().for_each(|guard| self.acted(guard));
        for warning in &other.found {
            self.add_times(warning.code, &warning.name, warning.count);
        }
    }

    /// Adds the warnings of `other` that are not there yet. Another round of an answer repeats the
    /// warnings of the request.
    pub(crate) fn merge_new(&mut self, other: &Self) {
        other.guards.iter().for_each(|guard| self.acted(guard));
        for warning in &other.found {
            let is_it = |known: &Warning| known.code == warning.code && known.name == warning.name;
            if !self.found.iter().any(is_it) {
                self.add_times(warning.code, &warning.name, warning.count);
            }
        }
    }

    /// Returns the kinds of warnings, in the order in which they were first given.
    pub fn iter(&self) -> impl Iterator<Item = &Warning> {
        self.found.iter()
    }

    /// Returns the value of the header `x-creole-warnings`, or `None` if there are no warnings.
    #[must_use]
    pub fn header(&self) -> Option<String> {
        let mut codes = String::new();
        for warning in self.found.iter().take(HEADER_CODES_MAX) {
            codes.push_str(if codes.is_empty() { "" } else { "," });
            codes.push_str(&warning.text());
        }
        (!codes.is_empty()).then_some(codes)
    }
}

#[cfg(test)]
mod tests;
