//! Repair of a client's messages, without rewriting correct messages.
//!
//! Empty texts, Creole's own thinking and refused thinking are left out, and calls and results are
//! paired by `history::pairs`. The pairing reads only ids, so a block holds only its raw JSON text.
//! A repaired turn that still consists of whole messages of the client is copied; any other turn is
//! written block by block.
//!
//! ```text
//! Message(raw) ─▶ Block::Unknown(raw) ─▶ pairs::repair ─▶ Entry(raw) ─▶ its message
//!                                                      by the offset of raw in the body
//! ```

use crate::carry::signature;
use crate::config::Pairing;
use crate::error::Error;
use crate::history::{Turns, joined, pairs};
use crate::json::{self, Raw, Str, Writer};
use crate::model::request::raw_blocks;
use crate::model::turn::{MOVED, Turn, UserPart};
use crate::model::{Block, Message, Role, ToolResult, ToolUse};
use crate::observe::warning::Warnings;

/// Repair that the messages of a request need. The request can still be read as a whole until
/// [`NeededRepair::write`].
pub(super) struct NeededRepair {
    /// Byte offsets of the content blocks that are not sent to the upstream, ascending.
    omitted: Vec<usize>,
    /// True if calls and results do not form pairs.
    unpaired: bool,
}

/// Messages of a client's request while they are repaired for an upstream of the Messages API.
struct SentMessages<'r, 'a> {
    body: &'a str,
    messages: &'r mut [Message<'a>],
    /// Byte offsets of the content blocks that are not sent to the upstream, ascending.
    omitted: Vec<usize>,
}

/// Kind of a content block that is not sent to the upstream.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OmittedBlock {
    EmptyText,
    /// Thinking block with a signature made by Creole.
    OwnThinking,
    /// Thinking block for an upstream that refused thinking.
    Reasoning,
}

/// Returns the kind of a content block that is not sent to the upstream, or `None` for a block that
/// is sent. `reasons` is false if the upstream refused thinking.
fn left_out(block: &Block<'_>, reasons: bool) -> Option<OmittedBlock> {
    match block {
        Block::Text(text) if text.text.is_empty() => Some(OmittedBlock::EmptyText),
        Block::Thinking { .. } | Block::RedactedThinking(_) if !reasons => {
            Some(OmittedBlock::Reasoning)
        }
        Block::Thinking { signature, .. } | Block::RedactedThinking(signature)
            if signature::is_own(&signature.decode()) =>
        {
            Some(OmittedBlock::OwnThinking)
        }
        _ => None,
    }
}

/// Returns the content blocks of a message that are not sent to the upstream, each with its JSON
/// text. A content that is an empty string is one block.
fn omitted<'a>(message: &Message<'a>, reasons: bool) -> Vec<(&'a str, OmittedBlock)> {
    if message.content.is_empty() {
        let string = raw_blocks(message.raw).filter(|raw| raw.starts_with('"'));
        return string.map(|raw| (raw, OmittedBlock::EmptyText)).collect();
    }
    if message.content.iter().all(|block| left_out(block, reasons).is_none()) {
        return Vec::new();
    }
    let blocks = raw_blocks(message.raw).zip(&message.content);
    blocks.filter_map(|(raw, block)| Some((raw, left_out(block, reasons)?))).collect()
}

impl NeededRepair {
    /// Finds the content blocks of `messages` that are not sent to the upstream, and warns of each.
    /// Returns `None` if the client's messages need no change. `reasons` is false if the upstream
    /// refused thinking.
    ///
    /// # Errors
    /// Calls and results do not form pairs, and `pairing` refuses them; or thinking must not be
    /// left out.
    pub(super) fn find(
        body: &str,
        messages: &mut [Message<'_>],
        reasons: bool,
        pairing: Pairing,
        warnings: &mut Warnings,
    ) -> Result<Option<Self>, Error> {
        let mut offsets = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            let omitted = omitted(message, reasons);
            // The API accepts an empty message of the assistant at the end.
            let is_last = at.saturating_add(1) == messages.len();
            let stays = is_last
                && message.role == Role::Assistant
                && omitted.len() >= message.content.len()
                && omitted.iter().all(|(_, kind)| *kind == OmittedBlock::EmptyText);
            for (raw, kind) in omitted.into_iter().filter(|_| !stays) {
                match kind {
                    OmittedBlock::EmptyText => warnings.add("empty_text"),
                    OmittedBlock::OwnThinking => warnings.add("own_thinking"),
                    OmittedBlock::Reasoning => warnings.dropped("reasoning")?,
                }
                offsets.push(super::offset(body, raw));
            }
        }
        let check = || pairs::check(messages, |block| left_out(block, reasons).is_none());
        if pairing == Pairing::Reject {
            pairs::rejected(check(), warnings)?;
        }
        let unpaired = pairing == Pairing::Repair && check().is_err();
        if !reasons {
            // Refused thinking does not count as tokens.
            let blocks = messages.iter_mut().flat_map(|message| &mut message.content);
            blocks
                .filter(|it| left_out(it, reasons) == Some(OmittedBlock::Reasoning))
                .for_each(|block| *block = Block::Note);
        }
        let is_needed = unpaired || !offsets.is_empty();
        Ok(is_needed.then_some(Self { omitted: offsets, unpaired }))
    }

