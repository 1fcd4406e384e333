//! Auxiliary call of an exchange: its answer is not a message for the client, but a token count, a
//! list of models, or data for a step. The answer is collected as a whole before it is read.
//!
//! Auxiliary calls to models are requests of Creole, not of the client. Of the client's headers
//! they carry only the trace, the count of proxy hops, and, if the upstream uses the client's
//! credential, the credential with its beta. With several upstreams the configuration forbids
//! forwarding the credential (`config/named_model.rs`): the client may have sent the credential for
//! another upstream.

use super::body::{first_of_body, has_plain_body, is_whole};
use super::count::{self, Count};
use super::models::{self, LIST_BYTES_MAX};
use super::seam::{Call, CallId, Cancel, End, Fetch, Service, To};
use super::{Client, Exchange};
use crate::Millis;
use crate::answer::Ending;
use crate::config::{Key, Protocol, Upstream};
use crate::error::{Error, ErrorKind};
use crate::headers::{self, Header, Headers as _};
use crate::json;
use crate::model::request_context::RequestContext;
use crate::observe::report::{Cause, Outcome};
use crate::profile::ReasoningOnly;
use crate::protocols::client::ListFor;
use crate::protocols::{self, Refused, Translated};
use crate::steps::tools::mcp::RpcEnd;
use crate::steps::{
    Came, ModelAnswer, ModelQuestion, Nothing, ReadLimits, ServiceQuestion, WebAnswer, WebQuestion,
};
use crate::text::words;
use crate::upstream_error;

/// Maximum number of requests for one model answer: a server may refuse one parameter, and then a
/// second one.
const REQUESTS_MAX: usize = 3;

/// Origin of an auxiliary call: the client, or a step of the exchange.
#[derive(Debug)]
pub(super) enum Asker {
    /// Client request for a token count, answered by an upstream of the given protocol.
    Count(Count, Protocol, Box<RequestContext>),
    /// Client request for the list of the upstream's models.
    Models(ListFor),
    /// Step that asks a model, at an upstream of the given protocol. The request leaves out the
    /// first `left_out` parts that upstreams refused in the step's requests.
    Model { protocol: Protocol, context: Box<RequestContext>, left_out: usize },
    /// Step that asks a web server, such as for an image, or a service. An event stream ends with
    /// the response to the JSON-RPC request of this number.
    Web(Option<u64>),
    /// Step that has the host read a document. The host enforces the timeout.
    Document,
}

/// Auxiliary call, and the part of its answer received up to now.
#[derive(Debug)]
pub(super) struct Ask {
    id: CallId,
    asker: Asker,
    /// Response head of the auxiliary call, once received.
    head: Option<AskHead>,
    body: Vec<u8>,
}

#[derive(Debug)]
struct AskHead {
    status: u16,
    /// Target of a redirection, from the `location` header.
    location: Option<String>,
    /// Media type of the body, from the `content-type` header.
    content_type: Option<String>,
    /// Id of a session, from the `mcp-session-id` header.
    session_id: Option<String>,
    limits: ReadLimits,
    /// Detector of the response after which an event stream is not read on.
    answer_end: Option<RpcEnd>,
}

impl AskHead {
    /// Returns the head of an answer. `message_id`: the number of the JSON-RPC request that it
    /// answers, if any.
    fn new(status: u16, headers: &[Header], limits: ReadLimits, message_id: Option<u64>) -> Self {
        let value = |name| headers.value(name).map(str::to_owned);
        let content_type = value("content-type");
        let is_stream = content_type
            .as_deref()
            .is_some_and(|of| words::begins(of.trim_start(), "text/event-stream"));
        let answer_end = message_id.filter(|_| is_stream);
        Self {
            status,
            location: value("location"),
            content_type,
            session_id: value("mcp-session-id"),
            limits,
            answer_end: answer_end.map(|id| RpcEnd::new(id, limits.bytes_max)),
        }
    }
}

