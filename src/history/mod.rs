//! The history as turns, repaired: what every protocol means by it, before any one's form.
//!
//! Messages become turns by passes in this order, each in a file named for it. Before the first,
//! `spoilt_inputs` brings back inputs of calls that clients lost, `hidden_images` takes images out
//! of the texts of results, and `clearing` marks what the client asks to have cleared.
//!
//! 1. `read` looks at each block. Blocks that cannot be taken are refused (`refused`). Images get
//!    their true types (`image_types`). Words stand in place of images and files that the model
//!    does not take (`omitted`). Thinking goes back to the model that thought (`thinking`), and
//!    calls of tools that ran at the server become texts (`server_tools`). System messages in the
//!    middle go where the upstream takes them (`system`).
//! 2. `blanks`: texts that say nothing leave.
//! 3. `neighbours`: neighbours of one side become one turn.
//! 4. `pairs`: every call gets its one result, and results stand in the order of their calls.
//!
//! When guards have seen all of it, `clearing` clears what it has marked.
//!
//! For an upstream of Messages only the last three run, over what the relay has read, and
//! `body_images` does the work of `hidden_images` on the text of the request. Who writes the turns
//! adds what depends on the rest of the request: notes of guards, calls in words (`rebuild`), and
//! the words before a conversation without a beginning (`beginning`).

pub(crate) mod attached;
pub(crate) mod beginning;
mod blanks;
pub(crate) mod body_images;
pub(crate) mod clearing;
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
mod turns;

use crate::config::Pairing;
use crate::error::Error;
use crate::json::Str;
use crate::model::tool::ToolChange;
use crate::model::turn::Turn;
use crate::model::{Message, Text};
use crate::observe::warning::Warnings;
use crate::profile::ToolSchema;
use crate::text::names::NameSet;
pub(crate) use recipient::Recipient;
pub(crate) use turns::Turns;

/// A conversation as an upstream may get it: its turns, and beside them the things that act on the
/// whole request.
#[derive(Debug, Default)]
pub(crate) struct History<'a> {
    pub(crate) turns: Vec<Turn<'a>>,
    /// System messages that belong to the system prompt.
    pub(crate) system: Vec<Text<'a>>,
    /// Additions and removals of tools, in order.
    pub(crate) changes: Vec<ToolChange<'a>>,
    /// Tools that a search found.
    pub(crate) activated: NameSet<'a>,
    /// The effort that the last system message with one asks for.
    pub(crate) effort: Option<Str<'a>>,
    /// True if some of the thinking is of the upstream's model.
    pub(crate) has_reasoning: bool,
    /// The ids of all calls.
    pub(crate) ids: NameSet<'static>,
}

impl<'a> History<'a> {
    /// Reads messages into turns.
    ///
    /// # Errors
    /// Something of the user's would be lost.
    pub(crate) fn read(
        messages: Vec<Message<'a>>,
        recipient: Recipient<'_>,
        warnings: &mut Warnings,
    ) -> Result<Self, Error> {
        let (mut history, turns) = read::messages(messages, recipient, warnings)?;
        // Gemini has a call directly after the user's words or after results.
        let is_gemini = recipient.profile.tool_schema == ToolSchema::Gemini;
        history.turns = joined(turns, recipient.profile.alternating_roles || is_gemini);
        Ok(history)
    }

    /// Gives every call its one result, where that is wanted, and puts results into the order of
    /// the calls.
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

/// The turns without texts that say nothing, in which neighbours are joined: all, where roles are
/// `alternating`.
pub(crate) fn joined(turns: Turns<'_>, alternating: bool) -> Vec<Turn<'_>> {
    let mut turns = turns.finish();
    turns.iter_mut().for_each(blanks::drop_blanks);
    neighbours::join(turns, alternating)
}
