//! The nine syntaxes, a function for each.
//!
//! All of them read several calls, and give nothing unless the whole text is calls (in Harmony also what
//! the model says before them, or thinks and says without any), perhaps with the token that ended it.

use crate::json::{self, Kind, Reader, Writer};
use crate::profile::TextToolCalls;
use crate::tool_schema::property;
use crate::translate::signature::Field;
use crate::words;

use super::super::text_filter::Piece;
use super::schema::allows;

/// The schema of a tool by its name; `None`: there is no such tool.
type Schemas<'t> = &'t dyn Fn(&str) -> Option<&'t str>;

/// Reads `text` as calls.
pub(super) fn read(syntax: TextToolCalls, text: &str, schemas: Schemas<'_>) -> Option<Vec<Piece>> {
    let mut cursor = Cursor { rest: text };
    let mut calls = Vec::new();
    match syntax {
        TextToolCalls::Off => None,
        TextToolCalls::Hermes => hermes(&mut cursor, &mut calls),
        TextToolCalls::QwenXml => qwen(&mut cursor, schemas, &mut calls),
        TextToolCalls::Glm => glm(&mut cursor, schemas, &mut calls),
        TextToolCalls::Minimax => minimax(&mut cursor, schemas, &mut calls),
        TextToolCalls::Kimi => kimi(&mut cursor, &mut calls),
        TextToolCalls::Mistral => mistral(&mut cursor, &mut calls),
        TextToolCalls::Llama => llama(&mut cursor, &mut calls),
        TextToolCalls::Harmony => harmony(&mut cursor, &mut calls),
        TextToolCalls::Deepseek => deepseek(&mut cursor, schemas, &mut calls),
    }?;
    cursor.eat_any(match syntax {
        TextToolCalls::Hermes | TextToolCalls::QwenXml | TextToolCalls::Kimi => &["<|im_end|>"],
        TextToolCalls::Glm => &["<|observation|>", "<|user|>", "<|endoftext|>"],
        TextToolCalls::Minimax => &["[e~["],
        TextToolCalls::Mistral => &["</s>"],
        TextToolCalls::Llama => &["<|eom_id|>", "<|eot_id|>"],
        _ => &[],
    });
    cursor.skip_blank();
    // Reasoning says enough as well: an answer in Harmony without a call.
    let is_call = |piece: &Piece| matches!(piece, Piece::Call { .. } | Piece::Thinking(..));
    let is_known = |piece: &Piece| match piece {
        Piece::Call { name, .. } => schemas(name).is_some(),
        _ => true,
    };
    (cursor.rest.is_empty() && calls.iter().any(is_call) && calls.iter().all(is_known))
        .then_some(calls)
}

/// `<tool_call>{"name": …, "arguments": …}</tool_call>`.
fn hermes(cursor: &mut Cursor<'_>, calls: &mut Vec<Piece>) -> Option<()> {
    while cursor.eat("<tool_call>") {
        calls.push(json_call(cursor.object()?)?);
        cursor.expect("</tool_call>")?;
    }
    Some(())
}

/// `<tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>`.
fn qwen(cursor: &mut Cursor<'_>, schemas: Schemas<'_>, calls: &mut Vec<Piece>) -> Option<()> {
    loop {
        let wrapped = cursor.eat("<tool_call>");
        if !cursor.eat("<function=") {
            if wrapped {
                return None;
            }
            break;
        }
        let name = cursor.until(">")?.trim();
        let schema = schemas(name)?;
        let input = cursor.parameters("<parameter=", ">", schema, Cursor::own_lines)?;
        cursor.expect("</function>")?;
        // Some servers cut the tag before it off.
        if !cursor.eat("</tool_call>") && wrapped {
            return None;
        }
        calls.push(call(None, name, input));
    }
    Some(())
}

