//! Plan of the demo model's answer to a request: text, reasoning, calls, and finish reason. The
//! plan has no wire format.

use serde_json::{Map, Value, json};

use crate::pieces::tokens;
use crate::schema;
use crate::trigger::{self, ServerCall, Triggers};

/// Creation time in every answer, as Unix seconds. It is constant, so that the same request gives
/// the same bytes.
pub(crate) const CREATED: u64 = 1_764_000_000;

/// Content of an answer, before it is formatted for a protocol.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    /// Name of the reasoning field (`reasoning_content` or `reasoning`), and the reasoning text.
    pub(crate) reasoning: Option<(&'static str, String)>,
    pub(crate) text: String,
    pub(crate) refusal: Option<String>,
    pub(crate) calls: Vec<Call>,
    pub(crate) finish: &'static str,
    pub(crate) triggers: Triggers,
}

/// Tool call of a planned answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// True for a call of a custom tool, whose input is a text and not JSON.
    pub(crate) custom: bool,
}

/// Tool that the request offers.
struct Tool<'a> {
    name: &'a str,
    parameters: Option<&'a Value>,
    custom: bool,
}

/// State of the conversation: the user's task, and the tool calls and results since.
struct Turn<'a> {
    /// Text of the last user message that gives the task.
    task: String,
    /// Number of assistant messages with tool calls since the task.
    tool_turns: usize,
    /// Latest tool results, each with the name of its tool.
    results: Vec<(&'a str, String)>,
}

/// Plans the answer to a checked request. The answer's ids are derived from `seed`. `words` replace
/// the user's text, if given.
pub(crate) fn plan(
    body: &Map<String, Value>,
    seed: u64,
    words: Option<&str>,
) -> Result<Plan, String> {
    let none = Vec::new();
    let messages = body.get("messages").and_then(Value::as_array).unwrap_or(&none);
    let mut turn = turn(messages);
    if let Some(words) = words {
        (turn.task, turn.tool_turns) = (words.to_owned(), 0);
    }
    let triggers = Triggers::read(&turn.task)?;
    let tools = tools(body);
    let names = wanted_calls(body, &turn, &triggers, &tools);
    let mut plan = Plan {
        reasoning: reasoning(body, &triggers),
        text: String::new(),
        refusal: None,
        calls: calls(&names, &tools, &triggers, seed),
        finish: "stop",
        triggers,
    };
    if plan.triggers.refuse {
        plan.refusal = Some("The demo model was asked to refuse.".to_owned());
    } else if plan.calls.is_empty() {
        plan.text = text(body, &turn, &plan.triggers);
        cut_at_stop(&mut plan.text, body.get("stop"));
    } else {
        plan.finish = "tool_calls";
        plan.text = plan.triggers.say.clone().unwrap_or_default();
    }
    limit(&mut plan, body);
    Ok(plan)
}

fn turn(messages: &[Value]) -> Turn<'_> {
    let role = |message: &Value| {
        message.get("role").and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let mut task = String::new();
    let mut tool_turns = 0_usize;
    let mut results = Vec::new();
    let mut names: Vec<(&str, &str)> = Vec::new();
    let mut after_results = false;
    for message in messages {
        match role(message).as_str() {
            "user" => {
                let said = said(message);
                // Text that comes along with tool results (reminders of a client) is no new task.
                if !after_results || trigger::any(&said) {
                    (task, tool_turns) = (said, 0);
                    results.clear();
                }
            }
            "assistant" => {
                after_results = false;
                results.clear();
                let calls =
                    message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
                names = calls.filter_map(id_and_name).collect();
                tool_turns = tool_turns.saturating_add(usize::from(!names.is_empty()));
            }
            "tool" => {
                after_results = true;
                let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
                let name =
                    names.iter().find(|(known, _)| *known == id).map_or("", |(_, name)| name);
                results.push((name, said(message)));
            }
            _ => {}
        }
    }
    Turn { task, tool_turns, results }
}

fn id_and_name(call: &Value) -> Option<(&str, &str)> {
    let name = call.pointer("/function/name").or_else(|| call.pointer("/custom/name"))?;
    Some((call.get("id")?.as_str()?, name.as_str()?))
}

/// Returns the text of a message, with each part on a line of its own.
fn said(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn tools(body: &Map<String, Value>) -> Vec<Tool<'_>> {
    let tools = body.get("tools").and_then(Value::as_array).into_iter().flatten();
    tools
        .filter_map(|tool| match tool.get("custom") {
            Some(custom) => {
                let name = custom.get("name")?.as_str()?;
                Some(Tool { name, parameters: None, custom: true })
            }
            None => Some(Tool {
                name: tool.pointer("/function/name")?.as_str()?,
                parameters: tool.pointer("/function/parameters"),
                custom: false,
            }),
        })
        .collect()
}

