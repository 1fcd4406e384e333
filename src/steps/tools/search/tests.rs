//! Tests of searches, for each kind of service.

use serde_json::{Value, json};

use super::*;
use crate::Config;
use crate::config::WebSearchService;
use crate::model::search::{FoundPage, SearchFailure, SearchTool, UserLocation};

fn service(document: &Value) -> WebSearchService {
    let text = json!({"server_tools": {"web_search": document}}).to_string();
    let config = Config::from_json(&text, |_| Some("k-1".to_owned())).unwrap();
    config.settings.server_tools.web_search
}

/// Service of this kind at `http://s`, with a key.
fn keyed(kind: &str) -> WebSearchService {
    service(&json!({"kind": kind, "url": "http://s", "key": {"env": "KEY"}}))
}

fn tool(allowed: &[&str], blocked: &[&str]) -> SearchTool {
    let list = |domains: &[&str]| domains.iter().map(|it| (*it).to_owned()).collect();
    SearchTool {
        allowed_domains: list(allowed),
        blocked_domains: list(blocked),
        ..SearchTool::default()
    }
}

fn in_country(country: &str) -> SearchTool {
    let location = UserLocation { country: Some(country.to_owned()), ..UserLocation::default() };
    SearchTool { location: Some(location), ..SearchTool::default() }
}

/// URL and body of the request for a search.
fn asked(service: &WebSearchService, tool: &SearchTool, query: &str) -> (String, String) {
    let question = request(service, tool, query);
    (question.url, String::from_utf8(question.body).unwrap())
}

fn found(service: &WebSearchService, body: &Value) -> Result<Vec<FoundPage>, SearchFailure> {
    read(service, &SearchTool::default(), 200, body.to_string().as_bytes())
}

fn page(url: &str, title: &str, text: &str, age: Option<&str>) -> FoundPage {
    let (url, title, text) = (url.to_owned(), title.to_owned(), text.to_owned());
    FoundPage { url, title, text, age: age.map(str::to_owned) }
}

/// URLs of the results with these URLs that the lists of a tool permit.
fn kept(tool: &SearchTool, urls: &[&str]) -> Vec<String> {
    let results: Vec<Value> = urls.iter().map(|url| json!({"url": url})).collect();
    let body = json!({"results": results}).to_string();
    let service = service(&json!({"kind": "searxng", "url": "http://s", "results_max": 50}));
    let pages = read(&service, tool, 200, body.as_bytes()).unwrap();
    pages.into_iter().map(|page| page.url).collect()
}

#[test]
fn the_headers_of_a_search_have_the_key_where_the_service_looks_for_it() {
    let version = concat!("creole/", env!("CARGO_PKG_VERSION"));
    let common = [("accept", "application/json"), ("accept-encoding", "identity")];
    for (kind, is_post, key_header, key) in [
        ("searxng", false, "authorization", "Bearer k-1"),
        ("brave", false, "x-subscription-token", "k-1"),
        ("tavily", true, "authorization", "Bearer k-1"),
        ("exa", true, "x-api-key", "k-1"),
        ("serper", true, "x-api-key", "k-1"),
    ] {
        let mut expected = common.to_vec();
        if is_post {
            expected.push(("content-type", "application/json"));
        }
        expected.extend([("user-agent", version), (key_header, key)]);
        let question = request(&keyed(kind), &SearchTool::default(), "q");
        let headers: Vec<(&str, &str)> =
            question.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(headers, expected, "{kind}");
        assert_eq!(question.body.is_empty(), !is_post, "{kind}");
        let shown = format!("{question:?}");
        assert!(!shown.contains("k-1") && !shown.contains("http"), "{shown}");
    }
    let question =
        request(&service(&json!({"kind": "searxng", "url": "http://s"})), &tool(&[], &[]), "q");
    assert_eq!(question.headers.len(), 3);
}

