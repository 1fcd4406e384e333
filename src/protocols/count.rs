//! Estimates of token counts, and requests for counts, for all upstream protocols.

use crate::carry::marks::Marks;
use crate::config::Upstream;
use crate::error::Error;
use crate::history::{History, Recipient};
use crate::json::{Reader, Writer};
use crate::model::turn::Turn;
use crate::model::{Block, Request};
use crate::observe::warning::Warnings;
use crate::protocols::clearing;
use crate::protocols::client::Purpose;
use crate::protocols::client_request::{ClientRequest, RequestTexts, Routed};
use crate::protocols::decide::schema_in_words;
use crate::tokens::counted::TokenCount;
use crate::tokens::{self, TokenCounter};

/// Estimates the input tokens of a request. `add_reasoning` adds the tokens of the reasoning that
/// is sent back to the upstream.
pub(super) fn estimate(
    client: &ClientRequest<'_>,
    add_reasoning: impl FnOnce(&mut Request<'_>, &Upstream, &Marks, &mut TokenCounter<'static>),
) -> Result<TokenCount, Error> {
    let mut warnings = Warnings::new(client.config.settings.strict);
    let mut texts = RequestTexts::default();
    let read = client.read(Purpose::Count, &mut texts, &mut warnings)?;
    let Routed { mut request, upstream, model, .. } = read;
    let marks = Marks::new(client.config, upstream, model);
    let cleared = clearing::clear(&mut request, &upstream.profile);
    let mut estimated = tokens::estimate_carefully(&request);
    estimated.add(schema_in_words(&request, &upstream.profile).unwrap_or_default());
    add_reasoning(&mut request, upstream, &marks, &mut estimated);
    Ok(TokenCount::new(estimated.sum(), cleared))
}

/// Copies the members whose names are in `names` from the JSON object `object`. Returns `None` if
/// `object` cannot be read.
pub(super) fn copy(object: &str, names: &[&str], json: &mut Writer<'_>) -> Option<()> {
    // An object nested more deeply than the reader's limit has no exact count and is estimated.
    let mut reader = Reader::of(object);
    reader.begin_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        let value = reader.skip().ok()?;
        let key = key.decode();
        if names.contains(&&*key) {
            json.key_text(&key).raw(value);
        }
    }
    Some(())
}

/// Calls `each` with the blocks of each assistant turn, in the form sent to the upstream, if a
/// message has reasoning. The messages are moved out of the request.
pub(super) fn sent_reasoning(
    request: &mut Request<'_>,
    recipient: Recipient<'_>,
    mut each: impl FnMut(&[Block<'_>]),
) {
    let thinks =
        |block: &Block<'_>| matches!(block, Block::Thinking { .. } | Block::RedactedThinking(_));
    if !request.messages.iter().any(|message| message.content.iter().any(thinks)) {
        return;
    }
    let messages = std::mem::take(&mut request.messages);
    // Content that cannot be sent causes an error later, when the request is written.
    let history = History::read(messages, recipient, &mut Warnings::new(false));
    for turn in history.map(|history| history.turns).unwrap_or_default() {
        if let Turn::Assistant(blocks) = turn {
            each(&blocks);
        }
    }
}
