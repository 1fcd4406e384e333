//! Decides if a tool call failed, by its result.
//!
//! | the result | failed |
//! |---|---|
//! | `is_error` | yes |
//! | begins as errors of tools do (`Error: …`, `<tool_use_error>`, a traceback) | yes |
//! | short, and begins with the name of an error with its package (`java.io.IOException: …`) or before its stack | yes |
//! | JSON that is an error: `[{"error": "…"}]` (n8n), `{"isError": true}`, `{"success": false}` | yes |
//! | empty, a short text that complains, or `{"detail": …}` (FastAPI), to an input without a required field | yes |
//! | anything else | no |
//!
//! A person who refuses a call resets all counts, whether or not the call counts as failed
//! (`person`).
//!
//! A record that contains an error is not a failure: `{"id": 5, "status": "failed", "log": "…"}`
//! may be the requested data. JSON counts as an error only if the whole value describes an error.
//!
//! The schema alone does not decide. If the input does not match the schema but the tool returned a
//! normal result, the input was good enough: many tools accept `"5"` for `5`, and `null` for an
//! optional member. So inputs are only checked in the rare case of a doubtful result, and only for
//! required members.

use crate::json::{Reader, ValueKind, members};
use crate::model::{Block, ToolResult};
use crate::text::words;

/// Maximum length of a JSON result that can count as an error, in bytes.
const JSON_BYTES_MAX: usize = 16 << 10;

/// Number of bytes at the start of a result that are searched for `COMPLAINTS`.
const START_BYTES_MAX: usize = 256;

/// Maximum length of a text that can count as a complaint about the input, in bytes.
const COMPLAINT_BYTES_MAX: usize = 1 << 10;

/// Beginnings of tool errors, in lower case: Claude Code, LangChain, MCP, Python, axios, Cline.
const STARTS: [&str; 22] = [
    "<tool_use_error>",
    "<error>",
    "error:",
    "error invoking",
    "error executing",
    "error calling",
    "error running",
    "error while",
    "error during",
    "error occurred",
    "error in tool",
    "an error occurred",
    "there was an error",
    "inputvalidationerror",
    "validation error",
    "tool error",
    "mcp error",
    "traceback (most recent call last)",
    "exception:",
    "uncaught ",
    "request failed with status code",
    "the tool execution failed",
];

/// Keywords in complaints about an input, in English, and in Chinese, which many servers use.
const COMPLAINTS: [&str; 24] = [
    "error",
    "invalid",
    "missing",
    "required",
    "requires",
    "fail",
    "must ",
    "expected",
    "specif",
    "provid",
    "undefined",
    "cannot",
    "can't",
    "unable",
    "not ",
    "no ",
    "need",
    "usage",
    "错误",
    "缺少",
    "必填",
    "不能为空",
    "无效",
    "失败",
];

/// Names of members that a JSON error may have. Any other member with a value makes the object a
/// normal result.
const OF_ERRORS: [&str; 35] = [
    "error",
    "errors",
    "iserror",
    "is_error",
    "success",
    "ok",
    "status",
    "statuscode",
    "status_code",
    "type",
    "code",
    "errorcode",
    "error_code",
    "name",
    "title",
    "reason",
    "cause",
    "message",
    "messages",
    "msg",
    "detail",
    "details",
    "description",
    "content",
    "stack",
    "trace",
    "hint",
    "path",
    "timestamp",
    "request_id",
    "requestid",
    "traceid",
    "correlationid",
    "error_description",
    "error_uri",
];

/// Returns true if the call failed. `is_complete` returns true if its input has all required
/// members, and is only called if the verdict depends on the input.
pub(crate) fn is_failure(result: &ToolResult<'_>, is_complete: impl FnOnce() -> bool) -> bool {
    if result.is_error {
        return true;
    }
    let texts = |block: &Block<'_>| matches!(block, Block::Text(_));
    if !result.content.iter().all(texts) {
        return false;
    }
    let Some(Block::Text(first)) = result.content.first() else { return !is_complete() };
    let raw = first.text.raw();
    if raw.len() > JSON_BYTES_MAX {
        return begins_as_error(raw);
    }
    let first_byte = raw.trim_start().bytes().next();
    // A long text that is not JSON is only checked at its beginning, without decoding.
    if raw.len() > COMPLAINT_BYTES_MAX && !matches!(first_byte, Some(b'{' | b'[' | b'"' | b'\\')) {
        return begins_as_error(raw);
    }
    let text = first.text.decode();
    let text = without_head(text.trim());
    if begins_as_error(text) || is_error_json(text, 1) {
        return true;
    }
    result.content.len() == 1 && (complains(text) || is_detail(text)) && !is_complete()
}

/// Returns the text of a result without the header line of Cline and Roo Code: `[read_file for 'a']
/// Result:`.
fn without_head(text: &str) -> &str {
    if !text.starts_with('[') {
        return text;
    }
    let line = words::before(text, b"\n");
    match line.trim_ascii_end().ends_with("] Result:") {
        true => text.get(line.len()..).unwrap_or_default().trim_start(),
        false => text,
    }
}

