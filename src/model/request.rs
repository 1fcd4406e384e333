//! The body of `POST /v1/messages`.

use super::block::{Block, BlockParent, Text};
use super::cache_mark::CacheMark;
use super::context_management::ContextManagement;
use super::mcp_servers::McpServers;
use super::source::{Read, Source, bad_tag, missing, read_body, required};
use super::tool::{ToolChoice, ToolDefinition};
use crate::error::Error;
use crate::json::{self, Str, ValueKind};
use crate::model::limits::Many;
use crate::observe::warning::Warnings;

/// Number of tools above which unused capacity of the list is freed.
const MANY_TOOLS: usize = 1_000;

/// Body of a Messages request.
#[derive(Debug, Default)]
pub(crate) struct Request<'a> {
    /// `model`
    pub model: Str<'a>,
    /// `max_tokens`; `None` for a token count, which has no limit.
    pub max_tokens: Option<u64>,
    /// `messages`
    pub messages: Vec<Message<'a>>,
    /// `system`, one text for each block.
    pub system: Vec<Text<'a>>,
    /// `stream`
    pub stream: bool,
    /// `stop_sequences`
    pub stop_sequences: Vec<Str<'a>>,
    /// `temperature`, as it was written.
    pub temperature: Option<&'a str>,
    /// `top_p`, as it was written.
    pub top_p: Option<&'a str>,
    /// `top_k`
    pub top_k: Option<u64>,
    /// `tools`
    pub tools: Vec<ToolDefinition<'a>>,
    /// `tool_choice`
    pub tool_choice: Option<ToolChoice<'a>>,
    /// `thinking`
    pub thinking: Option<Thinking>,
    /// `output_config.effort`
    pub effort: Option<Str<'a>>,
    /// JSON Schema of `output_config.format`, else of `output_format`.
    pub output_schema: Option<&'a str>,
    /// True if there is an `output_config.task_budget`.
    pub task_budget: bool,
    /// `metadata.user_id`
    pub user_id: Option<Str<'a>>,
    /// `service_tier`
    pub service_tier: Option<Str<'a>>,
    /// `speed`
    pub speed: Option<Str<'a>>,
    /// True if `inference_geo` names a place, and not `global`.
    pub inference_geo: bool,
    /// True if there is a `container`.
    pub container: bool,
    /// `context_management`
    pub context_management: ContextManagement<'a>,
    /// True if there is a `compaction`.
    pub compaction: bool,
    /// `mcp_servers`
    pub mcp_servers: McpServers<'a>,
    /// True if there are `fallbacks`.
    pub fallbacks: bool,
    /// True if there is a `fallback_credit_token`.
    pub fallback_credit_token: bool,
    /// True if `billing_policy.bill_to` is `user_profile`, the user's own profile.
    pub bill_to_user: bool,
    /// `safeguards`, as it was written.
    pub safeguards: Option<&'a str>,
    /// True if there is a `thread`.
    pub thread: bool,
    /// Number of tools and blocks of the request that have a `cache_control`.
    pub breakpoints: usize,
    /// `cache_control` of the request itself: the client wants all of the prompt cached, and marks
    /// no block for that.
    pub cached: Option<CacheMark>,
    /// True if a text of the request has an escape for half a surrogate pair.
    pub has_halves: bool,
}

/// Element of `messages`.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    /// `role`: the speaker of the message.
    pub role: Role,
    /// Blocks of `content`; a string is one text block.
    pub content: Vec<Block<'a>>,
    /// True with `clear_at: "next_user_message"`: the message is only shown until the user speaks
    /// again.
    pub until_next_user: bool,
    /// `output_config.effort` of a system message.
    pub effort: Option<Str<'a>>,
}

/// Returns the index of the assistant's last message that answers the messages before it. A final
/// message of the assistant, which the model is to continue, answers nothing.
pub(crate) fn last_answer(messages: &[Message<'_>]) -> Option<usize> {
    let before = messages.split_last().map_or_else(Default::default, |(_, before)| before);
    before.iter().rposition(|message| message.role == Role::Assistant)
}

/// Speaker of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// `user`
    User,
    /// `assistant`
    Assistant,
    /// `system`
    System,
}

/// `thinking`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thinking {
    /// `type`
    pub mode: ThinkingMode,
    /// `display: "omitted"`
    pub omitted: bool,
}

/// `thinking.type`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThinkingMode {
    /// `adaptive`
    Adaptive,
    /// `enabled`, with `budget_tokens`
    Enabled(u64),
    /// `disabled`
    Disabled,
    /// `between_tools`
    BetweenTools,
}

