//! Checks of the blocks that clients get of calls, also of calls that the upstream ran; see
//! [`super::grammar`].

use std::collections::BTreeSet;

use serde_json::Value;

use super::grammar::{Rules, equals, is_plain, keys};

/// Checks a block of a call that the upstream ran, or of its result; the input aside.
pub fn hosted(kind: &str, block: &Value) -> Result<(), String> {
    match kind {
        "server_tool_use" => searched(block),
        "mcp_tool_use" => called_mcp(block),
        "web_search_tool_result" => found(block),
        "tool_search_tool_result" => found_tools(block),
        "web_fetch_tool_result" => fetched(block),
        "mcp_tool_result" => gave_mcp(block),
        "mcp_tool_listing" => listed_mcp(block),
        _ => Err(format!("unknown block {block}")),
    }
}

/// Checks such a block of a whole message.
pub fn hosted_whole(kind: &str, block: &Value) -> Result<(), String> {
    hosted(kind, block)?;
    let input = &block["input"];
    match kind {
        // A model can call `web_search` without a query, and gets an error as the result.
        "server_tool_use" | "mcp_tool_use" if !input.is_object() => {
            Err(format!("input is not an object: {block}"))
        }
        _ => Ok(()),
    }
}

/// Checks a search, its input aside.
fn searched(block: &Value) -> Result<(), String> {
    keys(block, &["type", "id", "name", "input"], &["caller"])?;
    let name = block["name"].as_str().unwrap_or_default();
    if !["web_search", "web_fetch", "tool_search_tool_regex", "tool_search_tool_bm25"]
        .contains(&name)
    {
        return Err(format!("a call of no server tool: {block}"));
    }
    if !block["id"].as_str().is_some_and(|id| id.starts_with("srvtoolu_") && id.len() > 9) {
        return Err(format!("a search without an id: {block}"));
    }
    Ok(())
}

/// Checks what a search found.
fn found(block: &Value) -> Result<(), String> {
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

/// Checks a page that was fetched.
fn fetched(block: &Value) -> Result<(), String> {
    keys(block, &["type", "tool_use_id", "content"], &["caller"])?;
    let content = &block["content"];
    if content["type"] == "web_fetch_tool_result_error" {
        return keys(content, &["type", "error_code"], &[]);
    }
    keys(content, &["type", "url", "retrieved_at", "content"], &[])?;
    equals(content, "type", &"web_fetch_result".into())?;
    let document = &content["content"];
    keys(document, &["type", "source"], &["title", "citations"])?;
    equals(document, "type", &"document".into())?;
    keys(&document["source"], &["type", "media_type", "data"], &[])
}

/// Checks what a search for tools found.
fn found_tools(block: &Value) -> Result<(), String> {
    keys(block, &["type", "tool_use_id", "content"], &[])?;
    if !block["tool_use_id"].as_str().is_some_and(|id| id.starts_with("srvtoolu_")) {
        return Err(format!("a result without its search: {block}"));
    }
    let content = &block["content"];
    if content["type"] == "tool_search_tool_result_error" {
        return keys(content, &["type", "error_code"], &["error_message"]);
    }
    keys(content, &["type", "tool_references"], &[])?;
    equals(content, "type", &"tool_search_tool_search_result".into())?;
    for reference in content["tool_references"].as_array().ok_or("no list of references")? {
        keys(reference, &["type", "tool_name"], &[])?;
        equals(reference, "type", &"tool_reference".into())?;
    }
    Ok(())
}

/// Checks a call of an MCP server's tool, its input aside.
fn called_mcp(block: &Value) -> Result<(), String> {
    keys(block, &["type", "id", "name", "server_name", "input"], &[])?;
    let id = block["id"].as_str().and_then(|id| id.strip_prefix("mcptoolu_"));
    let is_text = |key: &str| block[key].as_str().is_some_and(|text| !text.is_empty());
    match id.is_some_and(|id| !id.is_empty()) && is_text("name") && is_text("server_name") {
        true => Ok(()),
        false => Err(format!("a call of an MCP server without its names: {block}")),
    }
}

/// Checks what a tool of an MCP server gave.
fn gave_mcp(block: &Value) -> Result<(), String> {
    keys(block, &["type", "tool_use_id", "is_error", "content"], &[])?;
    if !block["tool_use_id"].as_str().is_some_and(|id| id.starts_with("mcptoolu_")) {
        return Err(format!("a result without its call: {block}"));
    }
    if !block["is_error"].is_boolean() {
        return Err(format!("is_error is no boolean: {block}"));
    }
    for part in block["content"].as_array().ok_or("a result without a list")? {
        keys(part, &["type", "text"], &[])?;
        equals(part, "type", &"text".into())?;
        part["text"].as_str().ok_or("text is no text")?;
    }
    Ok(())
}

/// Checks the tools that an MCP server listed.
fn listed_mcp(block: &Value) -> Result<(), String> {
    keys(block, &["type", "mcp_server_name", "tools"], &[])?;
    for tool in block["tools"].as_array().ok_or("a listing without a list")? {
        keys(tool, &["name", "description", "input_schema"], &[])?;
        if !(tool["name"].as_str().is_some_and(is_plain) && tool["input_schema"].is_object()) {
            return Err(format!("a listed tool without its name or schema: {tool}"));
        }
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
