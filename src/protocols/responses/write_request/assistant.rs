//! Writes the assistant's turns: reasoning, texts and calls, each as an item in the original order.

use super::input::{InputWriter, begin_message};
use super::reasoning::{placed_items, write_item};
use crate::error::Error;
use crate::json::{Writer, escape};
use crate::model::{Block, ToolUse};
use crate::profile::StoreField;

impl<'a> InputWriter<'_, 'a> {
    /// Writes a turn of the assistant. `calls_follow`: the next turn is also the assistant's and
    /// has tool calls.
    pub(super) fn assistant(
        &mut self,
        blocks: &[Block<'a>],
        calls_follow: bool,
        json: &mut Writer<'_>,
    ) -> Result<(), Error> {
        self.ids.begin_message();
        let last_call = blocks.iter().rposition(|block| matches!(block, Block::ToolUse(_)));
        let mut thoughts = placed_items(blocks).into_iter().peekable();
        let mut rest = blocks;
        while let [block, behind @ ..] = rest {
            let at = blocks.len().saturating_sub(rest.len());
            while let Some((_, item)) = thoughts.next_if(|(place, _)| *place <= at) {
                self.thoughts.push(item);
            }
            rest = behind;
            match block {
                Block::Thinking { .. } | Block::Note => {}
                Block::ToolUse(call) => self.call(call, json)?,
                block => {
                    // Consecutive actions of the server's own tools are described in one message; a
                    // text of the model gets a message of its own.
                    let told = match block {
                        Block::Text(_) => cut_texts(block, rest),
                        _ => rest.iter().take_while(|next| is_told(next)).count(),
                    };
                    let (said, behind) = rest.split_at_checked(told).unwrap_or_default();
                    rest = behind;
                    let at = blocks.len().saturating_sub(rest.len());
                    let before_call = calls_follow || last_call.is_some_and(|last| last >= at);
                    self.words_of(block, said, before_call, json)?;
                }
            }
        }
        Ok(())
    }

    /// Writes one message with the texts of several blocks. Texts that Creole cut at citations are
    /// joined without a gap; other blocks begin a line.
    ///
    /// The content is a string, because all servers accept a string without an `id` of the message.
    fn words_of(
        &mut self,
        first: &Block<'a>,
        others: &[Block<'a>],
        before_call: bool,
        json: &mut Writer<'_>,
    ) -> Result<(), Error> {
        let (start, reasoning_bytes) = (json.out().len(), self.reasoning_bytes);
        self.write_thoughts(json);
        begin_message(json, "assistant").value().out().push(b'"');
        let from = json.out().len();
        self.words.push_said(json.out(), first)?;
        for block in others {
            let before = json.out().len();
            if before > from && !matches!(block, Block::Text(_)) {
                escape(json.out(), "\n");
            }
            let said = json.out().len();
            self.words.push_said(json.out(), block)?;
            if json.out().len() == said {
                json.out().truncate(before);
            }
        }
        if json.out().len() == from {
            // The message is empty and is not sent. The reasoning is written before the next item.
            json.out().truncate(start);
            self.reasoning_bytes = reasoning_bytes;
            return Ok(());
        }
        self.thoughts.clear();
        json.out().push(b'"');
        if self.profile().message_phase {
            json.key("phase").text(if before_call { "commentary" } else { "final_answer" });
        }
        json.end_object();
        Ok(())
    }

    /// Writes the reasoning items that belong to the next item.
    fn write_thoughts(&mut self, json: &mut Writer<'_>) {
        let is_stored = self.profile().store_field != StoreField::False;
        for item in &self.thoughts {
            self.reasoning_bytes = self.reasoning_bytes.saturating_add(item.len());
            write_item(item, is_stored, json);
        }
    }

    fn call(&mut self, call: &ToolUse<'a>, json: &mut Writer<'_>) -> Result<(), Error> {
        self.write_thoughts(json);
        self.thoughts.clear();
        json.make_room();
        let name = call.name.decode();
        let outgoing = self.tools.outgoing_name_of(call);
        let id = self.ids.id(call.id.decode(), &outgoing);
        json.begin_object().kind("function_call");
        json.key("call_id").text(id).key("name").text(&outgoing);
        json.key("arguments");
        let schema = self.tools.schema_of(&name);
        self.words.write_arguments(call, schema, self.warnings, json)?;
        json.end_object();
        Ok(())
    }
}

/// Returns the number of texts at the start of `rest` that belong to one text with `first`, which
/// Creole cut at its citations.
fn cut_texts(first: &Block<'_>, rest: &[Block<'_>]) -> usize {
    let has_marks = |block: &Block<'_>| matches!(block, Block::Text(text) if text.has_marks());
    let mut was_cut = has_marks(first);
    let belongs = |next: &&Block<'_>| {
        let is_cut = has_marks(next);
        matches!(next, Block::Text(_)) && (std::mem::replace(&mut was_cut, is_cut) || is_cut)
    };
    rest.iter().take_while(belongs).count()
}

/// Returns true if a block is an action of the server's own tools. The description of the action is
/// written into the message of the previous block.
fn is_told(block: &Block<'_>) -> bool {
    !matches!(block, Block::Text(_) | Block::ToolUse(_) | Block::Thinking { .. } | Block::Note)
}
