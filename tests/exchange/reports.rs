//! Refusals of public reports, each of an upstream that refuses as long as it finds in a request
//! what it refuses.
//!
//! `tests/refusals/README.md` says where the reports come from.

use super::every_change::{CHANGE, Change, IMAGE, LONG_NAME, TALK};
use super::*;

/// Change that a report asks for: its name there, members of the client's request, keys of the
/// profile, and what is refused.
struct Asked(&'static str, &'static str, &'static str, fn(&Value) -> bool);

const LONG_DESCRIPTION: &str = concat!(r#"{"/tools/0/description": ""#, a_long_text!(), "\"}");
const MARKS: &str = r#"{"system": [{"type": "text", "text": "a"},
    {"type": "text", "text": "b", "cache_control": {"type": "ephemeral", "scope": "global"}}],
    "/messages/1/content/0/cache_control": {"type": "ephemeral"}}"#;
const HOSTED: &str = r#"{"/tools/1": {"type": "web_search_20250305", "name": "web_search"}}"#;
const FORCED: &str =
    r#"{"thinking": {"type": "enabled", "budget_tokens": 2000}, "tool_choice": {"type": "any"}}"#;
const THINKING: &str = r#"{"thinking": {"type": "enabled", "budget_tokens": 2000}}"#;
const CLEARING: &str =
    r#"{"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}"#;

