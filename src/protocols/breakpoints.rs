//! Where the client wants the prompt cached, for upstreams that take marks of it.

use crate::dialect::profile::Profile;
use crate::model::turn::{Turn, UserPart};
use crate::model::{Block, ToolResult};
use crate::protocols::words::is_cached;

/// Most cache breakpoints that an upstream takes in one request.
const BREAKPOINTS_MAX: usize = 4;

/// The cache breakpoints of one request. Of too many, the last ones are written.
pub(super) struct Breakpoints {
    /// Whether the upstream takes any.
    wanted: bool,
    /// Whether the results of tools have a place for them.
    in_results: bool,
    /// How many are still passed over.
    passed_over: usize,
}

impl Breakpoints {
    pub(super) fn new(profile: &Profile, in_results: bool) -> Self {
        Self { wanted: profile.cache_breakpoints, in_results, passed_over: 0 }
    }

    /// Counts those of the turns, and `system` others that come before them.
    pub(super) fn count(&mut self, turns: &[Turn<'_>], system: usize) {
        if !self.wanted {
            return;
        }
        let users = turns.iter().filter_map(|turn| match turn {
            Turn::User(user) => Some(user),
            _ => None,
        });
        let users = users.map(|user| {
            let results = user.results.iter().filter(|result| self.caches(result)).count();
            user.items.iter().filter(|item| is_cached(item)).count().saturating_add(results)
        });
        let all = users.fold(system, usize::saturating_add);
        self.passed_over = all.saturating_sub(BREAKPOINTS_MAX);
    }

    /// Whether the client wants the prompt cached up to a result, and the upstream has a place for that.
    fn caches(&self, result: &ToolResult<'_>) -> bool {
        let is_cached = |block: &Block<'_>| matches!(block, Block::Text(it) if it.cached && !it.text.is_blank());
        self.in_results && result.content.iter().any(is_cached)
    }

    /// Whether a breakpoint is written for a result and the words that stand with it.
    pub(super) fn is_due_in(&mut self, result: &ToolResult<'_>, words: &[UserPart<'_>]) -> bool {
        let cached = self.caches(result) || self.in_results && words.iter().any(is_cached);
        self.is_due(cached)
    }

    /// Whether a breakpoint is written for something that the client wants cached.
    pub(super) fn is_due(&mut self, cached: bool) -> bool {
        if !cached || !self.wanted {
            return false;
        }
        let due = self.passed_over == 0;
        self.passed_over = self.passed_over.saturating_sub(1);
        due
    }
}
