//! Marks of the model, which become citations of found pages for the client, and marks again for
//! the upstream.

use super::*;

const A: (&str, &str, &str) = ("https://a.example/x", "A", "Alpha is 1. Beta.");
const B: (&str, &str, &str) = ("https://b.example/", "B", "");

/// A search that finds A and B, and then this text of the model.
fn saying(text: &str) -> Session {
    let turns = [turn("", &[("web_search", r#"{"query":"alpha"}"#)]), turn(text, &[])];
    Session::new(&turns, &[found(&[A, B])])
}

/// The texts of the answer behind the result, each with the titles of its citations.
fn texts(got: &session::Outcome) -> Vec<(&str, Vec<&str>)> {
    let blocks = got.message["content"].as_array().unwrap().iter();
    let texts = blocks.filter(|block| block["type"] == "text");
    texts
        .map(|block| {
            let citations = block["citations"].as_array().into_iter().flatten();
            let titles = citations.map(|it| it["title"].as_str().unwrap()).collect();
            (block["text"].as_str().unwrap(), titles)
        })
        .collect()
}

#[test]
fn a_mark_becomes_a_citation_of_the_sentence_before_it() {
    let got = saying("It is 1. [[1]] Maybe.").run();
    assert_eq!(got.kinds(), ["server_tool_use", "web_search_tool_result", "text", "text"]);
    assert_eq!(texts(&got), [("It is 1.", vec!["A"]), (" Maybe.", vec![])]);
    let citation = &got.message["content"][2]["citations"][0];
    assert_eq!(citation["type"], "web_search_result_location");
    assert_eq!(citation["url"], "https://a.example/x");
    assert_eq!(citation["cited_text"], "Alpha is 1. Beta.");
    assert_eq!(citation["encrypted_index"].as_str().unwrap().len(), 24);
    let described = &got.asked[0]["tools"][0]["function"]["description"];
    assert!(
        described.as_str().unwrap().ends_with("right after the statement it supports, as [[1]].")
    );
}

#[test]
fn runs_of_marks_cite_all_their_pages_and_unknown_numbers_stay_text() {
    let got = saying("One. [[1]][[2]]\nTwo [[9]] and `[[1]]`. Three [[2]]").run();
    let expected =
        [("One.", vec!["A", "B"]), ("\nTwo [[9]] and `[[1]]`. ", vec![]), ("Three", vec!["B"])];
    assert_eq!(texts(&got), expected);
    assert_eq!(got.message["content"][4]["citations"][0]["cited_text"], "B");
}

#[test]
fn every_split_of_the_upstreams_bytes_gives_the_same_citations() {
    let text = "It is 1. [[1]] [[2]]\n- \u{1f600} b [[2]][[7]] c";
    let whole = saying(text).once(true);
    for piece in [1, 2, 3, 5, 64] {
        let cut = Session { piece, ..saying(text) }.once(true);
        assert_eq!(cut.message, whole.message, "pieces of {piece} bytes");
        assert_eq!(cut.asked, whole.asked);
    }
}

#[test]
fn the_marks_come_back_for_the_upstream() {
    let first = saying("It is 1.[[1]] [[2]] Maybe. [[2]]\nOr not.").run();
    let messages = json!([{"role": "user", "content": "Q"},
        {"role": "assistant", "content": first.message["content"]},
        {"role": "user", "content": "Sure?"}]);
    let next =
        Session::new(&[turn("Yes. [[1]]", &[])], &[]).with("messages", messages.clone()).run();
    let sent = next.asked[0]["messages"].as_array().unwrap();
    assert_eq!(sent[3]["content"], "It is 1. [[1]][[2]] Maybe. [[2]]\nOr not.");
    assert_eq!(texts(&next), [("Yes.", vec!["A"])], "pages of earlier answers can be cited");
    let untooled = Session::new(&[turn("Yes.", &[])], &[])
        .with("messages", messages)
        .with("tools", json!([{"name": "run", "input_schema": {"type": "object"}}]))
        .run();
    let told = untooled.asked[0]["messages"][1]["content"].as_str().unwrap();
    assert!(told.contains("It is 1. Maybe.") && !told.contains("[["), "{told}");
}

#[test]
fn later_rounds_and_later_requests_are_the_same_conversation() {
    let call = |query| [("web_search", query)];
    let turns = [
        turn("", &call(r#"{"query":"one"}"#)),
        turn("It is 1. [[1]] More.", &call(r#"{"query":"two"}"#)),
        turn("It is 2. [[2]][[1]]", &[]),
    ];
    let searches = [found(&[A]), found(&[("https://c.example/", "C", "Gamma.")])];
    let got = Session::new(&turns, &searches).run();
    assert_eq!(
        texts(&got),
        [("It is 1.", vec!["A"]), (" More.", vec![]), ("It is 2.", vec!["C", "A"])]
    );
    let last = got.asked[2]["messages"].as_array().unwrap();
    assert_eq!(last[3]["content"], "It is 1. [[1]] More.");
    let messages = json!([{"role": "user", "content": "Q"},
        {"role": "assistant", "content": got.message["content"]},
        {"role": "user", "content": "Sure?"}]);
    let next = Session::new(&[turn("Yes.", &[])], &[]).with("messages", messages).run();
    let now = next.asked[0]["messages"].as_array().unwrap();
    assert_eq!(now[..last.len()], last[..]);
    assert_eq!(now[last.len()]["content"], "It is 2. [[2]][[1]]");
}

#[test]
fn citations_of_others_and_of_pages_that_are_gone_leave_no_mark() {
    let mut got = saying("It is 1. [[1]]").run();
    for index in ["", "EpwBCioIChABGAIqQA==", "not base64", "Q1JJAQAAAAIAAAAAAAAAAA=="] {
        got.message["content"][2]["citations"][0]["encrypted_index"] = index.into();
        let messages = json!([{"role": "user", "content": "Q"},
            {"role": "assistant", "content": got.message["content"]},
            {"role": "user", "content": "Sure?"}]);
        let next = Session::new(&[turn("Yes.", &[])], &[]).with("messages", messages).run();
        assert_eq!(next.asked[0]["messages"][3]["content"], "It is 1.", "{index}");
    }
}

#[test]
fn without_citations_marks_are_text_and_nobody_asks_for_them() {
    let mut session = saying("It is 1. [[1]] Maybe.");
    session.config = session::config(r#", "citations": "off""#);
    let got = session.run();
    assert_eq!(texts(&got), [("It is 1. [[1]] Maybe.", vec![])]);
    let described = got.asked[0]["tools"][0]["function"]["description"].as_str().unwrap();
    assert!(described.ends_with("address and text."), "{described}");
}

#[test]
fn citations_of_fetched_pages_are_not_made_and_a_warning_says_so() {
    let call = r#"{"url":"https://a.example/x"}"#;
    let page = Search::Gives(200, "<p>Alpha".to_owned());
    let mut session =
        Session::new(&[turn("", &[("web_fetch", call)]), turn("1 [[1]]", &[])], &[page])
            .with("messages", json!([{"role": "user", "content": "Read https://a.example/x"}]))
            .with(
                "tools",
                json!([{"type": "web_fetch_20250910", "name": "web_fetch",
            "citations": {"enabled": true}}]),
            );
    session.config = session::config(r#", "web_fetch": {}"#);
    let got = session.run();
    assert_eq!(texts(&got), [("1 [[1]]", vec![])]);
    let document = &got.message["content"][1]["content"]["content"];
    assert_eq!(document["citations"], json!({"enabled": true}));
    let warned = got.report.warnings.header().unwrap();
    assert!(warned.contains("citations_not_made"), "{warned}");
}
