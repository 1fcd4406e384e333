//! Turns to the `messages` of Chat Completions.
//!
//! ```text
//!  assistant  text, reasoning, tool calls     1 assistant message
//!  user       tool results                    n tool messages, directly after it
//!             images of the results           1 user message
//!             everything else                   with both
//! ```

use super::parts::{begin_text, end_text};
use crate::carry::tool_id::Outgoing;
use crate::dialect::profile::{Profile, SystemRole, ToolContentParts};
use crate::error::Error;
use crate::history::beginning;
use crate::json::Writer;
use crate::model::turn::{Turn, UserPart};
use crate::model::{Block, ToolResult};
use crate::observe::warning::Warnings;
use crate::protocols::words::{SystemPrompt, Words, is_cached, push, push_joined, push_system};
use crate::text::names::Names;
use crate::tools::ToolSet;

/// Most cache breakpoints that an upstream takes in one request.
const BREAKPOINTS_MAX: usize = 4;

/// Writes the messages of one request.
pub(crate) struct MessageWriter<'r, 'a> {
    pub(crate) words: Words<'r, 'a>,
    pub(crate) tools: &'r ToolSet<'a>,
    pub(crate) ids: Outgoing<'a>,
    /// The names of called tools by the upstream's ids, where results name them.
    pub(crate) called: Names<'a, String>,
    pub(crate) warnings: &'r mut Warnings,
    pub(crate) system: SystemPrompt<'a>,
    /// How many breakpoints are still passed over, so that the last ones are written.
    passed_over: usize,
    /// Whether the last turn is being written.
    pub(crate) is_last: bool,
    /// Results whose images wait for the user message, and their ids.
    pub(super) attached: Vec<(String, ToolResult<'a>)>,
    pub(crate) written: Written,
}

/// What was written among the messages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// Bytes of reasoning.
    pub(crate) reasoning_bytes: usize,
    /// Whether there are messages of the assistant with calls, and no text for their content.
    pub(crate) silent_calls: bool,
}

impl<'r, 'a> MessageWriter<'r, 'a> {
    pub(crate) fn new(
        words: Words<'r, 'a>,
        tools: &'r ToolSet<'a>,
        system: SystemPrompt<'a>,
        warnings: &'r mut Warnings,
    ) -> Self {
        let ids = Outgoing::new(words.profile.id_style, words.profile.max_id_length);
        let (called, passed_over, is_last, attached) = (Names::default(), 0, false, Vec::new());
        Self {
            words,
            tools,
            ids,
            called,
            warnings,
            system,
            passed_over,
            is_last,
            attached,
            written: Written::default(),
        }
    }

    /// Writes all messages, as an array. Gives what is among them.
    ///
    /// # Errors
    /// A block that this upstream cannot take and that must not be lost.
    pub(crate) fn write(
        mut self,
        mut turns: Vec<Turn<'a>>,
        json: &mut Writer<'_>,
    ) -> Result<Written, Error> {
        self.passed_over = self.breakpoints(&turns).saturating_sub(BREAKPOINTS_MAX);
        json.begin_array();
        let role = match self.profile().system_role {
            SystemRole::System => "system",
            SystemRole::Developer => "developer",
            // Those in the middle are words of the user by now (`history`).
            SystemRole::User => "user",
        };
        if !self.system.is_empty() {
            if role == "user" {
                beginning::put_before_first_user(&mut turns, UserPart::SystemPrompt);
            } else {
                json.begin_object().key("role").text(role);
                self.system_content(json.key("content"));
                json.end_object();
            }
        }
        let speaks = |turn: &Turn<'a>| matches!(turn, Turn::User(user) if self.speaks(user));
        if self.profile().alternating_roles && beginning::is_missing(&turns)
            || !turns.iter().any(speaks)
        {
            self.warnings.add("beginning_missing");
            beginning::put_before(&mut turns);
        }
        let mut turns = turns.into_iter();
        while let Some(turn) = turns.next() {
            let later = turns.as_mut_slice();
            self.is_last = later.is_empty();
            match turn {
                Turn::System(texts) => {
                    json.begin_object().key("role").text(role).key("content");
                    json.string(|out| push_joined(out, texts));
                    json.end_object();
                }
                Turn::Assistant(blocks) => {
                    let next = match later.first_mut() {
                        Some(Turn::User(user)) => Some(user),
                        _ => None,
                    };
                    self.assistant(&blocks, next, json)?;
                }
                Turn::User(user) => self.user(user, json)?,
            }
        }
        json.end_array();
        Ok(self.written)
    }

    pub(crate) fn profile(&self) -> &'r Profile {
        self.words.profile
    }

    fn breakpoints(&self, turns: &[Turn<'_>]) -> usize {
        if !self.profile().cache_breakpoints {
            return 0;
        }
        let users = turns.iter().filter_map(|turn| match turn {
            Turn::User(user) => Some(user),
            _ => None,
        });
        let users = users.map(|user| {
            let results = user.results.iter().filter(|result| self.caches(result)).count();
            user.items.iter().filter(|item| is_cached(item)).count().saturating_add(results)
        });
        let system = self.system.texts.iter().filter(|text| text.cached).count();
        users.fold(system, usize::saturating_add)
    }

    /// Whether the client wants the prompt cached up to a result, and the upstream has a place for that.
    pub(super) fn caches(&self, result: &ToolResult<'_>) -> bool {
        let is_cached = |block: &Block<'_>| matches!(block, Block::Text(it) if it.cached && !it.text.is_blank());
        self.takes_parts() && result.content.iter().any(is_cached)
    }

    pub(super) fn takes_parts(&self) -> bool {
        self.profile().tool_content_parts != ToolContentParts::No
    }

    /// Whether a breakpoint is written for something that the client wants cached.
    pub(super) fn breakpoint(&mut self, cached: bool) -> bool {
        if !cached || !self.profile().cache_breakpoints {
            return false;
        }
        let due = self.passed_over == 0;
        self.passed_over = self.passed_over.saturating_sub(1);
        due
    }

    fn system_content(&mut self, json: &mut Writer<'_>) {
        let cached = self.system.texts.iter().any(|text| text.cached);
        if !(cached && self.profile().cache_breakpoints) {
            return json.string(|out| push_system(out, &self.system));
        }
        json.begin_array();
        for text in std::mem::take(&mut self.system.texts) {
            begin_text(json);
            push(json.out(), text.text);
            let due = self.breakpoint(text.cached);
            end_text(json, due);
        }
        if self.system.schema.is_some() {
            begin_text(json);
            push_system(json.out(), &self.system);
            end_text(json, false);
        }
        json.end_array();
    }
}
