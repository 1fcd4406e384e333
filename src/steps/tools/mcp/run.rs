//! Run of an MCP server's tool for a call of the model.

use std::sync::Arc;

use super::call::{McpCallJob, McpJob, McpOutcome};
use super::lists::plan_of;
use super::session::AnswerSessions;
use crate::config::Settings;
use crate::model::mcp::McpOutput;
use crate::model::own_tool::McpToolName;
use crate::observe::report::Report;
use crate::steps::tools::job::{Begun, Job, OwnOutput, Work};
use crate::steps::{Came, Question, ReadLimits, See};
use crate::tools::mcp_here::{permits, schema_in};

/// Run of a tool of an MCP server.
#[derive(Debug)]
struct McpRun {
    job: McpCallJob,
    sessions: AnswerSessions,
}

/// Begins the run of a tool for a call with this input.
///
/// # Errors
/// The output for an input that is no object, or for a server that the request does not name.
pub(crate) fn begin(tool: &McpToolName, input: &str, see: &See<'_>) -> Result<Begun, OwnOutput> {
    let body = see.text().unwrap_or_default();
    let settings = &see.config.settings.server_tools.mcp;
    // The request was read before the first round, so errors cannot come here.
    let plan = plan_of(see, body).and_then(Result::ok).unwrap_or_default();
    let unknown = || McpOutput::error("The tool is not available.");
    let target = plan.target(&tool.server).ok_or_else(|| OwnOutput::Mcp(unknown()))?;
    if !permits(settings, target, &tool.tool) {
        return Err(OwnOutput::Mcp(unknown()));
    }
    let schema = schema_in(body, tool).unwrap_or("{}");
    let era = see.memory.and_then(|memory| memory.era(target, see.now));
    let names = (tool.tool.as_str(), schema);
    let sessions = see.sessions.cloned().unwrap_or_default();
    let job = McpCallJob::new(Arc::clone(target), names, input, era, &mut sessions.lock());
    let job = McpRun { job: job.map_err(OwnOutput::Mcp)?, sessions };
    // A call may change something, so each is run.
    Ok(Begun { key: None, work: Work::Asks(Box::new(job)) })
}

impl Job for McpRun {
    fn ask(&self, see: &See<'_>) -> Option<Question<'static>> {
        self.job.ask(see, &self.sessions.lock())
    }

    fn limits(&self, status: u16, settings: &Settings) -> ReadLimits {
        self.job.limits(status, settings)
    }

    fn take(&mut self, came: Came, report: &mut Report) -> Option<OwnOutput> {
        match self.job.take(came, &mut self.sessions.lock(), report)? {
            McpOutcome::Mcp(output) => Some(OwnOutput::Mcp(output)),
            McpOutcome::McpList(_) | McpOutcome::McpResult(_) => None,
        }
    }

    fn timeout_ms(&self, settings: &Settings) -> u64 {
        self.job.timeout_ms(settings)
    }

    fn held_bytes(&self) -> usize {
        self.job.held_bytes()
    }
}
