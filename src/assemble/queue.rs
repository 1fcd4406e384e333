//! Queue of the blocks of an answer that have not been sent completely, in the order in which they
//! first appeared.

use std::collections::VecDeque;
use std::collections::vec_deque::Iter;

use super::thinking::{ThinkingBlock, take_ready};
use crate::carry::signature::SignatureField;
use crate::model::hosted::HostedCall;
use crate::model::search::Citation;

/// Logical block of an answer: thinking, text or call.
#[derive(Debug)]
pub(super) enum QueuedBlock {
    /// Text block. `pending` is the part that has not been sent, escaped.
    Text {
        pending: String,
        has_text: bool,
        /// True if later text belongs to another block.
        is_over: bool,
        /// Citations of the text, without those that were sent.
        citations: Vec<Citation>,
    },
    Thinking(Box<ThinkingBlock>),
    /// Tool call, by its position in [`Calls`](super::calls::Calls).
    Tool(usize),
    /// Call that the upstream ran itself, such as a web search.
    Hosted(Box<HostedCall>),
}

impl QueuedBlock {
    /// Creates an empty text block.
    pub(super) fn text(has_text: bool) -> Self {
        Self::Text { pending: String::new(), has_text, is_over: false, citations: Vec::new() }
    }

    /// Returns true if nothing will be added to this block.
    fn is_over(&self) -> bool {
        match self {
            Self::Text { is_over, .. } => *is_over,
            Self::Thinking(thinking) => thinking.is_over(),
            Self::Tool(_) => false,
            Self::Hosted(_) => true,
        }
    }

    pub(super) fn is_thinking(&self) -> bool {
        matches!(self, Self::Thinking(_))
    }

    /// Returns true if this block will be sent. White space alone is never sent.
    pub(super) fn counts(&self) -> bool {
        match self {
            Self::Text { has_text, .. } => *has_text,
            Self::Thinking(thinking) => thinking.has_text() || thinking.has_records(),
            Self::Tool(_) | Self::Hosted(_) => true,
        }
    }

    /// Returns the text of this block that has not been sent. The text is empty for a call, whose
    /// text is kept in its input.
    fn pending(&self) -> &str {
        match self {
            Self::Text { pending, .. } => pending,
            Self::Thinking(thinking) => thinking.pending(),
            Self::Tool(_) | Self::Hosted(_) => "",
        }
    }
}

