//! A Messages request to a Chat Completions request: what becomes of each field (mapping A.1, A.2,
//! A.9), and the order of the steps.

use crate::anthropic::{Block, Message, Request, Role, Text};
use crate::asked::{Asked, Withheld};
use crate::config::{Config, InvalidToolCall, Pairing, ToolStream, Upstream};
use crate::conversation::{Turn, calls, pairs, rules};
use crate::error::{Error, Fault, Kind};
use crate::ids::hex_of_hash;
use crate::json::{Reader, Str, Writer};
use crate::profile::{
    InferenceGeo, MaxTokensField, Prefill, Profile, ReasoningHistory, ResponseFormat,
    TextToolCalls, UserId,
};
use crate::warning::Warnings;
use crate::words;

use super::effort::{self, Effective};
use super::guards::{self, Guarded};
use super::headers::{Header, Headers};
use super::messages::{Messages, SystemPrompt};
use super::parts::Parts;
use super::tools::{ToolSet, meets_strict_subset, write_output_schema};
use super::turns::History;
use super::{Translated, count, lost_inputs, native, surrogates, thinking, usage};

/// The version of the API that has no sampling parameters.
const NEWEST_VERSION: &str = "2026-10-21";

/// Longest `prompt_cache_key`.
const CACHE_KEY_BYTES_MAX: usize = 64;

/// What a body is translated for.
#[derive(Clone, Copy)]
pub(super) enum Aim<'a> {
    /// To be answered.
    Answer,
    /// To be answered although this was said of its calls and results.
    AnswerAfter(&'a str),
    /// To be counted: no limit of the output is needed.
    Count,
}

