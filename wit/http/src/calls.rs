//! Calls of an exchange, several of which may be open at the same time.

use creole::config::{request_path, url_parts};
use creole::{Call, CallId, Failure, To, Unreachable};
use wasip2::http::types::{
    FutureIncomingResponse, IncomingBody, IncomingResponse, Method, OutgoingBody,
};
use wasip2::io::poll::{self, Pollable};
use wasip2::io::streams::{InputStream, OutputStream};

use crate::headers;
use crate::live::Live;
use crate::streams;
use crate::upstream::{self, Piece};

/// Maximum number of times in a row that calls go on although a timeout has come. What has arrived
/// goes first, but not for ever.
const PASSES_MAX: u32 = 256;

/// Call whose answer is not complete.
struct OpenCall {
    id: CallId,
    progress: CallProgress,
}

enum CallProgress {
    Sends(Sends),
    /// Progress: the request was sent, and the response has no head yet.
    Waits(FutureIncomingResponse),
    Reads(Reads),
    /// Progress: the exchange knows the end of the call.
    Over,
}

/// Request whose body is being written.
struct Sends {
    // The fields are dropped in this order: the host requires a body's stream to be dropped before
    // the body.
    stream: OutputStream,
    body: OutgoingBody,
    bytes: Vec<u8>,
    /// Number of bytes that the host has accepted.
    sent: usize,
    answer: FutureIncomingResponse,
}

/// Response whose body is being read.
struct Reads {
    // The fields are dropped in this order, as those of `Sends`.
    stream: InputStream,
    _body: IncomingBody,
    _response: IncomingResponse,
}

/// Makes the calls of an exchange until its answer is complete, or the client is gone.
pub(crate) fn run(live: &mut Live) {
    let mut open: Vec<OpenCall> = Vec::new();
    let mut passes = 0_u32;
    loop {
        while let Some((id, _)) = live.exchange.poll_cancel() {
            open.retain(|call| call.id != id);
        }
        while let Some(call) = live.exchange.poll_call(live.clock.now()) {
            let id = call.id;
            match begin(live, call) {
                Ok(progress) => open.push(OpenCall { id, progress }),
                Err(failure) => live.fail_call(id, failure),
            }
        }
        live.give();
        if live.is_over() {
            return;
        }
        // What has arrived goes first: after a long wait for a slow client the upstream's bytes are
        // there, and the timer would call the upstream stalled.
        let mut is_moved = false;
        for call in &mut open {
            is_moved |= call.advance(live);
        }
        open.retain(|call| !matches!(call.progress, CallProgress::Over));
        live.limit_memory();
        passes = if is_moved { passes.saturating_add(1) } else { 0 };
        if passes > PASSES_MAX {
            passes = 0;
            live.handle_timeout();
        } else if !is_moved && !live.exchange.is_call_due() {
            if open.is_empty() && live.is_idle() {
                return;
            }
            if wait(live, &open) {
                live.handle_timeout();
            }
        }
    }
}

/// Waits until a call can go on, or the exchange's next timeout has come. Returns true for a
/// timeout.
fn wait(live: &Live, open: &[OpenCall]) -> bool {
    let calls = open.iter().filter_map(OpenCall::subscribe);
    let timer = live.exchange.poll_timeout().map(|at| live.clock.timer(at));
    let has_timer = timer.is_some();
    let pollables: Vec<Pollable> = calls.chain(timer).collect();
    let pollables: Vec<&Pollable> = pollables.iter().collect();
    if pollables.is_empty() {
        return false;
    }
    let ready = poll::poll(&pollables);
    let last = u32::try_from(pollables.len().saturating_sub(1)).unwrap_or(u32::MAX);
    has_timer && ready == [last]
}

