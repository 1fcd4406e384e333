//! Errors of the upstream: what the client is told, so that it does the right thing.
//!
//! Clients act on status and `error.type` (retry or not), and on a few wordings: Claude Code
//! compacts a conversation when it reads `prompt is too long`, and mends some requests. The upstream's
//! own `type` and `code` are read only where the status alone says too little.
//!
//! ```text
//! body ─▶ said: message, codes, numbers ─▶ context: too long? rewritten ─▶ mask: no credentials ─▶ Error
//!                             Error that no second request mends ─▶ mendable: in the client's words
//! ```

pub(crate) mod refused;

mod content;
mod denied;
mod error_body;
mod format;
mod hide;
mod images;
mod mask;
mod mendable;
mod page;
mod pairing;
mod parameter;
mod python;
mod quoted;
mod reasoning;
mod stops;
mod turns;
mod window;

use crate::dialect::profile::ContentFilter;
use crate::error::{Error, ErrorKind, Fault};
use crate::model::request_context::RequestContext;
use crate::text::words::{self, phrases};
pub(crate) use content::refused_content;
use error_body::ErrorBody;
pub(crate) use format::is_response_format;
pub(crate) use hide::hide;
pub(crate) use images::{is_images, is_one_image};
pub(crate) use mendable::{in_clients_words, is_documents};
pub(crate) use pairing::is_pairing;
pub(crate) use parameter::{names_effort, refused_parameter};
pub(crate) use reasoning::is_reasoning;
pub(crate) use stops::refused_stops;
pub(crate) use turns::is_turns;
pub(crate) use window::{most_output, room};

/// Longest message for the client, in characters.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// How pydantic quotes what it got.
const QUOTED: &str = phrases!["'input': {", "'input': ["];

/// A message in lower case and without quotes: each vendor has its own. What it quotes of the request is left out.
fn without_quotes(message: &str) -> String {
    let own = words::each(QUOTED).find_map(|start| words::split_once(message, start));
    let mut text = own.map_or(message, |(own, _)| own).to_ascii_lowercase();
    text.retain(|letter| !matches!(letter, '\'' | '"' | '`' | '\\'));
    text
}

/// Whether a message speaks of a subject and says that of it, and nothing else.
fn says(message: &str, subjects: &str, refusals: &str, others: &str) -> bool {
    let text = without_quotes(message);
    let has = |any: &str| words::has_one_of(&text, any);
    has(subjects) && has(refusals) && !has(others)
}

/// What an upstream's error becomes.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// An error.
    Error(Error),
    /// An answer without content, and its `stop_reason`: a content filter refused the prompt, or `max_tokens`
    /// leaves no room for a word.
    Answer(&'static str),
}

/// Kind and status for the client, by the upstream's status alone.
#[must_use]
pub(crate) fn of_status(status: u16) -> (ErrorKind, u16) {
    match status {
        400 | 422 => (ErrorKind::InvalidRequest, 400),
        401 => (ErrorKind::Authentication, 401),
        402 => (ErrorKind::Billing, 402),
        403 => (ErrorKind::Permission, 403),
        404 => (ErrorKind::NotFound, 404),
        408 | 504 => (ErrorKind::Timeout, 504),
        409 => (ErrorKind::Conflict, 409),
        // TGI's, where a model failed while it answered.
        424 => (ErrorKind::Api, 502),
        413 => (ErrorKind::RequestTooLarge, 413),
        // The second is iFlow's own.
        429 | 449 => (ErrorKind::RateLimit, 429),
        // Groq has no room for the request in its flexible tier.
        498 => (ErrorKind::Overloaded, 529),
        // A proxy between us thinks that we hung up. We did not.
        499 => (ErrorKind::Api, 502),
        400..500 => (ErrorKind::InvalidRequest, status),
        503 | 529 => (ErrorKind::Overloaded, 529),
        502 => (ErrorKind::Api, 502),
        // That of gateways that lead to each other.
        508 => (ErrorKind::Api, 508),
        500..600 => (ErrorKind::Api, 500),
        // No error, and no answer either.
        _ => (ErrorKind::Api, 502),
    }
}

