//! Calls of server tools before the first round: calls that the history left without a result, and
//! the search that Claude Code's `WebSearch` asks for.
//!
//! | request | what is run |
//! |---|---|
//! | ends with an answer that has calls of server tools without results (`pause_turn`) | these calls |
//! | the same, and then only results of the client's tools (a mixed turn) | these calls |
//! | one text that begins like Claude Code's, and no tool but `web_search` | the rest of the text |
//!
//! The answer begins with the results, and the upstream's request has them as its last message.

use std::sync::Arc;

use super::OpeningBlock;
use super::body::NextRequest;
use super::calls::{OwnCalls, choice_of};
use super::side_query::{self, ForcedSearch, call_of, query_of};
use crate::config::{Protocol, Settings, SideQuery};
use crate::error::Error;
use crate::history::pairs::answered_server_calls;
use crate::json;
use crate::model::event::ServerCall;
use crate::model::mcp::function_name;
use crate::model::own_tool::OwnTool;
use crate::model::{Block, Message, Request, Role};
use crate::observe::report::Report;
use crate::observe::warning::Warnings;
use crate::protocols;
use crate::steps::{Came, Change, Opening, Question, ReadLimits, See, Step};
use crate::text::words;
use crate::tools::own_tools;

/// End of the types of the blocks with calls of server tools. Each request is searched for this
/// text, once.
const CALLS: &str = "_tool_use\"";

/// Calls before the first round of an answer.
struct Pending {
    calls: OwnCalls,
    /// Call that Creole makes in the model's place.
    own: Option<ServerCall>,
    /// True if the results of the call are the answer, and no model is asked.
    is_whole: bool,
    /// True if the client continues an answer that paused.
    is_resumed: bool,
}

/// Collects the calls that are due before the first round.
pub(crate) fn begin(see: &See<'_>, _: &mut Report) -> Option<Box<dyn Step>> {
    let settings = &see.config.settings.server_tools;
    if !see.can.ask_services {
        return None;
    }
    let body = see.text()?;
    let may_ask = settings.searches() && side_query::is_possible(body);
    if !words::has(body, CALLS) && !may_ask {
        return None;
    }
    // An upstream that speaks Messages gets the request as it came.
    let (upstream, _) = see.route(body)?;
    if upstream.protocol == Protocol::Anthropic {
        return None;
    }
    let request = Request::read(body, &mut Warnings::new(false)).ok()?;
    let runs = protocols::runs_here(settings, &request, &upstream.profile);
    let tools = own_tools(&request, body, runs, &settings.mcp);
    if tools.is_empty() {
        return None;
    }
    let choice = json::member(body, "tool_choice").unwrap_or_default();
    let may_call = json::member(choice, "type") != Some("\"none\"");
    let side_query = settings.web_search.side_query;
    let query = query_of(&request).filter(|_| may_ask && may_call && runs.web_search);
    if query.is_some() && side_query == SideQuery::Model {
        return side_query::is_free(choice).then(|| Box::new(ForcedSearch) as Box<dyn Step>);
    }
    let own = query.map(|query| call_of(&query, see));
    let pending = match &own {
        Some(call) => vec![call.clone()],
        None => pending_calls(&request.messages, &tools),
    };
    if pending.is_empty() {
        return None;
    }
    let mut calls = OwnCalls::new(tools, settings);
    pending.into_iter().for_each(|call| calls.add(call, see));
    let is_whole = own.is_some() && side_query == SideQuery::Results;
    let is_resumed = request.messages.last().is_some_and(|last| last.role == Role::Assistant);
    Some(Box::new(Pending { calls, own, is_whole, is_resumed }))
}

/// Returns the calls of server tools without a result, if the newest answer has some and the
/// client's next turn does not go past them.
fn pending_calls(messages: &[Message<'_>], tools: &[Arc<OwnTool>]) -> Vec<ServerCall> {
    let Some(at) = messages.iter().rposition(|message| message.role == Role::Assistant) else {
        return Vec::new();
    };
    let later = messages.get(at.saturating_add(1)..).unwrap_or_default();
    let is_result = |block: &Block<'_>| matches!(block, Block::ToolResult(_));
    let goes_past = |message: &Message<'_>| {
        message.role != Role::User || !message.content.iter().all(is_result)
    };
    if later.len() > 1 || later.iter().any(goes_past) {
        return Vec::new();
    }
    let answered = answered_server_calls(messages);
    let blocks = messages.get(at).map(|message| message.content.as_slice()).unwrap_or_default();
    let pending = blocks.iter().filter_map(|block| {
        let Block::ServerToolUse(call) = block else { return None };
        let name = match call.server {
            Some(server) => function_name(&server.decode(), &call.name.decode()),
            None => call.name.decode().into_owned(),
        };
        let id = call.id.decode();
        let is_own = tools.iter().any(|tool| tool.name() == name);
        let is_pending = is_own && !answered.contains(&id);
        let input = call.input.text().to_owned();
        is_pending.then(|| ServerCall { id: id.into_owned(), name, input })
    });
    pending.collect()
}

impl Step for Pending {
    fn timeout_ms(&self, settings: &Settings) -> u64 {
        self.calls.timeout_ms(settings)
    }

    fn questions_left(&self) -> usize {
        self.calls.questions_left()
    }

    fn ask<'s>(&self, see: &See<'s>, ahead: usize) -> Option<Question<'s>> {
        self.calls.ask(see, ahead)
    }

    fn question_timeout_ms(&self, ahead: usize, settings: &Settings) -> u64 {
        self.calls.question_timeout_ms(ahead, settings)
    }

    fn limits(&self, ahead: usize, status: u16, settings: &Settings) -> ReadLimits {
        self.calls.limits(ahead, status, settings)
    }

    fn take(&mut self, came: Came, report: &mut Report) {
        self.calls.take(came, report);
    }

    fn done(self: Box<Self>, see: &See<'_>, report: &mut Report) -> Result<Change, Error> {
        let Self { mut calls, own, is_whole, is_resumed } = *self;
        calls.settle();
        let body = see.text().unwrap_or_default();
        let choice = json::member(body, "tool_choice").unwrap_or_default();
        // A call that was forced was run, and must not be forced again.
        let is_free = own.is_some() || is_resumed && calls.may_be_forced(choice);
        let choice = choice_of(choice, "auto");
        let tool_choice = is_free.then_some(choice.as_str());
        let own = own.map(OpeningBlock::Call).into_iter();
        let mut blocks: Vec<OpeningBlock> = own.chain(calls.opening()).collect();
        calls.end_opening(is_whole, see, report);
        let mut writer = protocols::MESSAGES.writer(false, see.ids);
        blocks.iter().for_each(|block| block.write(|event| writer.write(event, &mut Vec::new())));
        let written = writer.take_blocks();
        let next = NextRequest { blocks: &written, tool_choice, ..NextRequest::default() };
        let body = next.written(body);
        if is_whole {
            blocks.push(side_query::listing(&blocks));
        }
        Ok(Change::Opening(Opening { body, blocks, step: Some(Box::new(calls)), is_whole }))
    }

    fn held_bytes(&self) -> usize {
        self.calls.held_bytes()
    }
}
