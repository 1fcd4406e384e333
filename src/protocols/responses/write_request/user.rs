//! The user's turns: tool results, and everything else in one message behind them.

use super::input::{InputWriter, begin_message};
use super::parts::{begin_text, end_text, write_attachment, write_document};
use crate::dialect::profile::ToolOutputParts;
use crate::error::Error;
use crate::json::{Writer, escape};
use crate::model::turn::{User, UserPart};
use crate::model::{Block, DocumentSource, ToolResult};
use crate::protocols::words::{is_cached, push_failure};

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

    /// Whether what is attached to a result has to wait for a message of the user's.
    fn waits(&self, attached: &[&Block<'_>]) -> bool {
        attached.iter().any(|block| match self.profile().tool_output_parts {
            ToolOutputParts::All => false,
            ToolOutputParts::Images => !matches!(block, Block::Image(_)),
            ToolOutputParts::Text => true,
        })
    }

    /// A result and the words that stand with it, so that no message of the user comes after it.
    fn output(
        &mut self,
        result: ToolResult<'a>,
        words: &[UserPart<'a>],
        json: &mut Writer<'_>,
    ) -> Result<(), Error> {
        let attached = self.words.attachments(&result.content);
        let waits = self.waits(&attached);
        let in_parts = !waits && !attached.is_empty();
        let id = self.ids.id(result.id.decode(), "");
        let waits = waits.then(|| id.to_owned());
        json.make_room();
        json.begin_object().kind("function_call_output");
        json.key("call_id").text(id).key("output");
        let is_marked = self.caches(&result) || self.takes_parts() && words.iter().any(is_cached);
        let due = is_marked && self.breakpoint(true);
        if in_parts || due && attached.is_empty() {
            json.begin_array();
            let before = json.out().len();
            begin_text(json);
            let start = json.out().len();
            self.push_output(json.out(), &result, "", words)?;
            if json.out().len() > start {
                end_text(json, due);
            } else {
                json.out().truncate(before);
            }
            for block in attached {
                write_attachment(self.words, json, block, false)?;
            }
            json.end_array().end_object();
            return Ok(());
        }
        let empty = match attached.first() {
            Some(Block::Image(_)) => "[image attached below]",
            Some(_) => "[document attached below]",
            None => self.profile().empty_tool_content.as_str(),
        };
        json.string(|out| self.push_output(out, &result, empty, words))?;
        json.end_object();
        if let Some(id) = waits {
            self.attached.push((id, result));
        }
        Ok(())
    }

    fn push_output(
        &self,
        out: &mut Vec<u8>,
        result: &ToolResult<'_>,
        empty: &str,
        words: &[UserPart<'_>],
    ) -> Result<(), Error> {
        let start = out.len();
        push_failure(out, result);
        let labelled = out.len();
        self.words.push_lines(out, &result.content)?;
        if out.len() == labelled {
            escape(out, empty);
        }
        for item in words {
            if out.len() > start {
                escape(out, "\n\n");
            }
            self.words.push_item(out, item, &self.system)?;
        }
        Ok(())
    }

    fn user_message(&mut self, items: &[UserPart<'a>], json: &mut Writer<'_>) -> Result<(), Error> {
        let attached = std::mem::take(&mut self.attached);
        if items.is_empty() && attached.is_empty() {
            return Ok(());
        }
        begin_message(json, "user").begin_array();
        for (id, result) in &attached {
            for block in self.words.attachments(&result.content) {
                let what = if matches!(block, Block::Image(_)) { "Image" } else { "Document" };
                begin_text(json);
                escape(json.out(), &format!("{what} from tool result {id}:"));
                end_text(json, false);
                write_attachment(self.words, json, block, false)?;
            }
        }
        let (words, profile) = (self.words, self.profile());
        let joins = |item: &UserPart<'_>| {
            let is_marked = profile.cache_breakpoints && is_cached(item);
            profile.joined_texts && words.is_text(item) && !is_marked
        };
        for run in items.chunk_by(|one, next| joins(one) && joins(next)) {
            if let [item] = run {
                self.item(item, json)?;
            } else {
                begin_text(json);
                words.push_items(json.out(), run, &self.system)?;
                end_text(json, false);
            }
        }
        json.end_array().end_object();
        Ok(())
    }

    fn item(&mut self, item: &UserPart<'a>, json: &mut Writer<'_>) -> Result<(), Error> {
        let due = self.breakpoint(is_cached(item));
        if let UserPart::Block(block) = item
            && !self.words.is_text(item)
        {
            if let Block::Document(document) = block
                && let DocumentSource::Content(inner) = &document.source
            {
                return write_document(self.words, json, document, inner, due);
            }
            return write_attachment(self.words, json, block, due);
        }
        begin_text(json);
        self.words.push_item(json.out(), item, &self.system)?;
        end_text(json, due);
        let result = match item {
            UserPart::Orphan(result) => Some(result),
            UserPart::Done(done) => Some(&done.1),
            _ => None,
        };
        for block in result.iter().flat_map(|result| self.words.attachments(&result.content)) {
            write_attachment(self.words, json, block, false)?;
        }
        Ok(())
    }
}
