//! A client's request with the tool `web_search`, a scripted upstream and a scripted search
//! service.

use std::sync::Arc;

use creole::observe::report::Report;
use creole::{Call, CallId, Config, End, Exchange, HostCan, Pings, To};
use serde_json::{Value, json};

use crate::support::drive::{self, NOW, SEED};
use crate::support::grammar::{self, Rules};

/// Configuration with a SearXNG at `http://search`; `more` are further keys of `server_tools`.
pub(crate) fn config(more: &str) -> Arc<Config> {
    drive::config(&format!(
        r#"{{"upstreams": {{"main": {{"key": "none"}}}}, "server_tools": {{
            "web_search": {{"kind": "searxng", "url": "http://search"}}{more}}}}}"#
    ))
}

/// Answer of the scripted upstream.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// A message and a finish reason, with the tokens of the prompt and of the answer.
    Says(Value, &'static str, (u64, u64)),
    /// A status and a body.
    Fails(u16, &'static str),
    /// A status and a `retry-after` header.
    AsksForPause(u16, &'static str),
    /// A connection that breaks before an answer.
    Breaks,
    /// A status, and a body whose compression cannot be read.
    Undecodable(u16),
    /// A status 503 after which a repeat has no use, as the server says.
    IsFinal,
    /// No answer at all.
    Hangs,
}

/// Answer of the scripted search service.
#[derive(Clone, Debug)]
pub(crate) enum Search {
    Gives(u16, String),
    /// A redirection.
    Leads(String),
    /// No connection.
    Fails,
    /// An address to which the host does not connect.
    Forbidden,
    /// No answer at all.
    Hangs,
}

/// An answer with a text and calls of `web_search`, or of another tool, each with its input.
pub(crate) fn turn(text: &str, calls: &[(&str, &str)]) -> Turn {
    let call = |(at, (name, input)): (usize, &(&str, &str))| {
        json!({"index": at, "id": format!("call_{name}{at}{}", input.len()), "type": "function",
            "function": {"name": name, "arguments": input}})
    };
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.iter().enumerate().map(call).collect();
    }
    let reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    Turn::Says(message, reason, (10, 5))
}

/// Results of the search service.
pub(crate) fn found(pages: &[(&str, &str, &str)]) -> Search {
    let page = |(url, title, text): &(&str, &str, &str)| json!({"url": url, "title": title, "content": text});
    let results: Vec<Value> = pages.iter().map(page).collect();
    Search::Gives(200, json!({"results": results, "unresponsive_engines": []}).to_string())
}

/// Exchange with everything that is sent and received.
pub(crate) struct Session {
    pub(crate) config: Arc<Config>,
    pub(crate) body: Value,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) turns: Vec<Turn>,
    pub(crate) searches: Vec<Search>,
    /// Largest piece of an answer of the upstream, in bytes; 0: the whole at once.
    pub(crate) piece: usize,
    /// Answers the newest open search first.
    pub(crate) newest_first: bool,
    /// Drops the client's body once an answer has begun, as a host without memory does.
    pub(crate) forgets: bool,
    /// Text of every PDF, on a host that reads PDFs.
    pub(crate) pdf: Option<Result<&'static str, creole::Unread>>,
}

/// Result of a session.
pub(crate) struct Outcome {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) bytes: Vec<u8>,
    /// The client's message, folded from the events of a stream.
    pub(crate) message: Value,
    /// Requests to the upstream.
    pub(crate) asked: Vec<Value>,
    /// URLs of the requests to the search service.
    pub(crate) searched: Vec<String>,
    pub(crate) report: Report,
    /// Times of the requests to the upstream, in milliseconds since the first.
    pub(crate) times: Vec<u64>,
}

impl Session {
    pub(crate) fn new(turns: &[Turn], searches: &[Search]) -> Self {
        Self {
            config: config(""),
            body: json!({"model": "m", "max_tokens": 1000,
                "tools": [{"type": "web_search_20250305", "name": "web_search"}],
                "messages": [{"role": "user", "content": "Q"}]}),
            headers: vec![("x-api-key", "k")],
            turns: turns.to_vec(),
            searches: searches.to_vec(),
            piece: 0,
            newest_first: false,
            forgets: false,
            pdf: None,
        }
    }

