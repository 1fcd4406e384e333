//! Pages of web searches, numbered over the conversation, and the marks with which the model cites
//! them.
//!
//! A mark `[[1]]` of the model becomes a citation for the client. When the client sends the
//! citation back, the mark stands behind the text again. So the upstream sees the words of its
//! model.

use super::server_tools::count_pages;
use crate::carry::sealed;
use crate::json;
use crate::model::search::{CITED_LETTERS, NumberedPages};
use crate::model::{ServerResultKind, ServerToolResult, Text};

/// Maximum number of marks behind one text.
const MARKS_MAX: usize = 32;

/// Numbers the pages in the result of a web search.
pub(super) fn number(result: &mut ServerToolResult<'_>, pages: &mut NumberedPages) {
    // The content of a cleared result has no pages any more, but their number is kept.
    let cleared = result.first_page;
    result.first_page = usize::try_from(pages.count()).unwrap_or(usize::MAX).saturating_add(1);
    if result.kind != ServerResultKind::WebSearch {
        return;
    }
    if count_pages(result.content) == 0 {
        return pages.skip(cleared);
    }
    for page in json::elements(result.content) {
        let text = |name| json::member(page, name).and_then(json::string);
        match text("url") {
            None => pages.skip(1),
            Some(url) => {
                let title = text("title").unwrap_or(url).decode().into_owned();
                let sealed = text("encrypted_content").unwrap_or_default();
                let beginning = sealed::beginning(&sealed.decode(), CITED_LETTERS);
                pages.add(url.decode().into_owned(), title, beginning);
                pages.seal_newest(sealed::seal_index);
            }
        }
    }
}

/// Sets the marks of a text from its citations. Citations of pages that the conversation does not
/// have, or has under another number, have no mark.
pub(super) fn mark(text: &mut Text<'_>, pages: &NumberedPages) {
    let Some(citations) = &mut text.citations else { return };
    for citation in json::elements(citations.json) {
        let index = json::member(citation, "encrypted_index").and_then(json::string);
        let index = index.unwrap_or_default().decode();
        let Some(number) = sealed::open_index(&index) else { continue };
        let is_new = !citations.marks.contains(&number);
        if is_new && citations.marks.len() < MARKS_MAX && pages.has_index(number, &index) {
            citations.marks.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Str;
    use crate::model::block::TextCitations;

    fn result(content: &str) -> ServerToolResult<'_> {
        let (id, kind) = (Str::plain("srvtoolu_1"), ServerResultKind::WebSearch);
        ServerToolResult { id, kind, content, is_error: false, first_page: 0 }
    }

    fn marks(pages: &NumberedPages, indices: &[&str]) -> Vec<u32> {
        let citation = |index: &&str| format!(r#"{{"encrypted_index":"{index}"}}"#);
        let json: Vec<String> = indices.iter().map(citation).collect();
        let json = format!("[{}]", json.join(","));
        let citations = Some(Box::new(TextCitations { json: &json, marks: Vec::new() }));
        let mut text = Text { text: Str::plain("It is 1."), cached: None, citations };
        mark(&mut text, pages);
        text.citations.unwrap().marks
    }

    #[test]
    fn pages_are_numbered_over_the_conversation_with_those_that_were_cleared() {
        let mut pages = NumberedPages::default();
        let mut first = result(r#"[{"url":"https://a.example/"},{},{"url":"https://c.example/"}]"#);
        number(&mut first, &mut pages);
        let mut cleared = ServerToolResult { first_page: 4, ..result("\"cleared\"") };
        number(&mut cleared, &mut pages);
        let mut last = result(r#"[{"url":"https://d.example/","title":"D"}]"#);
        number(&mut last, &mut pages);
        assert_eq!((first.first_page, cleared.first_page, last.first_page), (1, 4, 8));
        assert!(pages.has_index(8, &sealed::seal_index(8, "https://d.example/")));
        assert_eq!((pages.has(2), pages.has(5), pages.count()), (false, false, 8));
    }

    #[test]
    fn a_page_with_an_address_or_a_title_beyond_all_measure_costs_no_memory() {
        let mut pages = NumberedPages::default();
        let url = format!("https://a.example/{}", "x".repeat(1 << 20));
        number(&mut result(&format!(r#"[{{"url":"{url}"}}]"#)), &mut pages);
        let title = "é".repeat(1 << 20);
        let long = format!(r#"[{{"url":"https://b.example/","title":"{title}"}}]"#);
        number(&mut result(&long), &mut pages);
        assert_eq!((pages.has(1), pages.has(2), pages.count()), (false, true, 2));
        assert!(pages.held_bytes() < 1000);
    }

    #[test]
    fn citations_have_their_marks_once_and_only_of_pages_that_are_there() {
        let mut pages = NumberedPages::default();
        number(
            &mut result(r#"[{"url":"https://a.example/"},{"url":"https://b.example/"}]"#),
            &mut pages,
        );
        let one = sealed::seal_index(1, "https://a.example/");
        let two = sealed::seal_index(2, "https://b.example/");
        assert_eq!(marks(&pages, &[&two, &one, &two]), [2, 1]);
        let renumbered = sealed::seal_index(1, "https://b.example/");
        let unknown = sealed::seal_index(3, "https://c.example/");
        assert!(marks(&pages, &[&renumbered, &unknown, "", "EpwBCioIChABGAIqQA=="]).is_empty());
    }
}
