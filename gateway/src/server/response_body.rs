//! Bodies of responses to clients: translated, passed on, or whole.
//!
//! The client's connection pulls a translated answer. Whenever the connection can take more, the
//! next chunk of the upstream is read, translated and returned as one write. There is no queue
//! between the two sides. So a slow client slows its upstream, and dropping the body drops the
//! upstream's connection.
//!
//! ```text
//!  client's connection ──poll_frame──▶ Answering ──poll_frame──▶ upstream's body
//!                                          │ └────poll──▶ timer (pings, stalls)
//!                                      Exchange
//! ```

use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use creole::{Call, CallId, Cancel, End, Exchange, Failure, Head};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::body::Incoming;
use tokio::time::Sleep;

use crate::headers;
use crate::page::Events;
use crate::server::budget::Held;
use crate::server::exchange::LiveExchange;
use crate::server::offload::{APART_BYTES, Offload};
use crate::upstream::call::{Caller, Sent};
use crate::upstream::decompress::{self, Broken};

/// Time to wait for the end of an upstream's body when the client has the whole answer. Most
/// servers send the end in a separate packet after `[DONE]`, and a connection can be reused only if
/// its body was read to the end.
const ENDING: Duration = Duration::from_millis(100);

/// Size, in bytes, from which output that waits for the client counts as memory. A stream that
/// flows has smaller chunks.
const GIVEN_BYTES: usize = 128 << 10;

/// Maximum size, in bytes, of a chunk of a whole answer. Several chunks are needed, because hyper
/// asks for the next chunk only if the client reads.
const PIECE_BYTES: usize = 64 << 10;

/// Size, in bytes, from which an event takes long to translate.
const EVENT_BYTES: usize = 1 << 20;

/// Body of a response to a client.
#[derive(Debug)]
pub(crate) enum Body {
    /// Body that is completely known before the head is sent.
    Whole(Bytes),
    /// Body that is translated while the upstream sends it.
    Translated(Box<Answering>),
    /// Body of the upstream, passed on unchanged.
    Passed { upstream: Incoming, live: Box<LiveExchange> },
    /// Server-sent events that update the gateway's web page.
    Events(Box<Events>),
}

impl Body {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(bytes.into())
    }
}

/// Result of handling an upstream's response.
#[derive(Debug)]
pub(crate) enum Answered {
    /// Response for the client.
    Response(Response<Body>),
    /// Another upstream call of the exchange is due; the exchange keeps its memory.
    Due(Box<LiveExchange>, Held),
}

/// Input of an exchange: a chunk of the upstream's answer, its end, a timeout or a failure.
enum Event {
    Piece(Bytes),
    End(End),
    /// The exchange's timer has expired.
    Due,
    Failed(Failure),
}

/// State that a translation on another thread returns.
struct Done {
    live: LiveExchange,
    held: Held,
    /// Upstream call that must be sent now.
    call: Option<Call>,
}

type Running = Pin<Box<dyn Future<Output = Done> + Send>>;

/// A response body that is translated while the upstream sends it.
pub(crate) struct Answering {
    /// The exchange; `None` while another thread translates.
    live: Option<LiveExchange>,
    running: Option<Running>,
    apart: Offload,
    caller: Arc<Caller>,
    /// Id of the newest upstream call, to which `sent` and `upstream` belong.
    call: CallId,
    /// An upstream call whose response head has not arrived, although the client already has its
    /// own head.
    sent: Option<Sent>,
    /// Size, in bytes, of the body of the call `sent`.
    sent_bytes: usize,
    /// Body of the upstream's response; `None` once it has ended.
    upstream: Option<decompress::DecompressedBody>,
    /// Memory of the kept part of the answer, and of the client's request body.
    held: Held,
    timer: Pin<Box<Sleep>>,
    out: Vec<u8>,
}

impl Answering {
    pub(crate) fn new(
        live: LiveExchange,
        call: CallId,
        (apart, caller): (Offload, Arc<Caller>),
        upstream: Option<decompress::DecompressedBody>,
        held: Held,
    ) -> Self {
        let timer = Box::pin(tokio::time::sleep_until(live.clock.instant(0)));
        let (live, out) = (Some(live), Vec::new());
        Self {
            live,
            running: None,
            apart,
            caller,
            call,
            sent: None,
            sent_bytes: 0,
            upstream,
            held,
            timer,
            out,
        }
    }

    /// Waits for the response head of an upstream call with a body of `sent_bytes` bytes, while the
    /// client gets pings.
    pub(crate) fn waiting(self, sent: Sent, sent_bytes: usize) -> Self {
        Self { sent: Some(sent), sent_bytes, ..self }
    }

