//! JSON of a Messages API answer apart from its content: ids, stop reason and token counts.
//!
//! A whole message and the events `message_start` and `message_delta` carry the same data; this
//! module writes all three.

use crate::StopReason;
use crate::json::{Writer, quote};
use crate::model::context_management::Cleared;
use crate::model::counts::Counts;
use crate::model::event::Stop;

/// Writes `message_start` before the upstream's token counts are known: clients require `usage` in
/// this event and crash without it.
pub(super) fn write_message_start(id: &str, model: &str, input_tokens: u64, out: &mut Vec<u8>) {
    let mut json = Writer::new(out);
    json.begin_object().kind("message_start");
    json.key("message").begin_object();
    write_head(id, model, &mut json);
    json.key("content").raw("[]");
    json.key("stop_reason").null().key("stop_sequence").null().key("stop_details").null();
    json.key("container").null();
    json.key("usage").begin_object();
    json.key("input_tokens").u64(input_tokens);
    json.key("cache_creation_input_tokens").u64(0);
    json.key("cache_read_input_tokens").u64(0);
    json.key("output_tokens").u64(0);
    json.key("service_tier").null();
    json.end_object().end_object().end_object();
}

/// Writes `message_delta`, with the token counts of the answer.
pub(super) fn write_message_delta(stop: &Stop<'_>, out: &mut Vec<u8>) {
    let mut json = Writer::new(out);
    json.begin_object().kind("message_delta");
    json.key("delta").begin_object();
    write_stop(stop, &mut json);
    json.key("container").null();
    json.end_object();
    json.key("usage");
    json.begin_object();
    write_input_counts(&stop.counts, &mut json);
    json.key("output_tokens").u64(stop.counts.output);
    write_details(&stop.counts, &mut json);
    if stop.searches.is_some() {
        write_web_uses(stop, &mut json);
    }
    write_iterations(stop.iterations, &mut json);
    json.end_object();
    write_cleared(stop.cleared, &mut json);
    json.end_object();
}

/// Writes a whole message. `content` is the text between the brackets of the message's `content`.
pub(super) fn write_message(id: &str, content: &[u8], stop: &Stop<'_>, out: &mut Vec<u8>) {
    out.reserve(content.len().saturating_add(1024));
    let mut json = Writer::new(out);
    json.begin_object();
    write_head(id, stop.model, &mut json);
    json.key("content").begin_array();
    json.out().extend_from_slice(content);
    json.end_array();
    write_stop(stop, &mut json);
    json.key("container").null();
    json.key("diagnostics").null();
    json.key("usage");
    write_usage(stop, &mut json);
    write_cleared(stop.cleared, &mut json);
    json.end_object();
}

/// Writes the `usage` of a whole message, with every field of the format.
fn write_usage(stop: &Stop<'_>, json: &mut Writer<'_>) {
    json.begin_object();
    write_input_counts(&stop.counts, json);
    write_creation(stop.counts.cache_creation, json);
    json.key("output_tokens").u64(stop.counts.output);
    write_details(&stop.counts, json);
    write_web_uses(stop, json);
    json.key("service_tier");
    match stop.service_tier {
        Some(tier) => json.text(tier),
        None => json.null(),
    };
    json.key("speed").null();
    json.key("inference_geo").null();
    write_iterations(stop.iterations, json);
    json.end_object();
}

/// Writes the number of tokens written to a cache, by cache duration. Upstreams other than
/// Anthropic do not report the duration, and five minutes are the default.
fn write_creation(tokens: u64, json: &mut Writer<'_>) {
    json.key("cache_creation");
    if tokens == 0 {
        json.null();
        return;
    }
    json.begin_object();
    json.key("ephemeral_5m_input_tokens").u64(tokens);
    json.key("ephemeral_1h_input_tokens").u64(0);
    json.end_object();
}

fn write_head(id: &str, model: &str, json: &mut Writer<'_>) {
    json.key("id").text(id);
    json.kind("message");
    json.key("role").text("assistant");
    json.key("model").text(model);
}

fn write_stop(stop: &Stop<'_>, json: &mut Writer<'_>) {
    json.key("stop_reason").text(stop.reason.word());
    json.key("stop_sequence");
    match stop.sequence {
        Some(sequence) => json.text(sequence),
        None => json.null(),
    };
    json.key("stop_details");
    if stop.reason != StopReason::Refusal {
        json.null();
        return;
    }
    json.begin_object().kind("refusal").key("category").null();
    json.key("explanation");
    if stop.explanation.is_empty() {
        json.null();
    } else {
        quote(json.out(), stop.explanation);
    }
    json.end_object();
}

/// Writes the token counts of each round of an answer with several rounds.
fn write_iterations(rounds: &[Counts], json: &mut Writer<'_>) {
    if rounds.is_empty() {
        return;
    }
    json.key("iterations").begin_array();
    for counts in rounds {
        json.begin_object().kind("message");
        write_input_counts(counts, json);
        json.key("output_tokens").u64(counts.output).end_object();
    }
    json.end_array();
}

/// Writes the numbers of web searches and fetches.
fn write_web_uses(stop: &Stop<'_>, json: &mut Writer<'_>) {
    json.key("server_tool_use");
    let Some(searches) = stop.searches else {
        json.null();
        return;
    };
    json.begin_object();
    json.key("web_search_requests").u64(searches);
    json.key("web_fetch_requests").u64(stop.fetches.unwrap_or_default());
    json.end_object();
}

/// Writes the parts cleared from the history, if the client requested clearing.
fn write_cleared(cleared: Option<Cleared>, json: &mut Writer<'_>) {
    let Some(cleared) = cleared else { return };
    json.key("context_management").begin_object().key("applied_edits").begin_array();
    for (kind, what, count, tokens) in [
        (
            "clear_thinking_20251015",
            "cleared_thinking_turns",
            cleared.thinking_turns,
            cleared.thinking_tokens,
        ),
        ("clear_tool_uses_20250919", "cleared_tool_uses", cleared.tool_uses, cleared.tool_tokens),
    ] {
        if count > 0 {
            json.begin_object().kind(kind);
            json.key(what).u64(count).key("cleared_input_tokens").u64(tokens);
            json.end_object();
        }
    }
    json.end_array().end_object();
}

fn write_details(counts: &Counts, json: &mut Writer<'_>) {
    json.key("output_tokens_details");
    match counts.thinking {
        Some(thinking) => {
            json.begin_object().key("thinking_tokens").u64(thinking).end_object();
        }
        None => {
            json.null();
        }
    }
}

fn write_input_counts(counts: &Counts, json: &mut Writer<'_>) {
    json.key("input_tokens").u64(counts.input);
    json.key("cache_creation_input_tokens").u64(counts.cache_creation);
    json.key("cache_read_input_tokens").u64(counts.cache_read);
}
