//! Detection of the part of a request that an upstream refuses, from the error message.

use super::wordings::{
    NO_DOCUMENTS, NO_IMAGES, PAIRING, REASONING, RESPONSE_FORMAT, STREAM_OPTIONS,
};
use super::{content, images, mendable, parameter, stops, turns, window, without_quotes};
use crate::error::Reason;
use crate::model::request_context::RequestContext;
use crate::text::words;

/// Status assumed for an error inside of a response with status 200, if the error states no status.
/// A server's own 502 is handled alike.
const NO_STATUS: u16 = 502;

/// Returns the parts of the request that an error is about, most certain first. `status`: the
/// status for the client; `parameter`: the name that the error states in a separate member.
pub(super) fn reasons(
    status: u16,
    message: &str,
    parameter: Option<&str>,
    context: &RequestContext,
) -> Vec<Reason> {
    // Chat templates raise errors of their own, which some servers report as a server fault: 500.
    let is_of_template = matches!(status, 400 | 500 | NO_STATUS);
    // Some servers report a missing feature with status 404 or 500. The status was already mapped:
    // 422 to 400, and 501 to 500.
    let is_of_lack = is_of_template || status == 404;
    // A member that a server does not know is always the request's fault, though servers in Python
    // may report a fault of their own.
    let is_of_member = matches!(status, 400 | NO_STATUS)
        || status == 500 && words::has(message, "unexpected keyword argument");
    let text = &without_quotes(message);
    let mut reasons = Vec::new();
    if status == 400 {
        reasons.extend(mendable::reasons(message, text, context));
    }
    let has_calls = context.counts.has_calls() && is_of_template;
    if has_calls && PAIRING.says(text) {
        reasons.push(Reason::Pairing);
    }
    let content = has_calls.then(|| content::refused_content(message, text)).flatten();
    // Servers use the same words for calls without text and for images. The change for such calls
    // comes first, because it loses nothing.
    let is_silent = context.refusable.silent_calls;
    reasons.extend(content.clone().filter(|_| is_silent));
    if is_of_lack && context.refusable.images {
        if NO_IMAGES.says(text) {
            reasons.push(Reason::Images);
        } else if images::is_one_image(message, parameter, context) {
            reasons.push(Reason::OneImage);
        }
    }
    // Documents come after images: an error of a model without images may list documents as
    // allowed.
    if is_of_lack && context.refusable.documents && NO_DOCUMENTS.says(text) {
        reasons.push(Reason::Documents);
    }
    if is_of_lack && context.refusable.schema && RESPONSE_FORMAT.says(text) {
        reasons.push(Reason::ResponseFormat);
    }
    if is_of_member && context.refusable.reasoning && REASONING.says(text) {
        reasons.push(Reason::Reasoning);
    }
    reasons.extend(window::most_output(message).map(Reason::AnswerLimit));
    // An error that names `stream_options` means that the server does not know the member, or
    // accepts the member in no stream.
    if is_of_member && context.stream && context.profile.stream_usage && STREAM_OPTIONS.any(message)
    {
        reasons.push(Reason::StreamOptions);
    }
    if is_of_template && turns::is_turns(text) {
        reasons.push(Reason::Neighbours);
    }
    if is_of_member {
        let sent = context.limits.stop_sequences.len();
        reasons.extend(stops::refused_stops(message, parameter, sent));
    }
    reasons.extend(content.filter(|_| !is_silent));
    if is_of_member {
        reasons.extend(parameter::refused_parameter(message, parameter));
    }
    if status == 400 {
        reasons.extend(super::python::complaint(message).map(Reason::Complaint));
    }
    reasons
}