#[test]
fn a_get_has_the_search_in_its_query() {
    let tool = SearchTool::default();
    let search = |url: &str, query: &str| {
        let document =
            json!({"kind": "searxng", "url": url, "params": {"language": "de", "x y": "&"}});
        let (url, body) = asked(&service(&document), &tool, query);
        assert_eq!(body, "");
        url
    };
    let end = "format=json&language=de&x%20y=%26";
    assert_eq!(search("http://s", "a"), format!("http://s/search?q=a&{end}"));
    assert_eq!(search("http://search", "a"), format!("http://search/search?q=a&{end}"));
    assert_eq!(search("http://s/x/", "a"), format!("http://s/x/search?q=a&{end}"));
    assert_eq!(search("http://s/search", "a"), format!("http://s/search?q=a&{end}"));
    assert_eq!(search("http://s/x/?k=1", "a"), format!("http://s/x/search?k=1&q=a&{end}"));
    let hard = "q=ü%2B%26x%23%3F%2F%20%22%F0%9F%98%80%0A~".replace('ü', "%C3%BC");
    assert_eq!(search("http://s", "ü+&x#?/ \"😀\n~"), format!("http://s/search?{hard}&{end}"));
    let brave = |tool: &SearchTool| asked(&keyed("brave"), tool, "a b").0;
    assert_eq!(brave(&tool), "http://s/res/v1/web/search?q=a%20b&count=8");
    let url = brave(&in_country("de"));
    assert_eq!(url, "http://s/res/v1/web/search?q=a%20b&count=8&country=DE");
    assert_eq!(brave(&in_country("Germany")), brave(&tool));
}

