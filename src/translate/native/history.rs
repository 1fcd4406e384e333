//! Repairs a history without rewriting what is right.
//!
//! `conversation` looks only at the ids of calls and results, so each block is given to it as its raw
//! text. A turn that still consists of whole messages of the client is copied; any other is written
//! block by block.
//!
//! ```text
//! body ─▶ Part(raw) ─▶ Block::Unknown(raw) ─▶ pairs::repair ─▶ Entry(raw) ─▶ its message
//!                                                              by where raw stands in the body
//! ```

use crate::anthropic::{Block, Message, Role, ToolResult, ToolUse};
use crate::config::Pairing;
use crate::conversation::{Item, MOVED, Turn, Turns, pairs};
use crate::error::Error;
use crate::json::{self, Kind, Raw, Reader, Str, Writer};
use crate::translate::{guards, signature};
use crate::warning::Warnings;

/// Where blocks stand in the body, rising, and the messages that they are of.
type Owners = Vec<(usize, usize)>;

/// The messages of a request, each with its text.
pub(super) struct SentMessages<'a> {
    body: &'a str,
    said: Vec<SentMessage<'a>>,
    ids: Vec<Str<'a>>,
}

/// One message.
struct SentMessage<'a> {
    raw: &'a str,
    role: Role,
    blocks: Vec<Part<'a>>,
    /// How many empty texts, and how many thinking blocks of ours, are left out.
    texts_left_out: u32,
    thinking_left_out: u32,
}

/// One block, or a content that is a string.
#[derive(Clone, Copy)]
struct Part<'a> {
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

/// Why a history is left alone: it is not one.
pub(super) struct NotAHistory;

impl From<json::Error> for NotAHistory {
    fn from(_: json::Error) -> Self {
        Self
    }
}

impl<'a> SentMessages<'a> {
    pub(super) fn read(
        body: &'a str,
        messages: &'a str,
        depth_max: u32,
        warnings: &mut Warnings,
    ) -> Result<Self, NotAHistory> {
        let mut sent = Self { body, said: Vec::new(), ids: Vec::new() };
        let mut reader = Reader::new(messages, depth_max);
        reader.begin_array()?;
        while reader.next_element()? {
            sent.message(reader.skip()?, depth_max)?;
        }
        sent.keep_last();
        for said in &sent.said {
            (0..said.texts_left_out).for_each(|_| warnings.add("empty_text"));
            (0..said.thinking_left_out).for_each(|_| warnings.add("own_thinking"));
        }
        Ok(sent)
    }

    /// The ids of all calls.
    pub(super) fn ids(&self) -> &[Str<'a>] {
        &self.ids
    }

    /// The API takes an empty message of the assistant at the end.
    fn keep_last(&mut self) {
        if let Some(last) = self.said.last_mut()
            && last.role == Role::Assistant
            && last.blocks.is_empty()
            && last.thinking_left_out == 0
        {
            last.texts_left_out = 0;
        }
    }

