//! Tool `web_fetch` of a request, whose calls Creole runs, and the pages that it fetches.

/// Tool `web_fetch` of a request, whose calls Creole runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchTool {
    /// Maximum number of calls for one request.
    pub max_uses: Option<u64>,
    /// Hosts in lower case from which pages may be fetched; if empty, all hosts.
    pub allowed_domains: Vec<String>,
    /// Hosts in lower case from which no page may be fetched.
    pub blocked_domains: Vec<String>,
    /// Maximum number of tokens of a page's text.
    pub max_content_tokens: Option<u64>,
    /// True if the client wants citations of the pages.
    pub citations: bool,
    /// Parts of the conversation whose addresses may be fetched.
    pub url_sources: UrlSources,
}

/// Parts of a conversation whose addresses may be fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UrlSources {
    /// True if addresses in the user's texts may not be fetched.
    pub is_user_excluded: bool,
    /// Tools of the client whose results may name addresses.
    pub client_tools: ToolFilter,
    /// Server tools whose results may name addresses.
    pub server_tools: ToolFilter,
}

/// Selection of tools by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolFilter {
    /// Selection of every tool.
    #[default]
    All,
    /// Selection of no tool.
    None,
    /// Selection of the tools with these names.
    Only(Vec<String>),
    /// Selection of every tool without one of these names.
    Except(Vec<String>),
}

impl ToolFilter {
    /// Returns true if the filter selects the tool with this name; `None` stands for a tool whose
    /// name is unknown.
    pub(crate) fn selects(&self, name: Option<&str>) -> bool {
        let is_in = |names: &[String]| names.iter().any(|known| Some(known.as_str()) == name);
        match self {
            Self::All => true,
            Self::None => false,
            Self::Only(names) => is_in(names),
            Self::Except(names) => name.is_some() && !is_in(names),
        }
    }
}

/// Page that was fetched for a model.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FetchedPage {
    /// Address of the page, after all redirections.
    pub url: String,
    /// Title of the page, in one line.
    pub title: Option<String>,
    /// Text of the page.
    pub text: String,
    /// Time at which the page was fetched, as in RFC 3339.
    pub retrieved_at: Option<String>,
    /// True if the client wants citations of the page.
    pub is_to_be_cited: bool,
}

impl FetchedPage {
    /// Returns the memory size of the page's texts in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let rare = [self.title.as_ref(), self.retrieved_at.as_ref()];
        let texts = [&self.url, &self.text].into_iter().chain(rare.into_iter().flatten());
        texts.map(String::len).fold(0, usize::saturating_add)
    }
}

// The address and the content may be secret.
impl std::fmt::Debug for FetchedPage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FetchedPage({} bytes)", self.held_bytes())
    }
}

/// Reason why a page was not fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchFailure {
    /// Input of the model that has no `url`, or not an `http` or `https` URL.
    InvalidToolInput,
    /// Address above the maximum length.
    UrlTooLong,
    /// Address that is not public, or that a list of domains excludes.
    UrlNotAllowed,
    /// Address that the conversation does not name.
    UrlNotInPriorContext,
    /// Server that did not answer, or answered with an error.
    UrlNotAccessible,
    /// Page that is no text.
    UnsupportedContentType,
    /// Call above a limit of Creole or of the page's server.
    TooManyRequests,
    /// Call above the tool's `max_uses`.
    MaxUsesExceeded,
    /// Page that could not be fetched for another reason.
    Unavailable,
    /// Page above the maximum size.
    ContentTooLarge,
}

impl FetchFailure {
    /// Returns the error code of the Messages API.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidToolInput => "invalid_tool_input",
            Self::UrlTooLong => "url_too_long",
            Self::UrlNotAllowed => "url_not_allowed",
            Self::UrlNotInPriorContext => "url_not_in_prior_context",
            Self::UrlNotAccessible => "url_not_accessible",
            Self::UnsupportedContentType => "unsupported_content_type",
            Self::TooManyRequests => "too_many_requests",
            Self::MaxUsesExceeded => "max_uses_exceeded",
            Self::Unavailable => "unavailable",
            Self::ContentTooLarge => "content_too_large",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_selects_tools_by_name() {
        let names = || vec!["a".to_owned(), "b".to_owned()];
        for (filter, selected) in [
            (ToolFilter::All, [true, true, true]),
            (ToolFilter::None, [false, false, false]),
            (ToolFilter::Only(names()), [true, false, false]),
            (ToolFilter::Except(names()), [false, true, false]),
        ] {
            let found = [Some("a"), Some("c"), None].map(|name| filter.selects(name));
            assert_eq!(found, selected, "{filter:?}");
        }
    }

    #[test]
    fn a_page_shows_nothing_of_its_content_in_logs() {
        let page = FetchedPage { url: "https://a.example/secret".to_owned(), ..Default::default() };
        assert_eq!(format!("{page:?}"), "FetchedPage(24 bytes)");
    }
}