impl Ask {
    pub(super) fn id(&self) -> CallId {
        self.id
    }

    /// Returns true if the answer to the auxiliary call becomes the client's response.
    pub(super) fn is_of_client(&self) -> bool {
        matches!(self.asker, Asker::Count(..) | Asker::Models(_))
    }

    /// Returns true if the host itself does the work of the auxiliary call, such as reading a
    /// document, and enforces the timeout.
    pub(super) fn is_of_host(&self) -> bool {
        matches!(self.asker, Asker::Document)
    }

    pub(super) fn has_head(&self) -> bool {
        self.head.is_some()
    }

    /// Returns the number of bytes of the auxiliary call's answer that are kept in memory.
    pub(super) fn held_bytes(&self) -> usize {
        let end = self.head.as_ref().and_then(|head| head.answer_end.as_ref());
        self.body.len().saturating_add(end.map_or(0, RpcEnd::held_bytes))
    }

    /// Returns the maximum number of further bytes to read of the auxiliary call's answer.
    fn bytes_left(&self) -> usize {
        let Some(head) = &self.head else { return usize::MAX };
        debug_assert!(self.body.len() <= head.limits.bytes_max, "a piece was not cut at the limit");
        head.limits.bytes_max.saturating_sub(self.body.len())
    }
}

impl Exchange {
    /// Begins an auxiliary call, whose answer may take `timeout_ms`.
    pub(super) fn begin_ask(&mut self, id: CallId, asker: Asker, timeout_ms: u64, now: Millis) {
        self.watchdog.start(timeout_ms, now);
        self.state.ask(Ask { id, asker, head: None, body: Vec::new() });
    }

    /// Handles the head of the answer to an auxiliary call. Returns false if no auxiliary call has
    /// this id.
    pub(super) fn handle_ask_head(
        &mut self,
        id: CallId,
        status: u16,
        headers: &[Header],
        now: Millis,
    ) -> bool {
        let Some(ask) = self.state.ask_mut(id) else { return false };
        if ask.has_head() {
            return true;
        }
        if matches!(&ask.asker, Asker::Count(count, ..) if !count.takes(status)) {
            // Handle an error status of a token count like the error of any other request.
            if let Some(Ask { asker: Asker::Count(_, protocol, context), .. }) =
                self.state.take_ask(id)
            {
                self.begin_round(id, protocol, context);
            }
            return false;
        }
        let settings = &self.config.settings;
        let whole = |bytes_max| ReadLimits { bytes_max, is_half_enough: true };
        let limits = match &ask.asker {
            Asker::Count(..) => whole(settings.response_bytes_max),
            Asker::Models(_) => whole(LIST_BYTES_MAX),
            Asker::Model { .. } | Asker::Web(_) => match self.steps.limits(id, status, settings) {
                Some(limits) => limits,
                None => whole(0),
            },
            // A document that the host reads has no HTTP response.
            Asker::Document => return true,
        };
        let is_read = (200..300).contains(&status) && matches!(ask.asker, Asker::Web(_));
        if is_read && !has_plain_body(headers) {
            // Nothing could be read of a compressed body.
            self.end_ask(id, End::Aborted, Cancel::Cut, now);
            return true;
        }
        let message_id = match ask.asker {
            Asker::Web(message_id) => message_id,
            _ => None,
        };
        ask.head = Some(AskHead::new(status, headers, limits, message_id));
        let is_list = matches!(ask.asker, Asker::Models(_));
        if !ask.is_of_client() {
            // The client gets no byte of the answer to an auxiliary call, and the step's timeout
            // keeps running.
            if limits.bytes_max == 0 {
                // The status and headers suffice. An announced body may never come.
                self.end_ask(id, End::Complete, Cancel::Cut, now);
            }
            return true;
        }
        self.report.head_at = Some(now);
        self.report.upstream_status = Some(status);
        self.output.hold(headers::to_client(headers, now));
        if !is_list {
            self.report.upstream_request_id = headers::request_id(headers).map(str::to_owned);
            self.watchdog.head(true, now);
            // The status decides the result of the call; the body only adds text, so the wait for
            // the body is short.
            self.watchdog.ending(Ending::Sure, now);
        }
        true
    }

