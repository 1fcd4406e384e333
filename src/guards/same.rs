//! Comparison of tool calls with each other, and of tool results with each other.
//!
//! A call is identified by a hash of its name and input, independent of white space, the order of
//! keys, and escapes. Numbers are compared as written. The id that n8n adds to each input is
//! ignored, or else no two calls would be equal. Comments of the model on its call, which it words
//! anew each time, are ignored, too: [`OF_CALLS`] and [`OF_COMMANDS`].

use super::claude_code::without_reminders;
use crate::json::{Error, Reader, Str, ValueKind};
use crate::model::{
    Block, DocumentBlock, DocumentSource, ImageSource, SearchResult, ToolResult, ToolUse,
};
use crate::text::hash::{self, bytes, mix, text};
use crate::text::words;

/// Words in the names of tools that run shell commands.
const SHELLS: [&str; 4] = ["bash", "command", "shell", "terminal"];

/// Input members in which a model comments on a call of any tool, as Cline, OpenHands and Factory
/// Droid request.
const OF_CALLS: [&str; 3] = ["task_progress", "security_risk", "riskLevelReason"];

/// Input members that mark a `summary` beside them as a comment on the call. For other tools, a
/// summary can be real data.
const RISKS: [&str; 2] = ["\"security_risk\"", "\"riskLevelReason\""];

/// Input members in which a model comments on a shell command (OpenHands, Factory Droid, VS Code).
const OF_COMMANDS: [&str; 3] = ["summary", "explanation", "goal"];

/// Facts about a call and its input that decide which members are comments.
#[derive(Clone, Copy)]
struct ComparedInput<'a> {
    /// Id of the tool call.
    id: Str<'a>,
    /// True if the call's tool runs shell commands.
    is_shell: bool,
    /// True if the call's tool runs shell commands and the call's input has a `command`.
    has_command: bool,
    /// True if the call's input has a member of [`RISKS`].
    has_risk: bool,
}

impl ComparedInput<'_> {
    /// Returns true if the input member `key` is only a comment on the call.
    fn only_describes_call(self, key: Str<'_>) -> bool {
        let is_one_of = |keys: &[&str]| keys.iter().any(|known| key == *known);
        is_one_of(&OF_CALLS)
            || self.is_shell && key == "description"
            || self.has_command && is_one_of(&OF_COMMANDS)
            || self.has_risk && key == "summary"
    }
}

/// Returns a hash of a call. A collision of two calls harms only the client itself.
pub(crate) fn of_call(call: &ToolUse<'_>) -> u64 {
    let mut reader = Reader::of(&call.input);
    let is_shell = words::has_any(&call.name.decode().to_ascii_lowercase(), &SHELLS);
    let has_command = is_shell && words::has(&call.input, "\"command\"");
    let has_risk = words::has_any(&call.input, &RISKS);
    let input = ComparedInput { id: call.id, is_shell, has_command, has_risk };
    let input = input_value(&mut reader, input);
    let input = input.unwrap_or_else(|_| bytes(5, call.input.as_bytes()));
    let toolset = call.toolset.map_or(0, text);
    mix(mix(text(call.name), toolset), input)
}

/// Tool call that is compared with many others; its hash is computed at most once.
pub(crate) struct KnownCall<'t, 'a> {
    call: &'t ToolUse<'a>,
    hash: Option<u64>,
}

impl<'t, 'a> KnownCall<'t, 'a> {
    pub(crate) fn of(call: &'t ToolUse<'a>) -> Self {
        Self { call, hash: None }
    }

    /// Returns true if `other` is the same call. Inputs with identical text are not parsed.
    pub(crate) fn is_same(&mut self, other: &ToolUse<'_>) -> bool {
        let call = self.call;
        call.name == other.name
            && call.toolset == other.toolset
            && (call.input == other.input
                || *self.hash.get_or_insert_with(|| of_call(call)) == of_call(other))
    }
}

/// Returns the hash of a call's input, without comments and without the call's id.
fn input_value(reader: &mut Reader<'_>, input: ComparedInput<'_>) -> Result<u64, Error> {
    if reader.kind()? != ValueKind::Object {
        return hash::value(reader);
    }
    reader.begin_object()?;
    let mut members = hash::MembersHash::default();
    while let Some(key) = reader.next_key()? {
        if input.only_describes_call(key) {
            reader.skip()?;
            continue;
        }
        let member = if key == "id" && reader.kind()? == ValueKind::String {
            let member = reader.string()?;
            if input.id == member {
                continue;
            }
            text(member)
        } else {
            hash::value(reader)?
        };
        members.add(key, member);
    }
    Ok(members.hash())
}

/// Content of a tool result, prepared for comparison with many others.
pub(crate) struct KnownResult<'t, 'a> {
    is_error: bool,
    parts: Vec<ResultPart<'t, 'a>>,
}

impl<'t, 'a> KnownResult<'t, 'a> {
    pub(crate) fn of(result: &'t ToolResult<'a>) -> Self {
        Self { is_error: result.is_error, parts: parts(&result.content).collect() }
    }

    /// Returns true if `result` has the same content.
    pub(crate) fn is_same(&self, result: &ToolResult<'_>) -> bool {
        let mut wanted = self.parts.iter();
        self.is_error == result.is_error
            && parts(&result.content).all(|parts| wanted.next().is_some_and(|it| parts.is_same(it)))
            && wanted.next().is_none()
    }
}

