//! Messages to turns: what is only for Anthropic leaves here, and system messages in the middle go
//! where the upstream can take them.

use super::attached::has_image;
use super::omitted::{PDF_OMITTED, SHOWN_PDF_OMITTED, TYPE_OMITTED, URL_OMITTED};
use super::server_tools as server_history;
use super::thinking;
use crate::carry::marks::Marks;
use crate::carry::signature::Signature;
use crate::dialect::profile::{
    ImageParts, MidSystem, Profile, ServerHistory, SystemRole, ToolSchema,
};
use crate::error::Error;
use crate::history::Turns;
use crate::json::Str;
use crate::model::tool::ToolChange;
use crate::model::turn::{Turn, UserPart};
use crate::model::{Block, Document, DocumentSource, Message, Role, Text, unknown_tag};
use crate::observe::warning::Warnings;
use crate::text::names::NameSet;

/// What the messages of a request say, beside `turns` the things that act on the whole request.
#[derive(Debug, Default)]
pub(crate) struct History<'a> {
    pub(crate) turns: Vec<Turn<'a>>,
    /// System messages that belong to the system prompt.
    pub(crate) system: Vec<Text<'a>>,
    /// What became of the tools, in order.
    pub(crate) changes: Vec<ToolChange<'a>>,
    /// Tools that a search found.
    pub(crate) activated: NameSet<'a>,
    /// The effort that the last system message with one asks for.
    pub(crate) effort: Option<Str<'a>>,
    /// Some of it was thought by the upstream's model.
    pub(crate) has_reasoning: bool,
    /// The ids of all calls.
    pub(crate) ids: NameSet<'static>,
}

pub(crate) struct Reading<'p, 'w, 'a> {
    profile: &'p Profile,
    marks: &'p Marks,
    warnings: &'w mut Warnings,
    history: History<'a>,
    turns: Turns<'a>,
    begun: bool,
    /// The thinking and its signatures in the message of the assistant that is read, and in the one before it, if only
    /// results came after that.
    signed: Vec<(Str<'a>, Str<'a>)>,
    signed_before: Vec<(Str<'a>, Str<'a>)>,
    /// A message of the assistant comes after the one that is read.
    is_answered: bool,
    /// The ids of calls are kept.
    keeps_ids: bool,
}

impl<'a> History<'a> {
    /// Reads the messages. `marks` are those of the upstream that they are for.
    ///
    /// # Errors
    /// Something that the user said would be lost.
    pub(crate) fn new(
        messages: Vec<Message<'a>>,
        profile: &Profile,
        marks: &Marks,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        Self::read(messages, profile, marks, true, warnings)
    }

    /// Reads the messages, where their ids are known. There can be thousands.
    ///
    /// # Errors
    /// As for [`History::new`].
    pub(crate) fn without_ids(
        messages: Vec<Message<'a>>,
        profile: &Profile,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        Self::read(messages, profile, &Marks::default(), false, warnings)
    }

    fn read(
        messages: Vec<Message<'a>>,
        profile: &Profile,
        marks: &Marks,
        keeps_ids: bool,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        let last_user = messages.iter().rposition(|message| message.role == Role::User);
        // What the assistant is to go on with answers nothing.
        let said = messages.split_last().map_or_else(Default::default, |(_, before)| before);
        let last_answer = said.iter().rposition(|message| message.role == Role::Assistant);
        let mut reading = Reading {
            profile,
            marks,
            warnings,
            history: Self::default(),
            turns: Turns::default(),
            begun: false,
            signed: Vec::new(),
            signed_before: Vec::new(),
            is_answered: false,
            keeps_ids,
        };
        for (at, message) in messages.into_iter().enumerate() {
            reading.is_answered = Some(at) < last_answer;
            match message.role {
                Role::System => {
                    let over = message.until_next_user && last_user > Some(at);
                    reading.system(at, message, over)?;
                }
                role => {
                    let of_user = role == Role::User;
                    let goes_on = !of_user && reading.goes_on(&message.content);
                    if of_user {
                        reading.turns.user();
                        reading.turns.expect(message.content.len());
                    } else if goes_on {
                        reading.turns.go_on();
                    } else if !reading.belongs(&message.content) {
                        reading.turns.assistant(message.content.len());
                        reading.signed_before = std::mem::take(&mut reading.signed);
                    }
                    let blocks = message.content.into_iter().enumerate();
                    for (number, block) in blocks.skip(usize::from(goes_on)) {
                        let taken =
                            if of_user { reading.user(block) } else { reading.assistant(block) };
                        taken.map_err(|refused| refused.at(at, number, of_user))?;
                    }
                    reading.begun = true;
                }
            }
        }
        let Reading { mut history, turns, .. } = reading;
        // Gemini has a call directly after the user's words or after results.
        let is_gemini = profile.tool_schema == ToolSchema::Gemini;
        history.turns = turns.finish(profile.alternating_roles || is_gemini);
        Ok(history)
    }
}

