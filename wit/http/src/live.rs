//! An exchange while it lives: its clock, its waits, and its line in the log.

use creole::observe::log::Request;
use creole::{Exchange, Failure, Head};
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

    /// Tells the exchange the time; gives the head and adds the bytes that the client must get.
    pub(crate) fn handle_timeout(&mut self, out: &mut Vec<u8>) -> Option<Head> {
        self.exchange.handle_timeout(self.clock.now(), out)
    }

    /// The answer to a failure before the head.
    pub(crate) fn fail(&mut self, failure: Failure, out: ResponseOutparam) {
        let reply = self.exchange.reply_to(failure, self.clock.now());
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
