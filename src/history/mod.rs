//! Conversation history as repaired turns, independent of the upstream's protocol.
//!
//! Messages become turns by passes in this order, each in a file of the same name. Before the first
//! pass, `spoilt_inputs` restores call inputs that clients lost, `hidden_images` extracts images
//! from the texts of results, and `clearing` marks the parts that the client asks to clear.
//!
//! 1. `read` converts each block. Unsupported blocks are refused (`refused`). Images get their true
//!    media types (`image_types`). Placeholder texts replace images and files that the model does
//!    not support (`omitted`). Thinking is sent back to the model that wrote the thinking
//!    (`thinking`), and calls of server tools become texts (`server_tools`). Citations of pages
//!    become the marks from which they were made (`cited_pages`). System messages in mid
//!    conversation move to a position that the upstream supports (`system`).
//! 2. `blanks` removes blank texts.
//! 3. `neighbours` joins adjacent turns of one side.
//! 4. `pairs` gives every call exactly one result, and sorts results in the order of their calls.
//!
//! After the guards have run, `clearing` clears the parts that it marked.
//!
//! For an upstream that speaks the Messages API only the last three passes run, on blocks that
//! stand for their JSON text. Before them, `body_images` replaces images in the body itself. The
//! writer of the upstream's request adds text that depends on the rest of the request: notes of
//! guards, calls written as text (`rebuild`), and a user's text for a missing beginning
//! (`beginning`).

pub(crate) mod attached;
pub(crate) mod beginning;
mod blanks;
pub(crate) mod body_images;
mod cited_pages;
pub(crate) mod clearing;
pub(crate) mod fetched;
pub(crate) mod hidden_images;
mod image_types;
mod neighbours;
pub(crate) mod omitted;
pub(crate) mod pairs;
mod read;
pub(crate) mod rebuild;
mod recipient;
mod refused;
pub(crate) mod server_tools;
pub(crate) mod spoilt_inputs;
mod system;
pub(crate) mod thinking;
mod tool_failure;
mod turns;

use crate::config::Pairing;
use crate::error::Error;
use crate::json::Str;
use crate::model::search::NumberedPages;
use crate::model::tool::ToolChange;
use crate::model::turn::{Turn, calls};
use crate::model::{Block, Message, Text};
use crate::observe::warning::Warnings;
use crate::profile::ToolSchema;
use crate::text::names::NameSet;
pub(crate) use recipient::Recipient;
pub(crate) use turns::Turns;

/// Conversation for an upstream: its turns, and the findings that concern the whole request.
#[derive(Debug, Default)]
pub(crate) struct History<'a> {
    pub(crate) turns: Vec<Turn<'a>>,
    /// System messages that are added to the system prompt.
    pub(crate) system: Vec<Text<'a>>,
    /// Tools added or removed in mid conversation, in order.
    pub(crate) changes: Vec<ToolChange<'a>>,
    /// Names of tools that a tool search found.
    pub(crate) activated: NameSet<'a>,
    /// Value of `effort` from the last system message that has one.
    pub(crate) effort: Option<Str<'a>>,
    /// True if some thinking in the history comes from the upstream's model.
    pub(crate) has_reasoning: bool,
    /// Ids of all tool calls.
    pub(crate) ids: NameSet<'static>,
    /// Pages that web searches of Creole found.
    pub(crate) pages: NumberedPages,
}

impl<'a> History<'a> {
    /// Converts messages into turns.
    ///
    /// # Errors
    /// A user's content would be lost.
    pub(crate) fn read(
        messages: Vec<Message<'a>>,
        recipient: Recipient<'_>,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        let (mut history, turns) = read::messages(messages, recipient, warnings)?;
        // Gemini requires a call directly after a user's text or after results.
        let is_gemini = recipient.profile.tool_schema == ToolSchema::Gemini;
        history.turns = joined(turns, recipient.profile.alternating_roles || is_gemini);
        Ok(history)
    }

    /// Adds the ids of the calls among the blocks of the assistant.
    fn add_ids(&mut self, blocks: &[Block<'_>]) {
        for call in calls(blocks) {
            self.ids.add(call.id.decode().into_owned());
        }
    }

    /// Gives every call exactly one result, if the configuration asks for that, and sorts results
    /// in the order of the calls.
    pub(crate) fn repair(&mut self, pairing: Pairing, warnings: &mut Warnings) {
        if pairing == Pairing::Repair {
            let before = warnings.count();
            self.turns = pairs::repair(std::mem::take(&mut self.turns), warnings);
            if warnings.count() > before {
                warnings.acted("pairing");
            }
        }
        pairs::order(&mut self.turns);
    }
}

/// Returns the turns without blank texts, with adjacent turns of one side joined. Without
/// `alternating` roles, a turn of the assistant with calls stays separate from a text before.
pub(crate) fn joined(turns: Turns<'_>, alternating: bool) -> Vec<Turn<'_>> {
    let mut turns = turns.finish();
    turns.iter_mut().for_each(blanks::drop_blanks);
    neighbours::join(turns, alternating)
}
