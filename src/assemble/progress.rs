//! What the client has seen of the blocks of an answer.

use crate::answer::Output;
use crate::model::event::Event;

/// Which blocks were started and ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// The start of the block at the head was sent, and not its end.
    in_block: bool,
    /// A block was started.
    has_block: bool,
    /// One of them is a text or a call: the client has something to go on with.
    has_said: bool,
}

impl Progress {
    /// Whether the block at the head has begun.
    #[inline]
    pub(super) fn is_in_block(self) -> bool {
        self.in_block
    }

    pub(super) fn has_block(self) -> bool {
        self.has_block
    }

    /// Whether the client has something to go on with.
    pub(super) fn has_said(self) -> bool {
        self.has_said
    }

    /// A block begins. `says`: it is a text or a call.
    pub(super) fn open_block(&mut self, says: bool) {
        self.in_block = true;
        self.has_block = true;
        self.has_said |= says;
    }

    /// A text begins.
    pub(super) fn open_text(&mut self, to: &mut Output<'_>) {
        self.open_block(true);
        to.write(Event::TextBegins);
    }

    /// The block at the head is over, whether or not it had begun.
    pub(super) fn close_block(&mut self) {
        self.in_block = false;
    }
}
