//! Checks of a request's tools, and of the choice of a tool.

use serde_json::Value;

use super::super::refusal::*;
use super::super::shape::*;
use super::super::{Checked, Refusal, function_name, function_schema};

const TOOLS_MAX: usize = 128;

/// Types of tools that the server itself would run. They are accepted, and the demo model calls
/// none of them.
const OF_THE_SERVER: [&str; 5] =
    ["code_interpreter", "mcp", "web_search", "web_search_2025_08_26", "web_search_preview"];

pub(super) fn tools(body: &Fields) -> Checked {
    let Some(tools) = set(body, "tools") else {
        let choice = set(body, "tool_choice").filter(|it| *it != "none" && *it != "auto");
        return match choice {
            None => Ok(()),
            Some(_) => {
                let message = "Tool choice must be specified with 'tools' parameter.";
                Err(Refusal::invalid(message).at("tool_choice"))
            }
        };
    };
    let Value::Array(tools) = tools else {
        return Err(wrong_type("tools", "an array of objects", tools));
    };
    if tools.len() > TOOLS_MAX {
        return Err(long_array("tools", TOOLS_MAX, tools.len()));
    }
    let mut names = Vec::new();
    for (index, tool) in tools.iter().enumerate() {
        names.extend(self::tool(tool, &format!("tools[{index}]"))?);
    }
    set(body, "tool_choice").map_or(Ok(()), |choice| self::choice(choice, &names))
}

/// Checks a tool. Returns the tool's name, if tools of its type have names.
fn tool<'a>(tool: &'a Value, path: &str) -> Result<Option<&'a str>, Refusal> {
    let tool = object(tool, path)?;
    let kind = needed(tool, path, "type")?;
    let known: &[&str] = match kind {
        "function" => &[
            "allowed_callers",
            "async",
            "defer_loading",
            "description",
            "name",
            "output_schema",
            "parameters",
            "strict",
            "type",
        ],
        "custom" => &["allowed_callers", "defer_loading", "description", "format", "name", "type"],
        "web_search" | "web_search_2025_08_26" | "web_search_preview" => {
            &["external_web_access", "filters", "search_context_size", "type", "user_location"]
        }
        "code_interpreter" => &["allowed_callers", "container", "type"],
        "mcp" => &[
            "allowed_callers",
            "allowed_tools",
            "authorization",
            "connector_id",
            "defer_loading",
            "headers",
            "require_approval",
            "server_description",
            "server_label",
            "server_url",
            "type",
        ],
        other => {
            let kinds = [&["function", "custom"][..], &OF_THE_SERVER].concat();
            return one_of(other, &member(path, "type"), &kinds).map(|()| None);
        }
    };
    if OF_THE_SERVER.contains(&kind) {
        return only(tool, path, known).map(|()| None);
    }
    // The name is checked before unknown fields, because a Chat Completions tool has its name in
    // `function: {…}`.
    let name = needed(tool, path, "name")?;
    only(tool, path, known)?;
    function_name(name, &member(path, "name"))?;
    text(tool, path, "description")?;
    booleans(tool, path, &["defer_loading", "strict"])?;
    if kind == "function" {
        function(tool, name, path)?;
    }
    Ok(Some(name))
}

fn function(tool: &Fields, name: &str, path: &str) -> Checked {
    let at = member(path, "parameters");
    let parameters = tool.get("parameters");
    function_schema(parameters, name, &at)?;
    // A function without `strict` is strict.
    if tool.get("strict") == Some(&Value::Bool(false)) {
        return Ok(());
    }
    let wrong = |what: &str| {
        let message = format!("Invalid schema for function '{name}': In context=(), {what}");
        Err(Refusal::invalid(message).at(at.clone()).code("invalid_function_parameters"))
    };
    let Some(Value::Object(schema)) = parameters else { return Ok(()) };
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return wrong("'additionalProperties' is required to be supplied and to be false.");
    }
    let required = schema.get("required").and_then(Value::as_array);
    let required = required.map(Vec::as_slice).unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let optional = properties
        .into_iter()
        .flat_map(|properties| properties.keys())
        .find(|name| !required.iter().any(|required| required == name.as_str()));
    match optional {
        None => Ok(()),
        Some(name) => wrong(&format!(
            "'required' is required to be supplied and to be an array including every key in properties. Missing '{name}'."
        )),
    }
}

fn choice(choice: &Value, names: &[&str]) -> Checked {
    let path = "tool_choice";
    let object = match choice {
        Value::String(word) => return one_of(word, path, &["none", "auto", "required"]),
        Value::Object(object) => object,
        other => return Err(wrong_type(path, "a string or an object", other)),
    };
    match needed(object, path, "type")? {
        "function" | "custom" => {
            let name = needed(object, path, "name")?;
            only(object, path, &["name", "type"])?;
            if names.contains(&name) {
                return Ok(());
            }
            let message = "Tool choice 'function' not found in 'tools' parameter.";
            Err(Refusal::invalid(message).at(path))
        }
        "allowed_tools" => {
            only(object, path, &["mode", "tools", "type"])?;
            one_of(needed(object, path, "mode")?, "tool_choice.mode", &["auto", "required"])
        }
        other => {
            let kinds = [&["function", "custom", "allowed_tools"][..], &OF_THE_SERVER].concat();
            one_of(other, "tool_choice.type", &kinds)
        }
    }
}
