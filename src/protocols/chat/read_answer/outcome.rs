//! What the upstream says of its answer as a whole, beside the content.

use super::finish::Finish;
use crate::answer::Ending;
use crate::assemble::BrokenOff;
use crate::content::Told;
use crate::json::Str;
use crate::model::stop_reason;
use crate::protocols::chat::wire::{Choice, Chunk};

/// Model, counts, and why it stopped.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) told: Told,
    /// The last chunk was the first with counts.
    counts_first: bool,
    /// The last `finish_reason`.
    finish_reason: Option<String>,
    /// When there was one, and whether it is to be believed.
    finish: Finish,
    /// The upstream stopped at this text.
    stop_sequence: Option<String>,
}

impl Outcome {
    /// Takes what a chunk says beside its choices.
    pub(super) fn take_chunk(&mut self, chunk: &Chunk<'_>) {
        self.counts_first = self.told.usage().is_none() && chunk.usage.is_some();
        self.told.take(chunk.model, chunk.service_tier, chunk.usage);
    }

    /// Takes why the model stopped. Says whether a choice says so.
    pub(super) fn take_choice(&mut self, choice: &Choice<'_>) -> bool {
        if let Some(finish) = choice.finish_reason {
            let before = self.finish_reason.as_deref().unwrap_or_default();
            if !stop_reason::outlasts(before, &finish.decode()) {
                set(&mut self.finish_reason, finish);
            }
        }
        if let Some(stop) = choice.stop_sequence {
            set(&mut self.stop_sequence, stop);
        }
        choice.finish_reason.is_some()
    }

    /// Notes whether a chunk says that the answer is over, as `finishes` tells of its choices. `before`: how much had
    /// come before it, `progress`: how much with it.
    pub(super) fn take_finish(
        &mut self,
        chunk: &Chunk<'_>,
        finishes: bool,
        before: u64,
        progress: u64,
    ) {
        if finishes {
            self.finish.finished(before, progress, self.counts_first);
        } else if chunk.usage.is_some() && progress == before {
            self.finish.counted(progress);
        }
        if chunk.choices.is_empty() && chunk.usage.is_some_and(|it| it.completion > Some(0)) {
            self.finish.totalled(progress);
        }
    }

    /// The last `finish_reason`.
    pub(super) fn finish_reason(&self) -> Option<&str> {
        self.finish_reason.as_deref()
    }

    /// Puts another reason in the place of the upstream's.
    pub(super) fn set_finish_reason(&mut self, reason: Option<&str>) {
        self.finish_reason = reason.map(str::to_owned);
    }

    /// The text at which the upstream stopped.
    pub(super) fn stop_sequence(&self) -> Option<&str> {
        self.stop_sequence.as_deref()
    }

    /// How the answer was broken off, by its finish reason.
    pub(super) fn broken_off(&self) -> BrokenOff {
        BrokenOff::of(self.finish_reason())
    }

    /// The connection did not end as it should.
    pub(super) fn break_off(&mut self) {
        self.finish.break_off();
    }

    /// See [`Finish::may_end`].
    pub(super) fn may_end(&self, progress: u64) -> bool {
        self.finish.may_end(progress)
    }

    /// See [`Finish::is_totalled`].
    pub(super) fn is_totalled(&self, progress: u64) -> bool {
        self.finish.is_totalled(progress)
    }

    /// See [`Finish::ending`].
    pub(super) fn ending(&self, progress: u64, answers: bool) -> Ending {
        self.finish.ending(progress, answers)
    }
}

fn set(slot: &mut Option<String>, text: Str<'_>) {
    *slot = Some(text.decode().into_owned());
}
