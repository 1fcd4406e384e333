//! The fuzz target for evidence in refusals of upstreams.

use crate::error::{Error, Rejection};
use crate::json::quoted;
use crate::model::request_context::RequestContext;
use crate::upstream_error::evidence::{Evidence, changes};
use crate::upstream_error::from_upstream;

/// Statuses by the digit at the beginning of an input: those for which changes are tried, and one
/// for which none is.
const STATUSES: [u16; 8] = [400, 403, 404, 405, 422, 500, 501, 429];

/// Separator between the body of an error and the request that was refused.
const SEPARATOR: &str = "\n\n";

/// Evidence names each change once, in strict mode only what loses nothing, and no change by words
/// that the server repeats out of the request. An input has one digit for the status, then the
/// error's body, an empty line and the request.
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

/// Checks that an error that only repeats a text of the request names nothing.
fn repeats(status: u16, text: &str) {
    let error = format!(r#"{{"error":{{"message":{}}}}}"#, quoted(text));
    let sent = format!(
        r#"{{"stream":true,"messages":[{{"role":"user","content":{}}}],"tool_choice":"auto"}}"#,
        quoted(text)
    );
    let read = refused(status, &error);
    check(&read, Some(&sent));
    // The words were another text's, masked or cut.
    if read.message == text {
        let found = changes(&read, Some(&sent), false);
        assert!(found.iter().all(|(evidence, _)| *evidence == Evidence::Path), "{found:?}: {text}");
    }
}

/// Reads an error body as a rejection.
fn refused(status: u16, body: &str) -> Rejection {
    let error: Error = from_upstream(status, body.as_bytes(), &RequestContext::default());
    error.rejection().expect("an upstream's").clone()
}

/// Checks the changes that a rejection asks for.
fn check(rejection: &Rejection, sent: Option<&str>) {
    let all = changes(rejection, sent, false);
    let strict = changes(rejection, sent, true);
    assert!(strict.iter().all(|(_, change)| change.loses_nothing()), "{strict:?}");
    // Strict mode takes away, and adds nothing.
    let lossless: Vec<_> = all.iter().filter(|(_, change)| change.loses_nothing()).collect();
    assert_eq!(strict.iter().collect::<Vec<_>>(), lossless);
    for (at, (_, change)) in all.iter().enumerate() {
        assert!(all.iter().take(at).all(|(_, other)| other != change), "twice: {change:?}");
    }
}
