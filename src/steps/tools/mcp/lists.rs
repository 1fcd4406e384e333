//! Step before the call that asks the MCP servers of a request for their tools, and writes the
//! tools into the toolsets of the request.

use std::sync::Arc;

use super::call::{LIST_MS, McpJob, McpListJob, McpOutcome, read_limits};
use super::era::McpFailure;
use super::list::McpList;
use super::session::AnswerSessions;
use crate::config::{McpConnector, McpUnavailable, Protocol, Settings};
use crate::error::Error;
use crate::headers::Header;
use crate::model::Request;
use crate::model::mcp::{ListedTool, McpTarget};
use crate::observe::report::Report;
use crate::observe::warning::Warnings;
use crate::protocols;
use crate::steps::{Came, Change, Opening, OpeningBlock, Question, ReadLimits, See, Step, blocks};
use crate::text::words;
use crate::tools::mcp_here::{McpPlan, PlannedServer, permits};

/// Beta of the MCP connector in which an answer begins with the lists of the servers that were
/// asked.
const WITH_LISTINGS: &str = "mcp-client-2026-09-15";

/// Lists of tools that a request needs.
struct McpLists {
    /// Servers of the request, or the error that the client gets.
    plan: Result<McpPlan, Error>,
    /// List of each server that must be asked, in the order of the plan.
    lists: Vec<WantedList>,
    sessions: AnswerSessions,
}

/// List of tools of one server.
enum WantedList {
    Asked(McpListJob),
    Remembered(Arc<McpList>),
    Come(Result<Arc<McpList>, McpFailure>),
}

/// Returns true if a request is likely to need lists, so that it is not translated without them:
/// the operator offers a server to all, or the client's headers say so.
pub(crate) fn comes_first(see: &See<'_>) -> bool {
    let mcp = &see.config.settings.server_tools.mcp;
    mcp.servers.iter().any(|(_, server)| server.offer)
        || words::has(&betas(see.headers), "mcp-client")
}

/// Reads the MCP servers of a request, if Creole calls some.
pub(crate) fn begin(see: &See<'_>, _: &mut Report) -> Option<Box<dyn Step>> {
    let settings = &see.config.settings;
    let mcp = &settings.server_tools.mcp;
    if !mcp.is_on() || !see.can.ask_services {
        return None;
    }
    let body = see.text()?;
    let offers = mcp.servers.iter().any(|(_, server)| server.offer);
    if !offers && !blocks::may_have(body, "\"mcp_servers\"") {
        return None;
    }
    // An upstream that speaks Messages gets the request as it came.
    let (upstream, _) = see.route(body)?;
    let calls_mcp = protocols::calls_mcp(&settings.server_tools, &upstream.profile);
    if upstream.protocol == Protocol::Anthropic || !calls_mcp {
        return None;
    }
    // A body that cannot be read is refused when the request is translated.
    let plan = plan_of(see, body)?;
    let sessions = see.sessions.cloned().unwrap_or_default();
    let servers = plan.as_ref().map(|plan| plan.servers.as_slice()).unwrap_or_default();
    if plan.is_ok() && servers.is_empty() {
        return None;
    }
    let lists = servers.iter().filter(|server| server.is_asked()).map(|server| {
        let target = &server.target;
        let memory = see.memory;
        if let Some(list) = memory.and_then(|memory| memory.list(target, see.now)) {
            return WantedList::Remembered(list);
        }
        let era = memory.and_then(|memory| memory.era(target, see.now));
        WantedList::Asked(McpListJob::new(Arc::clone(target), era, settings, &mut sessions.lock()))
    });
    let lists = lists.collect();
    Some(Box::new(McpLists { plan, lists, sessions }))
}

/// Returns the MCP servers of a request, or the error of their definitions; `None` for a body that
/// cannot be read.
pub(super) fn plan_of(see: &See<'_>, body: &str) -> Option<Result<McpPlan, Error>> {
    let request = Request::read(body, &mut Warnings::new(false)).ok()?;
    let settings = &see.config.settings.server_tools.mcp;
    Some(McpPlan::read(&request, body, &betas(see.headers), settings))
}

/// Returns the values of all `anthropic-beta` headers of a request.
fn betas(headers: &[Header]) -> String {
    let betas = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("anthropic-beta"));
    let betas: Vec<&str> = betas.map(|(_, value)| value.as_str()).collect();
    betas.join(",")
}

/// Returns the part of a list that a client is told: the tools that are offered, without those that
/// the operator does not permit.
fn told(
    list: &Arc<McpList>,
    kept: &[ListedTool],
    target: &McpTarget,
    settings: &McpConnector,
) -> Arc<McpList> {
    let is_told = |tool: &&ListedTool| permits(settings, target, &tool.name);
    if kept.len() == list.tools.len() && kept.iter().all(|tool| is_told(&tool)) {
        return Arc::clone(list);
    }
    let tools = kept.iter().filter(is_told).cloned().collect();
    Arc::new(McpList { tools, ..McpList::default() })
}

