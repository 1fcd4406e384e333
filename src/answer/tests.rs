//! Tests of the errors for finish reasons that mean a failure.

use super::output::failure;
use crate::error::ErrorKind;
use crate::model::request_context::RequestContext;

#[test]
fn a_failure_is_no_answer() {
    let failure = |word: &str| failure(word, &RequestContext::default());
    assert_eq!(failure("stop"), None);
    assert_eq!(failure("abort").unwrap().kind, ErrorKind::Api);
    for word in ["time_limit", "canceled", "cancelled"] {
        assert_eq!(failure(word).unwrap().message, format!("Upstream stopped: {word}"));
    }
    assert_eq!(failure("repetition").unwrap().message, "Upstream stopped: repetition");
    assert_eq!(failure("error: boom").unwrap().message, "Upstream stopped: error: boom");
    assert_eq!(failure("error_finish").unwrap().kind, ErrorKind::Api);
    assert_eq!(failure("insufficient_system_resource").unwrap().kind, ErrorKind::Overloaded);
}

#[test]
fn the_type_of_an_error_is_a_failure_of_its_kind() {
    let failure = |word: &str| failure(word, &RequestContext::default());
    for (word, kind, status) in [
        ("overloaded_error", ErrorKind::Overloaded, 529),
        ("rate_limit_error", ErrorKind::RateLimit, 429),
        ("timeout_error", ErrorKind::Timeout, 504),
        ("timeout", ErrorKind::Timeout, 504),
        ("api_error", ErrorKind::Api, 502),
        ("OVERLOADED_ERROR: try again", ErrorKind::Overloaded, 529),
        ("some_new_error", ErrorKind::Api, 502),
    ] {
        let error = failure(word).unwrap();
        assert_eq!((error.kind, error.status), (kind, status), "{word}");
        assert_eq!(error.message, format!("Upstream stopped: {word}"));
    }
    for word in ["error_toxic", "ERROR_LIMIT", "terror", "stop: some_error"] {
        assert_eq!(failure(word), None, "{word}");
    }
    let context = RequestContext { edge_key: true, ..RequestContext::default() };
    let error = super::output::failure("authentication_error", &context).unwrap();
    assert_eq!((error.kind, error.should_retry), (ErrorKind::Api, Some(false)));
}
