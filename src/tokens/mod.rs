//! Estimates of a request's input tokens. A careful estimate is for `count_tokens`; a quick one,
//! from byte counts, is for `message_start`, which needs a number before the upstream reports
//! usage.

pub(crate) mod counted;
mod letters;
pub(crate) mod parts;

use crate::history::server_tools as server_history;
use crate::json::{Raw, Str};
use crate::model::tool::ToolDefinition;
use crate::model::{Block, DocumentBlock, DocumentSource, Request, Role, ServerResultKind, Text};
use crate::observe::report::RequestCounts;

const PER_MESSAGE: u64 = 4;
const PER_TOOL: u64 = 12;
const PER_IMAGE: u64 = 1600;
/// Number of base64 bytes for one token: a page of a PDF is about 2,000 tokens and 100 kB.
const BASE64_BYTES_PER_TOKEN: u64 = 50;

/// Number of bytes of text for one token, times ten, for quick estimates.
const TENTHS_OF_BYTES_PER_TOKEN: u64 = 36;

/// Returns the estimated number of tokens in `bytes` bytes of text.
pub(crate) fn tokens_of(bytes: u64) -> u64 {
    bytes.saturating_mul(10).div_ceil(TENTHS_OF_BYTES_PER_TOKEN)
}

/// Counter of a request's tokens.
pub(crate) struct TokenCounter<'t> {
    texts: TextCounter<'t>,
    /// Number of tokens of all content that is not text, such as images.
    tokens: u64,
}

/// Method of counting texts, with the result so far.
enum TextCounter<'t> {
    /// Quick estimate of tokens, from the number of bytes of the texts.
    Bytes(u64),
    /// Careful estimate from the kinds of letters, in thousandths of a token.
    Letters(u64),
    /// Text collected for a later count by a tokenizer.
    Kept(&'t mut String),
}

/// Estimates the input tokens of a request quickly.
#[must_use]
pub(crate) fn estimate(request: &Request<'_>) -> u64 {
    TokenCounter::of(request, TextCounter::Bytes(0)).sum()
}

