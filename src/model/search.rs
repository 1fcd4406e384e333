//! Web searches that an upstream runs by itself, and citations of web pages.

/// Web search that the upstream ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// Id of the search, as the client gets it.
    pub id: String,
    /// Words that were searched for.
    pub query: String,
    /// Addresses of the pages found; `None` where the search failed.
    pub found: Option<Vec<String>>,
}

impl Search {
    /// Returns the number of bytes of the search's texts in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        let found = self.found.iter().flatten().map(String::len).sum::<usize>();
        found.saturating_add(self.query.len()).saturating_add(self.id.len())
    }
}

/// Source of a text on the web.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Citation {
    /// Address of the page.
    pub url: String,
    /// Title of the page.
    pub title: String,
    /// Beginning of the words that come from the page.
    pub cited_text: String,
}

impl Citation {
    /// Returns the number of bytes of the citation's texts in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        let texts = [&self.url, &self.title, &self.cited_text];
        texts.into_iter().map(String::len).sum()
    }
}