impl McpLists {
    /// Returns the jobs that are not done.
    fn waiting(&self) -> impl Iterator<Item = &McpListJob> {
        self.lists.iter().filter_map(|list| match list {
            WantedList::Asked(job) => Some(job),
            WantedList::Remembered(_) | WantedList::Come(_) => None,
        })
    }

    /// Returns the lists as blocks of the answer, for a client that sends lists back. `kept`: the
    /// tools of each list that are offered.
    fn blocks(
        &self,
        servers: &[&PlannedServer],
        kept: &[&[ListedTool]],
        see: &See<'_>,
    ) -> Vec<OpeningBlock> {
        if !words::has(&betas(see.headers), WITH_LISTINGS) {
            return Vec::new();
        }
        let settings = &see.config.settings.server_tools.mcp;
        let lists = servers.iter().zip(&self.lists).zip(kept);
        let block = |((server, list), kept): ((&&PlannedServer, &WantedList), &&[ListedTool])| {
            let (WantedList::Remembered(list) | WantedList::Come(Ok(list))) = list else {
                return None;
            };
            let target = &server.target;
            Some(OpeningBlock::Listing(target.name.clone(), told(list, kept, target, settings)))
        };
        lists.filter(|((server, _), _)| server.at.is_some()).filter_map(block).collect()
    }

    /// Keeps the lists and the eras of the servers for later exchanges.
    fn remember(&self, servers: &[&PlannedServer], see: &See<'_>) {
        let Some(memory) = see.memory else { return };
        memory.note_eras(&self.sessions, see.now);
        let ttl_ms_max = see.config.settings.server_tools.mcp.list_ttl_max_ms;
        for (server, list) in servers.iter().zip(&self.lists) {
            if let WantedList::Come(Ok(list)) = list {
                memory.note_list(&server.target, list, ttl_ms_max, see.now);
            }
        }
    }
}

impl Step for McpLists {
    fn timeout_ms(&self, _: &Settings) -> u64 {
        LIST_MS.saturating_mul(self.waiting().count() as u64)
    }

    fn questions_left(&self) -> usize {
        self.waiting().count()
    }

    fn ask<'s>(&self, see: &See<'s>, ahead: usize) -> Option<Question<'s>> {
        self.waiting().nth(ahead)?.ask(see, &self.sessions.lock())
    }

    fn question_timeout_ms(&self, _: usize, _: &Settings) -> u64 {
        LIST_MS
    }

    fn limits(&self, _: usize, status: u16, settings: &Settings) -> ReadLimits {
        read_limits(status, settings)
    }

    fn take(&mut self, came: Came, report: &mut Report) {
        let is_waiting = |list: &&mut WantedList| matches!(list, WantedList::Asked(_));
        let Some(list) = self.lists.iter_mut().find(is_waiting) else { return };
        let WantedList::Asked(job) = list else { return };
        if let Some(McpOutcome::McpList(come)) = job.take(came, &mut self.sessions.lock(), report) {
            *list = WantedList::Come(come.map(Arc::new));
        }
    }

    fn done(self: Box<Self>, see: &See<'_>, report: &mut Report) -> Result<Change, Error> {
        let plan = self.plan.as_ref().map_err(Clone::clone)?;
        let asked: Vec<&PlannedServer> =
            plan.servers.iter().filter(|server| server.is_asked()).collect();
        self.remember(&asked, see);
        let skips = see.config.settings.server_tools.mcp.unavailable == McpUnavailable::Skip;
        let tools_max = see.config.settings.server_tools.mcp.tools_max;
        let mut room = usize::try_from(tools_max).unwrap_or(usize::MAX);
        let mut lists: Vec<&[ListedTool]> = Vec::new();
        for (server, list) in asked.iter().zip(&self.lists) {
            let failure = match list {
                WantedList::Remembered(list) | WantedList::Come(Ok(list)) => {
                    let kept = list.tools.get(..room).unwrap_or(&list.tools);
                    if kept.len() < list.tools.len() {
                        report.warnings.add("mcp_tool_dropped");
                    }
                    room = room.saturating_sub(kept.len());
                    lists.push(kept);
                    continue;
                }
                WantedList::Come(Err(failure)) => failure,
                WantedList::Asked(_) => &McpFailure::TimedOut,
            };
            // A server that nobody asked for fails no request.
            if !skips && server.at.is_some() {
                return Err(server.unavailable(&failure.reason(), failure.status()));
            }
            report.warnings.add_named("mcp_unavailable", &server.target.name);
            lists.push(&[]);
        }
        let body = plan.pinned(see.text().unwrap_or_default(), &lists);
        let blocks = self.blocks(&asked, &lists, see);
        Ok(Change::Opening(Opening { body, blocks, step: None, is_whole: false }))
    }

    fn held_bytes(&self) -> usize {
        let held = self.lists.iter().map(|list| match list {
            WantedList::Asked(job) => job.held_bytes(),
            WantedList::Remembered(list) | WantedList::Come(Ok(list)) => list.held_bytes(),
            WantedList::Come(Err(_)) => 0,
        });
        held.fold(0, usize::saturating_add)
    }
}
