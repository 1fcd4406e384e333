//! The rules for tools: definitions, choices, toolsets, and changes in the middle.

use serde_json::{Value, json};

use crate::place::with_activation;
use crate::rules::{Case, Verdict, at, function, is, need, no_loss, refused, tested};
use crate::spec::{MARK, NUMBER};
use crate::{Way, run};

pub fn tool_choice(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::default());
    let choice = at(&sent, "/tool_choice");
    match (case.name, case.field) {
        (_, "disable_parallel_tool_use") => is(&sent, "/parallel_tool_calls", false),
        ("ToolChoiceAutoParam", _) => need(choice == "auto", "auto", &sent),
        ("ToolChoiceAnyParam", _) => need(choice == "required", "required", &sent),
        ("ToolChoiceNoneParam", _) => need(choice == "none", "none", &sent),
        ("ToolChoiceToolParam", "name") => is(&sent, "/tool_choice/function/name", MARK),
        ("ToolChoiceToolParam", "type") => is(&sent, "/tool_choice/type", "function"),
        _ => Err("no rule".into()),
    }
}

pub fn custom_tool(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::default());
    sent.body()?;
    let tool = tested(&sent);
    let parameters = &tool["parameters"];
    match (case.name, case.field) {
        (_, "name") => need(tool["name"] == MARK, "its name", &sent),
        (_, "description") => need(tool["description"] == MARK, "its description", &sent),
        ("ToolParam", "type") => need(tool["name"] == "w", "a function", &sent),
        (_, "input_schema") => need(parameters["type"] == "object", "its schema", &sent),
        (_, "input_examples") => {
            let text = tool["description"].as_str().unwrap_or_default();
            need(text.contains("Examples:") && text.contains(MARK), "its examples", &sent)
        }
        (_, "strict") => {
            need(tool["strict"] == true, "strict", &sent)?;
            let mut loose = case.request.to_string();
            loose = loose.replace("\"additionalProperties\":false,", "");
            let loose: Value = serde_json::from_str(&loose).unwrap();
            let sent = run(&loose, &Way::default());
            need(tested(&sent).get("strict").is_none(), "no strict for a loose schema", &sent)?;
            need(!sent.warnings.is_empty(), "a warning", &sent)
        }
        ("InputSchemaTyped", "type") => need(parameters["type"] == "object", "its type", &sent),
        ("InputSchemaTyped", "properties" | "required") => {
            need(parameters[case.field].to_string().contains(MARK), "its value", &sent)
        }
        _ => Err("no rule".into()),
    }
}

/// Tools whose schema is not part of the request.
pub fn typed_tool(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::default());
    sent.body()?;
    no_loss(&sent)?;
    let tool = tested(&sent);
    let text = tool["description"].as_str().unwrap_or_default();
    match case.field {
        "name" => need(tool["name"] == *case.value, "its implied name", &sent),
        "type" => {
            let properties = tool["parameters"]["properties"].as_object();
            need(properties.is_some_and(|all| !all.is_empty()), "the schema that it implies", &sent)
        }
        "input_examples" => need(text.contains(MARK), "its examples", &sent),
        "enable_zoom" => {
            need(tool["parameters"].to_string().contains("zoom"), "zoom in its schema", &sent)?;
            let sent = run(&(case.with)(&json!(false)), &Way::default());
            let schema = tested(&sent)["parameters"].to_string();
            need(!schema.contains("zoom"), "no zoom in its schema", &sent)
        }
        _ => need(text.contains(&NUMBER.to_string()), "the number in its description", &sent),
    }
}

pub fn allowed_callers(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::default());
    let direct = case.value.as_array().is_some_and(|all| all.contains(&json!("direct")));
    if direct {
        need(!tested(&sent).is_null(), "the tool", &sent)?;
        return no_loss(&sent);
    }
    need(sent.sent.is_some() && tested(&sent).is_null(), "no such tool", &sent)?;
    need(!sent.dropped().is_empty(), "a warning of a loss", &sent)
}

