//! Parsers for call syntaxes that write each value of the input between tags, without escapes.
//!
//! Such values have no quoting, so the text of a file can look like the end of a value, or like a
//! call. One rule for all syntaxes decides where a value ends ([`Cursor::value`]); in case of
//! doubt, the text is no call.

use super::Piece;
use super::cursor::{Cursor, FindTool, SectionTags};
use super::schema::{allows, has_parameter};
use crate::json::{self, Reader, ValueKind, Writer};
use crate::json_schema::input::{ValidationBudget, has_required, property};
use crate::model::request_context::Tool;
use crate::text::names::NameSet;
use crate::text::words;

/// Tags of one call syntax, and rules for the values between the tags.
struct Tags {
    /// Start tag of a call, up to the tool's name.
    call: &'static str,
    call_end: &'static str,
    /// Start tag of a parameter, up to its key.
    parameter: &'static str,
    key_end: &'static str,
    value_end: &'static str,
    /// Start of an element that may occur inside of a value and has the same end tag as a value.
    element: &'static str,
    /// Function that reads the text between a key and its value.
    head: fn(&mut Cursor<'_>) -> Option<Declared>,
    /// Function that removes white space used as layout from a value, if all values of the call
    /// have such white space.
    layout: fn(&str) -> &str,
    /// True if each tag begins a line, so that the next tag ends a value whose own end tag is
    /// missing.
    own_lines: bool,
}

/// Type that a parameter declares for its value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Declared {
    Nothing,
    IsText,
    IsJson,
}

/// Maximum number of bytes of a key.
const KEY_BYTES_MAX: usize = 1024;

const QWEN: Tags = Tags {
    call: "<function=",
    call_end: "</function>",
    parameter: "<parameter=",
    key_end: ">",
    value_end: "</parameter>",
    element: "<parameter",
    head: |_| Some(Declared::Nothing),
    layout: |value| {
        let value = value.strip_prefix('\r').unwrap_or(value);
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        value.strip_suffix('\r').unwrap_or(value)
    },
    own_lines: true,
};

const GLM: Tags = Tags {
    call: "<tool_call>",
    call_end: "</tool_call>",
    parameter: "<arg_key>",
    key_end: "</arg_key>",
    value_end: "</arg_value>",
    element: "<arg_value>",
    head: |cursor| {
        // Models close a key twice, and leave out the start tag of a value.
        while let Some(rest) = cursor.rest.trim_start().strip_prefix("</arg_key>") {
            cursor.rest = rest;
        }
        if let Some(rest) = cursor.rest.trim_start().strip_prefix("<arg_value>") {
            cursor.rest = rest;
        } else {
            cursor.rest = cursor.rest.strip_prefix('\n').unwrap_or(cursor.rest);
            let (value, _) = words::split_once(cursor.rest, "</arg_value>")?;
            if words::has(value, "<arg_") || value.starts_with('<') {
                return None;
            }
        }
        Some(Declared::Nothing)
    },
    layout: |value| value,
    own_lines: false,
};

/// Tags of Claude's syntax, which many models know, and which is MiniMax's own.
const CLAUDE: Tags = Tags {
    call: "<invoke name=\"",
    call_end: "</invoke>",
    parameter: "<parameter name=\"",
    key_end: "\"",
    value_end: "</parameter>",
    element: "<parameter",
    head: |cursor| match cursor.until(">")?.trim() {
        "" => Some(Declared::Nothing),
        "string=\"true\"" => Some(Declared::IsText),
        "string=\"false\"" => Some(Declared::IsJson),
        _ => None,
    },
    layout: |value| {
        let within = value.strip_prefix('\n').and_then(|value| value.strip_suffix('\n'));
        within.unwrap_or(value)
    },
    own_lines: false,
};

/// Tags of Claude's syntax with DeepSeek's mark in each; values keep their white space.
const DSML: Tags = Tags { layout: |value| value, ..CLAUDE };

/// Reads Qwen's form:
/// `<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>`.
pub(super) fn qwen(cursor: &mut Cursor<'_>, tools: FindTool<'_>) -> Option<Piece> {
    // Values are not quoted, so the end of a cut-off call may be an example within a value.
    if cursor.extent.is_cut_off {
        return None;
    }
    let tool = tools(cursor.until(">")?.trim())?;
    let input = cursor.input(&QWEN, tool)?;
    cursor.expect(QWEN.call_end)?;
    // Models close a call twice.
    cursor.eat_any(&[QWEN.call_end, "</function_invocation>"]);
    Some(Piece::call(None, tool, input))
}

