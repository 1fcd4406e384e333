//! The fields of a request that are neither its conversation nor its tools.

use crate::dialect::profile::{MaxTokensField, Profile, ResponseFormat, SHARED_MEMBERS, UserId};
use crate::error::Error;
use crate::ids::hex_of_hash;
use crate::json::{Reader, Str, Writer};
use crate::model::Request;
use crate::observe::warning::Warnings;
use crate::text::words;

use super::effort::{Effective, limited};
use crate::headers::{Header, Headers};
use crate::tools::{plain, takes_strictly, write_output_schema};

/// Longest `prompt_cache_key`.
const CACHE_KEY_BYTES_MAX: usize = 64;

/// Writes them.
pub(crate) fn write(
    request: &Request<'_>,
    effective: &Effective,
    profile: &Profile,
    headers: &[Header],
    warnings: &mut Warnings,
    json: &mut Writer<'_>,
) -> Result<(), Error> {
    write_limits(request, profile, json);
    write_sampling(request, profile, warnings, json)?;
    effective.write(profile, json);
    write_response_format(request, profile, json);
    write_identity(request, profile, headers, json);
    write_tier(request, profile, warnings, json)?;
    if request.stream {
        json.key("stream").bool(true);
        if profile.stream_usage {
            json.key("stream_options").begin_object().key("include_usage").bool(true).end_object();
        }
    }
    profile.extra_body.write_into(&SHARED_MEMBERS, json);
    Ok(())
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
    // Where the most likely token is always taken, it says nothing, and Mistral and candle-vllm refuse it.
    let is_greedy = profile.sampling && request.temperature.is_some_and(is_zero);
    let top_p = request.top_p.filter(|_| !is_greedy);
    for (value, key) in [(request.temperature, "temperature"), (top_p, "top_p")] {
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

/// Whether a number is zero, however it is written.
fn is_zero(number: &str) -> bool {
    words::before(number, b"eE").bytes().all(|byte| matches!(byte, b'0' | b'.' | b'-'))
}

fn write_response_format(request: &Request<'_>, profile: &Profile, json: &mut Writer<'_>) {
    let Some((schema, found)) = request.output_schema.map(plain) else { return };
    if profile.response_format == ResponseFormat::None {
        // The upstream refused it. Where the configuration says so, the request is rejected.
        return;
    }
    json.key("response_format").begin_object();
    match profile.response_format {
        ResponseFormat::JsonSchema => {
            json.kind("json_schema");
            json.key("json_schema").begin_object().key("name").text("output");
            write_output_schema(json.key("schema"), &schema, found, profile.tool_schema);
            if profile.strict_tools {
                json.key("strict").bool(takes_strictly(profile.strict_schemas, &schema));
            }
            json.end_object();
        }
        _ => {
            json.kind("json_object");
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

/// The session in a user id of Claude Code: `session_id` of a JSON text, or, in its versions until 2025, what stands
/// behind `_session_`.
fn session_of(user_id: &str) -> Option<String> {
    if !user_id.trim_start().starts_with('{') {
        let (_, session) = words::split_once(user_id, "_session_")?;
        return Some(session.to_owned()).filter(|session| !session.is_empty());
    }
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
