//! The syntaxes, a function for each form.
//!
//! All of them read several calls, and give nothing unless the whole text is calls, perhaps with the tokens that
//! ended it, and LFM2's remark. Harmony also has what the model thinks and says, with calls or without.

mod cursor;
mod gemma;
mod harmony;
mod kimi_k3;
mod literal;
mod minimax_m3;
mod pythonic;
mod tagged;

use std::borrow::Cow;

use crate::dialect::profile::TextToolCalls;
use crate::json::{self, Reader};
use crate::json_schema::input::property;
use crate::model::request_context::Tool;

use crate::dialect::text_calls::Piece;
use cursor::Cursor;

/// The tool that a model means by a name.
type Tools<'t> = &'t dyn Fn(&str) -> Option<&'t Tool>;

/// Which part of the answer a text is.
#[derive(Clone, Copy, Default)]
pub(super) struct Extent {
    /// Nothing came before it.
    pub(super) is_all: bool,
    /// The model did not end it.
    pub(super) is_cut_off: bool,
}

/// Reads `text` as calls.
pub(super) fn read(
    syntax: TextToolCalls,
    text: &str,
    extent: Extent,
    tools: Tools<'_>,
) -> Option<Vec<Piece>> {
    // In a text of Harmony they would be cut off.
    let text = if syntax == TextToolCalls::Harmony { text } else { without_stop_tokens(text) };
    let mut cursor = Cursor { rest: text, extent, is_marked: false };
    let mut calls = Vec::new();
    match syntax {
        TextToolCalls::Off => None,
        // What looks like the end of a value can be an example within it, as nothing there is quoted.
        TextToolCalls::QwenXml if extent.is_cut_off => None,
        TextToolCalls::Hermes => hermes(&mut cursor, tools, &mut calls),
        TextToolCalls::QwenXml => tagged::qwen(&mut cursor, tools, &mut calls),
        TextToolCalls::Glm => tagged::glm(&mut cursor, tools, &mut calls),
        TextToolCalls::Minimax if text.starts_with(']') => {
            minimax_m3::minimax_m3(&mut cursor, tools, &mut calls)
        }
        TextToolCalls::Minimax => tagged::claude(&mut cursor, tools, &mut calls),
        TextToolCalls::Kimi if text.starts_with("<|open|>") => {
            kimi_k3::kimi_k3(&mut cursor, tools, &mut calls)
        }
        TextToolCalls::Kimi => kimi(&mut cursor, tools, &mut calls),
        TextToolCalls::Mistral => mistral(&mut cursor, tools, &mut calls),
        TextToolCalls::Llama => llama(&mut cursor, tools, &mut calls),
        TextToolCalls::Harmony => harmony::harmony(&mut cursor, tools, &mut calls),
        TextToolCalls::Deepseek => deepseek(&mut cursor, tools, &mut calls),
        TextToolCalls::Gemma => gemma::gemma(&mut cursor, tools, &mut calls),
        TextToolCalls::Pythonic => pythonic::pythonic(&mut cursor, tools, &mut calls),
    }?;
    cursor.skip_blank();
    let says = !calls.is_empty() || syntax == TextToolCalls::Harmony;
    (cursor.rest.is_empty() && says).then_some(calls)
}

/// The tokens that end an answer, or begin the next one.
const STOP_TOKENS: [&str; 17] = [
    "<|im_end|>",
    "<|endoftext|>",
    "<|observation|>",
    "<|user|>",
    "[e~[",
    "</s>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|start_header_id|>assistant<|end_header_id|>",
    "<｜end▁of▁sentence｜>",
    "<|eom|>",
    "<|eot|>",
    "<|close|>message<|sep|>",
    "<|end_of_msg|>",
    "<|tool_response>",
    "<turn|>",
    "<eos>",
];

fn without_stop_tokens(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some(rest) = STOP_TOKENS.iter().find_map(|token| text.strip_suffix(token)) {
        text = rest.trim_end();
    }
    text
}

/// `<tool_call>{"name": …, "arguments": …}</tool_call>`.
fn hermes(cursor: &mut Cursor<'_>, tools: Tools<'_>, calls: &mut Vec<Piece>) -> Option<()> {
    while cursor.eat("<tool_call>") {
        calls.push(json_call(&cursor.object()?, tools, true)?);
        cursor.close(&[("<tool_call>", "</tool_call>")], Some(0))?;
    }
    Some(())
}