/// Translates a body. See [`super::request`].
pub(super) fn translate(
    body: &str,
    config: &Config,
    headers: &[Header],
    aim: Aim<'_>,
    warnings: &mut Warnings,
) -> Result<Translated, Error> {
    let before = warnings.clone();
    let counting = matches!(aim, Aim::Count);
    let request = Request::read(body, config.settings.depth_max, counting, warnings)?;
    if request.has_halves {
        let body = surrogates::without_halves(body);
        *warnings = before;
        return translate(&body, config, headers, aim, warnings);
    }
    let lost = lost_inputs::find(&request);
    let mut request = request;
    lost.iter().for_each(|lost| lost.put_back(&mut request));
    let model = request.model.decode();
    let (upstream, outgoing_model) = check(&request, &model, config, headers, warnings)?;
    let profile = &upstream.profile;
    let input_tokens = count::estimate(&request);
    let mut shape = count::shape(&request);

    let guards = config.guards(upstream);
    let pairing = guards.pairing;
    if config.settings.strict {
        rules::check_strictly(&request)?;
    }
    if config.settings.strict || pairing == Pairing::Reject {
        pairs::check(&request.messages).map_err(|error| guards::unpaired(error, warnings))?;
    }
    let messages = std::mem::take(&mut request.messages);
    let only_system = messages.iter().all(|message| message.role == Role::System);
    let last = messages.iter().rfind(|message| message.role != Role::System);
    let last_says_nothing = last.is_some_and(says_nothing);
    let marks = thinking::Marks::new(config, upstream, outgoing_model);
    let mut history = History::new(messages, profile, &marks, warnings)?;
    if pairing == Pairing::Repair {
        let before = warnings.count();
        history.turns = pairs::repair(std::mem::take(&mut history.turns), warnings);
        if warnings.count() > before {
            warnings.acted("pairing");
        }
    }
    pairs::order(&mut history.turns);
    // Without its last message, the conversation would end with words that the answer continues.
    let ends_with_assistant = matches!(history.turns.last(), Some(Turn::Assistant(_)));
    if only_system {
        return Err(Error::invalid("messages: first message must use the \"user\" role"));
    }
    let nobody_speaks = history.turns.iter().all(|turn| matches!(turn, Turn::System(_)));
    if nobody_speaks || last_says_nothing && ends_with_assistant {
        return Err(Error::invalid("messages: text content blocks must be non-empty"));
    }
    let prefilled = is_prefilled(&history.turns);
    let prefill = prefill(&history.turns, profile, warnings)?;

    let mut tools = ToolSet::new(
        std::mem::take(&mut request.tools),
        std::mem::take(&mut history.changes),
        &history.activated,
        request.tool_choice.take(),
        !history.ids.is_empty(),
        profile,
        warnings,
    )?;
    let guarded = Guarded::new(&history.turns, &mut tools, guards, warnings)?;
    let forced = tools.forces_call();
    let effective = Effective::new(&request, history.effort, forced, prefilled, profile, warnings)?;
    shape.count_ids(&history.ids);
    let asked = Box::new(Asked {
        model: model.clone().into_owned(),
        model_mapped: outgoing_model != model,
        max_tokens: request.max_tokens.map_or(0, |wanted| limited(wanted, profile)),
        stream: request.stream,
        tools: tools.asked(keeps_schemas(config, profile)),
        stop_sequences: request.stop_sequences.iter().map(|it| it.decode().into_owned()).collect(),
        thinking: effort::shown(&request, config.settings.reasoning),
        reasoning_returns: profile.reasoning_history != ReasoningHistory::Never,
        upstream_mark: marks.upstream,
        model_mark: marks.model,
        one_tool_call: tools.one_tool_call(),
        withheld: if tools.forbids_calls() { Withheld::Forbidden } else { guarded.withheld },
        ids_used: std::mem::take(&mut history.ids),
        input_tokens,
        edge_key: upstream.key.is_own(),
        prefill,
        shape,
        profile: Profile {
            // What looks like a call is none where the client allows none.
            text_tool_calls: if tools.forbids_calls() {
                TextToolCalls::Off
            } else {
                profile.text_tool_calls
            },
            ..profile.clone()
        },
    });

    if let Some(text) = guarded.end {
        return Ok(Translated::Answer { asked, text, stop_reason: "end_turn" });
    }
    let mut turns = std::mem::take(&mut history.turns);
    guards::annotate(&mut turns, &guarded.notes);
    if let Aim::AnswerAfter(refusal) = aim {
        turns = guards::without_refused(turns, &tools, profile, refusal);
    }

    let mut out = Vec::with_capacity(body.len().saturating_add(body.len() / 8));
    let mut json = Writer::new(&mut out);
    json.begin_object().key("model").text(outgoing_model);
    let system = system_prompt(&mut request, &mut history, profile);
    let parts = Parts { profile, body };
    Messages::new(parts, &tools, system, warnings).write(turns, json.key("messages"))?;
    tools.write(&mut json);
    write_limits(&request, profile, &mut json);
    write_sampling(&request, profile, warnings, &mut json)?;
    effective.write(profile, &mut json);
    write_response_format(&request, profile, &mut json);
    write_identity(&request, profile, headers, &mut json);
    write_tier(&request, profile, warnings, &mut json)?;
    if request.stream {
        json.key("stream").bool(true);
        if profile.stream_usage {
            json.key("stream_options").begin_object().key("include_usage").bool(true).end_object();
        }
    }
    json.end_object();

    if request.max_tokens == Some(0) {
        // Fills a prompt cache at Anthropic, and nothing else. Nobody reads the prompt here.
        let asked = Box::new(Asked { input_tokens: 0, ..*asked });
        let text = String::new();
        return Ok(Translated::Answer { asked, text, stop_reason: "max_tokens" });
    }
    Ok(Translated::Send { upstream: upstream.name.clone(), body: out, asked })
}

/// Estimates the input tokens of a body. See [`super::count_tokens`].
pub(super) fn estimate(body: &str, config: &Config) -> Result<u64, Error> {
    // It takes what cannot be served here, and what is too new to be read.
    let native = native::takes(body, config);
    let mut warnings = Warnings::new(config.settings.strict && !native);
    let request = match Request::read(body, config.settings.depth_max, true, &mut warnings) {
        Err(_) if native => return Ok(usage::tokens_of(body.len() as u64)),
        read => read?,
    };
    if request.has_halves {
        return estimate(&surrogates::without_halves(body), config);
    }
    if !native {
        check(&request, &request.model.decode(), config, &[], &mut warnings)?;
    }
    Ok(count::estimate_carefully(&request))
}

