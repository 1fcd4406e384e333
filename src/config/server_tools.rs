//! Server tools that Creole runs for models: the limits of the loop, and the search service on the
//! web that is asked for `web_search`.

use std::fmt;

use super::address::{check_cluster, check_url};
use super::credentials::{Secrets, ServiceKey};
use super::document::ConfigError;
use super::mcp::{McpConnector, McpFromRequests, McpKey};
use super::{BYTES, Config, IpNetwork, MILLISECONDS, WebFetch};
use crate::json::{Error, Reader, Writer};
use crate::setting::{Bounds, Named, Setting, UnreadMembers, ValueType, keys, word_enum};
use crate::text::words;

/// Placeholder for the search terms in a request to a service of kind `json`.
pub(crate) const QUERY: &str = "{query}";

const SNIPPET_BYTES: Bounds = Bounds::Between(1, 1 << 20);

keys! {
    /// Tools of Anthropic's servers that Creole runs for models which cannot run them, and the
    /// limits of the loop that runs them.
    pub ServerTools {
        /// Search service on the web that is asked when a model calls `web_search`.
        web_search: WebSearchService = WebSearchService::default();
        /// Search for deferred tools (`tool_search_tool_regex`, `tool_search_tool_bm25`).
        tool_search: ToolSearch = ToolSearch::Auto;
        /// Pages that are fetched when a model calls `web_fetch`. Absent: no page is fetched.
        web_fetch: Option<WebFetch> = None;
        /// Networks that are not public, and that the gateway may reach all the same for pages,
        /// images and MCP servers that only requests name, such as `10.20.0.0/16`.
        private_networks: Vec<IpNetwork> = Vec::new();
        /// MCP servers whose tools Creole calls when a model calls them.
        mcp: McpConnector = McpConnector::default();
        /// Handling of an answer that calls server tools and tools of the client at once.
        mixed_turns: MixedTurns = MixedTurns::Defer;
        /// Citations of pages that `web_search` found, in texts of the model.
        citations: Citations = Citations::Marks;
        /// Most requests to the model's upstream for one answer.
        turns_max: u32 = 10, Bounds::Between(1, 50);
        /// Most calls of server tools for one answer. Further calls get the error
        /// `too_many_requests`.
        calls_max: u32 = 40, Bounds::Between(1, 1000);
        /// Time after which no further turn and no further call of a server tool begins, in
        /// milliseconds.
        duration_max_ms: u64 = 540_000, MILLISECONDS;
        /// Largest answer of a service to one call of a server tool, in bytes.
        answer_bytes_max: usize = 4 << 20, BYTES;
        /// Most bytes of all results of server tools for one answer. Further calls get the error
        /// `too_many_requests`.
        results_bytes_max: usize = 8 << 20, BYTES;
    }

    /// Search service on the web.
    pub WebSearchService {
        /// Kind of the search service, which decides on the form of requests and answers.
        kind: SearchKind = SearchKind::Off;
        /// Base URL of the search service. Empty: the vendor's. Needed for `searxng` and `json`.
        url: String = String::new();
        /// Envoy: the cluster of the search service. Needed there.
        cluster: String = String::new();
        /// Credential of the search service, an environment variable. Absent: none. Needed for
        /// `brave`, `tavily`, `exa` and `serper`.
        key: ServiceKey = ServiceKey::default();
        /// Most results of one search.
        results_max: u32 = 8, Bounds::Between(1, 50);
        /// Most bytes of text that are kept of one result.
        snippet_bytes_max: usize = 2000, SNIPPET_BYTES;
        /// Longest wait for the results of one search, in milliseconds.
        timeout_ms: u64 = 15_000, MILLISECONDS;
        /// Parameters that are added to the query of a `GET`, or to the JSON body of a `POST`, by
        /// name, such as `{"language": "de"}`.
        params: ServiceParams = ServiceParams::default();
        /// Request for a search. Only for `json`, and needed there.
        request: Option<SearchRequest> = None;
        /// Places of the results in an answer. Only for `json`, and needed there.
        response: Option<SearchResponse> = None;
        /// Tool of an MCP server that searches. Only for `mcp`, and needed there.
        mcp: Option<SearchMcpTool> = None;
        /// Handling of a request that asks for one search and nothing else, as Claude Code's
        /// `WebSearch` sends it.
        side_query: SideQuery = SideQuery::Search;
    }

    /// Tool of an MCP server that searches the web.
    pub SearchMcpTool {
        /// Name of the MCP server in `server_tools.mcp.servers`.
        server: String = String::new();
        /// Name of the tool that searches, at its MCP server.
        tool: String = String::new();
        /// Name of the tool's argument for the search terms.
        argument: String = "query".to_owned();
    }

    /// Request for a search to a service of kind `json`.
    pub SearchRequest {
        /// HTTP method of searches at a service of kind `json`. In the texts of `path`, `query` and
        /// `body`, `{query}` stands for the search terms, `{count}` for `results_max`, and
        /// `{country}` for the country of the user.
        method: SearchMethod = SearchMethod::Get;
        /// Path that is added to `url`, such as `/search`.
        path: String = String::new();
        /// Parameters of the query, by name, such as `{"q": "{query}"}`.
        query: ServiceParams = ServiceParams::default();
        /// Members of the JSON body of a `POST`, such as `{"q": "{query}", "n": 10}`.
        body: UnreadMembers = UnreadMembers::default();
    }

    /// Places of the results in an answer of a service of kind `json`. A place is the name of a
    /// member, or several joined with dots (`web.results`).
    pub SearchResponse {
        /// Place of the list of results in an answer of kind `json`: names of members, joined with
        /// dots (`web.results`). Empty: the answer itself is the list.
        results: String = "results".to_owned();
        /// Place of the address in a result.
        url: String = "url".to_owned();
        /// Place of the title in a result.
        title: String = "title".to_owned();
        /// Place of the text in a result: a string, or a list of strings.
        content: String = "content".to_owned();
        /// Place of the page's age in a result. Empty: the age is not known.
        age: String = String::new();
    }
}

