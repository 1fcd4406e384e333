//! An estimate of a request's input tokens (mapping A.10): for `count_tokens`, and for
//! `message_start`, which must name a number before the upstream has counted.

use super::messages::compact_len;
use super::server_history;
use crate::anthropic::{Block, Document, DocumentSource, Request};
use crate::json::{Kind, Reader, Str};

const PER_MESSAGE: u64 = 4;
const PER_TOOL: u64 = 12;
const PER_IMAGE: u64 = 1600;
/// A page of a PDF is about 2,000 tokens and 100 kB of base64.
const BASE64_BYTES_PER_TOKEN: u64 = 50;

#[derive(Default)]
struct Count {
    /// Bytes of text, 3.6 to a token.
    bytes: u64,
    tokens: u64,
    scratch: Vec<u8>,
}

/// Estimates the input tokens of a request.
#[must_use]
pub(super) fn estimate(request: &Request<'_>) -> u64 {
    let mut count = Count::default();
    for text in &request.system {
        count.text(text.text);
    }
    for message in &request.messages {
        count.tokens = count.tokens.saturating_add(PER_MESSAGE);
        count.blocks(&message.content);
    }
    for tool in &request.tool_texts {
        count.tokens = count.tokens.saturating_add(PER_TOOL);
        count.tool(tool);
    }
    // 3.6 bytes are 18/5.
    let text_tokens = count.bytes.saturating_mul(5).div_ceil(18);
    count.tokens.saturating_add(text_tokens)
}

impl Count {
    fn text(&mut self, text: Str<'_>) {
        self.bytes = self.bytes.saturating_add(decoded_len(text.raw()));
    }

    fn json(&mut self, json: &str) {
        let bytes = compact_len(json, &mut self.scratch);
        self.bytes = self.bytes.saturating_add(bytes as u64);
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
                    self.json(tabs);
                    self.json(changes);
                }
                Block::ServerToolUse { name, input } => {
                    self.text(*name);
                    self.json(input);
                }
                Block::ServerToolResult { content, .. } => {
                    self.scratch.clear();
                    server_history::push_result(&mut self.scratch, content);
                    self.bytes = self.bytes.saturating_add(self.scratch.len() as u64);
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

    /// A tool's name, description and schema; a tool of another shape as a whole.
    fn tool(&mut self, tool: &str) {
        let mut reader = Reader::new(tool, 128);
        if reader.begin_object().is_err() {
            return;
        }
        while let Ok(Some(key)) = reader.next_key() {
            let kind = reader.kind();
            match (key.decode().as_ref(), kind) {
                ("name" | "description", Ok(Kind::String)) => {
                    let Ok(text) = reader.string() else { return };
                    self.text(text);
                }
                ("input_schema" | "function", _) => {
                    let Ok(schema) = reader.skip() else { return };
                    self.json(schema);
                }
                _ => {
                    if reader.skip().is_err() {
                        return;
                    }
                }
            }
        }
    }
}

/// How long the text in a JSON string is, in bytes of UTF-8.
fn decoded_len(raw: &str) -> u64 {
    let mut length = raw.len();
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let escape = rest.get(at.saturating_add(1)..).unwrap_or_default();
        let (skipped, bytes) = match escape.strip_prefix('u') {
            None => (1, 1usize),
            Some(digits) => {
                let digits = digits.get(..4).unwrap_or("0");
                let bytes = match u32::from_str_radix(digits, 16).unwrap_or(0) {
                    ..0x80 => 1,
                    // Each half of a pair stands for two of its four bytes.
                    0x80..0x800 | 0xd800..0xe000 => 2,
                    _ => 3,
                };
                (5, bytes)
            }
        };
        length = length.saturating_sub(1).saturating_sub(skipped).saturating_add(bytes);
        rest = escape.get(skipped..).unwrap_or_default();
    }
    length as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warning::Warnings;
    use proptest::prelude::*;

    #[test]
    fn the_formula_is_that_of_the_specification() {
        let body = r#"{"model":"m","system":"0123456789","messages":[
            {"role":"user","content":[{"type":"text","text":"a\nb"},{"type":"image","source":{"type":"url","url":"https://x"}}]},
            {"role":"assistant","content":[{"type":"tool_use","id":"t","name":"w","input":{ "a": 1 }}]}],
            "tools":[{"name":"w","description":"dd","input_schema":{"type": "object"},"cache_control":{"type":"ephemeral"}}]}"#;
        let request = Request::read(body, 128, true, &mut Warnings::new(false)).unwrap();
        // 10 + 3 + 1 + 7 + 1 + 2 + 17 = 41 bytes are 11.4 tokens; two messages, a tool, an image.
        assert_eq!(estimate(&request), 12 + 2 * 4 + 12 + 1600);
    }

    proptest! {
        #[test]
        fn a_text_is_as_long_as_it_is_decoded(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(decoded_len(json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap()), text.len() as u64);
            let ascii: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            prop_assert_eq!(decoded_len(&ascii), text.len() as u64);
        }
    }
}
