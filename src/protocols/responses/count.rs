//! Tokens of a request: estimated here, or counted by the upstream's own endpoint.

use super::write_request::{items_of, tokens_of, write_request};
use crate::carry::marks::Marks;
use crate::config::Upstream;
use crate::dialect::profile::Tokenizer;
use crate::error::Error;
use crate::history::{History, Recipient};
use crate::json::{Reader, Writer};
use crate::model::turn::Turn;
use crate::model::{Block, Request};
use crate::observe::warning::Warnings;
use crate::protocols::clearing;
use crate::protocols::client::{ClientRequest, Purpose, Routed};
use crate::protocols::decide::schema_in_words;
use crate::protocols::upstream::{CountRequest, Translated};
use crate::text::surrogates;
use crate::tokens;
use crate::tokens::counted::TokenCount;

/// The members of a request that the endpoint takes.
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

/// Where an upstream counts; nothing where it cannot.
pub(super) fn path(upstream: &Upstream) -> Option<String> {
    let counts = upstream.profile.tokenizer == Tokenizer::InputTokens;
    counts.then(|| format!("{}/responses/input_tokens", upstream.base_path))
}

/// Estimates the input tokens of a request.
pub(super) fn estimate(client: &ClientRequest<'_>) -> Result<TokenCount, Error> {
    let mut warnings = Warnings::new(client.config.settings.strict);
    client.read(Purpose::Count, &mut warnings, |routed, _| {
        let Routed { mut request, upstream, model, .. } = routed;
        let marks = Marks::new(client.config, upstream, model);
        let cleared = clearing::clear(&mut request, &upstream.profile);
        let mut estimated = tokens::estimate_carefully(&request);
        estimated.add(schema_in_words(&request, &upstream.profile).unwrap_or_default());
        let reasoning = tokens_of(sent_reasoning(&mut request, upstream, &marks));
        Ok(TokenCount::new(estimated.sum().saturating_add(reasoning), cleared))
    })
}

/// Bytes of the reasoning of earlier turns that goes back to an upstream. The messages are taken out of the request.
fn sent_reasoning(request: &mut Request<'_>, upstream: &Upstream, marks: &Marks) -> usize {
    let thinks =
        |block: &Block<'_>| matches!(block, Block::Thinking { .. } | Block::RedactedThinking(_));
    if !request.messages.iter().any(|message| message.content.iter().any(thinks)) {
        return 0;
    }
    let messages = std::mem::take(&mut request.messages);
    let profile = &upstream.profile;
    let recipient = Recipient { profile, marks, keeps_ids: false, takes_items: true };
    // What cannot be sent is an error where it is sent.
    let history = History::read(messages, recipient, &mut Warnings::new(false));
    let turns = history.map(|history| history.turns).unwrap_or_default();
    let blocks = turns.iter().flat_map(|turn| match turn {
        Turn::Assistant(blocks) => blocks.as_slice(),
        _ => &[],
    });
    blocks.filter_map(items_of).fold(0, |sum, items| items.len().saturating_add(sum))
}

/// The request for the endpoint of the upstream that serves the model of a request.
pub(super) fn write_count(client: &ClientRequest<'_>) -> Option<CountRequest> {
    let body = surrogates::without_halves(client.body);
    let client = ClientRequest { body: &body, ..*client };
    // The client asks for a number: warnings go with the answer of the request itself.
    let mut warnings = Warnings::new(false);
    let translated = write_request(&client, Purpose::Count, &[], &mut warnings).ok()?;
    // What a guard answers goes to no upstream, which could count it.
    let Translated::Send { upstream, body: translated, mut context } = translated else {
        return None;
    };
    context.stream = false;
    let translated = std::str::from_utf8(&translated).ok()?;
    let mut out = Vec::with_capacity(translated.len());
    let mut json = Writer::new(&mut out);
    // What is nested deeper than a reader can go has no exact count and is estimated.
    let mut reader = Reader::of(translated);
    reader.begin_object().ok()?;
    json.begin_object();
    while let Some(key) = reader.next_key().ok()? {
        let value = reader.skip().ok()?;
        let key = key.decode();
        if COUNTED.contains(&&*key) {
            json.key_text(&key).raw(value);
        }
    }
    json.end_object();
    Some(CountRequest { upstream, body: out, beside: 0, may_be_older: false, context })
}