word_enum! {
    /// Kind of a search service on the web.
    SearchKind {
        /// No search: `web_search` is not run.
        Off = "off",
        /// SearXNG, with `json` in its `search.formats`.
        Searxng = "searxng",
        /// Brave Search API.
        Brave = "brave",
        /// Tavily.
        Tavily = "tavily",
        /// Exa.
        Exa = "exa",
        /// Serper.
        Serper = "serper",
        /// Other service that answers with JSON, as `request` and `response` describe it.
        Json = "json",
        /// Tool of an MCP server, as `mcp` names it.
        Mcp = "mcp",
    }

    /// Handling of tools with `defer_loading` beside a tool that searches them.
    ToolSearch {
        /// The model searches them if they are more than 30, more than about 10,000 tokens, or more
        /// than the upstream takes; else it gets all of them at once.
        Auto = "auto",
        /// The model always searches them.
        Run = "run",
        /// The model gets all of them at once, and no tool that searches.
        SendAll = "send_all",
    }

    /// Handling of an answer that calls server tools and tools of the client at once.
    MixedTurns {
        /// The client runs its tools first, as with Anthropic's API. The server tools are run when
        /// its results come.
        Defer = "defer",
        /// The server tools are run at once, for clients that drop calls without a result.
        Run = "run",
    }

    /// Citations of pages that a web search found.
    Citations {
        /// The model is asked to write the number of a result behind what it supports (`[[1]]`).
        /// Clients get citations in place of these marks.
        Marks = "marks",
        /// The model is not asked for marks, and marks stay text.
        Off = "off",
    }

    /// HTTP method of a request to a search service.
    SearchMethod {
        /// `GET`
        Get = "GET",
        /// `POST`
        Post = "POST",
    }

    /// Handling of a request that asks for one search and nothing else.
    SideQuery {
        /// The search is run before the model is asked, so that a weak model cannot forget it.
        Search = "search",
        /// The search is run, and the results are the answer. No model is asked.
        Results = "results",
        /// The model is asked first, and must search.
        Model = "model",
    }
}

/// Parameters of a search service, by name: texts that are added to each request.
#[derive(Clone, Default, PartialEq)]
pub struct ServiceParams(Vec<(String, String)>);

impl ServiceParams {
    /// Returns the names and values of the parameters, in their order in the document.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns true if there is a parameter of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }
}

/// Prints the names and never the values, because a service may take its key as a parameter.
impl fmt::Debug for ServiceParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Setting for ServiceParams {
    const TYPE: ValueType = Named::<String>::TYPE;

    fn read(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Named::read(reader).map(|Named(params)| Self(params))
    }

    fn write(&self, json: &mut Writer<'_>) {
        json.begin_object().end_object();
    }
}

