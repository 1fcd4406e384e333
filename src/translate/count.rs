//! An estimate of a request's input tokens: a careful one for `count_tokens`, and a quick one, from
//! bytes alone, for `message_start`, which must name a number before the upstream has counted.

use super::{server_history, tokens, usage};
use crate::anthropic::tool::ToolDefinition;
use crate::anthropic::{Block, Document, DocumentSource, Request, Role};
use crate::asked::Shape;
use crate::json::{Raw, Str};

const PER_MESSAGE: u64 = 4;
const PER_TOOL: u64 = 12;
const PER_IMAGE: u64 = 1600;
/// A page of a PDF is about 2,000 tokens and 100 kB of base64.
const BASE64_BYTES_PER_TOKEN: u64 = 50;

#[derive(Default)]
struct Count {
    /// Texts are looked at, letter by letter.
    careful: bool,
    /// Bytes of text.
    bytes: u64,
    /// Thousandths of tokens in text.
    thousandths: u64,
    tokens: u64,
    /// For a tokenizer: all text, which is then not counted here.
    text: Option<String>,
}

/// Estimates the input tokens of a request, quickly.
#[must_use]
pub(super) fn estimate(request: &Request<'_>) -> u64 {
    Count::default().request(request)
}

/// Estimates the input tokens of a request for a client that asks for nothing else.
#[must_use]
pub(super) fn estimate_carefully(request: &Request<'_>) -> u64 {
    Count { careful: true, ..Count::default() }.request(request)
}

/// All text of a request, for a tokenizer, and the tokens that the text does not show.
#[must_use]
pub(super) fn text(request: &Request<'_>) -> (String, u64) {
    let text = Some(String::new());
    let mut count = Count { careful: true, text, ..Count::default() };
    count.add_request(request);
    (count.text.unwrap_or_default(), count.tokens)
}

/// How much of what there is in a request; ids are counted elsewhere.
#[must_use]
pub(super) fn shape(request: &Request<'_>) -> Shape {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let (mut results, mut new) = (0usize, 0usize);
    for message in &request.messages {
        if message.role == Role::Assistant {
            new = 0;
        }
        let is_result = |block: &&Block<'_>| matches!(block, Block::ToolResult(_));
        let found = message.content.iter().filter(is_result).count();
        results = results.saturating_add(found);
        new = new.saturating_add(found);
    }
    Shape {
        messages: count(request.messages.len()),
        tools: count(request.tools.len()),
        tool_results: count(results),
        new_results: count(new),
        ..Shape::default()
    }
}

impl Count {
    fn request(mut self, request: &Request<'_>) -> u64 {
        self.add_request(request);
        let text_tokens = usage::tokens_of(self.bytes);
        self.tokens.saturating_add(text_tokens).saturating_add(self.thousandths.div_ceil(1000))
    }

    fn add_request(&mut self, request: &Request<'_>) {
        for text in &request.system {
            self.text(text.text);
        }
        for message in &request.messages {
            self.tokens = self.tokens.saturating_add(PER_MESSAGE);
            self.blocks(&message.content);
        }
        for tool in &request.tools {
            self.tokens = self.tokens.saturating_add(PER_TOOL);
            self.tool(tool);
        }
    }

    fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    fn add_carefully(&mut self, text: &str) {
        if let Some(all) = &mut self.text {
            all.push_str(text);
            all.push('\n');
            return;
        }
        self.thousandths = self.thousandths.saturating_add(tokens::thousandths(text));
    }

    fn text(&mut self, text: Str<'_>) {
        if self.careful {
            self.add_carefully(&text.decode());
        } else {
            self.add(text.decoded_len());
        }
    }

    fn json(&mut self, json: Raw<'_>) {
        if self.careful {
            let mut compact = Vec::new();
            json.compact(&mut compact);
            self.add_carefully(&String::from_utf8_lossy(&compact));
        } else {
            self.add(json.compact_len());
        }
    }

    fn blocks(&mut self, blocks: &[Block<'_>]) {
        for block in blocks {
            match block {
                Block::Text(text) => self.text(text.text),
                Block::Image(_) => self.tokens = self.tokens.saturating_add(PER_IMAGE),
                Block::Document(document) => self.document(document),
                Block::SearchResult(result) => {
                    self.text(result.title);
                    self.text(result.source);
                    self.blocks(&result.content);
                }
                Block::ToolUse(call) => {
                    self.text(call.name);
                    self.json(call.input);
                }
                Block::ToolResult(result) => self.blocks(&result.content),
                Block::ToolReference(name) => self.text(*name),
                Block::BrowserState { tabs, changes } => {
                    self.json(Raw::of(tabs));
                    self.json(Raw::of(changes));
                }
                Block::ServerToolUse { name, input } => {
                    self.text(*name);
                    self.json(Raw::of(input));
                }
                Block::ServerToolResult { content, .. } => {
                    let mut words = Vec::new();
                    server_history::push_result(&mut words, content);
                    if self.careful {
                        self.add_carefully(&String::from_utf8_lossy(&words));
                    } else {
                        self.add(words.len());
                    }
                }
                Block::Compaction { content: Some(summary), .. } => self.text(*summary),
                // Reasoning of earlier turns is not billed as input.
                Block::Thinking { .. }
                | Block::RedactedThinking
                | Block::Compaction { .. }
                | Block::ToolChange(_)
                | Block::ContainerUpload
                | Block::Note
                | Block::Unknown(_) => {}
            }
        }
    }

    fn document(&mut self, document: &Document<'_>) {
        for text in [document.title, document.context].into_iter().flatten() {
            self.text(text);
        }
        match &document.source {
            DocumentSource::Text(text) => self.text(*text),
            DocumentSource::Content(blocks) => self.blocks(blocks),
            DocumentSource::Base64 { data, .. } => {
                let tokens = (data.raw().len() as u64).div_ceil(BASE64_BYTES_PER_TOKEN);
                self.tokens = self.tokens.saturating_add(tokens);
            }
            DocumentSource::Url | DocumentSource::File => {}
        }
    }

    /// A tool's name, description and schema; a Chat Completions tool as a whole.
    fn tool(&mut self, tool: &ToolDefinition<'_>) {
        if let Some(function) = tool.function {
            self.json(function);
            return;
        }
        let name = tool.name.as_deref().unwrap_or_default();
        if self.careful {
            self.add_carefully(name);
        } else {
            self.add(name.len());
        }
        self.text(tool.description.unwrap_or_default());
        self.json(tool.input_schema.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warning::Warnings;

    #[test]
    fn eighteen_bytes_of_text_are_five_tokens() {
        let body = r#"{"model":"m","system":"0123456789","messages":[
            {"role":"user","content":[{"type":"text","text":"a\nb"},{"type":"image","source":{"type":"url","url":"https://x"}}]},
            {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"w","input":{ "a": 1 }}]}],
            "tools":[{"name":"w","description":"dd","input_schema":{"type": "object"},"cache_control":{"type":"ephemeral"}}]}"#;
        let request = Request::read(body, 128, &mut Warnings::new(false)).unwrap();
        // 10 + 3 + 1 + 7 + 1 + 2 + 17 = 41 bytes are 11.4 tokens; two messages, a tool, an image.
        assert_eq!(estimate(&request), 12 + 2 * 4 + 12 + 1600);
    }
}
