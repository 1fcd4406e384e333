//! The user's turns: tool results, and everything else in one message.
//!
//! An upstream that refuses a user message directly after results (`merge_into_last_tool`) gets the
//! user's words with the last result. Images cannot go there: a word of the assistant comes between.
//! System messages, and words that clients add by themselves, go there for every upstream if nobody speaks
//! beside them: templates forget what the model thought before a user message.

use super::messages::{MessageWriter, is_cached, push_joined, push_system};
use super::parts::{self, begin_text, end_text, push};
use crate::dialect::profile::{MidSystem, TextAfterToolResults, ToolContentParts};
use crate::error::Error;
use crate::guards::person::is_of_client;
use crate::json::{Writer, escape};
use crate::model::turn::{MOVED, User, UserPart};
use crate::model::{Block, DocumentSource, ToolResult};
use crate::text::words;

/// The words of the assistant between results and the user's images.
const BRIDGE: &str = "Now the attachments, please.";

impl<'a> MessageWriter<'_, 'a> {
    /// Whether texts after results are part of the last result.
    fn merges(&self) -> bool {
        self.profile().text_after_tool_results == TextAfterToolResults::MergeIntoLastTool
    }

    /// Whether the texts of a turn with results go into the last result.
    fn joins_result(&self, items: &[UserPart<'a>]) -> bool {
        // A system message is an item of the user's only where the upstream takes none there.
        let in_place = self.profile().mid_system != MidSystem::AsUser;
        let is_told = |item: &UserPart<'_>| {
            is_of_client(item) && (matches!(item, UserPart::System(_)) || !in_place)
        };
        self.merges() || items.iter().all(is_told)
    }

    /// Whether a turn becomes a message of the user's, and not only results.
    pub(super) fn speaks(&self, user: &User<'a>) -> bool {
        let User { results, items } = user;
        if results.is_empty() {
            return !items.is_empty();
        }
        let speaks = if self.joins_result(items) {
            items.iter().any(|item| !self.is_text(item))
        } else {
            !items.is_empty()
        };
        speaks
            || results
                .iter()
                .any(|result| self.waits(&parts::attachments(&result.content, self.profile())))
    }

    pub(super) fn user(&mut self, user: User<'a>, json: &mut Writer<'_>) -> Result<(), Error> {
        let User { results, items } = user;
        let (merged, items) = if !results.is_empty() && self.joins_result(&items) {
            items.into_iter().partition(|item| self.is_text(item))
        } else {
            (Vec::new(), items)
        };
        let bridges = self.merges() && !results.is_empty();
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

    /// Whether what is attached to a result has to wait for a message of the user's.
    fn waits(&self, attached: &[&Block<'_>]) -> bool {
        let takes_images = self.profile().tool_content_parts == ToolContentParts::Images;
        attached.iter().any(|block| !(takes_images && matches!(block, Block::Image(_))))
    }

    /// A result and the words that stand with it, so that no user message comes after it.
    pub(super) fn tool(
        &mut self,
        result: ToolResult<'a>,
        words: &[UserPart<'a>],
        json: &mut Writer<'_>,
    ) -> Result<(), Error> {
        let attached = parts::attachments(&result.content, self.profile());
        let waits = self.waits(&attached);
        let in_parts = !waits && !attached.is_empty();
        let id = self.ids.id(result.id.decode(), "");
        let waits = waits.then(|| id.to_owned());
        json.make_room();
        json.begin_object().key("role").text("tool");
        if let Some(name) = self.called.get(id) {
            json.key("name").text(name);
        }
        json.key("tool_call_id").text(id).key("content");
        let is_marked = self.caches(&result) || self.takes_parts() && words.iter().any(is_cached);
        let due = is_marked && self.breakpoint(true);
        if in_parts || due && attached.is_empty() {
            json.begin_array();
            let before = json.out().len();
            begin_text(json);
            let start = json.out().len();
            self.push_tool_text(json.out(), &result, "", words)?;
            if json.out().len() > start {
                end_text(json, due);
            } else {
                json.out().truncate(before);
            }
            for image in attached {
                self.parts.write_attachment(json, image, false)?;
            }
            json.end_array().end_object();
            return Ok(());
        }
        let empty = match attached.first() {
            Some(Block::Image(_)) => "[image attached below]",
            Some(_) => "[document attached below]",
            None => self.profile().empty_tool_content.as_str(),
        };
        json.string(|out| self.push_tool_text(out, &result, empty, words))?;
        json.end_object();
        if let Some(id) = waits {
            self.attached.push((id, result));
        }
        Ok(())
    }

    fn push_tool_text(
        &self,
        out: &mut Vec<u8>,
        result: &ToolResult<'_>,
        empty: &str,
        words: &[UserPart<'_>],
    ) -> Result<(), Error> {
        let start = out.len();
        push_failure(out, result);
        let labelled = out.len();
        self.parts.push_lines(out, &result.content)?;
        if out.len() == labelled {
            escape(out, empty);
        }
        for item in words {
            if out.len() > start {
                escape(out, "\n\n");
            }
            self.push_item(out, item)?;
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
                self.write_attached(&attached, json)?;
                json.end_array().end_object();
            }
            return Ok(());
        };
        let joined = items.len() == 1
            || self.profile().alternating_roles
            || self.profile().joined_texts
            || matches!(first, UserPart::SystemPrompt);
        let is_plain = |item: &UserPart<'_>| {
            self.is_text(item) && !(self.profile().cache_breakpoints && is_cached(item))
        };
        begin_user(json);
        if joined && attached.is_empty() && items.iter().all(is_plain) {
            json.string(|out| self.push_items(out, &items))?;
        } else {
            json.begin_array();
            self.write_attached(&attached, json)?;
            let joins = |item: &UserPart<'_>| self.profile().joined_texts && is_plain(item);
            let runs: Vec<_> = items.chunk_by(|one, next| joins(one) && joins(next)).collect();
            for run in runs {
                if let [item] = run {
                    self.write_item(item, json)?;
                } else {
                    begin_text(json);
                    self.push_items(json.out(), run)?;
                    end_text(json, false);
                }
            }
            json.end_array();
        }
        json.end_object();
        Ok(())
    }

    /// Texts, with an empty line between them.
    fn push_items(&self, out: &mut Vec<u8>, items: &[UserPart<'a>]) -> Result<(), Error> {
        items.iter().enumerate().try_for_each(|(at, item)| {
            if at > 0 {
                escape(out, "\n\n");
            }
            self.push_item(out, item)
        })
    }

    fn write_attached(
        &self,
        attached: &[(String, ToolResult<'_>)],
        json: &mut Writer<'_>,
    ) -> Result<(), Error> {
        for (id, result) in attached {
            for block in parts::attachments(&result.content, self.profile()) {
                let what = if matches!(block, Block::Image(_)) { "Image" } else { "Document" };
                begin_text(json);
                escape(json.out(), &format!("{what} from tool result {id}:"));
                end_text(json, false);
                self.parts.write_attachment(json, block, false)?;
            }
        }
        Ok(())
    }

    fn is_text(&self, item: &UserPart<'_>) -> bool {
        match item {
            UserPart::Block(block) => parts::is_text(block, self.profile()),
            UserPart::Orphan(result) => self.is_all_text(result),
            UserPart::Done(done) => self.is_all_text(&done.1),
            UserPart::System(_)
            | UserPart::Summary(_)
            | UserPart::SystemPrompt
            | UserPart::Moved => true,
        }
    }

    fn is_all_text(&self, result: &ToolResult<'_>) -> bool {
        result.content.iter().all(|block| parts::is_text(block, self.profile()))
    }

    /// Appends what an item says in words, as the inside of a JSON string.
    fn push_item(&self, out: &mut Vec<u8>, item: &UserPart<'_>) -> Result<(), Error> {
        match item {
            UserPart::Block(block) => self.parts.push_text(out, block)?,
            UserPart::System(texts) => {
                escape(out, "<system-message>\n");
                push_joined(out, texts.iter().copied());
                escape(out, "\n</system-message>");
            }
            UserPart::Summary(summary) => {
                escape(out, "<summary>");
                push(out, *summary);
                escape(out, "</summary>");
            }
            UserPart::Orphan(result) => {
                escape(out, "[Tool result without a call: ");
                push_failure(out, result);
                self.parts.push_lines(out, &result.content)?;
                escape(out, "]");
            }
            UserPart::Done(done) => {
                let (call, result) = &**done;
                escape(out, "[Tool call ");
                push(out, call.name);
                escape(out, " ");
                call.input.escape_compact(out);
                escape(out, " gave: ");
                push_failure(out, result);
                self.parts.push_lines(out, &result.content)?;
                escape(out, "]");
            }
            UserPart::SystemPrompt => push_system(out, &self.system),
            UserPart::Moved => escape(out, MOVED),
        }
        Ok(())
    }

    fn write_item(&mut self, item: &UserPart<'_>, json: &mut Writer<'_>) -> Result<(), Error> {
        let due = self.breakpoint(is_cached(item));
        if let UserPart::Block(block) = item
            && !self.is_text(item)
        {
            if let Block::Document(document) = block
                && let DocumentSource::Content(inner) = &document.source
            {
                return self.parts.write_document(json, document, inner, due);
            }
            return self.parts.write_attachment(json, block, due);
        }
        begin_text(json);
        self.push_item(json.out(), item)?;
        end_text(json, due);
        let result = match item {
            UserPart::Orphan(result) => Some(result),
            UserPart::Done(done) => Some(&done.1),
            _ => None,
        };
        if let Some(result) = result {
            for block in parts::attachments(&result.content, self.profile()) {
                self.parts.write_attachment(json, block, false)?;
            }
        }
        Ok(())
    }
}

fn begin_user<'j, 'o>(json: &'j mut Writer<'o>) -> &'j mut Writer<'o> {
    json.begin_object().key("role").text("user").key("content")
}

/// The word that says that a tool failed, unless its result begins with it.
fn push_failure(out: &mut Vec<u8>, result: &ToolResult<'_>) {
    if result.is_error && !says_error(&result.content) {
        escape(out, "Error: ");
    }
}

/// Whether a result begins with the word "error", whatever its case.
fn says_error(content: &[Block<'_>]) -> bool {
    let is_empty = |block: &&Block<'_>| matches!(block, Block::Text(it) if it.text.is_empty());
    let Some(Block::Text(text)) = content.iter().find(|it| !is_empty(it)) else { return false };
    words::begins(text.text.raw(), "error")
}