/// Reads GLM's form:
/// `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>`.
pub(super) fn glm(cursor: &mut Cursor<'_>, tools: FindTool<'_>) -> Option<Piece> {
    let end = cursor.rest.find(['<', '\n'])?;
    let tool = tools(cursor.take(end).trim())?;
    let input = cursor.input(&GLM, tool)?;
    if input == "{}" {
        cursor.eat(GLM.value_end);
    }
    if !cursor.eat(GLM.call_end) {
        // If the end tag is missing, more parameters could follow, or more of the name if the call
        // has no parameters.
        let is_whole = has_required(schema(tool), &input, &mut ValidationBudget::default());
        if input == "{}" || !is_whole {
            return None;
        }
        cursor.end(GLM.call, GLM.call_end)?;
    }
    Some(Piece::call(None, tool, input))
}

/// Start and end tags of sections of calls in Claude's form.
const SECTIONS: SectionTags = &[
    ("<minimax:tool_call>", "</minimax:tool_call>"),
    ("<tool_calls>", "</tool_calls>"),
    ("<function_calls>", "</function_calls>"),
    // Tags of DeepSeek since V4.1.
    ("<calls>", "</calls>"),
    ("<call>", "</call>"),
];

/// Reads Claude's form: `<invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke>`, in
/// a section such as `<minimax:tool_call>`.
pub(super) fn claude(
    cursor: &mut Cursor<'_>,
    tools: FindTool<'_>,
    calls: &mut Vec<Piece>,
) -> Option<()> {
    cursor.sections(SECTIONS, CLAUDE.call, tools, calls, |cursor, tools| {
        let tool = tools(cursor.until("\"")?)?;
        if cursor.eat("/>") {
            return Some(Piece::call(None, tool, "{}".to_owned()));
        }
        cursor.expect(">")?;
        // DeepSeek's later models may also write the input as one object.
        let input = match cursor.is_marked && cursor.rest.trim_start().starts_with('{') {
            true => cursor.object()?.into_owned(),
            false => cursor.input(if cursor.is_marked { &DSML } else { &CLAUDE }, tool)?,
        };
        cursor.expect(CLAUDE.call_end)?;
        Some(Piece::call(None, tool, input))
    })
}

/// Reads DeepSeek's form: `<｜DSML｜tool_calls><｜DSML｜invoke name="NAME">…`, where each value has
/// `string="true"` or `"false"`.
pub(super) fn deepseek(
    cursor: &mut Cursor<'_>,
    tools: FindTool<'_>,
    calls: &mut Vec<Piece>,
) -> Option<()> {
    cursor.is_marked = true;
    claude(cursor, tools, calls)
}

fn schema(tool: &Tool) -> &str {
    tool.schema.as_deref().unwrap_or_default()
}

impl<'a> Cursor<'a> {
    /// Reads the parameters of a call, and returns a JSON object of the parameters.
    fn input(&mut self, tags: &Tags, tool: &Tool) -> Option<String> {
        let mut members = Vec::new();
        self.skip_blank();
        while self.behind(self.rest, tags.parameter).is_some() {
            let (key, rest) = self.parameter(tags, self.rest)?;
            self.rest = rest;
            let declared = (tags.head)(self)?;
            members.push((key, declared, self.value(tags, schema(tool))?));
            self.skip_blank();
        }
        let has_layout = |(_, declared, value): &(&str, Declared, &str)| {
            *declared == Declared::Nothing && (tags.layout)(value) != *value
        };
        let is_layout = tags.own_lines || members.iter().all(has_layout);
        let mut input = InputObject::default();
        for (key, declared, value) in members {
            let value = if is_layout { (tags.layout)(value) } else { value };
            input.member(key, value, declared, schema(tool))?;
        }
        Some(input.unwrapped(schema(tool)))
    }

    /// Returns the key of the parameter that begins at `text`, and the text behind the key.
    fn parameter(&self, tags: &Tags, text: &'a str) -> Option<(&'a str, &'a str)> {
        let text = self.behind(text, tags.parameter)?;
        let (key, _) = words::split_once(words::beginning(text, KEY_BYTES_MAX), tags.key_end)?;
        let rest = text.get(key.len().saturating_add(tags.key_end.len())..)?;
        let key = key.trim();
        (!key.bytes().any(|byte| matches!(byte, b'<' | b'\n'))).then_some((key, rest))
    }

