//! Writes the turns of a conversation as the `messages` of Chat Completions.
//!
//! ```text
//!  assistant  text, reasoning, tool calls     1 assistant message
//!  user       tool results                    n tool messages, directly after it
//!             images of the results           1 user message
//!             everything else                   with both
//! ```

use crate::carry::tool_id::Outgoing;
use crate::error::Error;
use crate::history::beginning;
use crate::json::Writer;
use crate::model::ToolResult;
use crate::model::turn::{Turn, UserPart};
use crate::observe::warning::Warnings;
use crate::profile::{Profile, SystemRole, ToolContentParts};
use crate::protocols::breakpoints::Breakpoints;
use crate::protocols::words::{SystemPrompt, Words, end_text, push, push_joined, push_system};
use crate::text::names::Names;
use crate::tools::{ToolMark, ToolSet};

/// Writer of the `messages` of one request.
pub(crate) struct MessageWriter<'r, 'a> {
    pub(crate) words: Words<'r, 'a>,
    pub(crate) tools: &'r ToolSet<'a>,
    pub(crate) ids: Outgoing<'a>,
    /// Names of called tools, by the call ids sent to the upstream. Filled only if tool results
    /// must name their tool.
    pub(crate) called: Names<'a, String>,
    pub(crate) warnings: &'r mut Warnings,
    pub(crate) system: SystemPrompt<'a>,
    pub(super) breakpoints: Breakpoints<'r, 'a>,
    /// True while the last turn is written.
    pub(crate) is_last: bool,
    /// Tool results whose images are written into the next user message, with the ids of their
    /// calls.
    pub(super) attached: Vec<(String, ToolResult<'a>)>,
    pub(crate) written: Written,
}

/// Facts about the messages that were written, for the later steps of the request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// Number of bytes of reasoning in the written messages.
    pub(crate) reasoning_bytes: usize,
    /// True if a message of the assistant has tool calls and no text as content.
    pub(crate) silent_calls: bool,
    /// Cache mark on the tools, if the mark is to be written.
    pub(crate) tool_mark: Option<ToolMark>,
}

impl<'r, 'a> MessageWriter<'r, 'a> {
    pub(crate) fn new(
        words: Words<'r, 'a>,
        tools: &'r ToolSet<'a>,
        system: SystemPrompt<'a>,
        warnings: &'r mut Warnings,
    ) -> Self {
        let ids = Outgoing::new(words.profile.id_style, words.profile.max_id_length);
        let in_results = words.profile.tool_content_parts != ToolContentParts::No;
        let breakpoints = Breakpoints::new(words, in_results);
        let (called, is_last, attached) = (Names::default(), false, Vec::new());
        Self {
            words,
            tools,
            ids,
            called,
            warnings,
            system,
            breakpoints,
            is_last,
            attached,
            written: Written::default(),
        }
    }

    /// Writes all messages as a JSON array. Returns facts about the written messages.
    ///
    /// # Errors
    /// Fails for a block that this upstream does not accept and that must not be dropped.
    pub(crate) fn write(
        mut self,
        mut turns: Vec<Turn<'a>>,
        json: &mut Writer<'_>,
    ) -> Result<Written, Error> {
        let system = self.system.texts.iter().filter(|text| text.cached.is_some()).count();
        let on_tools = self.tools.mark().filter(|_| self.words.takes_cache_control());
        self.breakpoints.count(&turns, system.saturating_add(on_tools.iter().count()));
        self.written.tool_mark =
            on_tools.filter(|mark| self.breakpoints.due(Some(mark.cached)).is_some());
        json.begin_array();
        let role = match self.profile().system_role {
            SystemRole::System => "system",
            SystemRole::Developer => "developer",
            // System messages in the middle of the conversation are already parts of user turns
            // (`history`).
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

    fn system_content(&mut self, json: &mut Writer<'_>) {
        let cached = self.system.texts.iter().any(|text| text.cached.is_some());
        if !(cached && self.words.has_breakpoints()) {
            return json.string(|out| push_system(out, &self.system));
        }
        json.begin_array();
        for text in std::mem::take(&mut self.system.texts) {
            self.words.begin_text(json);
            push(json.out(), text.text);
            let due = self.breakpoints.due(text.cached);
            end_text(json, due);
        }
        if self.system.schema.is_some() {
            self.words.begin_text(json);
            push_system(json.out(), &self.system);
            end_text(json, None);
        }
        json.end_array();
    }
}
