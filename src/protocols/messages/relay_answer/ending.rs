//! First and last event of an answer: ids, token counts and the stop reason, which are completed if
//! a server leaves them out. Values that exist are kept as written.

use super::member::{count, member, quoted, text, with};
use crate::StopReason;
use crate::answer::ReaderOutput;
use crate::answer::output::failure as failure_of;
use crate::error::Error;
use crate::json::{self, Reader};
use crate::model::counts::{Counts, Estimate};
use crate::model::request_context::RequestContext;
use crate::model::stop_reason::{self, EndFacts};
use crate::model::usage::Usage;
use crate::observe::report::AnswerReport;
use crate::profile::ResponseModel;
use crate::tokens::tokens_of;

/// Completes `message_start` with all members that clients need. `message` is the value of
/// `message` in `data`.
pub(super) fn started(data: &str, message: &str, to: &mut ReaderOutput<'_>) -> String {
    note(message, to.report);
    let mut changes = head(message, to);
    if !is_value(message, "content", "[]") {
        changes.push(("content", "[]".to_owned()));
    }
    for name in ["stop_reason", "stop_sequence"] {
        if !is_value(message, name, "null") {
            changes.push((name, "null".to_owned()));
        }
    }
    let given = member(message, "usage").unwrap_or("{}");
    if count(given, "input_tokens").is_none() || count(given, "output_tokens").is_none() {
        let said = usage(message).unwrap_or_default();
        let counts = Counts::of(Some(said), estimate(0, to));
        changes.push(("usage", completed(given, &counts, true)));
        to.report.input_tokens = counts.input;
    }
    if changes.is_empty() && text(data, "type").is_some() {
        return data.to_owned();
    }
    let message = with_own(message, &changes);
    with(data, &[("type", "\"message_start\""), ("message", &message)])
}

