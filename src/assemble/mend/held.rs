//! Handling of members that are held until it is known whether they are removed.

use super::by_name::Rule;
use super::{At, Current, InputMender, number_end};
use crate::json::{Reader, ValueKind};
use crate::json_schema::input::ValidationBudget;
use crate::json_schema::input::mend::{self as schema, ValueVerdict};
use crate::text::json_scan::Scanner;
use crate::text::words;

impl InputMender {
    /// Begins the value of a member. Returns 1 if the value's first byte was handled, or else 0.
    pub(super) fn begin_value(&mut self, byte: u8, budget: &mut ValidationBudget) -> usize {
        let Current { may_lack, bounded, is_extra, schema, .. } = self.member;
        self.value = self.held.len();
        let held = match byte {
            b'n' if may_lack || is_extra => At::HeldNull,
            b'"' if may_lack || is_extra => {
                self.at = At::HeldText { escaped: false };
                return self.hold("\"");
            }
            b'-' | b'0'..=b'9' if may_lack && bounded => At::HeldNumber,
            b'{' | b'[' if is_extra => {
                self.at = At::HeldEmpty { open: byte };
                return self.hold(if byte == b'{' { "{" } else { "[" });
            }
            _ => {
                self.release();
                return self.begin_passed(byte, schema, budget);
            }
        };
        self.at = held;
        0
    }

    pub(super) fn take_held_null(&mut self, byte: u8, budget: &mut ValidationBudget) -> usize {
        let came = self.held.len().saturating_sub(self.value);
        if b"null".get(came) != Some(&byte) {
            return self.give_up();
        }
        self.held.push(char::from(byte));
        if came == 3 {
            self.decide(budget);
        }
        1
    }

    pub(super) fn take_held_number(&mut self, rest: &str, budget: &mut ValidationBudget) -> usize {
        let end = number_end(rest);
        let taken = self.hold(words::split_at(rest, end).0);
        if end < rest.len() && self.at == At::HeldNumber {
            self.decide(budget);
        }
        taken
    }

    /// Handles the next byte of a held array or object that is empty so far. Returns the number of
    /// bytes handled.
    pub(super) fn take_held_empty(&mut self, open: u8, byte: u8) -> usize {
        if byte == open.saturating_add(2) {
            self.leave_out();
            return 1;
        }
        self.pass_unread(open);
        0
    }

    /// Sends an array or object without examining it further; only its first bracket has arrived.
    fn pass_unread(&mut self, open: u8) {
        self.release();
        self.scan = Scanner::default();
        self.scan.feed(if open == b'{' { "{" } else { "[" });
        self.at = At::Other;
    }

    pub(super) fn take_held_text(
        &mut self,
        rest: &str,
        escaped: bool,
        budget: &mut ValidationBudget,
    ) -> usize {
        let Some(first) = rest.chars().next() else { return 0 };
        let text = words::split_at(rest, first.len_utf8()).0;
        if escaped || first == '\\' {
            self.at = At::HeldText { escaped: !escaped };
        } else if first == '"' {
            self.held.push('"');
            self.decide(budget);
            return 1;
        }
        if !self.may_be_mended(text, budget) {
            self.release();
            self.at = At::Text { escaped };
            return 0;
        }
        self.hold(text)
    }

    /// Returns true if a string that begins with the held text and continues with `more` may be
    /// removed or unquoted.
    fn may_be_mended(&self, more: &str, budget: &mut ValidationBudget) -> bool {
        let inside = self.held.get(self.value.saturating_add(1)..).unwrap_or_default();
        let Current { is_extra, schema, by_name, .. } = self.member;
        if by_name.is_some_and(Rule::needs_all) {
            return true;
        }
        let Some(part) = schema.filter(|_| !is_extra) else { return false };
        // All bytes of the held text were examined like `more`, so the first byte tells their kind:
        // blank, digit or letter.
        let first = inside.get(..1).unwrap_or(more);
        if more == " " && first == " " {
            return true;
        }
        let begins =
            |word: &str| word.strip_prefix(inside).is_some_and(|rest| rest.starts_with(more));
        let is_numeric = |text: &str| number_end(text) == text.len();
        let is_scalar = begins("true") || begins("false") || is_numeric(more) && is_numeric(first);
        is_scalar && !(inside.is_empty() && schema::takes_texts(&self.root, part, budget))
    }

    /// Decides about the held member, whose value is complete: keep, remove or unquote.
    fn decide(&mut self, budget: &mut ValidationBudget) {
        match self.verdict(budget) {
            ValueVerdict::Drop => self.leave_out(),
            ValueVerdict::Keep => {
                self.release();
                self.at = At::Next;
            }
            ValueVerdict::Unquote => {
                self.held.pop();
                if self.value < self.held.len() {
                    self.held.remove(self.value);
                }
                self.mended = self.mended.saturating_add(1);
                self.release();
                self.at = At::Next;
            }
        }
    }

    fn leave_out(&mut self) {
        self.forget();
        self.mended = self.mended.saturating_add(1);
        self.at = At::Next;
    }

    fn verdict(&self, budget: &mut ValidationBudget) -> ValueVerdict {
        let value = self.held.get(self.value..).unwrap_or_default();
        let Current { is_extra, schema, by_name, bounded, .. } = self.member;
        if is_extra {
            return if matches!(value, "null" | "\"\"") {
                ValueVerdict::Drop
            } else {
                ValueVerdict::Keep
            };
        }
        let Some(part) = schema else { return ValueVerdict::Keep };
        let is_number =
            |text: &str| Reader::of(text).kind().is_ok_and(|kind| kind == ValueKind::Number);
        if is_number(value) && !Reader::of(value).is_whole() {
            return ValueVerdict::Keep;
        }
        let refuses = |value: &str, budget: &mut ValidationBudget| {
            schema::refuses(&self.root, part, value, budget)
        };
        if let Some(rule) = by_name
            && rule.drops(value, &mut |value| refuses(value, budget))
        {
            return ValueVerdict::Drop;
        }
        schema::judge(&self.root, part, value, bounded, budget)
    }

    /// Sends the held bytes, because they are too many to be removed.
    pub(super) fn give_way(&mut self) {
        let at = self.at;
        if let At::HeldEmpty { open } = at {
            // The held value has only its opening bracket and white space.
            return self.pass_unread(open);
        }
        self.release();
        self.at = match at {
            At::HeldText { escaped } => At::Text { escaped },
            At::HeldNumber => At::Number,
            At::InKey { .. } | At::Key | At::Colon | At::Value => {
                self.member = Current::default();
                at
            }
            _ => at,
        };
    }
}