    /// Handles a piece of the body of the answer to an auxiliary call. Returns false if no
    /// auxiliary call has this id.
    pub(super) fn handle_ask_piece(&mut self, id: CallId, piece: &[u8], now: Millis) -> bool {
        let Some(ask) = self.state.ask_mut(id) else { return false };
        if !ask.has_head() {
            // The number of bytes to read is unknown while the head is missing.
            return true;
        }
        self.watchdog.byte(now);
        let is_of_client = ask.is_of_client();
        if is_of_client {
            let received = &mut self.report.upstream_response_bytes;
            *received = received.saturating_add(piece.len());
        }
        // Cut the piece at the limit, so that the same bytes are read however the body was split.
        let piece = piece.get(..ask.bytes_left()).unwrap_or(piece);
        ask.body.extend_from_slice(piece);
        let end = ask.head.as_mut().and_then(|head| head.answer_end.as_mut());
        if end.is_some_and(|end| end.has_come(piece)) {
            self.end_ask(id, End::Complete, Cancel::Cut, now);
        } else if ask.bytes_left() == 0 {
            let is_half_enough = ask.head.as_ref().is_some_and(|head| head.limits.is_half_enough);
            let end = if is_half_enough { End::Complete } else { End::Aborted };
            let cancel = if is_of_client { Cancel::ReadOut } else { Cancel::Cut };
            self.end_ask(id, end, cancel, now);
        } else if self.may_ping() && self.watchdog.ping_is_due(now) {
            self.ping(now);
        }
        true
    }

    /// Ends an auxiliary call with the answer received up to now. `cancel`: the way to end the call
    /// if the host has not ended it.
    pub(super) fn end_ask(&mut self, id: CallId, end: End, cancel: Cancel, now: Millis) {
        let Some(Ask { asker, head, body, .. }) = self.state.take_ask(id) else { return };
        self.state.cancel_call(id, cancel);
        let came = match (asker, head) {
            (Asker::Models(list_for), head) => {
                let status = head.map_or(0, |head| head.status);
                let list = models::of_answer(
                    self.client.protocol,
                    &self.config,
                    list_for,
                    (status, &body),
                );
                return self.end_json(&list, false, now);
            }
            (Asker::Count(count, ..), None) => return self.end_count(count, None, now),
            (Asker::Count(count, ..), Some(head)) => {
                return match count::unknown_model(head.status, &body) {
                    Some(error) => self.end_failed(error, Cause::UpstreamRefused, now),
                    None => self.end_count(count, count::readable(head.status, &body), now),
                };
            }
            (Asker::Document, _) | (Asker::Model { .. } | Asker::Web(_), None) => {
                Came::Nothing(Nothing::Unreachable)
            }
            (Asker::Web(_), Some(head)) => Came::Web(WebAnswer {
                status: head.status,
                location: head.location,
                content_type: head.content_type,
                session_id: head.session_id,
                body,
                is_whole: end == End::Complete,
            }),
            // The part that is missing from the model's answer could change its meaning.
            (Asker::Model { .. }, _) if end == End::Aborted => Came::Nothing(Nothing::BrokeOff),
            (Asker::Model { protocol, context, left_out }, Some(head)) => {
                match self.read_model(protocol, head.status, &body, &context) {
                    Ok(answer) => Came::Message(answer),
                    Err(error)
                        if self.can_ask_model_again(protocol, &error, &context, left_out) =>
                    {
                        return self.ask_again(id, now);
                    }
                    Err(error) if is_too_many(&error) && self.ask_again_alone(id, now) => return,
                    Err(error) => Came::Error(error),
                }
            }
        };
        self.handle_came(id, came, now);
    }