/// Sends the head of a call.
fn begin(live: &Live, call: Call) -> Result<CallProgress, Failure> {
    let (server, path) = match &call.to {
        To::Upstream(name) => {
            let upstream = live.exchange.config().upstreams.get(name).ok_or(Failure::NoRoute)?;
            (upstream.url.as_str(), call.path.as_str())
        }
        // Nothing here keeps a call out of a private network.
        To::Service(service) if service.is_public => {
            return Err(Failure::Unreachable(Unreachable::NotAllowed));
        }
        To::Service(service) => url_parts(&service.url),
        To::Web(_) => return Err(Failure::Unreachable(Unreachable::NotAllowed)),
        To::Document { .. } => return Err(Failure::NoRoute),
    };
    let path = request_path(path);
    let mut list = call.headers;
    let method = if call.body.is_empty() {
        Method::Get
    } else {
        // Some model servers read no chunked requests.
        list.push(("content-length".to_owned(), call.body.len().to_string()));
        Method::Post
    };
    let has_body = !call.body.is_empty();
    let (answer, body) = upstream::open(live, (server, &path), &method, &list, has_body)?;
    let stream = body.as_ref().and_then(|body| body.write().ok());
    let (Some(body), Some(stream)) = (body, stream) else { return Ok(CallProgress::Waits(answer)) };
    Ok(CallProgress::Sends(Sends { stream, body, bytes: call.body, sent: 0, answer }))
}

impl OpenCall {
    fn subscribe(&self) -> Option<Pollable> {
        match &self.progress {
            CallProgress::Sends(sends) => Some(sends.stream.subscribe()),
            CallProgress::Waits(answer) => Some(answer.subscribe()),
            CallProgress::Reads(reads) => Some(reads.stream.subscribe()),
            CallProgress::Over => None,
        }
    }

    /// Takes the next event of the call, if there is one, and tells the exchange.
    fn advance(&mut self, live: &mut Live) -> bool {
        let progress = std::mem::replace(&mut self.progress, CallProgress::Over);
        let (progress, is_moved) = match progress {
            CallProgress::Sends(sends) => sends.write(),
            CallProgress::Waits(answer) => match answer.get() {
                None => (CallProgress::Waits(answer), false),
                Some(got) => (self.begin_response(got, live), true),
            },
            CallProgress::Reads(reads) => self.read(reads, live),
            CallProgress::Over => (CallProgress::Over, false),
        };
        self.progress = progress;
        is_moved
    }

    /// Passes the head of a response to the exchange, or the reason for its lack.
    fn begin_response(&self, got: upstream::Got, live: &mut Live) -> CallProgress {
        let response = match upstream::response(got) {
            Ok(response) => response,
            Err(failure) => {
                live.fail_call(self.id, failure);
                return CallProgress::Over;
            }
        };
        let list = headers::list(&response.headers());
        live.exchange.handle_call_head(self.id, response.status(), &list, live.clock.now());
        let body = response.consume().ok();
        let stream = body.as_ref().and_then(|body| body.stream().ok());
        let (Some(body), Some(stream)) = (body, stream) else {
            live.fail_call(self.id, Failure::Unreachable(Unreachable::NoBody));
            return CallProgress::Over;
        };
        CallProgress::Reads(Reads { stream, _body: body, _response: response })
    }

    /// Passes a piece of a response's body to the exchange, or the end of the body.
    fn read(&self, reads: Reads, live: &mut Live) -> (CallProgress, bool) {
        let now = live.clock.now();
        match upstream::read(&reads.stream) {
            Piece::NotYet => (CallProgress::Reads(reads), false),
            Piece::Bytes(piece) => {
                live.exchange.handle_call_body(self.id, &piece, now);
                (CallProgress::Reads(reads), true)
            }
            Piece::End(end) => {
                live.exchange.handle_call_end(self.id, end, now);
                (CallProgress::Over, true)
            }
        }
    }
}

impl Sends {
    /// Writes as much of the request's body as the host accepts. Returns true if that is anything.
    fn write(mut self) -> (CallProgress, bool) {
        let rest = self.bytes.get(self.sent..).unwrap_or_default();
        let Ok(later) = streams::write_some(&self.stream, rest) else {
            // An upstream may refuse a body that it has not read, and its answer says why.
            return (CallProgress::Waits(self.answer), true);
        };
        if !later.is_empty() {
            let is_moved = later.len() < rest.len();
            self.sent = self.bytes.len().saturating_sub(later.len());
            return (CallProgress::Sends(self), is_moved);
        }
        let Self { stream, body, answer, .. } = self;
        let is_flushed = stream.flush().is_ok();
        drop(stream);
        if is_flushed {
            let _ = OutgoingBody::finish(body, None);
        }
        (CallProgress::Waits(answer), true)
    }
}
