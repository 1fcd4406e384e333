//! Rules for tools of Claude Code 2.1 whose schemas allow harmful values, such as numbers out of
//! range. A tool is recognized by its name and its members; a tool of the same name without these
//! members belongs to another client.

use crate::json::{self, Number};
use crate::json_schema::input::mend::Shape;

/// Kind of value for which a member is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Number 0, in a member that counts lines from 1.
    Zero,
    /// Duration below 1: a negative timeout ends the command, or sends it to the background.
    BelowOne,
    /// Blank string, in a member whose absence means the default.
    Blank,
    /// Value that the schema does not list, such as `inherit` or the name of a model, in a member
    /// whose absence means the default.
    UnknownWord,
}

/// Rules for the members of a tool, if it is one of Claude Code's.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByName(Option<&'static [(&'static str, Rule)]>);

/// Name of a tool, the members by which it is recognized, and the rules for its members.
type NameRow = (&'static str, &'static [&'static str], &'static [(&'static str, Rule)]);

const AGENT: &[(&str, Rule)] = &[("subagent_type", Rule::Blank), ("model", Rule::UnknownWord)];

const ROWS: [NameRow; 7] = [
    ("Read", &["file_path", "offset", "limit"], &[("offset", Rule::Zero)]),
    ("Bash", &["command", "timeout", "run_in_background"], &[("timeout", Rule::BelowOne)]),
    ("Agent", &["prompt", "subagent_type", "model"], AGENT),
    ("Task", &["prompt", "subagent_type", "model"], AGENT),
    ("Grep", &["pattern", "output_mode", "head_limit"], &[]),
    ("WebFetch", &["url", "prompt", "offset"], &[]),
    ("ReportFindings", &["findings", "level"], &[]),
];

impl ByName {
    pub(super) fn of(tool: &str, shape: &Shape) -> Self {
        let is_it = |(name, members, _): &&NameRow| {
            *name == tool && members.iter().all(|member| shape.member(member).is_some())
        };
        Self(ROWS.iter().find(is_it).map(|(_, _, rules)| *rules))
    }

    /// Returns true if the tool is one of Claude Code's. Leaving out a wrong number never makes one
    /// of these tools do more than the wrong number would.
    pub(super) fn is_known(self) -> bool {
        self.0.is_some()
    }

    pub(super) fn rule(self, member: &str) -> Option<Rule> {
        self.0?.iter().find(|(name, _)| *name == member).map(|(_, rule)| *rule)
    }
}

impl Rule {
    /// Returns true if the rule needs the member's whole string to decide.
    pub(super) fn needs_all(self) -> bool {
        self == Self::UnknownWord
    }

    /// Returns true if the rule removes a member with the given value. `refuses`: returns true if
    /// the schema refuses a value.
    pub(super) fn drops(self, value: &str, refuses: &mut dyn FnMut(&str) -> bool) -> bool {
        let text = json::string(value);
        let number = Number::read(text.map_or(value, |text| text.raw()));
        match self {
            Self::Zero => number.is_some() && number == Number::read("0"),
            Self::BelowOne => number.is_some() && number < Number::read("1"),
            Self::Blank => text.is_some_and(|text| text.is_blank()),
            Self::UnknownWord => text.is_some() && refuses(value),
        }
    }
}
