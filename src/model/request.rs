//! Body of `POST /v1/messages`, and its reader.

use super::block::{Block, BlockParent, Text};
use super::cache_mark::CacheMark;
use super::context_management::ContextManagement;
use super::mcp_servers::McpServers;
use super::member_places::MemberPlaces;
use super::source::{BodySource, Read, bad_tag, missing, read_body, required};
use super::tool::{ToolChoice, ToolDefinition};
use crate::error::Error;
use crate::json::{self, Str, ValueKind};
use crate::model::limits::Many;
use crate::observe::warning::Warnings;

/// Number of tools above which the list's unused capacity is freed.
const MANY_TOOLS: usize = 1_000;

/// Body of a Messages request.
#[derive(Debug, Default)]
pub(crate) struct Request<'a> {
    /// Member `model`: name of the model that the client asks for.
    pub model: Str<'a>,
    /// Member `max_tokens`; `None` for a token counting request, which has no limit.
    pub max_tokens: Option<u64>,
    /// Member `messages`: the conversation.
    pub messages: Vec<Message<'a>>,
    /// Member `system`: the system prompt, one text for each block.
    pub system: Vec<Text<'a>>,
    /// Member `stream`: true if the client wants a stream of events.
    pub stream: bool,
    /// Member `stop_sequences`: texts that end the answer.
    pub stop_sequences: Vec<Str<'a>>,
    /// Member `temperature`, as the client wrote the number.
    pub temperature: Option<&'a str>,
    /// Member `top_p`, as the client wrote the number.
    pub top_p: Option<&'a str>,
    /// Member `top_k` for sampling.
    pub top_k: Option<u64>,
    /// Member `tools`: definitions of the tools.
    pub tools: Vec<ToolDefinition<'a>>,
    /// Member `tool_choice`: which tools the model may or must call.
    pub tool_choice: Option<ToolChoice<'a>>,
    /// Member `thinking`: settings of the reasoning.
    pub thinking: Option<Thinking>,
    /// Member `output_config.effort`: how much the model is to think.
    pub effort: Option<Str<'a>>,
    /// JSON Schema that the answer must match: from `output_config.format`, or else from
    /// `output_format`.
    pub output_schema: Option<&'a str>,
    /// True if the request has an `output_config.task_budget`.
    pub task_budget: bool,
    /// Member `metadata.user_id`: id of the client's user.
    pub user_id: Option<Str<'a>>,
    /// Member `service_tier`: tier in which the request is to be served.
    pub service_tier: Option<Str<'a>>,
    /// Member `speed`: speed at which the model is to answer.
    pub speed: Option<Str<'a>>,
    /// True if `inference_geo` names a region and not `global`.
    pub inference_geo: bool,
    /// True if the request has a `container`.
    pub container: bool,
    /// Member `context_management`: edits that hide parts of the history from the model.
    pub context_management: ContextManagement<'a>,
    /// True if the request has a `compaction`.
    pub compaction: bool,
    /// Member `mcp_servers`: MCP servers whose tools the API would call.
    pub mcp_servers: McpServers<'a>,
    /// Places of the members that further rounds of the answer change.
    pub places: MemberPlaces,
    /// True if the request has `fallbacks`.
    pub fallbacks: bool,
    /// True if the request has a `fallback_credit_token`.
    pub fallback_credit_token: bool,
    /// True if `billing_policy.bill_to` is `user_profile`: the user's own profile is billed.
    pub bill_to_user: bool,
    /// Member `safeguards`, as JSON text.
    pub safeguards: Option<&'a str>,
    /// True if the request has a `thread`.
    pub thread: bool,
    /// Number of tools and blocks in the request that have a `cache_control`.
    pub breakpoints: usize,
    /// Member `cache_control` of the request itself: the client wants the whole prompt cached,
    /// without a mark on a block.
    pub cached: Option<CacheMark>,
    /// True if a text of the request has a JSON escape for half a surrogate pair.
    pub has_halves: bool,
    /// True if [`Request::read_leniently`] skipped a value that it could not read.
    pub has_unread: bool,
}

/// Element of `messages`: one message of the conversation.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    /// JSON text of the message.
    pub raw: &'a str,
    /// Member `role`: the speaker of the message.
    pub role: Role,
    /// Blocks of `content`; a plain string becomes one text block.
    pub content: Vec<Block<'a>>,
    /// True if `clear_at` is `"next_user_message"`: the message is hidden from the model once the
    /// user speaks again.
    pub until_next_user: bool,
    /// Member `output_config.effort` of a system message: how much the model is to think from here
    /// on.
    pub effort: Option<Str<'a>>,
}

/// Returns the JSON text of each content block of a message or a tool result, whose JSON text is
/// `parent`. A content that is a string is one block.
pub(crate) fn raw_blocks(parent: &str) -> impl Iterator<Item = &str> {
    let content = json::member(parent, "content").unwrap_or_default();
    let string = content.starts_with('"').then_some(content);
    string.into_iter().chain(json::elements(content))
}

