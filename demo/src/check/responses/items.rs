//! Checks of the items in `input`: their fields, and their order.

use serde_json::Value;

use super::super::refusal::*;
use super::super::shape::*;
use super::super::{Checked, Refusal, image_at};
use crate::plan::NAME_LENGTH;
use crate::sealed::Sealed;

/// Maximum number of characters of an `id` and a `call_id`.
const ID_LENGTH_MAX: usize = 64;

/// Types of items, each with the prefix of its `id`, and its fields besides `id`, `status` and
/// `type`.
const KINDS: [(&str, &str, &[&str]); 7] = [
    ("message", "msg", &["content", "phase", "role"]),
    ("reasoning", "rs", &["content", "encrypted_content", "summary"]),
    ("function_call", "fc", &["arguments", "async", "call_id", "caller", "name", "namespace"]),
    ("function_call_output", "fc", &["call_id", "name", "namespace", "output"]),
    ("custom_tool_call", "ctc", &["call_id", "input", "name", "namespace"]),
    ("custom_tool_call_output", "ctc", &["call_id", "name", "namespace", "output"]),
    ("web_search_call", "ws", &["action"]),
];

/// Input item whose fields were checked.
struct CheckedItem<'a> {
    kind: &'static str,
    id: Option<&'a str>,
    call_id: Option<&'a str>,
    /// True if the assistant wrote the input item.
    is_answer: bool,
    fields: &'a Fields,
    path: String,
}

pub(super) fn items(input: &[Value], model: &str, id_length_max: usize) -> Checked {
    let longest = if id_length_max == 0 { ID_LENGTH_MAX } else { id_length_max };
    let mut items = Vec::new();
    for (index, item) in input.iter().enumerate() {
        items.push(self::item(item, format!("input[{index}]"), longest)?);
    }
    paired(&items)?;
    for (index, item) in items.iter().enumerate() {
        let behind = items.get(index.saturating_add(1)..).unwrap_or_default();
        match item.kind {
            "reasoning" => reasoning(item, behind.first(), behind, model)?,
            _ => led_to(item, items.get(..index).unwrap_or_default())?,
        }
    }
    Ok(())
}

fn item(item: &Value, path: String, longest: usize) -> Result<CheckedItem<'_>, Refusal> {
    let fields = object(item, &path)?;
    let kind = text(fields, &path, "type")?.unwrap_or("message");
    if kind == "item_reference" {
        return Err(not_found(needed(fields, &path, "id")?));
    }
    let Some((kind, prefix, members)) = KINDS.into_iter().find(|(known, ..)| *known == kind) else {
        let kinds = KINDS.map(|(known, ..)| known);
        return Err(one_of(kind, &member(&path, "type"), &kinds)
            .err()
            .unwrap_or_else(|| missing(&member(&path, "type"))));
    };
    only(fields, &path, &[&["id", "status", "type"][..], members].concat())?;
    word(fields, &path, "status", &["in_progress", "completed", "incomplete", "failed"])?;
    let id = text(fields, &path, "id")?;
    if let Some(id) = id {
        self::id(id, &member(&path, "id"), prefix)?;
    }
    let mut read = CheckedItem { kind, id, call_id: None, is_answer: true, fields, path };
    let path = read.path.as_str();
    match kind {
        "message" => read.is_answer = message(fields, path)?,
        "function_call" | "custom_tool_call" => {
            read.call_id = Some(call_id(fields, path, longest)?);
            let name = needed(fields, path, "name")?;
            super::function_name(name, &member(path, "name"))?;
            let given = if kind == "function_call" { "arguments" } else { "input" };
            needed(fields, path, given)?;
        }
        "function_call_output" | "custom_tool_call_output" => {
            read.is_answer = false;
            read.call_id = Some(call_id(fields, path, longest)?);
            match set(fields, "output") {
                None => return Err(missing(&member(path, "output"))),
                Some(output) => parts(output, &member(path, "output"), &INPUT)?,
            }
        }
        "reasoning" => summary(fields, path)?,
        _ => {}
    }
    Ok(read)
}

