//! Web searches that an upstream runs by itself or that Creole runs, the pages that they find, and
//! citations of web pages.

use crate::text::words;

/// Web search that the upstream ran by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostedSearch {
    /// Id of the web search, as sent to the client.
    pub id: String,
    /// Search terms of the web search.
    pub query: String,
    /// Pages that the search found; `None` if the search failed.
    pub found: Option<Vec<FoundPage>>,
}

impl HostedSearch {
    /// Returns the memory size of the search's texts in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let found = self.found.iter().flatten().map(FoundPage::held_bytes).sum::<usize>();
        found.saturating_add(self.query.len()).saturating_add(self.id.len())
    }
}

/// Maximum number of characters of a cited text, as in Anthropic's own web search.
pub(crate) const CITED_LETTERS: usize = 150;

/// Citation: a web page that a part of the answer's text comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Citation {
    /// Address of the cited web page.
    pub url: String,
    /// Title of the cited web page.
    pub title: String,
    /// Beginning of the part of the answer that comes from the cited web page.
    pub cited_text: String,
    /// Number of the cited page in the conversation, if Creole ran the web search.
    pub number: Option<u32>,
}

impl Citation {
    /// Returns the memory size of the citation's texts in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let texts = [&self.url, &self.title, &self.cited_text];
        texts.into_iter().map(String::len).sum()
    }
}

/// Tool `web_search` of a request, whose searches Creole runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchTool {
    /// Hosts in lower case that results may come from, each with an optional path; if empty, all
    /// hosts.
    pub allowed_domains: Vec<String>,
    /// Hosts in lower case that no result may come from, each with an optional path.
    pub blocked_domains: Vec<String>,
    /// Maximum number of searches for one request.
    pub max_uses: Option<u64>,
    /// Place of the user, for results from the neighbourhood.
    pub location: Option<UserLocation>,
    /// True if the model is asked to mark what it cites, as `[[1]]`.
    pub asks_for_marks: bool,
}

/// Place of a user, as far as the client tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserLocation {
    /// Name of the user's city.
    pub city: Option<String>,
    /// Name of the user's region.
    pub region: Option<String>,
    /// Country of the user, as two letters (`DE`).
    pub country: Option<String>,
    /// Time zone of the user (`Europe/Berlin`).
    pub timezone: Option<String>,
}

impl UserLocation {
    /// Returns the country as two upper-case letters; `None` if the client sent something else.
    pub(crate) fn country_code(&self) -> Option<String> {
        let country = self.country.as_deref()?;
        let is_code = country.len() == 2 && country.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_code.then(|| country.to_ascii_uppercase())
    }
}

/// Web page that a search has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundPage {
    /// Address of the found page.
    pub url: String,
    /// Title of the found page, in one line; the address if the page has no title.
    pub title: String,
    /// Excerpts of the found page.
    pub text: String,
    /// Age or date of the found page, in the words of the search service.
    pub age: Option<String>,
}

impl FoundPage {
    /// Returns the page of which only the address is known.
    pub(crate) fn at(url: String) -> Self {
        Self { title: url.clone(), url, ..Self::default() }
    }

    /// Returns the memory size of the found page's texts in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let age = self.age.as_ref().map_or(0, String::len);
        let texts = [&self.url, &self.title, &self.text];
        texts.into_iter().map(String::len).fold(age, usize::saturating_add)
    }
}

/// Reason why a web search has no results to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchFailure {
    /// Input of the model that has no `query`.
    InvalidToolInput,
    /// Search service that gave no results, for any other reason.
    Unavailable,
    /// Search above the tool's `max_uses`.
    MaxUsesExceeded,
    /// Search above a limit of Creole or of the search service.
    TooManyRequests,
    /// Query above the maximum length.
    QueryTooLong,
    /// Request that is too large for the search service.
    RequestTooLarge,
}

impl SearchFailure {
    /// Returns the error code of the Messages API.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidToolInput => "invalid_tool_input",
            Self::Unavailable => "unavailable",
            Self::MaxUsesExceeded => "max_uses_exceeded",
            Self::TooManyRequests => "too_many_requests",
            Self::QueryTooLong => "query_too_long",
            Self::RequestTooLarge => "request_too_large",
        }
    }
}

