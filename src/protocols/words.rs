//! Text form of content blocks and parts of turns.
//!
//! Texts are written as the inside of a JSON string, copied from the client's escaped text.

mod browser;
mod parts;

use crate::error::Error;
use crate::guards::person::is_of_client;
use crate::history::omitted::IMAGE_OMITTED;
use crate::history::{server_tools as server_history, spoilt_inputs};
use crate::json::{self, Reader, Str, Writer, escape, escape_compact};
use crate::model::turn::{MOVED, UserPart};
use crate::model::{
    Block, DocumentBlock, DocumentSource, Image, ImageSource, Text, ToolResult, ToolUse, path_at,
};
use crate::observe::warning::Warnings;
use crate::profile::{ImageParts, MidSystem, Profile, TextAfterToolResults};
use crate::text::words;
use browser::push_browser_state;
pub(crate) use parts::{PartForms, end_text, write_file, write_image};

/// Writer that turns the parts of a request into text, by the upstream's profile and the protocol's
/// format of parts.
#[derive(Clone, Copy)]
pub(crate) struct Words<'p, 'a> {
    pub(crate) profile: &'p Profile,
    /// Body of the client's request, for the paths in errors.
    pub(crate) body: &'a str,
    /// Format in which the upstream's protocol writes content parts.
    pub(crate) parts: &'static PartForms,
}

/// Appends a text as the inside of a JSON string, keeping the client's escapes.
pub(crate) fn push(out: &mut Vec<u8>, text: Str<'_>) {
    out.extend_from_slice(text.raw().as_bytes());
}

/// Appends an attribute of a tag, with the text `value` as the attribute's value.
fn push_attribute(out: &mut Vec<u8>, name: &str, value: Str<'_>) {
    escape(out, &format!(" {name}=\""));
    // A quote in the value can be escaped as `\u0022`, as .NET and Symfony do.
    if value.is_escaped() {
        escape(out, &value.decode().replace('"', "&quot;"));
    } else {
        push(out, value);
    }
    escape(out, "\"");
}

impl Words<'_, '_> {
    /// Returns true if [`Words::push_text`] can write the whole content block as text.
    pub(crate) fn is_block_text(&self, block: &Block<'_>) -> bool {
        match block {
            Block::Image(_) => self.profile.image_parts == ImageParts::None,
            Block::Document(document) => match &document.source {
                DocumentSource::Content(blocks) => {
                    blocks.iter().all(|block| self.is_block_text(block))
                }
                DocumentSource::Base64 { .. } => false,
                DocumentSource::Url(_) => !self.takes_file_urls(),
                DocumentSource::Text(_) | DocumentSource::File => true,
            },
            _ => true,
        }
    }

    fn takes_file_urls(&self) -> bool {
        self.parts.file_urls && self.profile.file_parts
    }