    /// Reads a parameter's value, up to the first end tag that is followed by another tag.
    ///
    /// Earlier end tags belong to elements inside of the value, or stand in the middle of a line.
    /// The value is doubtful if it contains the start of a call, or of a parameter that the tool
    /// has: then an end tag is missing, and the value would include the next value.
    fn value(&mut self, tags: &Tags, schema: &str) -> Option<&'a str> {
        let text = self.rest;
        // `is_open`: the text of the value contains the start tag of a parameter that the tool does
        // not have, and no end tag for that parameter yet.
        let (mut elements, mut is_open, mut has_end) = (0usize, false, false);
        for at in words::places(text, "<") {
            let (value, rest) = text.split_at_checked(at)?;
            let may_be_tag = !tags.own_lines || value.ends_with('\n');
            if self.behind(rest, tags.call).is_some() {
                return None;
            }
            if let Some(behind) = self.behind(rest, tags.value_end) {
                let next = behind.trim_start();
                let is_next = |tag| self.behind(next, tag).is_some();
                if is_next(tags.value_end) {
                    return None;
                }
                if next.is_empty()
                    || [tags.call, tags.call_end, tags.parameter].into_iter().any(is_next)
                {
                    self.rest = behind;
                    return (!is_open).then_some(value);
                }
                is_open = false;
                match elements.checked_sub(1) {
                    Some(others) => elements = others,
                    // The end tag could be the value's own, with a damaged tag behind it.
                    None if next.len() < behind.len() || next.starts_with('<') => return None,
                    None => has_end = true,
                }
            } else if may_be_tag && let Some((key, _)) = self.parameter(tags, rest) {
                let is_known = has_parameter(schema, key);
                if has_end || is_known && (is_open || !tags.own_lines) {
                    return None;
                }
                if is_known {
                    self.rest = rest;
                    return Some(value);
                }
                is_open = true;
                elements = elements.saturating_add(1);
            } else if may_be_tag && tags.own_lines && self.behind(rest, tags.call_end).is_some() {
                self.rest = rest;
                return (!is_open && !has_end).then_some(value);
            } else if self.behind(rest, tags.element).is_some() {
                elements = elements.saturating_add(1);
            }
        }
        None
    }
}

/// Writes a value that came as plain text. Only the schema, a part of `root`, tells whether `5` is
/// a number or a text, unless `declared` states the type. Without a schema, the value has the type
/// that its text looks like.
pub(super) fn write_value(
    out: &mut Vec<u8>,
    value: &str,
    declared: Declared,
    root: &str,
    schema: Option<&str>,
) {
    let allows = |kind| schema.is_some_and(|schema| allows(root, schema, kind));
    let trimmed = value.trim();
    // A value that a template writes as JSON is no text, if the schema allows the type of that
    // JSON.
    let is_text = allows("string")
        && !(trimmed == "null" && allows("null")
            || trimmed.starts_with('{') && allows("object")
            || trimmed.starts_with('[') && allows("array"));
    // Templates write booleans and `null` as Python does.
    let value = match trimmed {
        _ if declared == Declared::IsText => value,
        "True" if !is_text && allows("boolean") => "true",
        "False" if !is_text && allows("boolean") => "false",
        "None" if !is_text && allows("null") => "null",
        _ => value,
    };
    let is_json = match declared {
        Declared::IsText => false,
        Declared::IsJson => true,
        Declared::Nothing => {
            !is_text && Reader::new(value, 1).kind().is_ok_and(|kind| kind != ValueKind::String)
        }
    };
    let mut json = Writer::new(out);
    if is_json && Reader::new(value, 64).is_whole() {
        json.value();
        json::compact(json.out(), value);
    } else {
        json.text(value);
    }
}

/// JSON object of a call's input that is written member by member.
#[derive(Default)]
pub(super) struct InputObject {
    out: Vec<u8>,
    keys: NameSet<'static>,
}

impl InputObject {
    /// Writes a member with the value of a parameter. Returns `None` if the object already has this
    /// key.
    fn member(&mut self, key: &str, value: &str, declared: Declared, schema: &str) -> Option<()> {
        let mut json = self.key(key)?;
        write_value(json.out(), value, declared, schema, property(schema, key));
        Some(())
    }

    /// Writes a member whose value is a text, unchanged.
    pub(super) fn text(&mut self, key: &str, value: &str) -> Option<()> {
        self.key(key)?.text(value);
        Some(())
    }

    /// Writes a member whose value is already JSON.
    pub(super) fn json(&mut self, key: &str, value: &str) -> Option<()> {
        if !Reader::new(value, 64).is_whole() {
            return None;
        }
        let mut json = self.key(key)?;
        json.value();
        json::compact(json.out(), value);
        Some(())
    }

    fn key(&mut self, key: &str) -> Option<Writer<'_>> {
        if !self.keys.add(key.to_owned()) {
            return None;
        }
        if self.out.is_empty() {
            self.out.push(b'{');
        }
        let mut json = Writer::new(&mut self.out);
        json.key_text(key);
        Some(json)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    pub(super) fn end(mut self) -> String {
        if self.out.is_empty() {
            self.out.push(b'{');
        }
        self.out.push(b'}');
        String::from_utf8(self.out).unwrap_or_default()
    }

    /// Returns the finished input. If the model put the whole input into one parameter that the
    /// tool does not have, the value of that parameter is returned.
    fn unwrapped(self, schema: &str) -> String {
        let words = ["arguments", "parameters", "input"];
        let is_one = self.keys.len() == 1;
        let input = self.end();
        let whole = words.iter().filter(|word| is_one && !has_parameter(schema, word));
        let whole = whole.filter_map(|word| json::member(&input, word)).next();
        match whole.filter(|whole| whole.starts_with('{')) {
            Some(whole) => whole.to_owned(),
            None => input,
        }
    }
}