/// Queue of an answer's blocks, of which only the first is sent.
#[derive(Debug, Default)]
pub(super) struct Queue {
    blocks: VecDeque<QueuedBlock>,
    /// Number of bytes of texts and citations of all blocks that have not been sent.
    held_bytes: usize,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Returns the number of bytes of texts and citations that have not been sent.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    pub(super) fn iter(&self) -> Iter<'_, QueuedBlock> {
        self.blocks.iter()
    }

    pub(super) fn head(&self) -> Option<&QueuedBlock> {
        self.blocks.front()
    }

    /// Returns the first block of the queue, if it is a thinking block.
    pub(super) fn head_thinking(&mut self) -> Option<&mut ThinkingBlock> {
        match self.blocks.front_mut() {
            Some(QueuedBlock::Thinking(thinking)) => Some(thinking),
            _ => None,
        }
    }

    pub(super) fn behind_head(&self) -> impl Iterator<Item = &QueuedBlock> {
        self.blocks.iter().skip(1)
    }

    /// Returns true if a block behind the first will be sent. The first block is complete then.
    pub(super) fn is_followed(&self) -> bool {
        self.behind_head().any(QueuedBlock::counts)
    }

    /// Returns true if nothing will be added to the first block.
    pub(super) fn is_head_over(&self) -> bool {
        self.head().is_some_and(QueuedBlock::is_over)
    }

    /// Ends the text block at the back: later text begins another block.
    pub(super) fn end_text(&mut self) {
        if let Some(QueuedBlock::Text { is_over, .. }) = self.blocks.back_mut() {
            *is_over = true;
        }
    }

    /// Adds a citation to the text block at the back. Returns false if the last block is no text.
    pub(super) fn cite(&mut self, citation: Citation) -> bool {
        let Some(QueuedBlock::Text { citations, .. }) = self.blocks.back_mut() else {
            return false;
        };
        self.held_bytes = self.held_bytes.saturating_add(citation.held_bytes());
        citations.push(citation);
        true
    }

    /// Removes and returns the citations of the text block at the head.
    pub(super) fn take_citations(&mut self) -> Vec<Citation> {
        let Some(QueuedBlock::Text { citations, .. }) = self.blocks.front_mut() else {
            return Vec::new();
        };
        let citations = std::mem::take(citations);
        self.release(citations.iter().map(Citation::held_bytes).sum());
        citations
    }

    pub(super) fn back(&self) -> Option<&QueuedBlock> {
        self.blocks.back()
    }

    /// Returns the first thinking block of the queue.
    pub(super) fn first_thinking(&mut self) -> Option<&mut ThinkingBlock> {
        self.blocks.iter_mut().find_map(|block| match block {
            QueuedBlock::Thinking(thinking) => Some(&mut **thinking),
            QueuedBlock::Text { .. } | QueuedBlock::Tool(_) | QueuedBlock::Hosted(_) => None,
        })
    }

    /// Returns the last block of the queue, if it is a thinking block.
    pub(super) fn back_thinking(&self) -> Option<&ThinkingBlock> {
        match self.blocks.back() {
            Some(QueuedBlock::Thinking(thinking)) => Some(thinking),
            _ => None,
        }
    }

    /// Returns the last block of the queue, mutably, if it is a thinking block.
    pub(super) fn back_thinking_mut(&mut self) -> Option<&mut ThinkingBlock> {
        match self.blocks.back_mut() {
            Some(QueuedBlock::Thinking(thinking)) => Some(thinking),
            _ => None,
        }
    }

    /// Returns the only block of the queue, if it is a thinking block.
    pub(super) fn only_thinking(&mut self) -> Option<&mut ThinkingBlock> {
        if self.blocks.len() == 1 { self.head_thinking() } else { None }
    }

    /// Returns true if the queue has one block: a text that may continue, all of which has been
    /// sent so far.
    pub(super) fn is_sent_text(&self) -> bool {
        self.blocks.len() == 1
            && matches!(
                self.head(),
                Some(QueuedBlock::Text { pending, is_over: false, .. }) if pending.is_empty()
            )
    }

    /// Returns the position of a call, if this call is the only block of the queue.
    #[inline]
    pub(super) fn only_call(&self) -> Option<usize> {
        match self.head() {
            Some(QueuedBlock::Tool(index)) if self.blocks.len() == 1 => Some(*index),
            _ => None,
        }
    }

    /// Returns true if the queue has one block: a text or thinking that may continue, all of which
    /// has been sent so far.
    #[inline]
    pub(super) fn is_sent(&self) -> bool {
        self.blocks.len() == 1
            && self.head().is_some_and(|head| match head {
                QueuedBlock::Text { pending, is_over, .. } => pending.is_empty() && !is_over,
                QueuedBlock::Thinking(thinking) => {
                    thinking.pending().is_empty() && !thinking.is_over()
                }
                QueuedBlock::Tool(_) | QueuedBlock::Hosted(_) => false,
            })
    }

    pub(super) fn push(&mut self, block: QueuedBlock) {
        self.hold(block.pending().len());
        self.blocks.push_back(block);
    }

    /// Adds escaped text to the text block at the back of the queue, or begins a new text block.
    pub(super) fn push_text(&mut self, raw: &str, is_blank: bool) {
        if !matches!(self.blocks.back(), Some(QueuedBlock::Text { is_over: false, .. })) {
            self.push(QueuedBlock::text(false));
        }
        if let Some(QueuedBlock::Text { pending, has_text, .. }) = self.blocks.back_mut() {
            *has_text |= !is_blank;
            pending.push_str(raw);
            self.hold(raw.len());
        }
    }

    /// Returns the thinking block at the back. Begins one if the last block is of another kind or
    /// over.
    pub(super) fn thinking(
        &mut self,
        field: SignatureField,
        shown: bool,
    ) -> Option<&mut ThinkingBlock> {
        if self.back_thinking().is_none_or(ThinkingBlock::is_over) {
            self.push(QueuedBlock::Thinking(Box::new(ThinkingBlock::new(field, shown))));
        }
        match self.blocks.back_mut() {
            Some(QueuedBlock::Thinking(thinking)) => Some(thinking),
            _ => None,
        }
    }

    /// Returns the thinking block right before the last block, and inserts one if there is none.
    pub(super) fn thinking_before_back(
        &mut self,
        field: SignatureField,
        shown: bool,
    ) -> Option<&mut ThinkingBlock> {
        let back = self.blocks.len().checked_sub(1)?;
        let before = back.checked_sub(1).and_then(|at| self.blocks.get(at));
        let at = match before {
            Some(QueuedBlock::Thinking(_)) => back.saturating_sub(1),
            _ => {
                let thinking = QueuedBlock::Thinking(Box::new(ThinkingBlock::new(field, shown)));
                self.blocks.insert(back, thinking);
                back
            }
        };
        match self.blocks.get_mut(at) {
            Some(QueuedBlock::Thinking(thinking)) => Some(thinking),
            _ => None,
        }
    }

    /// Adds to the number of bytes that have not been sent, after text was added to a block.
    pub(super) fn hold(&mut self, bytes: usize) {
        self.held_bytes = self.held_bytes.saturating_add(bytes);
    }

    /// Removes and returns the part of the first block's text that can be sent. If more text may
    /// follow, half of a surrogate pair stays.
    pub(super) fn take_ready(&mut self, is_over: bool) -> String {
        let ready = match self.blocks.front_mut() {
            Some(QueuedBlock::Text { pending, .. }) => take_ready(pending, is_over),
            Some(QueuedBlock::Thinking(thinking)) => thinking.take_ready(is_over),
            Some(QueuedBlock::Tool(_) | QueuedBlock::Hosted(_)) | None => return String::new(),
        };
        self.release(ready.len());
        ready
    }

    /// Removes the first block of the queue.
    pub(super) fn pop(&mut self) {
        let block = self.blocks.pop_front();
        self.forget(block.as_ref());
    }

    /// Removes and returns the last block of the queue, if it is only white space.
    pub(super) fn take_blank(&mut self) -> Option<QueuedBlock> {
        let is_blank = matches!(self.back(), Some(QueuedBlock::Text { has_text: false, .. }));
        let block = if is_blank { self.blocks.pop_back() } else { None };
        self.forget(block.as_ref());
        block
    }

    fn forget(&mut self, block: Option<&QueuedBlock>) {
        self.release(block.map_or(0, |block| block.pending().len()));
    }

    /// Subtracts `bytes` from the number of bytes that have not been sent.
    fn release(&mut self, bytes: usize) {
        debug_assert!(self.held_bytes >= bytes, "bytes of a block were not counted");
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }
}