/// Refuses what cannot be served, counts what is left out, and finds the upstream.
fn check<'c>(
    request: &Request<'_>,
    model: &'c str,
    config: &'c Config,
    headers: &[Header],
    warnings: &mut Warnings,
) -> Result<(&'c Upstream, &'c str), Error> {
    if request.thread {
        // The SDKs then send the whole conversation, and go on doing so.
        return Err(Error::invalid(
            "thread: server-side threads are not supported by this gateway; send the whole \
             conversation",
        )
        .with_code("thread_unsupported_request"));
    }
    rules::check_always(request)?;
    for (present, name) in [
        (request.compaction, "compaction"),
        (request.container, "container"),
        (request.mcp_servers, "mcp_servers"),
        (request.bill_to_user, "billing_policy.bill_to"),
    ] {
        if present {
            return Err(Error::unsupported(name));
        }
    }
    if warnings.strict() && headers.value("anthropic-version") == Some(NEWEST_VERSION) {
        check_newest(request)?;
    }
    for (present, name) in [
        (request.context_management.is_some_and(edits_something), "context_management"),
        (request.fallbacks, "fallbacks"),
        (request.fallback_credit_token, "fallback_credit_token"),
        (request.task_budget, "output_config.task_budget"),
    ] {
        if present {
            warnings.dropped(name)?;
        }
    }
    let Some((upstream, outgoing)) = config.route(model) else {
        let message = format!("model: {model}");
        return Err(Error::new(Fault::Client, Kind::NotFound, message));
    };
    if request.inference_geo {
        match upstream.profile.inference_geo {
            InferenceGeo::Reject => return Err(Error::unsupported("inference_geo")),
            InferenceGeo::Ignore => warnings.dropped("inference_geo")?,
        }
    }
    let no_format = upstream.profile.response_format == ResponseFormat::None;
    if request.output_schema.is_some() && no_format {
        return Err(Error::unsupported("output_config.format"));
    }
    Ok((upstream, outgoing))
}

