//! Careful estimates of the tokens in parts of a request.

use super::{TextCounter, TokenCounter};
use crate::history::clearing::Tokens;
use crate::json::Str;
use crate::model::tool::ToolDefinition;
use crate::model::{Block, Text};

/// System prompt and tools of a request, for careful estimates of its parts.
pub(crate) struct CountedParts<'r, 'a> {
    pub(crate) system: &'r [Text<'a>],
    pub(crate) tools: &'r [ToolDefinition<'a>],
}

impl Tokens for CountedParts<'_, '_> {
    fn before_messages(&self) -> u64 {
        counted(|count| count.before_messages(self.system, self.tools))
    }

    fn of_message(&self, content: &[Block<'_>]) -> u64 {
        counted(|count| count.message(content))
    }

    fn of_block(&self, block: &Block<'_>) -> u64 {
        counted(|count| count.blocks(std::slice::from_ref(block)))
    }

    fn of_text(&self, text: Str<'_>) -> u64 {
        counted(|count| count.text(text))
    }
}

fn counted(add: impl FnOnce(&mut TokenCounter<'static>)) -> u64 {
    let mut count = TokenCounter { texts: TextCounter::Letters(0), tokens: 0 };
    add(&mut count);
    count.sum()
}