    pub(crate) fn with(mut self, key: &str, value: Value) -> Self {
        self.body[key] = value;
        self
    }

    /// Runs the session with a stream and with a whole answer, and returns the whole answer. Both
    /// must be the same message, and the stream must keep the grammar.
    pub(crate) fn run(&self) -> Outcome {
        let whole = self.once(false);
        let stream = self.once(true);
        assert_eq!(whole.status, stream.status, "{:?}", String::from_utf8_lossy(&stream.bytes));
        if whole.status == 200 {
            grammar::check_message(&whole.message).unwrap();
            let same = crate::support::fold::comparable;
            assert_eq!(same(&whole.message), same(&stream.message));
        }
        assert_eq!(without_stream(&whole.asked), without_stream(&stream.asked));
        assert_eq!(whole.searched, stream.searched);
        whole
    }

    pub(crate) fn once(&self, stream: bool) -> Outcome {
        self.ended(stream).outcome(stream)
    }

    /// The bytes of a stream that ends with an error.
    pub(crate) fn stream_of_failure(&self) -> Vec<u8> {
        self.ended(true).bytes
    }

    /// The times of the requests to the upstream, in an answer that ends with an error.
    pub(crate) fn times_of_failure(&self, stream: bool) -> Vec<u64> {
        self.ended(stream).times
    }

    /// Lets the client leave while a round waits for its repeat. Returns true if the exchange ends
    /// then, with nothing left to do.
    pub(crate) fn leaves_in_the_pause(&self) -> bool {
        self.left(2)
    }

    /// Lets the client leave while a search runs. Returns true if the exchange ends then, with
    /// nothing left to do.
    pub(crate) fn leaves_in_the_search(&self) -> bool {
        self.left(1)
    }

    /// Lets the client leave once the upstream was asked so often and nothing is answered.
    fn left(&self, rounds: usize) -> bool {
        let mut body = self.body.clone();
        body["stream"] = true.into();
        let mut run = self.started(body.to_string());
        run.leaves_after = Some(rounds);
        run.finish();
        let is_idle = run.exchange.poll_timeout().is_none();
        let asks = run.exchange.poll_call(run.now).is_some();
        run.exchange.is_ended() && is_idle && !asks && run.asked.len() == rounds
    }

    /// Runs the session with this text as the client's body.
    pub(crate) fn of_text(&self, body: &str) -> Outcome {
        self.begun(body.to_owned()).outcome(false)
    }

    fn ended(&self, stream: bool) -> Run<'_> {
        let mut body = self.body.clone();
        body["stream"] = stream.into();
        self.begun(body.to_string())
    }

    fn begun(&self, body: String) -> Run<'_> {
        let mut run = self.started(body);
        run.finish();
        run
    }

    fn started(&self, body: String) -> Run<'_> {
        let can = HostCan {
            ping: Pings::Sent,
            ask_again: true,
            call_services: true,
            fetch: true,
            calls_at_once: 4,
            read_documents: self.pdf.is_some(),
            ..HostCan::default()
        };
        let mut exchange = Exchange::new(Arc::clone(&self.config), SEED, can);
        exchange.handle_request_head("POST", "/v1/messages", &drive::headers(&self.headers));
        exchange.handle_request_body(body.into_bytes(), NOW);
        Run {
            session: self,
            exchange,
            open: Vec::new(),
            now: NOW,
            asked: Vec::new(),
            times: Vec::new(),
            searched: Vec::new(),
            turns: 0,
            answers: 0,
            head: None,
            bytes: Vec::new(),
            leaves_after: None,
        }
    }
}

fn without_stream(asked: &[Value]) -> Vec<Value> {
    let mut asked = asked.to_vec();
    for sent in &mut asked {
        let sent = sent.as_object_mut().unwrap();
        sent.remove("stream");
        sent.remove("stream_options");
    }
    asked
}

/// Running session.
struct Run<'s> {
    session: &'s Session,
    exchange: Exchange,
    /// Open searches, each with the place of its answer.
    open: Vec<(CallId, usize)>,
    now: u64,
    asked: Vec<Value>,
    times: Vec<u64>,
    searched: Vec<String>,
    turns: usize,
    answers: usize,
    head: Option<creole::Head>,
    bytes: Vec<u8>,
    /// Number of requests to the upstream after which the client leaves, once no answer is there.
    leaves_after: Option<usize>,
}

