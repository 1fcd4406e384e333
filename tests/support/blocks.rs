//! What clients get of calls, and of searches of the web that the upstream ran; see [`super::grammar`].

use std::collections::BTreeSet;

use serde_json::Value;

use super::grammar::{Rules, equals, is_plain, keys};

/// Checks a search, its input aside.
pub fn searched(block: &Value) -> Result<(), String> {
    keys(block, &["type", "id", "name", "input"], &["caller"])?;
    equals(block, "name", &"web_search".into())?;
    if !block["id"].as_str().is_some_and(|id| id.starts_with("srvtoolu_") && id.len() > 9) {
        return Err(format!("a search without an id: {block}"));
    }
    Ok(())
}

/// Checks what a search found.
pub fn found(block: &Value) -> Result<(), String> {
    keys(block, &["type", "tool_use_id", "content"], &["caller"])?;
    if !block["tool_use_id"].as_str().is_some_and(|id| id.starts_with("srvtoolu_")) {
        return Err(format!("a result without its search: {block}"));
    }
    let content = &block["content"];
    if content.is_object() {
        keys(content, &["type", "error_code"], &[])?;
        return equals(content, "type", &"web_search_tool_result_error".into());
    }
    for result in content.as_array().ok_or("a result is neither a list nor an error")? {
        keys(result, &["type", "url", "title", "encrypted_content"], &["page_age"])?;
        equals(result, "type", &"web_search_result".into())?;
    }
    Ok(())
}

/// Checks where a text comes from.
pub fn cited(citation: &Value, rules: Rules) -> Result<(), String> {
    if rules.foreign_blocks {
        return Ok(());
    }
    keys(citation, &["type", "url", "title", "cited_text", "encrypted_index"], &[])?;
    equals(citation, "type", &"web_search_result_location".into())
}

/// Checks a call, its input aside. `ids`: those of the calls before it.
pub fn tool_use(block: &Value, ids: &mut BTreeSet<String>, rules: Rules) -> Result<(), String> {
    let id = block["id"].as_str().unwrap_or_default();
    if !rules.foreign_blocks {
        keys(block, &["type", "id", "name", "input", "caller"], &["toolset_name"])?;
        equals(block, "caller", &serde_json::json!({"type": "direct"}))?;
        if !id.starts_with("toolu_") || !is_plain(id) {
            return Err(format!("bad tool_use id {id:?}"));
        }
    }
    if id.is_empty() || !ids.insert(id.to_owned()) {
        return Err(format!("tool_use id {id:?} is empty or comes twice"));
    }
    if block["name"].as_str().is_none_or(str::is_empty) {
        return Err("a call without a name".into());
    }
    Ok(())
}
