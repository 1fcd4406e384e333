//! Tool calls in the text of an answer that were cut off by the token limit.
//!
//! Servers that parse calls return the text of a whole answer unparsed if the last call has no end
//! (vLLM, SGLang, llama.cpp). In their streams, the beginning of that call is sent as a call. An
//! incomplete call cannot be run, so it is shown neither as a call nor as text.

use crate::answer::ReaderOutput;
use crate::json::{Reader, Str, escaped};
use crate::model::request_context::{NAME_BYTES_MAX, Tools};
use crate::text::words;

/// Maximum number of bytes from the start of a call within which its tool is named.
const HEAD_BYTES: usize = 1024;

/// Start and end marks of calls, in the syntaxes of models.
const MARKS: [(&str, &str); 18] = [
    ("<tool_call>", "</tool_call>"),
    ("<function=", "</function>"),
    ("<seed:tool_call>", "</seed:tool_call>"),
    ("<minimax:tool_call>", "</minimax:tool_call>"),
    ("<function_calls>", "</function_calls>"),
    ("<tool_calls>", "</tool_calls>"),
    ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    ("<|tool_call_begin|>", "<|tool_call_end|>"),
    ("<|tool_call>", "<tool_call|>"),
    ("<|tool_call_start|>", "<|tool_call_end|>"),
    ("<|python_start|>", "<|python_end|>"),
    ("<|python_tag|>", "<|eom_id|>"),
    ("[TOOL_CALLS]", "</s>"),
    ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
    ("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),
    ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
    ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
    ("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>"),
];

/// Texts that may occur between the start of a call and the tool's name.
const BEFORE_NAMES: [&str; 24] = [
    "<function=",
    "<invoke name=",
    "<｜DSML｜invoke name=",
    "]<]minimax[>[<invoke name=",
    "<|tool_call_begin|>",
    "<｜tool▁call▁begin｜>",
    "function<｜tool▁sep｜>",
    "functions.",
    "call:",
    "\"type\"",
    "\"function\"",
    "\"name\"",
    "'name'",
    "\"id\"",
    "{",
    "[",
    ":",
    ",",
    "\"",
    "'",
    " ",
    "\n",
    "\r",
    "\t",
];

/// Returns the text of an answer without the incomplete call at its end, escaped; `None` if there
/// is no such call.
pub(super) fn cut_from(text: Str<'_>, to: &mut ReaderOutput<'_>) -> Option<String> {
    let decoded = text.decode();
    let start = start(&decoded, &to.context.tools)?;
    to.warn("tool_call_cut_off");
    Some(escaped(decoded.get(..start)?.trim_end()))
}

/// Returns the position of the calls at the end of a text, if the last call has no end. Text that
/// only describes calls does not count: the markup must begin a line or be a control token, stand
/// outside of code, and name a tool of the request.
fn start(text: &str, tools: &Tools) -> Option<usize> {
    if tools.is_empty() {
        return None;
    }
    if is_bare(text.trim(), tools) {
        return Some(0);
    }
    let places = MARKS.iter().filter_map(|mark| Some((text.rfind(mark.0)?, mark)));
    let (mut at, (open, close)) = places.max_by_key(|(at, (open, _))| (*at, open.len()))?;
    let behind = text.get(at..)?.strip_prefix(open)?;
    if behind.contains(close) || !names_tool(behind, tools) {
        return None;
    }
    // Whole calls before the incomplete call are in the same text: no server has parsed them.
    while let Some(before) = call_before(text.get(..at)?) {
        at = before;
    }
    let before = text.get(..at)?;
    let line = before.rsplit_once('\n').map_or(before, |(_, line)| line);
    let is_token = |(open, _): &&(&str, &str)| open.contains(['|', '｜', ']']);
    let marked = text.get(at..)?;
    let stands = line.trim().is_empty()
        || behind.starts_with(['\n', '\r'])
        || MARKS.iter().filter(is_token).any(|(open, _)| marked.starts_with(open));
    (stands && !is_in_code(before, line)).then_some(at)
}

/// Returns the position of the markup at the end of a text: that of a whole call, or the start tag
/// of a section of calls.
fn call_before(text: &str) -> Option<usize> {
    let text = text.trim_end();
    let opened = MARKS.iter().filter_map(|(open, _)| text.strip_suffix(open));
    if let Some(before) = opened.min_by_key(|before| before.len()) {
        return Some(before.len());
    }
    let closed = MARKS.iter().filter(|(_, close)| text.ends_with(close));
    let opener = |(open, close): &(&str, &str)| {
        // The search for a start mark ends at the preceding call's end mark; otherwise the whole
        // text would be searched again for each call.
        let inner = text.strip_suffix(close)?;
        let from = inner.rfind(close).map_or(0, |at| at.saturating_add(close.len()));
        Some(from.saturating_add(inner.get(from..)?.rfind(open)?))
    };
    closed.filter_map(opener).max()
}

/// Returns true if the text behind the start of a call names a tool, perhaps incompletely.
fn names_tool(behind: &str, tools: &Tools) -> bool {
    let mut rest = head_of(behind);
    while let Some(next) = BEFORE_NAMES.iter().find_map(|word| rest.strip_prefix(word)) {
        rest = next;
    }
    let is_of_name = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    let name = rest.trim_start_matches(is_of_name);
    let name = rest.strip_suffix(name).unwrap_or(rest);
    if name.len() < rest.len() && !name.is_empty() {
        return tools.meant_by(name).is_some();
    }
    // The text ends within the tool's name, or before the name.
    let begins = |word: &str| word.starts_with(rest);
    rest.len() < NAME_BYTES_MAX
        && (tools.iter().any(|tool| begins(&tool.outgoing))
            || BEFORE_NAMES
                .iter()
                .any(|word| begins(word) || begins(words::trim_start(word, b"\"'"))))
}

/// Returns true if a text is one call without markup (Llama's JSON, or Python) that has no end.
fn is_bare(text: &str, tools: &Tools) -> bool {
    if let Some(list) = text.strip_prefix('[')
        && let Some((name, _)) = list.split_once('(')
    {
        return !text.ends_with(']') && tools.iter().any(|tool| tool.outgoing == name.trim());
    }
    let head = head_of(text);
    let is_call = |key: &str| words::find(head, key).is_some();
    text.starts_with('{')
        && is_call("\"name\"")
        && (is_call("\"parameters\"") || is_call("\"arguments\""))
        && names_tool(text, tools)
        && Reader::of(text).skip().is_err()
}

/// Returns the first [`HEAD_BYTES`] bytes of a text, in which a call names its tool.
fn head_of(text: &str) -> &str {
    (0..=HEAD_BYTES.min(text.len())).rev().find_map(|end| text.get(..end)).unwrap_or_default()
}

/// Returns true if the text after `before` is code: a code fence is open, or a code span in this
/// line.
fn is_in_code(before: &str, line: &str) -> bool {
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    before.lines().filter(is_fence).count() % 2 == 1 || line.matches('`').count() % 2 == 1
}

#[cfg(test)]
mod tests;
