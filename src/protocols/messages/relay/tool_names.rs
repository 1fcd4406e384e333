//! Renaming of a body's tools for the upstream, and definitions for tools that occur only in the
//! history.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::without::{Rewritten, in_content, is_of_thread, text, with_member};
use crate::error::Error;
use crate::json::{self, Writer, rewrite_array, rewrite_object};
use crate::model::request_context::{RequestContext, Tool};
use crate::text::words;
use crate::tools::plain_name;

/// Renames the tools of a body by OpenAI's rules for names, and records the client's names in the
/// context. The body stays unchanged if two tools would get the same name, or if a name occurs
/// where it cannot be changed.
pub(super) fn with_plain_names<'b>(
    body: &'b str,
    context: &mut RequestContext,
) -> Result<Cow<'b, str>, Error> {
    let tools = json::member(body, "tools").unwrap_or_default();
    let names: Vec<_> = json::elements(tools).filter_map(|tool| text(tool, "name")).collect();
    let plain: BTreeSet<_> = names.iter().map(|name| plain_name(name)).collect();
    if is_of_thread(body) || plain.len() < names.len() {
        return Ok(body.into());
    }
    let rewritten = rewrite_object(body, |key, value| match key {
        "tools" => rewrite_array(value, |tool| renamed(tool, "name")).map(Some),
        "tool_choice" => renamed(value, "name"),
        "messages" => {
            rewrite_array(value, |message| in_content(message, &mut renamed_block)).map(Some)
        }
        _ => Ok(Some(value.into())),
    })?;
    let changed = || names.iter().filter(|name| matches!(plain_name(name), Cow::Owned(_)));
    if changed().any(|name| words::has(&rewritten, &json::quoted(name))) {
        return Ok(body.into());
    }
    for name in changed() {
        let outgoing = plain_name(name).into_owned();
        // A request that could not be parsed has no tools in the context.
        match context.tools.sent.iter_mut().find(|tool| tool.name == *name) {
            Some(tool) => tool.outgoing = outgoing,
            None => {
                context.tools.push(Tool { outgoing, name: name.to_string(), ..Tool::default() });
            }
        }
    }
    Ok(rewritten)
}

fn renamed_block(block: &str) -> Rewritten<'_> {
    match text(block, "type").as_deref() {
        Some("tool_use") => renamed(block, "name"),
        Some("tool_reference") => renamed(block, "tool_name"),
        Some("tool_result") => in_content(block, &mut renamed_block),
        _ => Ok(Some(block.into())),
    }
}

/// Rewrites the tool name in the member `member` of an object.
fn renamed<'b>(object: &'b str, member: &str) -> Rewritten<'b> {
    with_member(object, member, |value| {
        let name = json::string(value).map(|name| name.decode());
        Ok(Some(match name.as_deref().map(plain_name) {
            Some(Cow::Owned(name)) => json::quoted(&name).into(),
            _ => value.into(),
        }))
    })
    .map(Some)
}

/// Adds definitions of the tools called in the history, if the body has calls but no tools.
/// `tool_choice` forbids their use, because the client does not have these tools.
pub(super) fn with_tools_of_calls(body: &str) -> Cow<'_, str> {
    let tools = json::member(body, "tools").unwrap_or_default();
    let messages = json::member(body, "messages").unwrap_or_default();
    let contents = json::elements(messages).filter_map(|message| json::member(message, "content"));
    let blocks = contents.flat_map(json::elements);
    let calls = blocks.filter(|block| text(block, "type").as_deref() == Some("tool_use"));
    let names: BTreeSet<_> = calls.filter_map(|call| text(call, "name")).collect();
    if names.is_empty() || json::elements(tools).next().is_some() || is_of_thread(body) {
        return body.into();
    }
    let mut out = Vec::new();
    let mut json = Writer::new(&mut out);
    json.begin_object();
    for (key, value) in
        json::members(body).filter(|(key, _)| key != "tools" && key != "tool_choice")
    {
        json.key_str(key).raw(value);
    }
    json.key("tools").begin_array();
    for name in names {
        json.begin_object().key("name").text(&name);
        json.key("input_schema").raw("{\"type\":\"object\"}").end_object();
    }
    json.end_array();
    json.key("tool_choice").begin_object().kind("none").end_object().end_object();
    String::from_utf8(out).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_calls_are_offered_and_must_not_be_called() {
        let body = r#"{"tools":[],"tool_choice":{"type":"auto"},"messages":[{"content":[{"type":"tool_use","name":"b"},{"type":"tool_use","name":"a"}]},{"content":"x"}]}"#;
        let with = with_tools_of_calls(body);
        let tools = r#"[{"name":"a","input_schema":{"type":"object"}},{"name":"b","input_schema":{"type":"object"}}]"#;
        assert_eq!(json::member(&with, "tools"), Some(tools));
        assert_eq!(json::member(&with, "tool_choice"), Some(r#"{"type":"none"}"#));
        for same in [
            r#"{"messages":[{"content":"x"}]}"#,
            r#"{"thread":{"id":"t"},"messages":[{"content":[{"type":"tool_use","name":"b"}]}]}"#,
            r#"{"tools":[{"name":"c"}],"messages":[{"content":[{"type":"tool_use","name":"b"}]}]}"#,
        ] {
            assert_eq!(with_tools_of_calls(same), same);
        }
    }
}