impl Run<'_> {
    fn finish(&mut self) {
        while !self.exchange.is_ended() {
            while let Some((id, _)) = self.exchange.poll_cancel() {
                self.open.retain(|(open, _)| *open != id);
            }
            let mut upstream = None;
            while let Some(call) = self.exchange.poll_call(self.now) {
                match &call.to {
                    To::Service(service) => {
                        self.searched.push(service.url.clone());
                        self.open.push((call.id, self.answers));
                        self.answers += 1;
                    }
                    To::Web(fetch) => {
                        assert!(!fetch.may_be_private);
                        self.searched.push(fetch.url.clone());
                        self.open.push((call.id, self.answers));
                        self.answers += 1;
                    }
                    To::Document { until } => {
                        assert!(*until > NOW && call.body.starts_with(b"%PDF-"));
                        let text = self.session.pdf.unwrap();
                        let text = text.map(|text| creole::DocumentText::whole(text.to_owned()));
                        self.exchange.handle_document(call.id, text);
                    }
                    _ => upstream = Some(call),
                }
            }
            self.take();
            if let Some(call) = upstream {
                self.answer(&call);
            } else if let Some(place) = self.next_answer() {
                let (id, at) = self.open.remove(place);
                self.give(id, at);
            } else if self.leaves_after == Some(self.asked.len()) {
                self.exchange.handle_client_gone(self.now);
            } else if let Some(until) = self.exchange.poll_timeout() {
                assert!(until > self.now, "the time stands still");
                self.now = until;
                self.exchange.handle_timeout(self.now);
            } else {
                assert!(self.exchange.is_ended(), "nothing is open, and nothing is due");
            }
            self.take();
        }
        self.take();
    }

    /// Place of the open search to answer next.
    fn next_answer(&self) -> Option<usize> {
        let answers = |(_, at): &(CallId, usize)| {
            !matches!(self.session.searches.get(*at), Some(Search::Hangs))
        };
        match self.session.newest_first {
            true => self.open.iter().rposition(answers),
            false => self.open.iter().position(answers),
        }
    }

    /// Answers the call of the upstream.
    fn answer(&mut self, call: &Call) {
        let sent: Value = serde_json::from_slice(&call.body).unwrap();
        crate::support::chat::check(&sent, crate::support::chat::Rules::default()).unwrap();
        let stream = sent["stream"] == true;
        self.asked.push(sent);
        self.times.push(self.now - NOW);
        let turn =
            self.session.turns.get(self.turns).unwrap_or_else(|| panic!("one turn too many"));
        self.turns += 1;
        match turn {
            Turn::Fails(status, body) => self.send(call.id, *status, body.as_bytes()),
            Turn::AsksForPause(status, pause) => {
                let headers = [("retry-after".to_owned(), (*pause).to_owned())];
                self.exchange.handle_call_head(call.id, *status, &headers, self.now);
                self.exchange.handle_call_end(call.id, End::Complete, self.now);
            }
            Turn::Breaks => self.fail(call.id, creole::Unreachable::Closed),
            Turn::Undecodable(status) => {
                self.exchange.handle_call_head(call.id, *status, &[], self.now);
                let failure = creole::Failure::Undecodable;
                self.exchange.handle_call_failure(call.id, failure, self.now);
            }
            Turn::IsFinal => {
                let headers = [("x-should-retry".to_owned(), "false".to_owned())];
                self.exchange.handle_call_head(call.id, 503, &headers, self.now);
                self.exchange.handle_call_end(call.id, End::Complete, self.now);
            }
            Turn::Hangs => {}
            Turn::Says(message, reason, (prompt, completion)) => {
                let usage = json!({"prompt_tokens": prompt, "completion_tokens": completion,
                    "total_tokens": prompt + completion});
                let body = match stream {
                    false => json!({"id": "c", "model": "m", "usage": usage,
                        "choices": [{"index": 0, "message": message, "finish_reason": reason}]})
                    .to_string(),
                    true => events(message, reason, &usage),
                };
                self.send(call.id, 200, body.as_bytes());
            }
        }
    }

    /// Answers a search.
    fn give(&mut self, id: CallId, at: usize) {
        match self.session.searches.get(at).unwrap_or_else(|| panic!("one search too many")) {
            Search::Gives(status, body) => self.send(id, *status, body.as_bytes()),
            Search::Leads(location) => {
                let headers = [("location".to_owned(), location.clone())];
                self.exchange.handle_call_head(id, 302, &headers, self.now);
                if self.exchange.poll_cancel().is_none() {
                    self.exchange.handle_call_end(id, End::Complete, self.now);
                }
            }
            Search::Fails => self.fail(id, creole::Unreachable::Refused),
            Search::Forbidden => self.fail(id, creole::Unreachable::NotAllowed),
            Search::Hangs => panic!("a search that hangs is never answered"),
        }
    }

    fn fail(&mut self, id: CallId, why: creole::Unreachable) {
        self.exchange.handle_call_failure(id, creole::Failure::Unreachable(why), self.now);
    }

    fn send(&mut self, id: CallId, status: u16, body: &[u8]) {
        self.exchange.handle_call_head(id, status, &[], self.now);
        if self.session.forgets {
            self.exchange.forget_request_body();
        }
        let size = if self.session.piece == 0 { body.len().max(1) } else { self.session.piece };
        for piece in body.chunks(size) {
            self.exchange.handle_call_body(id, piece, self.now);
            self.take();
        }
        self.exchange.handle_call_end(id, End::Complete, self.now);
    }

    fn take(&mut self) {
        if self.head.is_none() {
            self.head = self.exchange.poll_head();
        }
        self.exchange.poll_body(&mut self.bytes);
    }

    fn outcome(self, stream: bool) -> Outcome {
        let head = self.head.unwrap_or_else(|| panic!("the client gets no head"));
        let message = if stream && head.status == 200 {
            let events =
                grammar::check_stream(&self.bytes, Rules::default()).unwrap_or_else(|why| {
                    panic!("{why}\n{}", String::from_utf8_lossy(&self.bytes));
                });
            crate::support::fold::fold(&events).message
        } else {
            serde_json::from_slice(&self.bytes).unwrap()
        };
        Outcome {
            status: head.status,
            headers: head.headers,
            bytes: self.bytes,
            message,
            asked: self.asked,
            searched: self.searched,
            report: self.exchange.report(),
            times: self.times,
        }
    }
}