/// Part of a tool result: a text or another block.
enum ResultPart<'t, 'a> {
    Text(Str<'a>),
    Block(&'t Block<'a>),
}

impl ResultPart<'_, '_> {
    fn is_same(&self, other: &ResultPart<'_, '_>) -> bool {
        match (self, other) {
            (Self::Text(left), ResultPart::Text(right)) => same_text(*left, *right),
            (Self::Block(left), ResultPart::Block(right)) => same_block(left, right),
            _ => false,
        }
    }
}

/// Returns the parts of a tool result, without the reminders that the client adds.
fn parts<'t, 'a>(blocks: &'t [Block<'a>]) -> impl Iterator<Item = ResultPart<'t, 'a>> {
    blocks.iter().filter_map(|block| match block {
        Block::Text(text) => {
            let parts = without_reminders(text.text);
            (text.text.is_empty() || !parts.is_empty()).then_some(ResultPart::Text(parts))
        }
        _ => Some(ResultPart::Block(block)),
    })
}

fn same_blocks(left: &[Block<'_>], right: &[Block<'_>]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same_block(left, right))
}

fn same_block(left: &Block<'_>, right: &Block<'_>) -> bool {
    match (left, right) {
        (Block::Text(left), Block::Text(right)) => same_text(left.text, right.text),
        (Block::ToolReference(left), Block::ToolReference(right)) => left == right,
        (Block::Image(left), Block::Image(right)) => match (&left.source, &right.source) {
            (ImageSource::Base64 { data: left, .. }, ImageSource::Base64 { data: right, .. })
            | (ImageSource::Url(left), ImageSource::Url(right)) => left == right,
            _ => false,
        },
        (Block::Document(left), Block::Document(right)) => {
            left.title == right.title
                && left.context == right.context
                && same_source(&left.source, &right.source)
        }
        (Block::SearchResult(left), Block::SearchResult(right)) => {
            left.source == right.source
                && left.title == right.title
                && same_blocks(&left.content, &right.content)
        }
        (
            Block::BrowserState { tabs: left_tabs, changes: left },
            Block::BrowserState { tabs: right_tabs, changes: right },
        ) => left_tabs == right_tabs && left == right,
        _ => false,
    }
}

fn same_source(left: &DocumentSource<'_>, right: &DocumentSource<'_>) -> bool {
    match (left, right) {
        (DocumentSource::Base64 { data: left, .. }, DocumentSource::Base64 { data: right, .. }) => {
            left == right
        }
        (DocumentSource::Text(left), DocumentSource::Text(right)) => same_text(*left, *right),
        (DocumentSource::Content(left), DocumentSource::Content(right)) => same_blocks(left, right),
        _ => false,
    }
}

/// Returns a hash of a tool result, which is equal for equal results.
pub(crate) fn of_result(result: &ToolResult<'_>) -> u64 {
    let of = |parts| match parts {
        ResultPart::Text(parts) => text(parts),
        ResultPart::Block(block) => of_block(block),
    };
    let content = parts(&result.content).fold(6, |all, parts| mix(all, of(parts)));
    mix(u64::from(result.is_error), content)
}

fn of_blocks(blocks: &[Block<'_>]) -> u64 {
    blocks.iter().fold(6, |all, block| mix(all, of_block(block)))
}

fn of_block(block: &Block<'_>) -> u64 {
    let optional = |part: Option<Str<'_>>| part.map_or(0, text);
    match block {
        Block::Text(block) => text(block.text),
        Block::ToolReference(name) => mix(7, text(*name)),
        Block::Image(image) => match image.source {
            ImageSource::Base64 { data: inside, .. } | ImageSource::Url(inside) => {
                mix(8, text(inside))
            }
            ImageSource::File => 12,
        },
        Block::Document(document) => {
            let DocumentBlock { source, title, context, .. } = &**document;
            let source = match source {
                DocumentSource::Base64 { data: inside, .. } | DocumentSource::Text(inside) => {
                    text(*inside)
                }
                DocumentSource::Content(blocks) => of_blocks(blocks),
                DocumentSource::Url(_) | DocumentSource::File => 9,
            };
            mix(mix(source, optional(*title)), optional(*context))
        }
        Block::SearchResult(found) => {
            let SearchResult { source, title, content } = &**found;
            mix(mix(text(*source), text(*title)), of_blocks(content))
        }
        Block::BrowserState { tabs, changes } => {
            mix(bytes(10, tabs.as_bytes()), bytes(11, changes.as_bytes()))
        }
        _ => 12,
    }
}

/// Returns true if two texts are equal. Clients escape a text in the same way each time, so two
/// different texts differ at the first different byte, unless that byte is in an escape. The
/// shortcut saves time, because results are long and full of escapes.
fn same_text(left: Str<'_>, right: Str<'_>) -> bool {
    const STEP: usize = 32;
    let (one, other) = (left.raw().as_bytes(), right.raw().as_bytes());
    if one == other {
        return true;
    }
    let steps = one.chunks(STEP).zip(other.chunks(STEP)).take_while(|(left, right)| left == right);
    let start = steps.count().saturating_mul(STEP).min(one.len()).min(other.len());
    let rest = one.iter().zip(other).skip(start);
    let same = rest.take_while(|(left, right)| left == right).count();
    let at = start.saturating_add(same);
    (is_in_escape(one, at) || is_in_escape(other, at)) && left == right
}

/// Returns true if the byte at `at` may be part of an escape. Every backslash counts as the start
/// of an escape.
fn is_in_escape(text: &[u8], at: usize) -> bool {
    (0..6usize).any(|back| {
        let Some(start) = at.checked_sub(back) else { return false };
        let escape = text.get(start..).unwrap_or_default();
        match escape {
            [b'\\', b'u', ..] => true,
            [b'\\', ..] => back < 2,
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests;
