//! The rules for content blocks, and for what they hold.

use serde_json::{Value, json};

use crate::rules::{
    Case, Verdict, at, calls, function, is, need, no_loss, parts, refused, said, says,
};
use crate::spec::{MARK, NUMBER};
use crate::tools::tool_change;
use crate::{Run, Way, run};

pub fn thinking_block(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::profile("vllm"));
    sent.body()?;
    no_loss(&sent)?;
    let text = if case.field == "thinking" { MARK } else { "plain" };
    let messages = at(&sent, "/messages");
    let mut all = messages.as_array().into_iter().flatten();
    // The signature says that the text came in `reasoning`.
    need(all.any(|message| message["reasoning"] == text), "the reasoning in its field", &sent)
}

pub fn cache_mark(case: &Case<'_>) -> Verdict {
    let way =
        Way::overrides("openai-chat", json!({"cache_breakpoints": "prompt_cache_breakpoint"}));
    let sent = run(case.request, &way);
    let text = at(&sent, "/messages").to_string();
    need(text.contains("\"prompt_cache_breakpoint\":{\"mode\":\"explicit\"}"), "a mark", &sent)?;
    let plain = run(case.request, &Way::default());
    need(!at(&plain, "").to_string().contains("cache"), "no mark unless it is asked for", &plain)?;
    no_loss(&plain)
}

/// A mark, or a part of it, that only upstreams get that read `cache_control` itself.
pub fn cache_control(case: &Case<'_>) -> Verdict {
    let sent = run(case.request, &Way::profile("openrouter"));
    let body = at(&sent, "").to_string();
    need(body.contains("\"cache_control\":{"), "a mark", &sent)?;
    if case.field == "ttl" {
        need(body.contains(&format!("\"ttl\":{}", case.value)), "its time", &sent)?;
    }
    for way in [
        Way::default(),
        Way::overrides("openai-chat", json!({"cache_breakpoints": "prompt_cache_breakpoint"})),
    ] {
        let other = run(case.request, &way);
        need(!at(&other, "").to_string().contains("cache_control"), "no mark for others", &other)?;
    }
    let plain = run(case.request, &Way::default());
    no_loss(&plain)
}

/// Checks that the readable parts of a server tool's use become text; ids and encrypted parts do
/// not.
pub fn server_history(case: &Case<'_>) -> Verdict {
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

pub fn browser_state(case: &Case<'_>) -> Verdict {
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
pub fn block(case: &Case<'_>) -> Verdict {
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
                    let input = case.value.to_string();
                    need(text == input, "its input", &sent)
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
