//! Judgement whether the client's web search has a service behind it.

use creole::Config;
use creole::profile::WebSearch;

/// Returns how the tool `WebSearch` works with a gateway, or why nothing searches. `None` is a
/// gateway that was already running, whose configuration is not known.
pub(super) fn judge(config: Option<&Config>) -> Result<String, &'static str> {
    let Some(config) = config else {
        let how = "works if that gateway has a search service (creole serve --search URL)";
        return Ok(how.to_owned());
    };
    let tools = &config.settings.server_tools;
    if tools.searches() {
        return Ok(format!("works: it asks {}", tools.web_search.shown()));
    }
    let upstream = config.first_upstream();
    if upstream.is_some_and(|upstream| upstream.profile.web_search != WebSearch::Drop) {
        return Ok("works: the upstream searches itself".to_owned());
    }
    Err("no search service is named: --search URL names a SearXNG")
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
        assert!(judge(None).unwrap().contains("if that gateway has a search service"));
        assert!(judge(Some(&config(|_| {}))).unwrap_err().contains("--search URL"));
        let named = config(|config| {
            config.set_search("http://127.0.0.1:8888/?key=sk-1", "--search").unwrap();
        });
        assert_eq!(judge(Some(&named)).unwrap(), "works: it asks http://127.0.0.1:8888/");
        let hosted = config(|config| config.set_profile("openai", "--profile").unwrap());
        assert!(judge(Some(&hosted)).unwrap().contains("the upstream searches itself"));
    }
}
