//! Web searches that an upstream runs by itself, and citations of web pages.

/// Web search that the upstream ran by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostedSearch {
    /// Id of the web search, as sent to the client.
    pub id: String,
    /// Search terms of the web search.
    pub query: String,
    /// Addresses of the pages found; `None` if the search failed.
    pub found: Option<Vec<String>>,
}

impl HostedSearch {
    /// Returns the memory size of the search's texts in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let found = self.found.iter().flatten().map(String::len).sum::<usize>();
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
