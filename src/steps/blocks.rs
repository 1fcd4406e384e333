//! Access to the content blocks of a request body, and functions that replace parts of the body.

pub(crate) use crate::history::body_images::{span, text_for};
use crate::json;
pub(crate) use crate::json::replaced;
use crate::model::request::last_answer;
use crate::model::{Block, DocumentSource, Request, Role};
use crate::observe::warning::Warnings;
use crate::text::words;

/// Returns true if a request body may contain `string`, a JSON string. The check is a fast text
/// search before the body is parsed; it also succeeds if the body has escapes that could hide the
/// string.
pub(crate) fn may_have(body: &str, string: &str) -> bool {
    words::has(body, string) || words::has(body, "\\u00")
}

/// Calls `visit` with each block of the user's messages in order, including blocks inside of tool
/// results and documents. `is_new`: true if the block came after the last answer. A body that
/// cannot be parsed has no blocks.
pub(crate) fn visit(body: &str, visit: &mut dyn FnMut(&Block<'_>, bool)) {
    // Warnings about the request's contents come from the later translation of the body.
    let Ok(request) = Request::read(body, &mut Warnings::new(false)) else { return };
    let last_answer = last_answer(&request.messages);
    for (at, message) in request.messages.iter().enumerate() {
        if message.role == Role::User {
            visit_all(&message.content, Some(at) > last_answer, visit);
        }
    }
}

fn visit_all(blocks: &[Block<'_>], is_new: bool, visit: &mut dyn FnMut(&Block<'_>, bool)) {
    for block in blocks {
        match block {
            Block::ToolResult(result) => visit_all(&result.content, false, visit),
            Block::Document(document) => {
                visit(block, is_new);
                if let DocumentSource::Content(inner) = &document.source {
                    visit_all(inner, is_new, visit);
                }
            }
            _ => visit(block, is_new),
        }
    }
}

/// Returns a block with its `source` replaced and its other members unchanged. If the block has
/// several members `source`, the last one is replaced.
pub(crate) fn with_source(block: &str, source: &str) -> Option<String> {
    let (_, old) = json::members(block).filter(|(name, _)| *name == "source").last()?;
    let begin = json::offset_in(block, old)?;
    let end = begin.saturating_add(old.len());
    Some([block.get(..begin)?, source, block.get(end..)?].concat())
}