fn id(id: &str, at: &str, prefix: &str) -> Checked {
    if id.len() > ID_LENGTH_MAX {
        return Err(long_string(at, ID_LENGTH_MAX, id.len()));
    }
    if id.starts_with(prefix) {
        return Ok(());
    }
    let message = format!("Invalid '{at}': '{id}'. Expected an ID that begins with '{prefix}'.");
    Err(Refusal::invalid(message).at(at).code("invalid_value"))
}

fn call_id<'a>(fields: &'a Fields, path: &str, longest: usize) -> Result<&'a str, Refusal> {
    let id = needed(fields, path, "call_id")?;
    if id.len() > longest {
        return Err(long_string(&member(path, "call_id"), longest, id.len()));
    }
    Ok(id)
}

/// Checks a message. Returns true if its role is `assistant`.
fn message(fields: &Fields, path: &str) -> Result<bool, Refusal> {
    let role = needed(fields, path, "role")?;
    let roles = ["assistant", "system", "developer", "user"];
    one_of(role, &member(path, "role"), &roles)?;
    let is_answer = role == "assistant";
    if fields.contains_key("phase") && !is_answer {
        let at = member(path, "phase");
        let message = format!("Unknown parameter: '{at}'.");
        return Err(Refusal::invalid(message).at(at).code("unknown_parameter"));
    }
    word(fields, path, "phase", &["commentary", "final_answer"])?;
    let at = member(path, "content");
    match set(fields, "content") {
        None => Err(missing(&at)),
        Some(content) => parts(content, &at, if is_answer { &OUTPUT } else { &INPUT }),
    }?;
    Ok(is_answer)
}

