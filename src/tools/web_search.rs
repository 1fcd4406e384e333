//! The tool `web_search` that Creole runs: its definition in a request, and the function that the
//! model gets in its place.

use super::domain_lists::DomainLists;
use crate::error::Error;
use crate::json::{self, Reader};
use crate::model::path_at;
use crate::model::search::{SearchTool, UserLocation};
use crate::model::tool::ToolDefinition;

/// Description of the function for the model. A constant text keeps the upstream's prompt cache.
const DESCRIPTION: &str = "Search the web. Returns numbered results with title, address and text.";

/// Description of the function for a model that is asked to mark what it cites.
const MARKED_DESCRIPTION: &str = "Search the web. Returns numbered results with title, address and text. To cite a result, write its number right after the statement it supports, as [[1]].";

/// JSON Schema of the function's parameters.
pub(super) const PARAMETERS: &str = r#"{"type":"object","properties":{"query":{"type":"string","description":"What to search for"}},"required":["query"],"additionalProperties":false}"#;

/// Reads and checks the definition of a `web_search` tool. `body` is the request's body, for the
/// paths in errors.
///
/// # Errors
///
/// Both lists of domains have entries, an entry is no host, or a member has the wrong type.
pub(super) fn read(
    definition: &ToolDefinition<'_>,
    body: &str,
    asks_for_marks: bool,
) -> Result<SearchTool, Error> {
    let members = definition.rare().search();
    let in_path = |error: json::Error| Error::from(error.in_key(&path_at(body, definition.at)));
    let DomainLists { allowed, blocked } = DomainLists::read(&members).map_err(in_path)?;
    let location = members.user_location.map(location).transpose();
    let location = location.map_err(|error| in_path(error.in_key("user_location")))?;
    Ok(SearchTool {
        allowed_domains: allowed,
        blocked_domains: blocked,
        max_uses: members.max_uses,
        location,
        asks_for_marks,
    })
}

/// Returns the description of the function for the model.
pub(super) fn description(tool: &SearchTool) -> &'static str {
    if tool.asks_for_marks { MARKED_DESCRIPTION } else { DESCRIPTION }
}

/// Returns the text that is appended to the description: the place of the user, if the client tells
/// it.
pub(super) fn remark(tool: &SearchTool) -> String {
    let location = tool.location.iter();
    let places = location.flat_map(|it| [&it.city, &it.region, &it.country]);
    let places: Vec<&str> = places.flatten().map(String::as_str).collect();
    match places.is_empty() {
        true => String::new(),
        false => format!(" The user is near {}.", places.join(", ")),
    }
}