/// Maximum number of pages of a conversation that can be cited; older pages are forgotten.
const CITABLE_MAX: usize = 1024;

/// Maximum length of the address of a page that can be cited, in bytes.
const CITABLE_URL_BYTES_MAX: usize = 2048;

/// Maximum length of the title of such a page, in bytes. The rest is cut off.
const CITABLE_TITLE_BYTES_MAX: usize = 500;

/// Pages that web searches found, numbered over the whole conversation from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberedPages {
    /// Number of all pages.
    count: u32,
    /// Newest pages, in the order of their numbers.
    citable: Vec<CitablePage>,
}

/// Page that a text can cite.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CitablePage {
    number: u32,
    url: String,
    title: String,
    /// First characters of the page's text.
    beginning: String,
    /// Sealed number with which clients name the page; empty if clients have none to send back.
    index: String,
}

impl NumberedPages {
    /// Returns the number of pages up to now.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Returns true if no page can be cited.
    pub(crate) fn is_empty(&self) -> bool {
        self.citable.is_empty()
    }

    /// Numbers the next pages, of which nothing is known.
    pub(crate) fn skip(&mut self, pages: usize) {
        self.count = self.count.saturating_add(u32::try_from(pages).unwrap_or(u32::MAX));
    }

    /// Numbers the next page. A page with a very long address cannot be cited.
    pub(crate) fn add(&mut self, url: String, mut title: String, beginning: String) {
        self.skip(1);
        if url.len() > CITABLE_URL_BYTES_MAX {
            return;
        }
        title.truncate(words::beginning(&title, CITABLE_TITLE_BYTES_MAX).len());
        // Half of the pages are removed at once, so that each page is moved once.
        if self.citable.len() >= CITABLE_MAX.saturating_mul(2) {
            self.citable.drain(..CITABLE_MAX);
        }
        let (number, index) = (self.count, String::new());
        self.citable.push(CitablePage { number, url, title, beginning, index });
    }

    /// Sets the sealed number of the newest page, which `seal` makes of its number and address.
    pub(crate) fn seal_newest(&mut self, seal: impl FnOnce(u32, &str) -> String) {
        if let Some(page) = self.citable.last_mut().filter(|page| page.number == self.count) {
            page.index = seal(page.number, &page.url);
        }
    }

    /// Returns true if clients name the page of this number by this sealed number.
    pub(crate) fn has_index(&self, number: u32, index: &str) -> bool {
        self.page(number).is_some_and(|page| !index.is_empty() && page.index == index)
    }

    /// Returns true if the page of this number can be cited.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.page(number).is_some()
    }

    /// Returns the citation of the page of this number.
    pub(crate) fn citation(&self, number: u32) -> Option<Citation> {
        let page = self.page(number)?;
        let words = if page.beginning.is_empty() { &page.title } else { &page.beginning };
        Some(Citation {
            url: page.url.clone(),
            title: page.title.clone(),
            cited_text: words.chars().take(CITED_LETTERS).collect(),
            number: Some(number),
        })
    }

    fn page(&self, number: u32) -> Option<&CitablePage> {
        let at = self.citable.binary_search_by_key(&number, |page| page.number).ok()?;
        self.citable.get(at)
    }

    /// Returns the memory size of the pages' texts in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let bytes = |page: &CitablePage| {
            let texts = [&page.url, &page.title, &page.beginning, &page.index];
            texts.into_iter().map(String::len).fold(0, usize::saturating_add)
        };
        self.citable.iter().map(bytes).fold(0, usize::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_pages_can_be_cited_and_all_are_counted() {
        let mut pages = NumberedPages::default();
        pages.skip(3);
        assert!(pages.is_empty());
        for at in 0..5000 {
            pages.add(format!("https://a.example/{at}"), "T".to_owned(), String::new());
        }
        assert_eq!(pages.count(), 5003);
        assert!(!pages.has(3) && !pages.has(4) && !pages.has(5004));
        let citation = pages.citation(5003).unwrap();
        assert_eq!(
            (citation.url.as_str(), citation.number),
            ("https://a.example/4999", Some(5003))
        );
        assert_eq!(citation.cited_text, "T", "a page without a text is cited by its title");
        assert!(pages.citable.len() <= 2 * CITABLE_MAX);
        assert!(pages.has(5003 - 1000));
    }
}