/// Estimates the input tokens of a request carefully, for a token counting request. The caller
/// [adds](Count::add) reasoning of earlier turns, because only the caller knows how much of that
/// reasoning is sent.
#[must_use]
pub(crate) fn estimate_carefully(request: &Request<'_>) -> TokenCounter<'static> {
    TokenCounter::of(request, TextCounter::Letters(0))
}

/// Returns all text of a request for a tokenizer, and the tokens of the other content. Reasoning of
/// earlier turns is left to the caller, who knows how much of that reasoning is sent.
#[must_use]
pub(crate) fn text(request: &Request<'_>) -> (String, u64) {
    let mut text = String::new();
    let tokens = TokenCounter::of(request, TextCounter::Kept(&mut text)).sum();
    (text, tokens)
}

/// Returns the numbers of messages, tools and tool results in a request; ids are counted elsewhere.
#[must_use]
pub(crate) fn counts(request: &Request<'_>) -> RequestCounts {
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
    RequestCounts {
        messages: count(request.messages.len()),
        tools: count(request.tools.len()),
        tool_results: count(results),
        new_results: count(new),
        ..RequestCounts::default()
    }
}

impl<'t> TokenCounter<'t> {
    fn of(request: &Request<'_>, texts: TextCounter<'t>) -> Self {
        let mut count = Self { texts, tokens: 0 };
        count.before_messages(&request.system, &request.tools);
        for message in &request.messages {
            count.message(&message.content);
        }
        count
    }

    fn before_messages(&mut self, system: &[Text<'_>], tools: &[ToolDefinition<'_>]) {
        for text in system {
            self.text(text.text);
        }
        for tool in tools {
            self.tokens = self.tokens.saturating_add(PER_TOOL);
            self.tool(tool);
        }
    }

    fn message(&mut self, content: &[Block<'_>]) {
        self.tokens = self.tokens.saturating_add(PER_MESSAGE);
        self.blocks(content);
    }

    /// Counts a text that is not in the request's body.
    pub(crate) fn add(&mut self, text: &str) {
        if !text.is_empty() {
            self.plain(text);
        }
    }

    /// Counts tokens of content that is not in the request's body.
    pub(crate) fn add_tokens(&mut self, tokens: u64) {
        self.tokens = self.tokens.saturating_add(tokens);
    }

    pub(crate) fn sum(&self) -> u64 {
        let text_tokens = match self.texts {
            TextCounter::Bytes(bytes) => tokens_of(bytes),
            TextCounter::Letters(thousandths) => thousandths.div_ceil(1000),
            TextCounter::Kept(_) => 0,
        };
        self.tokens.saturating_add(text_tokens)
    }

    fn text(&mut self, text: Str<'_>) {
        match &mut self.texts {
            TextCounter::Bytes(bytes) => *bytes = bytes.saturating_add(text.decoded_len() as u64),
            _ => self.plain(&text.decode()),
        }
    }

    fn json(&mut self, json: Raw<'_>) {
        match &mut self.texts {
            TextCounter::Bytes(bytes) => *bytes = bytes.saturating_add(json.compact_len() as u64),
            _ => {
                let mut compact = Vec::new();
                json.compact(&mut compact);
                self.plain(&String::from_utf8_lossy(&compact));
            }
        }
    }

    /// Counts a text without JSON escapes.
    fn plain(&mut self, text: &str) {
        match &mut self.texts {
            TextCounter::Bytes(bytes) => *bytes = bytes.saturating_add(text.len() as u64),
            TextCounter::Letters(known) => {
                *known = known.saturating_add(letters::thousandths(text))
            }
            TextCounter::Kept(all) => {
                all.push_str(text);
                all.push('\n');
            }
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
                Block::ServerToolUse(call) => {
                    self.text(call.name);
                    self.json(call.input);
                }
                Block::ServerToolResult(result) => {
                    let mut words = Vec::new();
                    server_history::push_result(&mut words, result.content);
                    if result.kind == ServerResultKind::WebSearch {
                        server_history::push_sealed_texts(&mut words, result.content);
                    }
                    self.plain(&String::from_utf8_lossy(&words));
                }
                Block::Compaction { content: Some(summary), .. } => self.text(*summary),
                // The caller counts reasoning of earlier turns, because only a part of it is sent.
                Block::Thinking { .. }
                | Block::RedactedThinking(_)
                | Block::Compaction { .. }
                | Block::ToolChange(_)
                | Block::ContainerUpload
                | Block::Note
                | Block::Unknown(_) => {}
            }
        }
    }

    fn document(&mut self, document: &DocumentBlock<'_>) {
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
            DocumentSource::Url(_) | DocumentSource::File => {}
        }
    }

    /// Counts a tool's name, description and schema; a Chat Completions tool is counted as a whole.
    fn tool(&mut self, tool: &ToolDefinition<'_>) {
        if let Some(function) = tool.rare().function {
            self.json(function);
            return;
        }
        self.plain(tool.name.as_deref().unwrap_or_default());
        self.text(tool.description.unwrap_or_default());
        self.json(tool.input_schema.unwrap_or_default());
        if let Some(tools) = tool.rare().mcp().tools {
            self.plain(tools);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::warning::Warnings;

    #[test]
    fn eighteen_bytes_of_text_are_five_tokens() {
        let body = r#"{"model":"m","system":"0123456789","messages":[
            {"role":"user","content":[{"type":"text","text":"a\nb"},{"type":"image","source":{"type":"url","url":"https://x"}}]},
            {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"w","input":{ "a": 1 }}]}],
            "tools":[{"name":"w","description":"dd","input_schema":{"type": "object"},"cache_control":{"type":"ephemeral"}}]}"#;
        let request = Request::read(body, &mut Warnings::new(false)).unwrap();
        // Bytes of text: 10 + 3 + 1 + 7 + 1 + 2 + 17 = 41, which are 11.4 tokens. The other
        // summands are for two messages, a tool and an image.
        assert_eq!(estimate(&request), 12 + 2 * 4 + 12 + 1600);
    }
}
