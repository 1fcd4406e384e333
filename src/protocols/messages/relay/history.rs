//! Repair of the pairing of tool calls and results in a client's messages, without rewriting
//! correct messages.
//!
//! `history::pairs` reads only the ids of calls and results, so each block is passed to it as raw
//! text. A repaired turn that still consists of whole messages of the client is copied; any other
//! turn is written block by block.
//!
//! ```text
//! body ─▶ BlockPart(raw) ─▶ Block::Unknown(raw) ─▶ pairs::repair ─▶ Entry(raw) ─▶ its message
//!                                                              by the offset of raw in the body
//! ```

mod write;

use crate::carry::signature;
use crate::config::Pairing;
use crate::error::Error;
use crate::history::{Turns, joined, pairs};
use crate::json::{self, Raw, Reader, Str, ValueKind, Writer};
use crate::model::limits::{self, Counted, Many};
use crate::model::turn::{Turn, UserPart};
use crate::model::{Block, Message, Role, ToolResult, ToolUse, path_at};
use crate::observe::warning::Warnings;

/// Number of blocks in a message above which the unused capacity of its vector is freed.
const MANY_BLOCKS: usize = 64;

/// Messages of a client request, each with its original JSON text.
pub(super) struct SentMessages<'a> {
    body: &'a str,
    messages: Vec<SentMessage<'a>>,
    ids: Vec<Str<'a>>,
    counted: Counted,
}

/// Message of a request, with the blocks that are kept.
struct SentMessage<'a> {
    raw: &'a str,
    role: Role,
    blocks: Vec<BlockPart<'a>>,
    /// Number of empty texts left out of the message.
    texts_left_out: u32,
    /// Number of Creole's own thinking blocks left out of the message.
    thinking_left_out: u32,
}

/// Block of a message, or the whole content if the content is a string.
#[derive(Clone, Copy)]
struct BlockPart<'a> {
    raw: &'a str,
    kind: BlockKind<'a>,
}

