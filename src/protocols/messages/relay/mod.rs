//! Requests for an upstream of the Messages API. The client's body is sent unchanged, byte for
//! byte, except for the following edits:
//!
//! - the model's name, if the model map gives another name;
//! - thinking blocks with a signature made by Creole, which the upstream could not verify: removed;
//! - empty texts, which the API refuses, and messages that become empty: removed;
//! - calls and results that do not form pairs: repaired as for any upstream (`history::pairs`);
//! - tools and results, if a guard acts (`guards`);
//! - results of web searches that Creole ran, whose contents the API did not seal: made texts
//!   (`sealed`);
//! - texts of results that encode images: replaced by images (`history::body_images`), except in
//!   error results, where the API accepts only texts;
//! - images, files and thinking that the upstream refused: replaced by texts or left out in a
//!   second request;
//! - `safeguards`, if Creole's judge handles it: removed;
//! - other parts that the upstream refused: removed in a second request (`without`).
//!
//! Ids keep their exact value, unless the upstream refused them. A turn that needs no repair keeps
//! its JSON text, including white space and members unknown to Creole. Messages that cannot be read
//! as a history are sent unchanged, for the upstream to refuse.

mod guards;
mod history;
mod sealed;
mod tool_names;
mod without;

use crate::StopReason;
use std::mem;
use std::ops::Range;

use crate::carry::tool_id;
use crate::config::{Config, Guards, Pairing, ToolArguments, Upstream};
use crate::error::Error;
use crate::history::attached;
use crate::history::body_images::{self, ImagePlace};
use crate::history::omitted::{IMAGE_OMITTED, PDF_OMITTED};
use crate::json::{self, Reader, Str};
use crate::model::Request;
use crate::model::request_context::{Display, RequestContext, Tool};
use crate::model::turn::calls;
use crate::observe::warning::Warnings;
use crate::profile::ImageParts;
use crate::protocols::client::Purpose;
use crate::protocols::client_request::ClientRequest;
use crate::protocols::conversation;
use crate::protocols::upstream::Translated;
use crate::text::{surrogates, words};
use crate::tokens;
use crate::upstream_error::refused::Refused;
use guards::{Edits, GuardedTarget};
use history::NeededRepair;
use without::{Without, without_member};

/// Writes a request for an upstream of the Messages API, without the parts that the upstream
/// refused.
///
/// # Errors
/// The body cannot be parsed, its model has no upstream, or the configuration refuses its history.
pub(super) fn write_request(
    client: &ClientRequest<'_>,
    refused: &[Refused],
    warnings: &mut Warnings,
) -> Result<Translated, Error> {
    let sent = surrogates::without_halves(client.body);
    let mut body = sealed::unsealed(&sent, warnings)?;
    if !refused.is_empty() && takes(client) {
        for refused in refused {
            body = Without { refused, warnings }.request(&body)?.into_owned().into();
        }
    }
    let mut sent = relay(client, &body, refused, false, warnings)?;
    if let Translated::Send { body, context, .. } = &mut sent {
        for refused in refused {
            context.upstream_stream ^= *refused == Refused::Streaming(context.upstream_stream);
            let now = words::utf8(body).unwrap_or_default();
            let form = match refused {
                Refused::Names => tool_names::with_plain_names(now, context)?,
                Refused::Calls(_) => tool_names::with_tools_of_calls(now),
                _ => Without { refused, warnings }.form(now)?,
            };
            *body = form.into_owned().into_bytes();
        }
    }
    Ok(sent)
}

/// Content of messages that may have to be edited: images, tool result texts that may encode
/// images, and files.
struct EditableContent {
    images: Vec<ImagePlace>,
    files: Vec<Range<usize>>,
}

impl EditableContent {
    /// Finds the images and files that the upstream refused, and the texts that may encode images
    /// if `shows_hidden`.
    fn find(body: &str, request: &Request<'_>, shows_hidden: bool, refused: &[Refused]) -> Self {
        let omits = refused.contains(&Refused::Images);
        let mut images = body_images::places(body, request.messages.iter(), omits, shows_hidden);
        images.retain(|place| !(place.is_text() && place.is_in_error));
        let mut files = Vec::new();
        if refused.contains(&Refused::Documents) {
            let old = attached::old_files(request);
            files.extend(old.map(|file| body_images::span(body, file.at)));
        }
        Self { images, files }
    }
}

