//! Web search by a tool of an MCP server.
//!
//! The results are the first list of objects in the structured content of the tool's output, or in
//! its texts. A text that is an object with an address is a result, too. An output without such a
//! result is one result itself.

use std::borrow::Cow;
use std::sync::Arc;

use super::read::{TITLE_BYTES_MAX, permitted};
use super::snippet::{lines, one_line, text_of};
use crate::config::{SearchMcpTool, Settings, WebSearchService};
use crate::json::{self, Reader, ValueKind};
use crate::model::search::{FoundPage, SearchFailure, SearchTool};
use crate::observe::report::Report;
use crate::steps::tools::job::{Job, OwnOutput};
use crate::steps::tools::mcp::{AnswerSessions, McpCallJob, McpJob as _, McpOutcome};
use crate::steps::{Came, Question, ReadLimits, See};
use crate::tools::mcp_here::configured_target;

/// Members of a result with its address, its title and its text, the first that is there counts.
const URLS: [&str; 3] = ["url", "link", "href"];
const TITLES: [&str; 2] = ["title", "name"];
const TEXTS: [&str; 4] = ["content", "snippet", "text", "description"];

/// Maximum depth at which a list of results is looked for.
const LIST_DEPTH_MAX: u32 = 3;

/// Maximum number of texts of an output that are read.
const TEXTS_MAX: usize = 256;

/// Web search for one call, by a tool of an MCP server.
#[derive(Debug)]
struct McpSearchJob {
    job: McpCallJob,
    sessions: AnswerSessions,
    service: WebSearchService,
    tool: SearchTool,
}

/// Begins a search; `None` if the operator's server is not there.
pub(super) fn begin(
    own: &SearchMcpTool,
    service: &WebSearchService,
    tool: &SearchTool,
    query: &str,
    see: &See<'_>,
) -> Option<Box<dyn Job>> {
    let server = see.config.settings.server_tools.mcp.server(&own.server)?;
    // A client cannot give this name to a server of its own, and so gets no session of this one.
    let name = format!("{} {:x}", own.server, see.ids.secret());
    let target = Arc::new(configured_target(&name, None, server));
    let era = see.memory.and_then(|memory| memory.era(&target, see.now));
    let input = json::written(|json| {
        json.begin_object().key_text(&own.argument).text(query).end_object();
    });
    let sessions = see.sessions.cloned().unwrap_or_default();
    let names = (own.tool.as_str(), "{}");
    let job = McpCallJob::new(target, names, &input, era, &mut sessions.lock()).ok()?.raw();
    let (service, tool) = (service.clone(), tool.clone());
    Some(Box::new(McpSearchJob { job, sessions, service, tool }))
}

impl Job for McpSearchJob {
    fn ask(&self, see: &See<'_>) -> Option<Question<'static>> {
        self.job.ask(see, &self.sessions.lock())
    }

    fn limits(&self, status: u16, settings: &Settings) -> ReadLimits {
        self.job.limits(status, settings)
    }

    fn take(&mut self, came: Came, report: &mut Report) -> Option<OwnOutput> {
        let outcome = self.job.take(came, &mut self.sessions.lock(), report)?;
        Some(OwnOutput::Search(match outcome {
            McpOutcome::McpResult(result) => pages(&result, &self.service, &self.tool),
            McpOutcome::Mcp(_) | McpOutcome::McpList(_) => Err(SearchFailure::Unavailable),
        }))
    }

    fn timeout_ms(&self, _: &Settings) -> u64 {
        self.service.timeout_ms
    }

    fn held_bytes(&self) -> usize {
        self.job.held_bytes()
    }
}

/// Returns the pages in the result of a call of the tool.
///
/// # Errors
/// The tool failed.
fn pages(
    result: &str,
    service: &WebSearchService,
    tool: &SearchTool,
) -> Result<Vec<FoundPage>, SearchFailure> {
    if json::member(result, "isError") == Some("true") {
        return Err(SearchFailure::Unavailable);
    }
    let content = json::member(result, "content").unwrap_or_default();
    let text = |block| json::member(block, "text").and_then(json::string).map(|it| it.decode());
    let texts: Vec<Cow<'_, str>> =
        json::elements(content).filter_map(text).take(TEXTS_MAX).collect();
    let structured = json::member(result, "structuredContent").unwrap_or_default();
    let is_json = |text: &&str| Reader::of(text).is_whole();
    let documents: Vec<&str> = texts.iter().map(|text| text.trim()).filter(is_json).collect();
    let list = |has_elements| {
        let mut values = std::iter::once(structured).chain(documents.iter().copied());
        values.find_map(|value| list_in(value, has_elements, LIST_DEPTH_MAX))
    };
    let list = list(true).or_else(|| list(false));
    let elements: Vec<&str> = match list {
        Some(list) => json::elements(list).collect(),
        // Some servers give each result as a text of its own.
        None => documents.into_iter().filter(|it| first(it, &URLS).is_some()).collect(),
    };
    if !elements.is_empty() || list.is_some() || texts.iter().all(|text| text.trim().is_empty()) {
        let results =
            elements.into_iter().filter_map(|result| Some((first(result, &URLS)?, result)));
        let snippet_max = service.snippet_bytes_max;
        return Ok(permitted(results, service, tool, |url, result| page(url, result, snippet_max)));
    }
    Ok(whole(&texts.join("\n"), service, tool).into_iter().collect())
}

fn page(url: &str, result: &str, snippet_max: usize) -> FoundPage {
    let title = one_line(&first(result, &TITLES).unwrap_or_default(), TITLE_BYTES_MAX);
    FoundPage {
        url: url.to_owned(),
        title: if title.is_empty() { url.to_owned() } else { title },
        text: lines(&first(result, &TEXTS).unwrap_or_default(), snippet_max),
        age: None,
    }
}

/// Returns the whole output as one page, which has the name of the server in place of an address.
/// `None` if the client wants pages of certain hosts alone.
fn whole(text: &str, service: &WebSearchService, tool: &SearchTool) -> Option<FoundPage> {
    let own = service.mcp.as_ref().filter(|_| tool.allowed_domains.is_empty())?;
    let results_max = usize::try_from(service.results_max).unwrap_or(usize::MAX);
    let bytes_max = service.snippet_bytes_max.saturating_mul(results_max);
    Some(FoundPage {
        url: format!("mcp:{}", own.server),
        title: own.tool.clone(),
        text: lines(text, bytes_max),
        age: None,
    })
}

fn has_address(element: &str) -> bool {
    Reader::of(element).is_object() && first(element, &URLS).is_some()
}

/// Returns the text of the first of these members that has one.
fn first<'r>(result: &'r str, names: &[&str]) -> Option<Cow<'r, str>> {
    let texts = names.iter().filter_map(|name| json::member(result, name)).map(text_of);
    texts.into_iter().find(|text| !text.trim().is_empty())
}

