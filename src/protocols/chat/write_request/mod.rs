//! Writes a prepared request as a Chat Completions request: the translation of each field, and the
//! order of the steps.

pub(crate) mod assistant;
pub(crate) mod effort;
pub(crate) mod fields;
pub(crate) mod messages;
pub(crate) mod parts;
pub(crate) mod thinking;
pub(crate) mod user;

use crate::error::Error;
use crate::json::Writer;
use crate::model::Block;
use crate::model::turn::Turn;
use crate::observe::warning::Warnings;
use crate::profile::Prefill;
use crate::protocols::client::Purpose;
use crate::protocols::client_request::ClientRequest;
use crate::protocols::decide::{Decided, is_prefilled, translate};
use crate::protocols::upstream::Translated;
use crate::protocols::words::Words;
use crate::tokens;
use crate::upstream_error::refused::Refused;
use messages::MessageWriter;

/// Writes a Chat Completions request without the features that the upstream refused earlier.
pub(crate) fn write_request(
    client: &ClientRequest<'_>,
    purpose: Purpose,
    refused: &[Refused],
    warnings: &mut Warnings,
) -> Result<Translated, Error> {
    translate(client, purpose, refused, warnings, write)
}

fn write(decided: Decided<'_>, warnings: &mut Warnings) -> Result<Translated, Error> {
    let Decided { request, body, upstream, profile, system, mut turns, tools, mut context, .. } =
        decided;
    let profile = profile.as_ref();
    let continues = profile.prefill == Prefill::Continue && continues(&turns);
    let mut out = Vec::with_capacity(body.len().saturating_add(body.len() / 8));
    let mut json = Writer::new(&mut out);
    json.begin_object().key("model").text(decided.model);
    let words = Words { profile, body, parts: &parts::PARTS };
    let schema_bytes = system.schema.map_or(0, str::len);
    let writer = MessageWriter::new(words, &tools, system, warnings);
    writer.breakpoints.mark_end(request.cached, &mut turns);
    let written = writer.write(turns, json.key("messages"))?;
    // Tokens of the reasoning and the JSON schema, which the estimate does not include.
    let more = tokens::tokens_of(written.reasoning_bytes.saturating_add(schema_bytes) as u64);
    context.refusable.silent_calls = written.silent_calls;
    context.input_tokens = context.input_tokens.saturating_add(more);
    tools.write(&mut json, written.tool_mark);
    if continues {
        json.key("continue_final_message").bool(true).key("add_generation_prompt").bool(false);
    }
    fields::write(&request, &decided.effective, profile, decided.headers, warnings, &mut json)?;
    json.end_object();
    Ok(Translated::written(&request, upstream, out, context))
}

/// Returns true if the last turn is a non-empty text of the assistant that the model must continue.
/// An empty assistant message is not sent.
fn continues(turns: &[Turn<'_>]) -> bool {
    let says = |block: &Block<'_>| matches!(block, Block::Text(text) if !text.text.is_empty());
    is_prefilled(turns)
        && matches!(turns.last(), Some(Turn::Assistant(blocks)) if blocks.iter().any(says))
}
