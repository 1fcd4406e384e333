//! What the client gets: events as they happen, or one message at the end.
//!
//! The machine calls the same functions in the same order for both, so a stream always adds up to
//! the message that the same answer gives without one.

use super::counts::Counts;
use super::frame::{self, Stop};
use crate::ids::Ids;
use crate::json;

/// A sign of life.
pub(crate) const PING: &[u8] = b"event: ping\ndata: {\"type\":\"ping\"}\n\n";

/// What the client gets.
#[derive(Debug)]
pub(super) enum Sink {
    /// Events. `index` is that of the open block, or of the next.
    Events { index: u64 },
    /// One message; `content` is what stands between the brackets.
    Message { content: Vec<u8> },
}

/// A tool call, as its block begins.
#[derive(Debug)]
pub(super) struct ToolUse<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) toolset: Option<&'static str>,
}

impl Sink {
    pub(super) fn new(stream: bool) -> Self {
        if stream { Self::Events { index: 0 } } else { Self::Message { content: Vec::new() } }
    }

    /// The message begins. The ping lets a client know early that the connection works. Minting its id takes time, so
    /// it is done where the client gets it.
    pub(super) fn start(&mut self, ids: Ids, model: &str, input_tokens: u64, out: &mut Vec<u8>) {
        if let Self::Events { .. } = self {
            out.extend_from_slice(b"event: message_start\ndata: ");
            frame::write_message_start(&ids.message(), model, input_tokens, out);
            out.extend_from_slice(b"\n\n");
            out.extend_from_slice(PING);
        }
    }

    pub(super) fn open_text(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Events { index } => {
                open(*index, out);
                out.extend_from_slice(b"{\"type\":\"text\",\"text\":\"\"}}\n\n");
            }
            Self::Message { content } => {
                next(content);
                content.extend_from_slice(b"{\"type\":\"text\",\"text\":\"");
            }
        }
    }

    /// More of a text; `raw` is escaped.
    pub(super) fn text(&mut self, raw: &str, out: &mut Vec<u8>) {
        match self {
            Self::Events { index } => {
                delta(*index, b",\"delta\":{\"type\":\"text_delta\",\"text\":\"", out);
                json::push_whole(out, raw);
                out.extend_from_slice(b"\"}}\n\n");
            }
            Self::Message { content } => json::push_whole(content, raw),
        }
    }

    pub(super) fn close_text(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Events { .. } => self.close(out),
            Self::Message { content } => content.extend_from_slice(b"\"}"),
        }
    }

    pub(super) fn open_thinking(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Events { index } => {
                open(*index, out);
                out.extend_from_slice(
                    b"{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
                );
            }
            Self::Message { content } => {
                next(content);
                content.extend_from_slice(b"{\"type\":\"thinking\",\"thinking\":\"");
            }
        }
    }

    /// More of a reasoning; `raw` is escaped.
    pub(super) fn thinking(&mut self, raw: &str, out: &mut Vec<u8>) {
        match self {
            Self::Events { index } => {
                delta(*index, b",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"", out);
                json::push_whole(out, raw);
                out.extend_from_slice(b"\"}}\n\n");
            }
            Self::Message { content } => json::push_whole(content, raw),
        }
    }

    pub(super) fn close_thinking(&mut self, signature: &str, out: &mut Vec<u8>) {
        match self {
            Self::Events { index } => {
                delta(*index, b",\"delta\":{\"type\":\"signature_delta\",\"signature\":", out);
                json::quote(out, signature);
                out.extend_from_slice(b"}}\n\n");
                self.close(out);
            }
            Self::Message { content } => {
                content.extend_from_slice(b"\",\"signature\":");
                json::quote(content, signature);
                content.push(b'}');
            }
        }
    }

    /// A call begins. In events, `input` is `{}` and its one copy follows as deltas: some clients
    /// ignore the one, some the other, and one adds them together.
    pub(super) fn open_tool(&mut self, tool: &ToolUse<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Events { index } => {
                open(*index, out);
                tool_head(tool, out);
                out.extend_from_slice(b",\"input\":{}");
                tool_caller(tool, out);
                out.extend_from_slice(b"}}\n\n");
            }
            Self::Message { content } => {
                next(content);
                tool_head(tool, content);
                tool_caller(tool, content);
                content.extend_from_slice(b",\"input\":");
            }
        }
    }

    /// More of an input: JSON text, not escaped. A message takes it in one piece.
    pub(super) fn input(&mut self, text: &str, out: &mut Vec<u8>) {
        match self {
            Self::Events { .. } if text.is_empty() => {}
            Self::Events { index } => {
                delta(*index, b",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":", out);
                json::quote(out, text);
                out.extend_from_slice(b"}}\n\n");
            }
            Self::Message { content } => content.extend_from_slice(text.as_bytes()),
        }
    }

    pub(super) fn close_tool(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Events { .. } => self.close(out),
            Self::Message { content } => content.push(b'}'),
        }
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Self::Events { index } = self {
            out.extend_from_slice(
                b"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":",
            );
            json::push_u64(out, *index);
            out.extend_from_slice(b"}\n\n");
            *index = index.saturating_add(1);
        }
    }

    /// The message is complete.
    pub(super) fn finish(
        &mut self,
        ids: Ids,
        model: &str,
        stop: &Stop<'_>,
        counts: &Counts,
        service_tier: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        match self {
            Self::Events { .. } => {
                out.extend_from_slice(b"event: message_delta\ndata: ");
                frame::write_message_delta(stop, counts, out);
                out.extend_from_slice(
                    b"\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
                );
            }
            Self::Message { content } => {
                let id = ids.message();
                frame::write_message(&id, model, content, stop, counts, service_tier, out);
                *content = Vec::new();
            }
        }
    }

    /// Bytes that are kept until the end.
    pub(super) fn held_bytes(&self) -> usize {
        match self {
            Self::Events { .. } => 0,
            Self::Message { content } => content.len(),
        }
    }
}

fn open(index: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(
        b"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":",
    );
    json::push_u64(out, index);
    out.extend_from_slice(b",\"content_block\":");
}

/// The event up to what is new. `start` is the name of the member and as much of it as is known.
fn delta(index: u64, start: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(
        b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":",
    );
    json::push_u64(out, index);
    out.extend_from_slice(start);
}

fn next(content: &mut Vec<u8>) {
    if !content.is_empty() {
        content.push(b',');
    }
}

fn tool_head(tool: &ToolUse<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
    json::quote(out, tool.id);
    out.extend_from_slice(b",\"name\":");
    json::quote(out, tool.name);
}

fn tool_caller(tool: &ToolUse<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"caller\":{\"type\":\"direct\"}");
    if let Some(toolset) = tool.toolset {
        out.extend_from_slice(b",\"toolset_name\":");
        json::quote(out, toolset);
    }
}
