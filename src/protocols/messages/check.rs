//! Checks of a client request: features that no upstream supports and, in strict mode, the rules of
//! Anthropic's API for a conversation (except for tool calls: `history::pairs`). Without strict
//! mode, a request is adapted instead.

use crate::config::Upstream;
use crate::error::Error;
use crate::headers::{Header, Headers};
use crate::model::context_management::ContextManagement;
use crate::model::tool::ChoiceMode;
use crate::model::{Block, Message, Request, Role, ThinkingMode};
use crate::observe::warning::Warnings;
use crate::profile::{InferenceGeo, Mcp, ResponseFormat};
use crate::protocols::messages::models;
use crate::text::words::is_name_byte;

/// Version of Anthropic's API that removed the sampling parameters.
const NEWEST_VERSION: &str = "2026-10-21";

/// Maximum number of blocks with `cache_control`.
const BREAKPOINTS_MAX: usize = 4;

/// Refuses a request that cannot be served, warns of parts that are left out, and returns the
/// upstream.
pub(crate) fn request<'c>(
    request: &Request<'_>,
    model: &'c str,
    route: Option<(&'c Upstream, &'c str)>,
    headers: &[Header],
    calls_mcp_here: bool,
    warnings: &mut Warnings,
) -> Result<(&'c Upstream, &'c str), Error> {
    if request.thread {
        // Anthropic's SDKs react to this error: they send the whole conversation, also in later
        // requests.
        return Err(Error::invalid(
            "thread: server-side threads are not supported by this gateway; send the whole \
             conversation",
        )
        .with_code("thread_unsupported_request"));
    }
    always(request)?;
    let calls_mcp =
        calls_mcp_here || route.is_some_and(|(upstream, _)| upstream.profile.mcp == Mcp::Mcp);
    for (present, name) in [
        (request.compaction, "compaction"),
        (request.container, "container"),
        (!request.mcp_servers.is_empty() && !calls_mcp, "mcp_servers"),
        (request.bill_to_user, "billing_policy.bill_to"),
    ] {
        if present {
            return Err(Error::unsupported(name));
        }
    }
    edits(&request.context_management, warnings.strict())?;
    if warnings.strict() && headers.value("anthropic-version") == Some(NEWEST_VERSION) {
        newest(request)?;
    }
    for (present, name) in [
        (request.context_management.has_unknown, "context_management"),
        (request.fallbacks, "fallbacks"),
        (request.fallback_credit_token, "fallback_credit_token"),
        (request.task_budget, "output_config.task_budget"),
    ] {
        if present {
            warnings.dropped(name)?;
        }
    }
    let Some((upstream, outgoing)) = route else {
        return Err(models::not_found(model));
    };
    if request.inference_geo {
        match upstream.profile.inference_geo {
            InferenceGeo::Reject => return Err(Error::unsupported("inference_geo")),
            InferenceGeo::Ignore => warnings.dropped("inference_geo")?,
        }
    }
    let no_format = upstream.profile.response_format == ResponseFormat::None;
    if request.output_schema.is_some() && no_format {
        return Err(Error::unsupported("output_config.format"));
    }
    Ok((upstream, outgoing))
}

