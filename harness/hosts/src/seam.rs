//! A trial through the seam itself, where the harness is the host: its clock, its pieces, its ends.

use creole::{Head, Millis, Reply, RequestHead, ResponseHead};

use crate::{Answer, End, Got, Header, Seen, Trial};

/// When every trial begins.
const BEGIN: Millis = 1_790_000_000_000;

/// What goes to the upstream.
#[derive(Debug)]
pub struct Sent {
    /// The path.
    pub path: String,
    /// The headers.
    pub headers: Vec<Header>,
    /// The body.
    pub body: Vec<u8>,
}

/// One exchange, wherever it runs.
pub trait Seam {
    /// The client's head.
    fn handle_request_head(&mut self, method: &str, path: &str, headers: &[Header]) -> RequestHead;
    /// The client's body.
    fn handle_request(&mut self, body: &[u8], now: Millis) -> Result<Sent, Reply>;
    /// The upstream's head.
    fn handle_response_head(
        &mut self,
        status: u16,
        headers: &[Header],
        now: Millis,
    ) -> ResponseHead;
    /// A piece of the upstream's body.
    fn handle_response_body(
        &mut self,
        piece: &[u8],
        now: Millis,
        out: &mut Vec<u8>,
    ) -> Option<Head>;
    /// The end of the upstream's body.
    fn handle_response_end(
        &mut self,
        how: creole::End,
        now: Millis,
        out: &mut Vec<u8>,
    ) -> Option<Head>;
    /// Time has passed.
    fn handle_timeout(&mut self, now: Millis, out: &mut Vec<u8>) -> Option<Head>;
    /// When time matters next.
    fn poll_timeout(&mut self) -> Option<Millis>;
    /// Whether the client has everything.
    fn is_ended(&mut self) -> bool;
}

/// What the client got so far, and the time.
struct Client {
    head: Option<Head>,
    body: Vec<u8>,
    now: Millis,
}

impl Client {
    fn take(&mut self, head: Option<Head>) {
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
            let head = seam.handle_timeout(self.now, &mut self.body);
            self.take(head);
        }
        self.now = until.unwrap_or(self.now);
    }
}

/// Sends the request of a trial and lets its upstream answer.
pub fn send(seam: &mut impl Seam, trial: &Trial) -> Got {
    let Trial { request, answer, .. } = trial;
    match seam.handle_request_head(&request.method, &request.path, &request.headers) {
        RequestHead::Translate => {}
        RequestHead::Reply(reply) => return replied(reply, Vec::new()),
        RequestHead::PassThrough => return passed(answer),
    }
    let sent = match seam.handle_request(&request.body, BEGIN) {
        Ok(sent) => sent,
        Err(reply) => return replied(reply, Vec::new()),
    };
    let Sent { path, headers, body } = sent;
    let bytes = body.len();
    let seen = Seen { method: "POST".to_owned(), path, headers, bytes, body: body.into() };
    let mut client = Client { head: None, body: Vec::new(), now: BEGIN };
    let delay = u64::try_from(answer.delay.as_millis()).unwrap();
    client.wait(seam, Some(BEGIN + delay));
    if !seam.is_ended() && respond(seam, answer, &mut client) == ResponseHead::PassThrough {
        return passed(answer);
    }
    replied(Reply { head: client.head.expect("a head"), body: client.body }, vec![seen])
}

fn respond(seam: &mut impl Seam, answer: &Answer, client: &mut Client) -> ResponseHead {
    let decided = seam.handle_response_head(answer.status, &answer.headers, client.now);
    if decided == ResponseHead::PassThrough {
        return decided;
    }
    for piece in answer.pieces.iter().filter(|piece| !piece.is_empty()) {
        let head = seam.handle_response_body(piece, client.now, &mut client.body);
        client.take(head);
        if seam.is_ended() {
            return decided;
        }
    }
    let how = match answer.end {
        End::Complete => creole::End::Complete,
        End::Aborted => creole::End::Aborted,
        End::Silent => {
            client.wait(seam, None);
            return decided;
        }
    };
    let head = seam.handle_response_end(how, client.now, &mut client.body);
    client.take(head);
    decided
}

fn replied(reply: Reply, upstream: Vec<Seen>) -> Got {
    let Reply { head: Head { status, headers }, body } = reply;
    Got { status, headers, body, end: End::Complete, upstream }
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
