//! Calls that a host can make which connects to named clusters alone, as an Envoy filter does.

use super::document::ConfigError;
use super::{Config, McpFromRequests, SearchKind, ToolSearch, Upstream};

/// Kinds of calls besides the upstream's first one that a host of clusters makes with a
/// configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterCalls {
    /// True if services are called, and another round of an answer may follow.
    pub services: bool,
    /// True if pages or images are fetched.
    pub fetches: bool,
    /// True if models are asked that the configuration names, such as the judge of tool calls.
    pub models: bool,
}

impl ClusterCalls {
    /// Returns true if any calls are made besides the upstream's first one.
    #[must_use]
    pub fn any(self) -> bool {
        self.services || self.fetches || self.models
    }
}

/// Reason why a key must name a cluster.
const EXPECTED: &str = "expected the name of a cluster, through which this host calls";

impl Config {
    /// Returns the kinds of calls that a host of clusters makes. Services, pages and images are on
    /// where the configuration has them with their clusters. Models that judge or describe are
    /// asked only if the configuration names the clusters of all their upstreams.
    #[must_use]
    pub fn cluster_calls(&self) -> ClusterCalls {
        let tools = &self.settings.server_tools;
        let images = &self.settings.fetch_images;
        let services = tools.searches()
            || tools.fetches()
            || tools.mcp.is_on()
            || tools.tool_search == ToolSearch::Run;
        let fetches = tools.fetches() || !images.hosts.is_empty() && !images.cluster.is_empty();
        let mut asked = self.asked_models().peekable();
        let models = asked.peek().is_some() && asked.all(|upstream| !upstream.cluster.is_empty());
        ClusterCalls { services, fetches, models }
    }

    /// Checks that the configuration names a cluster for each call that a host of clusters has to
    /// make. Returns notes about what is off because its cluster is not named.
    ///
    /// # Errors
    /// A service, or a page or image beside a service, has no cluster.
    pub fn check_clusters(&self) -> Result<Vec<String>, String> {
        let calls = self.cluster_calls();
        let missing = |path: String| Err(ConfigError::new(path, EXPECTED).to_string());
        if let Some(path) = self.service_without_cluster() {
            return missing(path);
        }
        let mut notes = Vec::new();
        let images = &self.settings.fetch_images;
        if !images.hosts.is_empty() && images.cluster.is_empty() {
            if calls.services || calls.fetches {
                return missing("fetch_images.cluster".to_owned());
            }
            notes.push(off("fetch_images.cluster", "no image is fetched"));
        }
        for upstream in self.asked_models().filter(|upstream| upstream.cluster.is_empty()) {
            let path = format!("upstreams.{}.cluster", upstream.name);
            if calls.services || calls.fetches {
                return missing(path);
            }
            notes.push(off(&path, "no model of safeguards and of vision is asked"));
        }
        Ok(notes)
    }

    /// Returns the path of the first missing cluster of a service.
    fn service_without_cluster(&self) -> Option<String> {
        const TOOLS: &str = "server_tools";
        let tools = &self.settings.server_tools;
        let is_by_server = tools.web_search.kind == SearchKind::Mcp;
        if tools.searches() && !is_by_server && tools.web_search.cluster.is_empty() {
            return Some(format!("{TOOLS}.web_search.cluster"));
        }
        if tools.web_fetch.as_ref().is_some_and(|fetch| fetch.cluster.is_empty()) {
            return Some(format!("{TOOLS}.web_fetch.cluster"));
        }
        let mut servers = tools.mcp.servers.iter();
        if let Some((name, _)) = servers.find(|(_, server)| server.cluster.is_empty()) {
            return Some(format!("{TOOLS}.mcp.servers.{name}.cluster"));
        }
        let asks_others = tools.mcp.from_requests != McpFromRequests::Configured;
        (asks_others && tools.mcp.cluster.is_empty()).then(|| format!("{TOOLS}.mcp.cluster"))
    }

    /// Returns the upstreams of the models that the configuration names for Creole's own requests.
    fn asked_models(&self) -> impl Iterator<Item = &Upstream> {
        let named = [self.judge(), self.vision()];
        named.into_iter().flatten().map(|(upstream, _)| upstream)
    }
}

fn off(path: &str, what: &str) -> String {
    format!("configuration: {path}: names no cluster, so {what}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Config {
        Config::from_json(text, |_| None).unwrap()
    }

    #[track_caller]
    fn refused(text: &str, path: &str) {
        let error = read(text).check_clusters().unwrap_err();
        assert!(error.starts_with(&format!("configuration: {path}: expected the name")), "{error}");
    }

    #[test]
    fn each_service_needs_a_cluster() {
        let search = r#"{"kind":"searxng","url":"http://s"}"#;
        let of = |tools: &str| format!(r#"{{"server_tools":{tools}}}"#);
        refused(&of(&format!(r#"{{"web_search":{search}}}"#)), "server_tools.web_search.cluster");
        refused(&of(r#"{"web_fetch":{}}"#), "server_tools.web_fetch.cluster");
        let server =
            r#"{"mcp":{"servers":{"a":{"url":"http://a","cluster":"a"},"b":{"url":"http://b"}}}}"#;
        refused(&of(server), "server_tools.mcp.servers.b.cluster");
        refused(&of(r#"{"mcp":{"from_requests":"public"}}"#), "server_tools.mcp.cluster");
        let whole = read(&of(r#"{"web_search":{"kind":"searxng","url":"http://s","cluster":"s"},
                "web_fetch":{"cluster":"w"},"mcp":{"cluster":"m","from_requests":"public",
                "servers":{"a":{"url":"http://a","cluster":"a"}}}}"#));
        assert_eq!(whole.check_clusters(), Ok(Vec::new()));
        let calls = ClusterCalls { services: true, fetches: true, models: false };
        assert_eq!(whole.cluster_calls(), calls);
    }

    #[test]
    fn without_a_service_what_has_no_cluster_is_off_and_said() {
        let images = r#"{"fetch_images":{"hosts":["a.example"]}}"#;
        let notes = read(images).check_clusters().unwrap();
        assert!(notes[0].starts_with("configuration: fetch_images.cluster: names no"), "{notes:?}");
        assert_eq!(read(images).cluster_calls(), ClusterCalls::default());
        let judge = |cluster: &str| {
            read(&format!(
                r#"{{"upstreams":{{"a":{{"cluster":"{cluster}"}}}},"safeguards":{{"model":"j"}}}}"#
            ))
        };
        let notes = judge("").check_clusters().unwrap();
        assert!(notes[0].starts_with("configuration: upstreams.a.cluster: names no"), "{notes:?}");
        assert!(!judge("").cluster_calls().any());
        assert!(judge("c").cluster_calls().models && judge("c").check_clusters() == Ok(Vec::new()));
        assert!(!Config::default().cluster_calls().any());
    }

    #[test]
    fn beside_a_service_all_clusters_are_needed() {
        let with = |more: &str| {
            format!(
                r#"{{"server_tools":{{"web_search":{{"kind":"searxng","url":"http://s","cluster":"s"}}}},{more}}}"#
            )
        };
        refused(&with(r#""fetch_images":{"hosts":["a.example"]}"#), "fetch_images.cluster");
        refused(&with(r#""vision":{"model":"v"}"#), "upstreams.default.cluster");
    }

    #[test]
    fn a_search_for_tools_needs_no_cluster() {
        let config = read(r#"{"server_tools":{"tool_search":"run"}}"#);
        assert_eq!(config.check_clusters(), Ok(Vec::new()));
        assert!(config.cluster_calls().services);
    }
}
