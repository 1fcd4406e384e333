//! Errors of upstreams that speak Messages, and of those that only half do.

use creole::End;
use serde_json::{Value, json};

use super::*;

fn refused(status: u16, body: &Value) -> (u16, Value) {
    let bytes = body.to_string();
    let kind = (status, "application/json");
    let answer = answered(&config(), true, kind, [bytes.as_bytes()], End::Complete);
    (answer.head.status, serde_json::from_slice(&answer.body).unwrap())
}

#[test]
fn errors_of_the_api_pass_with_the_status_of_their_kind() {
    for (status, kind, expected) in [
        (400, "invalid_request_error", 400),
        (401, "authentication_error", 401),
        (403, "permission_error", 403),
        (404, "not_found_error", 404),
        (413, "request_too_large", 413),
        (429, "rate_limit_error", 429),
        (500, "api_error", 500),
        (529, "overloaded_error", 529),
    ] {
        let message = "messages.1.content.0: it is so";
        let body = json!({"type": "error", "error": {"type": kind, "message": message},
                          "request_id": "req_up"});
        let (found, said) = refused(status, &body);
        assert_eq!(found, expected);
        assert_eq!(said["type"], "error");
        assert_eq!(said["error"], json!({"type": kind, "message": message}));
        assert!(said["request_id"].as_str().unwrap().starts_with("req_"));
    }
    let message = "prompt is too long: 210000 tokens > 200000 maximum";
    let error = json!({"type": "invalid_request_error", "message": message});
    let (status, said) = refused(400, &json!({"type": "error", "error": error}));
    assert_eq!((status, &said["error"]["message"]), (400, &json!(message)));
}

#[test]
fn errors_in_other_words_are_mapped() {
    let body = json!({"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}});
    let (status, said) = refused(429, &body);
    assert_eq!((status, &said["error"]["type"]), (429, &json!("rate_limit_error")));
    // Before anything was said, an error in the stream is an HTTP error.
    for event in [
        format!(
            "event: error\ndata: {}\n\n",
            json!({"type": "error", "error":
            {"type": "overloaded_error", "message": "Overloaded"}})
        ),
        "data: {\"error\":{\"message\":\"busy\",\"code\":503}}\n\n".to_owned(),
    ] {
        let kind = (200, "text/event-stream");
        let answer = answered(&config(), true, kind, [event.as_bytes()], End::Complete);
        assert_eq!(answer.head.status, 529, "{event}");
        // Afterwards, it is an event, and the last one.
        let stream = sse(&[start(), open_text(0), text(0, "x")]) + &event + &sse(&[stop(0), end()]);
        let (streamed, _) = both(&stream);
        let text = String::from_utf8(streamed.body).unwrap();
        let (_, error) = text.split_once("event: error\ndata: ").expect(&text);
        let error: Value = serde_json::from_str(error.trim()).expect("it is the last event");
        assert_eq!(error["error"]["type"], "overloaded_error");
    }
}

#[test]
fn a_last_event_that_is_wrong_and_not_cut_off_is_an_invalid_answer() {
    let again = format!("data: {}", start());
    let stray = format!("data: {}", input(3, "{"));
    for (last, said) in [
        (again.as_str(), "Upstream sent an invalid response"),
        (stray.as_str(), "Upstream sent an invalid response"),
        (&again[..30], "Upstream stream ended before completion."),
    ] {
        let (streamed, whole) =
            both(&(sse(&[start(), open_text(0), text(0, "x"), stop(0)]) + last));
        for answer in [streamed, whole] {
            let body = String::from_utf8(answer.body).unwrap();
            assert!(body.contains(said), "{last}: {body}");
        }
    }
}
