//! Decides whether a finish reason really means that the answer is over.
//!
//! Most servers send a finish reason once, at the end. Some servers send a finish reason with the
//! first chunk, or with every chunk, and continue. So content after a finish reason cancels the
//! finish reason. If a server does this repeatedly, an answer is complete only if the connection
//! ends cleanly or usage follows.

use crate::answer::Ending;
use crate::protocols::chat::wire::Chunk;

/// Finish reasons of the upstream: when they arrived, and the evidence for or against them. Times
/// are counted in pieces of content.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Finish {
    /// Number of pieces of content received up to the last finish reason.
    at: Option<u64>,
    /// True if content arrived between two finish reasons, and also before the first of them.
    went_on: bool,
    /// True if the upstream repeatedly continues after finish reasons, so that a finish reason
    /// alone proves nothing.
    repeats: bool,
    /// Number of pieces of content received when usage confirmed the finish reason. Usage confirms
    /// in a later chunk without content, or, if no usage came before, in the same chunk.
    counted_at: Option<u64>,
    /// Number of pieces of content received up to the last chunk with usage and without choices.
    /// OpenAI sends its usage in such a chunk at the end.
    totalled_at: Option<u64>,
    /// True if the connection to the upstream broke or ended too early.
    broken: bool,
}

/// Progress of the answer at one chunk, counted in pieces of content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Number of pieces of content before the chunk.
    pub(super) before: u64,
    /// Number of pieces of content including the chunk.
    pub(super) progress: u64,
    /// True if the chunk is the first chunk with usage.
    pub(super) counts_first: bool,
}

impl Finish {
    /// Updates the evidence about the finish reasons with one chunk. `finishes`: the chunk has a
    /// finish reason.
    pub(super) fn take(&mut self, chunk: &Chunk<'_>, finishes: bool, seen: Seen) {
        let Seen { before, progress, counts_first } = seen;
        if finishes {
            self.finished(before, progress, counts_first);
        } else if chunk.usage.is_some() && progress == before {
            // The chunk has usage and no content.
            self.counted_at = self.at.and(Some(progress));
        }
        if chunk.choices.is_empty() && chunk.usage.is_some_and(|it| it.completion > Some(0)) {
            self.totalled_at = Some(progress);
        }
    }

    /// Records a finish reason. `before`: pieces of content before the chunk; `progress`: pieces
    /// including the chunk; `counted`: the chunk is the first with usage.
    fn finished(&mut self, before: u64, progress: u64, counted: bool) {
        // A finish reason before any content shows nothing about later finish reasons.
        let went_on = self.at.is_some_and(|at| at > 0 && at != progress);
        self.repeats |= went_on && (self.went_on || progress != before);
        self.went_on |= went_on;
        self.at = Some(progress);
        // A server's first chunk with content may be one of many that all have usage and a finish
        // reason.
        let is_end = counted && before > 0 && !self.repeats;
        self.counted_at = is_end.then_some(progress);
    }

    /// Records that the connection broke or ended too early.
    pub(super) fn break_off(&mut self) {
        self.broken = true;
    }

    /// Returns true if the upstream sent usage as its last chunk instead of a finish reason, and
    /// then closed the connection cleanly.
    pub(super) fn is_totalled(&self, progress: u64) -> bool {
        !self.broken && self.at.is_none() && self.totalled_at == Some(progress)
    }

    /// Returns true if the upstream sent a finish reason and no later chunk contradicts the finish
    /// reason.
    pub(super) fn may_end(&self, progress: u64) -> bool {
        self.at.is_some_and(|at| {
            let last = at == progress;
            self.is_counted(progress) || last && !self.broken || !self.repeats && (last || at > 0)
        })
    }

    /// Returns how certain the end of the answer is while the connection is still open. `answers`:
    /// the answer has more than reasoning.
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
