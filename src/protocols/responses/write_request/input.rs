//! Writer of the `input` member of a Responses request from the turns of a conversation.
//!
//! ```text
//!  assistant  reasoning        the items as they came, before what they led to
//!             a text           1 message
//!             a tool call      1 function_call
//!  user       tool results     n function_call_output
//!             everything else  1 message
//!  system     in the middle    1 message of the role developer
//! ```

use crate::carry::tool_id::Outgoing;
use crate::error::Error;
use crate::history::beginning;
use crate::json::Writer;
use crate::model::ToolResult;
use crate::model::turn::{Turn, calls};
use crate::observe::warning::Warnings;
use crate::profile::{Profile, SystemField, ToolOutputParts};
use crate::protocols::breakpoints::Breakpoints;
use crate::protocols::words::{SystemPrompt, Words, end_text, push, push_joined, push_system};
use crate::tools::ToolSet;

/// Writer of the `input` items of one request.
pub(super) struct InputWriter<'r, 'a> {
    pub(super) words: Words<'r, 'a>,
    pub(super) tools: &'r ToolSet<'a>,
    pub(super) ids: Outgoing<'a>,
    pub(super) warnings: &'r mut Warnings,
    pub(super) system: SystemPrompt<'a>,
    pub(super) breakpoints: Breakpoints<'r, 'a>,
    /// Tool results whose images and files are written into the next user message, with the ids of
    /// their calls.
    pub(super) attached: Vec<(String, ToolResult<'a>)>,
    /// Reasoning items that no other item follows yet. Upstreams refuse reasoning without a
    /// following item, so such reasoning is left out.
    pub(super) thoughts: Vec<String>,
    /// Number of bytes of reasoning that were written.
    pub(super) reasoning_bytes: usize,
}

impl<'r, 'a> InputWriter<'r, 'a> {
    pub(super) fn new(
        words: Words<'r, 'a>,
        tools: &'r ToolSet<'a>,
        system: SystemPrompt<'a>,
        warnings: &'r mut Warnings,
    ) -> Self {
        let in_results = words.profile.tool_output_parts != ToolOutputParts::Text;
        Self {
            words,
            tools,
            ids: Outgoing::new(words.profile.id_style, words.profile.max_id_length),
            warnings,
            system,
            breakpoints: Breakpoints::new(words, in_results),
            attached: Vec::new(),
            thoughts: Vec::new(),
            reasoning_bytes: 0,
        }
    }

    /// Writes all items as a JSON array. Returns the number of bytes of reasoning in the items.
    ///
    /// # Errors
    /// Fails for a block that this upstream does not accept and that must not be dropped.
    pub(super) fn write(
        mut self,
        mut turns: Vec<Turn<'a>>,
        json: &mut Writer<'_>,
    ) -> Result<usize, Error> {
        let system = match self.profile().system_field {
            SystemField::Developer => {
                self.system.texts.iter().filter(|text| text.cached.is_some()).count()
            }
            SystemField::Instructions => 0,
        };
        self.breakpoints.count(&turns, system);
        json.begin_array();
        if self.profile().system_field == SystemField::Developer && !self.system.is_empty() {
            self.system_message(json);
        }
        let is_user = |turn: &Turn<'a>| matches!(turn, Turn::User(_));
        if self.profile().alternating_roles && beginning::is_missing(&turns)
            || !turns.iter().any(is_user)
        {
            self.warnings.add("beginning_missing");
            beginning::put_before(&mut turns);
        }
        let mut turns = turns.into_iter();
        while let Some(turn) = turns.next() {
            match turn {
                Turn::System(texts) => {
                    begin_message(json, "developer").begin_array();
                    self.words.begin_text(json);
                    push_joined(json.out(), texts);
                    end_text(json, None);
                    json.end_array().end_object();
                }
                Turn::Assistant(blocks) => {
                    let calls_follow = match turns.as_slice().first() {
                        Some(Turn::Assistant(next)) => calls(next).next().is_some(),
                        _ => false,
                    };
                    self.assistant(&blocks, calls_follow, json)?;
                }
                Turn::User(user) => {
                    self.thoughts.clear();
                    self.user(user, json)?;
                }
            }
        }
        json.end_array();
        Ok(self.reasoning_bytes)
    }

    pub(super) fn profile(&self) -> &'r Profile {
        self.words.profile
    }

    fn system_message(&mut self, json: &mut Writer<'_>) {
        begin_message(json, "developer").begin_array();
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
        json.end_array().end_object();
    }
}

/// Begins a message item up to the key `content`; the caller writes the content.
pub(super) fn begin_message<'j, 'o>(
    json: &'j mut Writer<'o>,
    role: &'static str,
) -> &'j mut Writer<'o> {
    json.make_room();
    json.begin_object().kind("message");
    json.key("role").text(role).key("content")
}