type Kinds<const N: usize> = [(&'static str, &'static [&'static str]); N];

/// Types of content parts for the model's input, with their fields besides `type`.
const INPUT: Kinds<3> = [
    ("input_text", &["prompt_cache_breakpoint", "text"]),
    ("input_image", &["detail", "file_id", "image_url", "prompt_cache_breakpoint"]),
    (
        "input_file",
        &["detail", "file_data", "file_id", "file_url", "filename", "prompt_cache_breakpoint"],
    ),
];

/// Types of content parts in the model's output.
const OUTPUT: Kinds<2> =
    [("output_text", &["annotations", "logprobs", "text"]), ("refusal", &["refusal"])];

fn parts(content: &Value, path: &str, kinds: &[(&str, &[&str])]) -> Checked {
    let parts = match content {
        Value::String(_) => return Ok(()),
        Value::Array(parts) => parts,
        other => return Err(wrong_type(path, "a string or an array of objects", other)),
    };
    for (index, part) in parts.iter().enumerate() {
        let at = format!("{path}[{index}]");
        let part = object(part, &at)?;
        let kind = needed(part, &at, "type")?;
        let Some((_, members)) = kinds.iter().find(|(known, _)| *known == kind) else {
            let known: Vec<&str> = kinds.iter().map(|(known, _)| *known).collect();
            return one_of(kind, &member(&at, "type"), &known);
        };
        only(part, &at, &[&["type"][..], members].concat())?;
        match kind {
            "input_image" => {
                word(part, &at, "detail", &["low", "high", "auto", "original"])?;
                match text(part, &at, "image_url")? {
                    Some(url) => image_at(url, &member(&at, "image_url"))?,
                    None => drop(needed(part, &at, "file_id")?),
                }
            }
            "input_file" => {
                let given = ["file_data", "file_url", "file_id"].iter();
                if !given.clone().any(|name| set(part, name).is_some()) {
                    return Err(missing(&member(&at, "file_data")));
                }
                for name in given.chain(&["filename"]) {
                    text(part, &at, name)?;
                }
            }
            "refusal" => drop(needed(part, &at, "refusal")?),
            _ => drop(needed(part, &at, "text")?),
        }
    }
    Ok(())
}

fn summary(fields: &Fields, path: &str) -> Checked {
    let at = member(path, "summary");
    match set(fields, "summary") {
        None => return Err(missing(&at)),
        Some(Value::Array(summary)) => {
            for (index, part) in summary.iter().enumerate() {
                let at = format!("{at}[{index}]");
                let part = object(part, &at)?;
                one_of(needed(part, &at, "type")?, &member(&at, "type"), &["summary_text"])?;
                needed(part, &at, "text")?;
                only(part, &at, &["text", "type"])?;
            }
        }
        Some(other) => return Err(wrong_type(&at, "an array of objects", other)),
    }
    text(fields, path, "encrypted_content").map(drop)
}

/// Checks that every call has an output, and every output an earlier call.
fn paired(items: &[CheckedItem<'_>]) -> Checked {
    let is_output = |item: &CheckedItem<'_>| item.kind.ends_with("_output");
    let mut open: Vec<&str> = Vec::new();
    let mut called: Vec<&str> = Vec::new();
    for item in items {
        let Some(id) = item.call_id else { continue };
        if !is_output(item) {
            open.push(id);
            called.push(id);
        } else if called.contains(&id) {
            open.retain(|open| *open != id);
        } else {
            let message = format!("No tool call found for function call output with call_id {id}.");
            return Err(Refusal::invalid(message).at("input"));
        }
    }
    match open.first() {
        None => Ok(()),
        Some(id) => {
            let message = format!("No tool output found for function call {id}.");
            Err(Refusal::invalid(message).at("input"))
        }
    }
}

/// Checks that a reasoning item is complete, comes from this model, and is followed by the item
/// that it led to.
fn reasoning(
    item: &CheckedItem<'_>,
    next: Option<&CheckedItem<'_>>,
    behind: &[CheckedItem<'_>],
    model: &str,
) -> Checked {
    let named = item.id.unwrap_or_default();
    let Some(content) = text(item.fields, &item.path, "encrypted_content")? else {
        return Err(not_found(named));
    };
    let unverified = |why: &str| {
        let start: String = content.chars().take(8).collect();
        let message =
            format!("The encrypted content {start}... could not be verified. Reason: {why}");
        Err(Refusal::invalid(message).code("invalid_encrypted_content"))
    };
    let Some(sealed) = Sealed::open(content) else {
        return unverified("Encrypted content could not be decrypted or parsed.");
    };
    if item.id.is_some_and(|id| id != sealed.id) {
        return unverified("Encrypted content item_id did not match the target item id.");
    }
    if sealed.model != model {
        return unverified("Encrypted content model did not match the model of the request.");
    }
    let without = || {
        let message = format!(
            "Item '{}' of type 'reasoning' was provided without its required following item.",
            sealed.id
        );
        Err(Refusal::invalid(message).at("input"))
    };
    let Some(next) = next.filter(|next| next.is_answer) else { return without() };
    match &sealed.call_id {
        // Items of the server's searches may come between the reasoning and its message.
        None if next.kind == "reasoning" => without(),
        None => Ok(()),
        Some(_) => {
            let calls = behind.iter().take_while(|item| item.is_answer && item.kind != "reasoning");
            let first = calls.filter_map(|item| item.call_id).next();
            if first == sealed.call_id.as_deref() { Ok(()) } else { without() }
        }
    }
}

/// Checks that an item whose `id` refers to a reasoning item has that reasoning item before it.
fn led_to(item: &CheckedItem<'_>, before: &[CheckedItem<'_>]) -> Checked {
    let Some(id) = item.id else { return Ok(()) };
    let Some(name) = id.split_once("_r").map(|(_, rest)| rest) else { return Ok(()) };
    let name = name.split_once('_').map_or(name, |(name, _)| name);
    if name.len() != NAME_LENGTH {
        return Ok(()); // not an item of the demo model
    }
    let needed = format!("rs_{name}");
    let turn = before.iter().rev().take_while(|item| item.is_answer);
    if turn.filter_map(|item| item.id).any(|id| id == needed) {
        return Ok(());
    }
    let message = format!(
        "Item '{id}' of type '{}' was provided without its required 'reasoning' item: '{needed}'.",
        item.kind
    );
    Err(Refusal::invalid(message).at("input"))
}

fn not_found(id: &str) -> Refusal {
    let message = format!(
        "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` \
         set to true, or remove this item from your input."
    );
    Refusal { status: 404, ..Refusal::invalid(message).at("input") }
}