/// Returns the names of the tools that this turn calls, in order.
fn wanted_calls<'a>(
    body: &'a Map<String, Value>,
    turn: &'a Turn<'_>,
    triggers: &'a Triggers,
    tools: &[Tool<'a>],
) -> Vec<&'a str> {
    let choice = body.get("tool_choice").filter(|choice| !choice.is_null());
    if choice.is_some_and(|choice| choice == "none") || triggers.refuse {
        return Vec::new();
    }
    let named = choice.and_then(|choice| {
        choice.pointer("/function/name").or_else(|| choice.pointer("/custom/name"))?.as_str()
    });
    let forced = choice.is_some_and(|choice| choice == "required" || choice == "any");
    let turns = triggers.turns.unwrap_or(1);
    let first = tools.first().map(|tool| tool.name);
    let base: Vec<&str> = if let Some(named) = named {
        vec![named]
    } else if !triggers.tools.is_empty() {
        triggers.tools.iter().map(String::as_str).collect()
    } else if let Some(call) = &triggers.server {
        server_tool(call, tools).into_iter().collect()
    } else {
        let mentioned: Vec<&str> =
            tools.iter().map(|tool| tool.name).filter(|name| mentions(&turn.task, name)).collect();
        let asked = triggers.parallel.is_some() || triggers.turns.is_some() || forced;
        match mentioned.as_slice() {
            [] if asked && triggers.parallel.is_some() => {
                tools.iter().map(|tool| tool.name).collect()
            }
            [] if asked => first.into_iter().collect(),
            _ => mentioned,
        }
    };
    if turn.tool_turns >= turns && !forced && named.is_none() {
        return Vec::new();
    }
    let alone = body.get("parallel_tool_calls") == Some(&Value::Bool(false));
    let count = if alone { 1 } else { triggers.parallel.unwrap_or(base.len()) };
    base.iter().copied().cycle().take(if base.is_empty() { 0 } else { count.min(128) }).collect()
}

/// Returns the name of the function that stands for a server tool, if the request offers one.
fn server_tool<'a>(call: &ServerCall, tools: &[Tool<'a>]) -> Option<&'a str> {
    // The second name is that of Claude Code's own tool, which searches by a request of its own.
    let is_wanted = |name: &&str| match call {
        ServerCall::Search(_) => matches!(*name, "web_search" | "WebSearch"),
        ServerCall::Fetch(_) => *name == "web_fetch",
        ServerCall::Mcp => name.starts_with("mcp__"),
    };
    tools.iter().map(|tool| tool.name).find(is_wanted)
}

/// Returns the input of a server tool's call, if the trigger has one.
fn server_input(triggers: &Triggers) -> Option<String> {
    match triggers.server.as_ref()? {
        ServerCall::Search(query) => Some(json!({"query": query}).to_string()),
        ServerCall::Fetch(url) => Some(json!({"url": url}).to_string()),
        ServerCall::Mcp => None,
    }
}

/// Returns true if a text contains a tool's exact name as a word. Names that are common words count
/// only in backticks: a coding agent's `Read` or `Bash` must not be called by a plain sentence.
fn mentions(text: &str, name: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if text.contains(&format!("`{name}`")) {
        return true;
    }
    name.contains(['_', '-']) && text.split(|c| !is_name(c)).any(|word| word == name)
}

fn calls(names: &[&str], tools: &[Tool<'_>], triggers: &Triggers, seed: u64) -> Vec<Call> {
    let call = |(nth, name): (usize, &&str)| {
        let tool = tools.iter().find(|tool| tool.name == *name);
        let custom = tool.is_some_and(|tool| tool.custom);
        let input = triggers.inputs.get(nth).or_else(|| triggers.inputs.last()).cloned();
        let input = input.or_else(|| server_input(triggers));
        let arguments = match (input, tool.and_then(|tool| tool.parameters)) {
            (Some(input), _) => input,
            (None, Some(schema)) => schema::sample(schema).to_string(),
            (None, None) if custom => "example".to_owned(),
            (None, None) => "{}".to_owned(),
        };
        let id = triggers.id.clone().unwrap_or_else(|| id("call_", seed, nth));
        Call { id, name: (*name).to_owned(), arguments, custom }
    };
    names.iter().enumerate().map(call).collect()
}

/// Returns a hash of `bytes` (FNV-1a), so that equal bytes give equal ids.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Returns the token count that the answer reports for a request: a quarter of the request's bytes.
pub(crate) fn input_tokens(body: &[u8]) -> usize {
    body.len().div_ceil(4)
}

/// Interleaves lists: takes one element of each list in turn.
pub(crate) fn in_turn<T>(lists: Vec<Vec<T>>) -> Vec<T> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    loop {
        let before = all.len();
        all.extend(lists.iter_mut().filter_map(Iterator::next));
        if all.len() == before {
            return all;
        }
    }
}

/// Length of an id without its prefix, in characters.
pub(crate) const NAME_LENGTH: usize = 24;