/// Returns the index of the assistant's last message, except a final message. A final message of
/// the assistant is a beginning that the model is to continue.
pub(crate) fn last_answer(messages: &[Message<'_>]) -> Option<usize> {
    let before = messages.split_last().map_or_else(Default::default, |(_, before)| before);
    before.iter().rposition(|message| message.role == Role::Assistant)
}

/// Speaker of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Role `user`.
    User,
    /// Role `assistant`.
    Assistant,
    /// Role `system`.
    System,
}

/// Request member `thinking`: settings of the reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thinking {
    /// Member `type`: the mode of the reasoning.
    pub mode: ThinkingMode,
    /// True if `display` is `"omitted"`: the client does not want the text of the reasoning.
    pub omitted: bool,
}

/// Value of `thinking.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ThinkingMode {
    /// Value `adaptive` of `thinking.type`: the model decides how much to think.
    Adaptive,
    /// Value `enabled` of `thinking.type`, with the token limit `budget_tokens`.
    Enabled(u64),
    /// Value `disabled` of `thinking.type`: no reasoning.
    Disabled,
    /// Value `between_tools` of `thinking.type`.
    BetweenTools,
}

impl<'a> Request<'a> {
    /// Reads the body of a Messages request, or of a token counting request, which has no
    /// `max_tokens`.
    ///
    /// # Errors
    ///
    /// The body is not JSON or not a Messages request. The error message begins with the JSON path
    /// of the wrong value.
    pub(crate) fn read(body: &'a str, warnings: &mut Warnings) -> Result<Self, Error> {
        read_body(body, false, warnings, Self::read_members)
    }

    /// Reads the body of a Messages request for an upstream that may know more than Creole. Values
    /// that cannot be read are skipped, and blocks that cannot be read count as unknown.
    ///
    /// # Errors
    ///
    /// The body is not JSON, its messages cannot be read, or a number is above Creole's limits.
    pub(crate) fn read_leniently(body: &'a str) -> Result<Self, Error> {
        read_body(body, true, &mut Warnings::new(false), Self::read_members)
    }

    fn read_members(source: &mut BodySource<'a, '_>) -> Read<Self> {
        let mut request = Self::default();
        let (mut model, mut messages, mut old_format) = (None, None, None);
        source.object(|source, key| {
            source.reader.kind()?;
            let start = source.reader.offset();
            let is_known = match key {
                "model" => source.string(&mut model)?,
                "messages" => {
                    messages = Some(source.messages()?);
                    true
                }
                "output_format" => {
                    old_format = Some(source.output_format()?);
                    true
                }
                _ => request.read_member(source, key)?,
            };
            request.places.note(key, start..source.reader.offset());
            Ok(is_known)
        })?;
        request.places.end(source.body.len());
        request.has_halves = source.reader.has_halves();
        request.has_unread = source.has_unread;
        let tools = request.tools.iter().filter(|tool| tool.cached.is_some()).count();
        request.breakpoints = source.breakpoints.saturating_add(tools);
        request.model = required(model, "model")?;
        request.messages = required(messages, "messages")?;
        request.output_schema = request.output_schema.or(old_format);
        Ok(request)
    }

    fn read_member(&mut self, source: &mut BodySource<'a, '_>, key: &str) -> Read<bool> {
        match key {
            "max_tokens" => return source.whole_number(&mut self.max_tokens),
            "system" => self.system = source.system()?,
            "stream" => return source.bool(&mut self.stream),
            "stop_sequences" => {
                // If a JSON member occurs twice, the last one wins.
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

    /// Reads members that only Anthropic's API can serve. Mostly, only their presence is recorded.
    fn read_unserved(&mut self, source: &mut BodySource<'a, '_>, key: &str) -> Read<bool> {
        match key {
            // The value "global" asks for no particular region.
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
            // Anthropic's SDKs turn these members into headers before they send the request.
            "betas" | "user_profile_id" | "workspace_id" => return source.skip(),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_output_config(&mut self, source: &mut BodySource<'a, '_>) -> Read<()> {
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

impl<'a> BodySource<'a, '_> {
    /// Reads the member `system`: a string, or an array of text blocks.
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
        self.reader.kind()?;
        let start = self.reader.offset();
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
            // A system message may exist only for its effort.
            None if role == Role::System => Vec::new(),
            None => return Err(missing("content")),
        };
        let raw = self.body.get(start..self.reader.offset()).unwrap_or_default();
        Ok(Message { raw, role, content, until_next_user, effort })
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
        // The real API accepts settings for returned thinking blocks without a mode.
        if tag.is_err() && binds_blocks && lenient {
            return Ok(None);
        }
        let tag = tag?;
        let mode = match tag.decode().as_ref() {
            // Clients written for DeepSeek, Kimi or Zhipu send `thinking` without a budget.
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

    /// Reads `{"type": "json_schema", "schema": …}`, and returns the schema.
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
