//! Conversion of a plan to an answer, with the faults that the prompt requested: errors, cut
//! connections, stalls, invalid bodies.

use serde_json::json;

use crate::pieces::floor;
use crate::plan::Plan;
use crate::script::{Answer, End, Piece};

/// Formatter of answers for one protocol.
pub(crate) trait FaultForm {
    /// Returns the body of an answer that is not streamed.
    fn body(&self, plan: &Plan) -> String;
    /// Returns the events of a streamed answer, without the empty lines between them.
    fn events(&self, plan: &Plan) -> Vec<String>;
    /// Returns the body of an error response that reports a failed server.
    fn failed_body(&self) -> String;
    /// Returns the events that report a failed server, after `sent` earlier events.
    fn failed_events(&self, sent: usize) -> Vec<String>;
}

/// Returns the answer to a request, according to its plan.
pub(crate) fn answer(plan: &Plan, form: &impl FaultForm, stream: bool) -> Answer {
    let triggers = &plan.triggers;
    let mut answer = if let Some(error) = &triggers.error {
        error_answer(error)
    } else if triggers.html {
        let headers = vec![("content-type".to_owned(), "text/html; charset=utf-8".to_owned())];
        let page = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>\n";
        Answer { headers, pieces: vec![Piece::text(page)], ..Answer::default() }
    } else if triggers.empty {
        Answer { pieces: Vec::new(), ..Answer::json(200, "") }
    } else if stream {
        streamed(plan, form)
    } else {
        whole(plan, form)
    };
    if triggers.cut {
        answer.pieces = first_half(answer.pieces);
        answer.end = End::Abort;
    }
    if triggers.hang {
        answer.pieces = first_half(answer.pieces);
        answer.end = End::Hang;
    }
    for piece in answer.pieces.iter_mut().skip(1) {
        piece.delay_ms = triggers.slow_ms;
    }
    let middle = answer.pieces.len().div_euclid(2);
    if let (1.., Some(piece)) = (triggers.stall_ms, answer.pieces.get_mut(middle)) {
        piece.delay_ms = triggers.stall_ms;
    }
    answer.delay_ms = triggers.late_ms;
    answer
}

fn whole(plan: &Plan, form: &impl FaultForm) -> Answer {
    let mut body = form.body(plan);
    if plan.triggers.error_in_200 || plan.triggers.error_mid {
        body = form.failed_body();
    }
    if plan.triggers.json_cut || plan.triggers.unfinished {
        body.truncate(floor(&body, body.len().div_euclid(2)));
    }
    let middle = floor(&body, body.len().div_euclid(2));
    let (first, second) = body.split_at_checked(middle).unwrap_or((&body, ""));
    let mut answer = Answer::json(200, "");
    answer.pieces = vec![Piece::text(first), Piece::text(second)];
    answer.headers.extend(rate_limits());
    answer
}

fn streamed(plan: &Plan, form: &impl FaultForm) -> Answer {
    let triggers = &plan.triggers;
    let mut events = form.events(plan);
    let middle = events.len().div_euclid(2);
    if triggers.error_in_200 {
        events = form.failed_events(0);
    }
    if triggers.error_mid {
        events.truncate(middle);
        events.extend(form.failed_events(middle));
    }
    if triggers.unfinished {
        events.truncate(middle);
    }
    if triggers.json_cut {
        events.truncate(middle);
        if let Some(last) = events.last_mut() {
            last.truncate(floor(last, last.len().div_euclid(2)));
        }
    }
    let mut events: Vec<String> = events.iter().map(|event| format!("{event}\n\n")).collect();
    if let Some(bytes) = triggers.pieces {
        events = recut(&events.concat(), bytes.max(1));
    }
    let mut answer = Answer::stream(events);
    answer.headers.extend(rate_limits());
    answer
}

/// Splits `text` into pieces of at most `bytes` bytes, at character boundaries.
fn recut(text: &str, bytes: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for c in text.chars() {
        match pieces.last_mut() {
            Some(piece) if piece.len() < bytes => piece.push(c),
            _ => pieces.push(c.to_string()),
        }
    }
    pieces
}

fn first_half(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.truncate(pieces.len().div_euclid(2).max(1));
    pieces
}

fn rate_limits() -> Vec<(String, String)> {
    [
        ("x-ratelimit-limit-requests", "5000"),
        ("x-ratelimit-remaining-requests", "4999"),
        ("x-ratelimit-reset-requests", "12ms"),
        ("x-ratelimit-limit-tokens", "800000"),
        ("x-ratelimit-remaining-tokens", "799000"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
}

pub(crate) fn overloaded() -> String {
    error_json("The server had an error while processing your request.", "server_error", None)
}

fn error_json(message: &str, kind: &str, code: Option<&str>) -> String {
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}}).to_string()
}

/// Returns the error response for the trigger `demo:error WORD`. The word is a status, or an error
/// code.
fn error_answer(word: &str) -> Answer {
    let (status, message, kind, code) = match word {
        "context" => (
            400,
            "This model's maximum context length is 8192 tokens. However, your messages resulted in \
             9000 tokens. Please reduce the length of the messages.",
            "invalid_request_error",
            Some("context_length_exceeded"),
        ),
        "quota" => (
            429,
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
            Some("insufficient_quota"),
        ),
        "filter" => (
            400,
            "The response was filtered due to the prompt triggering the content management policy.",
            "invalid_request_error",
            Some("content_filter"),
        ),
        status => {
            let status = status.parse().ok().filter(|status| (400..=599).contains(status));
            let status: u16 = status.unwrap_or(500);
            let (message, kind, code) = by_status(status);
            (status, message, kind, code)
        }
    };
    let mut answer = Answer::json(status, error_json(message, kind, code));
    if status == 429 || status == 503 {
        answer.headers.push(("retry-after".to_owned(), "2".to_owned()));
    }
    if status == 429 {
        answer.headers.extend(rate_limits());
    }
    answer
}

fn by_status(status: u16) -> (&'static str, &'static str, Option<&'static str>) {
    match status {
        401 => ("Incorrect API key provided.", "invalid_request_error", Some("invalid_api_key")),
        403 => ("You are not allowed to use this model.", "permission_error", None),
        404 => (
            "The model `demo-none` does not exist or you do not have access to it.",
            "invalid_request_error",
            Some("model_not_found"),
        ),
        413 => ("Request body too large.", "invalid_request_error", None),
        429 => (
            "Rate limit reached for requests per minute. Please try again in 2s.",
            "requests",
            Some("rate_limit_exceeded"),
        ),
        503 => {
            ("The engine is currently overloaded, please try again later.", "server_error", None)
        }
        400..=499 => {
            ("The demo model was asked to refuse this request.", "invalid_request_error", None)
        }
        _ => ("The server had an error while processing your request.", "server_error", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cut_anew_is_the_same_text() {
        assert_eq!(recut("data: ä\n", 3), ["dat", "a: ", "ä\n"]);
    }

    #[test]
    fn errors_have_their_status_and_code() {
        let limited = error_answer("429");
        assert!(limited.headers.iter().any(|(name, value)| name == "retry-after" && value == "2"));
        let context = error_answer("context");
        assert_eq!(context.status, 400);
        assert!(context.pieces[0].data.contains("context_length_exceeded"));
    }
}