/// The events of a Chat stream with a message, cut into few deltas.
fn events(message: &Value, reason: &str, usage: &Value) -> String {
    let mut deltas = vec![json!({"role": "assistant"})];
    for key in ["reasoning_content", "content"] {
        if let Some(text) = message[key].as_str().filter(|text| !text.is_empty()) {
            let (first, rest) = text.split_at(text.len() / 2);
            deltas.extend([json!({key: first}), json!({key: rest})]);
        }
    }
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let arguments = call["function"]["arguments"].as_str().unwrap();
        let (first, rest) = arguments.split_at(arguments.len() / 2);
        let mut begin = call.clone();
        begin["function"]["arguments"] = first.into();
        let index = &call["index"];
        deltas.push(json!({"tool_calls": [begin]}));
        deltas.push(json!({"tool_calls": [{"index": index, "function": {"arguments": rest}}]}));
    }
    let chunk = |delta: &Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!("data: {}\n\n", json!({"id": "c", "model": "m", "choices": [choice]}))
    };
    let mut events: String = deltas.iter().map(|delta| chunk(delta, Value::Null)).collect();
    events += &chunk(&json!({}), reason.into());
    events += &format!("data: {}\n\n", json!({"id": "c", "choices": [], "usage": usage}));
    events + "data: [DONE]\n\n"
}

impl Outcome {
    /// The types of the blocks, one after another.
    pub(crate) fn kinds(&self) -> Vec<&str> {
        let blocks = self.message["content"].as_array().unwrap();
        blocks.iter().map(|block| block["type"].as_str().unwrap()).collect()
    }

    /// The error codes of all results of searches; "" for a success.
    pub(crate) fn codes(&self) -> Vec<&str> {
        let blocks = self.message["content"].as_array().unwrap().iter();
        let results = blocks.filter(|block| block["type"] == "web_search_tool_result");
        results.map(|block| block["content"]["error_code"].as_str().unwrap_or_default()).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
