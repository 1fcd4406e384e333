//! The request's way through an exchange.

use super::base::{is_own, without_doubled};
use super::count::Count;
use super::retry::SentRequest;
use super::seam::request_too_large;
use super::{Body, Exchange, Path, Pings, Reply, RequestHead, State, UpstreamRequest, passed};
use crate::config::Upstream;
use crate::error::{Error, ErrorKind, Fault};
use crate::headers::{self, Header, Headers};
use crate::json::{Reader, quoted};
use crate::model::request_context::RequestContext;
use crate::observe::report::{Cause, Outcome};
use crate::protocols::Translated;
use crate::protocols::messages::models;
use crate::stream::Answer;
use crate::text::words::{self, BYTE_ORDER_MARK};
use crate::{Millis, protocols};

/// Longest name that is taken from a request that is refused: the log has it.
const MODEL_BYTES_MAX: usize = 256;

impl Exchange {
    /// The head of a request has come. `path` may have a query.
    pub fn handle_request_head(
        &mut self,
        method: &str,
        path: &str,
        headers: &[Header],
    ) -> RequestHead {
        let path = words::before(path, b"?#");
        self.report.trace_id = headers.value("traceparent").and_then(headers::trace_id);
        let mut head = match self.route(method, path, headers) {
            Ok(RequestHead::PassThrough) => {
                self.state = State::PassThrough;
                // So that a host that cannot reach it can name it in its log.
                if let Some((upstream, _)) = passed(&self.config, path) {
                    self.report.upstream.clone_from(&upstream.name);
                }
                RequestHead::PassThrough
            }
            Ok(RequestHead::Translate) => {
                self.client.headers = headers::kept(headers);
                if !self.config.client_keys.is_empty() {
                    // It opens this door, and is no upstream's business.
                    let is_credential = |name: &str| headers::CREDENTIALS.contains(&name);
                    self.client.headers.retain(|(name, _)| !is_credential(name));
                }
                RequestHead::Translate
            }
            Ok(RequestHead::Reply(reply)) => {
                self.end(Outcome::Answered, reply.head.status);
                RequestHead::Reply(reply)
            }
            Err(error) => RequestHead::Reply(self.refuse(&error)),
        };
        if let RequestHead::Reply(reply) = &mut head
            && method == "HEAD"
        {
            reply.body.clear();
            self.report.response_bytes = 0;
        }
        head
    }

    fn route(
        &mut self,
        method: &str,
        path: &str,
        headers: &[Header],
    ) -> Result<RequestHead, Error> {
        let probe = matches!(method, "GET" | "HEAD");
        let mut path = without_doubled(path);
        if is_own(path) {
            path = words::trim_end(path, b"/");
        }
        if !(probe && matches!(path, "/" | "/api/hello")) && (is_own(path) || !self.leaves_others) {
            self.check_caller(headers)?;
        }
        self.client.path = match path {
            "/v1/messages" => Path::Messages,
            "/v1/messages/count_tokens" => Path::CountTokens,
            "/" | "/api/hello" if probe => {
                return Ok(RequestHead::Reply(self.json_reply(b"{}".to_vec())));
            }
            "/v1/models" if self.is_upstreams_list(method) => {
                if self.wants_own_list(headers.value("anthropic-version").is_some()) {
                    return Ok(RequestHead::PassThrough);
                }
                self.client.path = Path::Models;
                return Ok(RequestHead::Translate);
            }
            "/v1/models" if probe => {
                return Ok(RequestHead::Reply(self.json_reply(models::list(&self.config))));
            }
            _ if path.starts_with("/v1/models/") && probe => {
                let id = path.strip_prefix("/v1/models/").unwrap_or_default();
                let body = models::one(&self.config, id)?;
                return Ok(RequestHead::Reply(self.json_reply(body)));
            }
            _ if path.starts_with("/v1/messages/") => {
                return Err(Error::new(
                    Fault::Client,
                    ErrorKind::NotFound,
                    format!("{method} {path}: not found"),
                ));
            }
            _ => {
                self.check_other(method)?;
                return Ok(RequestHead::PassThrough);
            }
        };
        if method != "POST" {
            return Err(Error::method_not_allowed(method, &["POST"]));
        }
        let length = headers.value("content-length").and_then(|text| text.parse::<u64>().ok());
        if length.is_some_and(|length| length > self.config.settings.request_bytes_max as u64) {
            return Err(request_too_large());
        }
        match headers.value("content-encoding").map(str::trim) {
            None | Some("") => Ok(RequestHead::Translate),
            Some(plain) if plain.eq_ignore_ascii_case("identity") => Ok(RequestHead::Translate),
            Some(encoding) => Err(Error::invalid(format!(
                "content-encoding: expected identity, but found {}",
                quoted(encoding)
            ))
            .with_code("request_body_encoding_unsupported")),
        }
    }

    /// The body of a request is complete: gives the request for the upstream, or the answer where
    /// none is needed.
    ///
    /// # Errors
    /// The reply that the client gets: an error, or an answer that needs no upstream (a token
    /// count).
    pub fn handle_request(
        &mut self,
        body: &[u8],
        now: Millis,
    ) -> Result<UpstreamRequest, Box<Reply>> {
        self.report.requested_at = now;
        self.report.request_bytes = body.len();
        self.translate_request(body, now).map_err(Box::new)
    }