/// Returns the edits of the content of messages: real images in place of tool result texts that
/// encode images, and placeholder texts in place of images and files that the upstream refused.
///
/// # Errors
/// Strict mode allows no content to be left out.
fn content_edits(
    body: &str,
    content: EditableContent,
    refused: &[Refused],
    warnings: &mut Warnings,
) -> Result<Vec<Edit>, Error> {
    let EditableContent { images, files } = content;
    let mut edits = Vec::with_capacity(images.len().saturating_add(files.len()));
    let omits = refused.contains(&Refused::Images);
    for place in images {
        let mut omitted = 0_u32;
        let text = place.rewritten(body, &mut |json, image, mark| {
            if omits {
                omitted = omitted.saturating_add(1);
                body_images::write_text(json, mark, |json| {
                    json.text(IMAGE_OMITTED);
                });
            } else {
                body_images::write_image(json, image, mark);
            }
        });
        let Some(text) = text else { continue };
        if place.is_text() {
            warnings.add("image_in_text");
        }
        for _ in 0..omitted {
            warnings.dropped("image")?;
        }
        edits.push((place.range, text));
    }
    for range in files {
        warnings.dropped("document")?;
        let block = body.get(range.clone()).unwrap_or_default();
        edits.push((range, body_images::text_for(block, PDF_OMITTED)));
    }
    Ok(edits)
}

/// Writes the upstream request for a client body, whose text must not have unpaired surrogates.
/// `is_edited`: true if the body already has its [`content_edits`].
fn relay(
    client: &ClientRequest<'_>,
    body: &str,
    refused: &[Refused],
    is_edited: bool,
    warnings: &mut Warnings,
) -> Result<Translated, Error> {
    let Ok(envelope) = Envelope::read(body) else {
        return Err(client.refusal(Purpose::Answer, warnings));
    };
    let model = envelope.model.0.decode();
    let Some((upstream, outgoing)) = client.route_of(&model) else {
        return Err(client.refusal(Purpose::Answer, warnings));
    };
    if let Some(name) = envelope.twice {
        // The upstream could read one of the two members, and Creole the other.
        return Err(json::Error::value("expected each name once").in_key(name).into());
    }
    let mut typed = read(body)?;
    if let Some(request) = typed.as_ref().filter(|_| !is_edited) {
        let shows_hidden = client.config.settings.shows_hidden_images()
            && upstream.profile.image_parts != ImageParts::None;
        let content = EditableContent::find(body, request, shows_hidden, refused);
        if !(content.images.is_empty() && content.files.is_empty()) {
            // The parsed request takes several times the memory of the body.
            drop(typed);
            let edits = content_edits(body, content, refused, warnings)?;
            if !edits.is_empty() {
                return relay(client, &edited(body, edits), refused, true, warnings);
            }
            typed = read(body)?;
        }
    }
    send(client, body, &envelope, typed, (upstream, outgoing), refused, warnings)
}