    fn is_ended(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.exchange.is_ended())
    }

    /// Handles events until the exchange has a head for the client, or another call is due. Later
    /// events produce the body.
    pub(crate) async fn respond(mut self) -> Answered {
        loop {
            std::future::poll_fn(|context| self.poll_step(context)).await;
            let Some(mut live) = self.live.take() else { continue };
            let head = live.exchange.poll_head();
            if head.is_none() && live.exchange.is_call_due() {
                return Answered::Due(Box::new(live), self.held.take());
            }
            self.live = Some(live);
            let Some(head) = head else { continue };
            return Answered::Response(self.begin(head));
        }
    }

    /// Returns the response with its head. Later events produce its body.
    pub(crate) fn begin(mut self, head: Head) -> Response<Body> {
        self.held.begin_answer();
        self.settle();
        let body = if self.is_ended() {
            Body::whole(self.give())
        } else {
            Body::Translated(Box::new(self))
        };
        headers::response(head, body)
    }

    /// Runs `work` on the exchange, and sends the upstream call that results. `bytes` is the size
    /// of the translated input. Returns false if another thread does the work.
    fn work(
        &mut self,
        mut live: LiveExchange,
        bytes: usize,
        work: impl FnOnce(&mut LiveExchange) -> Option<Call> + Send + 'static,
    ) -> bool {
        if bytes < APART_BYTES {
            let call = work(&mut live);
            self.go_on(live, call);
            return true;
        }
        let (held, apart) = (self.held.take(), self.apart.clone());
        let job = move || {
            let call = work(&mut live);
            Done { live, held, call }
        };
        self.running = Some(Box::pin(async move { apart.run(bytes, job).await }));
        false
    }

    /// Continues after work on the exchange, and sends the upstream call that the work produced.
    fn go_on(&mut self, live: LiveExchange, call: Option<Call>) {
        self.live = Some(live);
        if let Some(call) = call {
            self.call = call.id;
            self.sent_bytes = call.body.len();
            self.sent = Some(self.caller.start(call));
        }
        self.settle();
    }

    /// Handles one event: a chunk of the upstream, its end, or a timeout.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(running) = &mut self.running {
                let done = ready!(running.as_mut().poll(context));
                (self.running, self.held) = (None, done.held);
                self.go_on(done.live, done.call);
                return Poll::Ready(());
            }
            // The client has the head of the answer, so the call that is due is the judge's, or a
            // call that follows pings.
            if let Some(live) = self.live.take_if(|live| live.exchange.is_call_due()) {
                let bytes = live.exchange.held_bytes();
                if self.work(live, bytes, poll_call) {
                    return Poll::Ready(());
                }
                continue;
            }
            let event = ready!(self.poll_event(context));
            let Some(live) = self.live.take() else { return Poll::Pending };
            let bytes = at_once(&live.exchange, &event);
            let id = self.call;
            let tell = move |live: &mut LiveExchange| {
                tell(live, id, event);
                None
            };
            if self.work(live, bytes, tell) {
                return Poll::Ready(());
            }
        }
    }

    /// Handles the response head of a later upstream call.
    fn begin_answer(&mut self, response: Response<Incoming>) {
        let Some(live) = &mut self.live else { return };
        let (head, upstream) = response.into_parts();
        let mut list = headers::list(&head.headers);
        self.upstream = Some(decompress::DecompressedBody::new(upstream, &mut list));
        live.exchange.handle_call_head(self.call, head.status.as_u16(), &list, live.clock.now());
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        if let Some(sent) = &mut self.sent
            && let Poll::Ready(answered) = sent.as_mut().poll(context)
        {
            self.end_sent();
            match answered {
                Ok(response) => self.begin_answer(response),
                Err(failure) => return Poll::Ready(Event::Failed(failure)),
            }
        }
        let Some(live) = &mut self.live else { return Poll::Pending };
        // The upstream goes first: after a long wait for a slow client, its bytes are there, and
        // the timer would call it stalled.
        if let Some(upstream) = &mut self.upstream
            && let Poll::Ready(polled) = upstream.poll_piece(context)
        {
            if let Some(Ok(piece)) = polled {
                return Poll::Ready(Event::Piece(piece));
            }
            self.upstream = None;
            return Poll::Ready(match polled {
                Some(Err(Broken::Connection(error))) => {
                    tracing::debug!("upstream's body broke off: {error}");
                    Event::End(End::Aborted)
                }
                Some(Err(Broken::Cut)) => Event::End(End::Aborted),
                Some(Err(Broken::Coding(error))) => {
                    tracing::debug!("upstream's body cannot be unpacked: {error}");
                    Event::Failed(Failure::Undecodable)
                }
                Some(Ok(_)) | None => Event::End(End::Complete),
            });
        }
        let Some(at) = live.exchange.poll_timeout() else { return Poll::Pending };
        let at = live.clock.instant(at);
        if self.timer.deadline() != at {
            self.timer.as_mut().reset(at);
        }
        ready!(self.timer.as_mut().poll(context));
        Poll::Ready(Event::Due)
    }

    /// Follows the state of the exchange after an event: drops the upstream's body or reads the
    /// body to its end, and takes the output for the client.
    fn settle(&mut self) {
        while let Some((id, cancel)) =
            self.live.as_mut().and_then(|live| live.exchange.poll_cancel())
        {
            match cancel {
                _ if id != self.call => {}
                Cancel::Cut => self.upstream = None,
                Cancel::ReadOut => self.end_upstream(),
            }
        }
        let Some(live) = &self.live else { return };
        if !live.exchange.is_ended() && !live.exchange.is_call_due() {
            self.hold();
        }
        if let Some(live) = &mut self.live {
            live.exchange.poll_body(&mut self.out);
        }
    }

    /// Updates the memory that counts for the exchange, and ends the exchange if there is not
    /// enough memory.
    fn hold(&mut self) {
        let Some(live) = &mut self.live else { return };
        let (free, sent) = (self.held.free(), self.sent_bytes);
        let kept =
            |exchange: &Exchange| exchange.held_bytes().saturating_add(sent).saturating_sub(free);
        if self.held.set(kept(&live.exchange)) {
            return;
        }
        live.exchange.forget_request_body();
        if !self.held.set(kept(&live.exchange)) {
            self.upstream = None;
            let now = live.clock.now();
            live.timed(|exchange| exchange.handle_failure(Failure::Overloaded, now));
            self.end_sent();
        }
    }

    /// Forgets an upstream call whose response head has arrived, or which was cancelled.
    fn end_sent(&mut self) {
        self.sent = None;
        self.sent_bytes = 0;
    }

    /// Takes the output for the client. A large output, and the last one, counts as memory until
    /// the client has read it.
    fn give(&mut self) -> Bytes {
        let out = mem::take(&mut self.out);
        if out.len() < GIVEN_BYTES && !self.is_ended() {
            return out.into();
        }
        // The output already exists, so a full memory budget changes nothing.
        let _ = self.held.set(out.len());
        self.held.with(out)
    }

    /// Reads the end of the upstream's body in a separate task, so that the client does not wait
    /// for it.
    fn end_upstream(&mut self) {
        let Some(upstream) = self.upstream.take() else { return };
        let mut upstream = upstream.into_body();
        tokio::spawn(tokio::time::timeout(ENDING, async move {
            while let Some(Ok(_)) = upstream.frame().await {}
        }));
    }
}

