//! Tests of `mod.rs`.

use super::*;
use crate::ids::Ids;
use crate::model::event::ServerResult;
use crate::protocols;

fn page(at: u32, text: &str) -> FoundPage {
    let (url, title) = (format!("https://a.example/{at}"), format!("Page {at}"));
    FoundPage { url, title, text: text.to_owned(), age: None }
}

fn writer(pages: &[FoundPage]) -> CitingWriter {
    let inner = protocols::MESSAGES.writer(false, Ids::new(7));
    let mut writer = CitingWriter::new(inner, NumberedPages::default());
    let output = ServerOutput::Pages(pages);
    if !pages.is_empty() {
        let result = ServerResult { id: "srvtoolu_1", output, is_counted: true };
        writer.write(Event::ServerResult(result), &mut Vec::new());
        writer.take_blocks();
    }
    writer
}

/// The blocks for a text of these pieces, which are escaped.
fn blocks(pages: &[FoundPage], pieces: &[&str]) -> serde_json::Value {
    let mut writer = writer(pages);
    writer.write(Event::TextBegins, &mut Vec::new());
    for raw in pieces {
        writer.write(Event::Text(raw), &mut Vec::new());
    }
    writer.write(Event::BlockEnds, &mut Vec::new());
    let blocks = String::from_utf8(writer.take_blocks()).unwrap();
    serde_json::from_str(&format!("[{blocks}]")).unwrap()
}

#[test]
fn marks_become_citations_in_blocks_of_their_own() {
    let pages = [page(1, "Alpha is 1."), page(2, "")];
    let found = blocks(&pages, &["Hi. It \\\"is\\\" 1.\\u0020[", "[1]][[2]] May", "be.\\n"]);
    let texts: Vec<&str> =
        found.as_array().unwrap().iter().map(|it| it["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["Hi. ", "It \"is\" 1.", " Maybe.\n"]);
    let cited = &found[1]["citations"];
    assert_eq!(cited[0]["type"], "web_search_result_location");
    assert_eq!(
        (&cited[0]["url"], &cited[0]["title"]),
        (&"https://a.example/1".into(), &"Page 1".into())
    );
    assert_eq!(cited[0]["cited_text"], "Alpha is 1.");
    assert_eq!(cited[1]["cited_text"], "Page 2", "a page without a text is cited by its title");
    assert_eq!((&found[0]["citations"], &found[2]["citations"]), (&().into(), &().into()));
}

#[test]
fn a_cited_text_has_at_most_150_characters() {
    let found = blocks(&[page(1, &"é".repeat(500))], &["A [[1]]"]);
    assert_eq!(found[0]["citations"][0]["cited_text"], "é".repeat(150));
}

#[test]
fn white_space_after_a_citation_is_no_block() {
    let pages = [page(1, "Alpha")];
    assert_eq!(blocks(&pages, &["A [[1]]\\n\\n"]).as_array().unwrap().len(), 1);
    assert_eq!(blocks(&pages, &[""]).as_array().unwrap().len(), 1, "an empty text stays a block");
}

#[test]
fn a_text_is_passed_on_at_once_as_long_as_no_page_is_known() {
    let mut writer = writer(&[]);
    writer.write(Event::TextBegins, &mut Vec::new());
    writer.write(Event::Text("a [[1]] \\u00e9"), &mut Vec::new());
    writer.write(Event::BlockEnds, &mut Vec::new());
    let text = String::from_utf8(writer.take_blocks()).unwrap();
    assert_eq!(text, r#"{"type":"text","text":"a [[1]] \u00e9"}"#);
}

#[test]
fn a_round_that_failed_leaves_no_text_behind() {
    let mut writer = writer(&[page(1, "Alpha")]);
    writer.begin_round();
    writer.write(Event::TextBegins, &mut Vec::new());
    writer.write(Event::Text("half a sentence [[1"), &mut Vec::new());
    assert!(writer.held_bytes() > 0);
    writer.take_back();
    writer.write(Event::TextBegins, &mut Vec::new());
    writer.write(Event::Text("B [[1]]"), &mut Vec::new());
    writer.write(Event::BlockEnds, &mut Vec::new());
    let text = String::from_utf8(writer.take_blocks()).unwrap();
    assert!(text.starts_with(r#"{"type":"text","text":"B","citations":"#), "{text}");
}
