//! Sessions with MCP servers, within one exchange.
//!
//! The first job for a server opens the session. Its other jobs wait until the session is open, or
//! until the first job has failed; then the next job tries.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::era::McpEra;
use crate::model::mcp::McpTarget;

/// Maximum length of a session's id, in bytes.
const SESSION_ID_BYTES_MAX: usize = 1024;

/// Sessions with MCP servers that the steps of one exchange share.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerSessions(Arc<Mutex<Sessions>>);

impl AnswerSessions {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sessions of one exchange, and the numbers of its JSON-RPC requests.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: Vec<McpSession>,
    /// Number of the last JSON-RPC request.
    last_id: u64,
}

/// Session with one MCP server; a modern server needs none, but its era is kept here, too.
pub(super) struct McpSession {
    /// Name of the MCP server in the request.
    server: String,
    url: String,
    pub(super) stage: SessionStage,
    /// Id that the server gave to the session.
    pub(super) id: Option<String>,
    /// True if an answer of this exchange, or the operator, has shown the era.
    pub(super) is_sure: bool,
    /// True if the session was lost, and opened anew.
    pub(super) is_reopened: bool,
    /// Number of jobs that were made for the server.
    entered: u32,
    /// Number of jobs for the server that are done.
    done: u32,
}

// The id of a session is as secret as a token.
impl fmt::Debug for McpSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpSession").field("stage", &self.stage).finish_non_exhaustive()
    }
}

/// Progress of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionStage {
    /// Stage: the era of the server is not known.
    Unknown,
    /// Stage: the server gets `initialize` next, with this version.
    Initialize(&'static str),
    /// Stage: the server gets `notifications/initialized` next.
    Notify(&'static str),
    /// Stage: the server takes requests.
    Open(McpEra),
}

impl SessionStage {
    /// Returns the first stage with a server of this era.
    pub(super) fn first(era: Option<McpEra>) -> Self {
        match era {
            None => Self::Unknown,
            Some(McpEra::Modern) => Self::Open(McpEra::Modern),
            Some(McpEra::Legacy(version)) => Self::Initialize(version),
        }
    }
}

impl McpSession {
    /// Begins the session anew, after the server has lost it.
    pub(super) fn reopen(&mut self, version: &'static str) {
        (self.stage, self.id, self.is_reopened) = (SessionStage::Initialize(version), None, true);
    }

    /// Keeps the id that the server gave to the session, if it can be sent back in a header.
    pub(super) fn set_id(&mut self, id: Option<String>) {
        self.id = id.filter(|id| {
            (1..=SESSION_ID_BYTES_MAX).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_graphic())
        });
    }

    /// Returns the era of the server, if an answer of this exchange has shown it.
    fn shown_era(&self) -> Option<McpEra> {
        match self.stage {
            SessionStage::Open(era) if self.is_sure => Some(era),
            _ => None,
        }
    }

    /// Returns true if the job with this `ticket` is the first that is not done.
    pub(super) fn is_first(&self, ticket: u32) -> bool {
        self.done >= ticket
    }

    pub(super) fn end_job(&mut self) {
        self.done = self.done.saturating_add(1);
    }
}

impl Sessions {
    /// Enters a job for a server. Returns the job's ticket: the number of jobs before it.
    /// `remembered`: the era of the server in an earlier exchange.
    pub(super) fn enter(&mut self, target: &McpTarget, remembered: Option<McpEra>) -> u32 {
        if self.of(&target.name).is_none() {
            let own = target.revision.and_then(McpEra::of);
            self.all.push(McpSession {
                server: target.name.clone(),
                url: target.url.clone(),
                stage: SessionStage::first(own.or(remembered)),
                id: None,
                is_sure: own.is_some(),
                is_reopened: false,
                entered: 0,
                done: 0,
            });
        }
        let Some(session) = self.of_mut(&target.name) else { return 0 };
        let ticket = session.entered;
        session.entered = ticket.saturating_add(1);
        ticket
    }

    pub(super) fn of(&self, server: &str) -> Option<&McpSession> {
        self.all.iter().find(|session| session.server == server)
    }

    pub(super) fn of_mut(&mut self, server: &str) -> Option<&mut McpSession> {
        self.all.iter_mut().find(|session| session.server == server)
    }

    /// Returns the number of the next JSON-RPC request.
    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id = self.last_id.saturating_add(1);
        self.last_id
    }

    /// Returns the era of a server, if an answer of this exchange has shown it.
    pub(super) fn era(&self, server: &str) -> Option<McpEra> {
        self.of(server)?.shown_era()
    }

    /// Returns the eras of servers that answers of this exchange have shown, by address.
    pub(super) fn eras(&self) -> impl Iterator<Item = (&str, McpEra)> {
        self.all.iter().filter_map(|session| Some((session.url.as_str(), session.shown_era()?)))
    }
}
