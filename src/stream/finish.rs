//! Whether the upstream's word that it stopped is to be believed.
//!
//! Most servers say once, at the end, why they stopped. Some say so with their first chunk, or with every one,
//! and go on. So what counts is what came between: content after such a word takes it back, and where that
//! happened before, only `[DONE]` or a chunk of nothing but counts ends the answer.

use super::watchdog::Ending;

/// When the upstream said that it stopped. Times are numbers of pieces of content.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Finish {
    /// So much had come when it last said so.
    at: Option<u64>,
    /// It had said so before, and went on.
    repeats: bool,
    /// So much had come when it told its counts and nothing else.
    counted_at: Option<u64>,
}

impl Finish {
    /// The upstream says why it stopped.
    pub(super) fn finished(&mut self, progress: u64) {
        // With the first chunk, before any content, it is a habit of the server's and says nothing of others.
        self.repeats |= self.at.is_some_and(|at| at > 0 && at != progress);
        self.at = Some(progress);
    }

    /// The upstream tells its counts and nothing else.
    pub(super) fn counted(&mut self, progress: u64) {
        self.counted_at = Some(progress);
    }

    /// Whether the answer can be over, now that its connection is.
    pub(super) fn may_end(&self, progress: u64) -> bool {
        self.at.is_some_and(|at| {
            self.is_counted(progress) || !self.repeats && (at == progress || at > 0)
        })
    }

    /// Whether the answer is over although its connection is not. `answers`: there is more than reasoning.
    pub(super) fn ending(&self, progress: u64, answers: bool) -> Ending {
        match self.at {
            Some(_) if self.is_counted(progress) => Ending::Sure,
            Some(at) if at == progress && answers && !self.repeats => Ending::Likely,
            _ => Ending::Open,
        }
    }

    fn is_counted(&self, progress: u64) -> bool {
        self.counted_at == Some(progress)
    }
}