    /// Returns the images and files among `blocks`, including those inside documents.
    pub(crate) fn attachments<'b, 'c>(&self, blocks: &'b [Block<'c>]) -> Vec<&'b Block<'c>> {
        let mut found = Vec::new();
        self.collect_attachments(blocks, &mut found);
        found
    }

    fn collect_attachments<'b, 'c>(&self, blocks: &'b [Block<'c>], found: &mut Vec<&'b Block<'c>>) {
        for block in blocks.iter().filter(|block| !self.is_block_text(block)) {
            match block {
                Block::Document(document) => match &document.source {
                    DocumentSource::Content(inner) => self.collect_attachments(inner, found),
                    _ => found.push(block),
                },
                _ => found.push(block),
            }
        }
    }

    /// Appends a content block in text form, as the inside of a JSON string. Images and files are
    /// written by the protocol instead.
    pub(crate) fn push_text(&self, out: &mut Vec<u8>, block: &Block<'_>) -> Result<(), Error> {
        match block {
            Block::Text(text) => push(out, text.text),
            Block::Image(image) => {
                self.check_image(image)?;
                if self.profile.image_parts == ImageParts::None {
                    escape(out, IMAGE_OMITTED);
                }
            }
            Block::Document(document) => {
                self.check_document(document)?;
                if !self.is_block_text(block)
                    && !matches!(document.source, DocumentSource::Content(_))
                {
                    return Ok(());
                }
                push_document_start(out, document);
                match &document.source {
                    DocumentSource::Text(text) => push(out, *text),
                    DocumentSource::Content(blocks) => self.push_lines(out, blocks)?,
                    _ => {}
                }
                escape(out, DOCUMENT_END);
            }
            Block::SearchResult(result) => {
                escape(out, "<search_result");
                push_attribute(out, "title", result.title);
                push_attribute(out, "source", result.source);
                escape(out, ">");
                self.push_lines(out, &result.content)?;
                escape(out, "</search_result>");
            }
            Block::ToolReference(name) => {
                escape(out, "Tool loaded: ");
                push(out, *name);
            }
            Block::BrowserState { tabs, changes } => push_browser_state(out, tabs, changes),
            Block::ServerToolResult(result) => server_history::push_output(out, result),
            _ => {}
        }
        Ok(())
    }

    /// Appends the text of several content blocks, separated by line ends.
    pub(crate) fn push_lines(&self, out: &mut Vec<u8>, blocks: &[Block<'_>]) -> Result<(), Error> {
        let start = out.len();
        for block in blocks {
            let before = out.len();
            if before > start {
                escape(out, "\n");
            }
            let from = out.len();
            self.push_text(out, block)?;
            if out.len() == from {
                out.truncate(before);
            }
        }
        Ok(())
    }

    /// Checks that the upstream accepts an image.
    ///
    /// # Errors
    /// The upstream does not accept the image's source.
    pub(crate) fn check_image(&self, image: &Image<'_>) -> Result<(), Error> {
        match &image.source {
            ImageSource::File => Err(self.no_source(image.at, "the source type file")),
            source if source.is_remote() && self.profile.image_parts == ImageParts::Data => {
                Err(Error::invalid(format!(
                    "{}: image URLs are not supported by this model; send the image as base64",
                    self.source_of(image.at)
                )))
            }
            ImageSource::Url(_) | ImageSource::Base64 { .. } => Ok(()),
        }
    }

    /// Checks that the upstream accepts a document.
    ///
    /// # Errors
    /// The upstream does not accept the document's source or type.
    pub(crate) fn check_document(&self, document: &DocumentBlock<'_>) -> Result<(), Error> {
        match &document.source {
            DocumentSource::Url(_) if self.takes_file_urls() => Ok(()),
            DocumentSource::Url(_) => Err(self.no_source(document.at, "the source type url")),
            DocumentSource::File => Err(self.no_source(document.at, "the source type file")),
            DocumentSource::Base64 { media_type, .. } if *media_type != "application/pdf" => {
                Err(Error::invalid(format!(
                    "{}.media_type: Input should be 'application/pdf'",
                    self.source_of(document.at)
                )))
            }
            DocumentSource::Base64 { .. } if !self.profile.file_parts => {
                Err(Error::invalid(format!(
                    "{}: as configured, this model does not support PDF input",
                    self.source_of(document.at)
                )))
            }
            _ => Ok(()),
        }
    }

    fn no_source(&self, at: usize, kind: &str) -> Error {
        Error::unsupported_kind(&self.source_of(at), kind)
    }

    fn source_of(&self, at: usize) -> String {
        format!("{}.source", path_at(self.body, at))
    }
}

impl<'a> Words<'_, 'a> {
    /// Appends the texts of all parts of a user's turn, separated by empty lines.
    pub(crate) fn push_items(
        &self,
        out: &mut Vec<u8>,
        items: &[UserPart<'a>],
        system: &SystemPrompt<'_>,
    ) -> Result<(), Error> {
        items.iter().enumerate().try_for_each(|(at, item)| {
            if at > 0 {
                escape(out, "\n\n");
            }
            self.push_item(out, item, system)
        })
    }

    /// Returns true if the texts of a user's turn with tool results are merged into the last
    /// result.
    pub(crate) fn joins_result(&self, items: &[UserPart<'a>]) -> bool {
        // System messages are parts of a user's turn only if the upstream accepts no system message
        // in the middle of the conversation.
        let in_place = self.profile.mid_system != MidSystem::AsUser;
        let is_told = |item: &UserPart<'_>| {
            is_of_client(item) && (matches!(item, UserPart::System(_)) || !in_place)
        };
        self.merges() || items.iter().all(is_told)
    }

    /// Returns true if the profile merges texts after tool results into the last result.
    pub(crate) fn merges(&self) -> bool {
        self.profile.text_after_tool_results == TextAfterToolResults::MergeIntoLastTool
    }

    /// Returns true if the whole part of a user's turn can be written as text.
    pub(crate) fn is_text(&self, item: &UserPart<'_>) -> bool {
        match item {
            UserPart::Block(block) => self.is_block_text(block),
            UserPart::Orphan(result) => self.is_all_text(result),
            UserPart::Done(done) => self.is_all_text(&done.1),
            UserPart::System(_)
            | UserPart::Summary(_)
            | UserPart::SystemPrompt
            | UserPart::Moved => true,
        }
    }

    fn is_all_text(&self, result: &ToolResult<'_>) -> bool {
        result.content.iter().all(|block| self.is_block_text(block))
    }

    /// Appends the text of one part of a user's turn, escaped as the inside of a JSON string.
    pub(crate) fn push_item(
        &self,
        out: &mut Vec<u8>,
        item: &UserPart<'_>,
        system: &SystemPrompt<'_>,
    ) -> Result<(), Error> {
        match item {
            UserPart::Block(block) => self.push_text(out, block)?,
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
                self.push_lines(out, &result.content)?;
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
                self.push_lines(out, &result.content)?;
                escape(out, "]");
            }
            UserPart::SystemPrompt => push_system(out, system),
            UserPart::Moved => escape(out, MOVED),
        }
        Ok(())
    }

    /// Appends a content block of an assistant message in text form.
    ///
    /// # Errors
    /// The block is a base64 document, which an assistant message cannot contain.
    pub(crate) fn push_said(&self, out: &mut Vec<u8>, block: &Block<'_>) -> Result<(), Error> {
        match block {
            Block::ServerToolUse(call) => {
                server_history::push_call(out, call.name, call.input);
            }
            Block::ServerToolResult(result) => {
                if result.is_error {
                    escape(out, "Error: ");
                }
                server_history::push_result(out, result.content);
            }
            Block::Text(text) => {
                push(out, text.text);
                let marks = text.citations.iter().flat_map(|citations| &citations.marks);
                for (at, number) in marks.enumerate() {
                    escape(out, if at == 0 { " [[" } else { "[[" });
                    json::push_u64(out, u64::from(*number));
                    escape(out, "]]");
                }
            }
            block => {
                if let Block::Document(document) = block
                    && let DocumentSource::Base64 { .. } = document.source
                {
                    let path = format!("{}.source", path_at(self.body, document.at));
                    return Err(Error::unsupported_kind(&path, "the source type base64"));
                }
                self.push_text(out, block)?;
            }
        }
        Ok(())
    }

    /// Writes the arguments of a tool call as a JSON string. `schema`: the schema of the tool.
    ///
    /// # Errors
    /// The arguments are not an object, and strict mode is on.
    pub(crate) fn write_arguments(
        &self,
        call: &ToolUse<'_>,
        schema: Option<&str>,
        warnings: &mut Warnings,
        json: &mut Writer<'_>,
    ) -> Result<(), Error> {
        if call.input.starts_with('{') {
            let stripped = spoilt_inputs::without_echoed_id(&call.input, call.id, schema);
            json.string(|out| match stripped {
                Some(input) => escape_compact(out, &input),
                None => call.input.escape_compact(out),
            });
        } else {
            self.check_input(call, warnings)?;
            let inside = spoilt_inputs::unwrapped(&call.input);
            json.string(|out| escape_compact(out, inside.as_deref().unwrap_or("{}")));
        }
        Ok(())
    }

    fn check_input(&self, call: &ToolUse<'_>, warnings: &mut Warnings) -> Result<(), Error> {
        if warnings.strict() {
            let found = Reader::of(&call.input).kind()?;
            return Err(Error::invalid(format!(
                "{}.input: expected an object, but found {}",
                path_at(self.body, call.at),
                found.name()
            )));
        }
        warnings.add("tool_input_not_object");
        Ok(())
    }
}