/// Replaces members of a JSON object with [`with`], for new values that are owned strings.
fn with_own(object: &str, changes: &[(&'static str, String)]) -> String {
    let changes: Vec<_> = changes.iter().map(|(name, value)| (*name, value.as_str())).collect();
    with(object, &changes)
}

/// Records the id, model and token counts of a message in the report.
pub(super) fn note(message: &str, report: &mut AnswerReport) {
    if let Some(id) = text(message, "id").filter(|id| !id.is_empty()) {
        report.upstream_id = Some(id.decode().into_owned());
    }
    if let Some(model) = text(message, "model").filter(|model| !model.is_empty()) {
        report.named_model = Some(model.decode().into_owned());
    }
    if let Some(input) = count(member(message, "usage").unwrap_or("{}"), "input_tokens") {
        report.input_tokens = input;
    }
    report_details(usage(message).unwrap_or_default(), report);
}

/// Returns the changes that a message needs in `id`, `type`, `role` and `model`.
pub(super) fn head(message: &str, to: &ReaderOutput<'_>) -> Vec<(&'static str, String)> {
    let mut changes: Vec<(&'static str, String)> = Vec::new();
    let is = |name, value: &str| text(message, name).is_some_and(|text| text == *value);
    if text(message, "id").is_none_or(|id| id.is_empty()) {
        changes.push(("id", quoted(&to.ids.message())));
    }
    for (name, value) in [("type", "message"), ("role", "assistant")] {
        if !is(name, value) {
            changes.push((name, quoted(value)));
        }
    }
    let keeps_model =
        !to.context.model_mapped || to.context.profile.response_model == ResponseModel::Upstream;
    let has_model = text(message, "model").is_some_and(|model| !model.is_empty());
    if !(has_model && keeps_model || is("model", &to.context.model)) {
        changes.push(("model", quoted(&to.context.model)));
    }
    changes
}

/// Returns true if the member `name` of `object` has the JSON text `value`, ignoring white space.
fn is_value(object: &str, name: &str, value: &str) -> bool {
    let plain =
        |text: &str| text.bytes().filter(|byte| !byte.is_ascii_whitespace()).eq(value.bytes());
    json::member(object, name).is_some_and(plain)
}

/// Records cached and thinking tokens counted by an upstream in the report.
fn report_details(usage: Usage, report: &mut AnswerReport) {
    report.cache_read_tokens = usage.cache_read.unwrap_or(report.cache_read_tokens);
    report.cache_creation_tokens = usage.cache_written.unwrap_or(report.cache_creation_tokens);
    report.thinking_tokens = usage.reasoning.unwrap_or(report.thinking_tokens);
}

/// Returns estimates for counts that an upstream does not send. `output_bytes`: length of the
/// answer.
fn estimate(output_bytes: u64, to: &ReaderOutput<'_>) -> Estimate {
    Estimate { input: to.context.input_tokens, output: tokens_of(output_bytes) }
}

/// Reads the `usage` of an object, in the format of any protocol.
fn usage(object: &str) -> Option<Usage> {
    Usage::read(&mut Reader::of(member(object, "usage")?)).ok()?
}

fn completed(usage: &str, counts: &Counts, input: bool) -> String {
    let (input_tokens, output_tokens) = (counts.input.to_string(), counts.output.to_string());
    let mut changes = Vec::new();
    if input && count(usage, "input_tokens").is_none() {
        changes.push(("input_tokens", input_tokens.as_str()));
    }
    if count(usage, "output_tokens").is_none() {
        changes.push(("output_tokens", output_tokens.as_str()));
    }
    with(usage, &changes)
}

/// Returns the error for a `message_delta` whose `stop_reason` signals an error, else `None`.
pub(super) fn failure(data: &str, context: &RequestContext) -> Option<Error> {
    let word = text(member(data, "delta")?, "stop_reason")?;
    failure_of(&word.decode(), context)
}

/// Merges two `message_delta` events. Values of the later event win, except for nulls.
pub(super) fn merged(earlier: &str, later: &str) -> String {
    // Members that a server adds on its own are not merged.
    const NAMES: [&str; 8] = [
        "stop_reason",
        "stop_sequence",
        "stop_details",
        "container",
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    ];
    let mut joined = Vec::new();
    for part in ["delta", "usage"] {
        let Some(first) = member(earlier, part) else { continue };
        let second = member(later, part).unwrap_or("{}");
        let mut said = Vec::new();
        for name in NAMES {
            if let Some(value) = member(second, name) {
                said.push((name, value));
            }
        }
        joined.push((part, with(first, &said)));
    }
    with_own(later, &joined)
}

/// Completes the `message_delta` event at the end of an answer: stop reason and token counts.
pub(super) fn finished(
    data: &str,
    has_call: bool,
    output_bytes: u64,
    to: &mut ReaderOutput<'_>,
) -> Result<String, Error> {
    let delta = member(data, "delta").unwrap_or("{}");
    let given = member(data, "usage").unwrap_or("{}");
    let said = text(delta, "stop_reason").map(|word| word.decode().into_owned());
    let reason = reason(said.as_deref(), has_call, to.report.progress > 0)?;
    to.report.stop_reason = StopReason::of(&reason);
    let counted = usage(data).unwrap_or_default();
    report_details(counted, to.report);
    let counts = Counts::of(Some(counted), estimate(output_bytes, to));
    to.report.output_tokens = counts.output;
    let told = counted.prompt.or(counted.input).is_some();
    // Servers exist that send 0 instead of a count. A prompt is never empty, but can be cached
    // completely.
    if told && (counts.input > 0 || counts.cache_read > 0 || counts.cache_creation > 0) {
        to.report.input_tokens = counts.input;
    }
    let mut usage = given.to_owned();
    if count(given, "output_tokens").is_none() {
        to.warnings.add("usage_estimated");
        usage = completed(given, &counts, false);
    }
    let reason_stays = said.as_deref() == Some(reason.as_str());
    if reason_stays && usage == given && text(data, "type").is_some() {
        return Ok(data.to_owned());
    }
    let mut changes = vec![("stop_reason", quoted(&reason))];
    if !super::member::has(delta, "stop_sequence") {
        changes.push(("stop_sequence", "null".to_owned()));
    }
    let delta = with_own(delta, if reason_stays { &[] } else { &changes });
    Ok(with(data, &[("type", "\"message_delta\""), ("delta", &delta), ("usage", &usage)]))
}

/// Returns the stop reason as a keyword of the Messages API. An unknown keyword is kept, because
/// the API may have added the keyword recently.
pub(super) fn reason(said: Option<&str>, has_call: bool, has_block: bool) -> Result<String, Error> {
    let word = said.unwrap_or_default();
    let fits = match word {
        "end_turn" => !has_call,
        "tool_use" => has_call,
        _ => StopReason::of(word).is_some() || stop_reason::is_unknown(word),
    };
    if fits && !word.is_empty() {
        return Ok(word.to_owned());
    }
    let facts =
        EndFacts { finish_reason: said, has_tool_use: has_call, has_block, ..EndFacts::default() };
    stop_reason::of(facts).map(|reason| reason.word().to_owned())
}