    /// Returns the repaired text of all messages, or `None` if they are the client's, unchanged.
    /// Calls and results are taken out of `messages`, so that they are not held twice.
    pub(super) fn write<'a>(
        self,
        body: &'a str,
        messages: &mut [Message<'a>],
        warnings: &mut Warnings,
    ) -> Option<String> {
        let mut sent = SentMessages { body, messages, omitted: self.omitted };
        if !self.unpaired {
            return Some(json::written(|json| {
                json.begin_array();
                (0..sent.messages.len()).for_each(|at| sent.write(at, json));
                json.end_array();
            }));
        }
        let before = warnings.count();
        let (turns, firsts) = sent.take_turns();
        let written = sent.write_turns(&pairs::repair(turns, warnings), &firsts);
        if written.is_some() {
            warnings.acted("pairing");
            // A warning may be missing: `pairs` does not count a result that moves before a text.
            if warnings.count() == before {
                warnings.add("tool_result_moved");
            }
        }
        written
    }
}

impl<'a> SentMessages<'_, 'a> {
    /// Takes calls and results out of the messages. Returns the turns of the kept blocks, and the
    /// offset of each message's first kept block.
    fn take_turns(&mut self) -> (Vec<Turn<'a>>, Vec<usize>) {
        let (mut turns, mut firsts) = (Turns::default(), Vec::with_capacity(self.messages.len()));
        for message in self.messages.iter_mut() {
            if message.role == Role::User {
                turns.user();
            }
            turns.expect(message.content.len());
            let mut first = None;
            for (raw, block) in raw_blocks(message.raw).zip(&mut message.content) {
                let at = super::offset(self.body, raw);
                if self.omitted.binary_search(&at).is_ok() {
                    continue;
                }
                first = first.or(Some(at));
                match (message.role, stand_in(at, raw, block)) {
                    (Role::Assistant, block) => turns.block(block),
                    (Role::User, Block::ToolResult(result)) => turns.result(*result),
                    (Role::User, block) => turns.item(UserPart::Block(block)),
                    (Role::System, _) => {}
                }
            }
            firsts.push(first.unwrap_or_default());
            if message.role == Role::System {
                turns.system(vec![Str::plain(message.raw)]);
            }
        }
        (joined(turns, false), firsts)
    }

    /// Returns the JSON text of each content block of a message that is sent to the upstream.
    fn kept(&self, message: &Message<'a>) -> impl Iterator<Item = &'a str> {
        let is_kept = |raw: &&str| self.omitted.binary_search(&self.offset(raw)).is_err();
        raw_blocks(message.raw).filter(is_kept)
    }

    /// Returns true if blocks of a message are not sent to the upstream.
    fn is_shortened(&self, message: &Message<'_>) -> bool {
        let start = self.offset(message.raw);
        let next = self.omitted.partition_point(|at| *at < start);
        let end = start.saturating_add(message.raw.len());
        self.omitted.get(next).is_some_and(|at| *at < end)
    }

    /// Returns the byte offset of a text slice within the request body.
    fn offset(&self, part: &str) -> usize {
        super::offset(self.body, part)
    }

    /// Returns the index of the message that contains a part of the body.
    fn owner(&self, part: &str) -> usize {
        let place = self.offset(part);
        let after = self.messages.partition_point(|message| self.offset(message.raw) <= place);
        after.saturating_sub(1)
    }

    /// Writes the repaired history. Returns `None` if the history is the client's, unchanged.
    fn write_turns(&self, turns: &[Turn<'a>], firsts: &[usize]) -> Option<String> {
        let mut out = Vec::new();
        let mut json = Writer::new(&mut out);
        // A message that is split passes its other members (such as a cache mark) only to the first
        // new message: copies of a long member in every part would multiply the size.
        let mut given = vec![false; self.messages.len()];
        json.begin_array();
        for turn in turns {
            let mut entries = Vec::new();
            let role = match turn {
                Turn::System(texts) => {
                    for text in texts {
                        self.write(self.owner(text.raw()), &mut json);
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
            if let Some(originals) = self.originals(&entries, role, firsts) {
                originals.into_iter().for_each(|at| self.write(at, &mut json));
                continue;
            }
            let owner = entries.iter().find_map(|entry| match entry {
                Entry::Raw(raw) => Some(self.owner(raw)),
                _ => None,
            });
            let owner = owner.and_then(|at| self.messages.get(at).zip(given.get_mut(at)));
            let owner = owner.filter(|(message, _)| message.role == role);
            let owner = owner
                .and_then(|(message, given)| (!std::mem::replace(given, true)).then_some(message));
            write_message(owner, role, &entries, &mut json);
        }
        json.end_array();
        let written = String::from_utf8(out).unwrap_or_default();
        let is_same = json::elements(&written).eq(self.messages.iter().map(|message| message.raw));
        (!is_same).then_some(written)
    }

    /// Returns the indices of the client's messages that consist of exactly the blocks `entries`,
    /// in order, or `None` if the blocks differ. `firsts` has the offset of each message's first
    /// block, so that each message is read only once for all turns.
    fn originals(
        &self,
        entries: &[Entry<'_, 'a>],
        role: Role,
        firsts: &[usize],
    ) -> Option<Vec<usize>> {
        let mut found = Vec::new();
        let mut entries = entries.iter().peekable();
        while let Some(Entry::Raw(first)) = entries.peek() {
            let at = self.owner(first);
            let message = self.messages.get(at).filter(|message| message.role == role)?;
            if firsts.get(at) != Some(&self.offset(first)) {
                return None;
            }
            for raw in self.kept(message) {
                match entries.next() {
                    Some(Entry::Raw(entry)) if self.offset(entry) == self.offset(raw) => {}
                    _ => return None,
                }
            }
            found.push(at);
        }
        entries.peek().is_none().then_some(found)
    }

    /// Writes a message of the client, without its omitted content blocks.
    fn write(&self, at: usize, json: &mut Writer<'_>) {
        let Some(message) = self.messages.get(at) else { return };
        if !self.is_shortened(message) {
            json.raw(message.raw);
            return;
        }
        let entries: Vec<_> = self.kept(message).map(Entry::Raw).collect();
        if !entries.is_empty() {
            write_message(Some(message), message.role, &entries, json);
        }
    }
}

/// Makes a content block for `history::pairs`, which reads only the ids of calls and results, and
/// takes a call or result out of the message. The raw JSON text serves as the block's content.
fn stand_in<'a>(at: usize, raw: &'a str, block: &mut Block<'a>) -> Block<'a> {
    let text = Block::Unknown(Str::plain(raw));
    match block {
        Block::ToolUse(call) => {
            **call = ToolUse {
                at,
                id: call.id,
                name: Str::default(),
                toolset: None,
                input: Raw::of(raw),
                cleared: false,
                is_server: false,
            };
        }
        Block::ToolResult(result) => {
            let (id, content) = (result.id, vec![text]);
            **result = ToolResult { id, content, is_error: false, cleared: false };
        }
        _ => return text,
    }
    // The block that stays in the message is not read again.
    std::mem::replace(block, Block::Note)
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
    let content = json::member(result, "content").unwrap_or_default();
    let (mut text, mut others) = (Vec::from_iter(json::string(content)), Vec::new());
    for block in json::elements(content) {
        match json::member(block, "text").and_then(json::string) {
            Some(own) => text.push(own),
            None => others.push(block),
        }
    }
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

/// Writes a message with the members of `owner`, except for its content.
fn write_message(
    owner: Option<&Message<'_>>,
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
        for (key, value) in json::members(owner.raw) {
            if !(key == "role" || key == "content") {
                json.key_str(key).raw(value);
            }
        }
    }
    json.end_object();
}