/// Returns the number of bytes that the exchange must translate at once because of an event.
fn at_once(exchange: &Exchange, event: &Event) -> usize {
    match event {
        Event::End(_) | Event::Due if exchange.is_collecting() => {
            exchange.answer_bytes().max(exchange.refused_bytes())
        }
        Event::End(_) | Event::Due => exchange.refused_bytes(),
        // A chunk of the answer may complete an event of some megabytes.
        Event::Piece(piece) if exchange.answer_bytes() >= EVENT_BYTES && piece.contains(&b'\n') => {
            exchange.answer_bytes()
        }
        _ => 0,
    }
}

/// Takes the upstream call that is due, if any.
fn poll_call(live: &mut LiveExchange) -> Option<Call> {
    let now = live.clock.now();
    live.timed(|exchange| exchange.poll_call(now))
}

/// Passes an event to the exchange.
fn tell(live: &mut LiveExchange, id: CallId, event: Event) {
    let now = live.clock.now();
    live.timed(|exchange| match event {
        Event::Piece(piece) => exchange.handle_call_body(id, &piece, now),
        Event::End(end) => exchange.handle_call_end(id, end, now),
        Event::Due => exchange.handle_timeout(now),
        Event::Failed(failure) => exchange.handle_call_failure(id, failure, now),
    });
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
            Self::Whole(bytes) => {
                let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Self::Passed { upstream, live } => {
                let polled = Pin::new(upstream).poll_frame(context);
                if let Poll::Ready(Some(Err(error))) = &polled {
                    tracing::debug!("upstream's body broke off: {error}");
                    "the upstream's body broke off".clone_into(&mut live.request.details);
                }
                polled
            }
            Self::Events(events) => {
                events.poll_next(context).map(|event| event.map(|event| Ok(Frame::data(event))))
            }
            Self::Translated(answering) => loop {
                if !answering.out.is_empty() {
                    return Poll::Ready(Some(Ok(Frame::data(answering.give()))));
                }
                if answering.is_ended() {
                    (answering.upstream, answering.sent) = (None, None);
                    return Poll::Ready(None);
                }
                // The head of the answer was already returned, so no other head comes.
                ready!(answering.poll_step(context));
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Passed { upstream, .. } => upstream.is_end_stream(),
            Self::Events(_) => false,
            Self::Translated(answering) => answering.out.is_empty() && answering.is_ended(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Passed { upstream, .. } => upstream.size_hint(),
            Self::Translated(_) | Self::Events(_) => SizeHint::default(),
        }
    }
}