#[derive(Clone, Copy)]
enum BlockKind<'a> {
    Use(Str<'a>),
    Result(Str<'a>),
    Neither,
    OwnThinking,
    EmptyText,
}

/// Reason why the messages of a request could not be read for repairs.
pub(super) enum NotRead {
    /// Invalid messages, which are sent unchanged for the upstream to refuse.
    NotAHistory,
    /// Number of messages, blocks, calls or results above Creole's limits.
    TooMany(Error),
}

impl From<json::Error> for NotRead {
    fn from(_: json::Error) -> Self {
        Self::NotAHistory
    }
}

impl<'a> SentMessages<'a> {
    pub(super) fn read(
        body: &'a str,
        messages: &'a str,
        warnings: &mut Warnings,
    ) -> Result<Self, NotRead> {
        let counted = Counted::default();
        let mut sent = Self { body, messages: Vec::new(), ids: Vec::new(), counted };
        let mut reader = Reader::of(messages);
        reader.begin_array()?;
        while reader.next_element()? {
            sent.count(Many::Messages, messages)?;
            sent.message(reader.skip()?)?;
        }
        sent.keep_last();
        for message in &sent.messages {
            (0..message.texts_left_out).for_each(|_| warnings.add("empty_text"));
            (0..message.thinking_left_out).for_each(|_| warnings.add("own_thinking"));
        }
        Ok(sent)
    }

    /// Counts one more message, block, call or result. Above the limit, returns an error with the
    /// path of `part`.
    fn count(&mut self, many: Many, part: &str) -> Result<(), NotRead> {
        if self.counted.is_exceeded_by(many) {
            let path = path_at(self.body, self.offset(part));
            return Err(NotRead::TooMany(limits::exceeded(&path, many)));
        }
        Ok(())
    }

    /// Takes the ids of all tool calls out of the history.
    pub(super) fn take_ids(&mut self) -> Vec<Str<'a>> {
        std::mem::take(&mut self.ids)
    }

    /// Keeps an empty assistant message at the end, because the API accepts an empty message there.
    fn keep_last(&mut self) {
        if let Some(last) = self.messages.last_mut()
            && last.role == Role::Assistant
            && last.blocks.is_empty()
            && last.thinking_left_out == 0
        {
            last.texts_left_out = 0;
        }
    }

    fn message(&mut self, raw: &'a str) -> Result<(), NotRead> {
        let (mut role, mut content) = (None, None);
        let mut reader = Reader::of(raw);
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            let value = reader.skip()?;
            match key.decode().as_ref() {
                "role" => role = Some(value),
                "content" => content = Some(value),
                _ => {}
            }
        }
        let role = match role {
            Some("\"user\"") => Role::User,
            Some("\"assistant\"") => Role::Assistant,
            Some("\"system\"") => Role::System,
            _ => return Err(NotRead::NotAHistory),
        };
        let blocks = Vec::new();
        let mut message =
            SentMessage { raw, role, blocks, texts_left_out: 0, thinking_left_out: 0 };
        let content = content.unwrap_or("[]");
        let mut reader = Reader::of(content);
        if reader.kind()? == ValueKind::String {
            if reader.string()?.is_empty() {
                message.texts_left_out = 1;
            } else {
                // Many messages can consist of a single string, so no spare capacity is allocated.
                message.blocks = vec![BlockPart { raw: content, kind: BlockKind::Neither }];
            }
        } else {
            reader.begin_array()?;
            while reader.next_element()? {
                self.count(Many::Blocks, content)?;
                let part = self.part(reader.skip()?)?;
                match part.kind {
                    BlockKind::OwnThinking => {
                        message.thinking_left_out = message.thinking_left_out.saturating_add(1);
                    }
                    BlockKind::EmptyText => {
                        message.texts_left_out = message.texts_left_out.saturating_add(1)
                    }
                    _ => message.blocks.push(part),
                }
            }
        }
        if message.blocks.len() > MANY_BLOCKS {
            message.blocks.shrink_to_fit();
        }
        self.messages.push(message);
        Ok(())
    }

    fn part(&mut self, raw: &'a str) -> Result<BlockPart<'a>, NotRead> {
        let (mut kind, mut id, mut call, mut signature, mut text) = (None, None, None, None, None);
        let mut reader = Reader::of(raw);
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            let is_string = reader.kind()? == ValueKind::String;
            let slot = match key.decode().as_ref() {
                "type" => &mut kind,
                "id" => &mut id,
                "tool_use_id" => &mut call,
                "signature" | "data" => &mut signature,
                "text" => &mut text,
                _ => {
                    reader.skip()?;
                    continue;
                }
            };
            if is_string {
                *slot = Some(reader.string()?);
            } else {
                reader.skip()?;
            }
        }
        // The API refuses a block without a type; a small body can have many of these.
        let kind = kind.ok_or(NotRead::NotAHistory)?.decode();
        let kind = match (kind.as_ref(), id, call) {
            ("tool_use", Some(id), _) => {
                self.count(Many::Calls, raw)?;
                self.ids.push(id);
                BlockKind::Use(id)
            }
            ("tool_result", _, Some(id)) => {
                self.count(Many::Results, raw)?;
                BlockKind::Result(id)
            }
            // A call or result without an id cannot be paired.
            ("tool_use" | "tool_result", ..) => return Err(NotRead::NotAHistory),
            ("thinking" | "redacted_thinking", ..)
                if signature.is_some_and(|it| signature::is_own(&it.decode())) =>
            {
                BlockKind::OwnThinking
            }
            ("text", ..) if text.is_some_and(|text| text.is_empty()) => BlockKind::EmptyText,
            _ => BlockKind::Neither,
        };
        Ok(BlockPart { raw, kind })
    }

    /// Returns the repaired text of all messages, or `None` if the client's messages need no
    /// change.
    pub(super) fn repair(
        &self,
        pairing: Pairing,
        warnings: &mut Warnings,
    ) -> Result<Option<String>, Error> {
        if pairing == Pairing::Reject {
            pairs::reject(&self.blocks_of_all(), warnings)?;
        } else if pairing == Pairing::Repair && pairs::check(&self.blocks_of_all()).is_err() {
            let before = warnings.count();
            let turns = pairs::repair(self.turns(), warnings);
            let written = self.write_turns(&turns);
            if written.is_some() {
                warnings.acted("pairing");
                // Moving a result before the text that it followed (`Turns`) is not counted there.
                if warnings.count() == before {
                    warnings.add("tool_result_moved");
                }
            }
            return Ok(written);
        }
        if !self.messages.iter().any(|message| message.is_shortened()) {
            return Ok(None);
        }
        let mut out = Vec::new();
        let mut json = Writer::new(&mut out);
        json.begin_array();
        self.messages.iter().for_each(|message| message.write(&mut json));
        json.end_array();
        Ok(Some(String::from_utf8(out).unwrap_or_default()))
    }

    fn blocks_of_all(&self) -> Vec<Message<'a>> {
        let mut messages = Vec::with_capacity(self.messages.len());
        for SentMessage { role, blocks, .. } in &self.messages {
            let content = blocks.iter().map(|part| self.block(part)).collect();
            messages.push(Message { role: *role, content, until_next_user: false, effort: None });
        }
        messages
    }

    fn turns(&self) -> Vec<Turn<'a>> {
        let mut turns = Turns::default();
        for message in &self.messages {
            if message.role == Role::User {
                turns.user();
            }
            turns.expect(message.blocks.len());
            for part in &message.blocks {
                match (message.role, self.block(part)) {
                    (Role::Assistant, block) => turns.block(block),
                    (Role::User, Block::ToolResult(result)) => turns.result(*result),
                    (Role::User, block) => turns.item(UserPart::Block(block)),
                    (Role::System, _) => {}
                }
            }
            if message.role == Role::System {
                turns.system(vec![Str::plain(message.raw)]);
            }
        }
        joined(turns, false)
    }

    /// Makes a content block for `history::pairs`, which reads only the ids of calls and results.
    /// The raw JSON text serves as the block's content.
    fn block(&self, part: &BlockPart<'a>) -> Block<'a> {
        let text = Block::Unknown(Str::plain(part.raw));
        match part.kind {
            BlockKind::Use(id) => Block::ToolUse(Box::new(ToolUse {
                at: self.offset(part.raw),
                id,
                name: Str::default(),
                toolset: None,
                input: Raw::of(part.raw),
                cleared: false,
            })),
            BlockKind::Result(id) => {
                let content = vec![text];
                Block::ToolResult(Box::new(ToolResult {
                    id,
                    content,
                    is_error: false,
                    cleared: false,
                }))
            }
            BlockKind::Neither | BlockKind::OwnThinking | BlockKind::EmptyText => text,
        }
    }

    /// Returns the byte offset of a text slice within the request body.
    fn offset(&self, part: &str) -> usize {
        super::offset(self.body, part)
    }
}
