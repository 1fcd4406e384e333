//! Parts of a message: texts, images and files, in the order in which they stand.

use super::{DOCUMENT_END, SystemPrompt, Words, push, push_document_start, push_failure};
use crate::error::Error;
use crate::json::{Str, Writer, escape};
use crate::model::turn::UserPart;
use crate::model::{Block, Document, DocumentSource, ToolResult};

/// How a protocol writes parts.
pub(crate) struct Parts {
    /// The `type` of a text.
    pub(crate) text: &'static str,
    /// Whether there is a place for the address of a file.
    pub(crate) file_urls: bool,
    /// Writes an image or a file, and a cache breakpoint behind it if one is due.
    pub(crate) attachment:
        fn(Words<'_, '_>, &mut Writer<'_>, &Block<'_>, bool) -> Result<(), Error>,
}

impl Words<'_, '_> {
    /// Opens a text part; the text follows as the inside of a JSON string.
    pub(crate) fn begin_text(&self, json: &mut Writer<'_>) {
        json.begin_object().kind(self.parts.text);
        json.key("text").value().out().push(b'"');
    }

    fn write_attachment(
        &self,
        json: &mut Writer<'_>,
        block: &Block<'_>,
        breakpoint: bool,
    ) -> Result<(), Error> {
        (self.parts.attachment)(*self, json, block, breakpoint)
    }

    /// Writes a document with images as texts and images in turn.
    fn write_document(
        &self,
        json: &mut Writer<'_>,
        document: &Document<'_>,
        blocks: &[Block<'_>],
        breakpoint: bool,
    ) -> Result<(), Error> {
        // Where the last text began; between two images there may be none.
        let mut before = json.out().len();
        self.begin_text(json);
        let mut from = json.out().len();
        push_document_start(json.out(), document);
        let mut first = true;
        for block in blocks {
            if self.is_block_text(block) {
                if !std::mem::take(&mut first) {
                    escape(json.out(), "\n");
                }
                self.push_text(json.out(), block)?;
            } else {
                match json.out().len() == from {
                    true => json.out().truncate(before),
                    false => end_text(json, false),
                }
                self.write_attachment(json, block, false)?;
                before = json.out().len();
                self.begin_text(json);
                from = json.out().len();
                first = true;
            }
        }
        escape(json.out(), DOCUMENT_END);
        end_text(json, breakpoint);
        Ok(())
    }

    /// Writes an item of a user's message.
    pub(crate) fn write_item(
        &self,
        json: &mut Writer<'_>,
        item: &UserPart<'_>,
        system: &SystemPrompt<'_>,
        breakpoint: bool,
    ) -> Result<(), Error> {
        if let UserPart::Block(block) = item
            && !self.is_block_text(block)
        {
            if let Block::Document(document) = block
                && let DocumentSource::Content(inner) = &document.source
            {
                return self.write_document(json, document, inner, breakpoint);
            }
            return self.write_attachment(json, block, breakpoint);
        }
        self.begin_text(json);
        self.push_item(json.out(), item, system)?;
        end_text(json, breakpoint);
        let result = match item {
            UserPart::Orphan(result) => Some(result),
            UserPart::Done(done) => Some(&done.1),
            _ => None,
        };
        for block in result.iter().flat_map(|result| self.attachments(&result.content)) {
            self.write_attachment(json, block, false)?;
        }
        Ok(())
    }

    /// Writes what is attached to results, each with the name of its result.
    pub(crate) fn write_attached(
        &self,
        json: &mut Writer<'_>,
        attached: &[(String, ToolResult<'_>)],
    ) -> Result<(), Error> {
        for (id, result) in attached {
            for block in self.attachments(&result.content) {
                let what = if matches!(block, Block::Image(_)) { "Image" } else { "Document" };
                self.begin_text(json);
                escape(json.out(), &format!("{what} from tool result {id}:"));
                end_text(json, false);
                self.write_attachment(json, block, false)?;
            }
        }
        Ok(())
    }

    /// Writes the content of a result, and the words that stand with it. `waits`: what is attached to it is written
    /// later.
    pub(crate) fn write_result(
        &self,
        json: &mut Writer<'_>,
        (result, attached): (&ToolResult<'_>, &[&Block<'_>]),
        words: &[UserPart<'_>],
        system: &SystemPrompt<'_>,
        (waits, breakpoint): (bool, bool),
    ) -> Result<(), Error> {
        let in_parts = if attached.is_empty() { breakpoint } else { !waits };
        if !in_parts {
            let empty = match attached.first() {
                Some(Block::Image(_)) => "[image attached below]",
                Some(_) => "[document attached below]",
                None => self.profile.empty_tool_content.as_str(),
            };
            return json.string(|out| self.push_result(out, result, empty, words, system));
        }
        json.begin_array();
        let before = json.out().len();
        self.begin_text(json);
        let start = json.out().len();
        self.push_result(json.out(), result, "", words, system)?;
        if json.out().len() > start {
            end_text(json, breakpoint);
        } else {
            json.out().truncate(before);
        }
        for block in attached {
            self.write_attachment(json, block, false)?;
        }
        json.end_array();
        Ok(())
    }

    fn push_result(
        &self,
        out: &mut Vec<u8>,
        result: &ToolResult<'_>,
        empty: &str,
        words: &[UserPart<'_>],
        system: &SystemPrompt<'_>,
    ) -> Result<(), Error> {
        let start = out.len();
        push_failure(out, result);
        let labelled = out.len();
        self.push_lines(out, &result.content)?;
        if out.len() == labelled {
            escape(out, empty);
        }
        for item in words {
            if out.len() > start {
                escape(out, "\n\n");
            }
            self.push_item(out, item, system)?;
        }
        Ok(())
    }
}

/// Closes a text part.
pub(crate) fn end_text(json: &mut Writer<'_>, breakpoint: bool) {
    json.out().push(b'"');
    write_breakpoint(json, breakpoint);
    json.end_object();
}

/// Writes a cache breakpoint into the part that is open.
pub(crate) fn write_breakpoint(json: &mut Writer<'_>, due: bool) {
    if due {
        json.key("prompt_cache_breakpoint").begin_object();
        json.key("mode").text("explicit").end_object();
    }
}

/// Writes an image or a file as a `data:` URL.
pub(crate) fn write_data(json: &mut Writer<'_>, media_type: Str<'_>, data: Str<'_>) {
    json.string(|out| {
        out.extend_from_slice(b"data:");
        push(out, media_type);
        out.extend_from_slice(b";base64,");
        push(out, data);
    });
}
