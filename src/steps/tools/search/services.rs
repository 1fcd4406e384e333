//! Kinds of search services: a row for each, with its requests and the places of results in its
//! answers.

use crate::config::{SearchKind, SearchMethod, WebSearchService};

/// Search service of one kind.
pub(super) struct ServiceRow<'s> {
    /// Path of searches, behind the base URL.
    pub(super) path: &'s str,
    pub(super) method: SearchMethod,
    /// Name of the header with the key. In `authorization` the key has the scheme `Bearer`.
    pub(super) key_header: &'static str,
    /// Members of the query of a `GET`, or of the JSON body of a `POST`.
    pub(super) members: &'static [(&'static str, Part)],
    /// Places of the results in an answer.
    pub(super) places: Places<'s>,
}

/// Value of a member of a request.
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// Fixed text of a member.
    Text(&'static str),
    /// Fixed JSON of a member in a body.
    Json(&'static str),
    /// Search terms alone, for a service that takes lists of domains.
    Query,
    /// Search terms, followed by operators such as `site:` for the client's domains.
    QueryWithSites,
    /// Number of results, up to the maximum of the service.
    Count(u32),
    /// Country of the user in upper case; no member if it is not known.
    Country,
    /// Country of the user in lower case; no member if it is not known.
    LowerCountry,
    /// List of the domains that results may come from; no member if it is empty.
    Allowed,
    /// List of the domains that no result may come from; no member if it is empty.
    Blocked,
}

/// Places of the results in an answer, each a path of member names joined with dots; empty if an
/// answer has no such member.
#[derive(Clone, Copy)]
pub(super) struct Places<'s> {
    /// Place of the list of results in the answer.
    pub(super) results: &'s str,
    /// True if an answer without the list means that nothing was found.
    pub(super) lacks_empty_list: bool,
    /// Place of a list of failed search engines, which tell an outage from a search without
    /// results.
    pub(super) failed_engines: &'s str,
    /// Place of the address in a result.
    pub(super) url: &'s str,
    /// Place of the title in a result.
    pub(super) title: &'s str,
    /// Places of texts in a result, each a string or a list of strings.
    pub(super) texts: [&'s str; 2],
    /// True if all texts are kept; false if only the first that is present is kept.
    pub(super) keeps_all_texts: bool,
    /// Places of the age in a result, of which the first that is present is kept.
    pub(super) ages: [&'s str; 2],
    /// True if titles and texts have the found words between `<strong>` and `</strong>`.
    pub(super) marks_words: bool,
}

const RESULTS: Places<'static> = Places {
    results: "results",
    lacks_empty_list: false,
    failed_engines: "",
    url: "url",
    title: "title",
    texts: ["content", ""],
    keeps_all_texts: false,
    ages: ["", ""],
    marks_words: false,
};

const SEARXNG: ServiceRow<'static> = ServiceRow {
    path: "/search",
    method: SearchMethod::Get,
    key_header: "authorization",
    members: &[("q", Part::QueryWithSites), ("format", Part::Text("json"))],
    places: Places {
        failed_engines: "unresponsive_engines",
        ages: ["publishedDate", ""],
        ..RESULTS
    },
};

const BRAVE: ServiceRow<'static> = ServiceRow {
    path: "/res/v1/web/search",
    method: SearchMethod::Get,
    key_header: "x-subscription-token",
    members: &[("q", Part::QueryWithSites), ("count", Part::Count(20)), ("country", Part::Country)],
    places: Places {
        results: "web.results",
        lacks_empty_list: true,
        texts: ["description", "extra_snippets"],
        keeps_all_texts: true,
        ages: ["page_age", "age"],
        marks_words: true,
        ..RESULTS
    },
};

const TAVILY: ServiceRow<'static> = ServiceRow {
    path: "/search",
    method: SearchMethod::Post,
    key_header: "authorization",
    members: &[
        ("query", Part::Query),
        ("max_results", Part::Count(20)),
        ("include_domains", Part::Allowed),
        ("exclude_domains", Part::Blocked),
    ],
    places: Places { ages: ["published_date", ""], ..RESULTS },
};

const EXA: ServiceRow<'static> = ServiceRow {
    path: "/search",
    method: SearchMethod::Post,
    key_header: "x-api-key",
    members: &[
        ("query", Part::Query),
        ("numResults", Part::Count(100)),
        ("includeDomains", Part::Allowed),
        ("excludeDomains", Part::Blocked),
        ("userLocation", Part::Country),
        ("contents", Part::Json(r#"{"highlights":true}"#)),
    ],
    places: Places { texts: ["highlights", "text"], ages: ["publishedDate", ""], ..RESULTS },
};

const SERPER: ServiceRow<'static> = ServiceRow {
    path: "/search",
    method: SearchMethod::Post,
    key_header: "x-api-key",
    members: &[("q", Part::QueryWithSites), ("num", Part::Count(100)), ("gl", Part::LowerCountry)],
    places: Places {
        results: "organic",
        url: "link",
        texts: ["snippet", ""],
        ages: ["date", ""],
        ..RESULTS
    },
};

impl<'s> ServiceRow<'s> {
    /// Returns the row for the kind of a search service; `None` if the service is switched off, or
    /// is a tool of an MCP server.
    pub(super) fn of(configured: &'s WebSearchService) -> Option<Self> {
        Some(match configured.kind {
            SearchKind::Off | SearchKind::Mcp => return None,
            SearchKind::Searxng => SEARXNG,
            SearchKind::Brave => BRAVE,
            SearchKind::Tavily => TAVILY,
            SearchKind::Exa => EXA,
            SearchKind::Serper => SERPER,
            SearchKind::Json => {
                let request = configured.request.as_ref()?;
                let response = configured.response.as_ref()?;
                Self {
                    path: &request.path,
                    method: request.method,
                    key_header: "authorization",
                    // The members are those of the configuration.
                    members: &[],
                    places: Places {
                        results: &response.results,
                        url: &response.url,
                        title: &response.title,
                        texts: [&response.content, ""],
                        ages: [&response.age, ""],
                        ..RESULTS
                    },
                }
            }
        })
    }
}
