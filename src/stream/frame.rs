//! The frame of a message: everything but its content.
//!
//! A whole message and the events `message_start` and `message_delta` say the same; here is what
//! each of them writes.

use super::counts::Counts;
use crate::json::{Writer, quote};

/// How a message ends.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop<'a> {
    /// `stop_reason`
    pub(super) reason: &'static str,
    /// The client's sequence, for `stop_sequence`.
    pub(super) sequence: Option<&'a str>,
    /// What the model said as it refused, for `stop_details`.
    pub(super) explanation: &'a str,
}

/// `message_start`, which comes before the upstream's counts are known: clients need `usage` there
/// and crash without it.
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

/// `message_delta`
pub(super) fn write_message_delta(stop: &Stop<'_>, counts: &Counts, out: &mut Vec<u8>) {
    let mut json = Writer::new(out);
    json.begin_object().kind("message_delta");
    json.key("delta").begin_object();
    write_stop(stop, &mut json);
    json.key("container").null();
    json.end_object();
    json.key("usage");
    counts.write_delta(&mut json);
    json.end_object();
}

/// A whole message. `content` is what stands between the brackets.
pub(super) fn write_message(
    id: &str,
    model: &str,
    content: &[u8],
    stop: &Stop<'_>,
    counts: &Counts,
    service_tier: Option<&str>,
    out: &mut Vec<u8>,
) {
    out.reserve(content.len().saturating_add(1024));
    let mut json = Writer::new(out);
    json.begin_object();
    write_head(id, model, &mut json);
    json.key("content").begin_array();
    json.out().extend_from_slice(content);
    json.end_array();
    write_stop(stop, &mut json);
    json.key("container").null();
    json.key("diagnostics").null();
    json.key("usage");
    counts.write_message(service_tier, &mut json);
    json.end_object();
}

fn write_head(id: &str, model: &str, json: &mut Writer<'_>) {
    json.key("id").text(id);
    json.kind("message");
    json.key("role").text("assistant");
    json.key("model").text(model);
}

fn write_stop(stop: &Stop<'_>, json: &mut Writer<'_>) {
    json.key("stop_reason").text(stop.reason);
    json.key("stop_sequence");
    match stop.sequence {
        Some(sequence) => json.text(sequence),
        None => json.null(),
    };
    json.key("stop_details");
    if stop.reason != "refusal" {
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
