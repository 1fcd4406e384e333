//! The tool `web_search` that Creole runs: its definition in a request, and the function that the
//! model gets in its place.

use crate::error::Error;
use crate::json::{self, Reader, quoted};
use crate::model::path_at;
use crate::model::search::{SearchTool, UserLocation};
use crate::model::tool::ToolDefinition;
use crate::text::words;

/// Description of the function for the model. A constant text keeps the upstream's prompt cache.
pub(super) const DESCRIPTION: &str =
    "Search the web. Returns numbered results with title, address and text.";

/// JSON Schema of the function's parameters.
pub(super) const PARAMETERS: &str = r#"{"type":"object","properties":{"query":{"type":"string","description":"What to search for"}},"required":["query"],"additionalProperties":false}"#;

/// Maximum number of entries in a list of domains. Each result is compared with each entry.
const DOMAINS_MAX: usize = 1000;

/// Maximum number of bytes of a wrong entry that an error quotes.
const QUOTED_BYTES_MAX: usize = 200;

/// Reads and checks the definition of a `web_search` tool. `body` is the request's body, for the
/// paths in errors.
///
/// # Errors
///
/// Both lists of domains have entries, an entry is no host, or a member has the wrong type.
pub(super) fn read(definition: &ToolDefinition<'_>, body: &str) -> Result<SearchTool, Error> {
    let members = definition.rare().search();
    let in_path = |error: json::Error| Error::from(error.in_key(&path_at(body, definition.at)));
    let list = |name: &str, array: Option<&str>| {
        domains(array).map_err(|error| in_path(error.in_key(name)))
    };
    let allowed_domains = list("allowed_domains", members.allowed_domains)?;
    let blocked_domains = list("blocked_domains", members.blocked_domains)?;
    if !allowed_domains.is_empty() && !blocked_domains.is_empty() {
        let reason = "allowed_domains and blocked_domains cannot be used together";
        return Err(in_path(json::Error::value(reason)));
    }
    let location = members.user_location.map(location).transpose();
    let location = location.map_err(|error| in_path(error.in_key("user_location")))?;
    Ok(SearchTool { allowed_domains, blocked_domains, max_uses: members.max_uses, location })
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

fn domains(array: Option<&str>) -> Result<Vec<String>, json::Error> {
    let mut domains = Vec::new();
    let Some(array) = array.filter(|array| *array != "null") else { return Ok(domains) };
    let mut reader = Reader::new(array, 2);
    reader.begin_array()?;
    while reader.next_element()? {
        if domains.len() >= DOMAINS_MAX {
            return Err(json::Error::value(format!("expected at most {DOMAINS_MAX} domains")));
        }
        let at = |error: json::Error| error.at_index(domains.len());
        let domain = reader.string().map_err(at)?.decode();
        let Some(domain) = checked(&domain) else {
            let found = quoted(words::beginning(&domain, QUOTED_BYTES_MAX));
            let reason = format!("expected a host without scheme, but found {found}");
            return Err(at(json::Error::value(reason)));
        };
        domains.push(domain);
    }
    Ok(domains)
}

/// Returns an entry of a list with its host in lower case; `None` if the entry is not a host with
/// an optional path, in which one `*` may be.
fn checked(entry: &str) -> Option<String> {
    let host = words::before(entry, b"/");
    let path = entry.get(host.len()..).unwrap_or_default();
    let is_label = |label: &str| {
        let in_label = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
        !label.is_empty() && label.chars().all(in_label)
    };
    let in_path = |letter: char| {
        !(letter.is_control() || letter.is_whitespace() || matches!(letter, '?' | '#' | '\\'))
    };
    let is_plain = host.split('.').all(is_label)
        && path.chars().all(in_path)
        && path.bytes().filter(|byte| *byte == b'*').count() <= 1;
    is_plain.then(|| host.to_lowercase() + path)
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

    fn read_tool(members: &str) -> Result<SearchTool, String> {
        let tool = format!(r#"{{"type":"web_search_20250305","name":"web_search"{members}}}"#);
        let body = format!(r#"{{"model":"m","tools":[{{"name":"other"}},{tool}],"messages":[]}}"#);
        let request = Request::read(&body, &mut Warnings::new(false)).unwrap();
        read(&request.tools[1], &body).map_err(|error| error.message.clone())
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
