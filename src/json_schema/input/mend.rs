//! Detection of values in a tool call's input that the client would certainly refuse, although
//! nothing is lost without them.
//!
//! Models fill optional members with `null`, `""` or a number beyond all bounds. The values found
//! here are refused by every validator, or by every validator that checks `format`. If the schema
//! uses keywords that are not evaluated here, the value stays.

use super::{Check, DEPTH_MAX, Keywords, ValidationBudget, kind_of};
use crate::json::{self, Number, Reader, Str, ValueKind};
use crate::text::names::{NameSet, Names};

/// Maximum number of members of an object that are examined; later members stay unchanged.
pub(crate) const MEMBERS_MAX: usize = 128;

/// Number of bytes of memory counted for a member, in addition to its name.
const MEMBER_BYTES: usize = 128;

/// Largest integer that JavaScript represents exactly. A larger number in quotes keeps its quotes.
const INTEGER_MAX: &str = "9007199254740991";

/// Formats that no blank text has. Some other formats, such as `uri-reference`, allow an empty
/// text.
const FORMATS: [&str; 13] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "time",
    "uri",
    "uuid",
];

/// Verdict on the value of a member in a tool call's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueVerdict {
    /// Value that stays as it is.
    Keep,
    /// Value that is removed together with its member.
    Drop,
    /// String that should be a number or a boolean: its quotes are removed.
    Unquote,
}

impl ValueVerdict {
    fn drop_if(refused: bool) -> Self {
        if refused { Self::Drop } else { Self::Keep }
    }
}

/// Position of a subschema within the text of a tool's whole schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SchemaPart {
    start: usize,
    end: usize,
}

impl SchemaPart {
    /// Returns the position of the whole schema `root`.
    pub(crate) fn whole(root: &str) -> Self {
        Self { start: 0, end: root.len() }
    }

    fn of(root: &str, part: &str) -> Option<Self> {
        let start = json::offset_in(root, part)?;
        Some(Self { start, end: start.checked_add(part.len())? })
    }

    fn text(self, root: &str) -> &str {
        root.get(self.start..self.end).unwrap_or_default()
    }
}

/// Description of an object's members, as read from its schema.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    members: Names<'static, SchemaMember>,
    /// True if the schema allows only the members that it lists.
    is_closed: bool,
    /// True if some member of an object with this schema may be left out or changed.
    mends: bool,
    bytes: usize,
}

/// Description of one member of an object, as read from its schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SchemaMember {
    pub(crate) schema: SchemaPart,
    /// Position of the member among `properties`, below [`MEMBERS_MAX`].
    pub(crate) place: usize,
    /// True if the member is not required, or has a default.
    pub(crate) may_lack: bool,
    /// True if the member has a default other than `null`, which applies if the member is absent.
    pub(crate) has_value: bool,
}

impl Shape {
    /// Reads the description of an object's members from the schema at `part` of `root`. `None` if
    /// several subschemas describe the members at once.
    pub(crate) fn of(root: &str, part: SchemaPart, budget: &mut ValidationBudget) -> Option<Self> {
        let keywords = Check::new(root, budget).narrowed(part.text(root), "{}", 0)?;
        let required: NameSet<'_> = json::elements(keywords.required)
            .filter_map(json::string)
            .fold(NameSet::default(), |mut names, name| {
                names.add(name.decode());
                names
            });
        let mut shape = Self {
            is_closed: !keywords.patterned
                && keywords.additional.is_some_and(|additional| additional.trim_ascii() == "false"),
            ..Self::default()
        };
        shape.mends = shape.is_closed;
        for (place, (name, schema)) in
            json::members(keywords.properties).take(MEMBERS_MAX).enumerate()
        {
            let name = name.decode();
            let default = json::member(schema, "default");
            let may_lack = !required.contains(&name) || default.is_some();
            let has_value = default.is_some_and(|value| kind_of(value) != ValueKind::Null);
            let nests = ["\"properties\"", "$ref"].iter().any(|word| schema.contains(word));
            shape.mends |= may_lack || nests;
            let schema = SchemaPart::of(root, schema)?;
            let bytes = name.len().saturating_add(MEMBER_BYTES);
            shape.bytes = shape.bytes.saturating_add(bytes);
            shape
                .members
                .insert(name.into_owned(), SchemaMember { schema, place, may_lack, has_value });
        }
        Some(shape)
    }