impl SearchKind {
    /// Returns the base URL of the vendor; empty if the operator must name a URL.
    fn vendor_url(self) -> &'static str {
        match self {
            Self::Brave => "https://api.search.brave.com",
            Self::Tavily => "https://api.tavily.com",
            Self::Exa => "https://api.exa.ai",
            Self::Serper => "https://google.serper.dev",
            Self::Off | Self::Searxng | Self::Json | Self::Mcp => "",
        }
    }

    /// Returns the parameters without which a request is no search, so that an operator cannot
    /// replace them.
    fn own_params(self) -> &'static [&'static str] {
        match self {
            Self::Off | Self::Json | Self::Mcp => &[],
            Self::Searxng => &["q", "format"],
            Self::Brave | Self::Serper => &["q"],
            Self::Tavily | Self::Exa => &["query"],
        }
    }
}

impl WebSearchService {
    /// Returns the base URL of the search service, as configured or else the vendor's.
    #[must_use]
    pub fn base_url(&self) -> &str {
        if self.url.is_empty() { self.kind.vendor_url() } else { &self.url }
    }

    /// Returns the address of the search service for people: its base URL without the query, which
    /// may have a key, or the MCP server whose tool searches (`mcp:NAME`).
    #[must_use]
    pub fn shown(&self) -> String {
        match &self.mcp {
            Some(own) if self.kind == SearchKind::Mcp => format!("mcp:{}", own.server),
            _ => words::before(self.base_url(), b"?#").to_owned(),
        }
    }

    /// # Errors
    /// A key of the search service is missing, or has no use for services of this kind.
    fn check(&self, servers: &McpConnector) -> Result<(), ConfigError> {
        let refuse =
            |key: &str, reason: &str| Err(ConfigError::new(path(&format!(".{key}")), reason));
        match (self.kind == SearchKind::Mcp, &self.mcp) {
            (true, None) => return refuse("mcp", "expected an object, which kind mcp needs"),
            (false, Some(_)) => return refuse("mcp", "expected no such key without kind mcp"),
            (true, Some(tool)) => {
                let checked = tool.check(servers);
                checked.or_else(|(key, reason)| refuse(&format!("mcp.{key}"), reason))?;
                return self.check_unused().or_else(|key| {
                    refuse(key, "expected no such key with kind mcp; the MCP server has its own")
                });
            }
            (false, None) => {}
        }
        if self.url.is_empty() && self.base_url().is_empty() {
            return refuse("url", "expected the URL of the service, which this kind needs");
        }
        check_url(self.base_url()).or_else(|reason| refuse("url", reason))?;
        check_cluster(&self.cluster).or_else(|reason| refuse("cluster", reason))?;
        if !self.kind.vendor_url().is_empty() && self.key.secret().is_none() {
            return refuse("key", "expected {\"env\": NAME}, because this kind needs a key");
        }
        if let Some(name) = self.kind.own_params().iter().find(|name| self.params.has(name)) {
            let reason = "expected another name, because Creole sets this parameter itself";
            return refuse(&format!("params.{name}"), reason);
        }
        match (self.kind == SearchKind::Json, &self.request, &self.response) {
            (true, None, _) => refuse("request", "expected an object, which kind json needs"),
            (true, _, None) => refuse("response", "expected an object, which kind json needs"),
            (true, Some(request), _) => {
                request.check().or_else(|(key, reason)| refuse(&format!("request{key}"), reason))
            }
            (false, Some(_), _) => refuse("request", "expected no such key without kind json"),
            (false, _, Some(_)) => refuse("response", "expected no such key without kind json"),
            (false, None, None) => Ok(()),
        }
    }
}

impl WebSearchService {
    /// # Errors
    /// A key that has no use for a tool of an MCP server.
    fn check_unused(&self) -> Result<(), &'static str> {
        let unused = [
            ("url", !self.url.is_empty()),
            ("cluster", !self.cluster.is_empty()),
            ("key", self.key.secret().is_some()),
            ("params", self.params.iter().next().is_some()),
            ("request", self.request.is_some()),
            ("response", self.response.is_some()),
        ];
        let is_set = unused.into_iter().find(|(_, is_set)| *is_set);
        is_set.map_or(Ok(()), |(key, _)| Err(key))
    }
}

