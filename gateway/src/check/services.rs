//! Services that server tools ask: each is asked once, through the gateway's own service.
//!
//! The demo model stands in the place of an upstream, so that the check costs no tokens and does
//! not depend on what a model wants to call.

use std::time::Duration;

use creole::Config;
use creole::config::{McpKey, McpUnavailable, SearchKind, SideQuery, WebSearchService};
use creole::json;
use creole_demo::{Demo, Options};

use super::ask::{self, ModelReply};
use super::inside::{Inside, KeptLines, ReceivedResponse};
use super::row::{CheckRow, Level};

/// Harmless words that every search service should find something for.
const QUERY: &str = "Wikipedia";

/// Words in the error of an MCP server that does not list its tools, before the reason.
const NO_TOOLS: &str = "did not give its tools: ";

/// Asks each service of the server tools once. Returns a row for each; none if no server tool is
/// configured.
///
/// # Errors
/// The demo model or the gateway's service cannot be started.
pub(super) async fn rows(
    config: &Config,
    lines: &KeptLines,
    patience: Duration,
) -> Result<Vec<CheckRow>, String> {
    let tools = &config.settings.server_tools;
    if !tools.searches() && !tools.fetches() && !tools.mcp.is_on() {
        return Ok(Vec::new());
    }
    let demo = Demo::start(Options::default())
        .map_err(|error| format!("cannot start the demo model: {error}"))?;
    let services = Services { config, demo, lines, patience };
    let mut rows = Vec::new();
    if tools.searches() {
        rows.push(services.search(&tools.web_search).await?);
    }
    if tools.fetches() {
        let text = "on: models get pages that the conversation names; none is asked for here";
        rows.push(CheckRow::new("fetch", Level::Works, text));
    }
    for (name, server) in tools.mcp.servers.iter() {
        rows.push(match server.key {
            McpKey::Client => {
                let text = format!("{name}: not asked, because clients bring its key");
                CheckRow::new("mcp", Level::Limited, text)
            }
            McpKey::None | McpKey::Own(_) => services.server(name).await?,
        });
    }
    Ok(rows)
}

struct Services<'a> {
    config: &'a Config,
    demo: Demo,
    lines: &'a KeptLines,
    patience: Duration,
}

impl Services<'_> {
    /// Sends a request to a gateway that has the server tools of the configuration, as `change`
    /// leaves them, and the demo model as its upstream.
    async fn ask(
        &self,
        body: String,
        change: impl FnOnce(&mut Config),
    ) -> Result<ReceivedResponse, String> {
        let mut config = Config::default();
        config.settings.server_tools = self.config.settings.server_tools.clone();
        config.set_url(&format!("{}/v1", self.demo.url()), "the demo model")?;
        change(&mut config);
        let inside = Inside::start(config, self.lines.clone(), self.patience)?;
        Ok(inside.ask("/v1/messages", body).await)
    }

    /// Searches once, and counts the results.
    async fn search(&self, service: &WebSearchService) -> Result<CheckRow, String> {
        const STEP: &str = "search";
        // The search comes before the model, and its answer is the first that is received, if no
        // MCP server is asked for its tools before.
        let first = |config: &mut Config| {
            config.settings.server_tools.web_search.side_query = SideQuery::Search;
            config.settings.server_tools.mcp.servers.offer_none();
        };
        let received = self.ask(ask::search(QUERY), first).await?;
        let url = service.shown();
        let error = ModelReply::of(&received).error;
        let (level, text) = match (error, results(&received.body)) {
            (Some(error), _) => (Level::Fails, format!("{url}: {error}")),
            (None, Ok(0)) => {
                let text = "it answers, and finds nothing: look at its engines";
                (Level::Limited, format!("{url}: {text}"))
            }
            (None, Ok(count)) => {
                let took = received.whole.as_secs_f64();
                let results = if count == 1 { "result" } else { "results" };
                (Level::Works, format!("{count} {results} in {took:.1} s: {url}"))
            }
            (None, Err(code)) => {
                (Level::Fails, format!("{url} {}", failure(service, &received, &code)))
            }
        };
        let code = if level == Level::Fails { "search" } else { "" };
        Ok(CheckRow { code, ..CheckRow::new(STEP, level, text).timed(&received) })
    }

    /// Asks an MCP server for its tools, and counts those that models get.
    async fn server(&self, name: &str) -> Result<CheckRow, String> {
        const STEP: &str = "mcp";
        self.demo.clear();
        let only = |config: &mut Config| {
            let mcp = &mut config.settings.server_tools.mcp;
            mcp.servers.keep_only(name);
            mcp.unavailable = McpUnavailable::Error;
        };
        let received = self.ask(ask::mcp_tools(name), only).await?;
        if let Some(error) = ModelReply::of(&received).error {
            let reason = error.split_once(NO_TOOLS).map_or(&*error, |(_, reason)| reason);
            let text = format!("{name}: {}", unlisted(reason, &received.uncalled));
            let row = CheckRow::new(STEP, Level::Fails, text).timed(&received);
            return Ok(CheckRow { code: "mcp", ..row });
        }
        let asked = self.demo.requests().pop().map(|asked| asked.body).unwrap_or_default();
        let tools = json::member(&asked, "tools").map(json::elements);
        let (level, text) = match tools.into_iter().flatten().count() {
            0 => (Level::Limited, format!("{name}: it answers, and models get no tool of it")),
            1 => (Level::Works, format!("{name}: 1 tool")),
            count => (Level::Works, format!("{name}: {count} tools")),
        };
        Ok(CheckRow::new(STEP, level, text).timed(&received))
    }
}

