//! A trial through the seam itself, where the harness is the host: its clock, its pieces, its ends.

use creole::{Call, Head, Millis, RequestHead};

use crate::{Answer, End, Got, Header, Seen, Trial};

/// Time at which every trial begins.
const BEGIN: Millis = 1_790_000_000_000;

/// Interface of one exchange, wherever it runs.
pub trait Seam {
    /// The client's head.
    fn handle_request_head(&mut self, method: &str, path: &str, headers: &[Header]) -> RequestHead;
    /// The client's body.
    fn handle_request_body(&mut self, body: &[u8], now: Millis);
    /// The upstream's head.
    fn handle_call_head(&mut self, status: u16, headers: &[Header], now: Millis);
    /// A piece of the upstream's body.
    fn handle_call_body(&mut self, piece: &[u8], now: Millis);
    /// The end of the upstream's body.
    fn handle_call_end(&mut self, how: creole::End, now: Millis);
    /// Time has passed.
    fn handle_timeout(&mut self, now: Millis);
    /// A request for the upstream that is due.
    fn poll_call(&mut self, now: Millis) -> Option<Call>;
    /// Appends the bytes that are ready for the client to `out`, and returns the head when it is
    /// due.
    fn poll_output(&mut self, out: &mut Vec<u8>) -> Option<Head>;
    /// Returns the next time at which the exchange must be told the time.
    fn poll_timeout(&mut self) -> Option<Millis>;
    /// Whether the client has everything.
    fn is_ended(&mut self) -> bool;
}

/// State of the client: the answer that it got so far, and the time.
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

    /// The upstream is silent until `until`, or for ever.
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

/// Sends the request of a trial and lets its upstream answer.
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
    let Call { path, headers, body, .. } = call;
    let bytes = body.len();
    let seen = Seen { method: "POST".to_owned(), path, headers, bytes, body: body.into() };
    let delay = u64::try_from(answer.delay.as_millis()).unwrap();
    client.wait(seam, Some(BEGIN + delay));
    if !seam.is_ended() {
        respond(seam, answer, &mut client);
    }
    client.replied(vec![seen])
}

fn respond(seam: &mut impl Seam, answer: &Answer, client: &mut Client) {
    seam.handle_call_head(answer.status, &answer.headers, client.now);
    for piece in answer.pieces.iter().filter(|piece| !piece.is_empty()) {
        seam.handle_call_body(piece, client.now);
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
    seam.handle_call_end(how, client.now);
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
