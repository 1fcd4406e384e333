//! Whether to believe a finish reason.
//!
//! Most servers send it once, at the end. Some send it with the first chunk, or with every chunk, and go on. So
//! content after a finish reason takes it back; from a server that keeps doing this, an answer is complete only
//! if the connection ends cleanly or usage follows.

use crate::answer::Ending;
use crate::protocols::chat::wire::Chunk;

/// When the upstream said that it stopped. Times are numbers of pieces of content.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Finish {
    /// So much had come when it last said so.
    at: Option<u64>,
    /// It had said so before, and went on.
    went_on: bool,
    /// It does so again and again.
    repeats: bool,
    /// So much had come when a chunk after the finish reason had usage and no content, or the chunk with it the first
    /// usage.
    counted_at: Option<u64>,
    /// So much had come when it last told its counts as OpenAI does at the end, in a chunk without choices.
    totalled_at: Option<u64>,
    /// Its connection did not end as it should.
    broken: bool,
}

/// What had come of the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Before a chunk.
    pub(super) before: u64,
    /// With it.
    pub(super) progress: u64,
    /// The chunk is the first that has counts.
    pub(super) counts_first: bool,
}

impl Finish {
    /// Takes what a chunk says of the end. `finishes`: it says why the model stopped.
    pub(super) fn take(&mut self, chunk: &Chunk<'_>, finishes: bool, seen: Seen) {
        let Seen { before, progress, counts_first } = seen;
        if finishes {
            self.finished(before, progress, counts_first);
        } else if chunk.usage.is_some() && progress == before {
            // It tells its counts and nothing else.
            self.counted_at = self.at.and(Some(progress));
        }
        if chunk.choices.is_empty() && chunk.usage.is_some_and(|it| it.completion > Some(0)) {
            self.totalled_at = Some(progress);
        }
    }

    /// The upstream says why it stopped; `before`: how much had come before the chunk that says so, `counted`: this is
    /// the first that has counts.
    fn finished(&mut self, before: u64, progress: u64, counted: bool) {
        // With the first chunk, before any content, it says nothing of others.
        let went_on = self.at.is_some_and(|at| at > 0 && at != progress);
        self.repeats |= went_on && (self.went_on || progress != before);
        self.went_on |= went_on;
        self.at = Some(progress);
        // A server's first chunk with content may be one of many with both.
        let is_end = counted && before > 0 && !self.repeats;
        self.counted_at = is_end.then_some(progress);
    }

    /// The connection did not end as it should.
    pub(super) fn break_off(&mut self) {
        self.broken = true;
    }

    /// Whether the upstream told its counts and nothing after them, in place of why it stopped, and then closed
    /// its connection as it should.
    pub(super) fn is_totalled(&self, progress: u64) -> bool {
        !self.broken && self.at.is_none() && self.totalled_at == Some(progress)
    }

    /// Whether the upstream has said why it stopped, and nothing speaks against it.
    pub(super) fn may_end(&self, progress: u64) -> bool {
        self.at.is_some_and(|at| {
            let last = at == progress;
            self.is_counted(progress) || last && !self.broken || !self.repeats && (last || at > 0)
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
