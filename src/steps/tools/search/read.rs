//! Pages in the answer of a search service.

use std::borrow::Cow;

use super::domains::PagePlace;
use super::services::{Places, ServiceRow};
use super::snippet::{lines, one_line, text_of};
use crate::config::WebSearchService;
use crate::json::{self, Reader, ValueKind};
use crate::model::search::{FoundPage, SearchFailure, SearchTool};
use crate::text::words;

/// Maximum number of results of an answer that are looked at.
const RESULTS_READ_MAX: usize = 1000;

/// Maximum length of a title, in bytes.
pub(super) const TITLE_BYTES_MAX: usize = 500;

/// Maximum length of a page's age, in bytes.
const AGE_BYTES_MAX: usize = 100;

/// Reads the answer of the search service. No results at all are an empty list.
///
/// # Errors
/// The search service refused the request, failed, or answered in another form.
pub(crate) fn read(
    service: &WebSearchService,
    tool: &SearchTool,
    status: u16,
    body: &[u8],
) -> Result<Vec<FoundPage>, SearchFailure> {
    match status {
        200..=299 => {}
        413 => return Err(SearchFailure::RequestTooLarge),
        429 => return Err(SearchFailure::TooManyRequests),
        _ => return Err(SearchFailure::Unavailable),
    }
    let row = ServiceRow::of(service).ok_or(SearchFailure::Unavailable)?;
    let body = words::lossy(body);
    let list = results(words::bare(&body), &row.places).ok_or(SearchFailure::Unavailable)?;
    let results = json::elements(list).filter_map(|result| {
        let url = member_at(result, row.places.url).and_then(json::string)?;
        Some((url.decode(), result))
    });
    Ok(permitted(results, service, tool, |url, result| {
        page(url, result, &row.places, service.snippet_bytes_max)
    }))
}

/// Returns the pages of results, each an address and JSON text. Results that the lists of the tool
/// do not permit, and addresses that come again, are left out.
pub(super) fn permitted<'r>(
    results: impl Iterator<Item = (Cow<'r, str>, &'r str)>,
    service: &WebSearchService,
    tool: &SearchTool,
    page: impl Fn(&str, &str) -> FoundPage,
) -> Vec<FoundPage> {
    let results_max = usize::try_from(service.results_max).unwrap_or(usize::MAX);
    let mut pages: Vec<FoundPage> = Vec::new();
    for (url, result) in results.take(RESULTS_READ_MAX) {
        if pages.len() >= results_max {
            break;
        }
        let url = url.trim();
        let is_permitted = PagePlace::of(url).is_some_and(|place| place.is_permitted(tool));
        if is_permitted && !pages.iter().any(|page| page.url == url) {
            pages.push(page(url, result));
        }
    }
    pages
}

/// Returns the list of results in an answer, as JSON text; `None` if the answer is none.
fn results<'b>(body: &'b str, places: &Places<'_>) -> Option<&'b str> {
    if !Reader::of(body).is_whole() {
        return None;
    }
    let list = member_at(body, places.results).filter(|list| *list != "null");
    let Some(list) = list else {
        let is_answer = Reader::of(body).is_object() && json::member(body, "error").is_none();
        return (places.lacks_empty_list && is_answer).then_some("[]");
    };
    if Reader::of(list).kind().ok()? != ValueKind::Array {
        return None;
    }
    let has_elements = |list| json::elements(list).next().is_some();
    let failed = Some(places.failed_engines).filter(|place| !place.is_empty());
    let failed = failed.and_then(|place| member_at(body, place)).is_some_and(has_elements);
    (has_elements(list) || !failed).then_some(list)
}

/// Returns the JSON text of the value at a path of member names joined with dots.
fn member_at<'j>(value: &'j str, path: &str) -> Option<&'j str> {
    let mut names = path.split('.').filter(|name| !name.is_empty());
    names.try_fold(value, json::member)
}

fn page(url: &str, result: &str, places: &Places<'_>, snippet_bytes_max: usize) -> FoundPage {
    let text_at = |path: &&str| match *path {
        "" => Cow::default(),
        path => {
            let text = member_at(result, path).map(text_of).unwrap_or_default();
            if places.marks_words { unmarked(text) } else { text }
        }
    };
    let has_text = |text: &Cow<'_, str>| !text.trim().is_empty();
    let first = |paths: &[&str; 2]| paths.iter().map(text_at).find(has_text);
    let title = one_line(&text_at(&places.title), TITLE_BYTES_MAX);
    let text = match places.keeps_all_texts {
        true => {
            let texts = places.texts.iter().map(text_at).filter(has_text);
            texts.collect::<Vec<_>>().join("\n")
        }
        false => first(&places.texts).unwrap_or_default().into_owned(),
    };
    FoundPage {
        url: url.to_owned(),
        title: if title.is_empty() { url.to_owned() } else { title },
        text: lines(&text, snippet_bytes_max),
        age: first(&places.ages).map(|age| one_line(&age, AGE_BYTES_MAX)),
    }
}

/// Returns a text without the tags around found words.
fn unmarked(text: Cow<'_, str>) -> Cow<'_, str> {
    match words::has(&text, "strong>") {
        true => text.replace("<strong>", "").replace("</strong>", "").into(),
        false => text,
    }
}