pub fn defer_loading(case: &Case<'_>) -> Verdict {
    if change_in(case.request).is_some() {
        // The addition itself loads what it adds.
        let sent = run(&with_activation(case.request.clone()), &Way::default());
        return need(!tested(&sent).is_null(), "the tool that was added", &sent);
    }
    let waits = run(&with_activation(case.request.clone()), &Way::default());
    let free = run(&with_activation((case.with)(&json!(false))), &Way::default());
    need(waits.sent.is_some() && tested(&waits).is_null(), "the tool to wait", &waits)?;
    need(function(&waits, "loaded").is_some(), "the tool that was named", &waits)?;
    need(!tested(&free).is_null(), "the tool", &free)?;
    no_loss(&waits)
}

pub fn toolset(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::default());
    let prefix = if case.name.starts_with("Browser") { "browser__" } else { "computer__" };
    need(function(&sent, &format!("{prefix}screenshot")).is_some(), "its members", &sent)?;
    no_loss(&sent)
}

pub fn toolset_member(case: &Case<'_>) -> Verdict {
    let prefix = if case.name.starts_with("Browser") { "browser" } else { "computer" };
    let (member, config): (&str, Box<dyn Fn(Value) -> Value>) = match case.field {
        "configs" => ("screenshot", Box::new(|config| (case.with)(&json!({"screenshot": config})))),
        "enabled" => (case.member, Box::new(|config| (case.with)(&config["enabled"]))),
        "defer_loading" => (case.member, Box::new(|config| (case.with)(&config["defer_loading"]))),
        member => (member, Box::new(|config| (case.with)(&config))),
    };
    let name = format!("{prefix}__{member}");
    let sends = |request: Value, way: &Way| {
        let run = run(&request, way);
        (function(&run, &name).is_some(), run)
    };
    let way = Way::default();
    if case.field == "defer_loading" && change_in(case.request).is_some() {
        let (_, run) = sends(with_activation(config(json!({"defer_loading": true}))), &way);
        return need(!tested(&run).is_null(), "the toolset that was added", &run);
    }
    if case.field == "defer_loading" {
        // A member that is off by default is not a matter of loading.
        let (before, _) = sends(with_activation(config(json!({"defer_loading": false}))), &way);
        let (after, run) = sends(with_activation(config(json!({"defer_loading": true}))), &way);
        let off = ["read_console", "read_network", "file_upload", "javascript_exec"];
        need(before != off.contains(&member), "the member", &run)?;
        need(run.sent.is_some() && !after, "the member to wait", &run)?;
        return no_loss(&run);
    }
    let (on, run_on) = sends(config(json!({"enabled": true})), &way);
    need(on, &format!("the function {name}"), &run_on)?;
    no_loss(&run_on)?;
    let (off, run_off) = sends(config(json!({"enabled": false})), &way);
    need(run_off.sent.is_some() && !off, &format!("no function {name}"), &run_off)
}

/// The first change of the tools in a request.
fn change_in(value: &Value) -> Option<&Value> {
    if value["type"] == "tool_addition" || value["type"] == "tool_removal" {
        return Some(value);
    }
    match value {
        Value::Array(items) => items.iter().find_map(change_in),
        Value::Object(fields) => fields.values().find_map(change_in),
        _ => None,
    }
}

pub fn tool_change(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::default());
    let change = change_in(case.request).ok_or("no change of tools in the request")?;
    let (tool, removal) = (&change["tool"], change["type"] == "tool_removal");
    let definition = &tool["definition"];
    let kind = definition["type"].as_str().unwrap_or("custom");
    // There is no MCP connector, so nothing can be added to it or taken from it.
    if tool["type"].as_str().is_some_and(|kind| kind.starts_with("mcp")) || kind == "mcp_toolset" {
        return refused(&sent, "messages");
    }
    sent.body()?;
    if let Some(name) = tool["name"].as_str().or_else(|| definition["name"].as_str())
        && (tool["type"] == "tool_reference" || kind == "custom")
    {
        no_loss(&sent)?;
        return need(
            function(&sent, name).is_some() != removal,
            "the tools after the change",
            &sent,
        );
    }
    let servers = ["web_", "code_execution", "tool_search", "advisor"];
    if servers.iter().any(|server| kind.starts_with(server)) {
        return need(!sent.dropped().is_empty(), "a warning of a loss", &sent);
    }
    no_loss(&sent)?;
    need(!tested(&sent).is_null(), "the tool that was added", &sent)
}