/// Returns the number of results of the search in an answer.
///
/// # Errors
/// The error code of the search.
fn results(body: &str) -> Result<usize, String> {
    let text = |object, name| {
        let found = json::member(object, name).and_then(json::string);
        found.map(|text| text.decode().into_owned()).unwrap_or_default()
    };
    let mut blocks = json::member(body, "content").map(json::elements).into_iter().flatten();
    let result = blocks.find(|block| text(block, "type") == "web_search_tool_result");
    let content = result.and_then(|block| json::member(block, "content")).unwrap_or_default();
    let code = text(content, "error_code");
    if result.is_none() || !code.is_empty() {
        return Err(if code.is_empty() { "unavailable".to_owned() } else { code });
    }
    Ok(json::elements(content).count())
}

/// Returns the reason of a search that failed, and the next step, to be read behind the URL.
fn failure(service: &WebSearchService, received: &ReceivedResponse, code: &str) -> String {
    if !received.uncalled.is_empty() {
        return format!("({}): start the service, or correct its address", received.uncalled);
    }
    if received.whole >= Duration::from_millis(service.timeout_ms) {
        return format!("gives no results within {} ms: look at its engines", service.timeout_ms);
    }
    let is_searxng = service.kind == SearchKind::Searxng;
    if service.kind == SearchKind::Mcp {
        return format!("gives no results ({code}): look at the server and the name of its tool");
    }
    match received.first_status() {
        403 if is_searxng => {
            "answers 403: add json to search.formats in its settings.yml".to_owned()
        }
        status @ (401 | 403) => format!("answers {status}: look at its key"),
        429 => "answers 429: it takes no more searches now; look at its limits".to_owned(),
        status @ 300..=399 => {
            format!("answers {status}: name the address to which it leads, which is not followed")
        }
        status @ 400.. => format!("answers {status}: correct its address, or look at its log"),
        _ if is_searxng => {
            format!("has no results ({code}): look at its engines, and whether it is a SearXNG")
        }
        _ => format!("has no results that can be read ({code}): look at its kind and address"),
    }
}

/// Returns the reason why an MCP server did not list its tools, and the next step.
fn unlisted(reason: &str, uncalled: &str) -> String {
    if !uncalled.is_empty() {
        return format!("{reason} ({uncalled}): start the server, or correct its url");
    }
    let step = match reason {
        reason if reason.contains("credentials") => "look at its key in the configuration",
        reason if reason.contains("in time") => "look at its log",
        reason if reason.contains("Streamable HTTP") => {
            "its url may need another path, such as /mcp"
        }
        _ => "correct its url, or look at its log",
    };
    format!("{reason}: {step}")
}

#[cfg(test)]
mod tests;
