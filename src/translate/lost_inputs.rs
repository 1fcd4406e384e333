//! Inputs of calls that a client has lost. n8n 2.41 writes a turn with a thinking block anew, each of its
//! calls with `{}` for an input. The model would then see itself call its tools with nothing, and imitate it.
//! The signature of a thinking block that the client did not ask for has the inputs.

use super::signature::Signature;
use crate::anthropic::{Block, Request, Role};
use crate::json::Raw;

/// An input, and the message and the block that it belongs to.
pub(super) struct Lost {
    message: usize,
    block: usize,
    input: String,
}

/// The inputs that a request's messages lack and have in a signature beside them.
pub(super) fn find(request: &Request<'_>) -> Vec<Lost> {
    let mut lost = Vec::new();
    for (message, found) in request.messages.iter().enumerate() {
        let blocks = &found.content;
        if found.role != Role::Assistant || !blocks.iter().any(lacks_input) {
            continue;
        }
        let known: Vec<(String, String)> = blocks.iter().flat_map(inputs).collect();
        for (block, call) in blocks.iter().enumerate().filter(|(_, block)| lacks_input(block)) {
            let Block::ToolUse(call) = call else { continue };
            let input = known.iter().find(|(id, _)| call.id == id.as_str());
            if let Some((_, input)) = input {
                lost.push(Lost { message, block, input: input.clone() });
            }
        }
    }
    lost
}

impl Lost {
    /// Puts it where it belongs.
    pub(super) fn put_back<'a>(&'a self, request: &mut Request<'a>) {
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

fn inputs(block: &Block<'_>) -> Vec<(String, String)> {
    let Block::Thinking { signature, .. } = block else { return Vec::new() };
    let signature = Signature::decode(&signature.decode());
    signature.map_or_else(Vec::new, |signature| signature.call_inputs)
}
