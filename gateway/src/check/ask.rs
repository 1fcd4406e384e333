//! Requests of a check, and the reading of their responses.

use creole::json::{self, Reader, quoted};

use super::inside::ReceivedResponse;

/// Test image, as Base64: a red square of 64 pixels, because models have a minimum size.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAT0lEQVR42u3PQQkAAAgEsItw/dMZxQi+hcEKLNO+FgEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQGBywLQTQDx3uY1cQAAAABJRU5ErkJggg==";

/// Name of the tool that the model is asked to call.
pub(super) const TOOL: &str = "get_weather";

const TOOLS: &str = r#"[{"name":"get_weather","description":"The weather in a city now.","input_schema":{"type":"object","properties":{"city":{"type":"string","description":"The name of the city."}},"required":["city"]}}]"#;

const WEATHER: &str = "What is the weather in Paris? Call the tool get_weather.";

/// Maximum number of output tokens; models that think before they answer need many.
const TOKENS_MAX: u32 = 2048;

fn request(model: &str, more: &str, messages: &str) -> String {
    let model = quoted(model);
    format!(r#"{{"model":{model},"max_tokens":{TOKENS_MAX},{more}"messages":[{messages}]}}"#)
}

pub(super) fn answer(model: &str) -> String {
    let says = r#"{"role":"user","content":"Reply with one word: ready"}"#;
    request(model, "", says)
}

pub(super) fn stream(model: &str) -> String {
    let says = r#"{"role":"user","content":"Count from 1 to 20, with spaces between the numbers, and say nothing else."}"#;
    request(model, r#""stream":true,"#, says)
}

/// Returns a request for a tool call. If `is_forced` is true, the model must call a tool.
pub(super) fn call(model: &str, is_forced: bool) -> String {
    let choice = if is_forced { r#""tool_choice":{"type":"any"},"# } else { "" };
    let more = format!(r#""stream":true,"tools":{TOOLS},{choice}"#);
    request(model, &more, &format!(r#"{{"role":"user","content":"{WEATHER}"}}"#))
}

/// Returns a request with the result of a tool call, as agents send it.
pub(super) fn result(model: &str, call: &Call) -> String {
    let Call { id, input, .. } = call;
    let id = quoted(id);
    let messages = format!(
        r#"{{"role":"user","content":"{WEATHER}"}},{{"role":"assistant","content":[{{"type":"tool_use","id":{id},"name":"{TOOL}","input":{input}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":{id},"content":"Sunny, 21 degrees."}}]}}"#
    );
    request(model, &format!(r#""stream":true,"tools":{TOOLS},"#), &messages)
}

/// Returns a request with reasoning, as Claude Code sends it.
pub(super) fn reasoning(model: &str) -> String {
    let more = r#""stream":true,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},"#;
    let says = r#"{"role":"user","content":"How much is 17 times 23? Think first."}"#;
    request(model, more, says)
}

pub(super) fn image(model: &str) -> String {
    let source = format!(r#"{{"type":"base64","media_type":"image/png","data":"{PNG}"}}"#);
    let says = format!(
        r#"{{"role":"user","content":[{{"type":"image","source":{source}}},{{"type":"text","text":"Which colour is this picture? Reply with one word."}}]}}"#
    );
    request(model, "", &says)
}

pub(super) fn count(model: &str) -> String {
    let model = quoted(model);
    format!(
        r#"{{"model":{model},"messages":[{{"role":"user","content":"{WEATHER}"}}],"tools":{TOOLS}}}"#
    )
}

/// Returns a request for one web search, as Claude Code sends it.
pub(super) fn search(query: &str) -> String {
    let more = r#""tools":[{"type":"web_search_20250305","name":"web_search"}],"#;
    let says = quoted(&format!("Perform a web search for the query: {query}"));
    request("demo", more, &format!(r#"{{"role":"user","content":{says}}}"#))
}

/// Returns a request with the tools of an MCP server that the operator configured.
pub(super) fn mcp_tools(server: &str) -> String {
    let (name, url) = (quoted(server), quoted(&format!("mcp:{server}")));
    let servers = format!(r#"[{{"type":"url","name":{name},"url":{url}}}]"#);
    let tools = format!(r#"[{{"type":"mcp_toolset","mcp_server_name":{name}}}]"#);
    let more = format!(r#""mcp_servers":{servers},"tools":{tools},"#);
    request("demo", &more, r#"{"role":"user","content":"Hi"}"#)
}

/// A tool call in a model's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    /// Arguments of the tool call, as JSON.
    pub(super) input: String,
}

impl Call {
    /// Returns true if the model's tool call is the one that the prompt asked for.
    pub(super) fn is_right(&self) -> bool {
        let has_city = json::member(&self.input, "city").and_then(json::string).is_some();
        self.name == TOOL && has_city && Reader::of(&self.input).is_object()
    }
}

/// A model's answer, read as a client reads it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ModelReply {
    /// Error message that the client got instead of an answer.
    pub(super) error: Option<String>,
    pub(super) text: String,
    pub(super) has_thinking: bool,
    pub(super) calls: Vec<Call>,
    /// Stop reason of the model's answer; empty if no stop reason came.
    pub(super) stop_reason: String,
    /// Number of stream deltas with text or thinking.
    pub(super) pieces: usize,
}

impl ModelReply {
    pub(super) fn of(received: &ReceivedResponse) -> Self {
        let mut answer = Self::default();
        if received.status == 0 {
            answer.error = Some("no answer came in time".to_owned());
        } else if received.body.trim_start().starts_with('{') {
            answer.read_whole(&received.body);
        } else {
            for event in received.body.lines().filter_map(|line| line.strip_prefix("data:")) {
                answer.read_event(event.trim());
            }
        }
        if answer.error.is_none() && answer.stop_reason.is_empty() {
            answer.error = Some("the answer has no end".to_owned());
        }
        answer
    }

    fn read_whole(&mut self, body: &str) {
        if self.read_error(body) {
            return;
        }
        self.stop_reason = text(body, "stop_reason");
        for block in json::member(body, "content").map(json::elements).into_iter().flatten() {
            self.begin(block);
        }
    }

    fn read_error(&mut self, body: &str) -> bool {
        let error = json::member(body, "error");
        self.error = self.error.take().or_else(|| error.map(|error| text(error, "message")));
        error.is_some()
    }

    fn read_event(&mut self, event: &str) {
        let part = |name| json::member(event, name).unwrap_or_default();
        match text(event, "type").as_str() {
            "error" => {
                self.read_error(event);
            }
            "content_block_start" => {
                let block = part("content_block");
                self.begin(block);
                if let Some(call) =
                    self.calls.last_mut().filter(|_| text(block, "type") == "tool_use")
                {
                    // The input of a streamed tool call follows in later events.
                    call.input.clear();
                }
            }
            "content_block_delta" => {
                let delta = part("delta");
                match text(delta, "type").as_str() {
                    "text_delta" => self.text.push_str(&text(delta, "text")),
                    "thinking_delta" => self.has_thinking |= !text(delta, "thinking").is_empty(),
                    "input_json_delta" => {
                        if let Some(call) = self.calls.last_mut() {
                            call.input.push_str(&text(delta, "partial_json"));
                        }
                        return;
                    }
                    _ => return,
                }
                self.pieces = self.pieces.saturating_add(1);
            }
            "message_delta" => self.stop_reason = text(part("delta"), "stop_reason"),
            _ => {}
        }
    }

    /// Reads a whole content block of an answer, or the start of a streamed content block.
    fn begin(&mut self, block: &str) {
        match text(block, "type").as_str() {
            "text" => self.text.push_str(&text(block, "text")),
            "thinking" => self.has_thinking |= !text(block, "thinking").is_empty(),
            "tool_use" => self.calls.push(Call {
                id: text(block, "id"),
                name: text(block, "name"),
                input: json::member(block, "input").unwrap_or("{}").to_owned(),
            }),
            _ => {}
        }
    }
}

/// Returns the string member `name` of a JSON object; empty if the object has no such member.
fn text(object: &str, name: &str) -> String {
    let found = json::member(object, name).and_then(json::string);
    found.map(|text| text.decode().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