/// An error body of the upstream.
#[must_use]
pub(crate) fn from_upstream(status: u16, body: &[u8], context: &RequestContext) -> Refusal {
    let text = String::from_utf8_lossy(body);
    let error_body = ErrorBody::read(&text);
    // Some gateways report what no retry can mend as an error of their own.
    let is_told =
        |reason: &&str| (400..500).contains(&status) || status == 500 && *reason == REFUSAL;
    match stop_reason(&error_body, context).filter(is_told) {
        Some(stop_reason) => Refusal::Answer(stop_reason),
        None => Refusal::Error(error(status, &error_body, context)),
    }
}

/// The error that an upstream tells of a model that it does not have, if it tells that.
#[must_use]
pub(crate) fn unknown_model(body: &[u8]) -> Option<Error> {
    let error_body = ErrorBody::read(&String::from_utf8_lossy(body));
    error_body.lacks_model().then(|| error(404, &error_body, &RequestContext::default()))
}

/// An error object where an answer should be: in a 200 body, in a chunk, or as the data of an
/// `error` event. `object` is the whole of it, or what stands under `error`, or no JSON at all.
#[must_use]
pub(crate) fn from_object(object: &str, context: &RequestContext) -> Error {
    let error_body = ErrorBody::read(object);
    let known = error_body.status.or_else(|| error_body.status_of_codes());
    let status = known.unwrap_or_else(|| {
        if window::rewritten(&error_body, context).is_some() { 400 } else { 502 }
    });
    let mut error = error(status, &error_body, context);
    if error.status == 502 && page::is_page(object) {
        // Its words alone, `Please log in`, would read as Creole's.
        let words = if error_body.message.is_empty() { "(no words)" } else { &error_body.message };
        error.message = format!("Upstream sent a web page instead of an answer: {words}");
    } else if error_body.message.is_empty() && error.status == 502 {
        "Upstream reported an error".clone_into(&mut error.message);
    }
    if error_body.is_permanent() {
        error.should_retry = Some(false);
    }
    error
}

/// An error of which the upstream tells a code alone.
#[must_use]
pub(crate) fn of_code(code: &str, message: String, context: &RequestContext) -> Error {
    let error_body = ErrorBody::of_code(code, message);
    error(error_body.status_of_codes().unwrap_or(502), &error_body, context)
}

/// The `stop_reason` where an error object that stands in an answer is itself an answer, as an error body may be:
/// see [`Refusal::Answer`].
#[must_use]
pub(crate) fn as_answer(object: &str, context: &RequestContext) -> Option<&'static str> {
    stop_reason(&ErrorBody::read(object), context)
}

/// The `stop_reason` where a provider's filter refused.
const REFUSAL: &str = "refusal";

fn stop_reason(error_body: &ErrorBody, context: &RequestContext) -> Option<&'static str> {
    if context.profile.content_filter == ContentFilter::Refusal && error_body.is_content_filter() {
        return Some(REFUSAL);
    }
    window::has_no_room(error_body, context).then_some("max_tokens")
}

/// Where an upstream refuses the gateway's own key because its account is empty. Claude Code looks for these
/// words.
const UNPAID: &str = "The gateway's credit balance is too low at the upstream.";

