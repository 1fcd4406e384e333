//! Searches of the web that an upstream runs by itself, and where its text comes from.

/// A search of the web.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The client's id of the search.
    pub id: String,
    /// What was searched for.
    pub query: String,
    /// The addresses of what was found; nothing where the search failed.
    pub found: Option<Vec<String>>,
}

impl Search {
    /// Bytes that it takes in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        let found = self.found.iter().flatten().map(String::len).sum::<usize>();
        found.saturating_add(self.query.len()).saturating_add(self.id.len())
    }
}

/// Where a text comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Citation {
    /// The address.
    pub url: String,
    /// The title of the page.
    pub title: String,
    /// The beginning of the words that come from there.
    pub cited_text: String,
}

impl Citation {
    /// Bytes that it takes in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        let texts = [&self.url, &self.title, &self.cited_text];
        texts.into_iter().map(String::len).sum()
    }
}
