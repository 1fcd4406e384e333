//! The answer on its way to the client.
//!
//! The client's side pulls: when it can take more, the next piece of the upstream is read, translated
//! and given away as one write (the runtime's cost is per write). There is no queue between the two
//! sides, so a slow client slows its upstream, and dropping the answer aborts the upstream's request.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use creole::{End, Failure, Head, Millis, UpstreamRequest};
use futures_util::Stream as _;
use worker::web_sys::{ReadableStream, Response};
use worker::{AbortController, ByteStream};

use crate::budget::Held;
use crate::environment::now;
use crate::http;
use crate::live::{self, Live};
use crate::source;
use crate::timer::Timer;

/// How long an upstream that has said everything may take to end its body. One that is cut off
/// cannot use its connection again; almost all end in the same packet.
const ENDING_MS: Millis = 100;

pub(crate) struct Answering {
    live: Live,
    upstream: UpstreamBody,
    timer: Timer,
    /// What it holds while it collects.
    held: Held,
    /// The client's body, while the upstream may still refuse it.
    again: Option<Vec<u8>>,
    /// The client has no head: what comes is kept, until it is known what the answer is.
    collects: bool,
    /// Bytes for the client.
    out: Vec<u8>,
    /// Until when the upstream may end by itself, once the exchange is over.
    ending: Option<Millis>,
}

/// What comes of an upstream's response.
pub(crate) enum Answered {
    /// The response for the client.
    Response(Response),
    /// The upstream refused, and is asked again.
    Again(Box<Retry>),
}

/// One more request, and what it needs.
pub(crate) struct Retry {
    pub(crate) live: Live,
    pub(crate) request: UpstreamRequest,
    pub(crate) held: Held,
    /// The client's body: the upstream may refuse something else, too.
    pub(crate) again: Option<Vec<u8>>,
}

/// What comes of one step beside bytes for the client.
enum Step {
    /// The head for the client.
    Head(Head),
    /// The upstream refused, and is asked again with this.
    Again(UpstreamRequest),
}

/// The upstream's body, and what aborts its request; nothing once it is over. Dropped before its end, it
/// aborts the request.
pub(crate) struct UpstreamBody(Option<(ByteStream, AbortController)>);

impl UpstreamBody {
    pub(crate) fn new(body: Option<ReadableStream>, abort: AbortController) -> Self {
        Self(body.map(|body| (ByteStream::from(body), abort)))
    }

    fn is_over(&self) -> bool {
        self.0.is_none()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<worker::Result<Vec<u8>>>> {
        let Some((body, _)) = &mut self.0 else { return Poll::Ready(None) };
        let piece = ready!(Pin::new(body).poll_next(context));
        if !matches!(piece, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(piece)
    }

    fn cut(&mut self) {
        if let Some((_, abort)) = self.0.take() {
            abort.abort();
        }
    }
}

impl Drop for UpstreamBody {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Answering {
    /// `again` is the client's body, for one more request where this one is refused.
    pub(crate) fn new(
        live: Live,
        upstream: UpstreamBody,
        held: Held,
        again: Option<Vec<u8>>,
    ) -> Self {
        Self {
            live,
            upstream,
            timer: Timer::default(),
            held,
            again,
            collects: true,
            out: Vec::new(),
            ending: None,
        }
    }

    /// Reads until the exchange says what the head is. The rest follows as the body.
    pub(crate) async fn respond(mut self) -> Answered {
        let head = loop {
            match std::future::poll_fn(|context| self.poll_step(context)).await {
                Some(Step::Head(head)) => break head,
                Some(Step::Again(request)) => {
                    let max = self.live.exchange.config().settings.buffered_bytes_max;
                    let Self { live, held, again, .. } = self;
                    held.release();
                    let again = again.filter(|body| held.grow(body.len(), max, now()));
                    return Answered::Again(Box::new(Retry { live, request, held, again }));
                }
                None if self.live.exchange.is_ended() => {
                    let reply = self.live.exchange.reply_without_head();
                    return Answered::Response(http::response(&reply.head, &reply.body));
                }
                None => {}
            }
        };
        self.collects = false;
        self.again = None;
        self.held.release();
        if self.live.exchange.is_ended() && self.upstream.is_over() {
            return Answered::Response(http::response(&head, &self.out));
        }
        Answered::Response(http::stream(&head, &source::stream(self)))
    }

    /// One thing happens: a piece of the upstream, its end, or a timeout.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Option<Step>> {
        let exchange = &mut self.live.exchange;
        // The upstream goes first: after a long wait for a slow client, its bytes are there, and the
        // timer would call it stalled.
        let head = match self.upstream.poll(context) {
            Poll::Ready(Some(Ok(piece))) => {
                let now = now();
                let max = exchange.config().settings.buffered_bytes_max;
                let collects = self.collects || exchange.is_collecting();
                if collects && !self.held.grow(piece.len(), max, now) {
                    self.upstream.cut();
                    exchange.handle_failure(Failure::Overloaded, now, &mut self.out)
                } else {
                    exchange.handle_response_body(&piece, now, &mut self.out)
                }
            }
            Poll::Ready(Some(Err(error))) => {
                live::warn(exchange.config(), || format!("the upstream's body broke off: {error}"));
                exchange.handle_response_end(End::Aborted, now(), &mut self.out)
            }
            Poll::Ready(None) => exchange.handle_response_end(End::Complete, now(), &mut self.out),
            Poll::Pending => {
                ready!(self.timer.poll(exchange.poll_timeout(), context));
                exchange.handle_timeout(now(), &mut self.out)
            }
        };
        if exchange.wants_retry() {
            return Poll::Ready(self.ask_again());
        }
        Poll::Ready(head.map(Step::Head))
    }

    /// The upstream refused what a second request may leave out.
    fn ask_again(&mut self) -> Option<Step> {
        let (exchange, now) = (&mut self.live.exchange, now());
        let body = self.again.as_deref();
        if let Some(request) = body.and_then(|body| exchange.handle_retry(body, now)) {
            return Some(Step::Again(request));
        }
        exchange.handle_response_end(End::Complete, now, &mut self.out).map(Step::Head)
    }

    /// The next bytes for the client, or `None` when it has everything.
    pub(crate) fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
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
            // The head is out: neither another nor one more request comes any more.
            let _ = ready!(self.poll_step(context));
        }
    }

    /// The exchange is over: lets the upstream end its body, for a moment.
    fn poll_ending(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.live.exchange.leaves_upstream() {
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
