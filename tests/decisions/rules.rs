//! Rules for the places where mapped fields arrive: one for each field, or for each group of fields
//! that the decisions treat alike.

use serde_json::{Value, json};

use crate::blocks::{
    block, browser_state, cache_control, cache_mark, server_history, thinking_block,
};
use crate::spec::{Field, MARK, NUMBER};
use crate::support::drive;
use crate::tools::{
    allowed_callers, custom_tool, defer_loading, tool_change, tool_choice, toolset, toolset_member,
    typed_tool,
};
use crate::{Run, Way, run};

/// Test case of one field with one value.
pub struct Case<'a> {
    /// The type; the twin that clients send, where there is one.
    pub name: &'a str,
    pub field: &'a str,
    pub facts: &'a Field,
    /// The field that holds the instance.
    pub member: &'a str,
    pub value: &'a Value,
    pub request: &'a Value,
    /// The request with another value of the field.
    pub with: &'a dyn Fn(&Value) -> Value,
    /// The request without the field.
    pub without: &'a dyn Fn() -> Value,
}

pub type Verdict = Result<(), String>;

/// Fields whose note demands another fate than the word of the decision.
pub fn exception<'a>(
    name: &str,
    field: &str,
    value: &Value,
    fate: &'a str,
) -> (&'a str, Option<&'static str>) {
    match (name, field) {
        (_, "edits" | "context_management") if value.to_string().contains("compact_20260112") => {
            ("rejected", Some("Creole summarises no conversation"))
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

/// Adds the members that an instance needs beside the field under test.
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

pub fn need(holds: bool, what: &str, run: &Run) -> Verdict {
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
pub fn at(run: &Run, pointer: &str) -> Value {
    run.sent.as_ref().and_then(|sent| sent.pointer(pointer)).cloned().unwrap_or_default()
}

pub fn is(run: &Run, pointer: &str, value: impl Into<Value>) -> Verdict {
    let value = value.into();
    need(at(run, pointer) == value, &format!("{pointer} = {value}"), run)
}

/// Returns all texts of the messages of one role, joined.
pub fn said(run: &Run, role: &str) -> String {
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

pub fn says(run: &Run, role: &str, part: &str) -> Verdict {
    need(said(run, role).contains(part), &format!("{part:?} in what {role} says"), run)
}

/// Parts of one type in the messages of the user.
pub fn parts(run: &Run, kind: &str) -> Vec<Value> {
    let messages = at(run, "/messages");
    let contents = messages.as_array().into_iter().flatten().map(|message| &message["content"]);
    contents
        .flat_map(|content| content.as_array().into_iter().flatten())
        .filter(|part| part["type"] == kind)
        .cloned()
        .collect()
}

/// The calls of the assistant.
pub fn calls(run: &Run) -> Vec<Value> {
    let messages = at(run, "/messages");
    let all = messages.as_array().into_iter().flatten();
    all.flat_map(|message| message["tool_calls"].as_array().into_iter().flatten())
        .cloned()
        .collect()
}

pub fn function(run: &Run, name: &str) -> Option<Value> {
    let tools = at(run, "/tools");
    let mut all = tools.as_array().into_iter().flatten().map(|tool| &tool["function"]);
    all.find(|function| function["name"] == name).cloned()
}

/// The function that is not there for the test's own sake.
pub fn tested(run: &Run) -> Value {
    let tools = at(run, "/tools");
    let mut all = tools.as_array().into_iter().flatten().map(|tool| &tool["function"]);
    all.find(|function| function["name"] != "base" && function["name"] != "loaded")
        .cloned()
        .unwrap_or_default()
}

pub fn no_loss(run: &Run) -> Verdict {
    need(run.dropped().is_empty(), "no warning of a loss", run)
}

pub fn same_body(case: &Case<'_>, way: &Way) -> Verdict {
    let (with, without) = (run(case.request, way), run(&(case.without)(), way));
    need(with.sent.is_some() && with.sent == without.sent, "the body without the field", &with)?;
    no_loss(&with)
}

pub fn refused(run: &Run, name: &str) -> Verdict {
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
    if note == "tool left out until it is referred to" {
        return defer_loading(case);
    }
    if note == "edits of the context" {
        return context_edit(case);
    }
    if case.facts.to == "prompt_cache_breakpoint" {
        return cache_mark(case);
    }
    if case.facts.to == "cache_control" {
        return cache_control(case);
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

/// Checks that an edit that clears nothing changes nothing, and passes in strict mode too.
fn context_edit(case: &Case<'_>) -> Verdict {
    let plain = run(&(case.without)(), &Way::default());
    for way in [Way::default(), Way::strict()] {
        let sent = run(case.request, &way);
        let same = sent.sent.is_some() && (sent.sent == plain.sent || case.facts.required);
        need(same && sent.dropped().is_empty(), "the body without the edit", &sent)?;
    }
    Ok(())
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
