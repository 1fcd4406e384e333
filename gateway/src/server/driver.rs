//! Driver of an exchange: makes its calls, passes in what comes of them, and gives the client's
//! response, before its head as well as after.
//!
//! The client's connection pulls the body of the response. Whenever the connection can take more,
//! the next event of a call is translated and returned as one write. There is no queue between the
//! two sides. So a slow client slows its upstream, and dropping the driver drops the calls.
//!
//! ```text
//!  client's connection ──poll_chunk──▶ Driver ──poll_event──▶ open calls
//!                                       │ └────poll──▶ timer (pings, stalls)
//!                                   Exchange
//! ```

use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use creole::{Call, CallId, End, Exchange, Failure, Head, Owner};
use tokio::time::Sleep;

use crate::documents::WantedText;
use crate::server::budget::Held;
use crate::server::exchange::LiveExchange;
use crate::server::offload::{APART_BYTES, TURN_BYTES};
use crate::server::open_calls::{CallEvent, Means, OpenCalls};

/// Size, in bytes, from which output that waits for the client counts as memory. A stream that
/// flows has smaller chunks.
const GIVEN_BYTES: usize = 128 << 10;

/// Size, in bytes, from which an event takes long to translate.
const EVENT_BYTES: usize = 1 << 20;

/// Exchange with its open calls, whose response is pulled.
pub(crate) struct Driver {
    /// The exchange; `None` while `running` has it.
    live: Option<LiveExchange>,
    /// Translation that waits for its turn, or runs on another thread.
    running: Option<Running>,
    means: Arc<Means>,
    /// Client to which the calls are attributed.
    owner: Owner,
    calls: OpenCalls,
    /// Memory of the client's request body, of requests that are sent, and of kept parts of
    /// answers.
    held: Held,
    timer: Pin<Box<Sleep>>,
    /// True once the client has the head of its response.
    has_head: bool,
    out: Vec<u8>,
}

type Running = Pin<Box<dyn Future<Output = Done> + Send>>;

/// Result of a translation. Its memory counts until the end, even if the client disconnects.
struct Done {
    live: LiveExchange,
    held: Held,
    due: Vec<DueCall>,
}

/// Call that is made next, with the document if one is to be read.
type DueCall = (Call, Option<WantedText>);

impl Driver {
    /// Returns the driver of an exchange that has its whole request. `held` is the memory of the
    /// request's body.
    pub(crate) fn new(live: LiveExchange, held: Held, owner: Owner, means: Arc<Means>) -> Self {
        let timer = Box::pin(tokio::time::sleep_until(live.clock.instant(0)));
        let (live, calls, out) = (Some(live), OpenCalls::default(), Vec::new());
        Self { live, running: None, means, owner, calls, held, timer, has_head: false, out }
    }

    /// Returns true if the client has everything but the bytes in `out`.
    fn is_ended(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.exchange.is_ended())
    }

    /// Returns true if the client has the whole response.
    pub(crate) fn is_over(&self) -> bool {
        self.out.is_empty() && self.is_ended()
    }

    /// Handles events until the exchange has a head for the client.
    pub(crate) async fn head(&mut self) -> Head {
        loop {
            let live = self.live.as_mut();
            if let Some(head) = live.and_then(|live| live.exchange.poll_head()) {
                self.has_head = true;
                self.held.begin_answer();
                self.settle();
                return head;
            }
            poll_fn(|context| self.poll_step(context)).await;
        }
    }

    /// Returns the body, if the response is complete.
    pub(crate) fn whole(&mut self) -> Option<Bytes> {
        self.is_ended().then(|| self.give())
    }

    /// Notes that the body of the answer is on its way.
    pub(crate) fn begin_stream(&mut self) {
        if let Some(live) = &mut self.live {
            live.begin_stream();
        }
    }

    /// Handles events until there are bytes for the client; `None` at the end of the response.
    pub(crate) fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            if !self.out.is_empty() {
                return Poll::Ready(Some(self.give()));
            }
            if self.is_ended() {
                self.calls.clear();
                return Poll::Ready(None);
            }
            ready!(self.poll_step(context));
        }
    }

    /// Makes the calls that are due, or handles one event.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(live) = self.live.take_if(|live| live.exchange.is_call_due()) {
            let bytes = live.exchange.held_bytes();
            self.work(live, bytes, poll_calls);
        } else if self.running.is_none() {
            let event = ready!(self.poll_event(context));
            let Some(live) = self.live.take() else { return Poll::Pending };
            let bytes = at_once(&live.exchange, &event);
            self.work(live, bytes, move |live| {
                tell(live, event);
                Vec::new()
            });
        }
        if let Some(running) = &mut self.running {
            let done = ready!(running.as_mut().poll(context));
            (self.running, self.held) = (None, done.held);
            self.go_on(done.live, done.due);
        }
        Poll::Ready(())
    }

    /// Returns the next event with the id of its call; `None` is a timeout of the exchange.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<(CallId, CallEvent)>> {
        let Some(live) = &self.live else { return Poll::Pending };
        // The calls go first: after a long wait for a slow client, the bytes of an upstream are
        // there, and the timer would call the upstream stalled.
        if let Poll::Ready(event) = self.calls.poll_event(context) {
            return Poll::Ready(Some(event));
        }
        let Some(at) = live.exchange.poll_timeout() else { return Poll::Pending };
        let at = live.clock.instant(at);
        if self.timer.deadline() != at {
            self.timer.as_mut().reset(at);
        }
        self.timer.as_mut().poll(context).map(|()| None)
    }

    /// Runs `work` on the exchange at once, or as the future `running`. `bytes` is the size of the
    /// translated input.
    fn work(
        &mut self,
        mut live: LiveExchange,
        bytes: usize,
        work: impl FnOnce(&mut LiveExchange) -> Vec<DueCall> + Send + 'static,
    ) {
        // A body that its client does not read must not keep others from their turn.
        if bytes < if self.has_head { APART_BYTES } else { TURN_BYTES } {
            let due = work(&mut live);
            return self.go_on(live, due);
        }
        let (held, means) = (self.held.take(), Arc::clone(&self.means));
        let job = move || {
            let due = work(&mut live);
            Done { live, held, due }
        };
        self.running = Some(Box::pin(async move { means.translations.run(bytes, job).await }));
    }

    /// Continues after work on the exchange, and opens the calls that are due.
    fn go_on(&mut self, live: LiveExchange, due: Vec<DueCall>) {
        for (call, wanted) in due {
            match wanted {
                None => self.calls.send(call, self.owner, &self.means),
                Some(wanted) => {
                    let until = live.clock.instant(wanted.until());
                    self.calls.read((call.id, wanted), until, self.owner, &self.means);
                }
            }
        }
        self.live = Some(live);
        self.settle();
    }

    /// Follows the state of the exchange after an event: ends cancelled calls, counts memory, and
    /// takes the output for the client.
    fn settle(&mut self) {
        let Some(live) = &mut self.live else { return };
        while let Some((id, cancel)) = live.exchange.poll_cancel() {
            self.calls.cancel(id, cancel);
            if let Some(spans) = &mut live.spans {
                spans.end_call(id, None);
            }
        }
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
        let sent = self.calls.sent_bytes();
        // A request that does not fit is refused, so that its client sends it again later.
        let is_strict = sent > 0 && !self.has_head;
        let free = if is_strict { 0 } else { self.held.free() };
        let kept =
            |exchange: &Exchange| exchange.held_bytes().saturating_add(sent).saturating_sub(free);
        let mut fits = self.held.set(kept(&live.exchange));
        if !fits && !is_strict {
            live.exchange.forget_request_body();
            fits = self.held.set(kept(&live.exchange));
        }
        if !fits {
            self.calls.clear();
            let now = live.clock.now();
            live.timed(|exchange| exchange.handle_failure(Failure::Overloaded, now));
        }
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
}

