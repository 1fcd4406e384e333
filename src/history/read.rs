//! Reader of messages, block by block. Content that only Anthropic can use is dropped, and every
//! other block becomes a part of a turn.

use super::History;
use super::attached::has_image;
use super::cited_pages;
use super::image_types;
use super::omitted::{self, SHOWN_PDF_OMITTED, is_pdf};
use super::recipient::Recipient;
use super::refused::{NotTaken, TAGS};
use super::server_tools as server_history;
use super::thinking::{self, SplitThinking};
use super::turns::Turns;
use crate::error::Error;
use crate::json::Str;
use crate::model::request::last_answer;
use crate::model::tool::ToolChange;
use crate::model::turn::UserPart;
use crate::model::{Block, DocumentSource, Message, Role, ServerResultKind, ServerToolResult};
use crate::observe::warning::Warnings;
use crate::profile::{ImageParts, ServerHistory};
use crate::text::names::NameSet;

/// State of reading a request's messages into turns.
pub(super) struct HistoryReading<'p, 'w, 'a> {
    pub(super) recipient: Recipient<'p>,
    pub(super) warnings: &'w mut Warnings,
    pub(super) history: History<'a>,
    pub(super) turns: Turns<'a>,
    /// True if a message of the user or the assistant was read.
    pub(super) begun: bool,
    /// True if a message of the assistant was read.
    pub(super) answered: bool,
    pub(super) thought: SplitThinking<'a>,
    /// True if a message of the assistant comes after the current message.
    is_answered: bool,
    /// Ids of the calls of tools that Creole runs.
    run_here: NameSet<'a>,
}

/// Reads messages into turns, block by block.
///
/// # Errors
///
/// A block is not supported and must not be lost.
pub(super) fn messages<'a>(
    messages: Vec<Message<'a>>,
    recipient: Recipient<'_>,
    warnings: &mut Warnings,
) -> Result<(History<'a>, Turns<'a>), Error> {
    let last_user = messages.iter().rposition(|message| message.role == Role::User);
    let last_answer = last_answer(&messages);
    let mut reading = HistoryReading {
        recipient,
        warnings,
        history: History::default(),
        turns: Turns::default(),
        begun: false,
        answered: false,
        thought: SplitThinking::default(),
        is_answered: false,
        run_here: NameSet::default(),
    };
    for (at, message) in messages.into_iter().enumerate() {
        reading.is_answered = Some(at) < last_answer;
        match message.role {
            Role::System => {
                let is_over = message.until_next_user && last_user > Some(at);
                reading.system(at, message, is_over)?;
            }
            role => reading.message(at, role == Role::User, message.content)?,
        }
    }
    let HistoryReading { history, turns, .. } = reading;
    Ok((history, turns))
}

/// Returns true if a server tool's result has no readable text. The block is then dropped, because
/// a turn of this block alone would be an empty message.
fn is_unreadable(block: &Block<'_>) -> bool {
    let Block::ServerToolResult(result) = block else { return false };
    if result.is_error {
        return false;
    }
    let mut words = Vec::new();
    server_history::push_result(&mut words, result.content);
    words.is_empty()
}

/// Returns true if a block of the assistant is sent to every upstream as it is.
fn stays(block: &Block<'_>) -> bool {
    match block {
        Block::Text(text) => text.citations.is_none(),
        Block::ToolUse(_) => true,
        _ => false,
    }
}

impl<'a> HistoryReading<'_, '_, 'a> {
    /// Reads a message of the user or the assistant.
    fn message(&mut self, at: usize, of_user: bool, content: Vec<Block<'a>>) -> Result<(), Error> {
        let goes_on = !of_user && self.thought.goes_on(&content);
        if of_user {
            self.turns.user();
            self.turns.expect(content.len());
        } else if goes_on {
            self.turns.go_on();
        } else if !(self.turns.ends_with_assistant() && self.thought.names_call_of(&content)) {
            self.turns.assistant(content.len());
            self.thought.begin();
        }
        self.begun = true;
        self.answered |= !of_user;
        if !of_user && !goes_on && content.iter().all(stays) {
            if self.recipient.keeps_ids {
                self.history.add_ids(&content);
            }
            self.turns.blocks(content);
            return Ok(());
        }
        for (number, block) in content.into_iter().enumerate().skip(usize::from(goes_on)) {
            let taken = if of_user { self.user(block) } else { self.assistant(block) };
            taken.map_err(|refused| refused.at(at, number, of_user))?;
        }
        Ok(())
    }

