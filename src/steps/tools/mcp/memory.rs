//! Memory of MCP servers: their eras, and their lists of tools. The memory changes how long an
//! answer takes, and never the answer.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::era::McpEra;
use super::list::McpList;
use super::session::AnswerSessions;
use crate::Millis;
use crate::ids::hex_of_hash;
use crate::model::mcp::McpTarget;

/// Time for which the era of a server is remembered, in milliseconds.
const ERA_MS: Millis = 10 * 60_000;

/// Maximum number of things that are remembered; beyond this number, the oldest is forgotten.
const ENTRIES_MAX: usize = 256;

/// Maximum number of bytes of all lists; a list that is larger than a quarter is not kept.
const LIST_BYTES_MAX: usize = 8 << 20;

/// Maximum length of an address that is remembered, in bytes.
const URL_BYTES_MAX: usize = 8 << 10;

/// Eras and lists of MCP servers that later exchanges use.
#[derive(Default)]
pub(crate) struct ToolMemory(Mutex<Vec<RememberedServer>>);

// The addresses of servers can have secrets.
impl fmt::Debug for ToolMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolMemory").finish_non_exhaustive()
    }
}

struct RememberedServer {
    url: String,
    what: Knowledge,
    until: Millis,
}

enum Knowledge {
    Era(McpEra),
    /// List of tools for all clients, or for the clients with a token of this hash.
    List {
        token: Option<String>,
        list: Arc<McpList>,
    },
}

impl RememberedServer {
    fn held_bytes(&self) -> usize {
        match &self.what {
            Knowledge::Era(_) => self.url.len(),
            Knowledge::List { list, .. } => self.url.len().saturating_add(list.held_bytes()),
        }
    }
}

impl ToolMemory {
    fn lock(&self) -> MutexGuard<'_, Vec<RememberedServer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the era of a server.
    pub(crate) fn era(&self, target: &McpTarget, now: Millis) -> Option<McpEra> {
        self.lock().iter().rev().filter(|one| one.url == target.url && now < one.until).find_map(
            |one| match one.what {
                Knowledge::Era(era) => Some(era),
                Knowledge::List { .. } => None,
            },
        )
    }

    /// Returns the list of a server, for a client with the target's token.
    pub(crate) fn list(&self, target: &McpTarget, now: Millis) -> Option<Arc<McpList>> {
        let own = hash_of(target);
        self.lock().iter().rev().filter(|one| one.url == target.url && now < one.until).find_map(
            |one| match &one.what {
                Knowledge::List { token, list } => {
                    token.as_ref().is_none_or(|token| *token == own).then(|| Arc::clone(list))
                }
                Knowledge::Era(_) => None,
            },
        )
    }

    /// Remembers the eras of servers that an exchange has shown.
    pub(crate) fn note_eras(&self, sessions: &AnswerSessions, now: Millis) {
        sessions.lock().eras().for_each(|(url, era)| self.note_era(url, era, now));
    }

    /// Remembers the era of a server.
    pub(super) fn note_era(&self, url: &str, era: McpEra, now: Millis) {
        let is_same = |one: &RememberedServer| {
            one.url == url && matches!(one.what, Knowledge::Era(known) if known == era)
        };
        let mut all = self.lock();
        if let Some(at) = all.iter().position(is_same) {
            let known = all.remove(at);
            all.push(RememberedServer { until: now.saturating_add(ERA_MS), ..known });
            return;
        }
        drop(all);
        let is_old = |what: &Knowledge| matches!(what, Knowledge::Era(_));
        self.note(url, Knowledge::Era(era), ERA_MS, now, is_old);
    }

    /// Remembers the list of a server, for at most `ttl_ms_max`.
    pub(crate) fn note_list(
        &self,
        target: &McpTarget,
        list: &Arc<McpList>,
        ttl_ms_max: u64,
        now: Millis,
    ) {
        let ttl_ms = list.ttl_ms.min(ttl_ms_max);
        if ttl_ms == 0 || list.held_bytes() > LIST_BYTES_MAX / 4 {
            return;
        }
        let token = (!list.is_public).then(|| hash_of(target));
        let what = Knowledge::List { token: token.clone(), list: Arc::clone(list) };
        let is_old = |what: &Knowledge| match what {
            Knowledge::List { token: known, .. } => *known == token,
            Knowledge::Era(_) => false,
        };
        self.note(&target.url, what, ttl_ms, now, is_old);
    }

    fn note(
        &self,
        url: &str,
        what: Knowledge,
        ms: Millis,
        now: Millis,
        is_old: impl Fn(&Knowledge) -> bool,
    ) {
        if url.len() > URL_BYTES_MAX {
            return;
        }
        let mut all = self.lock();
        all.retain(|one| now < one.until && !(one.url == url && is_old(&one.what)));
        all.push(RememberedServer { url: url.to_owned(), what, until: now.saturating_add(ms) });
        let mut bytes: usize =
            all.iter().map(RememberedServer::held_bytes).fold(0, usize::saturating_add);
        while all.len() > ENTRIES_MAX || bytes > LIST_BYTES_MAX && all.len() > 1 {
            bytes = bytes.saturating_sub(all.remove(0).held_bytes());
        }
    }
}

/// Returns the hash of the token with which a server is asked.
fn hash_of(target: &McpTarget) -> String {
    hex_of_hash(target.token.as_deref().unwrap_or_default().as_bytes())
}