    fn end_count(&mut self, count: Count, answer: Option<&[u8]>, now: Millis) {
        let (tokens, is_estimate) = count.result(answer);
        let body = self.client.protocol.write_count(tokens);
        self.end_json(&body, is_estimate, now);
    }

    fn end_failed(&mut self, error: Error, cause: Cause, now: Millis) {
        self.report.failed_by.get_or_insert(cause);
        self.settle(Err(error), self.output.body.len(), now);
    }

    fn end_json(&mut self, body: &[u8], is_estimate: bool, now: Millis) {
        if is_estimate {
            self.report.warnings.add("count_estimated");
        }
        self.finish(Outcome::Answered, 200, now);
        self.answer_json(body);
    }

    /// Ends a token count or a list of models without the upstream's answer. Calls of steps, and a
    /// count whose head was received, stay open.
    pub(super) fn end_without_upstream(&mut self, now: Millis) {
        let is_over = |ask: &&Ask| match ask.asker {
            Asker::Models(_) => true,
            Asker::Count(..) => !ask.has_head(),
            Asker::Model { .. } | Asker::Web(_) | Asker::Document => false,
        };
        if let Some(id) = self.state.asks().iter().find(is_over).map(Ask::id) {
            self.end_ask(id, End::Complete, Cancel::ReadOut, now);
        }
    }

    /// Builds the call to a model for a step; returns `None` if the request cannot be written.
    pub(super) fn model_call(
        &self,
        id: CallId,
        question: &ModelQuestion<'_>,
    ) -> Option<(Call, Asker)> {
        let ModelQuestion { upstream, model, body } = question;
        let refused = self.steps.refused();
        let written = protocols::own_request(refused, body, &self.config, (upstream, model));
        let Translated::Send { body, context, .. } = written.ok()? else { return None };
        let path =
            format!("{}/{}", upstream.base_path, protocols::of(upstream.protocol).endpoint());
        let headers = headers_for_model(&self.client, upstream).ok()?;
        let to = To::Upstream(upstream.name.clone());
        let (protocol, left_out) = (upstream.protocol, refused.len());
        let asker = Asker::Model { protocol, context, left_out };
        Some((Call { id, to, path, headers, body }, asker))
    }

    /// Reads a model's answer to a step, in the protocol of the upstream.
    fn read_model(
        &self,
        protocol: Protocol,
        status: u16,
        body: &[u8],
        context: &RequestContext,
    ) -> Result<ModelAnswer, Error> {
        if !(200..300).contains(&status) {
            return Err(upstream_error::from_upstream(status, body, context));
        }
        let (mut context, settings) = (Box::new(context.clone()), &self.config.settings);
        // Reasoning text of the model is not its answer.
        context.profile.reasoning_only = ReasoningOnly::Keep;
        let mut answer = protocols::answer(protocol, context, settings, self.ids);
        let mut message = Vec::new();
        // Servers exist that send a stream even if the request did not ask for a stream.
        if first_of_body(body).is_some_and(is_whole) {
            answer.handle_whole(body, &mut message)?;
        } else {
            answer.handle_piece(body, &mut message)?;
            answer.handle_end(&mut message)?;
        }
        let report = answer.report();
        Ok(ModelAnswer {
            text: text_of(&message),
            stop_reason: report.stop_reason,
            input_tokens: report.input_tokens,
            output_tokens: report.output_tokens,
        })
    }

