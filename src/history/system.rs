//! Placement of system messages in mid conversation at a position that the upstream supports.

use super::read::HistoryReading;
use super::refused::{NotTaken, SYSTEM_TAGS};
use crate::error::Error;
use crate::model::turn::UserPart;
use crate::model::{Block, Message};
use crate::profile::{MidSystem, SystemRole};

impl<'a> HistoryReading<'_, '_, 'a> {
    /// Reads a system message. A message that `is_over` is left out.
    pub(super) fn system(
        &mut self,
        at: usize,
        message: Message<'a>,
        is_over: bool,
    ) -> Result<(), Error> {
        self.thought.end();
        self.history.effort = message.effort.or(self.history.effort);
        let mut texts = Vec::new();
        for (number, block) in message.content.into_iter().enumerate() {
            match block {
                Block::Text(text) => texts.push(text),
                Block::ToolChange(change) => self.history.changes.push(*change),
                Block::Unknown(tag) if self.warnings.strict() => {
                    return Err(NotTaken::tag(tag, SYSTEM_TAGS).at(at, number, false));
                }
                // Anthropic adds block types for system messages, and the client repeats its
                // history with each request.
                Block::Unknown(tag) => self.warnings.add_named("unknown_block", &tag.decode()),
                _ => {
                    return Err(Error::invalid(format!(
                        "messages.{at}.content.{number}: only `text` blocks, `tool_addition` and \
                         `tool_removal` can be in `system` messages"
                    )));
                }
            }
        }
        texts.retain(|text| !text.text.is_blank());
        if is_over || texts.is_empty() {
            return Ok(());
        }
        // A system message before all others is the system prompt, whatever the client calls it.
        if !self.begun || self.recipient.profile.mid_system == MidSystem::MergeToTop {
            if self.answered {
                // The previous request began without this system message, so the prompt cache does
                // not match.
                self.warnings.add("system_moved_to_top");
            }
            self.history.system.extend(texts);
            return Ok(());
        }
        let texts = texts.into_iter().map(|text| text.text).collect();
        // A model without a system role has none in mid conversation either.
        let in_place = self.recipient.profile.mid_system == MidSystem::InPlace
            && self.recipient.profile.system_role != SystemRole::User;
        if in_place {
            self.turns.system(texts);
        } else {
            self.turns.item(UserPart::System(texts));
        }
        Ok(())
    }
}
