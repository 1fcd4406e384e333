//! Answers in the Messages API: as a stream of events, or as one message at the end.
//!
//! The two forms are written from the same events of the model in the same order, so a stream
//! always adds up to the message that the same answer gives without a stream.

mod frame;
mod server_tools;

use crate::answer::{AnswerWriter, WriterPhase};
use crate::ids::Ids;
use crate::json;
use crate::model::event::{CallKind, CallStart, Event, Stop};
use crate::model::search::Citation;

/// `ping` event, which keeps a connection alive.
pub(crate) const PING: &[u8] = b"event: ping\ndata: {\"type\":\"ping\"}\n\n";

/// Writer of one answer in the Messages API.
#[derive(Debug)]
pub(crate) struct MessagesWriter {
    ids: Ids,
    phase: WriterPhase,
    form: AnswerForm,
    block: OpenBlock,
    /// Citations of the open text block, if the client gets one message.
    citations: Vec<u8>,
    /// Beginning of the current round.
    round: RoundStart,
}

/// State of a writer at the beginning of a round, to which a failed round returns.
#[derive(Clone, Copy, Debug, Default)]
struct RoundStart {
    phase: WriterPhase,
    /// Index of the first block of the round, in a stream.
    index: u64,
    /// Number of bytes of the message's content, if the client gets one message.
    content: usize,
}

/// Form of the client's answer: a stream of events, or one message.
#[derive(Debug)]
enum AnswerForm {
    /// Stream of events. `index` is the index of the open block, or of the next block.
    Events { index: u64 },
    /// Whole message. `content` is the text between the brackets of the message's `content`.
    Message { content: Vec<u8> },
}

/// Kind of the block that is open, or was open last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenBlock {
    Text,
    Thinking,
    /// Thinking block whose signature was already written.
    Signed,
    Call,
    /// Call of a server tool, whose `caller` comes last.
    ServerCall,
}

impl MessagesWriter {
    /// Creates a writer for one answer. `stream`: true if the client gets events.
    pub(crate) fn new(stream: bool, ids: Ids) -> Self {
        let form = match stream {
            true => AnswerForm::Events { index: 0 },
            false => AnswerForm::Message { content: Vec::new() },
        };
        Self {
            ids,
            phase: WriterPhase::Start,
            form,
            block: OpenBlock::Text,
            citations: Vec::new(),
            round: RoundStart::default(),
        }
    }

    /// Begins the answer. The ping shows a client early that the connection works. The message id
    /// is expensive to generate, so it is generated only when written.
    fn start(&mut self, model: &str, input_tokens: u64, out: &mut Vec<u8>) {
        self.phase = WriterPhase::Open;
        if let AnswerForm::Events { .. } = self.form {
            out.extend_from_slice(b"event: message_start\ndata: ");
            frame::write_message_start(&self.ids.message(), model, input_tokens, out);
            out.extend_from_slice(b"\n\n");
            out.extend_from_slice(PING);
        }
    }

    fn open(&mut self, block: OpenBlock, out: &mut Vec<u8>) {
        self.block = block;
        let thinking = block == OpenBlock::Thinking;
        match &mut self.form {
            AnswerForm::Events { index } => {
                begin_block(*index, out);
                out.extend_from_slice(match thinking {
                    true => b"{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
                    false => b"{\"type\":\"text\",\"text\":\"\"}}\n\n",
                });
            }
            AnswerForm::Message { content } => {
                next(content);
                content.extend_from_slice(match thinking {
                    true => b"{\"type\":\"thinking\",\"thinking\":\"",
                    false => b"{\"type\":\"text\",\"text\":\"",
                });
            }
        }
    }