fn error(status: u16, error_body: &ErrorBody, context: &RequestContext) -> Error {
    let status = match status {
        400 if error_body.is_bad_key() => 401,
        // NVIDIA's, where a model is down.
        400 if words::has(&error_body.message, "DEGRADED function") => 503,
        // OpenCode Zen's.
        401 if error_body.has_code("modelerror") => 404,
        400 if error_body.is_unknown_model() => 404,
        400 if error_body.is_too_large() => 413,
        400 | 403 if error_body.is_limited() => 429,
        424 | 500 | 502 | 503 if error_body.is_too_long() => 400,
        // What a server lacks: some other server's path, or its own fault.
        404 | 500 if context.has_images && is_images(&error_body.message) => 400,
        // What it cannot fetch or read is the client's to change: SDKs would send it again.
        404 | 413 | 415 | 500 if context.has_images && error_body.is_one_image(status, context) => {
            400
        }
        // A template's, which some servers take for their own error.
        500 if mendable::is_system(&error_body.message) => 400,
        status => status,
    };
    if matches!(status, 400..=403 | 412 | 429) && error_body.is_unpaid() {
        // SDKs would retry a 429, and a 400 would look like the client's fault.
        let hidden = context.edge_key && matches!(status, 401 | 403);
        let message = if hidden { UNPAID.to_owned() } else { message(status, error_body) };
        let mut error = Error::new(fault(ErrorKind::Billing, context), ErrorKind::Billing, message)
            .with_should_retry(false);
        error.upstream_message = hidden.then(|| clean(&error_body.message));
        return error;
    }
    if context.edge_key && matches!(status, 401 | 403) {
        // Neither the client's fault nor its business; what the upstream says may name the key.
        let message = "Upstream rejected the gateway's credentials.";
        let mut error =
            Error::new(Fault::Operator, ErrorKind::Api, message).with_should_retry(false);
        error.upstream_message = Some(clean(&error_body.message));
        return error;
    }
    if matches!(status, 413 | 429)
        && let Some(message) = window::over_rate(error_body, context)
    {
        let mut error = Error::new(Fault::Client, ErrorKind::InvalidRequest, message);
        error.upstream_message = Some(clean(&error_body.message));
        return error;
    }
    if matches!(status, 404 | 405) && error_body.is_no_path(&context.model) {
        // To a client a 404 means that there is no such model.
        let message = message(status, error_body);
        let mut error = Error::new(Fault::Operator, ErrorKind::Api, message)
            .with_status(502)
            .with_should_retry(false);
        error.has_no_path = true;
        return error;
    }
    let (kind, client_status) = of_status(status);
    if matches!(client_status, 400 | 413)
        && let Some(rewritten) = window::rewritten(error_body, context)
    {
        return Error::new(Fault::Client, ErrorKind::InvalidRequest, clean(&rewritten));
    }
    let mut error = Error::new(fault(kind, context), kind, message(status, error_body))
        .with_status(client_status);
    error.upstream_code.clone_from(&error_body.error_code);
    error.parameter.clone_from(&error_body.parameter);
    if kind == ErrorKind::Authentication {
        // Claude Code would try the same key for minutes.
        error.should_retry = Some(false);
    }
    if matches!(kind, ErrorKind::RateLimit | ErrorKind::Overloaded) {
        error.retry_after = error_body.retry_after();
    }
    error
}

fn fault(kind: ErrorKind, context: &RequestContext) -> Fault {
    match kind {
        ErrorKind::Billing if context.edge_key => Fault::Operator,
        ErrorKind::RateLimit | ErrorKind::Api | ErrorKind::Timeout | ErrorKind::Overloaded => {
            Fault::Upstream
        }
        _ => Fault::Client,
    }
}

fn message(status: u16, error_body: &ErrorBody) -> String {
    match error_body.message.as_str() {
        // As `u64`, because no other number of 16 bits is written.
        "" => format!("HTTP {} from upstream", u64::from(status)),
        message => clean(message),
    }
}

/// Without credentials, and not longer than a person reads.
fn clean(message: &str) -> String {
    let mut message = mask::masked(message);
    if let Some((at, _)) = message.char_indices().nth(MESSAGE_CHARS_MAX) {
        words::truncate(&mut message, at);
        message.push('…');
    }
    message
}

#[cfg(test)]
mod tests;
