//! End of a step's questions that have no answer in time.

use super::{Running, Steps};
use crate::Millis;
use crate::exchange::Exchange;
use crate::exchange::seam::Cancel;
use crate::steps::{Came, Nothing};

impl Exchange {
    /// Tells the running step that its questions without an answer get none.
    pub(super) fn fail_questions(&mut self, why: Nothing) {
        let Some(Running { step, window, .. }) = &mut self.steps.current else { return };
        let mut left = step.questions_left();
        while left > 0 {
            if let Some(came) = window.take_first().flatten() {
                step.take(came, &mut self.report);
            }
            // A question that would be asked again, such as a redirection, gets no answer either.
            if step.questions_left() == left {
                step.take(Came::Nothing(why), &mut self.report);
            }
            left = left.saturating_sub(1).min(step.questions_left());
        }
    }

    /// Abandons the questions of the running step whose time is over.
    pub(in crate::exchange) fn time_out_questions(&mut self, now: Millis) {
        if self.steps.until().is_none_or(|until| now >= until) {
            return self.give_up_step(Nothing::TimedOut, now);
        }
        let overdue = |steps: &Steps| steps.current.as_ref()?.window.overdue(now);
        while let Some(id) = overdue(&self.steps) {
            self.state.take_ask(id);
            self.state.cancel_call(id, Cancel::Cut);
            self.take_came(id, Came::Nothing(Nothing::TimedOut));
        }
        self.watch_questions(now);
        self.tell_results(now);
        self.go_on(now);
    }

    /// Lets the watchdog wait for the first open question.
    fn watch_questions(&mut self, now: Millis) {
        let until = self.steps.current.as_ref().and_then(|running| running.window.until());
        if let Some(until) = until {
            self.watchdog.start(until.saturating_sub(now), now);
        }
    }

    /// Abandons the questions of the running step.
    pub(in crate::exchange) fn give_up_step(&mut self, why: Nothing, now: Millis) {
        self.fail_questions(why);
        self.state.end_asks(Cancel::ReadOut);
        self.tell_results(now);
        self.go_on(now);
    }
}
