//! Progress of sending an answer's blocks to the client: which blocks were started and ended.

use crate::answer::ReaderOutput;
use crate::model::event::Event;

/// Progress of sending an answer's blocks to the client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockProgress {
    /// True if the start of the queue's first block was sent, but not its end.
    in_block: bool,
    /// True if a block of the answer was started.
    has_block: bool,
    /// True if a text or a call was started, so that the client can continue the conversation.
    has_said: bool,
}

impl BlockProgress {
    /// Returns true if the queue's first block was started and not ended.
    #[inline]
    pub(super) fn is_in_block(self) -> bool {
        self.in_block
    }

    pub(super) fn has_block(self) -> bool {
        self.has_block
    }

    /// Returns true if a text or a call was started, so that the client can continue the
    /// conversation.
    pub(super) fn has_said(self) -> bool {
        self.has_said
    }

    /// Records that a block begins. `says`: the block is a text or a call.
    pub(super) fn open_block(&mut self, says: bool) {
        self.in_block = true;
        self.has_block = true;
        self.has_said |= says;
    }

    /// Writes the start of a text block for the client.
    pub(super) fn open_text(&mut self, to: &mut ReaderOutput<'_>) {
        self.open_block(true);
        to.write(Event::TextBegins);
    }

    /// Records that the queue's first block is over, whether or not it had begun.
    pub(super) fn close_block(&mut self) {
        self.in_block = false;
    }
}