    /// Returns true if the upstream refused a parameter that can be left out; the step's next
    /// requests then leave the parameter out. `left_out`: the number of parts that the refused
    /// request has left out. Requests that are open at the same time may be refused for the same
    /// parameter.
    fn can_ask_model_again(
        &mut self,
        protocol: Protocol,
        error: &Error,
        context: &RequestContext,
        left_out: usize,
    ) -> bool {
        let Some(refused) = self.steps.refused_mut() else { return false };
        let protocol = protocols::of(protocol);
        let Some(rejection) = error.rejection() else { return false };
        let new = rejection.reasons.iter().find_map(|reason| {
            Refused::of(reason, &rejection.message, context)
                // A question about images or documents is pointless without the images or
                // documents.
                .filter(|new| !matches!(new, Refused::Images | Refused::Documents))
                .filter(|new| protocol.may_refuse(new, context))
                .filter(|new| !refused.iter().take(left_out).any(|refused| refused == new))
        });
        if new.as_ref().is_some_and(|new| refused.contains(new)) {
            return true;
        }
        let is_new = new.is_some() && refused.len().saturating_add(1) < REQUESTS_MAX;
        refused.extend(new.filter(|_| is_new));
        is_new
    }
}

impl Call {
    /// Builds the call that fetches a URL from a web server. No header of the client is sent.
    pub(super) fn web(id: CallId, question: WebQuestion) -> Self {
        let WebQuestion { url, may_be_private, accept, user_agent, cluster } = question;
        let user_agent = user_agent.as_deref();
        let headers = [
            ("accept", accept),
            ("accept-encoding", "identity"),
            ("user-agent", user_agent.unwrap_or(concat!("creole/", env!("CARGO_PKG_VERSION")))),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let to = To::Web(Fetch { url, may_be_private, cluster });
        Self { id, to, path: String::new(), headers, body: Vec::new() }
    }

    /// Builds the call of a service that the configuration names. No header of the client is sent.
    pub(super) fn service(id: CallId, question: ServiceQuestion) -> Self {
        let ServiceQuestion { name, url, headers, body, is_public, cluster, .. } = question;
        let to = To::Service(Service { name, url, cluster, is_public });
        Self { id, to, path: String::new(), headers, body }
    }
}

/// Returns true if an upstream has too many requests at the moment.
fn is_too_many(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::RateLimit | ErrorKind::Overloaded)
}

fn headers_for_model(client: &Client, upstream: &Upstream) -> Result<Vec<Header>, Error> {
    let client = &client.headers;
    let is_own = |name: &str| {
        name.starts_with("anthropic-")
            || upstream.key != Key::Client && headers::CREDENTIALS.contains(&name)
    };
    let betas = oauth_betas(client).filter(|_| upstream.key == Key::Client);
    let client = client.iter().filter(|(name, _)| !is_own(name)).cloned().chain(betas);
    let client: Vec<_> = client.collect();
    let protocol = protocols::of(upstream.protocol);
    let mut headers = protocol.headers(&client, &upstream.key, false)?;
    headers::set_own(&upstream.headers, &mut headers);
    Ok(headers)
}

/// Returns the `anthropic-beta` header with the client's `oauth-` betas: Anthropic accepts an OAuth
/// token only with one of these betas.
fn oauth_betas(client: &[Header]) -> Option<Header> {
    let sent = client.iter().filter(|(name, _)| name == "anthropic-beta");
    let betas = sent.flat_map(|(_, value)| value.split(',')).map(str::trim);
    let betas: Vec<_> = betas.filter(|beta| beta.starts_with("oauth-")).collect();
    (!betas.is_empty()).then(|| ("anthropic-beta".to_owned(), betas.join(",")))
}

/// Returns the concatenated text of all text blocks of a message.
fn text_of(message: &[u8]) -> String {
    let message = words::lossy(message);
    let mut said = String::new();
    for block in json::elements(json::member(&message, "content").unwrap_or("[]")) {
        let is_text = json::member(block, "type").is_some_and(|kind| kind == "\"text\"");
        if let Some(text) = json::member(block, "text").and_then(json::string).filter(|_| is_text) {
            said.push_str(&text.decode());
        }
    }
    said
}