/// `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>`.
fn glm(cursor: &mut Cursor<'_>, schemas: Schemas<'_>, calls: &mut Vec<Piece>) -> Option<()> {
    while cursor.eat("<tool_call>") {
        let end = cursor.rest.find(['<', '\n'])?;
        let name = cursor.take(end).trim();
        let schema = schemas(name)?;
        let mut input = Object::default();
        while cursor.eat("<arg_key>") {
            let key = cursor.value("<", "</arg_key>")?.trim();
            cursor.rest = cursor.rest.trim_start().strip_prefix("<arg_value>")?;
            input.member(key, cursor.value("<arg_key>", "</arg_value>")?, schema);
        }
        cursor.expect("</tool_call>")?;
        calls.push(call(None, name, input.end()));
    }
    Some(())
}

/// `<minimax:tool_call><invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke></minimax:tool_call>`.
fn minimax(cursor: &mut Cursor<'_>, schemas: Schemas<'_>, calls: &mut Vec<Piece>) -> Option<()> {
    while cursor.eat("<minimax:tool_call>") {
        while cursor.eat("<invoke name=\"") {
            let name = cursor.until("\">")?;
            let input =
                cursor.parameters("<parameter name=\"", "\">", schemas(name)?, |cursor| {
                    cursor.value("<parameter name=\"", "</parameter>")
                })?;
            cursor.expect("</invoke>")?;
            calls.push(call(None, name, input));
        }
        cursor.expect("</minimax:tool_call>")?;
    }
    Some(())
}

/// `<|tool_call_begin|>functions.NAME:N<|tool_call_argument_begin|>{…}<|tool_call_end|>`, in a section.
fn kimi(cursor: &mut Cursor<'_>, calls: &mut Vec<Piece>) -> Option<()> {
    // vLLM takes either.
    let begin = ["<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"];
    while cursor.eat_any(&begin) {
        while cursor.eat("<|tool_call_begin|>") {
            let id = cursor.until("<|tool_call_argument_begin|>")?.trim();
            let name = id.strip_prefix("functions.").unwrap_or(id);
            let name = name.rsplit_once(':').map_or(name, |(name, _)| name);
            let input = cursor.object()?.to_owned();
            cursor.expect("<|tool_call_end|>")?;
            calls.push(call(Some(id.to_owned()), name, input));
        }
        if !cursor.eat_any(&["<|tool_calls_section_end|>", "<|tool_call_section_end|>"]) {
            return None;
        }
    }
    Some(())
}

/// `[TOOL_CALLS] [{"name": …, "arguments": …}]` or `[TOOL_CALLS]NAME[ARGS]{…}`.
fn mistral(cursor: &mut Cursor<'_>, calls: &mut Vec<Piece>) -> Option<()> {
    while cursor.eat("[TOOL_CALLS]") {
        if cursor.eat("[") {
            loop {
                calls.push(json_call(cursor.object()?)?);
                if !cursor.eat(",") {
                    break;
                }
            }
            cursor.expect("]")?;
        } else {
            let end = cursor.rest.find(['[', '{'])?;
            let name = cursor.take(end).trim();
            let id = if cursor.eat("[CALL_ID]") {
                let end = cursor.rest.find('[')?;
                Some(cursor.take(end).trim().to_owned())
            } else {
                None
            };
            cursor.eat("[ARGS]");
            let input = cursor.object()?.to_owned();
            calls.push(call(id, name, input));
        }
    }
    Some(())
}

/// `{"type": "function", "name": …, "parameters": …}`.
fn llama(cursor: &mut Cursor<'_>, calls: &mut Vec<Piece>) -> Option<()> {
    cursor.eat("<|python_tag|>");
    loop {
        calls.push(json_call(cursor.object()?)?);
        cursor.eat(";");
        if !cursor.rest.starts_with('{') {
            break;
        }
    }
    Some(())
}