/// Returns an id of 24 letters and digits after its prefix, always the same for the same seed.
pub(crate) fn id(prefix: &str, seed: u64, nth: usize) -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut state =
        seed.wrapping_add(u64::try_from(nth).unwrap_or(0).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut id = prefix.to_owned();
    for _ in 0..NAME_LENGTH {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = usize::try_from((state >> 33) % 62).unwrap_or(0);
        id.push(LETTERS.get(at).map_or('0', |letter| char::from(*letter)));
    }
    id
}

fn reasoning(body: &Map<String, Value>, triggers: &Triggers) -> Option<(&'static str, String)> {
    let effort = body.get("reasoning_effort").and_then(Value::as_str).is_some_and(|e| e != "none");
    let inside = |field: &str, key: &str| body.get(field).and_then(|value| value.get(key));
    let switched = inside("thinking", "type").is_some_and(|kind| kind == "enabled")
        || inside("chat_template_kwargs", "enable_thinking") == Some(&Value::Bool(true));
    let field = match triggers.reason.as_deref() {
        Some("reasoning") => "reasoning",
        Some(_) => "reasoning_content",
        None if effort || switched => "reasoning_content",
        None => return None,
    };
    Some((field, "The user wants an answer. A short one will do.".to_owned()))
}

fn text(body: &Map<String, Value>, turn: &Turn<'_>, triggers: &Triggers) -> String {
    if let Some(bytes) = triggers.big {
        return "demo ".chars().cycle().take(bytes).collect();
    }
    if let Some(say) = &triggers.say {
        return say.clone();
    }
    match body.get("response_format").and_then(|format| format.get("type")?.as_str()) {
        Some("json_schema") => {
            let schema = body.get("response_format").and_then(|f| f.pointer("/json_schema/schema"));
            return schema::sample(schema.unwrap_or(&Value::Null)).to_string();
        }
        Some("json_object") => return r#"{"answer": "demo"}"#.to_owned(),
        _ => {}
    }
    if !turn.results.is_empty() {
        let quotes = turn.results.iter().map(|(name, result)| {
            let name = if name.is_empty() { "tool" } else { name };
            format!("{name} answered: {}", short(result))
        });
        return quotes.collect::<Vec<_>>().join("\n");
    }
    let mut text = format!("Hello from the demo model. You said: {}", short(&turn.task));
    for attachment in attachments(body) {
        text.push_str("\nYou sent: ");
        text.push_str(&attachment);
    }
    text
}

/// Returns descriptions of the images, sounds and files in the last user message.
fn attachments(body: &Map<String, Value>) -> Vec<String> {
    let messages = body.get("messages").and_then(Value::as_array);
    let last = messages
        .into_iter()
        .flatten()
        .rev()
        .find(|message| message.get("role").and_then(Value::as_str) == Some("user"));
    let parts = last.and_then(|last| last.get("content")).and_then(Value::as_array);
    let describe = |part: &Value| {
        let kind = part.get("type")?.as_str()?;
        let what = match kind {
            "image_url" => part.pointer("/image_url/url")?.as_str()?,
            "file" => {
                let data =
                    part.pointer("/file/file_data").or_else(|| part.pointer("/file/file_id"))?;
                data.as_str()?
            }
            "input_audio" => part.pointer("/input_audio/data")?.as_str()?,
            _ => return None,
        };
        let head = what.split_once(',').map_or(what, |(head, _)| head);
        Some(format!(
            "{kind} {} ({} characters)",
            head.chars().take(80).collect::<String>(),
            what.len()
        ))
    };
    parts.into_iter().flatten().filter_map(describe).collect()
}

fn short(text: &str) -> String {
    const MOST: usize = 400;
    let mut short: String = text.chars().take(MOST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Cuts the answer's text before the first stop sequence, as the original API does.
fn cut_at_stop(text: &mut String, stop: Option<&Value>) {
    let stops: Vec<&str> = match stop {
        Some(Value::String(stop)) => vec![stop],
        Some(Value::Array(stops)) => stops.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let first =
        stops.iter().filter(|stop| !stop.is_empty()).filter_map(|stop| text.find(stop)).min();
    if let Some(at) = first {
        text.truncate(at);
    }
}

/// Applies the request's output limit, and the finish reason that a trigger chose.
fn limit(plan: &mut Plan, body: &Map<String, Value>) {
    let most =
        ["max_completion_tokens", "max_tokens"].iter().find_map(|name| body.get(*name)?.as_u64());
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let pieces = tokens(&plan.text);
    let kept = if plan.triggers.length { pieces.len().div_ceil(2) } else { most };
    // The limit cuts text. Calls are cut only on demand, because a call with incomplete JSON is a
    // separate test case.
    if kept < pieces.len() && plan.triggers.big.is_none() {
        plan.text = pieces.iter().take(kept).copied().collect();
        plan.finish = "length";
    }
    if plan.triggers.length {
        plan.finish = "length";
        if let Some(call) = plan.calls.last_mut() {
            let half = call.arguments.chars().count().div_euclid(2);
            call.arguments = call.arguments.chars().take(half).collect();
        }
    }
    if plan.triggers.filter {
        plan.finish = "content_filter";
    }
}
