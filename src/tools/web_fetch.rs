//! The tool `web_fetch` that Creole runs: its definition in a request, and the function that the
//! model gets in its place.

use super::domain_lists::DomainLists;
use crate::error::Error;
use crate::json::{self, Reader};
use crate::model::fetch::{FetchTool, ToolFilter, UrlSources};
use crate::model::path_at;
use crate::model::tool::ToolDefinition;

/// Description of the function for the model. A constant text keeps the upstream's prompt cache.
pub(super) const DESCRIPTION: &str = "Fetch a web page that the conversation names, and return its text. Addresses that were never mentioned cannot be fetched.";

/// JSON Schema of the function's parameters.
pub(super) const PARAMETERS: &str = r#"{"type":"object","properties":{"url":{"type":"string","description":"Address of the page"}},"required":["url"],"additionalProperties":false}"#;

/// Maximum number of tools that a source of addresses names.
const TOOLS_MAX: usize = 1000;

/// Reads and checks the definition of a `web_fetch` tool. `body` is the request's body, for the
/// paths in errors.
///
/// # Errors
///
/// Both lists of domains have entries, an entry is no host, or a member has the wrong type.
pub(super) fn read(definition: &ToolDefinition<'_>, body: &str) -> Result<FetchTool, Error> {
    let members = definition.rare().search();
    let in_path = |error: json::Error| Error::from(error.in_key(&path_at(body, definition.at)));
    let DomainLists { allowed, blocked } = DomainLists::read(&members).map_err(in_path)?;
    let sources = given(members.url_sources).map_or_else(|| Ok(UrlSources::default()), url_sources);
    let url_sources = sources.map_err(|error| in_path(error.in_key("url_sources")))?;
    let citations = given(members.citations).map_or(Ok(false), is_enabled);
    Ok(FetchTool {
        max_uses: members.max_uses,
        allowed_domains: allowed,
        blocked_domains: blocked,
        max_content_tokens: members.max_content_tokens,
        citations: citations.map_err(|error| in_path(error.in_key("citations")))?,
        url_sources,
    })
}

fn given(value: Option<&str>) -> Option<&str> {
    value.filter(|value| *value != "null")
}

/// Reads `citations`, an object with the member `enabled`.
fn is_enabled(object: &str) -> Result<bool, json::Error> {
    let mut is_enabled = false;
    let mut reader = Reader::new(object, 128);
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        match key.decode().as_ref() {
            "enabled" => {
                let found = if reader.null()? { Ok(false) } else { reader.bool() };
                is_enabled = found.map_err(|error| error.in_key("enabled"))?;
            }
            _ => drop(reader.skip()?),
        }
    }
    Ok(is_enabled)
}

fn url_sources(object: &str) -> Result<UrlSources, json::Error> {
    let mut sources = UrlSources::default();
    let mut reader = Reader::new(object, 128);
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        let key = key.decode();
        let value = reader.skip()?;
        let filter = || filter(value).map_err(|error| error.in_key(&key));
        match key.as_ref() {
            _ if value == "null" => {}
            "user_input" => sources.is_user_excluded = filter()? == ToolFilter::None,
            "client_tool_results" => sources.client_tools = filter()?,
            "server_tool_results" => sources.server_tools = filter()?,
            _ => {}
        }
    }
    Ok(sources)
}

/// Reads one source of addresses: `{"type": "all"}`, `none`, `only` or `except`, the latter two
/// with a list of tools.
fn filter(object: &str) -> Result<ToolFilter, json::Error> {
    if !Reader::of(object).is_object() {
        return Err(json::Error::value("expected an object"));
    }
    let kind = json::member(object, "type").and_then(json::string).unwrap_or_default();
    match kind.decode().as_ref() {
        "all" => Ok(ToolFilter::All),
        "none" => Ok(ToolFilter::None),
        "only" => Ok(ToolFilter::Only(tools(object)?)),
        "except" => Ok(ToolFilter::Except(tools(object)?)),
        _ => {
            let reason = "expected 'all', 'none', 'only' or 'except'";
            Err(json::Error::value(reason).in_key("type"))
        }
    }
}

/// Reads the names of tools in a source of addresses.
fn tools(object: &str) -> Result<Vec<String>, json::Error> {
    let mut names = Vec::new();
    let list = json::member(object, "tools").unwrap_or_default();
    for tool in json::elements(list).take(TOOLS_MAX) {
        let name = json::member(tool, "name").and_then(json::string).ok_or_else(|| {
            let error = json::Error::value("expected a tool reference with a name");
            error.at_index(names.len()).in_key("tools")
        })?;
        names.push(name.decode().into_owned());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Request;
    use crate::observe::warning::Warnings;

    fn read_tool(members: &str) -> Result<FetchTool, String> {
        let tool = format!(r#"{{"type":"web_fetch_20250910","name":"web_fetch"{members}}}"#);
        let body = format!(r#"{{"model":"m","tools":[{{"name":"other"}},{tool}],"messages":[]}}"#);
        let request = Request::read(&body, &mut Warnings::new(false)).unwrap();
        read(&request.tools[1], &body).map_err(|error| error.message.clone())
    }

    #[test]
    fn the_members_of_the_tool_are_read() {
        assert_eq!(read_tool(""), Ok(FetchTool::default()));
        let nothing = r#","citations":null,"url_sources":null,"max_content_tokens":null"#;
        assert_eq!(read_tool(nothing), Ok(FetchTool::default()));
        let tool = read_tool(
            r#","max_uses":3,"allowed_domains":["A.example"],"max_content_tokens":100,
               "citations":{"enabled":true},"use_cache":false,"url_sources":{
               "user_input":{"type":"none"},"client_tool_results":{"type":"only","tools":
               [{"type":"tool_reference","name":"read"}]},"server_tool_results":
               {"type":"except","tools":[{"type":"tool_reference","name":"web_search"}]}}"#,
        );
        let expected = FetchTool {
            max_uses: Some(3),
            allowed_domains: vec!["a.example".to_owned()],
            blocked_domains: Vec::new(),
            max_content_tokens: Some(100),
            citations: true,
            url_sources: UrlSources {
                is_user_excluded: true,
                client_tools: ToolFilter::Only(vec!["read".to_owned()]),
                server_tools: ToolFilter::Except(vec!["web_search".to_owned()]),
            },
        };
        assert_eq!(tool, Ok(expected));
    }

    #[test]
    fn wrong_members_are_refused_with_their_path() {
        for (members, path) in [
            (r#","allowed_domains":["https://a.example"]"#, "tools[1].allowed_domains[0]: "),
            (
                r#","allowed_domains":["a.example"],"blocked_domains":["b.example"]"#,
                "tools[1]: allowed_domains and blocked_domains cannot be used together",
            ),
            (r#","citations":{"enabled":1}"#, "tools[1].citations.enabled: "),
            (r#","url_sources":[]"#, "tools[1].url_sources: "),
            (r#","url_sources":{"user_input":"all"}"#, "tools[1].url_sources.user_input: "),
            (
                r#","url_sources":{"user_input":{"type":"some"}}"#,
                "tools[1].url_sources.user_input.type: ",
            ),
            (
                r#","url_sources":{"client_tool_results":{"type":"only","tools":[{}]}}"#,
                "tools[1].url_sources.client_tool_results.tools[0]: ",
            ),
        ] {
            let error = read_tool(members).unwrap_err();
            assert!(error.starts_with(path), "{members}: {error}");
        }
    }

    #[test]
    fn the_parameters_are_a_schema() {
        assert!(Reader::of(PARAMETERS).is_whole());
        assert!(Reader::of(PARAMETERS).is_object());
    }
}