    /// Begins a tool call. In a stream, `input` is `{}` and the full input follows as deltas: some
    /// clients ignore the `input`, some ignore the deltas, and one client adds the two together.
    fn open_call(&mut self, call: &CallStart<'_>, out: &mut Vec<u8>) {
        let is_server = call.kind == CallKind::Server;
        self.block = if is_server { OpenBlock::ServerCall } else { OpenBlock::Call };
        match &mut self.form {
            AnswerForm::Events { index } => {
                begin_block(*index, out);
                call_head(call, out);
                out.extend_from_slice(b",\"input\":{}");
                call_caller(call, out);
                out.extend_from_slice(b"}}\n\n");
            }
            AnswerForm::Message { content } => {
                next(content);
                call_head(call, content);
                if !is_server {
                    call_caller(call, content);
                }
                content.extend_from_slice(b",\"input\":");
            }
        }
    }

    fn sign(&mut self, signature: &str, out: &mut Vec<u8>) {
        self.block = OpenBlock::Signed;
        match &mut self.form {
            AnswerForm::Events { index } => {
                delta(*index, b",\"delta\":{\"type\":\"signature_delta\",\"signature\":", out);
                json::quote(out, signature);
                out.extend_from_slice(b"}}\n\n");
            }
            AnswerForm::Message { content } => {
                content.extend_from_slice(b"\",\"signature\":");
                json::quote(content, signature);
            }
        }
    }

    fn cite(&mut self, citation: &Citation, out: &mut Vec<u8>) {
        match &mut self.form {
            AnswerForm::Events { index } => {
                delta(*index, b",\"delta\":{\"type\":\"citations_delta\",\"citation\":", out);
                server_tools::write_citation(citation, out);
                out.extend_from_slice(b"}}\n\n");
            }
            AnswerForm::Message { .. } => {
                next(&mut self.citations);
                server_tools::write_citation(citation, &mut self.citations);
            }
        }
    }

    /// Writes a block that comes whole.
    fn write_whole(&mut self, write: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
        match &mut self.form {
            AnswerForm::Events { index } => {
                begin_block(*index, out);
                write(out);
                out.extend_from_slice(b"}\n\n");
                end_block(index, out);
            }
            AnswerForm::Message { content } => {
                next(content);
                write(content);
            }
        }
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        match &mut self.form {
            AnswerForm::Events { index } => end_block(index, out),
            AnswerForm::Message { content } if !self.citations.is_empty() => {
                content.extend_from_slice(b"\",\"citations\":[");
                content.append(&mut self.citations);
                content.extend_from_slice(b"]}");
            }
            AnswerForm::Message { content } => content.extend_from_slice(match self.block {
                OpenBlock::Text => b"\"}",
                OpenBlock::Thinking => b"\",\"signature\":\"\"}",
                OpenBlock::Signed | OpenBlock::Call => b"}",
                OpenBlock::ServerCall => b",\"caller\":{\"type\":\"direct\"}}",
            }),
        }
    }

    fn stop(&mut self, stop: &Stop<'_>, out: &mut Vec<u8>) {
        self.phase = WriterPhase::Ended;
        match &mut self.form {
            AnswerForm::Events { .. } => {
                out.extend_from_slice(b"event: message_delta\ndata: ");
                frame::write_message_delta(stop, out);
                out.extend_from_slice(
                    b"\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
                );
            }
            AnswerForm::Message { content } => {
                frame::write_message(&self.ids.message(), content, stop, out);
                *content = Vec::new();
            }
        }
    }
}

