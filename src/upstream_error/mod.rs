//! Interpretation of upstream errors: each error body is parsed once into a [`Rejection`].
//!
//! Clients act on the status and `error.type` (retry or not), and on a few phrases: Claude Code
//! compacts a conversation when it reads `prompt is too long`, and repairs some requests by itself.
//! The upstream's own `type` and `code` are used only where the status alone is ambiguous.
//!
//! ```text
//! body ─▶ error_body: message, codes, numbers ─▶ status that it should have had ─▶ reasons ─▶ Rejection
//!                                    message ─▶ mask: no credentials ─▶
//! ```

pub(crate) mod evidence;
pub(crate) mod refused;

mod changes;
mod content;
mod error_body;
mod hide;
mod images;
mod mask;
mod meaning;
mod mendable;
mod number_beside;
mod page;
mod parameter;
mod parts;
mod python;
mod quoted;
mod stops;
mod turns;
mod window;
mod wordings;

use crate::StopReason;
use crate::error::{Error, Reason, Rejection, WrongAddress, cut, of_status};
use crate::model::request_context::RequestContext;
use crate::text::words;
use error_body::ErrorBody;
pub(crate) use hide::hide;
pub(crate) use page::is_page;
use wordings::{
    MODEL_ERROR_CODES, NO_IMAGES, PASSING, REASONING_UNREAD, SYSTEM_ROLE, UNREAD_CODES, Wordings,
};

/// Returns a message in lower case, without quotation marks (vendors use different ones) and
/// without text quoted from the request.
fn without_quotes(message: &str) -> String {
    // Pydantic quotes the received value after `'input':`.
    let ends = ["'input': {", "'input': ["].into_iter().filter_map(|it| words::find(message, it));
    let own = ends.min().and_then(|end| message.get(..end)).unwrap_or(message);
    let mut text = own.to_ascii_lowercase();
    text.retain(|letter| !matches!(letter, '\'' | '"' | '`' | '\\'));
    text
}

/// Reads an error body of the upstream, and returns the error for the client.
#[must_use]
pub(crate) fn from_upstream(status: u16, body: &[u8], context: &RequestContext) -> Error {
    let error_body = ErrorBody::read(&String::from_utf8_lossy(body));
    Error::rejected(read(status, &error_body, context))
}

/// Returns the `stop_reason` for an error that counts as an answer without content. A content
/// filter refused the prompt, or `max_tokens` is too low for a single word.
#[must_use]
pub(crate) fn stop_reason(status: u16, error: &Error) -> Option<StopReason> {
    let stop_reason = error.rejection()?.stop_reason()?;
    // Some gateways report a refusal, which no retry can change, as a server fault (500).
    let is_answer =
        (400..500).contains(&status) || status == 500 && stop_reason == StopReason::Refusal;
    is_answer.then_some(stop_reason)
}

/// Returns the error for an upstream that does not have the requested model, if the error body says
/// so.
#[must_use]
pub(crate) fn unknown_model(body: &[u8]) -> Option<Error> {
    let error_body = ErrorBody::read(&String::from_utf8_lossy(body));
    error_body
        .lacks_model()
        .then(|| Error::rejected(read(404, &error_body, &RequestContext::default())))
}

/// Reads an error object in place of an answer: in a 200 body, in a chunk, or as the data of an
/// `error` event. `object` is the whole object, the value of `error`, or no JSON at all.
#[must_use]
pub(crate) fn from_object(object: &str, context: &RequestContext) -> Error {
    reported(object, context, false)
}

/// Reads an error object in the middle of an answer. The upstream's address is certainly right,
/// because content came from there.
#[must_use]
pub(crate) fn after_content(object: &str, context: &RequestContext) -> Error {
    reported(object, context, true)
}

fn reported(object: &str, context: &RequestContext, has_content: bool) -> Error {
    let error_body = ErrorBody::read(object);
    let known = error_body.status.or_else(|| error_body.status_of_codes());
    let status = known.unwrap_or_else(|| {
        if error_body.names_no_path() && !has_content {
            404
        } else if window::too_long(&error_body, context).is_some() {
            400
        } else {
            502
        }
    });
    let mut rejection = read(status, &error_body, context);
    // Proxies also write web pages if a server is down or starts.
    let is_wrong_address =
        error_body.is_page && !has_content && !page::is_passing(&error_body.message);
    if is_wrong_address {
        rejection.reasons.insert(0, Reason::WrongAddress(WrongAddress::OfPages));
        if rejection.message.is_empty() {
            "(no words)".clone_into(&mut rejection.message);
        }
    }
    let mut error = Error::rejected(rejection);
    if error_body.message.is_empty() && error.status == 502 && !is_wrong_address {
        "Upstream reported an error".clone_into(&mut error.message);
    }
    if error_body.is_permanent() {
        error.should_retry = Some(false);
    }
    error
}

