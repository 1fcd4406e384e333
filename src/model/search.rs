//! Web searches that an upstream runs by itself or that Creole runs, the pages that they find, and
//! citations of web pages.

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

/// Citation: a web page that a part of the answer's text comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Citation {
    /// Address of the cited web page.
    pub url: String,
    /// Title of the cited web page.
    pub title: String,
    /// Beginning of the part of the answer that comes from the cited web page.
    pub cited_text: String,
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