/// Returns the first list in a JSON value with an object that has an address, as JSON text; without
/// `has_elements`, the first empty list.
fn list_in(value: &str, has_elements: bool, depth_max: u32) -> Option<&str> {
    match Reader::of(value).kind().ok()? {
        ValueKind::Array => {
            let is_list = match json::elements(value).next() {
                Some(_) => has_elements && json::elements(value).any(has_address),
                None => !has_elements,
            };
            is_list.then_some(value)
        }
        ValueKind::Object if depth_max > 0 => {
            let depth_max = depth_max.saturating_sub(1);
            json::members(value).find_map(|(_, member)| list_in(member, has_elements, depth_max))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(result: &str, tool: &SearchTool) -> Vec<(String, String, String)> {
        let own = SearchMcpTool {
            server: "s".to_owned(),
            tool: "find".to_owned(),
            argument: "q".to_owned(),
        };
        let service =
            WebSearchService { mcp: Some(own), results_max: 3, ..WebSearchService::default() };
        let pages = pages(result, &service, tool).unwrap_or_default();
        pages.into_iter().map(|page| (page.url, page.title, page.text)).collect()
    }

    fn page_of(url: &str, title: &str, text: &str) -> (String, String, String) {
        (url.to_owned(), title.to_owned(), text.to_owned())
    }

    #[test]
    fn results_are_found_in_structured_content_and_in_texts() {
        let tool = SearchTool::default();
        let a = page_of("https://a.example/", "A", "Alpha");
        for result in [
            r#"{"structuredContent":{"result":[{"url":"https://a.example/","title":"A","content":"Alpha"}]}}"#,
            r#"{"content":[{"type":"text","text":"[{\"link\":\"https://a.example/\",\"name\":\"A\",\"snippet\":\"Alpha\"}]"}]}"#,
            r#"{"content":[{"type":"text","text":"{\"web\":{\"results\":[{\"href\":\"https://a.example/\",\"title\":\"A\",\"description\":\"Alpha\"}]}}"}]}"#,
            r#"{"content":[{"type":"text","text":"{\"url\":\"https://a.example/\",\"title\":\"A\",\"text\":\"Alpha\"}"}]}"#,
            r#"{"structuredContent":{"count":1,"tags":["x"],"errors":[],"hits":[{"url":"https://a.example/","title":"A","text":"Alpha"},{"url":"ftp://b.example/"},{}]}}"#,
        ] {
            assert_eq!(found(result, &tool), std::slice::from_ref(&a), "{result}");
        }
    }

    #[test]
    fn an_output_without_a_list_is_one_result_with_the_name_of_the_server() {
        let result =
            r#"{"content":[{"type":"text","text":"Alpha is 1."},{"type":"text","text":"Beta."}]}"#;
        let one = page_of("mcp:s", "find", "Alpha is 1.\nBeta.");
        assert_eq!(found(result, &SearchTool::default()), [one]);
        let tool =
            SearchTool { allowed_domains: vec!["a.example".to_owned()], ..SearchTool::default() };
        assert!(found(result, &tool).is_empty());
    }

    #[test]
    fn failures_and_empty_outputs_have_no_pages() {
        let service = WebSearchService::default();
        let tool = SearchTool::default();
        let failed = r#"{"isError":true,"content":[{"type":"text","text":"no"}]}"#;
        assert_eq!(pages(failed, &service, &tool), Err(SearchFailure::Unavailable));
        for empty in ["{}", r#"{"content":[]}"#, r#"{"structuredContent":{"results":[]}}"#, "7", ""]
        {
            assert_eq!(pages(empty, &service, &tool), Ok(Vec::new()), "{empty}");
        }
    }

    #[test]
    fn pages_of_other_hosts_are_left_out() {
        let tool =
            SearchTool { allowed_domains: vec!["b.example".to_owned()], ..SearchTool::default() };
        let result =
            r#"{"structuredContent":[{"url":"https://a.example/"},{"url":"https://b.example/"}]}"#;
        assert_eq!(found(result, &tool), [page_of("https://b.example/", "https://b.example/", "")]);
    }
}
