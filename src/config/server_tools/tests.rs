//! Tests of the keys of `server_tools`.

use super::*;
use crate::Config;

fn read(service: &str) -> Result<ServerTools, String> {
    let text = format!(r#"{{"server_tools":{{"web_search":{service}}}}}"#);
    let secret = |name: &str| match name {
        "SEARCH_KEY" => Some(" a-secret\n".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    let config = Config::from_json(&text, secret).map_err(|error| error.to_string())?;
    Ok(config.settings.server_tools)
}

#[track_caller]
fn refused(service: &str, expected: &str) {
    let error = read(service).unwrap_err();
    let found = error.strip_prefix("configuration: server_tools.web_search.").unwrap_or(&error);
    assert!(found.starts_with(expected), "{found}");
}

#[test]
fn nothing_is_searched_unless_a_service_is_named() {
    assert_eq!(Config::default().settings.server_tools, ServerTools::default());
    assert!(!ServerTools::default().searches());
    // A service that is switched off keeps its other keys.
    let off = r#"{"kind":"off","url":"x","key":{"env":"NO_SUCH_KEY"},"request":{}}"#;
    assert!(!read(off).unwrap().searches());
    assert!(read(r#"{"kind":"searxng","url":"http://search"}"#).unwrap().searches());
}

#[test]
fn a_host_that_cannot_call_services_refuses_a_configuration_with_one() {
    let check = |service: &str| {
        let text = format!(r#"{{"server_tools":{{"web_search":{service}}}}}"#);
        Config::from_json(&text, |_| None).unwrap().check_no_services()
    };
    assert_eq!(check(r#"{"kind":"off","url":"http://search"}"#), Ok(()));
    let error = check(r#"{"kind":"searxng","url":"http://search"}"#).unwrap_err();
    assert!(error.starts_with("configuration: server_tools: this host cannot"), "{error}");
}

#[test]
fn a_vendor_has_a_url_and_needs_a_key() {
    for (kind, url) in [
        ("brave", "https://api.search.brave.com"),
        ("tavily", "https://api.tavily.com"),
        ("exa", "https://api.exa.ai"),
        ("serper", "https://google.serper.dev"),
    ] {
        refused(&format!(r#"{{"kind":"{kind}"}}"#), "key: expected {\"env\": NAME}");
        let keyed = format!(r#"{{"kind":"{kind}","key":{{"env":"SEARCH_KEY"}}"#);
        let service = read(&format!("{keyed}}}")).unwrap().web_search;
        assert_eq!((service.base_url(), service.key.secret()), (url, Some("a-secret")));
        let own = read(&format!(r#"{keyed},"url":"http://proxy:1/x"}}"#)).unwrap().web_search;
        assert_eq!(own.base_url(), "http://proxy:1/x");
    }
}

#[test]
fn a_key_is_never_shown() {
    let service = r#"{"kind":"searxng","url":"http://a","key":{"env":"SEARCH_KEY"},"params":{"k":"p-secret"}}"#;
    let tools = read(service).unwrap();
    assert_eq!(tools.web_search.key.secret(), Some("a-secret"));
    let shown = format!("{tools:?}");
    assert!(!shown.contains("-secret") && shown.contains("Secret(…)"), "{shown}");
    for (key, expected) in [
        (
            r#""a-secret""#,
            "key: expected {\"env\": NAME} or {\"file\": PATH}; a key itself is never written here",
        ),
        (r#"{"value":"a-secret"}"#, "key: expected {\"env\": NAME}"),
        (r#"{"env":"a-secret"}"#, "key.env: expected the name of an environment variable"),
        (r#"{"env":"NO_SUCH_KEY"}"#, "key.env: expected an environment variable called \"NO_"),
        (r#"{"secret":"EMPTY"}"#, "key.secret: expected a key in one line"),
    ] {
        let service = format!(r#"{{"kind":"searxng","url":"http://a","key":{key}}}"#);
        refused(&service, expected);
        assert!(!read(&service).unwrap_err().contains("a-secret"));
    }
}

#[test]
fn a_url_that_no_request_can_go_to_is_refused_and_not_quoted() {
    refused(r#"{"kind":"searxng"}"#, "url: expected the URL of the service");
    refused(r#"{"kind":"json"}"#, "url: expected the URL of the service");
    for url in
        ["search", "ftp://search", "http://", "http://u@search", "http://s/a b", "http://s/#x"]
    {
        let url = format!("{url}?x-secret");
        refused(&format!(r#"{{"kind":"searxng","url":"{url}"}}"#), "url: expected a ");
        assert!(
            !read(&format!(r#"{{"kind":"searxng","url":"{url}"}}"#)).unwrap_err().contains("x-")
        );
    }
    for url in ["http://search", "http://search:8080/", "https://search/x/?a=b&c=%20"] {
        read(&format!(r#"{{"kind":"searxng","url":"{url}"}}"#)).unwrap();
    }
    refused(r#"{"kind":"searxng","url":"http://a","cluster":"a b"}"#, "cluster: expected visible");
}

#[test]
fn a_service_of_kind_json_needs_its_request_and_response() {
    let of = |keys: &str| format!(r#"{{"kind":"json","url":"http://a"{keys}}}"#);
    refused(&of(""), "request: expected an object, which kind json needs");
    refused(&of(r#","request":{}"#), "response: expected an object, which kind json needs");
    let with = |request: &str| of(&format!(r#","response":{{}},"request":{request}"#));
    for (request, expected) in [
        ("{}", "request: expected {query} in path, in query or in body"),
        (r#"{"path":"x{query}"}"#, "request.path: expected a path"),
        (r#"{"path":"/x?{query}"}"#, "request.path: expected a path"),
        (r#"{"path":"/{query}","body":{"a":1}}"#, "request.body: expected none, because method"),
        (r#"{"method":"PUT"}"#, "request.method: expected one of GET, POST"),
        (r#"{"query":{"q":1}}"#, "request.query.q: expected a string"),
        (r#"{"verb":1}"#, "request.verb: unknown key, expected one of method, path, query, body"),
    ] {
        refused(&with(request), expected);
    }
    for request in [
        r#"{"path":"/{query}"}"#,
        r#"{"query":{"q":"{query}"}}"#,
        r#"{"method":"POST","body":{"a":[{"b":"{query}"}]}}"#,
    ] {
        read(&with(request)).unwrap();
    }
    for key in ["request", "response"] {
        let service = format!(r#"{{"kind":"searxng","url":"http://a","{key}":{{}}}}"#);
        refused(&service, &format!("{key}: expected no such key without kind json"));
    }
}

#[test]
fn a_parameter_that_makes_the_search_cannot_be_replaced() {
    for (kind, name) in [("searxng", "q"), ("searxng", "format"), ("exa", "query")] {
        let service = format!(
            r#"{{"kind":"{kind}","url":"http://a","key":{{"env":"SEARCH_KEY"}},"params":{{"{name}":"x"}}}}"#
        );
        refused(&service, &format!("params.{name}: expected another name"));
    }
}

#[test]
fn a_limit_out_of_its_range_is_refused() {
    refused(r#"{"results_max":0}"#, "results_max: expected a number from 1 to 50");
    for (key, value) in [("turns_max", 51), ("calls_max", 0), ("answer_bytes_max", 1)] {
        let text = format!(r#"{{"server_tools":{{"{key}":{value}}}}}"#);
        let error = Config::from_json(&text, |_| None).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("configuration: server_tools.{key}: expected")),
            "{error}"
        );
    }
}

#[test]
fn a_route_cannot_change_what_names_a_secret() {
    let error = Config::default().for_route(r#"{"server_tools":{}}"#).unwrap_err().to_string();
    assert!(error.contains("server_tools: expected no such key"), "{error}");
}
