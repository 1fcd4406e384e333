//! Errors in the Messages API: as a response body, and as an event of a stream.

use crate::error::{Error, ErrorKind};
use crate::json::Writer;
use crate::text::words;

/// Writes the JSON body of an error response.
pub(crate) fn body(error: &Error, request_id: &str, out: &mut Vec<u8>) {
    object(error, &error.message, request_id, out);
}

/// Writes the `error` event, which ends a stream.
///
/// The event has no status, so opencode, pi, openclaw and further clients decide by its text alone
/// whether a retry is worthwhile.
pub(crate) fn event(error: &Error, request_id: &str, out: &mut Vec<u8>) {
    let words = match error.kind {
        // The texts are those of Anthropic's API.
        ErrorKind::Api if error.should_retry != Some(false) => "Internal server error",
        ErrorKind::Timeout => "Stream timed out",
        _ => "",
    };
    out.extend_from_slice(b"event: error\ndata: ");
    if words::begins(&error.message, words) {
        object(error, &error.message, request_id, out);
    } else {
        object(error, &[words, ": ", &error.message].concat(), request_id, out);
    }
    out.extend_from_slice(b"\n\n");
}

fn object(error: &Error, message: &str, request_id: &str, out: &mut Vec<u8>) {
    let mut json = Writer::new(out);
    json.begin_object().kind("error");
    json.key("error").begin_object();
    json.kind(error.kind.word());
    json.key("message").text(message);
    if let Some(code) = &error.code {
        json.key("details").begin_object().key("error_code").text(code).end_object();
    }
    json.end_object();
    json.key("request_id").text(request_id);
    json.end_object();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_has_the_shape_of_the_messages_api() {
        let error = Error::invalid("thread: say \"no\"").with_code("thread_unsupported_request");
        let mut out = Vec::new();
        body(&error, "req_1", &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"thread: say \"no\"","details":{"error_code":"thread_unsupported_request"}},"request_id":"req_1"}"#
        );
    }
}