    fn message(&mut self, raw: &'a str, depth_max: u32) -> Result<(), NotAHistory> {
        let (mut role, mut content) = (None, None);
        let mut reader = Reader::new(raw, depth_max);
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
            _ => return Err(NotAHistory),
        };
        let blocks = Vec::new();
        let mut said = SentMessage { raw, role, blocks, texts_left_out: 0, thinking_left_out: 0 };
        let content = content.unwrap_or("[]");
        let mut reader = Reader::new(content, depth_max);
        if reader.kind()? == Kind::String {
            if reader.string()?.is_empty() {
                said.texts_left_out = 1;
            } else {
                said.blocks.push(Part { raw: content, kind: BlockKind::Neither });
            }
        } else {
            reader.begin_array()?;
            while reader.next_element()? {
                let part = self.part(reader.skip()?, depth_max)?;
                match part.kind {
                    BlockKind::OwnThinking => {
                        said.thinking_left_out = said.thinking_left_out.saturating_add(1);
                    }
                    BlockKind::EmptyText => {
                        said.texts_left_out = said.texts_left_out.saturating_add(1)
                    }
                    _ => said.blocks.push(part),
                }
            }
        }
        self.said.push(said);
        Ok(())
    }

    fn part(&mut self, raw: &'a str, depth_max: u32) -> Result<Part<'a>, NotAHistory> {
        let (mut kind, mut id, mut call, mut signature, mut text) = (None, None, None, None, None);
        let mut reader = Reader::new(raw, depth_max);
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            let is_string = reader.kind()? == Kind::String;
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
        let kind = kind.map(|kind| kind.decode()).unwrap_or_default();
        let kind = match (kind.as_ref(), id, call) {
            ("tool_use", Some(id), _) => {
                self.ids.push(id);
                BlockKind::Use(id)
            }
            ("tool_result", _, Some(id)) => BlockKind::Result(id),
            // A call without an id cannot be paired with anything.
            ("tool_use" | "tool_result", ..) => return Err(NotAHistory),
            ("thinking" | "redacted_thinking", ..)
                if signature.is_some_and(|it| signature::is_own(&it.decode())) =>
            {
                BlockKind::OwnThinking
            }
            ("text", ..) if text.is_some_and(|text| text.is_empty()) => BlockKind::EmptyText,
            _ => BlockKind::Neither,
        };
        Ok(Part { raw, kind })
    }

    /// The text of all messages, where it differs from what the client wrote.
    pub(super) fn repair(
        &self,
        pairing: Pairing,
        warnings: &mut Warnings,
    ) -> Result<Option<String>, Error> {
        let fit = match pairing {
            Pairing::Off => Ok(()),
            Pairing::Repair | Pairing::Reject => pairs::check(&self.messages()),
        };
        if pairing == Pairing::Reject {
            fit.map_err(|error| guards::unpaired(error, warnings))?;
        } else if fit.is_err() {
            let before = warnings.count();
            let turns = pairs::repair(self.turns(), warnings);
            let written = self.write_turns(&turns);
            if written.is_some() {
                warnings.acted("pairing");
                // `Turns` moves a result before the text it followed, and does not count that itself.
                if warnings.count() == before {
                    warnings.add("tool_result_moved");
                }
            }
            return Ok(written);
        }
        if !self.said.iter().any(|said| said.is_shortened()) {
            return Ok(None);
        }
        let mut out = Vec::new();
        let mut json = Writer::new(&mut out);
        json.begin_array();
        self.said.iter().for_each(|said| said.write(&mut json));
        json.end_array();
        Ok(Some(String::from_utf8(out).unwrap_or_default()))
    }

    fn messages(&self) -> Vec<Message<'a>> {
        let mut messages = Vec::with_capacity(self.said.len());
        for SentMessage { role, blocks, .. } in &self.said {
            let content = blocks.iter().map(|part| self.block(part)).collect();
            messages.push(Message { role: *role, content, until_next_user: false, effort: None });
        }
        messages
    }

    fn turns(&self) -> Vec<Turn<'a>> {
        let mut turns = Turns::default();
        for said in &self.said {
            if said.role == Role::User {
                turns.user();
            }
            for part in &said.blocks {
                match (said.role, self.block(part)) {
                    (Role::Assistant, block) => turns.block(block),
                    (Role::User, Block::ToolResult(result)) => turns.result(result),
                    (Role::User, block) => turns.item(Item::Block(block)),
                    (Role::System, _) => {}
                }
            }
            if said.role == Role::System {
                turns.system(vec![Str::plain(said.raw)]);
            }
        }
        turns.finish()
    }

    /// A block as `conversation` knows it. Only ids are looked at there, so what stands for the rest
    /// is the block's own text.
    fn block(&self, part: &Part<'a>) -> Block<'a> {
        let text = Block::Unknown(Str::plain(part.raw));
        match part.kind {
            BlockKind::Use(id) => Block::ToolUse(ToolUse {
                at: self.offset(part.raw),
                id,
                name: Str::default(),
                toolset: None,
                input: Raw::of(part.raw),
            }),
            BlockKind::Result(id) => {
                Block::ToolResult(ToolResult { id, content: vec![text], is_error: false })
            }
            BlockKind::Neither | BlockKind::OwnThinking | BlockKind::EmptyText => text,
        }
    }

    /// Where a part of the body stands in it.
    fn offset(&self, part: &str) -> usize {
        super::offset(self.body, part)
    }

    /// The message of which a part of the body is a block.
    fn owner(&self, part: &str, owners: &Owners) -> Option<usize> {
        let place = owners.binary_search_by_key(&self.offset(part), |(offset, _)| *offset).ok()?;
        owners.get(place).map(|(_, message)| *message)
    }

    /// The repaired history, if it is not what it was.
    fn write_turns(&self, turns: &[Turn<'a>]) -> Option<String> {
        let mut owners: Owners = Vec::new();
        for (at, said) in self.said.iter().enumerate() {
            for part in &said.blocks {
                owners.push((self.offset(part.raw), at));
            }
        }
        let mut out = Vec::new();
        let mut json = Writer::new(&mut out);
        let mut copied = Copied { said: &self.said, next: 0, same: true };
        // A message that becomes several gives its other members to the first of them alone: to all, a long one would
        // multiply with every result that stands in it.
        let mut given = vec![false; self.said.len()];
        json.begin_array();
        for turn in turns {
            let mut entries = Vec::new();
            let role = match turn {
                Turn::System(texts) => {
                    for text in texts {
                        let place = self.offset(text.raw());
                        let at = self.said.partition_point(|said| self.offset(said.raw) < place);
                        copied.message(at, &mut json);
                    }
                    continue;
                }
                Turn::User(user) => {
                    user.results.iter().for_each(|it| entries.push(Entry::of_result(it)));
                    user.items.iter().for_each(|it| entries.extend(Entry::of_item(it)));
                    Role::User
                }
                Turn::Assistant(blocks) => {
                    blocks.iter().for_each(|it| entries.extend(Entry::of_block(it)));
                    Role::Assistant
                }
            };
            match self.originals(&entries, role, &owners) {
                Some(originals) => {
                    originals.into_iter().for_each(|at| copied.message(at, &mut json));
                }
                None => {
                    copied.same = false;
                    let owner = entries.iter().find_map(|entry| match entry {
                        Entry::Raw(raw) => self.owner(raw, &owners),
                        _ => None,
                    });
                    let owner = owner.and_then(|at| self.said.get(at).zip(given.get_mut(at)));
                    let owner = owner.filter(|(said, _)| said.role == role);
                    let owner = owner.and_then(|(said, given)| {
                        (!std::mem::replace(given, true)).then_some(said)
                    });
                    write_message(owner, role, &entries, &mut json);
                }
            }
        }
        json.end_array();
        (!copied.is_all()).then(|| String::from_utf8(out).unwrap_or_default())
    }

    /// The messages that these entries are, one after the other and nothing else.
    fn originals(&self, entries: &[Entry<'a>], role: Role, owners: &Owners) -> Option<Vec<usize>> {
        let mut found = Vec::new();
        let mut rest = entries;
        while let Some(Entry::Raw(first)) = rest.first() {
            let at = self.owner(first, owners)?;
            let said = self.said.get(at).filter(|said| said.role == role)?;
            let (mine, others) = rest.split_at_checked(said.blocks.len())?;
            let mut pairs = said.blocks.iter().zip(mine);
            let is_same = |(part, entry): (&Part<'a>, &Entry<'a>)| match entry {
                Entry::Raw(raw) => self.offset(raw) == self.offset(part.raw),
                _ => false,
            };
            if !pairs.all(is_same) {
                return None;
            }
            found.push(at);
            rest = others;
        }
        rest.is_empty().then_some(found)
    }
}

/// Copies messages of the client, and notes whether they are all of them, whole and in their order.
struct Copied<'h, 'a> {
    said: &'h [SentMessage<'a>],
    /// The message that comes next if nothing has to be changed.
    next: usize,
    same: bool,
}

impl Copied<'_, '_> {
    fn message(&mut self, at: usize, json: &mut Writer<'_>) {
        self.same &= at == self.next;
        self.next = at.saturating_add(1);
        if let Some(said) = self.said.get(at) {
            self.same &= !said.is_shortened();
            said.write(json);
        }
    }

    fn is_all(&self) -> bool {
        self.same && self.next == self.said.len()
    }
}

/// What a repaired message consists of.
enum Entry<'a> {
    /// A block of the client, or a content that is a string.
    Raw(&'a str),
    /// A result to the call of this id, which the history does not have.
    Missing { id: Str<'a>, text: Str<'a> },
    /// A result that no call asked for.
    Orphan(&'a str),
    /// The words for a result that stands with its call.
    Moved,
}

impl<'a> Entry<'a> {
    fn of_result(result: &ToolResult<'a>) -> Self {
        match result.content.first() {
            Some(Block::Unknown(raw)) => Self::Raw(raw.raw()),
            Some(Block::Text(text)) => Self::Missing { id: result.id, text: text.text },
            _ => Self::Missing { id: result.id, text: Str::default() },
        }
    }

    fn of_item(item: &Item<'a>) -> Option<Self> {
        match item {
            Item::Block(block) => Self::of_block(block),
            Item::Orphan(result) => match Self::of_result(result) {
                Self::Raw(raw) => Some(Self::Orphan(raw)),
                other => Some(other),
            },
            // None of these is made of a history that stays as it is.
            Item::System(_) | Item::Summary(_) | Item::Done(_) | Item::SystemPrompt => None,
            Item::Moved => Some(Self::Moved),
        }
    }

    fn of_block(block: &Block<'a>) -> Option<Self> {
        match block {
            Block::Unknown(raw) => Some(Self::Raw(raw.raw())),
            Block::ToolUse(call) => Some(Self::Raw(call.input.text())),
            _ => None,
        }
    }

    fn write(&self, json: &mut Writer<'_>) {
        match self {
            Self::Raw(raw) if raw.starts_with('"') => {
                json.begin_object().key("type").text("text").key("text").raw(raw).end_object();
            }
            Self::Raw(raw) => {
                json.raw(raw);
            }
            Self::Missing { id, text } => {
                json.begin_object().key("type").text("tool_result");
                json.key("tool_use_id").str(*id).key("content").str(*text);
                json.key("is_error").bool(true).end_object();
            }
            Self::Orphan(raw) => write_orphan(raw, json),
            Self::Moved => {
                json.begin_object().key("type").text("text").key("text").text(MOVED).end_object();
            }
        }
    }
}

/// A result that no call asked for is told in words; what is not text follows as it is.
fn write_orphan(result: &str, json: &mut Writer<'_>) {
    let content = json::member(result, "content").unwrap_or("[]");
    let mut text = Vec::new();
    let mut others = Vec::new();
    let mut reader = Reader::of(content);
    let mut read = || {
        if reader.kind()? == Kind::String {
            text.push(reader.string()?);
            return Ok(());
        }
        reader.begin_array()?;
        while reader.next_element()? {
            let block = reader.skip()?;
            let said = json::member(block, "text").map(|text| Reader::new(text, 1).string());
            match said {
                Some(Ok(said)) => text.push(said),
                _ => others.push(block),
            }
        }
        Ok::<(), json::Error>(())
    };
    // It was read as JSON before.
    let _ = read();
    json.begin_object().key("type").text("text").key("text").value();
    let out = json.out();
    out.extend_from_slice(b"\"[Tool result without a call: ");
    for (at, said) in text.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b"\\n" } else { b"" });
        out.extend_from_slice(said.raw().as_bytes());
    }
    out.extend_from_slice(b"]\"");
    json.end_object();
    let attached = |block: &&&str| {
        matches!(
            json::member(block, "type"),
            Some("\"image\"" | "\"document\"" | "\"search_result\"")
        )
    };
    for block in others.iter().filter(attached) {
        json.raw(block);
    }
}

