//! Parsers for call syntaxes that write the input as JSON.

use std::borrow::Cow;

use super::Piece;
use super::cursor::{Cursor, Extent, FindTool};
use crate::json::{self, Reader};
use crate::json_schema::input::property;

/// Reads Hermes' form: `<tool_call>{"name": …, "arguments": …}</tool_call>`.
pub(super) fn hermes(cursor: &mut Cursor<'_>, tools: FindTool<'_>) -> Option<Piece> {
    let call = named(&cursor.object()?, tools, true)?;
    cursor.end("<tool_call>", "</tool_call>")?;
    Some(call)
}

/// Reads Kimi's form:
/// `<|tool_call_begin|>functions.NAME:N<|tool_call_argument_begin|>{…}<|tool_call_end|>`, in a
/// section.
pub(super) fn kimi(cursor: &mut Cursor<'_>, tools: FindTool<'_>) -> Option<Piece> {
    let id = cursor.until("<|tool_call_argument_begin|>")?.trim();
    let input = match cursor.rest.trim_start().starts_with("<|tool_call_end|>") {
        true => "{}".to_owned(),
        false => cursor.object()?.into_owned(),
    };
    // The end tag may be missing, because the object has an end of its own.
    cursor.end("<|tool_call", "<|tool_call_end|>")?;
    Some(Piece::call(Some(id.to_owned()), tools(id)?, input))
}

/// Reads DeepSeek's form up to V3.1: `<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`.
/// Older models put the input into a code fence.
pub(super) fn deepseek(cursor: &mut Cursor<'_>, tools: FindTool<'_>) -> Option<Piece> {
    let mut name = cursor.until("<｜tool▁sep｜>")?.trim();
    let is_fenced = name == "function" && !cursor.rest.trim_start().starts_with('{');
    if is_fenced {
        name = cursor.until("\n")?.trim();
        cursor.expect("```json")?;
    }
    let input = cursor.object()?.into_owned();
    if is_fenced {
        cursor.expect("```")?;
    }
    cursor.expect("<｜tool▁call▁end｜>")?;
    Some(Piece::call(None, tools(name)?, input))
}

/// Reads Mistral's form: `[TOOL_CALLS] [{"name": …, "arguments": …}]` or
/// `[TOOL_CALLS]NAME[ARGS]{…}`.
pub(super) fn mistral(
    cursor: &mut Cursor<'_>,
    tools: FindTool<'_>,
    calls: &mut Vec<Piece>,
) -> Option<()> {
    while cursor.eat("[TOOL_CALLS]") {
        if cursor.eat("[") {
            loop {
                calls.push(named(&cursor.object()?, tools, true)?);
                if !cursor.eat(",") {
                    break;
                }
            }
            cursor.end("[TOOL_CALLS]", "]")?;
        } else if cursor.rest.starts_with('{') {
            calls.push(named(&cursor.object()?, tools, true)?);
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
            let input = cursor.object()?.into_owned();
            calls.push(Piece::call(id, tools(name)?, input));
        }
        cursor.eat("[/TOOL_CALLS]");
    }
    Some(())
}

/// Reads Llama's form: `{"type": "function", "name": …, "parameters": …}`. Several calls are
/// separated by semicolons or form a list.
pub(super) fn llama(
    cursor: &mut Cursor<'_>,
    tools: FindTool<'_>,
    calls: &mut Vec<Piece>,
) -> Option<()> {
    let is_bare = !cursor.eat("<|python_tag|>");
    let is_list = cursor.eat("[");
    loop {
        calls.push(named(&cursor.object()?, tools, !is_bare)?);
        cursor.eat(if is_list { "," } else { ";" });
        if !cursor.rest.starts_with('{') {
            break;
        }
    }
    (!is_list || cursor.eat("]")).then_some(())
}

/// Reads an object with a name and an input as a call. An object with another member is refused: it
/// is no call, or this member is a part of the input that would be lost.
///
/// JSON without a tag is often an ordinary answer that contains a name. Such an object counts as a
/// call only if it has an input that is no schema, since a schema would make the object the
/// definition of a tool.
fn named(object: &str, tools: FindTool<'_>, is_tagged: bool) -> Option<Piece> {
    let (mut tool, mut id, mut input) = (None, None, None);
    let mut reader = Reader::of(object);
    reader.begin_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        let value = reader.skip().ok()?;
        let text = || Some(json::string(value)?.decode());
        match key.raw() {
            "name" if tool.is_none() => tool = Some(tools(&text()?)?),
            "id" => id = text().map(Cow::into_owned),
            "type" | "index" => {}
            "arguments" | "parameters" | "args" | "input" if input.is_none() => {
                input = Some(match (value, text()) {
                    ("null", _) => Cow::Borrowed("{}"),
                    (_, Some(text)) if text.trim().is_empty() => Cow::Borrowed("{}"),
                    (_, Some(text)) => Cow::Owned(whole_object(&text)?),
                    _ => Cow::Owned(whole_object(value)?),
                });
            }
            _ => return None,
        }
    }
    let tool = tool?;
    let schema = tool.schema.as_deref().unwrap_or_default();
    let is_schema = |input: &str| {
        json::member(input, "properties").is_some()
            && json::member(input, "type").is_some_and(|word| word.starts_with('"'))
            && ["properties", "type"].iter().any(|it| property(schema, it).is_none())
    };
    if !is_tagged && input.as_deref().is_none_or(is_schema) {
        return None;
    }
    Some(Piece::call(id, tool, input.unwrap_or(Cow::Borrowed("{}")).into_owned()))
}

/// Returns a text as a JSON object, if the text contains nothing else.
fn whole_object(text: &str) -> Option<String> {
    let mut cursor = Cursor { rest: text, extent: Extent::default(), is_marked: false };
    let object = cursor.object()?.into_owned();
    cursor.rest.is_empty().then_some(object)
}
