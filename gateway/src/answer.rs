//! The bodies of responses.
//!
//! A translated answer is pulled by the client's connection: when that can take more, the next piece
//! of the upstream is read, translated and given away as one write. There is no queue between the two
//! sides, so a slow client slows its upstream, and dropping the body drops the upstream's connection.
//!
//! ```text
//!  client's connection ──poll_frame──▶ Answering ──poll_frame──▶ upstream's body
//!                                          │ └────poll──▶ timer (pings, stalls)
//!                                      Exchange
//! ```

use std::future::Future as _;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use creole::{End, Exchange, Failure, Head, UpstreamRequest};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::Sleep;

use crate::budget::Held;
use crate::live::{self, Live};

/// How long the end of an upstream's body is waited for when the client has everything. Most servers
/// send it in a packet of its own after `[DONE]`, and a connection whose body was not read to its end
/// cannot serve again.
const ENDING: Duration = Duration::from_millis(100);

/// The body of a response.
#[derive(Debug)]
pub(crate) enum Body {
    /// Known as a whole.
    Whole(Bytes),
    /// Translated as the upstream sends it.
    Translated(Box<Answering>),
    /// The upstream's own.
    Passed { upstream: Incoming, live: Box<Live> },
}

impl Body {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(bytes.into())
    }
}

/// What comes of an upstream's response.
#[derive(Debug)]
pub(crate) enum Answered {
    /// The response for the client.
    Response(hyper::Response<Body>),
    /// The upstream refused, and is asked again.
    Again(Box<Retry>),
}

/// One more request, and what it needs.
#[derive(Debug)]
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

/// An answer that is being translated.
#[derive(Debug)]
pub(crate) struct Answering {
    live: Live,
    /// `None` once it is over.
    upstream: Option<Incoming>,
    /// What it holds while it collects.
    held: Held,
    /// The client's body, while the upstream may still refuse it.
    again: Option<Vec<u8>>,
    /// The client has no head: what comes is kept, until it is known what the answer is.
    collects: bool,
    timer: Pin<Box<Sleep>>,
    /// Bytes for the client.
    out: Vec<u8>,
}

impl Answering {
    /// `again` is the client's body, for one more request where this one is refused.
    pub(crate) fn new(live: Live, upstream: Incoming, held: Held, again: Option<Vec<u8>>) -> Self {
        let timer = Box::pin(tokio::time::sleep_until(live.clock.instant(0)));
        let (upstream, out) = (Some(upstream), Vec::new());
        Self { live, upstream, held, again, collects: true, timer, out }
    }

    /// Reads until the exchange says what the head is. The rest follows as the body.
    pub(crate) async fn respond(mut self) -> Answered {
        let head = loop {
            match std::future::poll_fn(|context| self.poll_step(context)).await {
                Some(Step::Head(head)) => break head,
                Some(Step::Again(request)) => {
                    let Self { live, mut held, again, .. } = self;
                    held.release();
                    let again = again.filter(|body| held.grow(body.len()));
                    return Answered::Again(Box::new(Retry { live, request, held, again }));
                }
                None if self.live.exchange.is_ended() => {
                    let reply = self.live.exchange.reply_without_head();
                    return Answered::Response(live::response(reply.head, Body::whole(reply.body)));
                }
                None => {}
            }
        };
        if self.live.exchange.is_ended() {
            return Answered::Response(live::response(head, Body::whole(self.out)));
        }
        self.collects = false;
        self.again = None;
        self.held.release();
        Answered::Response(live::response(head, Body::Translated(Box::new(self))))
    }

    /// One thing happens: a piece of the upstream, its end, or a timeout.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Option<Step>> {
        let head = ready!(self.poll_head(context));
        if self.live.exchange.wants_retry() {
            return Poll::Ready(self.ask_again());
        }
        Poll::Ready(head.map(Step::Head))
    }

    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<Option<Head>> {
        let now = self.live.clock.now();
        let Self { live, out, .. } = self;
        // The upstream goes first: after a long wait for a slow client, its bytes are there, and the
        // timer would call it stalled.
        if let Some(upstream) = &mut self.upstream {
            match Pin::new(upstream).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(piece) = frame.into_data() else { return Poll::Ready(None) };
                    let collects = self.collects || live.exchange.is_collecting();
                    if collects && !self.held.grow(piece.len()) {
                        self.upstream = None;
                        let failure = Failure::Overloaded;
                        return Poll::Ready(live.exchange.handle_failure(failure, now, out));
                    }
                    let take =
                        |exchange: &mut Exchange| exchange.handle_response_body(&piece, now, out);
                    let head = live.timed(take);
                    if live.exchange.leaves_upstream() {
                        self.upstream = None;
                    } else if live.exchange.wants_retry() || live.exchange.is_ended() {
                        self.end_upstream();
                    }
                    return Poll::Ready(head);
                }
                Poll::Ready(Some(Err(error))) => {
                    tracing::debug!("upstream's body broke off: {error}");
                    self.upstream = None;
                    return Poll::Ready(live.exchange.handle_response_end(End::Aborted, now, out));
                }
                Poll::Ready(None) => {
                    self.upstream = None;
                    let end = |exchange: &mut Exchange| {
                        exchange.handle_response_end(End::Complete, now, out)
                    };
                    return Poll::Ready(live.timed(end));
                }
                Poll::Pending => {}
            }
        }
        let Some(at) = live.exchange.poll_timeout() else { return Poll::Pending };
        let at = live.clock.instant(at);
        if self.timer.deadline() != at {
            self.timer.as_mut().reset(at);
        }
        ready!(self.timer.as_mut().poll(context));
        Poll::Ready(live.exchange.handle_timeout(now, out))
    }

    /// The upstream refused what a second request may leave out.
    fn ask_again(&mut self) -> Option<Step> {
        let Self { live, out, .. } = self;
        let now = live.clock.now();
        let body = self.again.as_deref();
        if let Some(request) = body.and_then(|body| live.exchange.handle_retry(body, now)) {
            return Some(Step::Again(request));
        }
        live.exchange.handle_response_end(End::Complete, now, out).map(Step::Head)
    }

    /// Its end is read in a task of its own: the client does not wait for it.
    fn end_upstream(&mut self) {
        let Some(mut upstream) = self.upstream.take() else { return };
        tokio::spawn(tokio::time::timeout(ENDING, async move {
            while let Some(Ok(_)) = upstream.frame().await {}
        }));
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(mem::take(bytes))))),
            Self::Passed { upstream, live } => {
                let polled = Pin::new(upstream).poll_frame(context);
                if let Poll::Ready(Some(Err(error))) = &polled {
                    tracing::debug!("upstream's body broke off: {error}");
                    "the upstream's body broke off".clone_into(&mut live.request.details);
                }
                polled
            }
            Self::Translated(answering) => loop {
                if !answering.out.is_empty() {
                    let out = mem::take(&mut answering.out);
                    return Poll::Ready(Some(Ok(Frame::data(out.into()))));
                }
                if answering.live.exchange.is_ended() {
                    answering.upstream = None;
                    return Poll::Ready(None);
                }
                // The head is out: neither another nor one more request comes any more.
                let _ = ready!(answering.poll_step(context));
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Passed { upstream, .. } => upstream.is_end_stream(),
            Self::Translated(answering) => {
                answering.out.is_empty() && answering.live.exchange.is_ended()
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Passed { upstream, .. } => upstream.size_hint(),
            Self::Translated(_) => SizeHint::default(),
        }
    }
}
