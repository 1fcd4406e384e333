//! Repair of inputs of earlier calls that a client has changed. The model would see wrong inputs as
//! its own, and imitate them.
//!
//! - n8n 2.41 writes a turn with a thinking block anew, each of its calls with `{}` for an input.
//!   The signature of a thinking block that the client did not ask for has the inputs.
//! - n8n writes the id of a call into the input that it sends back:
//!   `{"query": "x", "id": "toolu_…"}`.
//! - Some clients keep inputs as texts.

use crate::carry::signature::Signature;
use crate::json::{self, Raw, Reader, Str};
use crate::json_schema::input as tool_schema;
use crate::model::{Block, Request, Role};
use crate::text::names::Names;
use crate::text::words;

/// Lost input of a call, with the indexes of its message and its block.
pub(crate) struct Lost {
    message: usize,
    block: usize,
    input: String,
}

/// Finds calls whose input is missing, and takes their inputs from signatures in the same message.
pub(crate) fn find_lost(request: &Request<'_>) -> Vec<Lost> {
    let mut lost = Vec::new();
    for (message, found) in request.messages.iter().enumerate() {
        let blocks = &found.content;
        if found.role != Role::Assistant || !blocks.iter().any(lacks_input) {
            continue;
        }
        let mut known = Names::default();
        blocks.iter().for_each(|block| add_inputs(block, &mut known));
        for (block, call) in blocks.iter().enumerate().filter(|(_, block)| lacks_input(block)) {
            let Block::ToolUse(call) = call else { continue };
            // An input is used once, so that a request cannot multiply its size.
            let input = known.get_mut(&call.id.decode()).map(std::mem::take).unwrap_or_default();
            // The client could have written any text into the signature.
            if Reader::of(&input).is_object() {
                lost.push(Lost { message, block, input });
            }
        }
    }
    lost
}

impl Lost {
    /// Puts the lost input back into its call.
    pub(crate) fn put_back<'a>(&'a self, request: &mut Request<'a>) {
        let message = request.messages.get_mut(self.message);
        let block = message.and_then(|message| message.content.get_mut(self.block));
        if let Some(Block::ToolUse(call)) = block {
            call.input = Raw::of(&self.input);
        }
    }
}

fn lacks_input(block: &Block<'_>) -> bool {
    matches!(block, Block::ToolUse(call) if call.input.starts_with('{') && call.input.compact_len() == 2)
}

fn add_inputs(block: &Block<'_>, known: &mut Names<'static, String>) {
    let (Block::Thinking { signature, .. } | Block::RedactedThinking(signature)) = block else {
        return;
    };
    let Some(signature) = Signature::decode(&signature.decode()) else { return };
    for (id, input) in signature.call_inputs {
        known.insert(id, input);
    }
}

/// Returns the object inside of a JSON string, because some clients store inputs as strings.
pub(crate) fn unwrapped(input: &str) -> Option<String> {
    let inside = json::string(input)?.decode();
    Reader::of(&inside).is_object().then(|| inside.trim().to_owned())
}

/// Returns a call's input without a member `id` that equals the id of the call; `None` if the input
/// has no such member. The input of a tool that is not offered stays, because its schema is
/// unknown.
pub(crate) fn without_echoed_id(input: &str, id: Str<'_>, schema: Option<&str>) -> Option<String> {
    if !words::has(input, "\"id\"") {
        return None;
    }
    tool_schema::without_id(input, Some(schema?), &|value| value == id)
}

#[cfg(test)]
mod tests;