fn begins_as_error(text: &str) -> bool {
    let text = text.trim_start();
    STARTS.iter().any(|start| words::begins(text, start)) || begins_with_name_of_error(text)
}

/// Returns true if a text begins with the qualified name of an exception (Python, Java), or with
/// `TypeError: …` before a stack trace. Other names could be requested data, and a longer text
/// could be a log file.
fn begins_with_name_of_error(text: &str) -> bool {
    if text.len() > COMPLAINT_BYTES_MAX {
        return false;
    }
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_');
    let length = text.bytes().take_while(is_of_name).count();
    let (name, behind) = text.as_bytes().split_at_checked(length).unwrap_or_default();
    let last = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    behind.starts_with(b":")
        && (name.ends_with(b"Error") || name.ends_with(b"Exception"))
        && last.first().is_some_and(u8::is_ascii_uppercase)
        && (last.len() < name.len() || words::has_any(text, &["\n    at ", "\n\tat "]))
}

fn complains(text: &str) -> bool {
    if text.len() > COMPLAINT_BYTES_MAX {
        return false;
    }
    // Any other JSON is a normal result, whatever keywords are in it.
    let is_json = text.starts_with(['{', '[']);
    // If the cut would split a character, the whole text is searched: it is short.
    let start = text.get(..START_BYTES_MAX).unwrap_or(text).to_ascii_lowercase();
    matches!(start.as_str(), "" | "null" | "none" | "{}" | "[]" | "\"\"")
        || !is_json && words::has_any(&start, &COMPLAINTS)
}

/// Returns true if `text` is FastAPI's object for an invalid input, `{"detail": …}` with no other
/// member.
fn is_detail(text: &str) -> bool {
    let mut members = members(text);
    let is_said = |value: &str| value.trim_start().starts_with(['"', '[']);
    members.next().is_some_and(|(key, value)| key == "detail" && is_said(value))
        && members.next().is_none()
}

/// Returns true if `text` is JSON that only describes an error: an object, or an array of error
/// objects. `nested` is the number of times that the JSON may be encoded as a string.
fn is_error_json(text: &str, nested: u32) -> bool {
    let mut reader = Reader::of(text);
    match reader.kind() {
        Ok(ValueKind::Object) => is_error_object(&mut reader) == Some(true),
        Ok(ValueKind::Array) => {
            let mut any = false;
            let mut all = || {
                reader.begin_array().ok()?;
                while reader.next_element().ok()? {
                    any = true;
                    if reader.kind().ok()? != ValueKind::Object || !is_error_object(&mut reader)? {
                        return None;
                    }
                }
                Some(())
            };
            all().is_some() && any
        }
        Ok(ValueKind::String) if nested > 0 => {
            let inner = reader.string().map(|inner| inner.decode().into_owned());
            inner.is_ok_and(|inner| {
                let inner = inner.trim();
                begins_as_error(inner) || is_error_json(inner, nested.saturating_sub(1))
            })
        }
        _ => false,
    }
}

/// Returns true if the object describes an error and has no other data. Returns `None` if the value
/// is not an object.
fn is_error_object(reader: &mut Reader<'_>) -> Option<bool> {
    let (mut error, mut data) = (false, false);
    reader.begin_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        let value = reader.skip().ok()?.trim_ascii();
        let key = key.decode().to_ascii_lowercase();
        let says_so = match key.as_str() {
            // A number in `error` is a count or a code, and no error.
            "error" | "errors" => !says_nothing(value) && Reader::new(value, 1).number().is_err(),
            "iserror" | "is_error" => value == "true",
            "success" | "ok" => value == "false",
            "status" => matches!(value, "\"error\"" | "\"failed\"" | "\"failure\""),
            // Notion and vLLM send `"object": "error"`.
            "object" => value == "\"error\"",
            _ => false,
        };
        error |= says_so;
        data |= !says_so && !OF_ERRORS.contains(&key.as_str()) && !says_nothing(value);
    }
    Some(error && !data)
}

/// Returns true if a value means nothing, such as `null`, `false`, `0`, `"none"` or an empty list.
fn says_nothing(value: &str) -> bool {
    let mut reader = Reader::of(value);
    match reader.kind() {
        Ok(ValueKind::Object) => {
            let mut all = || {
                reader.begin_object().ok()?;
                while reader.next_key().ok()?.is_some() {
                    says_nothing(reader.skip().ok()?).then_some(())?;
                }
                Some(())
            };
            all().is_some()
        }
        Ok(ValueKind::Bool) => value == "false",
        Ok(ValueKind::Number) => value == "0",
        Ok(ValueKind::Array) => {
            value.bytes().all(|byte| matches!(byte, b'[' | b']' | b' ' | b'\n'))
        }
        Ok(ValueKind::String) => {
            let word = value.to_ascii_lowercase();
            matches!(word.as_str(), "\"\"" | "\"none\"" | "\"null\"" | "\"no\"" | "\"ok\"")
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests;
