//! Tests of `services.rs`.

use super::*;

fn service(kind: SearchKind) -> WebSearchService {
    WebSearchService { kind, ..WebSearchService::default() }
}

fn received(raw: &str) -> ReceivedResponse {
    ReceivedResponse { status: 200, raw: raw.as_bytes().to_vec(), ..ReceivedResponse::default() }
}

#[test]
fn a_search_that_fails_has_a_next_step_for_each_reason() {
    let searxng = service(SearchKind::Searxng);
    let of = |service: &WebSearchService, raw: &str| failure(service, &received(raw), "x");
    assert!(of(&searxng, "HTTP/1.1 403 Forbidden\r\n").contains("add json to search.formats"));
    assert!(of(&service(SearchKind::Brave), "HTTP/1.1 403 No\r\n").contains("look at its key"));
    assert!(of(&searxng, "HTTP/1.0 429 \r\n").contains("answers 429"));
    assert!(of(&searxng, "HTTP/1.1 302 Found\r\n").contains("to which it leads"));
    assert!(of(&searxng, "HTTP/1.1 404 Not Found\r\n").contains("answers 404: correct"));
    assert!(of(&searxng, "HTTP/1.1 200 OK\r\n").contains("whether it is a SearXNG"));
    assert!(of(&service(SearchKind::Json), "").contains("look at its kind"));
    let late = ReceivedResponse { whole: Duration::from_secs(15), ..received("") };
    assert!(failure(&searxng, &late, "x").contains("within 15000 ms"));
    let uncalled = ReceivedResponse { uncalled: "refused".to_owned(), ..received("") };
    assert!(failure(&searxng, &uncalled, "x").starts_with("(refused): start the service"));
}

#[test]
fn results_are_counted_and_an_error_is_its_code() {
    let answer = |content: &str| {
        format!(
            r#"{{"content":[{{"type":"text"}},{{"type":"web_search_tool_result","content":{content}}}]}}"#
        )
    };
    assert_eq!(results(&answer("[]")), Ok(0));
    assert_eq!(results(&answer(r#"[{"type":"a"},{"type":"b"}]"#)), Ok(2));
    let failed = answer(r#"{"type":"web_search_tool_result_error","error_code":"unavailable"}"#);
    assert_eq!(results(&failed), Err("unavailable".to_owned()));
    assert_eq!(results("{}"), Err("unavailable".to_owned()));
}