impl<'a> Request<'a> {
    /// Reads the body of a request, also one for a token count, which has no `max_tokens`.
    ///
    /// # Errors
    /// The body is not JSON or not a Messages request; the message begins with the path of what is
    /// wrong.
    pub(crate) fn read(body: &'a str, warnings: &mut Warnings) -> Result<Self, Error> {
        read_body(body, warnings, Self::read_members)
    }

    fn read_members(source: &mut Source<'a, '_>) -> Read<Self> {
        let mut request = Self::default();
        let (mut model, mut messages, mut old_format) = (None, None, None);
        source.object(|source, key| {
            match key {
                "model" => return source.string(&mut model),
                "messages" => messages = Some(source.messages()?),
                "output_format" => old_format = Some(source.output_format()?),
                _ => return request.read_member(source, key),
            }
            Ok(true)
        })?;
        request.has_halves = source.reader.has_halves();
        let tools = request.tools.iter().filter(|tool| tool.cached.is_some()).count();
        request.breakpoints = source.breakpoints.saturating_add(tools);
        request.model = required(model, "model")?;
        request.messages = required(messages, "messages")?;
        request.output_schema = request.output_schema.or(old_format);
        Ok(request)
    }

    fn read_member(&mut self, source: &mut Source<'a, '_>, key: &str) -> Read<bool> {
        match key {
            "max_tokens" => return source.whole_number(&mut self.max_tokens),
            "system" => self.system = source.system()?,
            "stream" => return source.bool(&mut self.stream),
            "stop_sequences" => {
                // Of equal names the last one counts, here and below.
                self.stop_sequences.clear();
                source.array(Many::StopSequences, |source| {
                    self.stop_sequences.push(source.reader.string()?);
                    Ok(())
                })?;
            }
            "temperature" => self.temperature = Some(source.reader.number()?),
            "top_p" if source.is_unset() => {
                self.top_p = None;
                return source.skip();
            }
            "top_p" => self.top_p = Some(source.reader.number()?),
            "top_k" if source.is_unset() => {
                self.top_k = None;
                return source.skip();
            }
            "top_k" => return source.whole_number(&mut self.top_k),
            "tools" => {
                self.tools.clear();
                source.array(Many::Tools, |source| {
                    self.tools.push(ToolDefinition::read(source)?);
                    Ok(())
                })?;
                if self.tools.len() > MANY_TOOLS {
                    self.tools.shrink_to_fit();
                }
            }
            "tool_choice" => self.tool_choice = Some(ToolChoice::read(source)?),
            "thinking" => self.thinking = source.thinking_config()?,
            "output_config" => self.read_output_config(source)?,
            "metadata" => source.object(|source, key| match key {
                "user_id" => source.string(&mut self.user_id),
                _ => Ok(false),
            })?,
            "service_tier" => return source.string(&mut self.service_tier),
            "speed" => return source.string(&mut self.speed),
            _ => return self.read_unserved(source, key),
        }
        Ok(true)
    }

    /// Reads members that no other upstream can serve: only their presence is noted.
    fn read_unserved(&mut self, source: &mut Source<'a, '_>, key: &str) -> Read<bool> {
        match key {
            // "global" promises nothing.
            "inference_geo" => self.inference_geo = source.reader.string()? != "global",
            "container" => return source.given(&mut self.container),
            "context_management" => {
                self.context_management = source.context_management()?;
            }
            "compaction" => self.compaction = source.ignore(ValueKind::Object)?,
            "mcp_servers" => {
                let mut list = source.reader.clone();
                source.array(Many::Fields, |source| source.ignore(ValueKind::Object).map(drop))?;
                self.mcp_servers = McpServers::new(list.skip()?);
            }
            "fallbacks" => {
                let is_empty = |byte: u8| matches!(byte, b'[' | b']') || byte.is_ascii_whitespace();
                self.fallbacks = !source.reader.skip()?.bytes().all(is_empty);
            }
            "fallback_credit_token" => return source.given(&mut self.fallback_credit_token),
            "billing_policy" => source.tagged(|source, key| match key {
                "bill_to" => {
                    self.bill_to_user = source.reader.string()? == "user_profile";
                    Ok(true)
                }
                _ => Ok(false),
            })?,
            "safeguards" => self.safeguards = Some(source.reader.skip()?),
            "thread" => self.thread = source.ignore(ValueKind::Object)?,
            "cache_control" => self.cached = Some(source.cache_control()?),
            "diagnostics" => return source.ignore(ValueKind::Object),
            // The SDKs turn these into headers before they send the request.
            "betas" | "user_profile_id" | "workspace_id" => return source.skip(),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_output_config(&mut self, source: &mut Source<'a, '_>) -> Read<()> {
        source.object(|source, key| {
            match key {
                "effort" => return source.string(&mut self.effort),
                "format" => self.output_schema = Some(source.output_format()?),
                "task_budget" => self.task_budget = source.ignore(ValueKind::Object)?,
                _ => return Ok(false),
            }
            Ok(true)
        })
    }
}

impl<'a> Source<'a, '_> {
    /// Reads `system`: a string or an array of text blocks.
    fn system(&mut self) -> Read<Vec<Text<'a>>> {
        if self.reader.kind()? != ValueKind::Array {
            let blocks = self.content(BlockParent::Message)?;
            return Ok(blocks.into_iter().filter_map(into_text).collect());
        }
        let mut texts = Vec::new();
        self.array(Many::Blocks, |source| {
            let tag = source.tag()?;
            if tag != "text" {
                return Err(bad_tag(tag, "'text'"));
            }
            texts.extend(into_text(source.block(BlockParent::Message)?));
            Ok(())
        })?;
        Ok(texts)
    }

