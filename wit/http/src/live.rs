//! An exchange while it lives: its clock, its waits, and its line in the log.

use creole::observe::log::Request;
use creole::{Exchange, Failure};
use wasip2::http::types::ResponseOutparam;
use wasip2::io::poll::{self, Pollable};

use crate::answer;
use crate::clock::Clock;

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) exchange: Exchange,
    pub(crate) clock: Clock,
    pub(crate) request: Request,
}

/// Why a wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// What was waited for is ready.
    Ready,
    /// The exchange wants [`Exchange::handle_timeout`].
    Timeout,
}

impl Live {
    /// Waits until `what` is ready, or the exchange wants to be told the time.
    pub(crate) fn wait(&self, what: &Pollable) -> Woken {
        let Some(at) = self.exchange.poll_timeout() else {
            what.block();
            return Woken::Ready;
        };
        let timer = self.clock.timer(at);
        // What is waited for goes first: after a long wait for a slow client its bytes are there, and
        // the timer would call the upstream stalled.
        if poll::poll(&[what, &timer]).contains(&0) { Woken::Ready } else { Woken::Timeout }
    }

    /// Tells the exchange the time. It may have ended then.
    pub(crate) fn handle_timeout(&mut self) {
        self.exchange.handle_timeout(self.clock.now());
    }

    /// The answer to a failure before the head.
    pub(crate) fn fail(&mut self, failure: Failure, out: ResponseOutparam) {
        self.exchange.handle_failure(failure, self.clock.now());
        self.reply(out);
    }

    /// The answer of an exchange that has ended.
    pub(crate) fn reply(&mut self, out: ResponseOutparam) {
        let reply = self.exchange.poll_reply().unwrap_or_default();
        answer::whole(out, &reply.head, &reply.body);
    }

    /// Writes the line of the log.
    pub(crate) fn log(&self) {
        let (report, log) = (self.exchange.report(), self.exchange.config().settings.log);
        if let Some(line) =
            creole::observe::log::line(&self.request, &report, log, self.clock.now())
        {
            eprintln!("{line}");
        }
    }
}