/// Writes the upstream request for a client body that was read.
fn send<'a>(
    client: &ClientRequest<'_>,
    body: &'a str,
    envelope: &Envelope<'a>,
    mut read: Option<Request<'a>>,
    (upstream, outgoing): (&Upstream, &str),
    refused: &[Refused],
    warnings: &mut Warnings,
) -> Result<Translated, Error> {
    let (config, model) = (client.config, envelope.model.0.decode());
    let guards = config.guards(upstream);
    let pairing = pairing(guards, config, envelope.thread);
    let ids_used = read.as_ref().map(call_ids).unwrap_or_default();
    let reasons = !refused.contains(&Refused::Reasoning);
    let repair = match &mut read {
        Some(it) => NeededRepair::find(body, &mut it.messages, reasons, pairing, warnings)?,
        None => None,
    };
    // Decisions need the whole request.
    let typed = read.as_ref().filter(|request| !request.has_unread);
    if let Some(request) = typed {
        client.check_strictly(request)?;
    }
    let mut context = Box::new(RequestContext {
        model: model.to_string(),
        model_mapped: outgoing != model,
        upstream_model: outgoing.to_string(),
        stream: envelope.stream,
        upstream_stream: envelope.stream,
        edge_key: upstream.key.is_own(),
        is_judged: client.is_judged(envelope.safeguards),
        profile: upstream.profile.clone(),
        ..context(typed, body, config)
    });
    let mut edits: Vec<Edit> = Vec::new();
    if outgoing != model {
        edits.push((envelope.model.1.clone(), json::quoted(outgoing)));
    }
    if let (Some(repair), Some(place), Some(request)) = (repair, &envelope.messages, &mut read) {
        let written = repair.write(body, &mut request.messages, warnings);
        edits.extend(written.map(|text| (place.clone(), text)));
        // The request was taken apart, and takes more memory than the body.
        read = None;
    }
    let typed = read.filter(|request| !request.has_unread);
    let mut body_up = edited(body, edits);
    let mut end = None;
    // Guards have nothing to count in a request without calls, or whose calls the server keeps.
    if !ids_used.is_empty() && !envelope.thread {
        end = guard(&mut body_up, typed, guards, &mut context, warnings)?;
    }
    store_ids(&ids_used, &mut context);
    // A guard answers in place of the upstream.
    if let Some(text) = end {
        return Ok(Translated::Answer { context, text, stop_reason: StopReason::EndTurn });
    }
    if context.is_judged {
        // The judge handles `safeguards`. A server that does not know the field would refuse the
        // request.
        body_up = without_member(&body_up, "safeguards")?.into_owned();
    }
    Ok(Translated::Send { upstream: upstream.name.clone(), body: body_up.into_bytes(), context })
}

/// Reads a request. Returns `None` if its messages cannot be read: the upstream judges the form of
/// a request.
///
/// # Errors
/// A number is above Creole's limits.
fn read(body: &str) -> Result<Option<Request<'_>>, Error> {
    match Request::read_leniently(body) {
        Err(error) if error.is_too_many() => Err(error),
        read => Ok(read.ok()),
    }
}

/// Returns the ids of all calls in a request. A list takes much less memory than a set.
fn call_ids<'a>(request: &Request<'a>) -> Vec<Str<'a>> {
    let calls = || request.messages.iter().flat_map(|message| calls(&message.content));
    let mut ids = Vec::with_capacity(calls().count());
    ids.extend(calls().map(|call| call.id));
    ids
}