    /// Returns the approximate number of bytes of memory that the description of the members uses.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if some member of an object with the described schema may be left out or
    /// changed.
    pub(crate) fn mends(&self) -> bool {
        self.mends
    }

    /// Returns true if the schema allows only the members that it lists.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed && self.members.len() < MEMBERS_MAX
    }

    pub(crate) fn member(&self, name: &str) -> Option<SchemaMember> {
        self.members.get(name).copied()
    }
}

/// Returns the schema that applies to all elements of an array.
pub(crate) fn elements_of(
    root: &str,
    part: SchemaPart,
    budget: &mut ValidationBudget,
) -> Option<SchemaPart> {
    let keywords = Check::new(root, budget).narrowed(part.text(root), "[]", 0)?;
    SchemaPart::of(root, keywords.of_elements()?)
}

/// Returns true if the schema at `part` of `root` may allow strings, as far as its keywords tell.
pub(crate) fn takes_texts(root: &str, part: SchemaPart, budget: &mut ValidationBudget) -> bool {
    Check::new(root, budget).takes_kind(part.text(root), "\"\"", 0)
}

/// Returns true if the schema at `part` of `root` certainly refuses a value.
pub(crate) fn refuses(
    root: &str,
    part: SchemaPart,
    value: &str,
    budget: &mut ValidationBudget,
) -> bool {
    !Check::new(root, budget).apply(part.text(root), value, 0)
}

/// Returns the verdict on the value of a member that may be absent. `bounded`: a number beyond its
/// bounds is left out.
pub(crate) fn judge(
    root: &str,
    part: SchemaPart,
    value: &str,
    bounded: bool,
    budget: &mut ValidationBudget,
) -> ValueVerdict {
    let mut check = Check { asks_forms: true, ..Check::new(root, budget) };
    let schema = part.text(root);
    let verdict = match kind_of(value) {
        ValueKind::Null => ValueVerdict::drop_if(!check.apply(schema, value, 0)),
        ValueKind::Number => {
            ValueVerdict::drop_if(bounded && check.is_out_of_bounds(schema, value))
        }
        ValueKind::String => check.judge_text(schema, value, bounded),
        ValueKind::Bool | ValueKind::Array | ValueKind::Object => ValueVerdict::Keep,
    };
    // All checks succeed once the budget is spent, so the verdict means nothing.
    if check.budget.is_spent() { ValueVerdict::Keep } else { verdict }
}

