//! Driver of an exchange: makes its calls, passes in what comes of them, and gives the client's
//! response, before its head as well as after.
//!
//! The client pulls: when it can receive more, the next event of a call is translated and sent as
//! one write (the runtime's cost is per write). No queue exists between upstream and client, so a
//! slow client slows its upstream, and dropping the driver aborts the calls.

use std::future::poll_fn;
use std::mem;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use creole::{CallId, Cancel, End, Head, Millis};
use worker::web_sys::Response;

use crate::environment::now;
use crate::http;
use crate::live::{self, Live};
use crate::open_calls::{CallEvent, OpenCalls};
use crate::source::{self, Pieces};
use crate::timer::Timer;

/// Time for which an upstream whose answer is finished may still end its body, in milliseconds. A
/// body that is cut off makes its connection useless for further requests; almost all bodies end in
/// the same packet.
const ENDING_MS: Millis = 100;

pub(crate) struct Driver {
    live: Box<Live>,
    /// Open calls; after the end of the exchange, calls whose bodies may still end by themselves.
    calls: OpenCalls,
    timer: Timer,
    /// Translated bytes that are ready for the client.
    out: Vec<u8>,
    /// Time until which the upstream may end its body by itself, once the exchange is over.
    ending: Option<Millis>,
}

impl Driver {
    /// Returns the driver of an exchange that has its whole request.
    pub(crate) fn new(live: Box<Live>) -> Self {
        let (calls, timer) = (OpenCalls::default(), Timer::default());
        Self { live, calls, timer, out: Vec::new(), ending: None }
    }

    /// Handles events until the exchange has a head for the client. Later events produce the body,
    /// which is streamed.
    pub(crate) async fn respond(mut self) -> Response {
        loop {
            if let Some(head) = self.live.exchange.poll_head() {
                return self.begin(&head);
            }
            poll_fn(|context| self.poll_step(context)).await;
        }
    }

    fn begin(mut self, head: &Head) -> Response {
        self.live.begin_answer();
        self.live.exchange.poll_body(&mut self.out);
        if self.live.exchange.is_ended() && self.calls.is_empty() {
            return http::response(head, &self.out);
        }
        let client = Rc::clone(&self.live.client);
        http::stream(head, &source::stream(&client, Box::new(self)))
    }

    /// Makes the calls that are due, or handles the next event: of a call, or a timeout.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.live.exchange.is_call_due() {
            self.make_calls();
        // The calls go first: after a long wait for a slow client, the bytes of an upstream are
        // there, and the timer would call the upstream stalled.
        } else if let Poll::Ready((id, event)) =
            self.calls.poll_event(self.live.exchange.config(), context)
        {
            self.tell(id, event);
        } else {
            ready!(self.timer.poll(self.live.exchange.poll_timeout(), context));
            self.live.exchange.handle_timeout(now());
        }
        self.settle();
        Poll::Ready(())
    }

    fn make_calls(&mut self) {
        while let Some(call) = self.live.exchange.poll_call(now()) {
            let id = call.id;
            let opened = self
                .live
                .count_call(&call, self.calls.sent_bytes())
                .and_then(|()| self.calls.open(self.live.exchange.config(), call));
            if let Err(failure) = opened {
                self.live.fail_call(id, failure);
            }
        }
    }

    /// Passes an event of a call to the exchange.
    fn tell(&mut self, id: CallId, event: CallEvent) {
        let exchange = &mut self.live.exchange;
        match event {
            CallEvent::Head(status, headers) => {
                exchange.handle_call_head(id, status, &headers, now());
            }
            CallEvent::Piece(piece) => exchange.handle_call_body(id, &piece, now()),
            CallEvent::End(Ok(())) => exchange.handle_call_end(id, End::Complete, now()),
            CallEvent::End(Err(error)) => {
                live::warn(exchange.config(), || {
                    format!("the upstream's body broke off: {}", http::describe(&error))
                });
                exchange.handle_call_end(id, End::Aborted, now());
            }
            CallEvent::Failed(failure) => exchange.handle_call_failure(id, failure, now()),
        }
    }

    /// Follows the state of the exchange after an event: takes the output for the client, counts
    /// memory, and ends cancelled calls.
    fn settle(&mut self) {
        self.live.exchange.poll_body(&mut self.out);
        // A complete answer goes to the client at once.
        let beside = self.out.len().saturating_add(self.calls.sent_bytes());
        if !self.live.exchange.is_ended()
            && let Err(failure) = self.live.count_kept(beside)
        {
            self.calls.clear();
            self.live.exchange.handle_failure(failure, now());
            self.live.exchange.poll_body(&mut self.out);
        }
        while let Some((id, cancel)) = self.live.exchange.poll_cancel() {
            // Only at the end of the exchange does a body get time to end by itself.
            if cancel == Cancel::Cut || !self.live.exchange.is_ended() {
                self.calls.cut(id);
            } else {
                self.calls.end(id);
            }
        }
    }

    /// Waits up to `ENDING_MS` after the end of the exchange for upstreams to end their bodies.
    fn poll_ending(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let until = *self.ending.get_or_insert_with(|| now().saturating_add(ENDING_MS));
        while !self.calls.is_empty() {
            if self.calls.poll_event(self.live.exchange.config(), context).is_pending() {
                ready!(self.timer.poll(Some(until), context));
                self.calls.clear();
            }
        }
        Poll::Ready(())
    }
}

impl Pieces for Driver {
    /// Returns the next bytes for the client, or `None` when the client has the whole answer.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        loop {
            #[cfg(feature = "test-hooks")]
            crate::hooks::panic_in_stream(&self.out);
            if !self.out.is_empty() {
                return Poll::Ready(Some(mem::take(&mut self.out)));
            }
            if self.live.exchange.is_ended() {
                ready!(self.poll_ending(context));
                return Poll::Ready(None);
            }
            // The head of the answer was already sent, so no other head comes.
            ready!(self.poll_step(context));
        }
    }
}