impl AnswerWriter for MessagesWriter {
    fn write(&mut self, event: Event<'_>, out: &mut Vec<u8>) {
        match (event, &mut self.form) {
            (Event::Text(raw), AnswerForm::Events { index }) => {
                delta(*index, b",\"delta\":{\"type\":\"text_delta\",\"text\":\"", out);
                json::push_whole(out, raw);
                out.extend_from_slice(b"\"}}\n\n");
            }
            (Event::Thinking(raw), AnswerForm::Events { index }) => {
                delta(*index, b",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"", out);
                json::push_whole(out, raw);
                out.extend_from_slice(b"\"}}\n\n");
            }
            (Event::Text(raw) | Event::Thinking(raw), AnswerForm::Message { content }) => {
                json::push_whole(content, raw);
            }
            (Event::Input(""), AnswerForm::Events { .. }) => {}
            (Event::Input(text), AnswerForm::Events { index }) => {
                delta(*index, b",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":", out);
                json::quote(out, text);
                out.extend_from_slice(b"}}\n\n");
            }
            (Event::Input(text), AnswerForm::Message { content }) => {
                content.extend_from_slice(text.as_bytes());
            }
            (Event::Started { model, input_tokens }, _) => self.start(model, input_tokens, out),
            (Event::TextBegins, _) => self.open(OpenBlock::Text, out),
            (Event::ThinkingBegins, _) => self.open(OpenBlock::Thinking, out),
            (Event::CallBegins(call), _) => self.open_call(&call, out),
            (Event::Signature(signature), _) => self.sign(signature, out),
            (Event::Citation(citation), _) => self.cite(citation, out),
            (Event::ServerResult(result), _) => {
                self.write_whole(|out| server_tools::write_result(&result, out), out);
            }
            (Event::Listing(listing), _) => {
                self.write_whole(|out| server_tools::write_listing(&listing, out), out);
            }
            (Event::BlockEnds, _) => self.close(out),
            (Event::Stopped(stop), _) => self.stop(stop, out),
        }
    }

    fn ping(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(PING);
    }

    fn phase(&self) -> WriterPhase {
        self.phase
    }

    fn relayed(&mut self, phase: WriterPhase) {
        self.phase = phase;
    }

    fn begin_round(&mut self) {
        self.round.phase = self.phase;
        match &self.form {
            AnswerForm::Events { index } => self.round.index = *index,
            AnswerForm::Message { content } => self.round.content = content.len(),
        }
    }

    fn take_back(&mut self) {
        self.phase = self.round.phase;
        self.citations.clear();
        match &mut self.form {
            AnswerForm::Events { index } => *index = self.round.index,
            AnswerForm::Message { content } => content.truncate(self.round.content),
        }
    }

    fn take_blocks(&mut self) -> Vec<u8> {
        self.round.content = 0;
        match &mut self.form {
            AnswerForm::Events { .. } => Vec::new(),
            AnswerForm::Message { content } => std::mem::take(content),
        }
    }

    fn held_bytes(&self) -> usize {
        match &self.form {
            AnswerForm::Events { .. } => 0,
            AnswerForm::Message { content } => {
                content.capacity().saturating_add(self.citations.len())
            }
        }
    }
}

fn begin_block(index: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(
        b"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":",
    );
    json::push_u64(out, index);
    out.extend_from_slice(b",\"content_block\":");
}

fn end_block(index: &mut u64, out: &mut Vec<u8>) {
    out.extend_from_slice(
        b"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":",
    );
    json::push_u64(out, *index);
    out.extend_from_slice(b"}\n\n");
    *index = index.saturating_add(1);
}

/// Writes the start of a delta event. `start` has the delta's first members, as far as they are
/// known.
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

fn call_head(call: &CallStart<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(match call.kind {
        CallKind::Client { .. } => b"{\"type\":\"tool_use\",\"id\":",
        CallKind::Server => b"{\"type\":\"server_tool_use\",\"id\":",
        CallKind::Mcp { .. } => b"{\"type\":\"mcp_tool_use\",\"id\":",
    });
    json::quote(out, call.id);
    out.extend_from_slice(b",\"name\":");
    json::quote(out, call.name);
    if let CallKind::Mcp { server } = call.kind {
        out.extend_from_slice(b",\"server_name\":");
        json::quote(out, server);
    }
}

fn call_caller(call: &CallStart<'_>, out: &mut Vec<u8>) {
    if matches!(call.kind, CallKind::Mcp { .. }) {
        return;
    }
    out.extend_from_slice(b",\"caller\":{\"type\":\"direct\"}");
    if let CallKind::Client { toolset: Some(toolset) } = call.kind {
        out.extend_from_slice(b",\"toolset_name\":");
        json::quote(out, toolset);
    }
}
