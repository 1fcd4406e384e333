//! Writer of a repaired history: unchanged messages are copied, changed messages are written block
//! by block.

use super::{BlockPart, SentMessage, SentMessages};
use crate::json::{self, Reader, Str, ValueKind, Writer};
use crate::model::turn::{MOVED, Turn, UserPart};
use crate::model::{Block, Role, ToolResult};

/// Offsets of blocks in the body, in rising order, each with the index of the block's message.
type Owners = Vec<(usize, usize)>;

impl<'a> SentMessages<'a> {
    /// Returns the index of the message that contains a block, found by the block's position in the
    /// body.
    fn owner(&self, part: &str, owners: &Owners) -> Option<usize> {
        let place = owners.binary_search_by_key(&self.offset(part), |(offset, _)| *offset).ok()?;
        owners.get(place).map(|(_, message)| *message)
    }

    /// Writes the repaired history. Returns `None` if the history is the client's, unchanged.
    pub(super) fn write_turns(&self, turns: &[Turn<'a>]) -> Option<String> {
        let mut owners: Owners = Vec::new();
        for (at, message) in self.messages.iter().enumerate() {
            for part in &message.blocks {
                owners.push((self.offset(part.raw), at));
            }
        }
        let mut out = Vec::new();
        let mut json = Writer::new(&mut out);
        let mut copied = Copied { messages: &self.messages, next: 0, same: true };
        // A message that is split passes its other members (such as a cache mark) only to the first
        // new message: copies of a long member in every part would multiply the size.
        let mut given = vec![false; self.messages.len()];
        json.begin_array();
        for turn in turns {
            let mut entries = Vec::new();
            let role = match turn {
                Turn::System(texts) => {
                    for text in texts {
                        let place = self.offset(text.raw());
                        let at = self
                            .messages
                            .partition_point(|message| self.offset(message.raw) < place);
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
                    let owner = owner.and_then(|at| self.messages.get(at).zip(given.get_mut(at)));
                    let owner = owner.filter(|(message, _)| message.role == role);
                    let owner = owner.and_then(|(message, given)| {
                        (!std::mem::replace(given, true)).then_some(message)
                    });
                    write_message(owner, role, &entries, &mut json);
                }
            }
        }
        json.end_array();
        (!copied.is_all()).then(|| String::from_utf8(out).unwrap_or_default())
    }

    /// Returns the indices of the client's messages that consist of exactly these entries, in
    /// order, or `None` if the entries differ.
    fn originals(
        &self,
        entries: &[Entry<'_, 'a>],
        role: Role,
        owners: &Owners,
    ) -> Option<Vec<usize>> {
        let mut found = Vec::new();
        let mut rest = entries;
        while let Some(Entry::Raw(first)) = rest.first() {
            let at = self.owner(first, owners)?;
            let message = self.messages.get(at).filter(|message| message.role == role)?;
            let (mine, others) = rest.split_at_checked(message.blocks.len())?;
            let mut pairs = message.blocks.iter().zip(mine);
            let is_same = |(part, entry): (&BlockPart<'a>, &Entry<'_, 'a>)| match entry {
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

/// Copier of the client's messages, which records whether all messages are copied whole and in
/// order.
struct Copied<'h, 'a> {
    messages: &'h [SentMessage<'a>],
    /// Index of the next message, if no message was changed or moved.
    next: usize,
    same: bool,
}

impl Copied<'_, '_> {
    fn message(&mut self, at: usize, json: &mut Writer<'_>) {
        self.same &= at == self.next;
        self.next = at.saturating_add(1);
        if let Some(message) = self.messages.get(at) {
            self.same &= !message.is_shortened();
            message.write(json);
        }
    }

    fn is_all(&self) -> bool {
        self.same && self.next == self.messages.len()
    }
}

/// Content block of a repaired message, before it is written as JSON.
enum Entry<'t, 'a> {
    /// Block of the client, or the content of a message that is a string.
    Raw(&'a str),
    /// Tool result that is missing in the history and is added.
    Missing(&'t ToolResult<'a>),
    /// Tool result without a matching tool call, which is written as text.
    Orphan(&'a str),
    /// Placeholder text at the old position of a tool result that was moved next to its call.
    Moved,
}

impl<'t, 'a> Entry<'t, 'a> {
    fn of_result(result: &'t ToolResult<'a>) -> Self {
        match result.content.first() {
            Some(Block::Unknown(raw)) => Self::Raw(raw.raw()),
            _ => Self::Missing(result),
        }
    }

    fn of_item(item: &'t UserPart<'a>) -> Option<Self> {
        match item {
            UserPart::Block(block) => Self::of_block(block),
            UserPart::Orphan(result) => match Self::of_result(result) {
                Self::Raw(raw) => Some(Self::Orphan(raw)),
                other => Some(other),
            },
            // The repair of a copied history creates no such parts.
            UserPart::System(_)
            | UserPart::Summary(_)
            | UserPart::Done(_)
            | UserPart::SystemPrompt => None,
            UserPart::Moved => Some(Self::Moved),
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
        json.make_room();
        match self {
            Self::Raw(raw) if raw.starts_with('"') => {
                json.begin_object().kind("text").key("text").raw(raw).end_object();
            }
            Self::Raw(raw) => {
                json.raw(raw);
            }
            Self::Missing(result) => {
                let text = match result.content.first() {
                    Some(Block::Text(text)) => text.text,
                    _ => Str::default(),
                };
                json.begin_object().kind("tool_result");
                json.key("tool_use_id").str(result.id).key("content").str(text);
                json.key("is_error").bool(true).end_object();
            }
            Self::Orphan(raw) => write_orphan(raw, json),
            Self::Moved => {
                json.begin_object().kind("text").key("text").text(MOVED).end_object();
            }
        }
    }
}

/// Writes a tool result without a call as text. Images, documents and search results follow as
/// blocks.
fn write_orphan(result: &str, json: &mut Writer<'_>) {
    let content = json::member(result, "content").unwrap_or("[]");
    let mut text = Vec::new();
    let mut others = Vec::new();
    let mut reader = Reader::of(content);
    let mut read = || {
        if reader.kind()? == ValueKind::String {
            text.push(reader.string()?);
            return Ok(());
        }
        reader.begin_array()?;
        while reader.next_element()? {
            let block = reader.skip()?;
            let own = json::member(block, "text").map(|text| Reader::new(text, 1).string());
            match own {
                Some(Ok(own)) => text.push(own),
                _ => others.push(block),
            }
        }
        Ok::<(), json::Error>(())
    };
    // The result was parsed as JSON before, so errors cannot occur.
    let _ = read();
    json.begin_object().kind("text").key("text").value();
    let out = json.out();
    out.extend_from_slice(b"\"[Tool result without a call: ");
    for (at, line) in text.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b"\\n" } else { b"" });
        out.extend_from_slice(line.raw().as_bytes());
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
    pub(super) fn is_shortened(&self) -> bool {
        self.texts_left_out > 0 || self.thinking_left_out > 0
    }

    pub(super) fn write(&self, json: &mut Writer<'_>) {
        if !self.is_shortened() {
            json.raw(self.raw);
        } else if !self.blocks.is_empty() {
            let entries: Vec<_> = self.blocks.iter().map(|part| Entry::Raw(part.raw)).collect();
            write_message(Some(self), self.role, &entries, json);
        }
    }
}

/// Writes a message with the members of `owner`, except for its content.
fn write_message(
    owner: Option<&SentMessage<'_>>,
    role: Role,
    entries: &[Entry<'_, '_>],
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
                    json.key_str(key).raw(value);
                }
            }
            Ok::<(), json::Error>(())
        };
        let _ = copy();
    }
    json.end_object();
}