/// Takes the calls that are due.
fn poll_calls(live: &mut LiveExchange) -> Vec<DueCall> {
    let now = live.clock.now();
    let mut due = Vec::new();
    while let Some(mut call) = live.timed(|exchange| exchange.poll_call(now)) {
        let limits = &live.exchange.config().settings.read_documents;
        let wanted = WantedText::of(&mut call, limits);
        if let Some(spans) = &mut live.spans {
            spans.begin_call(&mut call, live.exchange.config());
        }
        due.push((call, wanted));
    }
    due
}

/// Passes an event of a call, or a timeout, to the exchange.
fn tell(live: &mut LiveExchange, event: Option<(CallId, CallEvent)>) {
    let now = live.clock.now();
    if let (Some(spans), Some((id, event))) = (&mut live.spans, &event) {
        match event {
            CallEvent::Head(status, _) => spans.note_status(*id, *status),
            CallEvent::End(End::Complete) => spans.end_call(*id, None),
            CallEvent::End(End::Aborted) => spans.end_call(*id, Some("broke_off")),
            CallEvent::Failed(_) => spans.end_call(*id, Some("unreachable")),
            CallEvent::Piece(_) | CallEvent::Document(_) => {}
        }
    }
    live.timed(|exchange| {
        let Some((id, event)) = event else { return exchange.handle_timeout(now) };
        match event {
            CallEvent::Head(status, headers) => {
                exchange.handle_call_head(id, status, &headers, now);
            }
            CallEvent::Piece(piece) => exchange.handle_call_body(id, &piece, now),
            CallEvent::End(end) => exchange.handle_call_end(id, end, now),
            CallEvent::Failed(failure) => exchange.handle_call_failure(id, failure, now),
            CallEvent::Document(text) => exchange.handle_document(id, text),
        }
    });
}

/// Returns the number of bytes that the exchange must translate at once because of an event; 0 if
/// they are few enough for the thread that serves the connection.
fn at_once(exchange: &Exchange, event: &Option<(CallId, CallEvent)>) -> usize {
    let bytes = match event {
        Some((_, CallEvent::End(_))) | None if exchange.is_collecting() => {
            exchange.answer_bytes().max(exchange.refused_bytes())
        }
        Some((_, CallEvent::End(_))) => exchange.refused_bytes(),
        // A timeout may end a refusal whose body does not end.
        None if exchange.is_refused() => exchange.refused_bytes(),
        // A chunk of the answer may complete an event of some megabytes.
        Some((_, CallEvent::Piece(piece)))
            if exchange.answer_bytes() >= EVENT_BYTES && piece.contains(&b'\n') =>
        {
            exchange.answer_bytes()
        }
        _ => 0,
    };
    if bytes < APART_BYTES { 0 } else { bytes }
}

impl fmt::Debug for Driver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Driver").field("live", &self.live).finish_non_exhaustive()
    }
}