/// Changes that the reports ask for.
const ASKED: &[Asked] = &[
    Asked("null content", "{}", "{}", |sent| sent["messages"][1]["content"].is_null()),
    Asked("thinking off", FORCED, r#"{"thinking_switch": "enable_thinking"}"#, |sent| {
        let is_on = |name: &str| !matches!(sent[name].as_str(), None | Some("none"));
        is_on("reasoning_effort") || sent["enable_thinking"] == true || !sent["thinking"].is_null()
    }),
    Asked("short ids", "{}", "{}", |sent| {
        sent.to_string().contains("call_0123456789abcdef0123456789abcdef")
    }),
    Asked("short ids of items", "{}", "{}", |sent| !sent["input"][1]["id"].is_null()),
    Asked("stream on", "{}", "{}", |sent| sent["stream"] != true),
    Asked("stream off", "{}", "{}", |sent| sent["stream"] == true),
    Asked("reasoning out", "{}", "{}", |sent| sent.to_string().contains(r#""hm""#)),
    Asked("names cut", LONG_NAME, r#"{"max_tool_name": 0}"#, |sent| {
        let name =
            |tool: &Value| tool.pointer("/function/name").unwrap_or_else(|| &tool["name"]).clone();
        let tools = sent["tools"].as_array().unwrap();
        tools.iter().any(|tool| name(tool).as_str().unwrap().len() > 64)
    }),
    Asked("blank reasoning", TALK, "{}", |sent| {
        let turn = &sent["messages"][1];
        turn["reasoning_content"].is_null() && turn["content"][0]["thinking"].is_null()
    }),
    Asked("texts as one string", "{}", "{}", |sent| sent["messages"][0]["content"].is_array()),
    Asked("tool_choice out", r#"{"tool_choice": {"type": "auto"}}"#, "{}", |sent| {
        !sent["tool_choice"].is_null()
    }),
    Asked("tools from history", r#"{"tools": []}"#, "{}", |sent| {
        let calls = ["tool_calls", "function_call", "tool_use"];
        let has_calls = calls.iter().any(|name| sent.to_string().contains(name));
        has_calls && sent["tools"].as_array().is_none_or(Vec::is_empty)
    }),
    Asked("parameter thinking out", THINKING, r#"{"thinking_switch": "thinking_type"}"#, |sent| {
        !sent["thinking"].is_null()
    }),
    Asked("parameter context_management out", CLEARING, "{}", |sent| {
        !sent["context_management"].is_null()
    }),
    Asked(
        "system message moved",
        r#"{"/messages/3": {"role": "system", "content": "Be short."}}"#,
        "{}",
        |sent| {
            sent["messages"].as_array().unwrap().iter().any(|message| message["role"] == "system")
        },
    ),
    Asked(
        "empty parameters filled",
        r#"{"/tools/0/input_schema": {"type": "object"}}"#,
        "{}",
        |sent| sent["tools"][0]["function"]["parameters"]["properties"].is_null(),
    ),
    Asked("descriptions cut", LONG_DESCRIPTION, "{}", |sent| {
        let told = |tool: &Value| {
            tool.pointer("/function/description").unwrap_or_else(|| &tool["description"]).clone()
        };
        sent["tools"]
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| told(tool).as_str().unwrap().len() > 1024)
    }),
    Asked("tools out", "{}", "{}", |sent| !sent["tools"].is_null()),
    Asked("parameter cache_control out", MARKS, "{}", |sent| {
        let scope = &sent["system"][1]["cache_control"]["scope"];
        !scope.is_null() && !sent["messages"][1]["content"][0]["cache_control"].is_null()
    }),
    Asked(
        "prefill as user words",
        r#"{"/messages/3": {"role": "assistant", "content": "It is"}}"#,
        "{}",
        |sent| sent["messages"].as_array().unwrap().last().unwrap()["role"] == "assistant",
    ),
    Asked("signature out", "{}", "{}", |sent| sent.to_string().contains("c2ln")),
    Asked(
        "foreign members of a block out",
        r#"{"/messages/1/content/1/text": "x"}"#,
        "{}",
        |sent| !sent["messages"][1]["content"][1]["text"].is_null(),
    ),
    Asked(
        "system messages joined",
        r#"{"system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}"#,
        "{}",
        |sent| {
            sent["messages"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|message| message["role"] == "system")
                .count()
                > 1
        },
    ),
    Asked("hosted tool out", HOSTED, "{}", |sent| {
        sent["tools"].as_array().unwrap().iter().any(|tool| tool["type"] != "function")
    }),
    Asked("tool_choice auto", r#"{"tool_choice": {"type": "any"}}"#, "{}", |sent| {
        sent["tool_choice"]["type"] == "any"
    }),
    Asked("image of a tool result out", IMAGE, r#"{"tool_content_parts": "images"}"#, |sent| {
        sent.to_string().contains("iVBORw0KGgo")
    }),
    Asked("image out", IMAGE, "{}", |sent| sent.to_string().contains("iVBORw0KGgo")),
    Asked("empty content filled", "{}", "{}", |sent| sent["messages"][1]["content"].is_null()),
    Asked("arguments mended", "{}", "{}", |sent| {
        let arguments = &sent["messages"][1]["tool_calls"][0]["function"]["arguments"];
        serde_json::from_str::<Value>(arguments.as_str().unwrap()).is_err()
    }),
];

/// Words that servers could say: the protocol, the change that they mean, and the words.
const WORDS: &[(&str, &str, &str)] = &[
    ("openai", "null content", "The messages[1].content field is required"),
    ("openai", "null content", "messages.1.content must be string"),
    ("openai", "null content", "'content' is a required property - 'messages.1'"),
    ("openai", "thinking off", "tool_choice is not supported when thinking is enabled"),
    ("openai", "thinking off", "enable_thinking is only available for other models"),
    ("openai", "short ids", "tool_call_id must match ^[a-zA-Z0-9]{9}$"),
    ("openai", "short ids", "Function call id must be alphanumeric, length 9"),
    ("openai", "stream on", "This model only supports streaming responses"),
    ("openai", "stream on", "Non-streaming requests are disabled"),
    ("openai", "stream on", "Please use stream mode"),
    ("openai", "stream off", "stream=true is not allowed for this endpoint"),
    ("openai", "stream off", "SSE is not supported"),
    ("anthropic", "reasoning out", "Invalid `signature` in `thinking` block"),
    (
        "anthropic",
        "reasoning out",
        "thinking blocks in the latest assistant message cannot be modified",
    ),
    ("openai", "names cut", "function name exceeds 64 characters"),
    ("responses", "names cut", "tools.1.name: string too long"),
    ("openai", "texts as one string", "Mismatch type string with value array at index 31"),
    ("openai", "texts as one string", "can only concatenate str (not \"list\") to str"),
    (
        "openai",
        "texts as one string",
        "cannot deserialize value of type `java.lang.String` from Array value",
    ),
    ("openai", "texts as one string", "Proto field is not repeating, cannot start list."),
    ("openai", "texts as one string", "message content of type array is not supported"),
    ("openai", "tools from history", "Requests which include tool blocks must define tools"),
    ("anthropic", "tools from history", "tools must be provided with tool_use blocks"),
    ("anthropic", "parameter context_management out", "Unknown field `context_management`"),
    ("anthropic", "parameter context_management out", "json: unknown field \"context_management\""),
];

