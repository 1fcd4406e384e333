//! Token counts for Responses upstreams: estimated here, or requested from the upstream's counting
//! endpoint.

use super::write_request::{items_of, tokens_of, write_request};
use crate::config::Upstream;
use crate::error::Error;
use crate::history::Recipient;
use crate::json::Writer;
use crate::model::own_tool::ToolsRunHere;
use crate::observe::warning::Warnings;
use crate::profile::Tokenizer;
use crate::protocols::client::Purpose;
use crate::protocols::client_request::ClientRequest;
use crate::protocols::count;
use crate::protocols::upstream::{CountRequest, Translated};
use crate::tokens::counted::TokenCount;

/// Members of a Responses request that the token-counting endpoint accepts.
const COUNTED: [&str; 8] = [
    "model",
    "instructions",
    "input",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "text",
];

/// Returns the path of the upstream's token-counting endpoint, or `None` if the upstream has no
/// counting endpoint.
pub(super) fn path(upstream: &Upstream) -> Option<String> {
    let counts = upstream.profile.tokenizer == Tokenizer::InputTokens;
    counts.then(|| format!("{}/responses/input_tokens", upstream.base_path))
}

/// Estimates the input tokens of a request.
pub(super) fn estimate(client: &ClientRequest<'_>) -> Result<TokenCount, Error> {
    count::estimate(client, |request, upstream, marks, estimated| {
        let profile = &upstream.profile;
        let runs = ToolsRunHere::default();
        let recipient = Recipient { profile, marks, keeps_ids: false, takes_items: true, runs };
        let mut bytes = 0usize;
        count::sent_reasoning(request, recipient, |blocks| {
            let items = blocks.iter().filter_map(items_of);
            bytes = items.fold(bytes, |sum, items| sum.saturating_add(items.len()));
        });
        estimated.add_tokens(tokens_of(bytes));
    })
}

/// Writes the request for the token-counting endpoint of the upstream that serves the request's
/// model.
pub(super) fn write_count(client: &ClientRequest<'_>) -> Option<CountRequest> {
    // Warnings are discarded: the client gets warnings with the answer to the request itself.
    let mut warnings = Warnings::new(false);
    let translated = write_request(client, Purpose::Count, &[], &mut warnings).ok()?;
    // A request that a guard answers is sent to no upstream, so no upstream can count the tokens.
    let Translated::Send { upstream, body: translated, mut context } = translated else {
        return None;
    };
    context.ask_for_whole();
    let translated = std::str::from_utf8(&translated).ok()?;
    let mut out = Vec::with_capacity(translated.len());
    let mut json = Writer::new(&mut out);
    json.begin_object();
    count::copy(translated, &COUNTED, &mut json)?;
    json.end_object();
    Some(CountRequest { upstream, body: out, beside: 0, may_be_older: false, context })
}