    fn messages(&mut self) -> Read<Vec<Message<'a>>> {
        let mut messages = Vec::new();
        self.array(Many::Messages, |source| {
            messages.push(source.message()?);
            Ok(())
        })?;
        Ok(messages)
    }

    fn message(&mut self) -> Read<Message<'a>> {
        let (mut role, mut content, mut effort, mut until_next_user) = (None, None, None, false);
        self.object(|source, key| {
            match key {
                "role" => role = Some(source.role()?),
                "content" => content = Some(source.content(BlockParent::Message)?),
                "clear_at" => until_next_user = source.reader.string()? == "next_user_message",
                "output_config" => source.object(|source, key| match key {
                    "effort" => source.string(&mut effort),
                    _ => Ok(false),
                })?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let role = required(role, "role")?;
        let content = match content {
            Some(content) => content,
            // A system message may be there only for its effort.
            None if role == Role::System => Vec::new(),
            None => return Err(missing("content")),
        };
        Ok(Message { role, content, until_next_user, effort })
    }

    fn role(&mut self) -> Read<Role> {
        match self.reader.clone().string()?.decode().as_ref() {
            "user" => self.skip().map(|_| Role::User),
            "assistant" => self.skip().map(|_| Role::Assistant),
            "system" => self.skip().map(|_| Role::System),
            _ => Err(json::Error::value("Input should be 'user', 'assistant' or 'system'")),
        }
    }

    fn thinking_config(&mut self) -> Read<Option<Thinking>> {
        let start = self.reader.clone();
        let tag = self.tag();
        let (mut budget, mut omitted, mut binds_blocks) = (None, false, false);
        self.tagged(|source, key| match key {
            "budget_tokens" => source.whole_number(&mut budget),
            "display" => {
                omitted = source.reader.string()? == "omitted";
                Ok(true)
            }
            "block_binding" => {
                binds_blocks = true;
                source.ignore(ValueKind::Object)
            }
            _ => Ok(false),
        })?;
        let lenient = !self.warnings.strict();
        // The real API takes settings of blocks that come back, without a mode.
        if tag.is_err() && binds_blocks && lenient {
            return Ok(None);
        }
        let tag = tag?;
        let mode = match tag.decode().as_ref() {
            // As clients say it that were written for DeepSeek, Kimi or Zhipu.
            "enabled" | "auto" if lenient && budget.is_none() => {
                self.warnings.add("thinking_without_budget");
                ThinkingMode::Adaptive
            }
            "adaptive" => ThinkingMode::Adaptive,
            "enabled" => ThinkingMode::Enabled(required(budget, "budget_tokens")?),
            "disabled" => ThinkingMode::Disabled,
            "between_tools" => ThinkingMode::BetweenTools,
            _ => {
                self.reader = start;
                let known = "'adaptive', 'between_tools', 'disabled', 'enabled'";
                return Err(bad_tag(tag, known));
            }
        };
        Ok(Some(Thinking { mode, omitted }))
    }

    /// `{"type": "json_schema", "schema": …}`; gives the schema.
    fn output_format(&mut self) -> Read<&'a str> {
        let tag = self.tag()?;
        if tag != "json_schema" {
            return Err(bad_tag(tag, "'json_schema'"));
        }
        let mut schema = None;
        self.tagged(|source, key| match key {
            "schema" => {
                schema = Some(source.raw_of(ValueKind::Object)?);
                Ok(true)
            }
            _ => Ok(false),
        })?;
        required(schema, "schema")
    }
}

fn into_text(block: Block<'_>) -> Option<Text<'_>> {
    match block {
        Block::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