/// Calls that begin with `start`, in sections (see [`Cursor::close`]), of which none is empty.
fn sections(
    cursor: &mut Cursor<'_>,
    around: &[(&str, &str)],
    start: &str,
    calls: &mut Vec<Piece>,
    one: &dyn Fn(&mut Cursor<'_>) -> Option<Piece>,
) -> Option<()> {
    loop {
        let section = around.iter().position(|(start, _)| cursor.eat(start));
        if !cursor.eat(start) {
            return section.is_none().then_some(());
        }
        loop {
            calls.push(one(cursor)?);
            if !cursor.eat(start) {
                break;
            }
        }
        cursor.close(around, section)?;
    }
}

/// `<|tool_call_begin|>functions.NAME:N<|tool_call_argument_begin|>{…}<|tool_call_end|>`, in a section.
fn kimi(cursor: &mut Cursor<'_>, tools: Tools<'_>, calls: &mut Vec<Piece>) -> Option<()> {
    // vLLM takes either.
    let around = [
        ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        ("<|tool_call_section_begin|>", "<|tool_call_section_end|>"),
    ];
    sections(cursor, &around, "<|tool_call_begin|>", calls, &|cursor| {
        let id = cursor.until("<|tool_call_argument_begin|>")?.trim();
        let input = match cursor.rest.trim_start().starts_with("<|tool_call_end|>") {
            true => "{}".to_owned(),
            false => cursor.object()?.into_owned(),
        };
        // The object has an end of its own.
        cursor.close(&[("<|tool_call", "<|tool_call_end|>")], Some(0))?;
        Some(call(Some(id.to_owned()), tools(id)?, input))
    })
}

/// `[TOOL_CALLS] [{"name": …, "arguments": …}]` or `[TOOL_CALLS]NAME[ARGS]{…}`.
fn mistral(cursor: &mut Cursor<'_>, tools: Tools<'_>, calls: &mut Vec<Piece>) -> Option<()> {
    while cursor.eat("[TOOL_CALLS]") {
        if cursor.eat("[") {
            loop {
                calls.push(json_call(&cursor.object()?, tools, true)?);
                if !cursor.eat(",") {
                    break;
                }
            }
            cursor.close(&[("[TOOL_CALLS]", "]")], Some(0))?;
        } else if cursor.rest.starts_with('{') {
            calls.push(json_call(&cursor.object()?, tools, true)?);
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
            calls.push(call(id, tools(name)?, input));
        }
        cursor.eat("[/TOOL_CALLS]");
    }
    Some(())
}

/// `{"type": "function", "name": …, "parameters": …}`, several behind semicolons or in a list.
fn llama(cursor: &mut Cursor<'_>, tools: Tools<'_>, calls: &mut Vec<Piece>) -> Option<()> {
    let is_bare = !cursor.eat("<|python_tag|>");
    let is_list = cursor.eat("[");
    loop {
        calls.push(json_call(&cursor.object()?, tools, !is_bare)?);
        cursor.eat(if is_list { "," } else { ";" });
        if !cursor.rest.starts_with('{') {
            break;
        }
    }
    (!is_list || cursor.eat("]")).then_some(())
}

/// `<｜DSML｜invoke name="NAME">…`, or to V3.1 `<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`, where older
/// models put the input into a fence.
fn deepseek(cursor: &mut Cursor<'_>, tools: Tools<'_>, calls: &mut Vec<Piece>) -> Option<()> {
    if !cursor.rest.starts_with("<｜tool▁call") {
        cursor.is_marked = true;
        return tagged::claude(cursor, tools, calls);
    }
    let around = [("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")];
    sections(cursor, &around, "<｜tool▁call▁begin｜>", calls, &|cursor| {
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
        Some(call(None, tools(name)?, input))
    })
}

fn call(id: Option<String>, tool: &Tool, input: String) -> Piece {
    Piece::Call { id: id.filter(|id| !id.is_empty()), name: tool.outgoing.clone(), input }
}

fn schema(tool: &Tool) -> &str {
    tool.schema.as_deref().unwrap_or_default()
}

/// Reads an object with a name and an input. With any other member, it is another thing, or has an input that would
/// be lost.
///
/// JSON without a tag is as often an answer, with a name in it. It is a call if it has an input, and that is no
/// schema, which would be the definition of the tool.
fn json_call(object: &str, tools: Tools<'_>, is_tagged: bool) -> Option<Piece> {
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
    let schema = schema(tool);
    let is_schema = |input: &str| {
        json::member(input, "properties").is_some()
            && json::member(input, "type").is_some_and(|word| word.starts_with('"'))
            && ["properties", "type"].iter().any(|it| property(schema, it).is_none())
    };
    if !is_tagged && input.as_deref().is_none_or(is_schema) {
        return None;
    }
    Some(call(id, tool, input.unwrap_or(Cow::Borrowed("{}")).into_owned()))
}

/// A text that is an object of JSON, and nothing else.
fn whole_object(text: &str) -> Option<String> {
    let mut cursor = Cursor { rest: text, extent: Extent::default(), is_marked: false };
    let object = cursor.object()?.into_owned();
    cursor.rest.is_empty().then_some(object)
}

#[cfg(test)]
mod tests;