impl<'s> Check<'s, '_> {
    fn judge_text(&mut self, schema: &'s str, value: &str, bounded: bool) -> ValueVerdict {
        let Some(text) = json::string(value) else { return ValueVerdict::Keep };
        if text.is_blank() {
            return ValueVerdict::drop_if(!self.apply(schema, value, 0));
        }
        let inside = text.raw();
        let is_whole = Reader::of(inside).is_whole() && inside.trim_ascii() == inside;
        if !is_whole || self.takes_kind(schema, "\"\"", 0) {
            return ValueVerdict::Keep;
        }
        let digits = inside.trim_start_matches('-');
        match kind_of(inside) {
            ValueKind::Number if bounded && self.is_out_of_bounds(schema, inside) => {
                ValueVerdict::Drop
            }
            ValueKind::Number if Number::read(digits) > Number::read(INTEGER_MAX) => {
                ValueVerdict::Keep
            }
            ValueKind::Number | ValueKind::Bool if self.apply(schema, inside, 0) => {
                ValueVerdict::Unquote
            }
            _ => ValueVerdict::Keep,
        }
    }

    /// Returns true if a value fits the schema except for bounds on numbers or lengths.
    fn is_out_of_bounds(&mut self, schema: &'s str, value: &str) -> bool {
        if self.apply(schema, value, 0) {
            return false;
        }
        self.ignores_bounds = true;
        let fits = self.apply(schema, value, 0);
        self.ignores_bounds = false;
        fits
    }

    /// Returns the only keywords that describe the members or elements of a value of the kind of
    /// `sample` (`{}` or `[]`). Follows references and choices; `None` if several subschemas
    /// describe them.
    fn narrowed(&mut self, schema: &'s str, sample: &str, depth: u32) -> Option<Keywords<'s>> {
        if depth > DEPTH_MAX || !self.budget.spend(schema, "") {
            return None;
        }
        let keywords = Keywords::read(schema)?;
        if keywords.is_conditional {
            return None;
        }
        let deeper = depth.saturating_add(1);
        let is_own = !(keywords.required.is_empty()
            && keywords.properties.is_empty()
            && keywords.additional.is_none()
            && keywords.items.is_none());
        let target = match (keywords.reference, keywords.any_of, keywords.one_of, keywords.all_of) {
            (None, "", "", "") => return Some(keywords),
            _ if is_own => None,
            (Some(reference), "", "", "") => self.target(reference),
            (None, any_of, "", "") => self.only(any_of, sample, deeper),
            (None, "", one_of, "") => self.only(one_of, sample, deeper),
            (None, "", "", all_of) => {
                let mut all = json::elements(all_of);
                all.next().filter(|_| all.next().is_none())
            }
            _ => None,
        };
        self.narrowed(target?, sample, deeper)
    }

    /// Returns the schema that allows values of the kind of `sample`, if exactly one schema in the
    /// list `schemas` does.
    fn only(&mut self, schemas: &'s str, sample: &str, depth: u32) -> Option<&'s str> {
        let mut taking =
            json::elements(schemas).filter(|schema| self.takes_kind(schema, sample, depth));
        taking.next().filter(|_| taking.next().is_none())
    }
}

/// Returns true if a text with this `format` or this `pattern` is never empty.
pub(super) fn forms_refuse_empty(format: Option<Str<'_>>, pattern: Option<Str<'_>>) -> bool {
    format.is_some_and(|format| FORMATS.contains(&format.decode().as_ref()))
        || pattern.is_some_and(|pattern| needs_a_letter(&pattern.decode()))
}

/// Returns true if a regular expression certainly does not match the empty text, because a
/// mandatory part needs a character. Patterns with groups or alternatives return false.
fn needs_a_letter(pattern: &str) -> bool {
    if pattern.contains(['(', '|']) {
        return false;
    }
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let (is_letter, behind) = match first {
            '[' => match end_of_class(rest) {
                Some(end) => (true, rest.get(end..)),
                None => return false,
            },
            '\\' => {
                let escaped = rest.chars().nth(1);
                let is_letter = escaped.is_some_and(|it| {
                    matches!(it, 'd' | 'D' | 'w' | 'W' | 's' | 'S') || it.is_ascii_punctuation()
                });
                let zero = matches!(escaped, Some('b' | 'B'));
                if !is_letter && !zero {
                    return false;
                }
                (is_letter, rest.get(2..))
            }
            '^' | '$' => (false, rest.get(1..)),
            _ => (true, rest.get(first.len_utf8()..)),
        };
        let Some(behind) = behind else { return false };
        match quantifier(behind) {
            Some((0, after)) => rest = after,
            Some(_) if is_letter => return true,
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    false
}

/// Returns the position behind the character class at the beginning of a pattern.
fn end_of_class(pattern: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in pattern.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b']' if at > 1 => return at.checked_add(1),
            _ => {}
        }
    }
    None
}

/// Returns the minimum number of repetitions that a quantifier demands, and the text behind the
/// quantifier.
fn quantifier(text: &str) -> Option<(usize, &str)> {
    let lazy = |text: &'_ str| -> usize { usize::from(text.starts_with('?')) };
    match text.bytes().next() {
        Some(b'*' | b'?') => {
            let after = text.get(1..)?;
            Some((0, after.get(lazy(after)..)?))
        }
        Some(b'+') => {
            let after = text.get(1..)?;
            Some((1, after.get(lazy(after)..)?))
        }
        Some(b'{') => {
            let (inside, after) = text.get(1..)?.split_once('}')?;
            let least = inside.split(',').next()?.trim().parse().ok()?;
            Some((least, after.get(lazy(after)..)?))
        }
        _ => Some((1, text)),
    }
}

#[cfg(test)]
mod tests;
