//! Writes the user's turns: tool results, and then one user message with the other content.

use super::input::{InputWriter, begin_message};
use crate::error::Error;
use crate::json::Writer;
use crate::model::turn::{User, UserPart};
use crate::model::{Block, ToolResult};
use crate::profile::ToolOutputParts;
use crate::protocols::words::end_text;

impl<'a> InputWriter<'_, 'a> {
    pub(super) fn user(&mut self, user: User<'a>, json: &mut Writer<'_>) -> Result<(), Error> {
        let User { results, items } = user;
        let (joined, items) = if !results.is_empty() && self.words.joins_result(&items) {
            items.into_iter().partition(|item| self.words.is_text(item))
        } else {
            (Vec::new(), items)
        };
        let last = results.len().saturating_sub(1);
        for (at, result) in results.into_iter().enumerate() {
            self.output(result, if at == last { &joined } else { &[] }, json)?;
        }
        self.user_message(&items, json)
    }

    /// Returns true if attachments of a tool result cannot be in the result and are written into
    /// the next user message.
    fn waits(&self, attached: &[&Block<'_>]) -> bool {
        attached.iter().any(|block| match self.profile().tool_output_parts {
            ToolOutputParts::All => false,
            ToolOutputParts::Images => !matches!(block, Block::Image(_)),
            ToolOutputParts::Text => true,
        })
    }

    /// Writes a tool result together with user texts (`words`), so that no user message follows the
    /// result.
    fn output(
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
        json.begin_object().kind("function_call_output");
        json.key("call_id").text(id).key("output");
        let due = self.breakpoints.due_in(&result, words);
        self.words.write_result(json, (&result, &attached), words, &self.system, (waits, due))?;
        json.end_object();
        if let Some(id) = waiting {
            self.attached.push((id, result));
        }
        Ok(())
    }

    fn user_message(&mut self, items: &[UserPart<'a>], json: &mut Writer<'_>) -> Result<(), Error> {
        let attached = std::mem::take(&mut self.attached);
        if items.is_empty() && attached.is_empty() {
            return Ok(());
        }
        begin_message(json, "user").begin_array();
        self.words.write_attached(json, &attached)?;
        let (words, profile) = (self.words, self.profile());
        let joins = |item: &UserPart<'_>| {
            profile.joined_texts && words.is_text(item) && words.mark_on(item).is_none()
        };
        for run in items.chunk_by(|one, next| joins(one) && joins(next)) {
            if let [item] = run {
                let due = self.breakpoints.due(words.mark_on(item));
                words.write_item(json, item, &self.system, due)?;
            } else {
                words.begin_text(json);
                words.push_items(json.out(), run, &self.system)?;
                end_text(json, None);
            }
        }
        json.end_array().end_object();
        Ok(())
    }
}