/// System prompt of a request.
#[derive(Debug, Default)]
pub(crate) struct SystemPrompt<'a> {
    pub(crate) texts: Vec<Text<'a>>,
    /// JSON schema of the answer, if the upstream has no parameter for schemas and the prompt must
    /// contain the schema.
    pub(crate) schema: Option<&'a str>,
}

impl SystemPrompt<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.schema.is_none()
    }
}

/// Text after the content of a document in a prompt.
const DOCUMENT_END: &str = "\n</document>";

/// Appends the start of a document: its tag, title and context.
fn push_document_start(out: &mut Vec<u8>, document: &DocumentBlock<'_>) {
    escape(out, "<document");
    if let Some(title) = document.title.filter(|title| !title.is_empty()) {
        push_attribute(out, "title", title);
    }
    escape(out, ">\n");
    if let Some(context) = document.context.filter(|context| !context.is_empty()) {
        push(out, context);
        escape(out, "\n");
    }
}

/// Appends texts, separated by empty lines.
pub(crate) fn push_joined<'t>(out: &mut Vec<u8>, texts: impl IntoIterator<Item = Str<'t>>) {
    for (at, text) in texts.into_iter().enumerate() {
        if at > 0 {
            escape(out, "\n\n");
        }
        push(out, text);
    }
}

/// Appends the system prompt to a text, with the JSON schema of the answer if needed.
pub(crate) fn push_system(out: &mut Vec<u8>, system: &SystemPrompt<'_>) {
    let start = out.len();
    push_joined(out, system.texts.iter().map(|text| text.text));
    if let Some(schema) = system.schema {
        if out.len() > start {
            escape(out, "\n\n");
        }
        escape(
            out,
            "Answer with one JSON object that matches this JSON Schema, and nothing else:\n",
        );
        escape_compact(out, schema);
    }
}

/// Appends "Error: " for a failed tool, unless the result already begins with "error".
fn push_failure(out: &mut Vec<u8>, result: &ToolResult<'_>) {
    if result.is_error && !says_error(&result.content) {
        escape(out, "Error: ");
    }
}

/// Returns true if the content of a tool result begins with the word "error", in upper or lower
/// case.
fn says_error(content: &[Block<'_>]) -> bool {
    let is_empty = |block: &&Block<'_>| matches!(block, Block::Text(it) if it.text.is_empty());
    let Some(Block::Text(text)) = content.iter().find(|it| !is_empty(it)) else { return false };
    words::begins(text.text.raw(), "error")
}
