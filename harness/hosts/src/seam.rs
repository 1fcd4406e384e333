//! Trial on the interface of an exchange, without sockets: the harness plays the host, with its
//! clock, chunks and ends.

use creole::{Call, CallId, Head, Millis, RequestHead};

use crate::{Answer, End, Got, Header, Seen, Trial};

/// Time at which every trial begins, in Unix milliseconds.
const BEGIN: Millis = 1_790_000_000_000;

/// Interface of one exchange, wherever it runs.
pub trait Seam {
    /// Handles the head of the client's request.
    fn handle_request_head(&mut self, method: &str, path: &str, headers: &[Header]) -> RequestHead;
    /// Handles the body of the client's request.
    fn handle_request_body(&mut self, body: &[u8], now: Millis);
    /// Handles the head of the upstream's response.
    fn handle_call_head(&mut self, id: CallId, status: u16, headers: &[Header], now: Millis);
    /// Handles a chunk of the upstream's body.
    fn handle_call_body(&mut self, id: CallId, piece: &[u8], now: Millis);
    /// Handles the end of the upstream's body.
    fn handle_call_end(&mut self, id: CallId, how: creole::End, now: Millis);
    /// Handles the passing of time: `now` is the current time.
    fn handle_timeout(&mut self, now: Millis);
    /// Returns the upstream request that is due, if any.
    fn poll_call(&mut self, now: Millis) -> Option<Call>;
    /// Appends the bytes that are ready for the client to `out`, and returns the head when it is
    /// due.
    fn poll_output(&mut self, out: &mut Vec<u8>) -> Option<Head>;
    /// Returns the next time at which `Seam::handle_timeout` must be called.
    fn poll_timeout(&mut self) -> Option<Millis>;
    /// Returns true if the client has the complete answer.
    fn is_ended(&mut self) -> bool;
}

/// State of the client: the answer received so far, and the current time.
struct Client {
    head: Option<Head>,
    body: Vec<u8>,
    now: Millis,
}

impl Client {
    fn poll(&mut self, seam: &mut impl Seam) {
        let head = seam.poll_output(&mut self.body);
        assert!(self.head.is_none() || head.is_none(), "two heads: {:?}, {head:?}", self.head);
        if head.is_some() {
            self.head = head;
        }
    }

    /// Advances the clock to `until` while the upstream is silent; with `None`, until no timeout is
    /// left.
    fn wait(&mut self, seam: &mut impl Seam, until: Option<Millis>) {
        while let Some(at) = seam.poll_timeout().filter(|at| until.is_none_or(|until| *at <= until))
        {
            self.now = self.now.max(at);
            seam.handle_timeout(self.now);
            self.poll(seam);
        }
        self.now = until.unwrap_or(self.now);
    }

    fn replied(self, upstream: Vec<Seen>) -> Got {
        let Head { status, headers } = self.head.expect("a head");
        Got { status, headers, body: self.body, end: End::Complete, upstream }
    }
}

/// Sends the request of a trial, lets its upstream respond, and returns the client's response.
pub fn send(seam: &mut impl Seam, trial: &Trial) -> Got {
    let Trial { request, answer, .. } = trial;
    let mut client = Client { head: None, body: Vec::new(), now: BEGIN };
    match seam.handle_request_head(&request.method, &request.path, &request.headers) {
        RequestHead::Translate => seam.handle_request_body(&request.body, BEGIN),
        RequestHead::Answered => {}
        RequestHead::PassThrough => return passed(answer),
    }
    let Some(call) = seam.poll_call(BEGIN) else {
        client.poll(seam);
        return client.replied(Vec::new());
    };
    let Call { id, path, headers, body, .. } = call;
    let bytes = body.len();
    let seen = Seen { method: "POST".to_owned(), path, headers, bytes, body: body.into() };
    let delay = u64::try_from(answer.delay.as_millis()).unwrap();
    client.wait(seam, Some(BEGIN + delay));
    if !seam.is_ended() {
        respond(seam, id, answer, &mut client);
    }
    client.replied(vec![seen])
}

fn respond(seam: &mut impl Seam, id: CallId, answer: &Answer, client: &mut Client) {
    seam.handle_call_head(id, answer.status, &answer.headers, client.now);
    for piece in answer.pieces.iter().filter(|piece| !piece.is_empty()) {
        seam.handle_call_body(id, piece, client.now);
        client.poll(seam);
        if seam.is_ended() {
            return;
        }
    }
    let how = match answer.end {
        End::Complete => creole::End::Complete,
        End::Aborted => creole::End::Aborted,
        End::Silent => return client.wait(seam, None),
    };
    seam.handle_call_end(id, how, client.now);
    client.poll(seam);
}

fn passed(answer: &Answer) -> Got {
    Got {
        status: answer.status,
        headers: answer.headers.clone(),
        body: answer.pieces.concat(),
        end: answer.end,
        upstream: Vec::new(),
    }
}