/// Stores the ids of a request's calls, and counts them by their forms.
fn store_ids(ids: &[Str<'_>], context: &mut RequestContext) {
    for id in ids {
        context.ids_used.add(id.decode().into_owned());
    }
    tool_id::count_forms(&context.ids_used, &mut context.counts);
}

/// Applies the guards to an upstream body, and returns the text of an answer in place of the
/// upstream's. `typed`: the parsed body, if available.
fn guard(
    body_up: &mut String,
    typed: Option<Request<'_>>,
    guards: &Guards,
    context: &mut RequestContext,
    warnings: &mut Warnings,
) -> Result<Option<String>, Error> {
    let read = || Request::read(body_up, &mut Warnings::new(false)).ok();
    let to = GuardedTarget { model: &context.upstream_model, profile: &context.profile };
    let decided = Edits::new(typed.or_else(read), to, guards, warnings)?;
    *body_up = decided.apply(mem::take(body_up));
    context.withheld = decided.withheld;
    Ok(decided.end)
}

/// Returns the rule for calls and results that do not form pairs.
fn pairing(guards: &Guards, config: &Config, is_thread: bool) -> Pairing {
    match guards.pairing {
        // The calls of these results may be kept by the server.
        _ if is_thread => Pairing::Off,
        _ if config.settings.strict => Pairing::Reject,
        pairing => pairing,
    }
}

/// Returns true if a body has messages and a model with an upstream.
pub(super) fn takes(client: &ClientRequest<'_>) -> bool {
    client.route().is_some() && json::member(client.body, "messages").is_some()
}

/// Collects the facts about a request that are needed to read its answer. The upstream may still
/// answer in the protocol of Chat Completions.
fn context(request: Option<&Request<'_>>, body: &str, config: &Config) -> RequestContext {
    let mut context = RequestContext::default();
    let thinking = request.and_then(|request| request.thinking);
    context.thinking.display = Display::of(thinking, config.settings.reasoning);
    let Some(request) = request else {
        context.input_tokens = tokens::tokens_of(body.len() as u64);
        context.input_estimate = context.input_tokens;
        return context;
    };
    let mends = config.settings.tool_arguments == ToolArguments::Mend;
    for (place, tool) in request.tools.iter().enumerate() {
        if let Some(name) = &tool.name {
            let (outgoing, name) = (name.to_string(), name.to_string());
            let schema = tool.input_schema.filter(|_| mends).map(|schema| schema.text().into());
            let place = Some(place);
            context.tools.push(Tool { outgoing, name, place, schema, ..Tool::default() });
        }
    }
    context.limits.max_tokens = request.max_tokens.unwrap_or_default();
    context.refusable = attached::refusable(request, true, true);
    context.conversation = conversation::hash_of(request);
    context.refusable.reasoning = guards::has_thinking(request);
    for sequence in &request.stop_sequences {
        context.limits.stop_sequences.push(sequence.decode().into_owned());
    }
    context.input_tokens = tokens::estimate(request);
    context.input_estimate = context.input_tokens;
    context.counts = tokens::counts(request);
    context
}

/// Members of a client's JSON request that Creole reads before forwarding the request.
struct Envelope<'a> {
    model: (Str<'a>, Range<usize>),
    messages: Option<Range<usize>>,
    stream: bool,
    safeguards: Option<&'a str>,
    /// True if the server keeps the conversation, and the request has only the new messages.
    thread: bool,
    /// Name of a member of the Messages API that occurs more than once in the request body.
    twice: Option<&'static str>,
}

/// Members of a request that affect decisions of Creole or the upstream, such as the model, the
/// cost and the permissions. Duplicates are refused, because servers differ in reading the first or
/// the last one.
const DECIDING: [&str; 30] = [
    "betas",
    "billing_policy",
    "cache_control",
    "compaction",
    "container",
    "context_management",
    "fallback_credit_token",
    "fallbacks",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "output_format",
    "safeguards",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "thread",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
    "user_profile_id",
];

impl<'a> Envelope<'a> {
    fn read(body: &'a str) -> Result<Self, json::Error> {
        let mut reader = Reader::of(body);
        let (mut model, mut messages, mut stream, mut thread) = (None, None, false, false);
        let (mut given, mut twice, mut safeguards) = (0_u32, None, None);
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            reader.kind()?;
            let start = reader.offset();
            let key = key.decode();
            if let Some((at, name)) = (0..).zip(DECIDING).find(|(_, name)| *name == key) {
                let bit = 1_u32 << at;
                twice = twice.or_else(|| (given & bit != 0).then_some(name));
                given |= bit;
            }
            match key.as_ref() {
                "model" => {
                    let name = reader.string()?;
                    model = Some((name, start..reader.offset()));
                }
                "messages" => {
                    reader.skip()?;
                    messages = Some(start..reader.offset());
                }
                "stream" => stream = reader.skip()? == "true",
                "safeguards" => safeguards = Some(reader.skip()?),
                "thread" => thread = reader.skip()? != "null",
                _ => {
                    reader.skip()?;
                }
            }
        }
        reader.end()?;
        let model = model.ok_or_else(|| json::Error::value("Field required"))?;
        Ok(Self { model, messages, stream, safeguards, thread, twice })
    }
}

/// Byte range of a request body, and the text that replaces the range.
type Edit = (Range<usize>, String);

/// Returns the request body after applying `edits`, which may come in any order.
fn edited(body: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    String::from_utf8(json::replaced(body, &edits)).unwrap_or_default()
}

/// Returns the byte range of the slice `part` within `text`.
fn range(text: &str, part: &str) -> Range<usize> {
    let start = offset(text, part);
    start..start.saturating_add(part.len())
}

/// Returns the byte offset of the slice `part` within `text`; `usize::MAX` if `part` is not a slice
/// of `text`.
fn offset(text: &str, part: &str) -> usize {
    json::offset_in(text, part).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_take_effect_at_their_places_in_whatever_order_they_come() {
        let insert = |at: usize, text: &str| (at..at, text.to_owned());
        let edits = vec![insert(3, "4"), insert(2, "3"), insert(1, "1"), insert(1, "2")];
        assert_eq!(edited("abc", edits), "a12b3c4");
        assert_eq!(edited("abc", Vec::new()), "abc");
    }
}
