//! Anthropic Messages API: requests and answers of clients, and of upstreams that use the same API.

pub(crate) mod check;
pub(crate) mod models;
mod relay;
pub(crate) mod relay_answer;
pub(crate) mod write_answer;
pub(crate) mod write_error;

use super::client::{ClientRequest, Purpose};
use super::upstream::{CountRequest, Translated, UpstreamProtocol};
use crate::answer::AnswerReader;
use crate::config::{Key, Settings, Upstream};
use crate::error::Error;
use crate::headers::{self, Header};
use crate::history::hidden_images::Hidden;
use crate::model::Request;
use crate::model::request_context::RequestContext;
use crate::observe::warning::Warnings;
use crate::text::surrogates;
use crate::tokens;
use crate::tokens::counted::TokenCount;
use crate::upstream_error::refused::Refused;
use relay_answer::MessagesRelay;

/// Protocol of upstreams that use the Messages API, as clients do.
pub(crate) struct Messages;

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
