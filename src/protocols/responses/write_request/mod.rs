//! Writer of Responses requests: the fields of a prepared request, and the order of the steps.
//!
//! The member `input` is written last. So each request of a conversation begins with the whole text
//! of the previous request, except two closing brackets.

mod assistant;
mod fields;
mod input;
mod parts;
mod reasoning;
mod user;

pub(super) use reasoning::{items_of, tokens_of};

use crate::error::Error;
use crate::json::Writer;
use crate::observe::warning::Warnings;
use crate::profile::SystemField;
use crate::protocols::client::Purpose;
use crate::protocols::client_request::ClientRequest;
use crate::protocols::decide::{Decided, translate};
use crate::protocols::upstream::Translated;
use crate::protocols::words::{Words, push_system};
use crate::tokens;
use crate::upstream_error::refused::Refused;
use fields::FieldSources;
use input::InputWriter;

/// Writes a Responses request without the features that the upstream refused earlier.
pub(super) fn write_request(
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
    let mut out = Vec::with_capacity(body.len().saturating_add(body.len() / 8));
    let mut json = Writer::new(&mut out);
    json.begin_object().key("model").text(decided.model);
    let (effective, headers) = (decided.effective, decided.headers);
    let asked = FieldSources { request: &request, effective, headers, profile };
    asked.write(&mut context, warnings, &mut json)?;
    let schema_bytes = system.schema.map_or(0, str::len);
    if profile.system_field == SystemField::Instructions && !system.is_empty() {
        json.key("instructions").string(|out| push_system(out, &system));
    }
    tools.write_flat(&mut json);
    let words = Words { profile, body, parts: &parts::PARTS };
    let writer = InputWriter::new(words, &tools, system, warnings);
    writer.breakpoints.mark_end(request.cached, &mut turns);
    let reasoning_bytes = writer.write(turns, json.key("input"))?;
    json.end_object();
    // Tokens of the reasoning and the JSON schema, which the estimate does not include.
    let more = tokens_of(reasoning_bytes).saturating_add(tokens::tokens_of(schema_bytes as u64));
    context.input_tokens = context.input_tokens.saturating_add(more);
    Ok(Translated::written(&request, upstream, out, context))
}
