//! Client request: its path, and the headers that are sent to an upstream.

use super::base::{is_own, without_doubled};
use super::seam::request_too_large;
use super::{Exchange, Path, RequestHead, passed};
use crate::config::Upstream;
use crate::error::{Error, ErrorKind, Fault};
use crate::headers::{self, Header, Headers};
use crate::json::{Reader, quoted};
use crate::model::request_context::RequestContext;
use crate::observe::report::Outcome;
use crate::protocols;
use crate::text::words;

/// Maximum length of a model name that is copied from a refused request to the log, in bytes.
const MODEL_BYTES_MAX: usize = 256;

impl Exchange {
    /// Handles the head of a request, and decides what the host does with the request. `path` may
    /// have a query.
    pub fn handle_request_head(
        &mut self,
        method: &str,
        path: &str,
        headers: &[Header],
    ) -> RequestHead {
        let path = words::before(path, b"?#");
        self.report.trace_id = headers.value("traceparent").and_then(headers::trace_id);
        let decided = self.route(method, path, headers).unwrap_or_else(|error| {
            self.refuse(&error);
            RequestHead::Answered
        });
        match decided {
            RequestHead::PassThrough => {
                self.state.pass();
                // A host that cannot reach the upstream can then name the upstream in its log.
                if let Some((upstream, _)) = passed(&self.config, path) {
                    self.report.upstream.clone_from(&upstream.name);
                }
            }
            RequestHead::Translate => {
                self.client.headers = headers::kept(headers);
                if self.tells_sessions() {
                    self.client.session = headers::session::of_headers(headers);
                }
                if !self.config.client_keys.is_empty() {
                    // The client's key authorizes access to this gateway and must not reach an
                    // upstream.
                    let is_credential = |name: &str| headers::CREDENTIALS.contains(&name);
                    self.client.headers.retain(|(name, _)| !is_credential(name));
                }
            }
            RequestHead::Answered if method == "HEAD" => {
                self.output.body.clear();
                self.report.response_bytes = 0;
            }
            RequestHead::Answered => {}
        }
        decided
    }

    fn answer_at_once(&mut self, body: &[u8]) -> RequestHead {
        self.answer_json(body);
        self.end(Outcome::Answered, 200);
        RequestHead::Answered
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
        if !(probe && matches!(path, "/" | "/api/hello"))
            && (is_own(path) || !self.can.serve_others)
        {
            self.check_caller(headers)?;
        }
        if let Some((protocol, endpoint)) = protocols::client_of(path) {
            (self.client.protocol, self.client.path) = (protocol, Path::Endpoint(endpoint));
            return self.check_post(method, headers);
        }
        match path {
            "/" | "/api/hello" if probe => Ok(self.answer_at_once(b"{}")),
            "/v1/models" if self.is_upstreams_list(method, headers) => {
                if self.wants_own_list(headers) {
                    return Ok(RequestHead::PassThrough);
                }
                let protocol = protocols::list_protocol(headers);
                self.client.protocol = protocol;
                self.client.path = Path::Models(protocol.list_for(headers));
                Ok(RequestHead::Translate)
            }
            "/v1/models" if probe => {
                let protocol = protocols::list_protocol(headers);
                let list = protocol.write_models(&self.config, protocol.list_for(headers));
                Ok(self.answer_at_once(&list))
            }
            _ if path.starts_with("/v1/models/") && probe => {
                let id = path.strip_prefix("/v1/models/").unwrap_or_default();
                let body = protocols::list_protocol(headers).write_model(&self.config, id)?;
                Ok(self.answer_at_once(&body))
            }
            _ if protocols::is_of_client(path) => {
                let message = format!("{method} {path}: not found");
                Err(Error::new(Fault::Client, ErrorKind::NotFound, message))
            }
            _ => {
                self.check_other(method)?;
                Ok(RequestHead::PassThrough)
            }
        }
    }

    /// Checks the head of a request whose body Creole reads.
    fn check_post(&self, method: &str, headers: &[Header]) -> Result<RequestHead, Error> {
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

    /// Returns path and headers for an upstream, for a host that must send the request head before
    /// the body is known. Apart from `accept`, path and headers are the same for every body. The
    /// headers are empty if the client sent no credential: the exchange refuses the request once
    /// the body is complete.
    #[must_use]
    pub fn early_head(&self, upstream: &Upstream) -> (String, Vec<Header>) {
        let headers = self.upstream_headers(upstream, true).unwrap_or_default();
        (self.upstream_path(upstream), headers)
    }

    pub(super) fn upstream_path(&self, upstream: &Upstream) -> String {
        match self.client.path {
            Path::COUNT => protocols::count_path(&self.config, upstream),
            Path::Models(_) => Some(format!("{}/models", upstream.base_path)),
            Path::ANSWER => None,
        }
        .unwrap_or_else(|| {
            format!("{}/{}", upstream.base_path, protocols::of(upstream.protocol).endpoint())
        })
    }

    /// Returns true if any upstream is configured to receive the id of the conversation.
    fn tells_sessions(&self) -> bool {
        self.config.upstreams.values().any(|upstream| !upstream.session.names.is_empty())
    }

    /// Stores the conversation's id from the request body, if no header contained an id.
    pub(super) fn note_session(&mut self, body: &str) {
        if self.client.session.is_none() && self.tells_sessions() {
            self.client.session = headers::session::of_body(body);
        }
    }

    pub(super) fn upstream_headers(
        &self,
        upstream: &Upstream,
        stream: bool,
    ) -> Result<Vec<Header>, Error> {
        let protocol = protocols::of(upstream.protocol);
        let mut headers = protocol.headers(&self.client.headers, &upstream.key, stream)?;
        if let Some(session) = &self.client.session {
            headers::session::set(session, &upstream.session, &mut headers);
        }
        headers::set_own(&upstream.headers, &mut headers);
        Ok(headers)
    }

    pub(super) fn note(&mut self, context: &RequestContext) {
        self.report.model.clone_from(&context.model);
        self.report.stream = context.stream;
        self.report.counts = context.counts;
    }

    /// Records a refused request for the report: its model, and the upstream to which the request
    /// would have been routed.
    pub(super) fn note_refused(&mut self, body: &str) {
        let Some(model) = model_of(body) else { return };
        self.note_upstream(&model);
        self.report.model = model;
    }

    /// Records the upstream to which requests for `model` are routed, for a request that is not
    /// sent.
    pub(super) fn note_upstream(&mut self, model: &str) {
        if let Some((upstream, _)) = self.config.route(model) {
            self.report.upstream.clone_from(&upstream.name);
        }
    }
}

/// Reads `model` from a request body that may be invalid elsewhere.
fn model_of(body: &str) -> Option<String> {
    let mut reader = Reader::of(body);
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
