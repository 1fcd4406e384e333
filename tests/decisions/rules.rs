//! Where each mapped field arrives: one rule for each field, or for each group of fields that the
//! decisions treat alike.

use serde_json::{Value, json};

use crate::place::with_activation;
use crate::spec::{Field, MARK, NUMBER};
use crate::support::drive;
use crate::{Run, Way, run};

/// One field with one value.
pub struct Case<'a> {
    /// The type; the twin that clients send, where there is one.
    pub name: &'a str,
    pub field: &'a str,
    pub facts: &'a Field,
    /// The field that holds the instance.
    pub member: &'a str,
    pub value: &'a Value,
    pub request: &'a Value,
    /// The same request with another value.
    pub with: &'a dyn Fn(&Value) -> Value,
    /// The same request without the field.
    pub without: &'a dyn Fn() -> Value,
}

type Verdict = Result<(), String>;

/// Fields whose note demands another fate than the word of the decision.
pub fn exception<'a>(
    name: &str,
    field: &str,
    value: &Value,
    fate: &'a str,
) -> (&'a str, Option<&'static str>) {
    match (name, field) {
        ("ClearThinking20251015EditParam", "keep") if *value == "all" || value["type"] == "all" => {
            ("dropped_silently", Some("clear_thinking that keeps all clears nothing"))
        }
        // Only as `keep`, where the note says: with keep "all", dropped silently.
        ("AllThinkingTurnsParam", "type") => {
            ("dropped_silently", Some("clear_thinking that keeps all clears nothing"))
        }
        // A `file` part with a URL exists in no profile.
        ("URLPDFSourceParam", "url") => ("rejected", None),
        // The decision holds for content blocks; a cache mark on a tool is dropped silently.
        ("CacheControlEphemeral", "type") => {
            ("dropped_silently", Some("reached through a tool, whose cache mark means nothing"))
        }
        // Reached inside a server tool, which is left out as a whole.
        ("CitationsConfigParam", "enabled") => {
            ("dropped_with_warning", Some("stands only in a server tool"))
        }
        _ => (fate, None),
    }
}

/// The type that clients send, for one that stands only in the tool changes of a compaction block.
pub fn twin(name: &str, note: &str) -> Option<String> {
    if !note.starts_with("only inside a compaction block") {
        return None;
    }
    Some(match name {
        "ResponseTool" => "ToolParam".to_owned(),
        "ResponseToolInputSchema" => "InputSchemaTyped".to_owned(),
        _ => format!("{name}Param"),
    })
}

/// The values of a field whose type says too little, or whose generated values hold nothing.
pub fn values(name: &str, field: &str) -> Option<Vec<Value>> {
    match (name, field) {
        (_, "toolset_name") if name.starts_with("ToolUseBlock") => {
            Some(vec!["computer".into(), "browser".into()])
        }
        (_, "context_management") => {
            Some(vec![json!({"edits": [{"type": "clear_tool_uses_20250919"}]})])
        }
        _ => None,
    }
}

/// What an instance needs beside the field under test.
pub fn prepare(name: &str, field: &str, instance: &mut Value) {
    match (name, field) {
        ("ToolUseBlockParam" | "ToolUseBlock", "toolset_name") => {
            instance["name"] = "screenshot".into()
        }
        ("ToolParam" | "ResponseTool", "strict") => {
            if let Some(schema) = instance.get_mut("input_schema") {
                schema["additionalProperties"] = false.into();
                schema["properties"] = json!({});
                schema["required"] = json!([]);
            }
        }
        ("BillingPolicyParam", "type") => instance["bill_to"] = "self".into(),
        _ => {}
    }
}

