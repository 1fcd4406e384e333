//! State of an exchange while it runs: clock, waits, client, and the line in the log.

use std::mem;

use creole::observe::log::LoggedRequest;
use creole::{CallId, Exchange, Failure, Pace};
use wasip2::http::types::ResponseOutparam;
use wasip2::io::poll;
use wasip2::io::streams::InputStream;

use crate::answer::{self, Answer};
use crate::clock::Clock;

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) exchange: Exchange,
    pub(crate) clock: Clock,
    pub(crate) request: LoggedRequest,
    client: Client,
}

/// State of the response to the client.
#[derive(Debug)]
enum Client {
    /// Response not started: the head is held until the exchange gives it.
    Waiting(ResponseOutparam),
    /// Response started: the client has the head, and some of the body.
    Reading(Answer),
    /// Response over: the client has everything that it will get.
    Gone,
}

impl Live {
    pub(crate) fn new(
        exchange: Exchange,
        clock: Clock,
        request: LoggedRequest,
        out: ResponseOutparam,
    ) -> Self {
        Self { exchange, clock, request, client: Client::Waiting(out) }
    }

    /// Returns true if the exchange has ended, or the client is gone.
    pub(crate) fn is_over(&self) -> bool {
        self.exchange.is_ended() || matches!(self.client, Client::Gone)
    }

    /// Gives up the exchange if it holds too much memory even without the client's body.
    pub(crate) fn limit_memory(&mut self) {
        let most = self.exchange.config().settings.buffered_bytes_max;
        if self.exchange.held_bytes() > most {
            self.exchange.forget_request_body();
            if self.exchange.held_bytes() > most {
                self.fail(Failure::Overloaded);
            }
        }
    }

    /// Returns true if nothing is due, and no timeout runs.
    pub(crate) fn is_idle(&self) -> bool {
        !self.exchange.is_call_due() && self.exchange.poll_timeout().is_none()
    }

    /// Waits for more of the client's body. Returns true if the client pauses for too long.
    pub(crate) fn client_pauses(&self, body: &InputStream) -> bool {
        let now = self.clock.now();
        let end = self.clock.timer(Pace::start(&self.exchange.config().settings, now).end(0));
        !poll::poll(&[&body.subscribe(), &end]).contains(&0)
    }

    /// Reports the current time to the exchange, which may end the exchange.
    pub(crate) fn handle_timeout(&mut self) {
        self.exchange.handle_timeout(self.clock.now());
        self.give();
    }

    /// Reports to the exchange that one of its calls failed.
    pub(crate) fn fail_call(&mut self, call: CallId, failure: Failure) {
        self.exchange.handle_call_failure(call, failure, self.clock.now());
        self.give();
    }

    /// Reports to the exchange that its request cannot be served.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.exchange.handle_failure(failure, self.clock.now());
        self.give();
    }

    /// Sends the client the bytes that are ready. Sends no head if the exchange has already ended,
    /// because `Live::finish` then sends a whole answer.
    pub(crate) fn give(&mut self) {
        let answer = match mem::replace(&mut self.client, Client::Gone) {
            Client::Waiting(out) => {
                let head = if self.exchange.is_ended() { None } else { self.exchange.poll_head() };
                match head {
                    Some(head) => Answer::start(out, &head),
                    None => {
                        self.client = Client::Waiting(out);
                        return;
                    }
                }
            }
            Client::Reading(answer) => Ok(answer),
            Client::Gone => return,
        };
        let Ok(answer) = answer else { return };
        let mut bytes = Vec::new();
        self.exchange.poll_body(&mut bytes);
        if answer.write(&bytes).is_ok() {
            self.client = Client::Reading(answer);
        }
    }

    /// Sends the client the end of its answer. If the exchange has not ended, the answer breaks
    /// off.
    pub(crate) fn finish(&mut self) {
        match mem::replace(&mut self.client, Client::Gone) {
            Client::Waiting(out) => {
                let reply = self.exchange.poll_reply().unwrap_or_default();
                answer::whole(out, &reply.head, &reply.body);
            }
            Client::Reading(answer) if self.exchange.is_ended() => answer.finish(),
            Client::Reading(_) | Client::Gone => {}
        }
    }

    /// Returns the handle for the response, for an answer that the exchange does not write; `None`
    /// if an answer was begun.
    pub(crate) fn take_out(&mut self) -> Option<ResponseOutparam> {
        match mem::replace(&mut self.client, Client::Gone) {
            Client::Waiting(out) => Some(out),
            Client::Reading(_) | Client::Gone => None,
        }
    }

    /// Writes the exchange's line in the log.
    pub(crate) fn log(&self) {
        let (report, log) = (self.exchange.report(), self.exchange.config().settings.log);
        if let Some(line) =
            creole::observe::log::line(&self.request, &report, log, self.clock.now())
        {
            eprintln!("{line}");
        }
    }
}