/// What the newest version of the API has no longer.
fn check_newest(request: &Request<'_>) -> Result<(), Error> {
    let gone = |path: &str| Err(Error::invalid(format!("{path}: Extra inputs are not permitted")));
    for (present, name) in [
        (request.temperature.is_some(), "temperature"),
        (request.top_p.is_some(), "top_p"),
        (request.top_k.is_some(), "top_k"),
    ] {
        if present {
            return gone(name);
        }
    }
    for (at, message) in request.messages.iter().enumerate() {
        for (number, block) in message.content.iter().enumerate() {
            let path = format!("messages.{at}.content.{number}");
            match (message.role, block) {
                (Role::User, Block::Text(text)) if text.cited => {
                    return gone(&format!("{path}.citations"));
                }
                (Role::Assistant, Block::Document(_)) => {
                    return Err(Error::invalid(format!(
                        "{path}: `document` blocks can only be in `user` messages"
                    )));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether `context_management` would change what the model sees. Claude Code always asks to keep
/// all thinking, which changes nothing.
fn edits_something(context_management: &str) -> bool {
    // The text was read once before: what cannot be read as edits is not one that is known.
    edits(context_management).unwrap_or(true)
}

fn edits(context_management: &str) -> Option<bool> {
    let mut reader = Reader::new(context_management, 128);
    reader.begin_object().ok()?;
    let mut any = false;
    while let Some(key) = reader.next_key().ok()? {
        if reader.null().ok()? {
            continue;
        }
        if key != "edits" {
            reader.skip().ok()?;
            continue;
        }
        reader.begin_array().ok()?;
        while reader.next_element().ok()? {
            any |= !keeps_all_thinking(reader.skip().ok()?);
        }
    }
    Some(any)
}

fn keeps_all_thinking(edit: &str) -> bool {
    let mut reader = Reader::new(edit, 128);
    let (mut clears_thinking, mut all) = (false, false);
    let mut read = || {
        reader.begin_object().ok()?;
        while let Some(key) = reader.next_key().ok()? {
            let value = reader.skip().ok()?;
            match key.decode().as_ref() {
                "type" => clears_thinking = value == "\"clear_thinking_20251015\"",
                "keep" => {
                    let compact: String =
                        value.chars().filter(|letter| !letter.is_whitespace()).collect();
                    all = compact == "\"all\"" || compact == "{\"type\":\"all\"}";
                }
                _ => {}
            }
        }
        Some(())
    };
    read().is_some() && clears_thinking && all
}

/// Whether a message is a user's, without a word.
fn says_nothing(message: &Message<'_>) -> bool {
    let is_blank = |block: &Block<'_>| matches!(block, Block::Text(text) if text.text.is_empty());
    message.role == Role::User && message.content.iter().all(is_blank)
}

/// Whether the last words are the assistant's.
fn is_prefilled(turns: &[Turn<'_>]) -> bool {
    matches!(turns.last(), Some(Turn::Assistant(blocks)) if calls(blocks).next().is_none())
}

/// The final words of the assistant, which the answer continues.
fn prefill(
    turns: &[Turn<'_>],
    profile: &Profile,
    warnings: &mut Warnings,
) -> Result<String, Error> {
    let Some(Turn::Assistant(blocks)) = turns.last().filter(|_| is_prefilled(turns)) else {
        return Ok(String::new());
    };
    if warnings.strict() || profile.prefill == Prefill::Reject {
        return Err(Error::invalid(
            "This model does not support assistant message prefill. The conversation must end \
             with a user message.",
        ));
    }
    if profile.prefill == Prefill::Send {
        warnings.add("prefill");
    }
    if !profile.strip_prefill_echo {
        return Ok(String::new());
    }
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.decode()),
        _ => None,
    });
    Ok(texts.collect())
}

/// Schemas are kept for answers in which calls are written as text or checked.
fn keeps_schemas(config: &Config, profile: &Profile) -> bool {
    profile.text_tool_calls != TextToolCalls::Off
        || config.settings.invalid_tool_call != InvalidToolCall::Pass
        || config.settings.tool_stream != ToolStream::Live
}

fn system_prompt<'a>(
    request: &mut Request<'a>,
    history: &mut History<'a>,
    profile: &Profile,
) -> SystemPrompt<'a> {
    let mut texts = std::mem::take(&mut request.system);
    let is_billing = |text: &&mut Text<'_>| {
        let start = text.text.raw().trim_start();
        start.starts_with("x-anthropic-billing-header:")
    };
    if profile.strip_billing_header
        && let Some(first) = texts.first_mut().filter(|text| is_billing(text))
    {
        // It is one line: what comes after it is the client's prompt.
        let line = words::find(first.text.raw(), "\\n").map(|at| at.saturating_add(2));
        first.text = first.text.after(line.unwrap_or(usize::MAX));
    }
    texts.append(&mut history.system);
    texts.retain(|text| !text.text.is_blank());
    let in_words = profile.response_format == ResponseFormat::JsonObject;
    SystemPrompt { texts, schema: request.output_schema.filter(|_| in_words) }
}

fn limited(wanted: u64, profile: &Profile) -> u64 {
    if profile.max_tokens_max == 0 { wanted } else { wanted.min(profile.max_tokens_max) }
}

fn write_limits(request: &Request<'_>, profile: &Profile, json: &mut Writer<'_>) {
    if let Some(wanted) = request.max_tokens {
        json.key(match profile.max_tokens_field {
            MaxTokensField::MaxTokens => "max_tokens",
            MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
        });
        json.u64(limited(wanted, profile));
    }
    if profile.stop && !request.stop_sequences.is_empty() {
        let most = if profile.max_stop == 0 { usize::MAX } else { profile.max_stop };
        json.key("stop").begin_array();
        for stop in request.stop_sequences.iter().take(most) {
            json.str(*stop);
        }
        json.end_array();
    }
}

fn write_sampling(
    request: &Request<'_>,
    profile: &Profile,
    warnings: &mut Warnings,
    json: &mut Writer<'_>,
) -> Result<(), Error> {
    for (value, key) in [(request.temperature, "temperature"), (request.top_p, "top_p")] {
        let Some(value) = value else { continue };
        if profile.sampling {
            json.key(key).raw(value);
        } else {
            // The model has no such knob: no reason to refuse the request, strict or not.
            warnings.add_named("dropped", key);
        }
    }
    match request.top_k {
        Some(most) if profile.top_k => {
            json.key("top_k").u64(most);
        }
        Some(_) => warnings.dropped("top_k")?,
        None => {}
    }
    Ok(())
}

fn write_response_format(request: &Request<'_>, profile: &Profile, json: &mut Writer<'_>) {
    let Some(schema) = request.output_schema else { return };
    json.key("response_format").begin_object();
    match profile.response_format {
        ResponseFormat::JsonSchema => {
            json.key("type").text("json_schema");
            json.key("json_schema").begin_object().key("name").text("output");
            write_output_schema(json.key("schema"), schema);
            if profile.strict_tools {
                json.key("strict").bool(meets_strict_subset(schema));
            }
            json.end_object();
        }
        ResponseFormat::JsonObject | ResponseFormat::None => {
            json.key("type").text("json_object");
        }
    }
    json.end_object();
}

/// Who asks, as a hash: the client's value can hold account ids.
fn write_identity(
    request: &Request<'_>,
    profile: &Profile,
    headers: &[Header],
    json: &mut Writer<'_>,
) {
    let user_id = request.user_id.filter(|id| !id.is_blank()).map(|id| id.decode());
    if let Some(user_id) = &user_id {
        let hash = hex_of_hash(user_id.as_bytes());
        match profile.user_id {
            UserId::User => {
                json.key("user").text(&hash);
            }
            UserId::SafetyIdentifier => {
                json.key("safety_identifier").text(&hash);
            }
            UserId::Drop => {}
        }
    }
    if profile.prompt_cache_key {
        let header = headers.value("x-claude-code-session-id").filter(|id| !id.is_empty());
        let session = match header {
            Some(session) => Some(session.to_owned()),
            None => user_id.as_deref().and_then(session_of),
        };
        if let Some(session) = session {
            let key = if session.len() > CACHE_KEY_BYTES_MAX {
                hex_of_hash(session.as_bytes())
            } else {
                session
            };
            json.key("prompt_cache_key").text(&key);
        }
    }
}

/// `session_id` of a user id that is a JSON text, which is Claude Code's.
fn session_of(user_id: &str) -> Option<String> {
    let mut reader = Reader::new(user_id, 16);
    reader.begin_object().ok()?;
    while let Some(key) = reader.next_key().ok()? {
        if key == "session_id" {
            let session = reader.string().ok()?;
            return Some(session.decode().into_owned()).filter(|session| !session.is_empty());
        }
        reader.skip().ok()?;
    }
    None
}

fn write_tier(
    request: &Request<'_>,
    profile: &Profile,
    warnings: &mut Warnings,
    json: &mut Writer<'_>,
) -> Result<(), Error> {
    let is = |value: Option<Str<'_>>, word: &str| value.is_some_and(|value| value == word);
    let fast = is(request.speed, "fast");
    if fast && profile.service_tier {
        json.key("service_tier").text("fast");
    } else if is(request.service_tier, "standard_only") && profile.service_tier {
        json.key("service_tier").text("default");
    }
    let known_speed = request.speed.is_none() || is(request.speed, "standard");
    if !(known_speed || (fast && profile.service_tier)) {
        warnings.dropped("speed")?;
    }
    let known_tier = ["auto", "standard_only"].iter().any(|word| is(request.service_tier, word));
    if request.service_tier.is_some() && !known_tier {
        warnings.dropped("service_tier")?;
    }
    Ok(())
}