impl SearchMcpTool {
    /// # Errors
    /// The wrong key, and the reason.
    fn check(&self, servers: &McpConnector) -> Result<(), (&'static str, &'static str)> {
        match servers.server(&self.server) {
            None => return Err(("server", "expected the name of a server in server_tools.mcp")),
            Some(server) if server.key == McpKey::Client => {
                let reason = "expected a server whose key is not \"client\", because a search has \
                              no token of the client";
                return Err(("server", reason));
            }
            Some(server) if !server.permits(&self.tool) => {
                return Err(("tool", "expected a tool that the server's lists permit"));
            }
            Some(_) => {}
        }
        if self.tool.is_empty() || !self.tool.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(("tool", "expected the name of a tool"));
        }
        match self.argument.is_empty() {
            true => Err(("argument", "expected the name of an argument")),
            false => Ok(()),
        }
    }
}

impl SearchRequest {
    /// # Errors
    /// The wrong key, with a dot before it, and the reason.
    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let starts = self.path.is_empty() || self.path.starts_with('/');
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#');
        if !starts || !self.path.bytes().all(is_plain) {
            return Err((".path", "expected a path such as \"/search\", without a query"));
        }
        let has_body = self.body.names().next().is_some();
        if has_body && self.method == SearchMethod::Get {
            return Err((".body", "expected none, because method is GET"));
        }
        let is_asked = |text: &str| words::has(text, QUERY);
        let in_body = |name| self.body.get(name).is_some_and(is_asked);
        let asks = is_asked(&self.path)
            || self.query.iter().any(|(_, value)| is_asked(value))
            || self.body.names().any(in_body);
        if !asks {
            return Err(("", "expected {query} in path, in query or in body"));
        }
        Ok(())
    }
}

impl Config {
    /// Checks that no server tool can call a server that a client names, for hosts that cannot keep
    /// such calls out of private networks.
    ///
    /// # Errors
    /// The configuration allows such calls, which the host would never make.
    pub fn check_no_public_calls(&self) -> Result<(), String> {
        let tools = &self.settings.server_tools;
        let key = if tools.fetches() {
            "server_tools.web_fetch"
        } else if tools.mcp.from_requests != McpFromRequests::Configured {
            "server_tools.mcp.from_requests"
        } else {
            return Ok(());
        };
        let reason = "this host cannot check the addresses of servers; run creole serve or the \
                      Worker";
        Err(ConfigError::new(key, reason).to_string())
    }

    /// Checks that no service is configured, for hosts that cannot call services.
    ///
    /// # Errors
    /// The configuration has a service, which the host would never call.
    pub fn check_no_services(&self) -> Result<(), String> {
        let tools = &self.settings.server_tools;
        if !tools.searches() && !tools.fetches() && !tools.mcp.is_on() {
            return Ok(());
        }
        let reason = "this host cannot call services; run creole serve or the Worker";
        Err(ConfigError::new("server_tools", reason).to_string())
    }
}

impl ServerTools {
    /// Returns true if a search service is configured, so that `web_search` can be run.
    #[must_use]
    pub fn searches(&self) -> bool {
        self.web_search.kind != SearchKind::Off
    }

    /// Returns true if `web_fetch` can be run.
    #[must_use]
    pub fn fetches(&self) -> bool {
        self.web_fetch.is_some()
    }

    /// Reads the credentials of the services from the host, and checks the services. A service that
    /// is switched off is not checked.
    ///
    /// # Errors
    /// The host has no credential of the name, or a key of a service is missing or has no use.
    pub(super) fn resolve(&mut self, secrets: &Secrets<'_>) -> Result<(), ConfigError> {
        self.web_fetch.as_ref().map_or(Ok(()), WebFetch::check)?;
        self.mcp.resolve(secrets)?;
        if !self.searches() {
            return Ok(());
        }
        let resolved = self.web_search.key.resolve(secrets);
        resolved.map_err(|(member, reason)| {
            ConfigError::new(path(&format!(".key.{member}")), reason)
        })?;
        self.web_search.check(&self.mcp)
    }
}

impl Config {
    /// Lets a SearXNG at this URL run the web searches of models. `source` is the name of the flag.
    ///
    /// # Errors
    /// The configuration names another search service, or the URL cannot be used.
    pub fn set_search(&mut self, url: &str, source: &str) -> Result<(), String> {
        let service = &mut self.settings.server_tools.web_search;
        if service.kind != SearchKind::Off {
            return Err(format!("{source}: the configuration has a search service; set it there"));
        }
        check_url(url).map_err(|reason| format!("{source}: {reason}"))?;
        (service.kind, service.url) = (SearchKind::Searxng, url.to_owned());
        Ok(())
    }
}

fn path(key: &str) -> String {
    ["server_tools.web_search", key].concat()
}

#[cfg(test)]
mod tests;