/// Asks an upstream that refuses with these words. Nothing where it answers in the end, else what
/// was tried.
fn tried(protocol: &str, change: &str, refusal: &str, status: u16) -> Option<String> {
    let Some(asked) = ASKED.iter().find(|asked| asked.0 == change) else {
        return Some(format!("unknown: {change}"));
    };
    let Asked(name, has, profile, is_in) = asked;
    let refusal = with_places(refusal).leak();
    let change = Change { has, profile, refusal, status, ..CHANGE };
    let got = change.ask(protocol, *name == "stream off", "", is_in);
    (got.status != 200).then(|| format!("{} {}", got.asked.len(), got.warnings))
}

/// The reports whose upstream still refuses after all that is tried, with what was tried.
fn lost(rows: &str) -> Vec<(String, String)> {
    let rows = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lost = rows.filter_map(|row| {
        let text = |name: &str| row[name].as_str().unwrap();
        let protocol = match text("protocol") {
            "chat" => "openai",
            "messages" => "anthropic",
            protocol => protocol,
        };
        let status = row["status"].as_u64().map_or(400, |status| u16::try_from(status).unwrap());
        let change = match text("change") {
            "short ids" if text("body").contains("].id'") => "short ids of items",
            change => change,
        };
        let tried = tried(protocol, change, text("body"), status)?;
        Some((text("id").to_owned(), tried))
    });
    lost.collect()
}

/// A refusal with the positions of the request that is sent here.
fn with_places(refusal: &str) -> String {
    let mut out = String::new();
    for part in refusal.split_inclusive(['.', '[']) {
        let list = out.trim_end_matches(['.', '[']);
        let is_list = ["messages", "tools", "input"].iter().any(|name| list.ends_with(name));
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        match is_list && digits > 0 {
            true => out.extend(["1", &part[digits..]]),
            false => out.push_str(part),
        }
    }
    out
}

/// Reports whose upstream takes no tools at all, or wants what no change gives.
const LOST: [&str; 3] =
    ["openrouter-tool-role-normalize", "nim-auto-tool-choice", "deepseek-unknown-variant-system"];

/// Models without tools, one that wants the user to speak last, and a member of a call that nobody
/// sends.
const LOST_OF_SEALED: [&str; 4] =
    ["ollama-gemma-no-tools", "claude-no-prefill", "claude-tool-use-text", "ollama-qwen-no-tools"];

#[test]
fn what_public_reports_show_is_changed() {
    let lost = lost(include_str!("../refusals/shown.jsonl"));
    assert_eq!(lost.iter().map(|(id, _)| id).collect::<Vec<_>>(), LOST, "{lost:?}");
}

#[test]
fn what_sealed_reports_show_is_changed() {
    let lost = lost(include_str!("../refusals/sealed.jsonl"));
    assert_eq!(lost.iter().map(|(id, _)| id).collect::<Vec<_>>(), LOST_OF_SEALED, "{lost:?}");
}

#[test]
fn what_servers_could_say_is_understood() {
    let wrong: Vec<_> = WORDS
        .iter()
        .filter_map(|(protocol, change, words)| Some((words, tried(protocol, change, words, 400)?)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
