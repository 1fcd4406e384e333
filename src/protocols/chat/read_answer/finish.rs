//! Whether to believe a finish reason.
//!
//! Most servers send it once, at the end. Some send it with the first chunk, or with every chunk,
//! and go on. So content after a finish reason takes it back; from a server that keeps doing this,
//! an answer is complete only if the connection ends cleanly or usage follows.

use crate::answer::Ending;
use crate::protocols::chat::wire::Chunk;

/// Finish reasons of the upstream: when they came, and what speaks for or against them. Times are
/// numbers of pieces of content.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Finish {
    /// Number of pieces that had come at the last finish reason.
    at: Option<u64>,
    /// True if content came between two finish reasons, the first of which had content before it.
    went_on: bool,
    /// True if the upstream goes on after finish reasons again and again, so that a finish reason
    /// alone proves nothing.
    repeats: bool,
    /// Number of pieces that had come when usage confirmed the finish reason: in a later chunk
    /// without content, or, if it is the first usage, in the same chunk.
    counted_at: Option<u64>,
    /// Number of pieces that had come at the last chunk with counts and without choices, which is
    /// how OpenAI tells its counts at the end.
    totalled_at: Option<u64>,
    /// True if the upstream's connection did not end as it should.
    broken: bool,
}

/// Progress of the answer when one chunk is taken, in pieces of content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Number of pieces before the chunk.
    pub(super) before: u64,
    /// Number of pieces with the chunk.
    pub(super) progress: u64,
    /// True if the chunk is the first that has counts.
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

    /// Notes a finish reason. `before`: how much had come before the chunk with it; `progress`:
    /// with that chunk; `counted`: the chunk is the first that has counts.
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

    /// Notes that the connection did not end as it should.
    pub(super) fn break_off(&mut self) {
        self.broken = true;
    }

    /// Returns true if the upstream told its counts and nothing after them, in place of why it
    /// stopped, and then closed its connection as it should.
    pub(super) fn is_totalled(&self, progress: u64) -> bool {
        !self.broken && self.at.is_none() && self.totalled_at == Some(progress)
    }

    /// Returns true if the upstream has said why it stopped, and nothing speaks against it.
    pub(super) fn may_end(&self, progress: u64) -> bool {
        self.at.is_some_and(|at| {
            let last = at == progress;
            self.is_counted(progress) || last && !self.broken || !self.repeats && (last || at > 0)
        })
    }

    /// Returns how sure it is that the answer is over although its connection is not. `answers`:
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
