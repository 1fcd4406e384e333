//! Line for the user that tells whether the client's web search has a service behind it.

use creole::Config;
use creole::profile::WebSearch;

/// Returns the line about the tool `WebSearch` for a gateway with this configuration; `None` is a
/// gateway that was already running, whose configuration is not known.
pub(super) fn note(config: Option<&Config>) -> String {
    let Some(config) = config else {
        return "WebSearch works if that gateway has a search service (creole serve --search URL)"
            .to_owned();
    };
    let tools = &config.settings.server_tools;
    if tools.searches() {
        return format!("WebSearch works: it asks {}", tools.web_search.shown());
    }
    let upstream = config.first_upstream();
    if upstream.is_some_and(|upstream| upstream.profile.web_search != WebSearch::Drop) {
        return "WebSearch works: the upstream searches itself".to_owned();
    }
    "WebSearch fails, because no search service is named: --search URL names a SearXNG".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(change: impl FnOnce(&mut Config)) -> Config {
        let mut config = Config::default();
        config.set_url("http://127.0.0.1:1/v1", "--upstream").unwrap();
        change(&mut config);
        config
    }

    #[test]
    fn each_gateway_has_its_own_line() {
        assert!(note(None).contains("if that gateway has a search service"));
        let none = note(Some(&config(|_| {})));
        assert!(none.contains("WebSearch fails") && none.contains("--search URL"), "{none}");
        let named = config(|config| {
            config.set_search("http://127.0.0.1:8888/?key=sk-1", "--search").unwrap();
        });
        assert_eq!(note(Some(&named)), "WebSearch works: it asks http://127.0.0.1:8888/");
        let hosted = config(|config| config.set_profile("openai", "--profile").unwrap());
        assert!(note(Some(&hosted)).contains("the upstream searches itself"));
    }
}
