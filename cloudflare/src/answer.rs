//! The answer on its way to the client.
//!
//! The client's side pulls: when it can take more, the next piece of the upstream is read,
//! translated and given away as one write (the runtime's cost is per write). There is no queue
//! between the two sides, so a slow client slows its upstream, and dropping the answer aborts the
//! upstream's request. Behind the answer of one upstream may come a call of another, the judge's.

use std::mem;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use creole::{Cancel, End, Failure, Head, Millis};
use worker::web_sys::Response;

use crate::call::{Sent, UpstreamBody};
use crate::environment::now;
use crate::http;
use crate::live::{self, Live};
use crate::source::{self, Pieces};
use crate::timer::Timer;

/// Time that an upstream that has said everything may take to end its body. A body that is cut off
/// cannot use its connection again; almost all end in the same packet.
const ENDING_MS: Millis = 100;

pub(crate) struct Answering {
    live: Box<Live>,
    upstream: UpstreamBody,
    /// Call whose head has not come, though the client has its own.
    sent: Option<Sent>,
    timer: Timer,
    /// Bytes for the client.
    out: Vec<u8>,
    /// Time until which the upstream may end by itself, once the exchange is over.
    ending: Option<Millis>,
}

/// Result of waiting for an upstream's response.
pub(crate) enum Answered {
    /// The response for the client.
    Response(Response),
    /// The exchange wants another call before the client gets an answer.
    Due(Box<Live>),
}

impl Answering {
    pub(crate) fn new(live: Box<Live>, upstream: UpstreamBody) -> Self {
        Self { live, upstream, sent: None, timer: Timer::default(), out: Vec::new(), ending: None }
    }

    /// Waits for the head of the answer to a call, while the client gets pings.
    pub(crate) fn waiting(live: Box<Live>, sent: Sent) -> Self {
        Self { sent: Some(sent), ..Self::new(live, UpstreamBody::none()) }
    }

    /// Begins the response. The rest follows as the body.
    pub(crate) fn begin(mut self, head: &Head) -> Response {
        self.live.begin_answer();
        self.live.exchange.poll_body(&mut self.out);
        if self.live.exchange.is_ended() && self.upstream.is_over() {
            return http::response(head, &self.out);
        }
        let client = Rc::clone(&self.live.client);
        http::stream(head, &source::stream(&client, Box::new(self)))
    }

    /// Reads until the exchange gives the head, or wants to call again. The rest follows as the
    /// body.
    pub(crate) async fn respond(mut self) -> Answered {
        loop {
            std::future::poll_fn(|context| self.poll_step(context)).await;
            if let Some(head) = self.live.exchange.poll_head() {
                return Answered::Response(self.begin(&head));
            }
            if self.live.exchange.is_call_due() {
                return Answered::Due(self.live);
            }
        }
    }

    /// Sends the call that follows the answer of which the client has the head, if one is due.
    fn call_again(&mut self) {
        let exchange = &mut self.live.exchange;
        if !exchange.is_call_due() {
            return;
        }
        self.upstream.cut();
        let Some(call) = exchange.poll_call(now()) else { return };
        let sent = self
            .live
            .count_call(&call)
            .and_then(|()| Sent::new(self.live.exchange.config(), call).ok_or(Failure::NoRoute));
        match sent {
            Ok(sent) => self.sent = Some(sent),
            Err(failure) => self.live.exchange.handle_failure(failure, now()),
        }
    }

    /// Polls the call whose head has not come; ready once there is no such call.
    fn poll_sent(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(mut sent) = self.sent.take() else { return Poll::Ready(()) };
        let exchange = &mut self.live.exchange;
        match sent.poll(exchange.config(), context) {
            Poll::Pending => {
                self.sent = Some(sent);
                return Poll::Pending;
            }
            Poll::Ready(Ok(response)) => self.upstream = sent.answered(&response, exchange),
            Poll::Ready(Err(failure)) => exchange.handle_failure(failure, now()),
        }
        Poll::Ready(())
    }

    /// Handles the next event: a piece of the upstream, its end, or a timeout.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.call_again();
        let is_answering = self.poll_sent(context).is_ready();
        let exchange = &mut self.live.exchange;
        if exchange.is_ended() {
            exchange.poll_body(&mut self.out);
            return Poll::Ready(());
        }
        // The upstream goes first: after a long wait for a slow client, its bytes are there, and
        // the timer would call it stalled.
        let polled = if is_answering { self.upstream.poll(context) } else { Poll::Pending };
        match polled {
            Poll::Ready(Some(Ok(piece))) => {
                exchange.handle_call_body(&piece, now());
            }
            Poll::Ready(Some(Err(error))) => {
                live::warn(exchange.config(), || {
                    format!("the upstream's body broke off: {}", http::describe(&error))
                });
                exchange.handle_call_end(End::Aborted, now());
            }
            Poll::Ready(None) => exchange.handle_call_end(End::Complete, now()),
            Poll::Pending => {
                ready!(self.timer.poll(exchange.poll_timeout(), context));
                exchange.handle_timeout(now());
            }
        }
        exchange.poll_body(&mut self.out);
        // An answer that is complete is given away at once.
        if !exchange.is_ended()
            && let Err(failure) = self.live.count(self.out.len())
        {
            self.upstream.cut();
            self.live.exchange.handle_failure(failure, now());
            self.live.exchange.poll_body(&mut self.out);
        }
        Poll::Ready(())
    }

    /// Waits a moment, once the exchange is over, for the upstream to end its body.
    fn poll_ending(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.live.exchange.poll_cancel() == Some(Cancel::Cut) {
            self.upstream.cut();
        }
        let until = *self.ending.get_or_insert_with(|| now().saturating_add(ENDING_MS));
        while !self.upstream.is_over() {
            if self.upstream.poll(context).is_pending() {
                ready!(self.timer.poll(Some(until), context));
                self.upstream.cut();
            }
        }
        Poll::Ready(())
    }
}

impl Pieces for Answering {
    /// Returns the next bytes for the client, or `None` when it has everything.
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
            // The head is out: no other comes any more.
            ready!(self.poll_step(context));
        }
    }
}