impl SentMessage<'_> {
    fn is_shortened(&self) -> bool {
        self.texts_left_out > 0 || self.thinking_left_out > 0
    }

    fn write(&self, json: &mut Writer<'_>) {
        if !self.is_shortened() {
            json.raw(self.raw);
        } else if !self.blocks.is_empty() {
            let entries: Vec<_> = self.blocks.iter().map(|part| Entry::Raw(part.raw)).collect();
            write_message(Some(self), self.role, &entries, json);
        }
    }
}

/// A message with the members of `owner`, its content aside.
fn write_message(
    owner: Option<&SentMessage<'_>>,
    role: Role,
    entries: &[Entry<'_>],
    json: &mut Writer<'_>,
) {
    json.begin_object().key("role").text(match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
    });
    json.key("content").begin_array();
    entries.iter().for_each(|entry| entry.write(json));
    json.end_array();
    if let Some(owner) = owner {
        let mut reader = Reader::of(owner.raw);
        let mut copy = || {
            reader.begin_object()?;
            while let Some(key) = reader.next_key()? {
                let value = reader.skip()?;
                if !(key == "role" || key == "content") {
                    json.str(key).out().push(b':');
                    json.raw(value);
                }
            }
            Ok::<(), json::Error>(())
        };
        let _ = copy();
    }
    json.end_object();
}