/// Why a block cannot be taken.
enum NotTaken {
    /// It belongs to the other side.
    Side(&'static str),
    /// Its type is not known: what the real API says of it, and the types that are.
    Tag(String, &'static str),
    /// It is a thinking block with another text than the model's.
    Modified,
    /// It is a block of this type, which needs something that only Anthropic has.
    Unsupported(&'static str),
    /// Strict mode.
    Strict(Error),
}

/// The types of blocks that are named where one is not known.
const TAGS: &str = "'document', 'image', 'search_result', 'text', 'tool_result', 'tool_use'";
const SYSTEM_TAGS: &str = "'text', 'tool_addition', 'tool_removal'";

impl From<Error> for NotTaken {
    fn from(error: Error) -> Self {
        Self::Strict(error)
    }
}

impl NotTaken {
    fn tag(tag: Str<'_>, known: &'static str) -> Self {
        Self::Tag(unknown_tag(&tag.decode()), known)
    }

    fn at(self, message: usize, block: usize, of_user: bool) -> Error {
        let path = format!("messages.{message}.content.{block}");
        match self {
            Self::Side(kind) => {
                let side = if of_user { "assistant" } else { "user" };
                Error::invalid(format!("{path}: `{kind}` blocks can only be in `{side}` messages"))
            }
            Self::Tag(told, known) => Error::invalid([&path, ": ", &told, ": ", known].concat()),
            Self::Modified => Error::invalid(format!(
                "{path}: `thinking` or `redacted_thinking` blocks in the latest assistant message \
                 cannot be modified. These blocks must remain as they were in the original response."
            )),
            Self::Unsupported(kind) => {
                Error::unsupported_kind(&format!("messages[{message}].content[{block}]"), kind)
            }
            Self::Strict(error) => error,
        }
    }
}

fn is_pdf(document: &Document<'_>) -> bool {
    matches!(document.source, DocumentSource::Base64 { media_type, .. } if media_type == "application/pdf")
}

/// Whether nothing of a server tool's result can be read. It is dropped, because a turn of it alone would be an
/// empty message.
fn is_unreadable(block: &Block<'_>) -> bool {
    let Block::ServerToolResult { content, is_error: false, .. } = block else { return false };
    let mut said = Vec::new();
    server_history::push_result(&mut said, content);
    said.is_empty()
}

/// Whether a signature of ours names these calls: those with an input in it, or the first, which Gemini signs alone.
fn names(signature: &Str<'_>, blocks: &[Block<'_>]) -> bool {
    let Some(own) = Signature::decode(&signature.decode()) else { return false };
    let named = match own.call_inputs.is_empty() {
        true => own.call_signatures,
        false => own.call_inputs,
    };
    let mut ids = NameSet::default();
    for (id, _) in named {
        ids.add(id);
    }
    blocks
        .iter()
        .any(|block| matches!(block, Block::ToolUse(call) if ids.contains(&call.id.decode())))
}

/// Whether a signature of ours carries those of calls.
fn signs_calls(signature: &Str<'_>) -> bool {
    Signature::decode(&signature.decode()).is_some_and(|own| !own.call_signatures.is_empty())
}

impl<'a> Reading<'_, '_, 'a> {
    /// Whether a message is the next call of the answer that the message before it began, as n8n writes each: all
    /// have the same thinking block. One that names calls is of one answer only.
    fn goes_on(&self, blocks: &[Block<'a>]) -> bool {
        let [Block::Thinking { thinking, signature }, calls @ ..] = blocks else { return false };
        self.signed.first() == Some(&(*thinking, *signature))
            && !calls.is_empty()
            && calls.iter().all(|block| matches!(block, Block::ToolUse(_)))
            && names(signature, calls)
    }

    /// Whether a message has a call of the answer whose thinking the message directly before it has.
    fn belongs(&self, blocks: &[Block<'a>]) -> bool {
        self.turns.ends_with_assistant()
            && self.signed.iter().any(|(_, signature)| names(signature, blocks))
    }

    fn user(&mut self, mut block: Block<'a>) -> Result<(), NotTaken> {
        if !matches!(block, Block::ToolResult(_)) {
            self.signed.clear();
        }
        if self.is_answered {
            self.omit(&mut block, false);
        }
        if self.profile.image_parts == ImageParts::None && has_image(&block) {
            self.image("image")?;
        }
        match block {
            Block::ToolResult(mut result) => {
                result.content.iter_mut().for_each(|block| self.omit(block, true));
                self.activate(&result.content);
                self.turns.result(*result);
            }
            Block::Compaction { content, changes } => self.compaction(content, changes),
            Block::ToolChange(change) => self.history.changes.push(*change),
            Block::ContainerUpload => return Err(NotTaken::Unsupported("container_upload")),
            Block::Unknown(tag) => return Err(NotTaken::tag(tag, TAGS)),
            Block::ToolUse(_) => return Err(NotTaken::Side("tool_use")),
            Block::Thinking { .. } => return Err(NotTaken::Side("thinking")),
            Block::RedactedThinking(_) => return Err(NotTaken::Side("redacted_thinking")),
            Block::ServerToolUse { .. } => return Err(NotTaken::Side("server_tool_use")),
            Block::ServerToolResult { .. } => return Err(NotTaken::Side("*_tool_result")),
            Block::Note => {}
            Block::Text(_)
            | Block::Image(_)
            | Block::Document(_)
            | Block::SearchResult(_)
            | Block::ToolReference(_)
            | Block::BrowserState { .. } => {
                self.activate(std::slice::from_ref(&block));
                self.turns.item(UserPart::Block(block));
            }
        }
        Ok(())
    }

    fn assistant(&mut self, block: Block<'a>) -> Result<(), NotTaken> {
        match block {
            Block::ToolUse(call) => {
                if self.keeps_ids {
                    self.history.ids.add(call.id.decode().into_owned());
                }
                self.turns.block(Block::ToolUse(call));
            }
            Block::Thinking { thinking, signature } => self.thinking(thinking, signature)?,
            // Some clients keep a block without text as one of these, its signature in `data`.
            Block::RedactedThinking(data) => self.thinking(Str::default(), data)?,
            Block::ServerToolUse { .. } | Block::ServerToolResult { .. } => {
                if let Block::ServerToolResult { content, tool_search: true, .. } = block {
                    server_history::tool_names(content, |name| {
                        self.history.activated.add(name.decode());
                    });
                }
                if self.profile.server_history == ServerHistory::Text && !is_unreadable(&block) {
                    self.turns.block(block);
                }
            }
            Block::Compaction { content, changes } => self.compaction(content, changes),
            Block::ToolChange(change) => self.history.changes.push(*change),
            Block::ContainerUpload => return Err(NotTaken::Unsupported("container_upload")),
            Block::ToolResult(_) => return Err(NotTaken::Side("tool_result")),
            Block::Unknown(tag) if self.warnings.strict() => return Err(NotTaken::tag(tag, TAGS)),
            Block::Unknown(tag) => self.warnings.add_named("unknown_block", &tag.decode()),
            // Chat Completions has no place for an image that the assistant shows.
            Block::Image(_) => self.image("assistant_image")?,
            // Only a user's message has a place for one.
            Block::Document(document)
                if is_pdf(&document) && self.profile.file_parts && !self.warnings.strict() =>
            {
                let block = self.omitted("document", SHOWN_PDF_OMITTED);
                self.turns.block(block);
            }
            Block::Document(document) => {
                if let DocumentSource::Content(inner) = &document.source
                    && inner.iter().any(|block| matches!(block, Block::Image(_)))
                {
                    self.image("assistant_image")?;
                }
                let mut block = Block::Document(document);
                self.omit(&mut block, false);
                self.turns.block(block);
            }
            Block::Note => {}
            Block::Text(_)
            | Block::SearchResult(_)
            | Block::ToolReference(_)
            | Block::BrowserState { .. } => self.turns.block(block),
        }
        Ok(())
    }

    fn thinking(&mut self, thinking: Str<'a>, signature: Str<'a>) -> Result<(), NotTaken> {
        let (profile, marks) = (self.profile, self.marks);
        let block = thinking::returned(thinking, signature, profile, marks, self.warnings);
        // The same text again is the same thought, in another message with a call of its answer. Signatures of calls
        // would be lost with it.
        let place = self.signed.len();
        let is_repeated =
            !signature.is_empty() && self.signed_before.get(place) == Some(&(thinking, signature));
        self.signed.push((thinking, signature));
        let Some(block) = block.map_err(|thinking::Modified| NotTaken::Modified)? else {
            return Ok(());
        };
        self.history.has_reasoning = true;
        if !is_repeated || signs_calls(&signature) {
            self.turns.block(block);
        }
        Ok(())
    }

    /// An image that the model does not get to see.
    fn image(&mut self, whose: &str) -> Result<(), NotTaken> {
        if self.warnings.strict() {
            return Err(NotTaken::Unsupported("image"));
        }
        self.warnings.add_named("dropped", whose);
        Ok(())
    }

    /// Puts words in place of what the model does not take and the client sends again with each request. What the user
    /// has just given is refused, where that is seen at once.
    fn omit(&mut self, block: &mut Block<'a>, in_result: bool) {
        if self.warnings.strict() {
            return;
        }
        match block {
            Block::Document(document) if is_pdf(document) && !self.profile.file_parts => {
                *block = self.omitted("document", PDF_OMITTED);
            }
            Block::Image(image)
                if image.source.is_remote() && self.profile.image_parts == ImageParts::Data =>
            {
                *block = self.omitted("image", URL_OMITTED);
            }
            // What a user attached and the assistant answered, the model has taken.
            Block::Image(image)
                if in_result
                    && self.profile.image_parts != ImageParts::None
                    && !image.source.is_of_known_type() =>
            {
                *block = self.omitted("image", TYPE_OMITTED);
            }
            Block::Document(document) => {
                if let DocumentSource::Content(inner) = &mut document.source {
                    inner.iter_mut().for_each(|block| self.omit(block, in_result));
                }
            }
            _ => {}
        }
    }

    /// Words that stand where something was left out.
    fn omitted(&mut self, what: &str, words: &'static str) -> Block<'a> {
        self.warnings.add_named("dropped", what);
        Block::Text(Text { text: Str::plain(words), cached: false, cited: false })
    }

    fn system(&mut self, at: usize, message: Message<'a>, over: bool) -> Result<(), Error> {
        self.signed.clear();
        self.history.effort = message.effort.or(self.history.effort);
        let mut texts = Vec::new();
        for (number, block) in message.content.into_iter().enumerate() {
            match block {
                Block::Text(text) => texts.push(text),
                Block::ToolChange(change) => self.history.changes.push(*change),
                Block::Unknown(tag) if self.warnings.strict() => {
                    return Err(NotTaken::tag(tag, SYSTEM_TAGS).at(at, number, false));
                }
                // The API adds types here, and the client sends its history again each time.
                Block::Unknown(tag) => self.warnings.add_named("unknown_block", &tag.decode()),
                _ => {
                    return Err(Error::invalid(format!(
                        "messages.{at}.content.{number}: only `text` blocks, `tool_addition` and \
                         `tool_removal` can be in `system` messages"
                    )));
                }
            }
        }
        texts.retain(|text| !text.text.is_blank());
        if over || texts.is_empty() {
            return Ok(());
        }
        // Before anything else was said, it is the system prompt, whatever the client calls it.
        if !self.begun || self.profile.mid_system == MidSystem::MergeToTop {
            self.history.system.extend(texts);
            return Ok(());
        }
        let texts = texts.into_iter().map(|text| text.text).collect();
        // A model without a role for them has none in the middle either.
        let in_place = self.profile.mid_system == MidSystem::InPlace
            && self.profile.system_role != SystemRole::User;
        if in_place {
            self.turns.system(texts);
        } else {
            self.turns.item(UserPart::System(texts));
        }
        Ok(())
    }

    fn compaction(&mut self, content: Option<Str<'a>>, changes: Vec<ToolChange<'a>>) {
        self.history.changes.extend(changes);
        if let Some(summary) = content.filter(|summary| !summary.is_blank()) {
            self.turns.item(UserPart::Summary(summary));
        }
    }

    fn activate(&mut self, blocks: &[Block<'a>]) {
        for block in blocks {
            if let Block::ToolReference(name) = block {
                self.history.activated.add(name.decode());
            }
        }
    }
}
