//! Writes the user's turns: tool results, and then one user message with the other content.
//!
//! Some upstreams refuse a user message directly after tool results (`merge_into_last_tool`). They
//! receive the user's text inside the last tool result. Images cannot be inside a tool result, so a
//! short assistant message is written before the message with the images. System messages and texts
//! that clients add automatically are written into the last tool result for every upstream, if the
//! turn has no other user text. The reason: chat templates drop the reasoning before a user
//! message.

use super::messages::MessageWriter;
use crate::error::Error;
use crate::json::Writer;
use crate::model::turn::{User, UserPart};
use crate::model::{Block, ToolResult};
use crate::profile::ToolContentParts;
use crate::protocols::words::end_text;

/// Text of the assistant message that is inserted between tool results and the user's images.
const BRIDGE: &str = "Now the attachments, please.";

impl<'a> MessageWriter<'_, 'a> {
    /// Returns true if a turn is written with a user message, and not only with tool results.
    pub(super) fn speaks(&self, user: &User<'a>) -> bool {
        let User { results, items } = user;
        if results.is_empty() {
            return !items.is_empty();
        }
        let speaks = if self.words.joins_result(items) {
            items.iter().any(|item| !self.words.is_text(item))
        } else {
            !items.is_empty()
        };
        speaks || results.iter().any(|result| self.waits(&self.words.attachments(&result.content)))
    }

    pub(super) fn user(&mut self, user: User<'a>, json: &mut Writer<'_>) -> Result<(), Error> {
        let User { results, items } = user;
        let (merged, items) = if !results.is_empty() && self.words.joins_result(&items) {
            items.into_iter().partition(|item| self.words.is_text(item))
        } else {
            (Vec::new(), items)
        };
        let bridges = self.words.merges() && !results.is_empty();
        let last = results.len().saturating_sub(1);
        for (at, result) in results.into_iter().enumerate() {
            self.tool(result, if at == last { &merged } else { &[] }, json)?;
        }
        if bridges && !(items.is_empty() && self.attached.is_empty()) {
            json.begin_object().key("role").text("assistant");
            json.key("content").text(BRIDGE).end_object();
        }
        self.user_message(items, json)
    }

    /// Returns true if attachments of a tool result cannot be in the result and are written into
    /// the next user message.
    fn waits(&self, attached: &[&Block<'_>]) -> bool {
        let takes_images = self.profile().tool_content_parts == ToolContentParts::Images;
        attached.iter().any(|block| !(takes_images && matches!(block, Block::Image(_))))
    }

    /// Writes a tool result together with user texts (`words`), so that no user message follows the
    /// result.
    pub(super) fn tool(
        &mut self,
        result: ToolResult<'a>,
        words: &[UserPart<'a>],
        json: &mut Writer<'_>,
    ) -> Result<(), Error> {
        let attached = self.words.attachments(&result.content);
        let waits = self.waits(&attached);
        let id = self.ids.id(result.id.decode(), "");
        let waiting = waits.then(|| id.to_owned());
        json.make_room();
        json.begin_object().key("role").text("tool");
        if let Some(name) = self.called.get(id) {
            json.key("name").text(name);
        }
        json.key("tool_call_id").text(id).key("content");
        let due = self.breakpoints.due_in(&result, words);
        self.words.write_result(json, (&result, &attached), words, &self.system, (waits, due))?;
        json.end_object();
        if let Some(id) = waiting {
            self.attached.push((id, result));
        }
        Ok(())
    }

    fn user_message(
        &mut self,
        items: Vec<UserPart<'a>>,
        json: &mut Writer<'_>,
    ) -> Result<(), Error> {
        let attached = std::mem::take(&mut self.attached);
        let Some(first) = items.first() else {
            if !attached.is_empty() {
                begin_user(json).begin_array();
                self.words.write_attached(json, &attached)?;
                json.end_array().end_object();
            }
            return Ok(());
        };
        let joined = items.len() == 1
            || self.profile().alternating_roles
            || self.profile().joined_texts
            || matches!(first, UserPart::SystemPrompt);
        let is_plain =
            |item: &UserPart<'_>| self.words.is_text(item) && self.words.mark_on(item).is_none();
        begin_user(json);
        if joined && attached.is_empty() && items.iter().all(is_plain) {
            json.string(|out| self.words.push_items(out, &items, &self.system))?;
        } else {
            json.begin_array();
            self.words.write_attached(json, &attached)?;
            let joins = |item: &UserPart<'_>| self.profile().joined_texts && is_plain(item);
            let runs: Vec<_> = items.chunk_by(|one, next| joins(one) && joins(next)).collect();
            for run in runs {
                if let [item] = run {
                    let due = self.breakpoints.due(self.words.mark_on(item));
                    self.words.write_item(json, item, &self.system, due)?;
                } else {
                    self.words.begin_text(json);
                    self.words.push_items(json.out(), run, &self.system)?;
                    end_text(json, None);
                }
            }
            json.end_array();
        }
        json.end_object();
        Ok(())
    }
}

fn begin_user<'j, 'o>(json: &'j mut Writer<'o>) -> &'j mut Writer<'o> {
    json.begin_object().key("role").text("user").key("content")
}
