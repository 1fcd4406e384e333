//! The blocks of a body, and the body with others in their places.

use std::ops::Range;

use crate::history::body_images::write_text;
use crate::json::{self, Reader};
use crate::model::request::last_answer;
use crate::model::{Block, DocumentSource, Request, Role};
use crate::observe::warning::Warnings;
use crate::text::words;

/// Returns true if a body may have this string of JSON, as all clients write it, unless they escape
/// what needs no escape. It is looked for before the body is read.
pub(crate) fn may_have(body: &str, string: &str) -> bool {
    words::has(body, string) || words::has(body, "\\u00")
}

/// Shows `visit` the blocks of the user's messages, those inside of results and documents too, in
/// their order. `is_new`: the user has just given it. A body that cannot be read has none.
pub(crate) fn visit(body: &str, visit: &mut dyn FnMut(&Block<'_>, bool)) {
    // Whoever translates the body warns of what is in it.
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

/// Returns the range of the JSON value that begins at `at`.
pub(crate) fn span(body: &str, at: usize) -> Range<usize> {
    let value = body.get(at..).and_then(|rest| Reader::of(rest).skip().ok());
    let begin = value.and_then(|value| json::offset_in(body, value)).unwrap_or(at);
    begin..begin.saturating_add(value.map_or(0, str::len))
}

/// Returns a block with another `source`; the other members stay. Of members of one name, the last
/// one counts.
pub(crate) fn with_source(block: &str, source: &str) -> Option<String> {
    let (_, old) = json::members(block).filter(|(name, _)| *name == "source").last()?;
    let begin = json::offset_in(block, old)?;
    let end = begin.saturating_add(old.len());
    Some([block.get(..begin)?, source, block.get(end..)?].concat())
}

/// Writes a text block in place of a block; a mark up to which the client wants the prompt cached
/// stays.
pub(crate) fn text_for(block: &str, text: &str) -> String {
    let mark = json::member(block, "cache_control");
    json::written(|json| {
        write_text(json, mark, |json| {
            json.text(text);
        });
    })
}

/// Returns the body with these texts in place of what is there, in their order.
pub(crate) fn replaced(body: &str, edits: &[(Range<usize>, String)]) -> Vec<u8> {
    let added = edits.iter().fold(0_usize, |sum, (_, text)| sum.saturating_add(text.len()));
    let mut out = Vec::with_capacity(body.len().saturating_add(added));
    let mut from = 0_usize;
    for (span, text) in edits {
        // What is in something that is replaced goes with it.
        let Some(between) = body.get(from..span.start) else { continue };
        out.extend_from_slice(between.as_bytes());
        out.extend_from_slice(text.as_bytes());
        from = span.end;
    }
    out.extend_from_slice(body.get(from..).unwrap_or_default().as_bytes());
    out
}
