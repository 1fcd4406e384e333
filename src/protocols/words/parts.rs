//! Parts of a message: texts, images and files, in the order in which they stand.

use super::{DOCUMENT_END, SystemPrompt, Words, push, push_document_start, push_failure};
use crate::error::Error;
use crate::json::{Str, Writer, escape};
use crate::model::turn::UserPart;
use crate::model::{
    Block, CacheMark, DocumentBlock, DocumentSource, Image, ImageSource, ToolResult,
};
use crate::profile::CacheBreakpoints;
use crate::protocols::breakpoints::Breakpoint;

/// Form in which a protocol writes parts of messages.
pub(crate) struct PartForms {
    /// Value of `type` for a text part.
    pub(crate) text: &'static str,
    /// True if the protocol has a place for the address of a file.
    pub(crate) file_urls: bool,
    /// True if a text part may have `cache_control`.
    pub(crate) cache_control: bool,
    /// Function that writes an image or a file, followed by a cache breakpoint if one is due.
    pub(crate) attachment:
        fn(Words<'_, '_>, &mut Writer<'_>, &Block<'_>, Option<Breakpoint>) -> Result<(), Error>,
}

impl Words<'_, '_> {
    /// Returns the kind of cache breakpoints that are written.
    fn breakpoints(&self) -> CacheBreakpoints {
        match self.profile.cache_breakpoints {
            CacheBreakpoints::CacheControl if !self.parts.cache_control => CacheBreakpoints::None,
            breakpoints => breakpoints,
        }
    }

    /// Returns true if cache breakpoints are written as `cache_control`.
    pub(crate) fn takes_cache_control(&self) -> bool {
        self.breakpoints() == CacheBreakpoints::CacheControl
    }

    /// Returns true if any cache breakpoints are written.
    pub(crate) fn has_breakpoints(&self) -> bool {
        self.breakpoints() != CacheBreakpoints::None
    }

    /// Returns a client's cache mark in the form that the upstream takes.
    pub(crate) fn breakpoint(&self, mark: CacheMark) -> Option<Breakpoint> {
        match self.breakpoints() {
            CacheBreakpoints::None => None,
            CacheBreakpoints::PromptCacheBreakpoint => Some(Breakpoint::PromptCacheBreakpoint),
            CacheBreakpoints::CacheControl => Some(Breakpoint::CacheControl(mark)),
        }
    }

    /// Returns the client's cache mark on a part of a user's turn, if the mark can be written
    /// there. Only texts may have `cache_control`.
    pub(crate) fn mark_on(&self, item: &UserPart<'_>) -> Option<CacheMark> {
        let UserPart::Block(block) = item else { return None };
        let mark = match block {
            Block::Text(text) => text.cached,
            Block::Image(image) => image.cached,
            Block::Document(document) => document.cached,
            _ => None,
        };
        mark.filter(|_| self.has_place(block))
    }

