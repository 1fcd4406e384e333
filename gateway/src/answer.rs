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

use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use creole::{End, Exchange, Failure, Head, UpstreamRequest};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::Sleep;

use crate::apart::{APART_BYTES, Apart};
use crate::budget::Held;
use crate::inflate::{self, Broken};
use crate::live::{self, Live};

/// How long the end of an upstream's body is waited for when the client has everything. Most servers
/// send it in a packet of its own after `[DONE]`, and a connection whose body was not read to its end
/// cannot serve again.
const ENDING: Duration = Duration::from_millis(100);

/// From this size on, bytes that wait for their client are counted. A stream that flows gives smaller ones.
const GIVEN_BYTES: usize = 128 << 10;

/// An event of this size takes long to translate.
const EVENT_BYTES: usize = 1 << 20;

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
#[derive(Debug)]
enum Step {
    /// The head for the client.
    Head(Head),
    /// The upstream refused, and is asked again with this.
    Again(UpstreamRequest),
}

/// What the exchange is told.
enum Event {
    Piece(Bytes),
    End(End),
    /// The time of its timer has come.
    Due,
    Failed(Failure),
    /// What the upstream sends cannot be unpacked.
    Undecodable,
    /// It wants to ask the upstream again.
    Refused,
}

/// What a translation on another thread gives back.
struct Done {
    live: Live,
    held: Held,
    again: Option<Vec<u8>>,
    out: Vec<u8>,
    step: Option<Step>,
}

type Running = Pin<Box<dyn Future<Output = Done> + Send>>;

/// An answer that is being translated.
pub(crate) struct Answering {
    /// `None` while another thread translates.
    live: Option<Live>,
    running: Option<Running>,
    apart: Apart,
    /// `None` once it is over.
    upstream: Option<inflate::Answer>,
    /// What is kept of the answer, and the client's body.
    held: Held,
    /// The client's body, while the upstream may still refuse it.
    again: Option<Vec<u8>>,
    /// The client has no head: what comes is kept, until it is known what the answer is.
    collects: bool,
    timer: Pin<Box<Sleep>>,
    out: Vec<u8>,
}

impl Answering {
    /// `again` is the client's body, for one more request where this one is refused.
    pub(crate) fn new(
        live: Live,
        apart: Apart,
        upstream: inflate::Answer,
        held: Held,
        again: Option<Vec<u8>>,
    ) -> Self {
        let timer = Box::pin(tokio::time::sleep_until(live.clock.instant(0)));
        let (live, upstream, out) = (Some(live), Some(upstream), Vec::new());
        Self { live, running: None, apart, upstream, held, again, collects: true, timer, out }
    }