#[test]
fn a_post_has_the_search_in_its_body() {
    let lists = |allowed: &[&str], blocked: &[&str]| SearchTool {
        location: in_country("De").location,
        ..tool(allowed, blocked)
    };
    let query = "say \"ü\"";
    for (kind, tool, expected) in [
        ("tavily", tool(&[], &[]), r#"{"query":"say \"ü\"","max_results":8}"#),
        (
            "tavily",
            lists(&["a.example", "b.example/x/*/y"], &[]),
            r#"{"query":"say \"ü\"","max_results":8,"include_domains":["a.example","b.example/x/"]}"#,
        ),
        (
            "exa",
            lists(&[], &["a.example"]),
            r#"{"query":"say \"ü\"","numResults":8,"excludeDomains":["a.example"],"userLocation":"DE","contents":{"highlights":true}}"#,
        ),
        (
            "serper",
            lists(&[], &["a.example"]),
            r#"{"q":"say \"ü\" -site:a.example","num":8,"gl":"de"}"#,
        ),
    ] {
        let (url, body) = asked(&keyed(kind), &tool, query);
        assert_eq!((url.as_str(), body.as_str()), ("http://s/search", expected), "{kind}");
    }
    let document = json!({"kind": "serper", "key": {"env": "K"}, "results_max": 50,
        "params": {"gl": "fr", "hl": "fr"}});
    let (url, body) = asked(&service(&document), &in_country("DE"), "q");
    assert_eq!(url, "https://google.serper.dev/search");
    assert_eq!(body, r#"{"q":"q","num":50,"gl":"fr","hl":"fr"}"#);
    let document = json!({"kind": "tavily", "key": {"env": "K"}, "results_max": 50});
    assert!(asked(&service(&document), &tool(&[], &[]), "q").1.contains("\"max_results\":20"));
}

#[test]
fn domains_are_told_to_services_that_have_no_lists_for_them() {
    let terms = |tool: &SearchTool| {
        let (url, _) = asked(&keyed("searxng"), tool, "q");
        crate::text::words::percent_decoded(&url).into_owned()
    };
    let url = "http://s/search?q=q";
    let one = tool(&["a.example"], &[]);
    assert_eq!(terms(&one), format!("{url} (site:a.example)&format=json"));
    let many = ["1.x", "2.x/p/*/q", "3.x", "4.x", "5.x", "6.x"];
    let sites = "site:1.x OR site:2.x/p/ OR site:3.x OR site:4.x OR site:5.x";
    assert_eq!(terms(&tool(&many, &[])), format!("{url} ({sites})&format=json"));
    let blocked = "-site:1.x -site:2.x/p/ -site:3.x -site:4.x -site:5.x";
    assert_eq!(terms(&tool(&[], &many)), format!("{url} {blocked}&format=json"));
}

#[test]
fn a_request_of_kind_json_is_that_of_the_configuration() {
    let document = |request: Value| {
        json!({"kind": "json", "url": "http://s/api", "key": {"env": "K"}, "request": request,
            "params": {"lang": "de"}, "response": {}})
    };
    let get = json!({"path": "/{query}/find", "query": {"q": "x {query} {count}{country}{", "lang": "en"}});
    let (url, body) = asked(&service(&document(get)), &in_country("de"), "{count}/a");
    let path = "http://s/api/%7Bcount%7D%2Fa/find";
    assert_eq!(url, format!("{path}?q=x%20%7Bcount%7D%2Fa%208DE%7B&lang=de"));
    assert_eq!(body, "");
    let post = json!({"method": "POST", "query": {"v": "1"}, "body": {"a": ["{query}", 1, null, true],
        "b": {"c": "{country}", "{query}": "{x}"}, "lang": "en"}});
    let (url, body) = asked(&service(&document(post)), &tool(&[], &[]), "say \"ü\"");
    assert_eq!(url, "http://s/api?v=1");
    let expected = r#"{"a":["say \"ü\"",1,null,true],"b":{"c":"","{query}":"{x}"},"lang":"de"}"#;
    assert_eq!(body, expected);
}

#[test]
fn results_are_read_from_each_kind_of_answer() {
    let url = "https://a.example/x";
    for (kind, answer, expected) in [
        (
            "searxng",
            json!({"query": "q", "unresponsive_engines": [["e", "timeout"]], "results": [
                {"url": url, "title": "A", "content": "Alpha.", "publishedDate": "2026-01-02", "score": 1.5}]}),
            page(url, "A", "Alpha.", Some("2026-01-02")),
        ),
        (
            "brave",
            json!({"web": {"results": [{"url": url, "title": "<strong>A</strong>b", "age": "2 days",
                "description": "An <strong>alpha</strong>.", "extra_snippets": ["One.", 2, "<strong>Two</strong>."]}]}}),
            page(url, "Ab", "An alpha.\nOne.\nTwo.", Some("2 days")),
        ),
        (
            "brave",
            json!({"web": {"results": [{"url": url, "page_age": "2026-01-02", "age": "2 days"}]}}),
            page(url, url, "", Some("2026-01-02")),
        ),
        (
            "tavily",
            json!({"results": [{"url": url, "title": "A", "content": "<strong>", "published_date": null}]}),
            page(url, "A", "<strong>", None),
        ),
        (
            "exa",
            json!({"results": [{"url": url, "title": "A", "highlights": ["H1", "H2"], "text": "T",
                "publishedDate": "2026"}]}),
            page(url, "A", "H1\nH2", Some("2026")),
        ),
        (
            "exa",
            json!({"results": [{"url": url, "title": null, "highlights": [], "text": "T"}]}),
            page(url, url, "T", None),
        ),
        (
            "serper",
            json!({"organic": [{"link": url, "title": "A", "snippet": "S", "date": "May 1"}]}),
            page(url, "A", "S", Some("May 1")),
        ),
    ] {
        assert_eq!(found(&keyed(kind), &answer), Ok(vec![expected]), "{kind}");
    }
}

#[test]
fn results_of_kind_json_are_where_the_configuration_says() {
    let document = |response: Value| {
        service(&json!({"kind": "json", "url": "http://s", "response": response,
            "request": {"path": "/{query}"}}))
    };
    let deep = document(json!({"results": "data.hits", "url": "page.href", "title": "name",
        "content": "parts", "age": "when"}));
    let answer = json!({"data": {"hits": [{"page": {"href": "http://a"}, "name": "A",
        "parts": ["x", "y"], "when": "now"}]}});
    assert_eq!(found(&deep, &answer), Ok(vec![page("http://a", "A", "x\ny", Some("now"))]));
    assert_eq!(found(&deep, &json!({"data": {}})), Err(SearchFailure::Unavailable));
    let list = document(json!({"results": ""}));
    let answer = json!([{"url": "http://a", "title": "A", "content": "x"}]);
    assert_eq!(found(&list, &answer), Ok(vec![page("http://a", "A", "x", None)]));
}

#[test]
fn failures_are_told_from_searches_without_results() {
    let none = Ok(Vec::new());
    let unavailable = Err(SearchFailure::Unavailable);
    let empty = json!({"results": [], "unresponsive_engines": []});
    assert_eq!(found(&keyed("searxng"), &empty), none);
    let failed = json!({"results": [], "unresponsive_engines": [["x", "timeout"]]});
    assert_eq!(found(&keyed("searxng"), &failed), unavailable);
    assert_eq!(found(&keyed("brave"), &json!({"type": "search"})), none);
    assert_eq!(found(&keyed("brave"), &json!({"error": {"code": "X"}})), unavailable);
    assert_eq!(found(&keyed("tavily"), &json!({"detail": "no"})), unavailable);
    assert_eq!(found(&keyed("exa"), &json!({"results": null})), unavailable);
    assert_eq!(found(&keyed("serper"), &json!({"organic": {"link": "http://a"}})), unavailable);

    let of = |status, body: &str| read(&keyed("exa"), &tool(&[], &[]), status, body.as_bytes());
    assert_eq!(of(204, ""), unavailable);
    for body in
        ["<html>", "", "null", "{", "{\"results\":[]", "{\"results\":[]} x", "{\"results\":[{]}"]
    {
        assert_eq!(of(200, body), unavailable, "{body}");
    }
    assert_eq!(of(201, "\u{feff} {\"results\":[]}"), none);
    assert_eq!(of(429, "{\"results\":[]}"), Err(SearchFailure::TooManyRequests));
    assert_eq!(of(413, ""), Err(SearchFailure::RequestTooLarge));
    for status in [101, 301, 400, 401, 403, 500, 503] {
        assert_eq!(of(status, "{\"results\":[]}"), unavailable, "{status}");
    }
}

#[test]
fn results_without_a_web_address_and_repeats_are_dropped() {
    let urls = [
        "http://a/1",
        "ftp://a",
        "javascript:x",
        "",
        "http://",
        "https://a/2",
        "http://a/1",
        " https://a/3 ",
    ];
    assert_eq!(kept(&tool(&[], &[]), &urls), ["http://a/1", "https://a/2", "https://a/3"]);
    let answer = json!({"results": [{"title": "A"}, 7, null, [], "http://b", {"url": 3}]});
    assert_eq!(found(&keyed("exa"), &answer), Ok(Vec::new()));
}

#[test]
fn a_domain_covers_its_subdomains_and_no_lookalike() {
    let urls = [
        "https://a.example/x",
        "http://DOCS.a.example:8080/y",
        "https://nota.example/",
        "https://a.example.evil.example/",
        "https://a.example@evil.example/",
        "https://evil.example\\@a.example/",
        "https://evil.example/a.example",
        "https://evil.example?a.example",
        "https://%61.example/",
        "https://a.example./z",
    ];
    let allowed = [urls[0], urls[1], urls[9]];
    assert_eq!(kept(&tool(&["a.example"], &[]), &urls), allowed);
    let others = &urls[2..8];
    assert_eq!(kept(&tool(&[], &["a.example"]), &urls), others);
    assert_eq!(kept(&tool(&["b.example", "example"], &[]), &urls).len(), 9);
}

#[test]
fn a_path_covers_what_begins_with_it() {
    let urls = [
        "https://a.example/docs/1",
        "https://a.example/docs2",
        "https://a.example/Docs/",
        "https://docs.a.example/docs/?q",
        "https://a.example?/docs/",
    ];
    assert_eq!(kept(&tool(&["a.example/docs/"], &[]), &urls), [urls[0], urls[3]]);
    assert_eq!(kept(&tool(&["a.example/docs"], &[]), &urls), [urls[0], urls[1], urls[3]]);
    assert_eq!(kept(&tool(&["a.example/"], &[]), &urls), urls);
    let urls = [
        "https://a.example/x/1/y",
        "https://a.example/x/y",
        "https://a.example/x/1/2/yz",
        "https://a.example/z/y",
    ];
    assert_eq!(kept(&tool(&["a.example/x/*/y"], &[]), &urls), [urls[0], urls[2]]);
    assert_eq!(kept(&tool(&["a.example/x*"], &[]), &urls), urls[..3]);
    assert_eq!(kept(&tool(&["a.example/*y"], &[]), &urls), urls);
}

#[test]
fn texts_are_cut_at_a_character() {
    let document =
        json!({"kind": "searxng", "url": "http://s", "snippet_bytes_max": 6, "results_max": 2});
    let result = |url| json!({"url": url, "title": "t".repeat(600), "content": "abcdeéf"});
    let answer = json!({"results": [result("http://a"), result("http://b"), result("http://c")]});
    let pages = found(&service(&document), &answer).unwrap();
    assert_eq!(pages.len(), 2);
    assert_eq!((pages[0].text.as_str(), pages[0].title.len()), ("abcde", 500));
    assert_eq!(pages[0].held_bytes(), "http://a".len() + 500 + 5);
}

#[test]
fn control_characters_do_not_survive() {
    let answer = json!({"results": [
        {"url": "http://a/\u{0}"}, {"url": "http://a/\nx"}, {"url": "http://a/\u{9b}"}, {"url": "http://a /"},
        {"url": "http://b", "title": " a\u{1b}[31m\r\n b\u{0}\u{9b} ", "content": "\u{7}x\r\n\ty\u{1b}\u{0}",
         "publishedDate": "a\nb"},
        {"url": "http://c", "title": "\u{0}\n"},
    ]});
    let expected = vec![
        page("http://b", "a [31m b", "x\n\ty", Some("a b")),
        page("http://c", "http://c", "", None),
    ];
    assert_eq!(found(&keyed("searxng"), &answer), Ok(expected));
    let broken = b"{\"results\":[{\"url\":\"http://a\",\"title\":\"\xff\\ud800\"}]}";
    let pages = read(&keyed("exa"), &tool(&[], &[]), 200, broken).unwrap();
    assert_eq!(pages[0].title, "\u{fffd}\u{fffd}");
}

#[test]
fn hostile_answers_end_soon() {
    let unavailable = Err(SearchFailure::Unavailable);
    let of = |body: String| read(&keyed("exa"), &tool(&["a.example"], &[]), 200, body.as_bytes());
    assert_eq!(of("[".repeat(1 << 20)), unavailable);
    assert_eq!(of(format!("{{\"results\":{}", "[".repeat(1 << 20))), unavailable);
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert_eq!(of(format!("{{\"results\":[{{\"url\":{deep}}}]}}")), unavailable);
    let huge = "x".repeat(4 << 20);
    let result = format!(
        "{{\"url\":\"http://{huge}\"}},{{\"url\":\"http://a.example\",\"title\":\"{huge}\"}}"
    );
    let pages = of(format!("{{\"results\":[{result}]}}")).unwrap();
    assert_eq!((pages.len(), pages[0].title.len()), (1, 500));

    // Of ten thousand results, the first thousand are looked at.
    let result = |at: usize| format!("{{\"url\":\"http://b.example/{at}\",\"text\":\"x\"}}");
    let many: Vec<String> = (0..10_000).map(result).collect();
    let last = |count: usize| {
        let kept = "{\"url\":\"http://a.example\"}".to_owned();
        let results = [&many[..count], &[kept]].concat().join(",");
        of(format!("{{\"results\":[{results}]}}")).unwrap().len()
    };
    assert_eq!((last(999), last(1000), last(10_000)), (1, 0, 0));
    let wide = (0..1000).map(|at| format!("b.example/{at}/x")).collect();
    let wide = SearchTool { allowed_domains: wide, ..SearchTool::default() };
    let body = format!("{{\"results\":[{}]}}", many.join(","));
    assert_eq!(read(&keyed("exa"), &wide, 200, body.as_bytes()), Ok(Vec::new()));
}
