//! Request fields that are written alike in Chat Completions and in Responses.

use crate::error::Error;
use crate::headers::{Header, Headers, session};
use crate::ids::hex_of_hash;
use crate::json::{Str, Writer};
use crate::model::Request;
use crate::observe::warning::Warnings;
use crate::profile::{Profile, UserId};
use crate::text::words;

/// Maximum length of a `prompt_cache_key`, in bytes.
const CACHE_KEY_BYTES_MAX: usize = 64;

/// Writes `temperature`, `top_p` and `top_k`.
///
/// # Errors
/// The upstream has no `top_k`, and strict mode allows no parameter to be left out.
pub(crate) fn write_sampling(
    request: &Request<'_>,
    profile: &Profile,
    warnings: &mut Warnings,
    json: &mut Writer<'_>,
) -> Result<(), Error> {
    // Greedy decoding ignores `top_p`, and Mistral and candle-vllm refuse it.
    let is_greedy = profile.sampling && request.temperature.is_some_and(is_zero);
    let top_p = request.top_p.filter(|_| !is_greedy);
    for (value, key) in [(request.temperature, "temperature"), (top_p, "top_p")] {
        let Some(value) = value else { continue };
        if profile.sampling {
            json.key(key).raw(value);
        } else {
            // The model has no sampling parameters, which is no reason to refuse the request,
            // strict or not.
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

/// Returns true if a JSON number is zero, in any notation.
fn is_zero(number: &str) -> bool {
    words::before(number, b"eE").bytes().all(|byte| matches!(byte, b'0' | b'.' | b'-'))
}

/// Writes a hash of the client's user id, because the user id can contain account ids.
pub(crate) fn write_identity(
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
    if profile.prompt_cache_key
        && let Some(session) = session::of(headers, user_id.as_deref())
    {
        // A sub-agent has the session of its parent, but a different prompt.
        let agent = headers.value("x-claude-code-agent-id").filter(|id| !id.is_empty());
        let key = match agent {
            Some(agent) => hex_of_hash([&session, "/", agent].concat().as_bytes()),
            None if session.len() > CACHE_KEY_BYTES_MAX => hex_of_hash(session.as_bytes()),
            None => session,
        };
        json.key("prompt_cache_key").text(&key);
    }
}

/// Writes `service_tier`, derived from the client's `service_tier` and `speed`.
///
/// # Errors
/// A value cannot be sent, and strict mode allows no value to be dropped.
pub(crate) fn write_tier(
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
