//! Anthropic Messages API: requests and answers of clients, and of upstreams that use the same API.

pub(crate) mod check;
pub(crate) mod models;
mod relay;
pub(crate) mod relay_answer;
pub(crate) mod write_answer;
pub(crate) mod write_error;

use super::client::{ClientProtocol, Endpoint, ListFor, Purpose};
use super::client_request::ClientRequest;
use super::upstream::{CountRequest, Translated, UpstreamProtocol};
use crate::answer::{AnswerReader, AnswerWriter};
use crate::config::{Config, Key, Settings, Upstream};
use crate::error::Error;
use crate::headers::{self, Header, Headers as _};
use crate::history::hidden_images::Hidden;
use crate::ids::Ids;
use crate::json;
use crate::model::Request;
use crate::model::request_context::RequestContext;
use crate::observe::warning::Warnings;
use crate::text::surrogates;
use crate::tokens;
use crate::tokens::counted::TokenCount;
use crate::upstream_error::refused::Refused;
use relay_answer::MessagesRelay;
use write_answer::{MessagesWriter, PING};

/// Messages API, as a protocol of clients and of upstreams.
pub(crate) struct Messages;

/// Path of the endpoint that answers.
const PATH: &str = "/v1/messages";

impl ClientProtocol for Messages {
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        match path.strip_prefix(PATH)? {
            "" => Some(Endpoint::Answer),
            "/count_tokens" => Some(Endpoint::Count),
            _ => None,
        }
    }

    fn owns(&self, path: &str) -> bool {
        path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn read<'a>(
        &self,
        body: &'a str,
        purpose: Purpose,
        warnings: &mut Warnings,
    ) -> Result<Request<'a>, Error> {
        let request = Request::read(body, warnings)?;
        if request.max_tokens.is_none() && purpose == Purpose::Answer {
            return Err(json::Error::value("Field required").in_key("max_tokens").into());
        }
        Ok(request)
    }

    fn check<'c>(
        &self,
        request: &Request<'_>,
        model: &'c str,
        route: Option<(&'c Upstream, &'c str)>,
        headers: &[Header],
        calls_mcp_here: bool,
        warnings: &mut Warnings,
    ) -> Result<(&'c Upstream, &'c str), Error> {
        check::request(request, model, route, headers, calls_mcp_here, warnings)
    }

    fn check_strictly(&self, request: &Request<'_>) -> Result<(), Error> {
        check::strictly(request)
    }

    fn writer(&self, stream: bool, ids: Ids) -> Box<dyn AnswerWriter> {
        Box::new(MessagesWriter::new(stream, ids))
    }

    fn write_error(&self, error: &Error, request_id: &str, out: &mut Vec<u8>) {
        write_error::body(error, request_id, out);
    }

    fn write_error_event(&self, error: &Error, request_id: &str, out: &mut Vec<u8>) {
        write_error::event(error, request_id, out);
    }

    fn ping(&self) -> &'static [u8] {
        PING
    }

    fn write_count(&self, TokenCount { input, original }: TokenCount) -> Vec<u8> {
        let edited = original.map_or_else(String::new, |original| {
            format!(",\"context_management\":{{\"original_input_tokens\":{original}}}")
        });
        format!("{{\"input_tokens\":{input}{edited}}}").into_bytes()
    }

    fn lists_for(&self, headers: &[Header]) -> bool {
        headers.value("anthropic-version").is_some()
    }

    fn list_for(&self, headers: &[Header]) -> ListFor {
        models::list_for(headers.value("user-agent"))
    }

    fn write_models(&self, config: &Config, list_for: ListFor) -> Vec<u8> {
        models::list(config, list_for)
    }

    fn rewrite_models(&self, body: &[u8], list_for: ListFor) -> Option<Vec<u8>> {
        models::of_upstream(body, list_for)
    }

    fn write_model(&self, config: &Config, id: &str) -> Result<Vec<u8>, Error> {
        models::one(config, id)
    }
}

impl UpstreamProtocol for Messages {
    fn endpoint(&self) -> &'static str {
        "messages"
    }

    fn headers(&self, client: &[Header], key: &Key, stream: bool) -> Result<Vec<Header>, Error> {
        headers::to_messages_upstream(client, key, stream)
    }

    fn own_credential(&self, key: &Key) -> Option<(&'static str, String)> {
        headers::api_key(key)
    }

    fn write_request(
        &self,
        client: &ClientRequest<'_>,
        refused: &[Refused],
        warnings: &mut Warnings,
    ) -> Result<Translated, Error> {
        relay::write_request(client, refused, warnings)
    }

    fn estimate(&self, client: &ClientRequest<'_>) -> Result<TokenCount, Error> {
        if !relay::takes(client) {
            let mut warnings = Warnings::new(client.config.settings.strict);
            return Err(client.refusal(Purpose::Count, &mut warnings));
        }
        let body = surrogates::without_halves(client.body);
        // Anthropic's API also accepts requests that Creole cannot serve or cannot parse yet.
        let read = Request::read(&body, &mut Warnings::new(false));
        let input = match read {
            Ok(request) => {
                let hidden = Hidden::find(&request, &client.config.settings).outside_errors();
                let mut request = request;
                hidden.show(&mut request, &mut Warnings::new(false));
                tokens::estimate_carefully(&request).sum()
            }
            Err(error) if error.is_too_many() => return Err(error),
            Err(_) => tokens::tokens_of(client.body.len() as u64),
        };
        Ok(TokenCount::new(input, None))
    }

    fn count_path(&self, upstream: &Upstream) -> Option<String> {
        Some(format!("{}/messages/count_tokens", upstream.base_path))
    }

    fn write_count(&self, client: &ClientRequest<'_>) -> Option<CountRequest> {
        // The warnings are sent with the answer to the request itself, not with a count.
        let translated = self.write_request(client, &[], &mut Warnings::new(false)).ok()?;
        let Translated::Send { upstream, body, mut context } = translated else { return None };
        context.ask_for_whole();
        Some(CountRequest { upstream, body, beside: 0, may_be_older: false, context })
    }

    fn may_refuse(&self, refused: &Refused, _context: &RequestContext) -> bool {
        refused.is_of_messages()
    }

    fn begins_in_silence(&self) -> bool {
        false
    }

    fn lists_in_messages(&self) -> bool {
        true
    }

    fn reader(&self, context: &mut RequestContext, settings: &Settings) -> Box<dyn AnswerReader> {
        super::json_answer(Box::new(MessagesRelay::new(context.stream)), settings)
    }
}