    /// Returns the place for a cache mark on a part of a user's turn, if the part may have a mark
    /// and has content to cache.
    pub(crate) fn place_on<'i>(
        &self,
        item: &'i mut UserPart<'_>,
    ) -> Option<&'i mut Option<CacheMark>> {
        let UserPart::Block(block) = item else { return None };
        if !self.has_place(block) {
            return None;
        }
        match block {
            Block::Text(text) if !text.text.is_blank() => Some(&mut text.cached),
            Block::Image(image) => Some(&mut image.cached),
            Block::Document(document) => Some(&mut document.cached),
            _ => None,
        }
    }

    /// Returns true if a cache mark on the content block `block` can be written. Only texts may
    /// have `cache_control`.
    fn has_place(&self, block: &Block<'_>) -> bool {
        match self.breakpoints() {
            CacheBreakpoints::None => false,
            CacheBreakpoints::PromptCacheBreakpoint => true,
            CacheBreakpoints::CacheControl => match block {
                Block::Text(_) => true,
                Block::Document(document)
                    if matches!(document.source, DocumentSource::Content(_)) =>
                {
                    true
                }
                block => self.is_block_text(block),
            },
        }
    }

    /// Opens a text part; the text follows as the inside of a JSON string.
    pub(crate) fn begin_text(&self, json: &mut Writer<'_>) {
        json.begin_object().kind(self.parts.text);
        json.key("text").value().out().push(b'"');
    }

    fn write_attachment(
        &self,
        json: &mut Writer<'_>,
        block: &Block<'_>,
        breakpoint: Option<Breakpoint>,
    ) -> Result<(), Error> {
        (self.parts.attachment)(*self, json, block, breakpoint)
    }

    /// Writes a document with images as texts and images in turn.
    fn write_document(
        &self,
        json: &mut Writer<'_>,
        document: &DocumentBlock<'_>,
        blocks: &[Block<'_>],
        breakpoint: Option<Breakpoint>,
    ) -> Result<(), Error> {
        // Offset at which the last text part began; there may be no text between two images.
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
                    false => end_text(json, None),
                }
                self.write_attachment(json, block, None)?;
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

    /// Writes one part of a user's turn as content parts of a message.
    pub(crate) fn write_item(
        &self,
        json: &mut Writer<'_>,
        item: &UserPart<'_>,
        system: &SystemPrompt<'_>,
        breakpoint: Option<Breakpoint>,
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
            self.write_attachment(json, block, None)?;
        }
        Ok(())
    }

    /// Writes the images and files of tool results, each after a text with the id of the tool
    /// result.
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
                end_text(json, None);
                self.write_attachment(json, block, None)?;
            }
        }
        Ok(())
    }

    /// Writes the content of a tool result, and the texts that are merged into the result. `waits`:
    /// images and files of the tool result are written later.
    pub(crate) fn write_result(
        &self,
        json: &mut Writer<'_>,
        (result, attached): (&ToolResult<'_>, &[&Block<'_>]),
        words: &[UserPart<'_>],
        system: &SystemPrompt<'_>,
        (waits, breakpoint): (bool, Option<Breakpoint>),
    ) -> Result<(), Error> {
        let in_parts = breakpoint.is_some() || !(attached.is_empty() || waits);
        let empty = match attached.first() {
            Some(Block::Image(_)) if waits => "[image attached below]",
            Some(_) if waits => "[document attached below]",
            None if !in_parts => self.profile.empty_tool_content.as_str(),
            _ => "",
        };
        if !in_parts {
            return json.string(|out| self.push_result(out, result, empty, words, system));
        }
        json.begin_array();
        let before = json.out().len();
        self.begin_text(json);
        let start = json.out().len();
        self.push_result(json.out(), result, empty, words, system)?;
        if json.out().len() > start {
            end_text(json, breakpoint);
        } else {
            json.out().truncate(before);
        }
        for block in attached.iter().filter(|_| !waits) {
            self.write_attachment(json, block, None)?;
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
pub(crate) fn end_text(json: &mut Writer<'_>, breakpoint: Option<Breakpoint>) {
    json.out().push(b'"');
    if let Some(breakpoint) = breakpoint {
        breakpoint.write(json);
    }
    json.end_object();
}

/// Writes the address of an image, which may be a `data:` URL.
pub(crate) fn write_image(json: &mut Writer<'_>, image: &Image<'_>) {
    match &image.source {
        ImageSource::Base64 { media_type, data } => write_data(json, *media_type, *data),
        ImageSource::Url(url) => {
            json.str(*url);
        }
        // Images by file id were already refused by `check_image`.
        ImageSource::File => {
            json.null();
        }
    }
}

/// Writes the members of a file: its name, and its bytes as a `data:` URL.
pub(crate) fn write_file(
    json: &mut Writer<'_>,
    title: Option<Str<'_>>,
    media_type: Str<'_>,
    data: Str<'_>,
) {
    let name = title.filter(|title| !title.is_blank());
    json.key("filename").str(name.unwrap_or(Str::plain("document.pdf")));
    write_data(json.key("file_data"), media_type, data);
}

/// Writes an image or a file as a `data:` URL.
fn write_data(json: &mut Writer<'_>, media_type: Str<'_>, data: Str<'_>) {
    json.string(|out| {
        out.extend_from_slice(b"data:");
        push(out, media_type);
        out.extend_from_slice(b";base64,");
        push(out, data);
    });
}