fn location(object: &str) -> Result<UserLocation, json::Error> {
    let mut location = UserLocation::default();
    let mut reader = Reader::new(object, 128);
    reader.begin_object()?;
    while let Some(key) = reader.next_key()? {
        let key = key.decode();
        let place = match key.as_ref() {
            "city" => &mut location.city,
            "region" => &mut location.region,
            "country" => &mut location.country,
            "timezone" => &mut location.timezone,
            _ => {
                reader.skip()?;
                continue;
            }
        };
        *place = None;
        if !reader.null()? {
            let text = reader.string().map_err(|error| error.in_key(&key))?;
            *place = Some(text.decode().trim().to_owned()).filter(|text| !text.is_empty());
        }
    }
    Ok(location)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Request;
    use crate::observe::warning::Warnings;
    use crate::tools::domain_lists::DOMAINS_MAX;

    fn read_tool(members: &str) -> Result<SearchTool, String> {
        let tool = format!(r#"{{"type":"web_search_20250305","name":"web_search"{members}}}"#);
        let body = format!(r#"{{"model":"m","tools":[{{"name":"other"}},{tool}],"messages":[]}}"#);
        let request = Request::read(&body, &mut Warnings::new(false)).unwrap();
        read(&request.tools[1], &body, false).map_err(|error| error.message.clone())
    }

    #[test]
    fn the_members_of_the_tool_are_read() {
        assert_eq!(read_tool(""), Ok(SearchTool::default()));
        let nothing = r#","allowed_domains":null,"blocked_domains":[],"user_location":null"#;
        assert_eq!(read_tool(nothing), Ok(SearchTool::default()));
        let tool = read_tool(
            r#","max_uses":3,"blocked_domains":["a.example","b.example/x/*/y"],"user_location":
               {"type":"approximate","city":" Bonn ","region":null,"country":"DE","timezone":""}"#,
        );
        let location = UserLocation {
            city: Some("Bonn".to_owned()),
            country: Some("DE".to_owned()),
            ..UserLocation::default()
        };
        let expected = SearchTool {
            allowed_domains: Vec::new(),
            blocked_domains: vec!["a.example".to_owned(), "b.example/x/*/y".to_owned()],
            max_uses: Some(3),
            location: Some(location),
            asks_for_marks: false,
        };
        assert_eq!(tool, Ok(expected));
    }

    #[test]
    fn both_lists_of_domains_together_are_refused() {
        let both = r#","allowed_domains":["a.example"],"blocked_domains":["b.example"]"#;
        let reason = "tools[1]: allowed_domains and blocked_domains cannot be used together";
        assert_eq!(read_tool(both), Err(reason.to_owned()));
        let one = r#","allowed_domains":["a.example"],"blocked_domains":[]"#;
        assert_eq!(read_tool(one).unwrap().allowed_domains, ["a.example"]);
    }

    #[test]
    fn an_entry_that_is_no_host_is_refused_with_its_place() {
        for entry in [
            "https://a.example",
            "*.a.example",
            "",
            "/path",
            "a.example/x y",
            "a\\u0000.example",
            "user@a.example",
            "a.example?q=1",
            "a.example/x?q",
            "a.example/#x",
            "a.example/*/*",
            ".a.example",
            "a..example",
            "a.example:80",
            "a.example\\\\x",
        ] {
            let list = format!(r#","allowed_domains":["ok.example","{entry}"]"#);
            let error = read_tool(&list).unwrap_err();
            let expected =
                "tools[1].allowed_domains[1]: expected a host without scheme, but found \"";
            assert!(error.starts_with(expected), "{entry}: {error}");
        }
        for entry in
            ["localhost", "a.example/", "a.example/@user/*", "bücher.example", "a_b.example"]
        {
            let list = format!(r#","blocked_domains":["{entry}"]"#);
            assert_eq!(read_tool(&list).unwrap().blocked_domains, [entry]);
        }
    }

    #[test]
    fn members_of_a_wrong_type_are_refused_with_their_path() {
        for (members, path) in [
            (r#","allowed_domains":"a.example""#, "tools[1].allowed_domains: expected an array"),
            (r#","blocked_domains":[1]"#, "tools[1].blocked_domains[0]: expected a string"),
            (r#","user_location":{"city":1}"#, "tools[1].user_location.city: expected a string"),
        ] {
            let error = read_tool(members).unwrap_err();
            assert!(error.starts_with(path), "{error}");
        }
        let many = vec!["\"a.example\""; DOMAINS_MAX + 1].join(",");
        let error = read_tool(&format!(r#","allowed_domains":[{many}]"#)).unwrap_err();
        assert_eq!(error, "tools[1].allowed_domains: expected at most 1000 domains");
    }

    #[test]
    fn the_description_says_where_the_user_is() {
        let described = |location: &str| {
            let tool = read_tool(&format!(r#","user_location":{location}"#)).unwrap();
            remark(&tool)
        };
        assert_eq!(described("null"), "");
        assert_eq!(described(r#"{"timezone":"Europe/Berlin"}"#), "");
        assert_eq!(described(r#"{"country":"DE","city":"Bonn"}"#), " The user is near Bonn, DE.");
        let all = r#"{"city":"Bonn","region":"NRW","country":"DE"}"#;
        assert_eq!(described(all), " The user is near Bonn, NRW, DE.");
        assert!(Reader::of(PARAMETERS).is_object());
    }
}
