//! Tools of a body by other names, or by the names that its history has.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::without::{Rewritten, text};
use crate::error::Error;
use crate::json::{self, Writer, rewrite_array, rewrite_object};
use crate::model::request_context::RequestContext;
use crate::tools::plain_name;

/// Gives the tools of a body names that OpenAI's rules allow, which the context maps to those of
/// the client.
pub(super) fn with_plain_names<'b>(
    body: &'b str,
    context: &mut RequestContext,
) -> Result<Cow<'b, str>, Error> {
    for tool in &mut context.tools.sent {
        tool.outgoing = plain_name(&tool.name).into_owned();
    }
    rewrite_object(body, |key, value| match key {
        "tools" => rewrite_array(value, |tool| renamed(tool, "name")).map(Some),
        "tool_choice" => renamed(value, "name"),
        "messages" => rewrite_array(value, |message| in_content(message, renamed_block)).map(Some),
        _ => Ok(Some(value.into())),
    })
}

/// Rewrites the blocks of a message or of a result.
fn in_content<'b>(message: &'b str, block: fn(&'b str) -> Rewritten<'b>) -> Rewritten<'b> {
    let rewritten = rewrite_object(message, |key, value| match key {
        "content" if value.starts_with('[') => rewrite_array(value, block).map(Some),
        _ => Ok(Some(value.into())),
    });
    rewritten.map(Some)
}

fn renamed_block(block: &str) -> Rewritten<'_> {
    match text(block, "type").as_deref() {
        Some("tool_use") => renamed(block, "name"),
        Some("tool_reference") => renamed(block, "tool_name"),
        Some("tool_result") => in_content(block, renamed_block),
        _ => Ok(Some(block.into())),
    }
}

/// Rewrites the name of a tool in the member `member` of an object.
fn renamed<'b>(object: &'b str, member: &str) -> Rewritten<'b> {
    let rewritten = rewrite_object(object, |key, value| {
        let name = json::string(value).filter(|_| key == member).map(|name| name.decode());
        Ok(Some(match name.as_deref().map(plain_name) {
            Some(Cow::Owned(name)) => json::quoted(&name).into(),
            _ => value.into(),
        }))
    });
    rewritten.map(Some)
}

/// Adds the tools that the calls of a body name, if it has calls and no tools.
pub(super) fn with_tools_of_calls(body: &str) -> Option<String> {
    if json::member(body, "tools").is_some_and(|tools| json::elements(tools).next().is_some()) {
        return None;
    }
    let messages = json::member(body, "messages")?;
    let contents = json::elements(messages).filter_map(|message| json::member(message, "content"));
    let calls = contents
        .flat_map(json::elements)
        .filter(|block| text(block, "type").as_deref() == Some("tool_use"));
    let names: BTreeSet<_> = calls.filter_map(|call| text(call, "name")).collect();
    if names.is_empty() {
        return None;
    }
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.begin_object();
    for (key, value) in json::members(body).filter(|(key, _)| key != "tools") {
        json.key_str(key).raw(value);
    }
    json.key("tools").begin_array();
    for name in names {
        json.begin_object().key("name").text(&name);
        json.key("input_schema").raw("{\"type\":\"object\"}").end_object();
    }
    json.end_array().end_object();
    String::from_utf8(out).ok()
}