/// Creates an error for which the upstream sends only a code.
#[must_use]
pub(crate) fn of_code(code: &str, message: String, context: &RequestContext) -> Error {
    let error_body = ErrorBody::of_code(code, message);
    let status = error_body.status_of_codes().unwrap_or(502);
    Error::rejected(read(status, &error_body, context))
}

/// Reads the error of an upstream. No other code examines the error's message.
fn read(status: u16, error_body: &ErrorBody, context: &RequestContext) -> Rejection {
    let status = mended_status(status, error_body, context);
    let mut message = mask::masked(&error_body.message);
    cut(&mut message);
    let reasons = reasons(status, error_body, &message, context);
    Rejection {
        status,
        code: error_body.error_code.clone(),
        codes: error_body.plain_codes.clone(),
        retry_after: error_body.retry_after(),
        parameter: error_body.parameter.clone(),
        is_passing: PASSING.any(&message),
        of_gateway: context.edge_key,
        message,
        reasons,
    }
}

/// Returns the status that the upstream should have sent for an error.
fn mended_status(status: u16, error_body: &ErrorBody, context: &RequestContext) -> u16 {
    let says = |wordings: &Wordings| wordings.says(&without_quotes(&error_body.message));
    match status {
        400 if error_body.is_bad_key() => 401,
        // NVIDIA reports a model that is down with status 400.
        400 if words::has(&error_body.message, "DEGRADED function") => 503,
        // OpenCode Zen reports an unknown model with status 401.
        401 if error_body.has_code(&MODEL_ERROR_CODES) => 404,
        400 if error_body.is_unknown_model() => 404,
        400 if error_body.is_too_large() => 413,
        400 | 403 if error_body.is_limited() => 429,
        424 | 500 | 502 | 503 if error_body.is_too_long() => 400,
        // Some servers report missing support for images with status 404 or 500.
        404 | 500 if context.refusable.images && says(&NO_IMAGES) => 400,
        // A reasoning item that the server has not stored causes status 404.
        404 if context.refusable.reasoning
            && REASONING_UNREAD.any(&without_quotes(&error_body.message)) =>
        {
            400
        }
        // An image that the server cannot fetch or read is for the client to change. SDKs would
        // retry after another status.
        404 | 413 | 415 | 500
            if context.refusable.images && error_body.is_one_image(status, context) =>
        {
            400
        }
        // Error of a chat template, which some servers report as their own fault.
        500 if says(&SYSTEM_ROLE) => 400,
        status => status,
    }
}

fn reasons(
    status: u16,
    error_body: &ErrorBody,
    message: &str,
    context: &RequestContext,
) -> Vec<Reason> {
    let is_of_key = context.edge_key && matches!(status, 401 | 403);
    let mut reasons = Vec::new();
    if error_body.is_content_filter() {
        reasons.push(Reason::Filter);
    } else if window::is_answer_too_short(error_body, context) {
        reasons.push(Reason::AnswerTooShort);
    }
    if matches!(status, 400..=403 | 412 | 429) && error_body.is_unpaid() {
        reasons.push(Reason::Unpaid { hidden: is_of_key });
        reasons.extend(window::most_output(message).map(Reason::AnswerLimit));
    } else if is_of_key {
        reasons.push(Reason::GatewayKey);
    } else if matches!(status, 413 | 429)
        && let Some(limit) = window::over_rate(error_body, context)
    {
        reasons.push(Reason::RateTooLow(limit));
    } else if matches!(status, 404 | 405) && error_body.is_no_path(&context.model)
        || matches!(status, 301..=303 | 307 | 308)
    {
        reasons.push(Reason::WrongAddress(WrongAddress::NoPath));
    } else if status == 400 && error_body.wants_tls() {
        reasons.push(Reason::WrongAddress(WrongAddress::WantsTls));
    } else {
        let (_, client_status) = of_status(status);
        if matches!(client_status, 400 | 413) {
            reasons.extend(window::too_long(error_body, context));
        }
        if context.refusable.reasoning && client_status == 400 {
            reasons.extend(unread_reasoning(error_body, message, context));
        }
        let parameter = error_body.parameter.as_deref();
        reasons.extend(parts::reasons(client_status, message, parameter, context));
    }
    reasons
}

/// Returns the reason if the upstream cannot read the reasoning in the conversation's history.
fn unread_reasoning(
    error_body: &ErrorBody,
    message: &str,
    context: &RequestContext,
) -> Option<Reason> {
    let (message_at, block) = context.refusable.thought_at?;
    let is_unread =
        error_body.has_code(&UNREAD_CODES) || REASONING_UNREAD.any(&without_quotes(message));
    is_unread.then(|| Reason::ReasoningUnread {
        // The indices are formatted as `u64`, because all other formatted integers have this type.
        block: format!("messages.{}.content.{}", message_at as u64, block as u64),
    })
}

#[cfg(test)]
mod tests;