/// `<|channel|>commentary to=functions.NAME …<|message|>{…}<|call|>`.
fn harmony(cursor: &mut Cursor<'_>, calls: &mut Vec<Piece>) -> Option<()> {
    while !cursor.rest.is_empty() {
        let head = cursor.until("<|message|>")?;
        let Some((_, name)) = words::split_once(head, "to=functions.") else {
            // What the model says before it calls.
            let channel = words::split_once(head, "<|channel|>")?.1.trim();
            let text = match cursor.until("<|end|>") {
                // The token that ends an answer is a stop token, too.
                None if channel == "final" => {
                    let text = std::mem::take(&mut cursor.rest);
                    text.strip_suffix("<|return|>").unwrap_or(text)
                }
                text => text?,
            };
            calls.push(match channel {
                "analysis" => Piece::Thinking(Field::ReasoningContent, text.to_owned()),
                "commentary" | "final" => Piece::Text(text.to_owned()),
                _ => return None,
            });
            continue;
        };
        let end = name.find([' ', '<', '\n']).unwrap_or(name.len());
        let name = name.get(..end)?;
        let input = cursor.object()?.to_owned();
        // The token that ends a call ends the answer, so servers take it for a stop token.
        if !cursor.eat("<|call|>") && !cursor.rest.is_empty() {
            return None;
        }
        calls.push(call(None, name, input));
    }
    Some(())
}

/// `<｜DSML｜invoke name="NAME"><｜DSML｜parameter name="KEY" string="true">VALUE</｜DSML｜parameter></｜DSML｜invoke>`;
/// to V3.1 `<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`.
fn deepseek(cursor: &mut Cursor<'_>, schemas: Schemas<'_>, calls: &mut Vec<Piece>) -> Option<()> {
    while !cursor.rest.is_empty() && !cursor.eat("<｜end▁of▁sentence｜>") {
        if cursor.eat("<｜tool▁calls▁begin｜>") {
            while cursor.eat("<｜tool▁call▁begin｜>") {
                calls.push(cursor.separated_call()?);
            }
            cursor.expect("<｜tool▁calls▁end｜>")?;
            continue;
        }
        // The name of the section changed with V4; some servers cut it off.
        let end = if cursor.eat("<｜DSML｜tool_calls>") {
            "</｜DSML｜tool_calls>"
        } else if cursor.eat("<｜DSML｜function_calls>") {
            "</｜DSML｜function_calls>"
        } else {
            ""
        };
        let before = calls.len();
        while cursor.eat("<｜DSML｜invoke name=\"") {
            calls.push(cursor.marked_call(schemas)?);
        }
        cursor.expect(end)?;
        if calls.len() == before {
            return None;
        }
    }
    Some(())
}

fn call(id: Option<String>, name: &str, input: String) -> Piece {
    Piece::Call { id: id.filter(|id| !id.is_empty()), name: name.to_owned(), input }
}

/// Reads an object with a name and an input.
fn json_call(object: &str) -> Option<Piece> {
    let (mut name, mut id, mut input) = (None, None, "{}".to_owned());
    let mut reader = Reader::of(object);
    reader.begin_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        match key.raw() {
            "name" => name = Some(reader.string().ok()?.decode().into_owned()),
            "id" => id = reader.string().ok().map(|id| id.decode().into_owned()),
            "arguments" | "parameters" => match reader.kind().ok()? {
                Kind::Object => input = reader.skip().ok()?.to_owned(),
                Kind::Null => drop(reader.skip().ok()?),
                _ => {
                    let text = reader.string().ok()?.decode();
                    input = Cursor { rest: &text }.object()?.to_owned();
                }
            },
            _ => drop(reader.skip().ok()?),
        }
    }
    Some(call(id, &name?, input))
}

