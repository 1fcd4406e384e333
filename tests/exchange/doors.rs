//! Who and what may come in: methods, base URLs, loops, keys of clients.

use super::*;

/// What an exchange makes of a head.
fn head_of(config: &str, method: &str, path: &str, sent: &[(&str, &str)]) -> RequestHead {
    let mut exchange = Exchange::new(drive::config(config), SEED, Pings::No);
    exchange.handle_request_head(method, path, &headers(sent))
}

fn refused(head: RequestHead) -> creole::Reply {
    match head {
        RequestHead::Reply(reply) => reply,
        other => panic!("it was not refused: {other:?}"),
    }
}

#[test]
fn only_known_methods_go_to_an_upstream() {
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        assert_eq!(head_of("{}", method, "/v1/files", &[]), RequestHead::PassThrough, "{method}");
    }
    for method in ["TRACE", "TRACK", "CONNECT", "DEBUG", "PRI", "PURGE", "get", "GET, TRACE", ""] {
        for path in ["/v1/files", "/", "/elsewhere", "/v1/models"] {
            let reply = refused(head_of("{}", method, path, &[]));
            assert_eq!(reply.head.status, 405, "{method} {path}");
            let allowed = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
            assert_eq!(header(&reply.head, "allow"), Some(allowed));
            assert_eq!(error_of(&reply.body)["type"], "invalid_request_error");
        }
        let reply = refused(head_of("{}", method, "/v1/messages", &[]));
        assert_eq!((reply.head.status, header(&reply.head, "allow")), (405, Some("POST")));
    }
}

#[test]
fn the_methods_of_other_services_are_left_to_them() {
    let mut exchange = Exchange::new(drive::config("{}"), SEED, Pings::No);
    exchange.leave_others();
    let head = exchange.handle_request_head("PROPFIND", "/files", &[]);
    assert_eq!(head, RequestHead::PassThrough);
}

#[test]
fn a_base_url_with_the_path_that_others_have_is_understood() {
    for (path, expected) in [
        ("//v1/messages", "/v1/messages"),
        ("//v1/messages?beta=true", "/v1/messages?beta=true"),
        ("/v1//v1/messages", "/v1/messages"),
        ("/v1/messages/", "/v1/messages/"),
        ("/messages/", "/v1/messages/"),
        ("/anthropic/v1/messages", "/v1/messages"),
        ("/anthropic//v1/messages?beta=true", "/v1/messages?beta=true"),
        ("/anthropic/v1/v1/messages", "/v1/messages"),
        ("/anthropic/v1/messages/count_tokens", "/v1/messages/count_tokens"),
        ("/anthropic/messages", "/v1/messages"),
        ("/api/anthropic/v1/models/a", "/v1/models/a"),
        ("/anthropic", "/"),
        ("/anthropic/", "/"),
        ("/anthropic/api/hello", "/api/hello"),
        // What is not Creole's keeps its path.
        ("/anthropic/v1/files", "/anthropic/v1/files"),
        ("/anthropics/v1/messages", "/anthropics/v1/messages"),
        ("/x/v1/messages", "/x/v1/messages"),
        ("/v1/anthropic/v1/messages", "/v1/anthropic/v1/messages"),
        ("//v1/files", "//v1/files"),
        ("/v1/files//content", "/v1/files//content"),
        ("//", "//"),
    ] {
        assert_eq!(creole::with_version(path), expected, "{path}");
    }
}

#[test]
fn a_slash_at_the_end_of_a_path_is_no_other_path() {
    let sent = [("x-api-key", "k")];
    for path in ["/v1/messages/", "/v1/messages//", "/v1/messages/count_tokens/?beta=true"] {
        assert_eq!(head_of("{}", "POST", path, &sent), RequestHead::Translate, "{path}");
    }
    let listed = refused(head_of(r#"{"models":{"a":{}}}"#, "GET", "/v1/models/", &[]));
    assert_eq!(listed.head.status, 200);
    assert!(String::from_utf8(listed.body).unwrap().contains(r#""id":"a""#));
    // Batches are not served, with a slash or without.
    let reply = refused(head_of("{}", "POST", "/v1/messages/batches/", &sent));
    assert_eq!(reply.head.status, 404);
}

#[test]
fn a_path_that_is_not_served_is_told_the_right_one() {
    let mut exchange = Exchange::new(drive::config("{}"), SEED, Pings::No);
    let head = exchange.handle_request_head("POST", "/x/v1/messages", &[]);
    assert_eq!(head, RequestHead::PassThrough);
    let reply = exchange.reply_to(Failure::NoRoute, NOW);
    assert_eq!(reply.head.status, 404);
    let message = error_of(&reply.body)["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("This gateway has no such route. It serves /v1/messages"),
        "{message}"
    );
}
