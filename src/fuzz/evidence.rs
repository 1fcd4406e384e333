//! Fuzz target for evidence in an upstream's refusal: the text that shows which part of the request
//! to change.

use crate::error::{Error, Rejection};
use crate::json::quoted;
use crate::model::request_context::RequestContext;
use crate::upstream_error::evidence::{Evidence, changes};
use crate::upstream_error::from_upstream;

/// Statuses, selected by the first digit of an input: statuses for which changes are tried, and
/// 429, for which none are.
const STATUSES: [u16; 8] = [400, 403, 404, 405, 422, 500, 501, 429];

/// Separator between the body of an error and the refused request in an input.
const SEPARATOR: &str = "\n\n";

/// Tests that evidence names each change once, in strict mode only lossless changes. Text that the
/// server repeats from the request must not count as evidence. An input has one digit for the
/// status, the error's body, an empty line and the request.
pub fn evidence(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some((status, text)) = text.split_at_checked(1) else { return };
    let (error, request) = text.split_once(SEPARATOR).unwrap_or((text, ""));
    let at = status.parse::<usize>().unwrap_or_default();
    let status = STATUSES.get(at).copied().unwrap_or(400);
    let read = refused(status, error);
    for sent in [None, Some(request), Some(error)] {
        check(&read, sent);
    }
    repeats(status, &read.message);
    repeats(status, request);
}

/// Checks that an error that only repeats a text of the request gives no evidence.
fn repeats(status: u16, text: &str) {
    let error = format!(r#"{{"error":{{"message":{}}}}}"#, quoted(text));
    let sent = format!(
        r#"{{"stream":true,"messages":[{{"role":"user","content":{}}}],"tool_choice":"auto"}}"#,
        quoted(text)
    );
    let read = refused(status, &error);
    check(&read, Some(&sent));
    // Otherwise the message is another text, or was masked or truncated.
    if read.message == text {
        let found = changes(&read, Some(&sent), false);
        assert!(found.iter().all(|(evidence, _)| *evidence == Evidence::Path), "{found:?}: {text}");
    }
}

/// Parses an error body as a rejection.
fn refused(status: u16, body: &str) -> Rejection {
    let error: Error = from_upstream(status, body.as_bytes(), &RequestContext::default());
    error.rejection().expect("an upstream's").clone()
}

/// Checks the changes that a rejection asks for.
fn check(rejection: &Rejection, sent: Option<&str>) {
    let all = changes(rejection, sent, false);
    let strict = changes(rejection, sent, true);
    assert!(strict.iter().all(|(_, change)| change.loses_nothing()), "{strict:?}");
    // Strict mode only filters the changes.
    let lossless: Vec<_> = all.iter().filter(|(_, change)| change.loses_nothing()).collect();
    assert_eq!(strict.iter().collect::<Vec<_>>(), lossless);
    for (at, (_, change)) in all.iter().enumerate() {
        assert!(all.iter().take(at).all(|(_, other)| other != change), "twice: {change:?}");
    }
}