/// What is left to read. White space between tokens means nothing.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn skip_blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, token: &str) -> bool {
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

    fn eat_any(&mut self, tokens: &[&str]) -> bool {
        tokens.iter().any(|token| self.eat(token))
    }

    fn expect(&mut self, token: &str) -> Option<()> {
        self.eat(token).then_some(())
    }

    /// The text up to `end`, exactly as it is.
    fn until(&mut self, end: &str) -> Option<&'a str> {
        let (text, rest) = words::split_once(self.rest, end)?;
        self.rest = rest;
        Some(text)
    }

    /// The text up to `end`, where `open` is not in it: then the end of a value is missing, and it would
    /// swallow the next one.
    fn value(&mut self, open: &str, end: &str) -> Option<&'a str> {
        self.until(end).filter(|text| !words::has(text, open))
    }

    /// A value of Qwen's, which stands in lines of its own: a line break on each side is layout. Models
    /// leave its end out, and vLLM ends it at the next tag.
    fn own_lines(&mut self) -> Option<&'a str> {
        let text = self.rest;
        let (value, rest) = words::places(text, "<").find_map(|at| {
            let (value, rest) = text.split_at_checked(at)?;
            let next = || rest.starts_with("<parameter=") || rest.starts_with("</function>");
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

    fn take(&mut self, bytes: usize) -> &'a str {
        let (text, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        text
    }

    fn object(&mut self) -> Option<&'a str> {
        self.skip_blank();
        let mut reader = Reader::new(self.rest, 127);
        if reader.kind().ok()? != Kind::Object {
            return None;
        }
        let object = reader.skip().ok()?;
        self.rest = self.rest.get(object.len()..)?;
        self.skip_blank();
        Some(object)
    }

    /// A DeepSeek call to V3.1: its name before its input, which older models put into a fence.
    fn separated_call(&mut self) -> Option<Piece> {
        let mut name = self.until("<｜tool▁sep｜>")?.trim();
        let is_fenced = name == "function" && !self.rest.trim_start().starts_with('{');
        if is_fenced {
            name = self.until("\n")?.trim();
            self.expect("```json")?;
        }
        let input = self.object()?.to_owned();
        if is_fenced {
            self.expect("```")?;
        }
        self.expect("<｜tool▁call▁end｜>")?;
        Some(call(None, name, input))
    }

    /// A DeepSeek call since V3.2, after the start of its name. Each member says whether it is a
    /// text.
    fn marked_call(&mut self, schemas: Schemas<'_>) -> Option<Piece> {
        let name = self.until("\"")?;
        let schema = schemas(name)?;
        let mut input = Object::default();
        if !self.eat("/>") {
            self.expect(">")?;
            while self.eat("<｜DSML｜parameter name=\"") {
                let key = self.until("\"")?;
                let is_text = match self.until(">")?.trim() {
                    "string=\"true\"" => true,
                    "string=\"false\"" | "" => false,
                    _ => return None,
                };
                let value = self.value("<｜DSML｜parameter ", "</｜DSML｜parameter>")?;
                if is_text {
                    input.text(key, value);
                } else {
                    input.member(key, value, schema);
                }
            }
            self.expect("</｜DSML｜invoke>")?;
        }
        Some(call(None, name, input.end()))
    }

    /// Members, each between tags.
    fn parameters(
        &mut self,
        open: &str,
        named: &str,
        schema: &str,
        value: fn(&mut Self) -> Option<&'a str>,
    ) -> Option<String> {
        let mut input = Object::default();
        self.skip_blank();
        while let Some(rest) = self.rest.strip_prefix(open) {
            self.rest = rest;
            let key = self.until(named)?.trim();
            input.member(key, value(self)?, schema);
            self.skip_blank();
        }
        Some(input.end())
    }
}

/// An input that is put together member by member.
#[derive(Default)]
struct Object(Vec<u8>);

impl Object {
    /// A member whose value was written as plain text. Whether `5` is a number or a text, only the schema
    /// knows; where it does not say, it is what it looks like.
    fn member(&mut self, key: &str, value: &str, schema: &str) {
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
    fn text(&mut self, key: &str, value: &str) {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        Writer::new(&mut self.0).key_text(key).text(value);
    }

    fn end(mut self) -> String {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        String::from_utf8(self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