/// Gives a thinking block a signature of ours for its text, so that it is this upstream's own.
pub fn sign(field: &str, instance: &mut Value) {
    if instance["type"] != "thinking" || field == "cache_control" {
        return;
    }
    let text = instance["thinking"].as_str().unwrap_or_default();
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut bytes = b"TXS\x01\x02".to_vec();
    bytes.extend(hash.to_be_bytes());
    instance["signature"] = base64(&bytes).into();
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let number = group.iter().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte))
            << (8 * (3 - group.len()));
        for digit in 0..4 {
            if digit <= group.len() {
                text.push(char::from(DIGITS[(number >> (18 - 6 * digit)) & 63]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

fn need(holds: bool, what: &str, run: &Run) -> Verdict {
    if holds {
        return Ok(());
    }
    let found = match (&run.sent, &run.replied) {
        (Some(sent), _) => format!("sent {sent}"),
        (None, replied) => format!("{replied:?}"),
    };
    Err(format!("expected {what}; warnings {:?}; {found}", run.warnings))
}

/// The value at a pointer.
fn at(run: &Run, pointer: &str) -> Value {
    run.sent.as_ref().and_then(|sent| sent.pointer(pointer)).cloned().unwrap_or_default()
}

fn is(run: &Run, pointer: &str, value: impl Into<Value>) -> Verdict {
    let value = value.into();
    need(at(run, pointer) == value, &format!("{pointer} = {value}"), run)
}

/// All texts of the messages of one role, joined.
fn said(run: &Run, role: &str) -> String {
    let messages = at(run, "/messages");
    let mut text = String::new();
    for message in messages.as_array().into_iter().flatten() {
        if message["role"] != role {
            continue;
        }
        text.push_str(message["content"].as_str().unwrap_or_default());
        for part in message["content"].as_array().into_iter().flatten() {
            text.push_str(part["text"].as_str().unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

fn says(run: &Run, role: &str, part: &str) -> Verdict {
    need(said(run, role).contains(part), &format!("{part:?} in what {role} says"), run)
}

/// Parts of one type in the messages of the user.
fn parts(run: &Run, kind: &str) -> Vec<Value> {
    let messages = at(run, "/messages");
    let contents = messages.as_array().into_iter().flatten().map(|message| &message["content"]);
    contents
        .flat_map(|content| content.as_array().into_iter().flatten())
        .filter(|part| part["type"] == kind)
        .cloned()
        .collect()
}

/// The calls of the assistant.
fn calls(run: &Run) -> Vec<Value> {
    let messages = at(run, "/messages");
    let all = messages.as_array().into_iter().flatten();
    all.flat_map(|message| message["tool_calls"].as_array().into_iter().flatten())
        .cloned()
        .collect()
}

fn function(run: &Run, name: &str) -> Option<Value> {
    let tools = at(run, "/tools");
    let mut all = tools.as_array().into_iter().flatten().map(|tool| &tool["function"]);
    all.find(|function| function["name"] == name).cloned()
}

/// The function that is not there for the test's own sake.
fn tested(run: &Run) -> Value {
    let tools = at(run, "/tools");
    let mut all = tools.as_array().into_iter().flatten().map(|tool| &tool["function"]);
    all.find(|function| function["name"] != "base" && function["name"] != "loaded")
        .cloned()
        .unwrap_or_default()
}

fn no_loss(run: &Run) -> Verdict {
    need(run.dropped().is_empty(), "no warning of a loss", run)
}

fn same_body(case: &Case<'_>, way: &Way) -> Verdict {
    let (with, without) = (run(case.request, way), run(&(case.without)(), way));
    need(with.sent.is_some() && with.sent == without.sent, "the body without the field", &with)?;
    no_loss(&with)
}

fn refused(run: &Run, name: &str) -> Verdict {
    let message = run.replied.as_ref().map(|(status, body)| (*status, &body["error"]["message"]));
    let good = message.is_some_and(|(status, text)| {
        status == 400 && text.as_str().is_some_and(|text| text.contains(name))
    });
    need(good, &format!("a refusal that names {name}"), run)
}

/// Asserts the fate of a mapped or consumed field.
pub fn mapped(case: &Case<'_>) -> Verdict {
    let note = case.facts.note.as_str();
    if note.starts_with("enabled selects members") || note == "enabled members only" {
        return toolset_member(case);
    }
    if note.starts_with("server-tool history") || note == "inside web fetch history" {
        return server_history(case);
    }
    if note.starts_with("rendered as text in the tool message") {
        return browser_state(case);
    }
    if note == "tool left out when direct is not listed" {
        return allowed_callers(case);
    }
    if note == "section A.6" {
        return defer_loading(case);
    }
    if case.facts.to == "prompt_cache_breakpoint" {
        return cache_mark(case);
    }
    match case.name {
        "MessageCreateParamsNonStreaming" | "MessageCreateParamsStreaming" => top_level(case),
        name if name.starts_with("ThinkingConfig") => thinking_config(case),
        name if name.starts_with("ToolChoice") => tool_choice(case),
        "ToolParam" | "InputSchemaTyped" => custom_tool(case),
        name if name.starts_with("ToolChange")
            || name.starts_with("ResponseToolChange")
            || name.starts_with("RequestTool")
            || name.starts_with("ResponseToolA")
            || name.starts_with("ResponseToolR") =>
        {
            tool_change(case)
        }
        "MemoryTool20250818Param" => typed_tool(case),
        name if name.starts_with("ToolBash")
            || name.starts_with("ToolComputer")
            || name.starts_with("ToolTextEditor") =>
        {
            typed_tool(case)
        }
        "BrowserToolset20260801Param" | "ComputerToolset20260801Param" => toolset(case),
        "ThinkingBlock" | "ThinkingBlockParam" => thinking_block(case),
        "BillingPolicyParam" => billing(case),
        "MetadataParam"
        | "OutputConfigParam"
        | "JSONOutputFormatParam"
        | "SystemMessageOutputConfigParam" => settings(case),
        _ => block(case),
    }
}

fn hash(text: &str) -> String {
    creole::ids::hex_of_hash(text.as_bytes())
}

/// Fields of the body itself.
fn top_level(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::default());
    let value = case.value;
    match case.field {
        "max_tokens" => {
            is(&sent, "/max_completion_tokens", NUMBER)?;
            is(&run(case.request, &Way::profile("default")), "/max_tokens", NUMBER)?;
            let none = run(&(case.with)(&json!(0)), &Way::default());
            let stop =
                none.replied.as_ref().map(|(status, body)| (*status, body["stop_reason"].clone()));
            need(stop == Some((200, "max_tokens".into())), "an answer at once", &none)
        }
        "messages" => need(at(&sent, "/messages").to_string().contains(MARK), "the text", &sent),
        "model" => {
            is(&sent, "/model", MARK)?;
            let mapped = json!({"models": {"*": {"model": "another"}}});
            is(&run(case.request, &Way { settings: mapped, ..Way::default() }), "/model", "another")
        }
        "stream" => {
            let wanted = *value == true;
            need(at(&sent, "/stream").as_bool().unwrap_or_default() == wanted, "stream", &sent)?;
            let options = at(&sent, "/stream_options/include_usage");
            need((options == true) == wanted, "stream_options.include_usage", &sent)
        }
        "system" => {
            is(&sent, "/messages/0/role", "system")?;
            says(&sent, "system", MARK)
        }
        "tools" => {
            // Each kind of tool has its own fields, and its own rules there.
            match &sent.replied {
                Some((status, _)) => need(*status == 400, "a refusal", &sent),
                None => need(!at(&sent, "/tools").is_null(), "tools", &sent),
            }
        }
        "tool_choice" => {
            let choice = at(&sent, "/tool_choice");
            let expected = match value["type"].as_str().unwrap() {
                "any" => json!("required"),
                "tool" => json!({"type": "function", "function": {"name": MARK}}),
                word => json!(word),
            };
            need(choice == expected, &format!("tool_choice {expected}"), &sent)
        }
        "thinking" => match value["type"].as_str().unwrap() {
            "enabled" => is(&sent, "/reasoning_effort", "high"),
            "adaptive" => is(&sent, "/reasoning_effort", Value::Null),
            _ => is(&sent, "/reasoning_effort", "none"),
        },
        "output_config" => is(
            &run(&(case.with)(&json!({"effort": "low"})), &Way::default()),
            "/reasoning_effort",
            "low",
        ),
        "metadata" => {
            let sent = run(&(case.with)(&json!({"user_id": MARK})), &Way::default());
            is(&sent, "/safety_identifier", hash(MARK))
        }
        "service_tier" => {
            let tier = if value == "standard_only" { json!("default") } else { Value::Null };
            is(&sent, "/service_tier", tier)?;
            no_loss(&sent)?;
            same_body(case, &Way::profile("default"))
        }
        "speed" if value == "fast" => {
            is(&sent, "/service_tier", "fast")?;
            let other = run(case.request, &Way::profile("default"));
            need(!other.dropped().is_empty(), "a warning of a loss", &other)
        }
        "speed" => same_body(case, &Way::default()),
        "stop_sequences" => is(&sent, "/stop", json!([MARK])),
        "billing_policy" => same_body(case, &Way::default()),
        "betas" | "user_profile_id" | "workspace_id" => header(case),
        _ => Err("no rule".into()),
    }
}

/// Parameters of the SDKs that travel as headers: consumed, never sent on.
fn header(case: &Case<'_>) -> Verdict {
    let name = match case.field {
        "betas" => "anthropic-beta",
        "user_profile_id" => "anthropic-user-profile-id",
        _ => "anthropic-workspace-id",
    };
    let request = (case.without)();
    let sent = run(&request, &Way { headers: vec![(name, MARK)], ..Way::default() });
    let plain = run(&request, &Way::default());
    need(sent.sent.is_some() && sent.sent == plain.sent, "the body without the header", &sent)?;
    let leaks = sent.headers.iter().any(|(key, value)| key == name || value.contains(MARK));
    need(!leaks && !sent.headers.is_empty(), "no such header upstream", &sent)?;
    no_loss(&sent)
}

fn billing(case: &Case<'_>) -> Verdict {
    if *case.value == "user_profile" {
        return refused(&run(case.request, &Way::default()), "billing_policy");
    }
    let sent = run(case.request, &Way::default());
    sent.body()?;
    need(!at(&sent, "").to_string().contains("billing"), "nothing of it upstream", &sent)?;
    no_loss(&sent)
}

fn settings(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::default());
    match (case.name, case.field) {
        ("MetadataParam", _) => {
            is(&sent, "/safety_identifier", hash(MARK))?;
            is(&run(case.request, &Way::profile("default")), "/user", hash(MARK))
        }
        (_, "effort") => is(&sent, "/reasoning_effort", case.value.clone()),
        ("JSONOutputFormatParam", "schema") | ("OutputConfigParam", "format") => need(
            at(&sent, "/response_format/json_schema/schema").to_string().contains(MARK),
            "the schema",
            &sent,
        ),
        ("JSONOutputFormatParam", "type") => is(&sent, "/response_format/type", "json_schema"),
        _ => Err("no rule".into()),
    }
}

fn thinking_config(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::default());
    match (case.name, case.field) {
        ("ThinkingConfigEnabledParam", "budget_tokens") => {
            for (budget, effort) in [(1024, "low"), (2047, "low"), (2048, "medium"), (4096, "high")]
            {
                is(
                    &run(&(case.with)(&json!(budget)), &Way::default()),
                    "/reasoning_effort",
                    effort,
                )?;
            }
            let llama = run(case.request, &Way::profile("llama.cpp"));
            is(&llama, "/thinking_budget_tokens", NUMBER)
        }
        (_, "display") => {
            let shown = shown_thinking(case.request)?;
            match case.value.as_str().unwrap() {
                "omitted" => need(shown.is_empty(), "an empty thinking block", &sent),
                _ => need(shown == "Because.", "the text of the thinking", &sent),
            }
        }
        ("ThinkingConfigEnabledParam", "type") => is(&sent, "/reasoning_effort", "high"),
        ("ThinkingConfigAdaptiveParam", "type") => {
            let deepseek = run(case.request, &Way::profile("deepseek"));
            is(&deepseek, "/thinking/type", "enabled")
        }
        ("ThinkingConfigDisabledParam" | "ThinkingConfigBetweenToolsParam", "type") => {
            is(&sent, "/reasoning_effort", "none")?;
            let vllm = run(case.request, &Way::profile("vllm"));
            is(&vllm, "/chat_template_kwargs", json!({"enable_thinking": false}))
        }
        _ => Err("no rule".into()),
    }
}

/// The thinking that the client sees of an upstream's reasoning.
fn shown_thinking(request: &Value) -> Result<String, String> {
    let config = drive::config("{}");
    let (exchange, _) =
        drive::request(&config, "/v1/messages", &[], request.to_string().as_bytes())
            .map_err(|answer| String::from_utf8_lossy(&answer.body).into_owned())?;
    let upstream = json!({"id": "c", "choices": [{"index": 0, "finish_reason": "stop", "message": {
        "role": "assistant", "content": "Yes.", "reasoning_content": "Because.",
    }}]});
    let body = upstream.to_string();
    let answer = drive::respond(exchange, 200, &[], [body.as_bytes()], creole::End::Complete);
    let message: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    match &message["content"][0] {
        block if block["type"] == "thinking" => Ok(block["thinking"].as_str().unwrap().to_owned()),
        block => Err(format!("expected a thinking block, but found {block}")),
    }
}

fn tool_choice(case: &Case<'_>) -> Verdict {
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

fn custom_tool(case: &Case<'_>) -> Verdict {
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
fn typed_tool(case: &Case<'_>) -> Verdict {
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

fn allowed_callers(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::default());
    let direct = case.value.as_array().is_some_and(|all| all.contains(&json!("direct")));
    if direct {
        need(!tested(&sent).is_null(), "the tool", &sent)?;
        return no_loss(&sent);
    }
    need(sent.sent.is_some() && tested(&sent).is_null(), "no such tool", &sent)?;
    need(!sent.dropped().is_empty(), "a warning of a loss", &sent)
}

fn defer_loading(case: &Case<'_>) -> Verdict {
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

fn toolset(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::default());
    let prefix = if case.name.starts_with("Browser") { "browser__" } else { "computer__" };
    need(function(&sent, &format!("{prefix}screenshot")).is_some(), "its members", &sent)?;
    no_loss(&sent)
}

fn toolset_member(case: &Case<'_>) -> Verdict {
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

fn tool_change(case: &Case<'_>) -> Verdict {
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

fn thinking_block(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::profile("vllm"));
    sent.body()?;
    no_loss(&sent)?;
    let text = if case.field == "thinking" { MARK } else { "plain" };
    let messages = at(&sent, "/messages");
    let mut all = messages.as_array().into_iter().flatten();
    // The signature says that the text came in `reasoning`.
    need(all.any(|message| message["reasoning"] == text), "the reasoning in its field", &sent)
}

fn cache_mark(case: &Case<'_>) -> Verdict {
    let way = Way::overrides("openai", json!({"cache_breakpoints": true}));
    let sent = run(case.request, &way);
    let text = at(&sent, "/messages").to_string();
    need(text.contains("\"prompt_cache_breakpoint\":{\"mode\":\"explicit\"}"), "a mark", &sent)?;
    let plain = run(case.request, &Way::default());
    need(!at(&plain, "").to_string().contains("cache"), "no mark unless it is asked for", &plain)?;
    no_loss(&plain)
}

/// What can be read of a server tool's use becomes text; ids and encrypted parts do not.
fn server_history(case: &Case<'_>) -> Verdict {
    const READ: [&str; 15] = [
        "title",
        "url",
        "stdout",
        "stderr",
        "text",
        "error_code",
        "error_message",
        "input",
        "name",
        "lines",
        "tool_name",
        "return_code",
        "content",
        "data",
        "source",
    ];
    fn readable(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains(MARK),
            Value::Number(number) => number.as_u64() == Some(NUMBER),
            Value::Array(items) => items.iter().any(readable),
            Value::Object(fields) if fields.get("type") == Some(&json!("base64")) => false,
            Value::Object(fields) => fields.iter().any(|(key, value)| {
                key == MARK || (READ.contains(&key.as_str()) && readable(value))
            }),
            _ => false,
        }
    }
    let sent = run(case.request, &Way::default());
    sent.body()?;
    no_loss(&sent)?;
    let text = said(&sent, "assistant");
    need(!text.trim().is_empty(), "a text of the assistant", &sent)?;
    // A PDF is for eyes; here there is only its data.
    let pdf = case.name.starts_with("Base64PDF");
    let shown = !pdf && READ.contains(&case.field) && readable(case.value);
    let (mark, number) = (text.contains(MARK), text.contains(&NUMBER.to_string()));
    if shown {
        return need(mark || number, "the value in the assistant's text", &sent);
    }
    if case.field == "name" {
        let name = case.value.as_str().unwrap_or_default();
        return need(text.contains(&format!("[{name}")), "the tool's name in the text", &sent);
    }
    let hidden = case.field.starts_with("encrypted") || matches!(case.field, "id" | "tool_use_id");
    need(!(hidden && mark), "nothing of it in the text", &sent)
}

fn browser_state(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::default());
    sent.body()?;
    no_loss(&sent)?;
    let text = said(&sent, "tool");
    need(!text.trim().is_empty(), "a text of the tool", &sent)?;
    let readable = match case.value {
        Value::String(value) if value.contains(MARK) => text.contains(MARK),
        Value::Number(number) => text.contains(&number.to_string()),
        _ => true,
    };
    need(readable, "the value in the tool's text", &sent)
}

/// Content blocks and their sources.
fn block(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::default());
    let images = || parts(&sent, "image_url");
    let files = || parts(&sent, "file");
    let document = |part: &str| {
        says(&sent, "user", "<document")?;
        says(&sent, "user", part)
    };
    match (case.name, case.field) {
        ("UserMessageParam", "role") => need(said(&sent, "user").contains("plain"), "user", &sent),
        ("AssistantMessageParam", "role") => {
            need(said(&sent, "assistant").contains("plain"), "assistant", &sent)
        }
        ("SystemMessageParam", "role") => {
            need(said(&sent, "system").contains("plain"), "system", &sent)
        }
        ("SystemMessageParam", "clear_at") => {
            let mut longer = case.request.clone();
            let messages = longer["messages"].as_array_mut().unwrap();
            messages.push(json!({"role": "assistant", "content": "a"}));
            messages.push(json!({"role": "user", "content": "b"}));
            let cleared = *case.value == "next_user_message";
            let sent = run(&longer, &Way::default());
            sent.body()?;
            need(said(&sent, "system").contains("plain") != cleared, "the text until then", &sent)
        }
        ("SystemMessageParam", "output_config") => {
            let sent = run(&(case.with)(&json!({"effort": "low"})), &Way::default());
            is(&sent, "/reasoning_effort", "low")
        }
        ("UserMessageParam" | "AssistantMessageParam" | "SystemMessageParam", "content") => {
            content(case, &sent)
        }
        ("TextBlockParam", "text") => says(&sent, "user", MARK),
        ("TextBlock", "text") => says(&sent, "assistant", MARK),
        ("TextBlockParam", "type") => says(&sent, "user", "plain"),
        ("TextBlock", "type") => says(&sent, "assistant", "plain"),
        ("ImageBlockParam" | "Base64ImageSourceParam" | "URLImageSourceParam", _) => {
            if case.value["type"] == "file" {
                return refused(&sent, "messages");
            }
            need(images().len() == 1, "one image", &sent)?;
            let url = images()[0]["image_url"]["url"].as_str().unwrap().to_owned();
            match case.field {
                "media_type" => {
                    let start = format!("data:{};base64,", case.value.as_str().unwrap());
                    need(url.starts_with(&start), &start, &sent)
                }
                "type" => Ok(()),
                _ => need(url.ends_with(MARK), "the image", &sent),
            }
        }
        ("DocumentBlockParam" | "RequestDocumentBlockParam", "title") => {
            let named = files().iter().any(|part| part["file"]["filename"] == MARK);
            need(
                named || said(&sent, "user").contains(&format!("title=\"{MARK}\"")),
                "its title",
                &sent,
            )
        }
        ("DocumentBlockParam" | "RequestDocumentBlockParam", "context") => {
            says(&sent, "user", MARK)
        }
        ("DocumentBlockParam" | "RequestDocumentBlockParam", "source" | "type") => {
            let source = if case.field == "source" { case.value } else { &Value::Null };
            match source["type"].as_str() {
                Some("url" | "file") => refused(&sent, "messages"),
                Some("base64") => need(files().len() == 1, "one file", &sent),
                Some(_) => document(MARK),
                None => need(
                    files().len() == 1 || said(&sent, "user").contains("<document"),
                    "a document",
                    &sent,
                ),
            }
        }
        ("Base64PDFSourceParam", field) => {
            let data = files().first().map(|part| part["file"]["file_data"].clone());
            let mark = if field == "data" { MARK } else { "QUJD" };
            let uri = format!("data:application/pdf;base64,{mark}");
            need(data == Some(uri.clone().into()), &uri, &sent)?;
            let other = run(case.request, &Way::profile("default"));
            refused(&other, "messages")
        }
        ("PlainTextSourceParam", "data") => document(MARK),
        ("PlainTextSourceParam", _) => document("QUJD"),
        ("ContentBlockSourceParam", "content") => content(case, &sent),
        ("ContentBlockSourceParam", _) => document("plain"),
        ("SearchResultBlockParam", field) => {
            says(&sent, "user", "<search_result")?;
            match field {
                "title" => says(&sent, "user", &format!("title=\"{MARK}\"")),
                "source" => says(&sent, "user", &format!("source=\"https://x.test/{MARK}\"")),
                "content" => says(&sent, "user", MARK),
                _ => Ok(()),
            }
        }
        ("ToolUseBlock" | "ToolUseBlockParam", field) => {
            need(calls(&sent).len() == 1, "one call", &sent)?;
            let call = calls(&sent).remove(0);
            match field {
                "id" => need(call["id"] == MARK, "the foreign id as it is", &sent),
                "name" => need(call["function"]["name"] == MARK, "its name", &sent),
                "input" => {
                    let text = call["function"]["arguments"].as_str().unwrap();
                    need(text == case.value.to_string(), "its input", &sent)
                }
                "toolset_name" => {
                    let name = format!("{}__screenshot", case.value.as_str().unwrap());
                    need(call["function"]["name"] == *name, &name, &sent)
                }
                _ => need(call["type"] == "function", "a call", &sent),
            }
        }
        ("ToolResultBlockParam", field) => match field {
            "content" => content(case, &sent),
            "tool_use_id" => {
                let messages = at(&sent, "/messages");
                let mut all = messages.as_array().unwrap().iter();
                need(all.any(|message| message["tool_call_id"] == MARK), "its id", &sent)
            }
            "is_error" => says(&sent, "tool", "Error: "),
            _ => need(!said(&sent, "tool").is_empty(), "a tool message", &sent),
        },
        ("CompactionBlock" | "CompactionBlockParam", "content") => {
            says(&sent, "user", &format!("<summary>{MARK}</summary>"))?;
            let none = run(&(case.with)(&Value::Null), &Way::default());
            none.body()?;
            no_loss(&none)
        }
        ("CompactionBlock" | "CompactionBlockParam", "tool_changes") => tool_change(case),
        ("CompactionBlock" | "CompactionBlockParam", "type") => {
            sent.body()?;
            no_loss(&sent)
        }
        ("ToolReferenceBlockParam", _) => {
            let name = if case.field == "tool_name" { MARK } else { "w" };
            says(&sent, "tool", &format!("Tool loaded: {name}"))?;
            need(function(&sent, name).is_some(), "the tool", &sent)
        }
        ("ToolReferenceBlock", _) => {
            let name = if case.field == "tool_name" { MARK } else { "w" };
            need(function(&sent, name).is_some(), "the tool", &sent)
        }
        _ => Err("no rule".into()),
    }
}

/// A field that holds blocks: each kind of block has rules of its own, so here it must only be
/// taken, or refused by name, and texts must arrive.
fn content(case: &Case<'_>, sent: &Run) -> Verdict {
    if sent.replied.is_some() {
        return refused(sent, "messages");
    }
    let item = case.value.as_array().map_or(case.value, |items| &items[0]);
    match item["type"].as_str() {
        Some("text") | None => {
            let text = at(sent, "/messages").to_string();
            need(text.contains(MARK), "the text", sent)
        }
        Some(_) => Ok(()),
    }
}