    fn translate_request(&mut self, body: &[u8], now: Millis) -> Result<UpstreamRequest, Reply> {
        if body.len() > self.config.settings.request_bytes_max {
            return Err(self.refuse(&request_too_large()));
        }
        if self.client.path == Path::Models {
            return self.list_models(now);
        }
        let Ok(text) = simdutf8::basic::from_utf8(without_mark(body)) else {
            let error = Error::invalid("The request body is not valid JSON: it is not UTF-8");
            return Err(self.refuse(&error));
        };
        if self.client.path == Path::CountTokens {
            return self.count_tokens(text, now);
        }
        let mut warnings = std::mem::take(&mut self.report.warnings);
        let translated =
            protocols::request(text, &self.config, &self.client.headers, &mut warnings);
        self.report.warnings = warnings;
        match translated {
            Ok(Translated::Send { upstream, body, context }) => {
                let sent = SentRequest { upstream, body, context };
                let sent = self.without_remembered(text, sent, now);
                self.note(&sent.context);
                self.report.upstream.clone_from(&sent.upstream);
                self.send(sent, None, now)
            }
            Ok(Translated::Answer { context, text, stop_reason }) => {
                self.note(&context);
                self.note_upstream(&context.model);
                let mut answer = Answer::new(context, &self.config.settings, self.ids);
                let mut body = Vec::new();
                answer.write_own(&text, stop_reason, &mut body);
                let head =
                    if answer.is_stream() { self.stream_head() } else { self.message_head(None) };
                self.report.answer = answer.report().clone();
                self.count_bytes(body.len());
                self.end(Outcome::Answered, 200);
                Err(Reply { head, body })
            }
            Err(error) => {
                self.note_refused(text);
                Err(self.refuse(&error))
            }
        }
    }

    pub(super) fn send(
        &mut self,
        sent: SentRequest,
        count: Option<Count>,
        now: Millis,
    ) -> Result<UpstreamRequest, Reply> {
        let SentRequest { upstream, body, context } = sent;
        let Some(target) = self.config.upstreams.get(&upstream) else {
            let error =
                Error::new(Fault::Operator, ErrorKind::Api, "No such upstream is configured.");
            return Err(self.refuse(&error));
        };
        let (path, headers) =
            (self.upstream_path(target), self.upstream_headers(target, context.stream));
        let headers = match headers {
            Ok(headers) => headers,
            Err(error) => return Err(self.refuse(&error)),
        };
        let bytes = &mut self.report.upstream_request_bytes;
        *bytes = bytes.saturating_add(body.len());
        // A count is made at once, and can be estimated.
        let at_once = context.stream || count.is_some();
        let pings = self.pings != Pings::No;
        let settings = &self.config.settings;
        self.watchdog.start(settings.first_byte_after_ms(pings, at_once), now);
        self.state = State::Waiting { context, count };
        Ok(UpstreamRequest { upstream, path, headers, body })
    }

    /// For a host that cannot hold the head of a request until its body is known: path and headers for
    /// an upstream, which are the same for every body but for `accept`. No headers where the client sent no
    /// credential: the exchange refuses the request once it is complete.
    #[must_use]
    pub fn early_head(&self, upstream: &Upstream) -> (String, Vec<Header>) {
        let headers = self.upstream_headers(upstream, true).unwrap_or_default();
        (self.upstream_path(upstream), headers)
    }

    pub(super) fn upstream_path(&self, upstream: &Upstream) -> String {
        match self.client.path {
            Path::CountTokens => protocols::count_path(&self.config, upstream),
            Path::Models => Some(format!("{}/models", upstream.base_path)),
            Path::Messages => None,
        }
        .unwrap_or_else(|| {
            format!("{}/{}", upstream.base_path, protocols::of(upstream.protocol).endpoint())
        })
    }

    pub(super) fn upstream_headers(
        &self,
        upstream: &Upstream,
        stream: bool,
    ) -> Result<Vec<Header>, Error> {
        let protocol = protocols::of(upstream.protocol);
        let mut headers = protocol.headers(&self.client.headers, &upstream.key, stream)?;
        headers::set_own(&upstream.headers, &mut headers);
        Ok(headers)
    }

    pub(super) fn note(&mut self, context: &RequestContext) {
        self.report.model.clone_from(&context.model);
        self.report.stream = context.stream;
        self.report.counts = context.counts;
    }

    /// What is known of a request that is refused: the model, and the upstream that it would have got.
    pub(super) fn note_refused(&mut self, body: &str) {
        let Some(model) = model_of(body, self.config.settings.depth_max) else { return };
        self.note_upstream(&model);
        self.report.model = model;
    }

    /// Notes the upstream that requests for `model` get, of one that goes nowhere.
    fn note_upstream(&mut self, model: &str) {
        if let Some((upstream, _)) = self.config.route(model) {
            self.report.upstream.clone_from(&upstream.name);
        }
    }

    pub(super) fn refuse(&mut self, error: &Error) -> Reply {
        if error.should_retry == Some(false) && !self.report.warnings.guards().is_empty() {
            self.report.failed_by.get_or_insert(Cause::Guard);
        }
        if error.kind == ErrorKind::RequestTooLarge {
            self.report.failed_by.get_or_insert(Cause::RequestTooLarge);
        }
        self.end(Outcome::Failed(error.kind, error.fault()), error.status);
        let head = self.error_head(error);
        let mut body = Vec::new();
        error.write(&mut body, &self.report.request_id);
        self.count_bytes(body.len());
        Reply { head, body }
    }

    pub(super) fn json_reply(&mut self, body: Vec<u8>) -> Reply {
        let head = self.make_head(200, Body::Json);
        self.count_bytes(body.len());
        Reply { head, body }
    }
}

/// `model` of a body that may be wrong elsewhere.
fn model_of(body: &str, depth_max: u32) -> Option<String> {
    let mut reader = Reader::new(body, depth_max);
    reader.begin_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        if key == "model" {
            let model = reader.string().ok()?;
            return (model.decoded_len() <= MODEL_BYTES_MAX).then(|| model.decode().into_owned());
        }
        reader.skip().ok()?;
    }
    None
}

/// A body without the mark before it.
pub(super) fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body)
}
