//! Output of a call: the texts that the model and the client get.

use super::era::McpFailure;
use crate::json::{self, Str};
use crate::model::mcp::McpOutput;
use crate::observe::warning::Warnings;
use crate::text::words;

/// Maximum number of bytes of all texts of an output.
const TEXT_BYTES_MAX: usize = 262_144;

/// Maximum number of texts of an output.
const TEXTS_MAX: usize = 256;

/// Maximum length of a media type that an output names, in bytes.
const WORD_BYTES_MAX: usize = 100;

/// Note at the end of an output that was cut.
const CUT: &str = "[… cut …]";

impl McpOutput {
    /// Returns the output of a call that got no result from the server named `server`.
    pub(crate) fn failed(server: &str, failure: &McpFailure) -> Self {
        let what = match failure {
            McpFailure::Rpc(error) => {
                return Self::error(format!("MCP error {}: {}", error.code, error.message));
            }
            McpFailure::Credentials => "refused the credentials",
            McpFailure::TimedOut => "did not answer in time",
            McpFailure::TooLarge => "gave an answer that is too large",
            McpFailure::OldTransport => {
                "takes no Streamable HTTP at its address (the transport HTTP+SSE is not supported)"
            }
            McpFailure::Status(_) | McpFailure::Unreachable | McpFailure::NotMcp => {
                "could not be reached"
            }
        };
        Self::error(format!("The MCP server {server} {what}."))
    }

    /// Reads the result of a call.
    pub(super) fn read(result: &str, warnings: &mut Warnings) -> Self {
        let (mut content, mut structured, mut is_error) = ("", "", false);
        for (key, value) in json::members(result) {
            match key.decode().as_ref() {
                "content" => content = value,
                "structuredContent" if value != "null" => structured = value,
                "isError" => is_error = value == "true",
                "resultType" if value == "\"input_required\"" => {
                    return Self::error("The tool asks for input, which cannot be given here.");
                }
                _ => {}
            }
        }
        let mut output = Self { texts: Vec::new(), is_error };
        let mut room = TEXT_BYTES_MAX;
        for block in json::elements(content) {
            let Some(text) = text_of(block, warnings) else { continue };
            if !output.push(&text, &mut room) {
                break;
            }
        }
        if output.texts.is_empty() && !structured.is_empty() {
            output.push(structured, &mut room);
        }
        if output.texts.is_empty() {
            output.texts.push("(no output)".to_owned());
        }
        output
    }

    /// Adds a text. Returns false if the text had to be cut, or if there are too many.
    fn push(&mut self, text: &str, room: &mut usize) -> bool {
        if self.texts.len() >= TEXTS_MAX || text.len() > *room {
            let kept = words::beginning(text, *room);
            self.texts.push([kept, CUT].concat());
            return false;
        }
        *room = room.saturating_sub(text.len());
        self.texts.push(text.to_owned());
        true
    }

    /// Returns the output as one text.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.texts.join("\n")
    }
}

/// Returns the text of a block of content; `None` if the block has none, and of an unknown type.
fn text_of(block: &str, warnings: &mut Warnings) -> Option<String> {
    let text = |object, name| {
        let text = json::member(object, name).and_then(json::string);
        text.as_ref().map(Str::decode)
    };
    let kind = text(block, "type").unwrap_or_default();
    match kind.as_ref() {
        "text" => Some(text(block, "text")?.into_owned()),
        "resource_link" => {
            let (name, uri) = (text(block, "name").unwrap_or_default(), text(block, "uri")?);
            Some(format!("{name} {uri}"))
        }
        "resource" => {
            let resource = json::member(block, "resource")?;
            if let Some(contents) = text(resource, "text") {
                let uri = text(resource, "uri").unwrap_or_default();
                return Some(format!("[{uri}]\n{contents}"));
            }
            Some(left_out(&kind, resource, "blob", warnings))
        }
        "image" | "audio" => Some(left_out(&kind, block, "data", warnings)),
        other => {
            warnings.add_named("mcp_content_dropped", other);
            None
        }
    }
}

/// Returns the text in the place of data that is left out.
fn left_out(kind: &str, object: &str, data: &str, warnings: &mut Warnings) -> String {
    warnings.add_named("mcp_content_dropped", kind);
    let mime = json::member(object, "mimeType").and_then(json::string);
    let mime = mime.as_ref().map(Str::decode).unwrap_or_default();
    let mime = words::beginning(&mime, WORD_BYTES_MAX);
    let digits = json::member(object, data).and_then(json::string).unwrap_or_default();
    let digits = digits.raw().trim_end_matches('=').len();
    let bytes = digits.saturating_mul(3) / 4;
    format!("[{kind}, {mime}, {bytes} bytes: left out]")
}
