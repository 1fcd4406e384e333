//! Answer on the way from the upstream to the client.
//!
//! The client pulls: when it can receive more, the next chunk of the upstream is read, translated
//! and sent as one write (the runtime's cost is per write). No queue exists between upstream and
//! client, so a slow client slows its upstream, and dropping the answer aborts the upstream's
//! request. After the answer of one upstream a call of another may follow, such as the judge of
//! tool calls.

use std::mem;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use creole::{CallId, Cancel, End, Failure, Head, Millis};
use worker::web_sys::Response;

use crate::call::{Sent, UpstreamBody};
use crate::environment::now;
use crate::http;
use crate::live::{self, Live};
use crate::source::{self, Pieces};
use crate::timer::Timer;

/// Time for which an upstream whose answer is finished may still end its body, in milliseconds. A
/// body that is cut off makes its connection useless for further requests; almost all bodies end in
/// the same packet.
const ENDING_MS: Millis = 100;

pub(crate) struct Answering {
    live: Box<Live>,
    /// Id of the newest call, to which `sent` and `upstream` belong.
    call: CallId,
    upstream: UpstreamBody,
    /// Call whose response head has not arrived yet, although the client has the head of its
    /// answer.
    sent: Option<Sent>,
    timer: Timer,
    /// Translated bytes that are ready for the client.
    out: Vec<u8>,
    /// Time until which the upstream may end its body by itself, once the exchange is over.
    ending: Option<Millis>,
}

/// Result of waiting for an upstream's response.
pub(crate) enum Answered {
    /// Response that is ready for the client.
    Response(Response),
    /// Exchange that needs another upstream call before the client gets an answer.
    Due(Box<Live>),
}

impl Answering {
    pub(crate) fn new(live: Box<Live>, call: CallId, upstream: UpstreamBody) -> Self {
        let (timer, out) = (Timer::default(), Vec::new());
        Self { live, call, upstream, sent: None, timer, out, ending: None }
    }

    /// Returns an answer that sends pings to the client while it waits for the head of an
    /// upstream's response.
    pub(crate) fn waiting(live: Box<Live>, sent: Sent) -> Self {
        let waiting = Self::new(live, sent.id, UpstreamBody::none());
        Self { sent: Some(sent), ..waiting }
    }

    /// Starts the response with this head. The remaining bytes follow as a streamed body.
    pub(crate) fn begin(mut self, head: &Head) -> Response {
        self.live.begin_answer();
        self.live.exchange.poll_body(&mut self.out);
        if self.live.exchange.is_ended() && self.upstream.is_over() {
            return http::response(head, &self.out);
        }
        let client = Rc::clone(&self.live.client);
        http::stream(head, &source::stream(&client, Box::new(self)))
    }

    /// Reads the upstream until the exchange gives the head of the answer, or needs another call.
    /// The remaining bytes follow as a streamed body.
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

    /// Sends the next upstream call, if one is due after the client already got the head of its
    /// answer.
    fn call_again(&mut self) {
        let exchange = &mut self.live.exchange;
        if !exchange.is_call_due() {
            return;
        }
        self.upstream.cut();
        let Some(call) = exchange.poll_call(now()) else { return };
        self.call = call.id;
        let sent = self
            .live
            .count_call(&call)
            .and_then(|()| Sent::new(self.live.exchange.config(), call).ok_or(Failure::NoRoute));
        match sent {
            Ok(sent) => self.sent = Some(sent),
            Err(failure) => self.live.fail_call(self.call, failure),
        }
    }

    /// Polls the call whose response head has not arrived yet; ready once no call is waiting for a
    /// head.
    fn poll_sent(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(mut sent) = self.sent.take() else { return Poll::Ready(()) };
        let exchange = &mut self.live.exchange;
        match sent.poll(exchange.config(), context) {
            Poll::Pending => {
                self.sent = Some(sent);
                return Poll::Pending;
            }
            Poll::Ready(Ok(response)) => self.upstream = sent.answered(&response, exchange),
            Poll::Ready(Err(failure)) => exchange.handle_call_failure(self.call, failure, now()),
        }
        Poll::Ready(())
    }

    /// Handles the next event: a chunk from the upstream, the end of the upstream's body, or a
    /// timeout.
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
                exchange.handle_call_body(self.call, &piece, now());
            }
            Poll::Ready(Some(Err(error))) => {
                live::warn(exchange.config(), || {
                    format!("the upstream's body broke off: {}", http::describe(&error))
                });
                exchange.handle_call_end(self.call, End::Aborted, now());
            }
            Poll::Ready(None) => exchange.handle_call_end(self.call, End::Complete, now()),
            Poll::Pending => {
                ready!(self.timer.poll(exchange.poll_timeout(), context));
                exchange.handle_timeout(now());
            }
        }
        exchange.poll_body(&mut self.out);
        // A complete answer goes to the client at once.
        if !exchange.is_ended()
            && let Err(failure) = self.live.count(self.out.len())
        {
            self.upstream.cut();
            self.live.exchange.handle_failure(failure, now());
            self.live.exchange.poll_body(&mut self.out);
        }
        Poll::Ready(())
    }

    /// Waits up to `ENDING_MS` after the end of the exchange for the upstream to end its body.
    fn poll_ending(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Some((id, cancel)) = self.live.exchange.poll_cancel() {
            if id == self.call && cancel == Cancel::Cut {
                self.upstream.cut();
            }
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
