use proptest::prelude::*;

use super::*;
use crate::observe::warning::Warnings;

fn address(url: &str) -> PageAddress {
    PageAddress::of_call(url, &[8443]).unwrap()
}

fn is_in(text: &str, url: &str) -> bool {
    names(text, &text.to_ascii_lowercase(), &address(url))
}

/// Returns true if a conversation with these messages names the address.
fn is_named(messages: &str, sources: &UrlSources, url: &str) -> bool {
    let body = format!(r#"{{"model":"m","max_tokens":9,"messages":[{messages}]}}"#);
    let request = Request::read(&body, &mut Warnings::new(false)).unwrap();
    super::is_named(&request, sources, &address(url))
}

#[test]
fn a_letter_of_the_text_has_one_percent_encoded_form() {
    assert!(is_in("https://a.example/\u{eaaa}", "https://a.example/%EE%AA%AA"));
    for other in ["%eE%AA%AA", "%EE%Aa%AA", "%ee%aa%aa"] {
        assert!(!is_in("https://a.example/\u{eaaa}", &format!("https://a.example/{other}")));
    }
}

#[test]
fn an_address_is_found_in_the_forms_in_which_people_write_it() {
    let url = "https://a.example/x?y=1";
    for text in [
        "https://a.example/x?y=1",
        "Read https://a.example/x?y=1.",
        "HTTPS://A.Example:443/x?y=1#part",
        "<https://a.example/x?y=1>",
        "[text](https://a.example/x?y=1)[other](https://b.example/)",
        "**https://a.example/x?y=1**",
        "\"https://a.example/x?y=1\"",
        "https://a.example/x?y=1/ and more",
        "https://a.example/x?y=1, and more",
        "a.example/x?y=1",
        "(a.example/x?y=1)",
        "\u{898b}https://a.example/x?y=1\u{3002}",
        "https://a.example./x?y=1",
        "https://a.example/z https://a.example/x?y=1",
        "Is it https://a.example/x?y=1?!",
    ] {
        assert!(is_in(text, url), "{text}");
    }
    for text in [
        "",
        "a.example",
        "http://a.example/x?y=1",
        "https://a.example/x?y=12",
        "https://a.example/x?y=1&z",
        "https://a.example/x?y=1/z",
        "https://a.example/x?y=1.html",
        "https://a.example/X?y=1",
        "https://b.a.example/x?y=1",
        "https://ba.example/x?y=1",
        "https://a.example.evil.test/x?y=1",
        "https://a.example:8443/x?y=1",
        "https://evil.test/a.example/x?y=1",
        "https://evil.test/?u=a.example/x?y=1",
        "user@a.example/x?y=1",
    ] {
        assert!(!is_in(text, url), "{text}");
    }
}

#[test]
fn addresses_are_compared_in_one_form() {
    for (text, url) in [
        ("https://a.example", "https://a.example/"),
        ("https://a.example/", "https://A.EXAMPLE:443#x"),
        ("see a.example.", "https://a.example/"),
        ("http://a.example:80/x/", "http://a.example/x"),
        ("https://a.example:8443/x", "https://a.example:8443/x/"),
        ("https://a.example?q=1", "https://a.example/?q=1"),
        ("https://a.example/B\u{e4}r", "https://a.example/B\u{e4}r"),
        ("https://a.example/B%C3%A4r", "https://a.example/B\u{e4}r"),
        ("https://en.a.example/A_(b)", "https://en.a.example/A_(b)"),
    ] {
        assert!(is_in(text, url), "{text} {url}");
    }
    assert!(!is_in("a.example", "http://a.example/"));
    assert!(!is_in("https://a.example/x", "https://a.example/"));
    assert!(!is_in("https://a.example/b\u{e4}r", "https://a.example/b\u{f6}r"));
}

#[test]
fn texts_of_the_user_and_results_name_addresses_and_the_assistant_does_not() {
    let all = UrlSources::default();
    let url = "https://a.example/x";
    let sealed = sealed::seal("Alpha https://a.example/x");
    for (messages, is_expected) in [
        (r#"{"role":"user","content":"https:\/\/a.example/x"}"#.to_owned(), true),
        (r#"{"role":"assistant","content":"https://a.example/x"}"#.to_owned(), false),
        (
            r#"{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a.example/x"}}]}"#.to_owned(),
            true,
        ),
        (
            r#"{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a.example/x"}]}}]}"#.to_owned(),
            true,
        ),
        (
            r#"{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a.example/x"}}]}"#.to_owned(),
            true,
        ),
        (
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"https://a.example/x"}]}"#.to_owned(),
            true,
        ),
        (
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"u":"https://a.example/x"}}]}"#.to_owned(),
            false,
        ),
        (
            r#"{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_fetch","input":{"url":"https://a.example/x"}}]}"#.to_owned(),
            false,
        ),
        (search_result(r#""url":"https://a.example/x""#), true),
        (
            search_result(&format!(r#""url":"https://b.example/","encrypted_content":"{sealed}""#)),
            true,
        ),
        (search_result(r#""url":"https://b.example/","encrypted_content":"foreign""#), false),
        (fetch_result("https://a.example/x", "text", "y"), true),
        (fetch_result("https://b.example/", "text", "[x](https://a.example/x)"), true),
        (fetch_result("https://b.example/", "base64", "https://a.example/x"), false),
    ] {
        assert_eq!(is_named(&messages, &all, url), is_expected, "{messages}");
    }
}

fn search_result(page: &str) -> String {
    let page = format!(r#"{{"type":"web_search_result","title":"T",{page}}}"#);
    format!(
        r#"{{"role":"assistant","content":[{{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{{}}}},{{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{page}]}}]}}"#
    )
}

fn fetch_result(url: &str, kind: &str, data: &str) -> String {
    let source = format!(r#"{{"type":"{kind}","media_type":"text/plain","data":"{data}"}}"#);
    format!(
        r#"{{"role":"assistant","content":[{{"type":"server_tool_use","id":"srvtoolu_1","name":"web_fetch","input":{{}}}},{{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_1","content":{{"type":"web_fetch_result","url":"{url}","content":{{"type":"document","source":{source}}}}}}}]}}"#
    )
}

#[test]
fn sources_that_the_client_excludes_name_nothing() {
    let url = "https://a.example/x";
    let user = r#"{"role":"user","content":"https://a.example/x"}"#;
    let without_user = UrlSources { is_user_excluded: true, ..UrlSources::default() };
    assert!(!is_named(user, &without_user, url));

    let call =
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"read","input":{}}]}"#;
    let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"https://a.example/x"}]}"#;
    let client = format!("{call},{result}");
    let server = search_result(r#""url":"https://a.example/x""#);
    for (filter, of_client, of_server) in [
        (ToolFilter::All, true, true),
        (ToolFilter::None, false, false),
        (ToolFilter::Only(vec!["read".to_owned()]), true, false),
        (ToolFilter::Only(vec!["web_search".to_owned()]), false, true),
        (ToolFilter::Except(vec!["read".to_owned()]), false, true),
        (ToolFilter::Except(vec!["web_search".to_owned()]), true, false),
    ] {
        let sources = UrlSources { client_tools: filter.clone(), ..UrlSources::default() };
        assert_eq!(is_named(&client, &sources, url), of_client, "{filter:?}");
        assert!(is_named(&server, &sources, url), "{filter:?}");
        let sources = UrlSources { server_tools: filter.clone(), ..UrlSources::default() };
        assert_eq!(is_named(&server, &sources, url), of_server, "{filter:?}");
        assert!(is_named(&client, &sources, url), "{filter:?}");
    }
}

#[test]
fn the_time_is_linear_in_a_text_that_repeats_the_host() {
    let url = format!("https://a.a/{}", "a".repeat(200));
    for part in ["a.a/", "https://a.a/", "a.a.a", "://", "a.a/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"] {
        let text = part.repeat((1 << 20) / part.len());
        assert!(!is_in(&text, &url), "{part}");
    }
}

proptest! {
    #[test]
    fn an_address_between_blanks_is_always_found(
        before in "\\PC{0,20}", path in "[a-zA-Z0-9/._~-]{0,20}", after in "\\PC{0,20}",
    ) {
        let url = format!("https://a.example/{path}");
        let named = format!("{before} {url} {after}");
        prop_assert!(is_in(&named, &url));
        let longer = format!("{before} {url}q {after}");
        let may_name = [before, after].concat().contains("a.example");
        prop_assert!(may_name || !is_in(&longer, &url));
    }

    #[test]
    fn no_text_makes_the_search_fail(text in "[a.exmpl/:?%\u{e4}htps ]{0,40}") {
        is_in(&text, "https://a.example/x");
    }
}