/// Refuses parameters that the newest version of the API no longer accepts.
fn newest(request: &Request<'_>) -> Result<(), Error> {
    let gone = |path: &str| Err(Error::invalid(format!("{path}: Extra inputs are not permitted")));
    for (present, name) in [
        (request.temperature.is_some(), "temperature"),
        (request.top_p.is_some(), "top_p"),
        (request.top_k.is_some(), "top_k"),
    ] {
        if present {
            return gone(name);
        }
    }
    for (at, message) in request.messages.iter().enumerate() {
        for (number, block) in message.content.iter().enumerate() {
            let path = format!("messages.{at}.content.{number}");
            match (message.role, block) {
                (Role::User, Block::Text(text)) if text.citations.is_some() => {
                    return gone(&format!("{path}.citations"));
                }
                (Role::User, Block::SearchResult(found)) => {
                    let is_cited = |block: &Block<'_>| matches!(block, Block::Text(text) if text.citations.is_some());
                    if let Some(inner) = found.content.iter().position(is_cited) {
                        return gone(&format!("{path}.content.{inner}.citations"));
                    }
                }
                (Role::Assistant, Block::Document(_)) => {
                    return Err(Error::invalid(format!(
                        "{path}: `document` blocks can only be in `user` messages"
                    )));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Refuses `context_management` edits that are not supported.
fn edits(management: &ContextManagement<'_>, strict: bool) -> Result<(), Error> {
    if let Some(at) = management.compaction_at {
        let path = format!("context_management.edits[{at}]");
        return Err(Error::unsupported_kind(&path, "compact_20260112"));
    }
    if strict && management.thinking_is_late {
        return Err(Error::invalid(
            "context_management: `clear_thinking_20251015` must be the first strategy in \
             `context_management.edits` when provided",
        ));
    }
    Ok(())
}

/// Refuses requests that no upstream can answer, with or without strict mode.
///
/// # Errors
/// The request is invalid; the message is that of Anthropic's API.
fn always(request: &Request<'_>) -> Result<(), Error> {
    if request.model.is_empty() {
        return Err(Error::invalid("model: String should have at least 1 character"));
    }
    if request.messages.is_empty() {
        return Err(Error::invalid("messages: at least one message is required"));
    }
    if let Some(at) = request.stop_sequences.iter().position(|stop| stop.is_blank()) {
        return Err(Error::invalid(format!(
            "stop_sequences[{at}]: each stop sequence must contain non-whitespace"
        )));
    }
    Ok(())
}

/// Refuses a conversation that Anthropic's API would refuse; called in strict mode only.
///
/// # Errors
/// The conversation is invalid; the message is that of Anthropic's API.
pub(crate) fn strictly(request: &Request<'_>) -> Result<(), Error> {
    let messages = &request.messages;
    // Compaction blocks replace the messages before them.
    let compacts =
        |message: &Message<'_>| matches!(message.content.first(), Some(Block::Compaction { .. }));
    if messages.first().is_some_and(|message| message.role != Role::User && !compacts(message)) {
        return Err(Error::invalid("messages: first message must use the \"user\" role"));
    }
    let last = messages.len().saturating_sub(1);
    for (at, message) in messages.iter().enumerate() {
        check_texts(at, message, at == last)?;
        check_ids(at, message)?;
    }
    if request.breakpoints > BREAKPOINTS_MAX {
        return Err(Error::invalid(format!(
            "A maximum of {BREAKPOINTS_MAX} blocks with cache_control may be provided. Found {}.",
            request.breakpoints
        )));
    }
    check_thinking(request)
}

fn check_texts(at: usize, message: &Message<'_>, is_last: bool) -> Result<(), Error> {
    let of_assistant = message.role == Role::Assistant;
    if message.content.is_empty() {
        // System messages may be empty, because they can serve only to set the effort.
        if (is_last && of_assistant) || message.role == Role::System {
            return Ok(());
        }
        return Err(Error::invalid(format!(
            "messages.{at}: all messages must have non-empty content except for the optional \
             final assistant message"
        )));
    }
    let texts = || {
        message.content.iter().filter_map(|block| match block {
            Block::Text(text) => Some(&text.text),
            _ => None,
        })
    };
    if texts().any(|text| text.is_empty()) {
        return Err(Error::invalid("messages: text content blocks must be non-empty"));
    }
    if texts().count() == message.content.len() && texts().all(|text| text.is_blank()) {
        return Err(Error::invalid(
            "messages: text content blocks must contain non-whitespace text",
        ));
    }
    let ends_in_space = |text: &str| text.ends_with(char::is_whitespace);
    if let (true, true, Some(Block::Text(text))) = (is_last, of_assistant, message.content.last())
        && ends_in_space(&text.text.decode())
    {
        return Err(Error::invalid(
            "messages: final assistant content cannot end with trailing whitespace",
        ));
    }
    Ok(())
}

fn check_ids(at: usize, message: &Message<'_>) -> Result<(), Error> {
    for (number, block) in message.content.iter().enumerate() {
        let (id, member) = match block {
            Block::ToolUse(call) => (call.id, "tool_use.id"),
            Block::ToolResult(result) => (result.id, "tool_result.tool_use_id"),
            _ => continue,
        };
        let id = id.decode();
        if id.is_empty() || !id.bytes().all(is_name_byte) {
            return Err(Error::invalid(format!(
                "messages.{at}.content.{number}.{member}: String should match pattern \
                 '^[a-zA-Z0-9_-]+$'"
            )));
        }
    }
    Ok(())
}

fn check_thinking(request: &Request<'_>) -> Result<(), Error> {
    let Some(ThinkingMode::Enabled(budget)) = request.thinking.map(|thinking| thinking.mode) else {
        return Ok(());
    };
    if budget < 1024 {
        return Err(Error::invalid(
            "thinking.budget_tokens: Input should be greater than or equal to 1024",
        ));
    }
    if request.max_tokens.is_some_and(|most| most <= budget) {
        return Err(Error::invalid("`max_tokens` must be greater than `thinking.budget_tokens`"));
    }
    let choice = request.tool_choice.as_ref().map(|choice| &choice.mode);
    if matches!(choice, Some(ChoiceMode::Any | ChoiceMode::Tool(_))) {
        return Err(Error::invalid(
            "Thinking may not be enabled when tool_choice forces tool use.",
        ));
    }
    check_tool_loop(&request.messages)
}

/// Requires thinking while tools run: a message since the last text of a person must begin with a
/// thinking block. Later messages need no further thinking.
fn check_tool_loop(messages: &[Message<'_>]) -> Result<(), Error> {
    let has_results = |message: &Message<'_>| {
        message.content.iter().any(|block| matches!(block, Block::ToolResult(_)))
    };
    if !messages.last().is_some_and(has_results) {
        return Ok(());
    }
    let mut found = None;
    for (at, message) in messages.iter().enumerate().rev() {
        match (message.role, message.content.first()) {
            (Role::User, _) if !has_results(message) => break,
            (Role::Assistant, Some(Block::Text(_))) => {
                found.get_or_insert((at, "text"));
            }
            (Role::Assistant, Some(Block::ToolUse(_))) => {
                found.get_or_insert((at, "tool_use"));
            }
            (Role::Assistant, _) => return Ok(()),
            _ => {}
        }
    }
    let Some((at, kind)) = found else { return Ok(()) };
    Err(Error::invalid(format!(
        "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found \
         `{kind}`. When `thinking` is enabled, a final `assistant` message must start with a \
         thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). To \
         avoid this requirement, disable `thinking`."
    )))
}