    fn is_ended(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.exchange.is_ended())
    }

    /// Reads until the exchange says what the head is. The rest follows as the body.
    pub(crate) async fn respond(mut self) -> Answered {
        let head = loop {
            let step = std::future::poll_fn(|context| self.poll_step(context)).await;
            match (step, &self.live) {
                (Some(Step::Head(head)), _) => break head,
                (Some(Step::Again(request)), _) => {
                    let Some(live) = self.live.take() else { continue };
                    let mut held = self.held.take();
                    let again = self.again.take().filter(|body| held.set(body.len()));
                    return Answered::Again(Box::new(Retry { live, request, held, again }));
                }
                (None, Some(live)) if live.exchange.is_ended() => {
                    let reply = live.exchange.reply_without_head();
                    return Answered::Response(live::response(reply.head, Body::whole(reply.body)));
                }
                (None, _) => {}
            }
        };
        if self.is_ended() {
            return Answered::Response(live::response(head, Body::whole(self.give())));
        }
        self.collects = false;
        self.again = None;
        Answered::Response(live::response(head, Body::Translated(Box::new(self))))
    }

    /// One thing happens: a piece of the upstream, its end, or a timeout.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Option<Step>> {
        loop {
            let step = match &mut self.running {
                Some(running) => {
                    let done = ready!(running.as_mut().poll(context));
                    self.take_back(done)
                }
                None => {
                    let event = ready!(self.poll_event(context));
                    let Some(bytes) = self.long(&event) else {
                        let step = self.handle(event);
                        if step.is_none() && self.wants_retry() {
                            continue;
                        }
                        return Poll::Ready(step);
                    };
                    self.run_apart(event, bytes);
                    continue;
                }
            };
            if step.is_some() || !self.wants_retry() {
                return Poll::Ready(step);
            }
        }
    }

    fn wants_retry(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.exchange.wants_retry())
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        let Some(live) = &mut self.live else { return Poll::Pending };
        if live.exchange.wants_retry() {
            return Poll::Ready(Event::Refused);
        }
        // The upstream goes first: after a long wait for a slow client, its bytes are there, and the
        // timer would call it stalled.
        if let Some(upstream) = &mut self.upstream {
            match upstream.poll_piece(context) {
                Poll::Ready(Some(Ok(piece))) => return Poll::Ready(Event::Piece(piece)),
                Poll::Ready(Some(Err(broken))) => {
                    self.upstream = None;
                    return Poll::Ready(match broken {
                        Broken::Connection(error) => {
                            tracing::debug!("upstream's body broke off: {error}");
                            Event::End(End::Aborted)
                        }
                        Broken::Cut => Event::End(End::Aborted),
                        Broken::Coding(error) => {
                            tracing::debug!("upstream's body cannot be unpacked: {error}");
                            Event::Undecodable
                        }
                    });
                }
                Poll::Ready(None) => {
                    self.upstream = None;
                    return Poll::Ready(Event::End(End::Complete));
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
        Poll::Ready(Event::Due)
    }

    /// How much is translated at once, where that is so much that streams of this thread would wait.
    fn long(&self, event: &Event) -> Option<usize> {
        let exchange = &self.live.as_ref()?.exchange;
        let bytes = match event {
            Event::End(_) | Event::Due if exchange.is_collecting() => exchange.held_bytes(),
            Event::Refused => self.again.as_ref()?.len(),
            // It may complete an event of some megabytes.
            Event::Piece(piece)
                if exchange.held_bytes() >= EVENT_BYTES && piece.contains(&b'\n') =>
            {
                exchange.held_bytes()
            }
            _ => 0,
        };
        (bytes >= APART_BYTES).then_some(bytes)
    }

    fn run_apart(&mut self, event: Event, bytes: usize) {
        let Some(mut live) = self.live.take() else { return };
        let (held, again, mut out) =
            (self.held.take(), self.again.take(), mem::take(&mut self.out));
        let apart = self.apart.clone();
        let job = move || {
            let step = tell(&mut live, event, again.as_deref(), &mut out);
            Done { live, held, again, out, step }
        };
        self.running = Some(Box::pin(async move { apart.run(bytes, job).await }));
    }

    fn take_back(&mut self, done: Done) -> Option<Step> {
        let Done { live, held, again, out, step } = done;
        self.running = None;
        (self.live, self.held, self.again, self.out) = (Some(live), held, again, out);
        self.settle(step)
    }

    fn handle(&mut self, event: Event) -> Option<Step> {
        let Some(live) = &mut self.live else { return None };
        let step = tell(live, event, self.again.as_deref(), &mut self.out);
        self.settle(step)
    }

    /// What is to be done when the exchange was told something.
    fn settle(&mut self, step: Option<Step>) -> Option<Step> {
        let exchange = &self.live.as_ref()?.exchange;
        if exchange.leaves_upstream() {
            self.upstream = None;
        } else if exchange.wants_retry() || exchange.is_ended() {
            self.end_upstream();
        }
        if step.is_some() { step } else { self.hold() }
    }

    /// Counts what is kept of the answer. Gives the head of an error where that is too much.
    fn hold(&mut self) -> Option<Step> {
        let live = self.live.as_mut()?;
        if live.exchange.is_ended() {
            return None;
        }
        let collected = if self.collects { self.out.len() } else { 0 };
        let kept = live.exchange.held_bytes().saturating_add(collected);
        let kept = kept.saturating_sub(self.held.free());
        let again = self.again.as_ref().map_or(0, Vec::len);
        if self.held.set(kept.saturating_add(again)) {
            return None;
        }
        self.again = None;
        if self.held.set(kept) {
            return None;
        }
        self.upstream = None;
        tell(live, Event::Failed(Failure::Overloaded), None, &mut self.out)
    }

    /// What is there for the client. Where that is much, it is counted until the client has it.
    fn give(&mut self) -> Bytes {
        let out = mem::take(&mut self.out);
        // It is here already: a budget without room for it changes nothing.
        if out.len() < GIVEN_BYTES || !self.held.set(out.len()) {
            return if self.is_ended() { self.held.with(out) } else { out.into() };
        }
        self.held.with(out)
    }

    /// Its end is read in a task of its own: the client does not wait for it.
    fn end_upstream(&mut self) {
        let Some(upstream) = self.upstream.take() else { return };
        let mut upstream = upstream.into_body();
        tokio::spawn(tokio::time::timeout(ENDING, async move {
            while let Some(Ok(_)) = upstream.frame().await {}
        }));
    }
}

/// Tells the exchange what happened.
fn tell(live: &mut Live, event: Event, again: Option<&[u8]>, out: &mut Vec<u8>) -> Option<Step> {
    let now = live.clock.now();
    let head = match event {
        Event::Piece(piece) => {
            live.timed(|exchange| exchange.handle_response_body(&piece, now, out))
        }
        Event::End(end) => live.timed(|exchange| exchange.handle_response_end(end, now, out)),
        Event::Due => live.timed(|exchange| exchange.handle_timeout(now, out)),
        Event::Failed(failure) => live.exchange.handle_failure(failure, now, out),
        // Its status says more.
        Event::Undecodable if live.refused => {
            live.timed(|exchange| exchange.handle_response_end(End::Complete, now, out))
        }
        Event::Undecodable => live.exchange.handle_failure(Failure::Undecodable, now, out),
        Event::Refused => {
            let retry = |exchange: &mut Exchange| exchange.handle_retry(again?, now);
            if let Some(request) = live.timed(retry) {
                return Some(Step::Again(request));
            }
            live.timed(|exchange| exchange.handle_response_end(End::Complete, now, out))
        }
    };
    head.map(Step::Head)
}

impl fmt::Debug for Answering {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Answering").field("live", &self.live).finish_non_exhaustive()
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
                    return Poll::Ready(Some(Ok(Frame::data(answering.give()))));
                }
                if answering.is_ended() {
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
            Self::Translated(answering) => answering.out.is_empty() && answering.is_ended(),
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
