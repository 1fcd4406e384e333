//! Cache breakpoints, which mark the prefix of the prompt that the client wants cached, for
//! upstreams that accept breakpoints.

use crate::json::Writer;
use crate::model::turn::{Turn, User, UserPart};
use crate::model::{Block, CacheMark, ToolResult};
use crate::protocols::words::Words;

/// Maximum number of cache breakpoints that an upstream accepts in one request.
const BREAKPOINTS_MAX: usize = 4;

/// Cache breakpoint in the form that the upstream expects.
#[derive(Clone, Copy, Debug)]
pub(super) enum Breakpoint {
    /// Breakpoint written as the member `prompt_cache_breakpoint` of a content part.
    PromptCacheBreakpoint,
    /// Breakpoint written as the member `cache_control` of a content part.
    CacheControl(CacheMark),
}

impl Breakpoint {
    /// Writes the breakpoint as a member of the JSON object that is being written.
    pub(super) fn write(self, json: &mut Writer<'_>) {
        match self {
            Self::PromptCacheBreakpoint => {
                json.key("prompt_cache_breakpoint").begin_object();
                json.key("mode").text("explicit").end_object();
            }
            Self::CacheControl(mark) => mark.write(json),
        }
    }
}

/// Cache breakpoints of one request. If a request has too many breakpoints, the last ones are
/// written.
pub(super) struct Breakpoints<'r, 'a> {
    words: Words<'r, 'a>,
    /// True if the upstream accepts breakpoints in tool results.
    in_results: bool,
    /// Number of breakpoints still to skip, because the request has too many.
    passed_over: usize,
}

impl<'r, 'a> Breakpoints<'r, 'a> {
    pub(super) fn new(words: Words<'r, 'a>, in_results: bool) -> Self {
        Self { words, in_results, passed_over: 0 }
    }

    /// Marks the last position in the conversation's turns that accepts a cache breakpoint, because
    /// the client wants the whole prompt cached. An existing mark at the position is kept.
    pub(super) fn mark_end(&self, mark: Option<CacheMark>, turns: &mut [Turn<'_>]) {
        let Some(mark) = mark.filter(|_| self.words.has_breakpoints()) else { return };
        let last = turns.iter_mut().rev().find_map(|turn| match turn {
            Turn::User(user) => self.last_place(user),
            _ => None,
        });
        if let Some(place) = last {
            place.get_or_insert(mark);
        }
    }

    fn last_place<'t>(&self, user: &'t mut User<'_>) -> Option<&'t mut Option<CacheMark>> {
        let text = |block: &'t mut Block<'_>| match block {
            Block::Text(it) if !it.text.is_blank() => Some(&mut it.cached),
            _ => None,
        };
        let User { results, items } = user;
        let words = &self.words;
        let joins = !results.is_empty() && words.joins_result(items);
        let has_place =
            |item: &&mut UserPart<'_>| self.in_results || !(joins && words.is_text(item));
        let mut items = items.iter_mut().rev().filter(has_place);
        items.find_map(|item| words.place_on(item)).or_else(|| {
            let mut results = results.iter_mut().rev().filter(|_| self.in_results);
            results.find_map(|result| result.content.iter_mut().rev().find_map(text))
        })
    }

    /// Counts the cache breakpoints in the conversation's turns, and the `before` breakpoints of
    /// the system prompt and the tools.
    pub(super) fn count(&mut self, turns: &[Turn<'_>], before: usize) {
        if !self.words.has_breakpoints() {
            return;
        }
        let users = turns.iter().filter_map(|turn| match turn {
            Turn::User(user) => Some(user),
            _ => None,
        });
        let users = users.map(|user| {
            let results = user.results.iter().filter(|it| self.mark_in(it).is_some()).count();
            let items = user.items.iter().filter(|item| self.words.mark_on(item).is_some());
            items.count().saturating_add(results)
        });
        let all = users.fold(before, usize::saturating_add);
        self.passed_over = all.saturating_sub(BREAKPOINTS_MAX);
    }

    /// Returns the client's last cache mark in a tool result, if the upstream accepts a mark there.
    fn mark_in(&self, result: &ToolResult<'_>) -> Option<CacheMark> {
        let mark = |block: &Block<'_>| match block {
            Block::Text(it) if !it.text.is_blank() => it.cached,
            _ => None,
        };
        result.content.iter().rev().find_map(mark).filter(|_| self.in_results)
    }

    /// Returns the cache breakpoint to write for a tool result and the texts that are merged into
    /// the result.
    pub(super) fn due_in(
        &mut self,
        result: &ToolResult<'_>,
        words: &[UserPart<'_>],
    ) -> Option<Breakpoint> {
        if !self.words.has_breakpoints() {
            return None;
        }
        let in_words = || words.iter().rev().find_map(|item| self.words.mark_on(item));
        let mark = in_words().filter(|_| self.in_results).or_else(|| self.mark_in(result));
        self.due(mark)
    }

    /// Returns the cache breakpoint to write for a content part with the client's cache mark
    /// `mark`. Returns `None` without a mark, or if the request has too many breakpoints.
    pub(super) fn due(&mut self, mark: Option<CacheMark>) -> Option<Breakpoint> {
        let breakpoint = self.words.breakpoint(mark?)?;
        let is_due = self.passed_over == 0;
        self.passed_over = self.passed_over.saturating_sub(1);
        is_due.then_some(breakpoint)
    }
}
