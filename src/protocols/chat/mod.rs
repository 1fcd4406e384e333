//! Translation of requests and answers for upstreams of OpenAI's Chat Completions API.

mod count;
pub(crate) mod read_answer;
pub(crate) mod wire;
mod write_request;

use super::client::Purpose;
use super::client_request::ClientRequest;
use super::upstream::{CountRequest, Translated, UpstreamProtocol};
use crate::answer::AnswerReader;
use crate::config::{Settings, Upstream};
use crate::error::Error;
use crate::model::request_context::RequestContext;
use crate::observe::warning::Warnings;
use crate::tokens::counted::TokenCount;
use crate::upstream_error::refused::Refused;
use read_answer::ChatReader;

/// Protocol implementation for upstreams of the Chat Completions API.
pub(crate) struct Chat;

impl UpstreamProtocol for Chat {
    fn endpoint(&self) -> &'static str {
        "chat/completions"
    }

    fn write_request(
        &self,
        client: &ClientRequest<'_>,
        refused: &[Refused],
        warnings: &mut Warnings,
    ) -> Result<Translated, Error> {
        write_request::write_request(client, Purpose::Answer, refused, warnings)
    }

    fn estimate(&self, client: &ClientRequest<'_>) -> Result<TokenCount, Error> {
        count::estimate(client)
    }

    fn count_path(&self, upstream: &Upstream) -> Option<String> {
        count::path(upstream)
    }

    fn write_count(&self, client: &ClientRequest<'_>) -> Option<CountRequest> {
        count::write_count(client)
    }

    fn may_refuse(&self, refused: &Refused, context: &RequestContext) -> bool {
        refused.may_be_in_chat(context)
    }

    fn rebuilds_calls(&self) -> bool {
        true
    }

    fn remembers_refusals(&self) -> bool {
        true
    }

    fn reader(&self, context: &mut RequestContext, settings: &Settings) -> Box<dyn AnswerReader> {
        let ids_used = std::mem::take(&mut context.ids_used);
        super::json_answer(Box::new(ChatReader::new(context, ids_used)), settings)
    }
}