    fn user(&mut self, mut block: Block<'a>) -> Result<(), NotTaken> {
        if !matches!(block, Block::ToolResult(_)) {
            self.thought.end();
        }
        if !self.warnings.strict() {
            image_types::correct(&mut block, self.warnings);
        }
        if self.is_answered {
            self.omit(&mut block, false);
        }
        if self.recipient.profile.image_parts == ImageParts::None && has_image(&block) {
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
            Block::ServerToolUse(_) => return Err(NotTaken::Side("server_tool_use")),
            Block::ServerToolResult(_) => return Err(NotTaken::Side("*_tool_result")),
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
            Block::ToolUse(_) => {
                if self.recipient.keeps_ids {
                    self.history.add_ids(std::slice::from_ref(&block));
                }
                self.turns.block(block);
            }
            Block::Thinking { thinking, signature } => self.thinking(thinking, signature)?,
            // Clients may store a thinking block without text in this form, with its signature in
            // `data`.
            Block::RedactedThinking(data) => self.thinking(Str::default(), data)?,
            Block::ServerToolUse(_) | Block::ServerToolResult(_) => self.server_tool(block),
            Block::Compaction { content, changes } => self.compaction(content, changes),
            Block::ToolChange(change) => self.history.changes.push(*change),
            Block::ContainerUpload => return Err(NotTaken::Unsupported("container_upload")),
            Block::ToolResult(_) => return Err(NotTaken::Side("tool_result")),
            Block::Unknown(tag) if self.warnings.strict() => return Err(NotTaken::tag(tag, TAGS)),
            Block::Unknown(tag) => self.warnings.add_named("unknown_block", &tag.decode()),
            // Chat Completions does not allow images in assistant messages.
            Block::Image(_) => self.image("assistant_image")?,
            // Only a user's message can have a PDF document.
            Block::Document(document)
                if is_pdf(&document)
                    && self.recipient.profile.file_parts
                    && !self.warnings.strict() =>
            {
                self.turns.block(omitted::words("document", SHOWN_PDF_OMITTED, self.warnings));
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
            Block::Text(mut text) => {
                if self.recipient.runs.web_search {
                    cited_pages::mark(&mut text, &self.history.pages);
                }
                self.turns.block(Block::Text(text));
            }
            Block::SearchResult(_) | Block::ToolReference(_) | Block::BrowserState { .. } => {
                self.turns.block(block);
            }
        }
        Ok(())
    }

    /// Reads a call or a result of a server tool. If Creole runs the tool, they become a call of
    /// the model's own and its result.
    fn server_tool(&mut self, block: Block<'a>) {
        match block {
            Block::ServerToolUse(call)
                if server_history::is_run_here(&call, self.recipient.runs) =>
            {
                let call = server_history::call(*call);
                self.run_here.add(call.id.decode());
                let block = Block::ToolUse(Box::new(call));
                if self.recipient.keeps_ids {
                    self.history.add_ids(std::slice::from_ref(&block));
                }
                self.turns.block(block);
            }
            Block::ServerToolResult(mut result) if self.is_run_here(&result) => {
                cited_pages::number(&mut result, &mut self.history.pages);
                self.load_found(&result);
                self.turns.result(server_history::output(result));
            }
            block => {
                if let Block::ServerToolResult(result) = &block {
                    self.load_found(result);
                }
                if self.recipient.profile.server_history == ServerHistory::Text
                    && !is_unreadable(&block)
                {
                    self.turns.block(block);
                }
            }
        }
    }

    /// Notes the tools that a search for tools found. The model gets them from now on.
    fn load_found(&mut self, result: &ServerToolResult<'a>) {
        if result.kind == ServerResultKind::ToolSearch {
            server_history::tool_names(result.content, |name| {
                self.history.activated.add(name.decode());
            });
        }
    }

    /// Returns true if a block is the result of a call of a tool that Creole runs.
    fn is_run_here(&self, result: &ServerToolResult<'_>) -> bool {
        let id = server_history::client_id(result.id);
        self.run_here.contains(&id.decode())
    }

    fn thinking(&mut self, thinking: Str<'a>, signature: Str<'a>) -> Result<(), NotTaken> {
        let block = thinking::returned(thinking, signature, self.recipient, self.warnings);
        let is_repeated = self.thought.is_repeated(thinking, signature);
        let Some(block) = block.map_err(|thinking::Modified| NotTaken::Modified)? else {
            return Ok(());
        };
        self.history.has_reasoning = true;
        if !is_repeated {
            self.turns.block(block);
        }
        Ok(())
    }

    /// Drops an image that the model cannot see, with a warning; in strict mode, refuses the
    /// request.
    fn image(&mut self, whose: &str) -> Result<(), NotTaken> {
        if self.warnings.strict() {
            return Err(NotTaken::Unsupported("image"));
        }
        self.warnings.add_named("dropped", whose);
        Ok(())
    }

    /// Replaces content that the model does not support by a placeholder text
    /// ([`omitted::replace`]).
    fn omit(&mut self, block: &mut Block<'a>, in_result: bool) {
        if !self.warnings.strict() {
            omitted::replace(block, in_result, self.recipient.profile, self.warnings);
        }
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
